"""Triggers on each kind of database."""

from __future__ import annotations

import pytest

from pizzabot.database.connection import Database
from tests.fakes.clock import FakeClock
from tests.unit.triggers.unattended import Unattended


@pytest.fixture
def room(database: Database, clock: FakeClock) -> Unattended:
    return Unattended(database, clock)
