"""Every run is bounded, asks at its bound, and stops when a person says so."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.fakes.model_server import ModelServer
from tests.fakes.runtime import Served, ledger_calls, serving, write_home
from tests.scenario.acting import answers, ask, ask_until, call, decide, notices, pending, settled, until

pytestmark = pytest.mark.asyncio(loop_scope="module")

LIMITS = """
[limits]
model_calls = 6
tool_calls = 4
worker_tool_calls = 3
run_seconds = 20
parallel_runs = 4
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory, model: ModelServer) -> AsyncIterator[Served]:
    home = write_home(tmp_path_factory.mktemp("bounds") / "home", model.url, more_toml=LIMITS)
    async with serving(home) as running:
        yield running


def asked_about(model: ModelServer, word: str) -> int:
    """How many requests the model got in conversations with this word."""
    return sum(word in str(asked.messages) for asked in model.asked)


async def test_a_run_pauses_at_its_model_calls_and_goes_on_when_allowed(
    served: Served, model: ModelServer
) -> None:
    words = call("lookup", query="forever").replace("[[call", "[[loop")
    thread = await ask_until(served, words, "waiting")
    assert asked_about(model, "forever") <= 6
    limit = pending(thread)[0]
    assert (limit["kind"], limit["allowed_decisions"]) == ("limit", ["approve", "reject"])
    before = thread["runs"][0]["used"]
    await decide(served, limit, "approve")
    await until(lambda: asked_about(model, "forever") > before["model_calls"])
    thread = await served.wait(thread["id"], "waiting")
    assert thread["runs"][0]["used"]["model_calls"] <= 12
    await decide(served, pending(thread)[0], "reject")
    thread = await settled(served, thread["id"])
    assert thread["state"] == "idle"
    assert "ended at its limit" in answers(thread)[0]
    assert "reverof" in answers(thread)[0]


async def test_a_worker_out_of_tool_calls_answers_once_more_without_tools(
    served: Served, model: ModelServer
) -> None:
    words = call("lookup", query="scarce").replace("[[call", "[[loop")
    thread = await ask_until(served, words, "waiting")
    offered = [set(asked.tools) for asked in model.asked if "scarce" in str(asked.messages)]
    assert any("lookup" not in tools and "task" not in tools for tools in offered)
    used = thread["runs"][0]["used"]
    assert used["tool_calls"] <= 4
    await served.http.post(f"/api/threads/{thread['id']}/stop")


async def test_parallel_calls_cannot_pass_a_limit_together(served: Served) -> None:
    calls = json.dumps([["lookup", {"query": f"together {i}"}] for i in range(9)])
    thread = await ask_until(served, f"[[calls bookkeeper {calls}]]", "waiting")
    made = [row for row in ledger_calls(served.home) if "together" in str(row["args"])]
    assert len(made) == 4
    assert [action["args"]["limit"] for action in pending(thread)] == ["tool_calls"]
    await served.http.post(f"/api/threads/{thread['id']}/stop")


async def test_stop_breaks_off_a_model_call_and_says_so(served: Served) -> None:
    thread_id = await ask(served, "[[sleep 30]] nap")
    await served.wait(thread_id, "running")
    began = time.monotonic()
    stopped = await served.http.post(f"/api/threads/{thread_id}/stop")
    assert stopped.status_code == 200
    thread = await served.wait(thread_id, "stopped")
    assert time.monotonic() - began < 10
    assert "Stopped by Ada" in notices(thread)[0]
    assert answers(thread) == []


async def test_stop_breaks_off_a_tool_call_and_the_server_learns_of_it(served: Served) -> None:
    thread_id = await ask(served, call("slow", seconds=30))
    await until(lambda: [row for row in ledger_calls(served.home, "start") if row["tool"] == "slow"])
    await served.http.post(f"/api/threads/{thread_id}/stop")
    await served.wait(thread_id, "stopped")
    assert [row for row in ledger_calls(served.home) if row["tool"] == "slow"] == []
    thread = await ask_until(served, call("lookup", query="still there"), "idle", "waiting")
    assert thread["state"] == "idle"


