"""What may cross: decisions and rules, attempts of one thread, starts that fail."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from pizzabot.engine.workflows import DbosWorkflows
from pizzabot.inbox import runs
from tests.fakes.model_server import ModelServer
from tests.fakes.runtime import Served, serving, write_home
from tests.scenario.acting import answers, ask, ask_until, call, notices

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory, model: ModelServer) -> AsyncIterator[Served]:
    home = write_home(tmp_path_factory.mktemp("races") / "home", model.url)
    async with serving(home) as running:
        yield running


async def test_runs_claimed_together_survive_a_start_that_fails(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, failures = DbosWorkflows.start, [OSError("no"), OSError("not yet")]

    async def failing(self: DbosWorkflows, run_id: str, attempt: int) -> None:
        if failures:
            raise failures.pop()
        await start(self, run_id, attempt)

    await served.http.post("/api/stop")
    ids = [await ask(served, f"[[say together {n}]]") for n in range(3)]
    monkeypatch.setattr(DbosWorkflows, "start", failing)
    await served.http.post("/api/resume")
    for thread_id in ids:
        assert len(answers(await served.wait(thread_id, "idle"))) == 1
    assert failures == []


async def test_two_attempts_never_work_on_one_thread(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that takes long to end keeps its thread's next run waiting, not running beside it."""
    send = served.runtime.tools.call
    at_work = most = 0

    async def slow_to_end(*args: Any, **kwargs: Any) -> Any:
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        try:
            return await send(*args, **kwargs)
        except asyncio.CancelledError:
            await asyncio.sleep(3)
            raise
        finally:
            at_work -= 1

    monkeypatch.setattr(served.runtime.tools, "call", slow_to_end)
    thread_id = await ask(served, call("slow", seconds=30))
    while at_work == 0:  # noqa: ASYNC110 - the call is in the server, which tells nobody
        await asyncio.sleep(0.02)
    await served.http.post(f"/api/threads/{thread_id}/stop")
    again = {"text": call("lookup", query="after the stop")}
    await served.http.post(f"/api/threads/{thread_id}/messages", json=again)
    thread = await served.wait(thread_id, "idle")
    assert most == 1
    assert len(answers(thread)) == 1


async def test_a_stop_is_told_where_the_thread_lives(served: Served) -> None:
    thread = await ask_until(served, call("submit_expense", amount=1, note="told"), "waiting")
    await served.http.post(f"/api/threads/{thread['id']}/stop")
    thread = await served.wait(thread["id"], "stopped")
    assert "Stopped by Ada" in notices(thread)[0]
    assert thread["unread"] is False

    def told(connection: Any) -> list[str]:
        rows = connection.exec_driver_sql(
            "SELECT kind FROM outbox WHERE thread_id = ? AND message_seq IS NOT NULL", (thread["id"],)
        )
        return [row[0] for row in rows]

    assert await served.doors._database.read(told) == ["notice"]


@pytest.mark.parametrize("what", ["everything", "thread"])
async def test_a_run_that_is_stopped_between_its_claim_and_its_start_asks_no_model(
    served: Served, model: ModelServer, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    start = DbosWorkflows.start
    ada, words = served.doors.people.owner, f"between claim and start, {what}"
    thread_id, stopped = "", asyncio.Event()

    async def stopped_first(self: DbosWorkflows, run_id: str, attempt: int) -> None:
        if not stopped.is_set():
            stopped.set()
            if what == "everything":
                await served.doors.stop_everything(ada, "web")
            else:
                run = await served.doors._database.read(lambda c: runs.get(c, run_id))
                assert run is not None
                await served.doors.stop_thread(run.thread_id, ada, "web")
        await start(self, run_id, attempt)

    warm = await ask(served, "[[say warm]]")
    await served.wait(warm, "idle", seconds=120)  # loads what the first run of a process loads
    monkeypatch.setattr(DbosWorkflows, "start", stopped_first)
    thread_id = await ask(served, f"[[say {words}]]")
    await stopped.wait()
    assert (await served.wait(thread_id, "stopped"))["state"] == "stopped"
    await asyncio.sleep(1)  # nothing tells that nothing happens
    await served.http.post("/api/resume")
    assert not [asked for asked in model.asked if words in str(asked.messages)]
