"""The short form of the kill lab: what was accepted is answered once, and nothing runs unapproved."""

from __future__ import annotations

from pathlib import Path

from tests.lab import kill
from tests.lab.nursery import Doomed


def test_kill_at_random_moments_loses_nothing_and_repeats_nothing(tmp_path: Path) -> None:
    outcome = kill.run(tmp_path / "home", rounds=5, posts=20, seed=7, process=Doomed)
    assert outcome.faults == []
    assert outcome.kills == 5
    assert len(outcome.posted) == 20
    assert sum(outcome.ran.values()) > 0
