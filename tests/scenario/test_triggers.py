"""Work that starts by itself: it fires when it is due, ends in its owner's inbox, and is seen through."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio

from tests.fakes.clock import FakeClock
from tests.fakes.model_server import ModelServer
from tests.fakes.runtime import Served, serving, write_home
from tests.scenario.acting import answers, ask_until, call, decide, pending, settled

pytestmark = pytest.mark.asyncio(loop_scope="module")
Json = dict[str, Any]


@pytest.fixture(scope="module")
def moving() -> FakeClock:
    return FakeClock()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(
    tmp_path_factory: pytest.TempPathFactory, model: ModelServer, moving: FakeClock
) -> AsyncIterator[Served]:
    home = write_home(tmp_path_factory.mktemp("triggers") / "home", model.url)
    async with serving(home, clock=moving) as running:
        await running.runtime.working
        yield running


async def make(served: Served, **fields: Any) -> Json:
    response = await served.http.post("/api/triggers", json=fields)
    assert response.status_code == 201, response.text
    made: Json = response.json()
    return made


async def firings(served: Served, trigger: Json) -> list[Json]:
    response = await served.http.get(f"/api/triggers/{trigger['id']}/occurrences")
    found: list[Json] = response.json()["occurrences"]
    return found


async def once(served: Served, trigger: Json, is_so: Callable[[list[Json]], bool]) -> list[Json]:
    """The firings of a trigger, as soon as it is so."""
    async with asyncio.timeout(30):
        while not is_so(found := await firings(served, trigger)):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    return found


def wake(served: Served) -> None:
    served.runtime.doors.triggers._changed()


async def test_a_schedule_fires_when_it_is_due_and_its_result_is_unread(
    served: Served, moving: FakeClock
) -> None:
    trigger = await make(
        served, name="Morning", cron="* * * * *", prompt="[[say good morning]]", timezone="UTC"
    )
    assert await firings(served, trigger) == []
    moving.advance(timedelta(minutes=1))
    wake(served)
    (fired,) = await once(served, trigger, lambda found: bool(found) and found[0]["state"] == "succeeded")
    thread = (await served.http.get(f"/api/threads/{fired['thread_id']}")).json()
    assert answers(thread) == ["good morning"]
    assert thread["title"] == "Morning"
    assert thread["unread"]
    await served.http.delete(f"/api/triggers/{trigger['id']}")


async def test_a_firing_waits_with_its_run_and_ends_with_it(served: Served, moving: FakeClock) -> None:
    trigger = await make(
        served, name="Spending", cron="@daily", prompt=call("submit_expense", amount=1, note="x")
    )
    fired = (await served.http.post("/api/triggers/Spending/run")).json()
    assert fired["reason"] == "manual"
    (waiting,) = await once(served, trigger, lambda found: found[0]["state"] == "waiting")
    thread = (await served.http.get(f"/api/threads/{waiting['thread_id']}")).json()
    await decide(served, pending(thread)[0], "approve")
    await once(served, trigger, lambda found: found[0]["state"] == "succeeded")


async def test_a_webhook_brings_data_beside_the_prompt(served: Served, model: ModelServer) -> None:
    trigger = await make(
        served, name="Alerts", kind="webhook", prompt="Look at {{ payload.alert }}. [[say seen]]"
    )
    response = await served.http.post(
        f"/hooks/{trigger['id']}",
        json={"alert": "disk\nfull"},
        headers={"Authorization": f"Bearer {trigger['secret']}"},
    )
    assert response.status_code == 202, response.text
    taken = response.json()
    await once(served, trigger, lambda found: found[0]["state"] == "succeeded")
    thread = (await served.http.get(f"/api/threads/{taken['thread_id']}")).json()
    asked = thread["messages"][0]["text"]
    assert asked.startswith("Look at disk full. [[say seen]]")
    assert '```json\n{\n  "alert": "disk\\nfull"\n}\n```' in asked


async def test_a_wish_for_work_again_and_again_becomes_a_trigger_once_a_person_says_so(
    served: Served,
) -> None:
    wish = call("create_trigger", "root", name="Weekly", prompt="Summarise the week", cron="0 9 * * mon")
    thread = await ask_until(served, f"Every monday at nine, please. {wish}", "waiting")
    (action,) = pending(thread)
    assert (action["tool"], action["args"]["cron"]) == ("builtin:create_trigger", "0 9 * * mon")
    assert [row["name"] for row in await rows(served) if row["name"] == "Weekly"] == []
    await decide(served, action, "edit", args=action["args"] | {"cron": "30 9 * * mon"})
    thread = await settled(served, thread["id"])
    assert "Mondays at 09:30" in answers(thread)[0]
    (made,) = [row for row in await rows(served) if row["name"] == "Weekly"]
    assert (made["cron"], made["owner"], made["source"]) == ("30 9 * * mon", "Ada", "conversation")


async def rows(served: Served) -> list[Json]:
    found: list[Json] = (await served.http.get("/api/triggers")).json()["triggers"]
    return found