async def test_stopping_a_waiting_thread_withdraws_what_it_asked(served: Served) -> None:
    thread = await ask_until(served, call("submit_expense", amount=1, note="withdrawn"), "waiting")
    action = pending(thread)[0]
    await served.http.post(f"/api/threads/{thread['id']}/stop")
    thread = await served.wait(thread["id"], "stopped")
    assert [a["state"] for a in thread["actions"]] == ["withdrawn"]
    refused = await decide(served, action, "approve", status=409)
    assert refused["action"]["state"] == "withdrawn"
    assert [row for row in ledger_calls(served.home) if row["args"].get("note") == "withdrawn"] == []


async def test_a_stopped_thread_asks_anew_when_it_is_retried(served: Served) -> None:
    thread = await ask_until(served, call("submit_expense", amount=1, note="retried"), "waiting")
    await served.http.post(f"/api/threads/{thread['id']}/stop")
    await served.wait(thread["id"], "stopped")
    assert (await served.http.post(f"/api/threads/{thread['id']}/retry")).is_success
    thread = await served.wait(thread["id"], "waiting")
    assert [a["state"] for a in thread["actions"]] == ["withdrawn", "pending"]
    await decide(served, pending(thread)[0], "approve")
    await settled(served, thread["id"])
    assert len([row for row in ledger_calls(served.home) if row["args"].get("note") == "retried"]) == 1


async def test_a_new_message_after_a_stop_starts_anew_and_repeats_nothing(served: Served) -> None:
    thread = await ask_until(served, call("submit_expense", amount=1, note="abandoned"), "waiting")
    await served.http.post(f"/api/threads/{thread['id']}/stop")
    await served.wait(thread["id"], "stopped")
    await served.http.post(f"/api/threads/{thread['id']}/messages", json={"text": "[[say something else]]"})
    thread = await served.wait(thread["id"], "idle")
    assert answers(thread) == ["something else"]
    assert [row for row in ledger_calls(served.home) if row["args"].get("note") == "abandoned"] == []


async def test_stop_everything_stops_what_runs_and_holds_what_arrives(served: Served) -> None:
    busy = await ask(served, "[[sleep 30]] busy")
    waiting = await ask_until(served, call("submit_expense", amount=1, note="patient"), "waiting")
    await served.wait(busy, "running")
    assert (await served.http.post("/api/stop")).status_code == 200
    await served.wait(busy, "stopped")
    assert (await served.http.get("/api/status")).json()["stopped"] is True
    later = await ask(served, "[[say at last]]")
    await decide(served, pending(waiting)[0], "approve")
    await asyncio.sleep(0.3)
    assert (await served.http.get(f"/api/threads/{later}")).json()["state"] == "queued"
    assert [row for row in ledger_calls(served.home) if row["args"].get("note") == "patient"] == []
    assert (await served.http.post("/api/resume")).status_code == 200
    assert answers(await served.wait(later, "idle")) == ["at last"]
    await settled(served, waiting["id"])
    assert len([row for row in ledger_calls(served.home) if row["args"].get("note") == "patient"]) == 1


async def test_a_member_may_not_stop_everything(served: Served) -> None:
    cay = await served.as_person("Cay")
    assert (await cay.post("/api/stop")).status_code == 403
    assert (await served.http.get("/api/status")).json()["stopped"] is False


async def test_no_more_runs_than_allowed_are_at_work_at_once(served: Served) -> None:
    ids = [await ask(served, f"[[sleep 0.4]] {i}") for i in range(8)]
    most = 0
    while True:
        page = (await served.http.get("/api/threads", params={"limit": 20})).json()["threads"]
        states = {row["id"]: row["state"] for row in page if row["id"] in ids}
        most = max(most, sum(state == "running" for state in states.values()))
        if all(state == "idle" for state in states.values()):
            break
        await asyncio.sleep(0.02)
    assert 1 < most <= 4
