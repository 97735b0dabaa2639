"""Who sees how a thread's runs went, and does the page hold whatever stands in them?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from pizzabot.adapters.web.pages.traces import BAR, bar, drawn

from pizzabot.agent import activity
from pizzabot.agent.activity import Activity
from pizzabot.database import schema
from pizzabot.inbox import runs
from tests.fakes.runtime import Served
from tests.unit.web.asked import CLOCK, asked, finished, store_of
from tests.unit.web.browser import UNKNOWN, at_home, check_page

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


async def _acts(served: Served, thread_id: str, name: str) -> None:
    def work(connection: Any) -> None:
        run = runs.newest(connection, thread_id)
        assert run is not None
        done = Activity("tool", name, "ok", None, "<b>bold</b>", 5)
        activity.record(connection, done, CLOCK.now(), thread_id=thread_id, run_id=run.id)

    await store_of(served).write(work)


@pytest.mark.asyncio(loop_scope="package")
async def test_the_api_tells_a_run_step_by_step_to_whoever_sees_the_thread(served: Served) -> None:
    thread_id = await finished(served, "Hello", "Cay", "The answer")
    found = (await (await served.as_person("Cay")).get(f"/api/threads/{thread_id}/trace")).json()
    (run,) = found["runs"]
    assert [step["kind"] for step in run["steps"]] == ["queued", "message", "message"]
    assert (found["id"], found["has_older"], run["state"]) == (thread_id, False, "done")
    dan = await served.as_person("Dan")
    for path in (f"/api/threads/{thread_id}/trace", f"/api/threads/{UNKNOWN}/trace", "/api/threads/x/trace"):
        assert (await dan.get(path)).status_code == 404
    assert (await dan.get(f"/api/threads/{thread_id}/trace", params={"runs": "0"})).status_code == 422


@pytest.mark.asyncio(loop_scope="package")
async def test_the_page_is_linked_from_the_thread_and_escapes_what_it_shows(served: Served) -> None:
    thread_id, _, _ = await asked(served, "Cay")
    await _acts(served, thread_id, "mcp:evil:<script>alert(1)</script>")
    async with at_home(served, "Cay") as browser:
        path = f"/threads/{thread_id}/trace"
        assert f'href="{path}"' in (await browser.get(f"/threads/{thread_id}")).text
        page = await browser.get(path)
        check_page(page, 200)
        assert "&lt;script&gt;alert(1)" in page.text
        assert "<script>alert" not in page.text
        assert "<b>bold" not in page.text
        assert "style=" not in page.text
        assert "waiting for a decision" in page.text
    async with at_home(served, "Dan") as browser:
        assert (await browser.get(path)).status_code == 404


@pytest.mark.asyncio(loop_scope="package")
async def test_the_page_names_the_trigger_that_began_a_run_also_when_it_is_gone(served: Served) -> None:
    thread_id = await finished(served, "Hello", "Cay", "The answer")
    began = sa.update(schema.runs).where(schema.runs.c.thread_id == thread_id).values(trigger_id="gone<1>")
    await store_of(served).write(lambda c: c.execute(began))
    async with at_home(served, "Cay") as browser:
        page = await browser.get(f"/threads/{thread_id}/trace")
        check_page(page, 200)
        assert 'by the trigger <a href="/triggers/gone&lt;1&gt;">gone&lt;1&gt;</a>' in page.text


@pytest.mark.parametrize(
    ("start", "end", "whole", "drawn_as"),
    [
        (0, 10, 10, (0, BAR)),
        (5, 10, 10, (500, 500)),
        (10, 10, 10, (994, 6)),
        (0, 0, 0, (0, BAR)),
        (-5, 3, 10, (0, 800)),
    ],
)
def test_a_bar_is_never_nothing_and_never_outside(
    start: int, end: int, whole: int, drawn_as: tuple[int, int]
) -> None:
    assert bar(*(timedelta(seconds=s) for s in (start, end, whole))) == drawn_as


def test_what_has_not_ended_reaches_to_the_present() -> None:
    step = {"at": NOW.isoformat(), "until": None}
    run = {"created_at": (NOW - timedelta(hours=1)).isoformat(), "ended_at": None, "steps": [step]}
    (shown,) = drawn(run, NOW + timedelta(hours=1))
    assert (shown["after"], shown["bar"]) == (3_600_000, (500, 500))
