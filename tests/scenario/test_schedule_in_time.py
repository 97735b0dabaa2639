"""Does a schedule fire when real time passes? The server's clock begins shortly before a minute, and runs."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.fakes.model_server import ModelServer
from tests.fakes.patience import PATIENCE_SECONDS
from tests.fakes.runtime import serving, write_home

SECONDS_BEFORE = 3.0


class RunningClock:
    """The system's clock, moved so that it shows `start` now."""

    def __init__(self, start: datetime) -> None:
        self._moved = start - datetime.now(UTC)

    def now(self) -> datetime:
        return datetime.now(UTC) + self._moved


async def test_a_schedule_of_every_minute_fires_within_its_minute(tmp_path: Path, model: ModelServer) -> None:
    minute = datetime(2026, 3, 2, 9, 1, tzinfo=UTC)
    home = write_home(tmp_path / "home", model.url)
    clock = RunningClock(minute - timedelta(hours=1))
    async with serving(home, clock=clock) as served:
        await served.runtime.working
        clock._moved = minute - timedelta(seconds=SECONDS_BEFORE) - datetime.now(UTC)
        fields = {"name": "Every minute", "cron": "* * * * *", "timezone": "UTC", "prompt": "[[say in time]]"}
        made = (await served.http.post("/api/triggers", json=fields)).json()
        assert datetime.fromisoformat(made["next_run_at"]) == minute
        path = f"/api/triggers/{made['id']}/occurrences"
        found: list[dict[str, Any]] = []
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not found or found[0]["started_at"] is None:
                found = (await served.http.get(path)).json()["occurrences"]
                await asyncio.sleep(0.1)
        (fired,) = found
        assert (datetime.fromisoformat(fired["scheduled_at"]), fired["reason"]) == (minute, "cron")
        started = datetime.fromisoformat(fired["started_at"])
        assert minute <= started < minute + timedelta(seconds=30)
        thread = await served.wait(fired["thread_id"], "idle")
        assert thread["messages"][-1]["text"] == "in time"
