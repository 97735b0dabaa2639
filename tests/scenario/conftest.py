"""A scripted model for the scenarios; each module starts the server it needs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fakes.model_server import ModelServer


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server
