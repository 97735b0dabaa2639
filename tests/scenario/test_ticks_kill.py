"""The short form of the lab of ticks: nobody can tell that the server died while nobody was there."""

from __future__ import annotations

from pathlib import Path

from tests.lab import ticks
from tests.lab.nursery import Moment

DEATHS = [
    Moment("after", ticks.MOMENTS["a delivery"]),  # committed, and not acknowledged
    Moment("after", ticks.MOMENTS["a number that is approved"]),  # and the others of the reply are not
]


def test_firings_clocks_digests_and_budgets_survive_kill_at_their_worst_moments(tmp_path: Path) -> None:
    found = ticks.run(tmp_path, seed=7, deaths=DEATHS)
    assert found.faults == []
    assert sum(found.named.values()) == len(DEATHS)
