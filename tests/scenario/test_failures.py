"""When the model, a tool server or the time fails: said in plain words, nothing lost, and retry goes on."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from pizzabot.agent import calls
from tests.fakes.model_server import ModelServer
from tests.fakes.patience import PATIENCE_SECONDS
from tests.fakes.runtime import BOOKKEEPER, Served, ledger_calls, serving, write_home
from tests.scenario.acting import answered, answers, ask, ask_until, call, decide, notices, pending, settled

pytestmark = pytest.mark.asyncio(loop_scope="module")

NEEDY = """---
name: needy
description: Needs what is not there.
tools: mcp:absent:anything
---
Try.
"""
SLOW_STARTER = """---
name: sleeper
description: Has tools that take long to come.
tools: "mcp:hung:*"
---
Wait.
"""
LIMITS = """
[limits]
run_seconds = 4
"""


@pytest.fixture(scope="module", autouse=True)
def _quick_retries() -> object:
    patched = pytest.MonkeyPatch()
    patched.setattr(calls, "FIRST_DELAY_SECONDS", 0.01)
    yield
    patched.undo()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory, model: ModelServer) -> AsyncIterator[Served]:
    home = write_home(
        tmp_path_factory.mktemp("failures") / "home",
        model.url,
        more_toml=LIMITS,
        skills={"bookkeeper": BOOKKEEPER, "needy": NEEDY, "sleeper": SLOW_STARTER},
    )
    servers = json.loads(home.mcp_json.read_text())
    servers["mcpServers"]["hung"] = {"command": "sleep", "args": ["600"]}
    home.mcp_json.write_text(json.dumps(servers))
    async with serving(home) as running:
        yield running


async def test_a_passing_failure_is_retried_inside_the_run(served: Served) -> None:
    thread = await ask_until(served, "[[fail 500 2]] twice", "idle", "failed")
    assert answers(thread) == ["recovered"]
    outcomes = [row["outcome"] for row in thread["activity"] if row["kind"] == "model"]
    assert outcomes == ["error", "error", "ok"]
    assert len(thread["runs"]) == 1


@pytest.mark.parametrize(
    ("status", "code", "cure"),
    [
        (401, "auth", "key"),
        (404, "not_found", "name"),
        (503, "unavailable", "later"),
    ],
)
async def test_a_failure_is_told_in_plain_words_with_its_kind_and_cure(
    served: Served, status: int, code: str, cure: str
) -> None:
    thread = await ask_until(served, f"[[fail {status} 99]] {code}", "failed")
    assert thread["runs"][0]["error"]["code"] == code
    assert cure in notices(thread)[0]
    assert "Traceback" not in notices(thread)[0]
    assert thread["unread"] is True


async def test_a_failed_thread_is_retried_from_where_it_got(served: Served, model: ModelServer) -> None:
    thread = await ask_until(served, "[[fail 401 1]] once", "failed")
    assert (await served.http.post(f"/api/threads/{thread['id']}/retry")).is_success
    thread = await served.wait(thread["id"], "idle")
    assert answers(thread) == ["recovered"]
    assert len(thread["runs"]) == 1
    assert "error" not in thread["runs"][0]


async def test_a_new_message_after_a_failure_is_answered(served: Served) -> None:
    thread = await ask_until(served, "[[fail 401 99]] hopeless", "failed")
    await served.http.post(f"/api/threads/{thread['id']}/messages", json={"text": "[[say better now]]"})
    thread = await served.wait(thread["id"], "idle")
    assert answers(thread) == ["better now"]


async def test_an_answer_cut_by_the_model_says_so(served: Served) -> None:
    thread = await ask_until(served, "[[cut]]", "idle")
    assert answers(thread)[0].startswith("This sentence has no")
    assert "was cut" in answers(thread)[0]


async def test_a_long_answer_arrives_whole(served: Served) -> None:
    thread = await ask_until(served, "[[long 60000]]", "idle")
    assert len(answers(thread)[0]) > 59_000


async def test_a_skill_without_its_server_is_named_to_the_model_with_the_reason(
    served: Served, model: ModelServer
) -> None:
    await ask_until(served, "[[say which skills?]] prompt", "idle")
    asked = next(a for a in reversed(model.asked) if "prompt" in str(a.messages[-1]))
    system = str(asked.messages[0])
    assert "needy" in system
    assert "there is no MCP server absent" in system
    assert "task" in asked.tools


async def test_a_server_that_never_answers_delays_only_who_needs_it(served: Served) -> None:
    states = (await served.http.get("/api/mcp")).json()["servers"]
    assert {row["name"]: row["state"] for row in states}["hung"] == "connecting"
    thread = await ask_until(served, "[[say quick]]", "idle")
    assert answers(thread) == ["quick"]
    skills = (await served.http.get("/api/skills")).json()["skills"]
    assert {row["id"]: row["state"] for row in skills}["sleeper"] == "loading"


async def test_a_read_that_outlasts_the_run_is_broken_off_and_asked_about(served: Served) -> None:
    thread = await ask_until(served, call("slow", seconds=60), "waiting")
    assert [action["args"]["limit"] for action in pending(thread)] == ["run_seconds"]
    await decide(served, pending(thread)[0], "reject")
    thread = await settled(served, thread["id"])
    assert thread["state"] == "idle"
    assert "limit" in answers(thread)[0]


async def test_a_model_that_outlasts_the_run_is_broken_off_and_goes_on_when_allowed(served: Served) -> None:
    thread = await ask_until(served, "[[sleep 6]] dozing", "waiting")
    assert pending(thread)[0]["args"]["limit"] == "run_seconds"
    await decide(served, pending(thread)[0], "approve")
    thread = await settled(served, thread["id"], "idle", "waiting")
    assert thread["runs"][0]["allowance"]["run_seconds"] == 8
    await served.http.post(f"/api/threads/{thread['id']}/stop")


async def test_waiting_for_a_person_is_not_counted_as_time(served: Served) -> None:
    import asyncio

    thread = await ask_until(served, call("submit_expense", amount=1, note="patience"), "waiting")
    await asyncio.sleep(4.2)
    await decide(served, pending(thread)[0], "approve")
    thread = await settled(served, thread["id"], "idle", "waiting")
    assert thread["state"] == "idle"
    assert len([row for row in ledger_calls(served.home) if row["args"].get("note") == "patience"]) == 1


async def test_the_title_comes_from_the_model_after_the_first_answer_and_a_person_wins(
    served: Served,
) -> None:
    made = await served.http.post("/api/threads", json={"text": "[[say a thing]] about cheese"})
    thread_id = made.json()["thread_id"]
    thread = await answered(served, thread_id, 1)
    import asyncio

    async with asyncio.timeout(PATIENCE_SECONDS):
        while thread["title"] != "A short title":
            await asyncio.sleep(0.02)
            thread = (await served.http.get(f"/api/threads/{thread_id}")).json()
    await served.http.patch(f"/api/threads/{thread_id}", json={"title": "Cheese"})
    await served.http.post(f"/api/threads/{thread_id}/messages", json={"text": "[[say more]]"})
    await answered(served, thread_id, 2)
    assert (await served.http.get(f"/api/threads/{thread_id}")).json()["title"] == "Cheese"


async def test_a_fork_goes_on_from_the_state_of_its_message(served: Served, model: ModelServer) -> None:
    thread_id = await ask(served, "[[say first answer]]")
    thread = await answered(served, thread_id, 1)
    await served.http.post(f"/api/threads/{thread_id}/messages", json={"text": "[[say second answer]]"})
    await answered(served, thread_id, 2)
    body = {"message_id": thread["messages"][-1]["id"]}
    forked = await served.http.post(f"/api/threads/{thread_id}/fork", json=body)
    assert forked.status_code == 201
    fork_id = forked.json()["thread_id"]
    await served.http.post(f"/api/threads/{fork_id}/messages", json={"text": "[[say another way]]"})
    fork = await answered(served, fork_id, 2)
    assert answers(fork) == ["first answer", "another way"]
    last = next(a for a in reversed(model.asked) if "another way" in str(a.messages[-1]))
    assert "first answer" in str(last.messages)
    assert "second answer" not in str(last.messages)


async def test_a_deleted_thread_leaves_nothing_but_its_line_in_the_audit(served: Served) -> None:
    import base64

    attachment = {
        "filename": "secret.txt",
        "media_type": "text/plain",
        "data": base64.b64encode(b"cheese").decode(),
    }
    made = await served.http.post(
        "/api/threads", json={"text": "[[say kept]] deleteme", "title": "t", "attachments": [attachment]}
    )
    thread_id = made.json()["thread_id"]
    await answered(served, thread_id, 1)
    files = set(served.home.attachments.iterdir())
    assert len(files) == 1
    assert (await served.http.delete(f"/api/threads/{thread_id}")).status_code in (200, 204)
    assert (await served.http.get(f"/api/threads/{thread_id}")).status_code == 404
    assert list(served.home.attachments.iterdir()) == []
    found = await served.http.get("/api/threads", params={"q": "deleteme"})
    assert found.json()["threads"] == []
    import sqlite3

    with sqlite3.connect(served.home.checkpoints) as checkpoints:
        left = checkpoints.execute(
            "SELECT count(*) FROM checkpoints WHERE thread_id = ?", [thread_id]
        ).fetchone()
    checkpoints.close()
    assert left == (0,)
    lines = (await served.http.get("/api/audit", params={"limit": 20})).json()["lines"]
    assert "thread.deleted" in [line["event"] for line in lines if line["subject"] == thread_id]


async def test_text_files_reach_the_agent_as_files_and_are_named_in_the_message(
    served: Served, model: ModelServer
) -> None:
    import base64

    attachment = {
        "filename": "../../notes.txt",
        "media_type": "text/plain",
        "data": base64.b64encode("Käse".encode()).decode(),
    }
    made = await served.http.post(
        "/api/threads", json={"text": "[[say read]] attached", "title": "t", "attachments": [attachment]}
    )
    await answered(served, made.json()["thread_id"], 1)
    asked = next(a for a in reversed(model.asked) if "attached" in str(a.messages[-1]))
    assert "/notes.txt" in str(asked.messages[-1])
    assert ".." not in str(asked.messages[-1]).partition("readable at")[2].partition(":")[0]
