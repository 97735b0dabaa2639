"""What once broke a promise, each under the promise that it broke."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from pizzabot.doors import Doors
from pizzabot.engine import engine as engine_module
from pizzabot.engine.workflows import DbosWorkflows
from pizzabot.home import Home
from pizzabot.inbox import runs
from pizzabot.tools.catalogue import ToolCatalogue
from tests.fakes import model_server
from tests.fakes.model_server import ModelServer, Reply
from tests.fakes.patience import PATIENCE_SECONDS
from tests.fakes.runtime import LEDGER_SERVER, Served, ledger_calls, serving, write_home
from tests.scenario.acting import (
    ENDED,
    answered,
    answers,
    ask,
    ask_until,
    call,
    connected,
    decide,
    pending,
    settled,
    until,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")
FULL = sa.exc.OperationalError("INSERT", {}, Exception("database or disk is full"))
DIE = (
    'tool("pay_and_die", "Pay, then die before saying so.", {"note": {"type": "string"}}, ["note"], **MONEY),'
)
RULE = '\n[[approvals.rules]]\ntool = "mcp:ledger:submit_expense"\ndecisions = [{0}]\napprovers = ["{1}"]\n'


def own_server(home: Home, old: str = "", new: str = "") -> None:
    """Let the home use its own copy of the ledger server, with some text replaced."""
    path = home.path / "server.py"
    path.write_text(LEDGER_SERVER.read_text().replace(old, new) if old else LEDGER_SERVER.read_text())
    servers = json.loads(home.mcp_json.read_text())
    servers["mcpServers"]["ledger"]["args"] = [str(path)]
    home.mcp_json.write_text(json.dumps(servers))


async def asked_for(served: Served, thread_id: str, kind: str) -> dict[str, Any]:
    """The pending action of that kind, once its run waits."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            thread = (await served.http.get(f"/api/threads/{thread_id}")).json()
            found = [action for action in pending(thread) if action["kind"] == kind]
            if found and thread["state"] == "waiting":
                return found[0]
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("change", ["schema", "tool", "skill"])
async def test_promise_6_what_was_said_of_a_lost_call_reaches_the_agent(
    tmp_path: Path, model: ModelServer, change: str
) -> None:
    home = write_home(tmp_path / "home", model.url)
    own_server(home)
    async with serving(home) as served:
        await connected(served)
        thread = await ask_until(served, call("pay_and_die", note="x"), "waiting")
        await decide(served, pending(thread)[0], "approve")
        await asked_for(served, thread["id"], "uncertain")
    if change == "schema":
        own_server(home, DIE, DIE.replace('["note"]', '["note", "account"]'))
    elif change == "tool":
        own_server(home, DIE, "")
    else:
        shutil.rmtree(home.skills / "bookkeeper")
    async with serving(home) as served:
        await connected(served)
        await decide(served, await asked_for(served, thread["id"], "uncertain"), "done")
        thread = await settled(served, thread["id"])
        assert thread["state"] == "failed" or "the call was carried out" in answers(thread)[0]


async def test_promise_6_a_refused_limit_does_not_make_a_lost_call_unmade(
    tmp_path: Path, model: ModelServer
) -> None:
    home = write_home(tmp_path / "home", model.url, more_toml="\n[limits]\ntool_calls = 1\n")
    async with serving(home) as served:
        await connected(served)
        thread = await ask_until(served, call("pay_and_die", note="x"), "waiting")
        await decide(served, pending(thread)[0], "approve")
        await decide(served, await asked_for(served, thread["id"], "uncertain"), "retry")
        await decide(served, await asked_for(served, thread["id"], "limit"), "reject")
        thread = await served.wait(thread["id"], *ENDED)
        assert len(ledger_calls(home, "start")) == 1
        assert "The call was not made" not in answers(thread)[-1]


@pytest.mark.parametrize("how", ["stopped", "failed"])
async def test_promise_6_a_new_message_does_not_hide_from_the_agent_what_it_paid(
    tmp_path: Path, model: ModelServer, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    home = write_home(tmp_path / "home", model.url)
    real = model_server.plan

    def plan(messages: Any, tools: Any, failed: Any) -> Reply:
        said = real(messages, tools, failed)
        if not said.text.startswith("Result: filed"):
            return said
        return Reply(status=401) if how == "failed" else Reply("late", delay_seconds=5)

    monkeypatch.setattr(model_server, "plan", plan)
    async with serving(home) as served:
        await connected(served)
        thread = await ask_until(served, call("submit_expense", amount=1, note="paid"), "waiting")
        await decide(served, pending(thread)[0], "approve")
        await until(lambda: ledger_calls(home))
        if how == "stopped":
            await asyncio.sleep(0.5)
            await served.http.post(f"/api/threads/{thread['id']}/stop", json={})
        await served.wait(thread["id"], how)
        before = len(model.asked)
        await served.http.post(f"/api/threads/{thread['id']}/messages", json={"text": "[[say on]]"})
        await answered(served, thread["id"], 1)
        assert "filed 1 EUR for paid" in json.dumps([asked.messages for asked in model.asked[before:]])


@pytest.mark.parametrize("late", ["the others", "the release"])
async def test_promise_1_a_start_that_fails_strands_nothing_in_running(
    tmp_path: Path, model: ModelServer, monkeypatch: pytest.MonkeyPatch, late: str
) -> None:
    home = write_home(tmp_path / "home", model.url)
    async with serving(home) as served:
        await ask_until(served, "[[say warm]]", "idle")
        await served.http.post("/api/stop", json={})
        ids = [await ask(served, f"[[say {number}]]") for number in range(4)]
        starts, releases = [FULL], [FULL] if late == "the release" else []
        real_start, real_release = DbosWorkflows.start, runs.release

        async def start(self: DbosWorkflows, run_id: str, attempt: int) -> None:
            if starts:
                raise starts.pop()
            await real_start(self, run_id, attempt)

        def release(connection: sa.Connection, run: runs.Run) -> None:
            if releases:
                raise releases.pop()
            real_release(connection, run)

        monkeypatch.setattr(DbosWorkflows, "start", start)
        monkeypatch.setattr(runs, "release", release)
        await served.http.post("/api/resume", json={})
        for thread_id in ids:
            await served.wait(thread_id, "idle")


async def test_promise_14_an_attempt_that_ends_late_leaves_its_successor_stoppable(
    tmp_path: Path, model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_module, "_BREAK_OFF_SECONDS", 0.2)
    real = ToolCatalogue.call

    async def slow_to_cancel(self: ToolCatalogue, name: str, args: dict[str, Any]) -> Any:
        try:
            return await real(self, name, args)
        except asyncio.CancelledError:
            await asyncio.sleep(0.8)
            raise

    monkeypatch.setattr(ToolCatalogue, "call", slow_to_cancel)
    home = write_home(tmp_path / "home", model.url)
    async with serving(home) as served:
        await connected(served)
        thread_id = await ask(served, call("slow", seconds=20))
        await until(lambda: ledger_calls(home, "start"))
        await served.http.post(f"/api/threads/{thread_id}/stop", json={})
        await served.http.post(f"/api/threads/{thread_id}/messages", json={"text": "[[sleep 4]]"})
        await served.wait(thread_id, "running")
        await asyncio.sleep(1.2)
        assert (await served.http.get(f"/api/threads/{thread_id}")).json()["state"] == "running"
        assert served.doors._engine.context_of(thread_id) is not None


async def test_promise_5_a_rule_that_no_longer_allows_approval_counts(
    tmp_path: Path, model: ModelServer
) -> None:
    loose, tight = RULE.format('"approve", "reject"', "Ada"), RULE.format('"reject"', "Ada")
    home = write_home(tmp_path / "home", model.url, more_toml=loose)
    async with serving(home) as served:
        await connected(served)
        thread = await ask_until(served, call("submit_expense", amount=1, note="n"), "waiting")
    home.toml.write_text(home.toml.read_text().replace(loose, tight))
    async with serving(home) as served:
        await connected(served)
        await decide(served, pending(thread)[0], "approve")
        await served.wait(thread["id"], "idle", "failed", "waiting")
        await asyncio.sleep(1)
        assert ledger_calls(home) == []


async def test_promise_7_an_action_whose_approver_left_can_still_be_decided(
    tmp_path: Path, model: ModelServer
) -> None:
    before, after = RULE.format('"approve"', "Bob"), RULE.format('"approve"', "Ada")
    home = write_home(tmp_path / "home", model.url, more_toml=before)
    async with serving(home) as served:
        await connected(served)
        thread = await ask_until(served, call("submit_expense", amount=1, note="n"), "waiting")
    bob = '[[people]]\nname = "Bob"\nrole = "approver"\n'
    home.toml.write_text(home.toml.read_text().replace(before, after).replace(bob, ""))
    async with serving(home) as served:
        await connected(served)
        thread = await served.wait(thread["id"], "waiting")
        await decide(served, pending(thread)[0], "approve")


async def test_promise_16_a_key_in_the_providers_words_is_blotted_out(
    tmp_path: Path, model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "plainkey-0123456789"
    refusal = (401, {"error": {"message": f"Incorrect API key provided: {key}", "type": "x"}})
    monkeypatch.setattr(ModelServer, "reply", lambda _self, _body: refusal)
    home = write_home(tmp_path / "home", model.url)
    home.toml.write_text(home.toml.read_text().replace("not-a-real-key", "${MODEL_KEY}"))
    async with serving(home, environ={"MODEL_KEY": key}) as served:
        thread = await ask_until(served, "hello", "failed")
    found = [p.name for p in home.path.rglob("*") if p.is_file() and key.encode() in p.read_bytes()]
    assert found == []
    assert key not in json.dumps(thread)


async def test_a_run_whose_answer_postgres_cannot_hold_ends(
    tmp_path: Path, model: ModelServer, monkeypatch: pytest.MonkeyPatch, empty_postgres: str
) -> None:
    monkeypatch.setattr(model_server, "plan", lambda *_: Reply("a\x00b"))
    home = write_home(tmp_path / "home", model.url, more_toml=f'\n[database]\nurl = "{empty_postgres}"\n')
    async with serving(home) as served:
        await served.wait(await ask(served, "hello"), "idle", "failed", seconds=8)


async def test_half_a_surrogate_pair_does_not_poison_the_thread(
    tmp_path: Path, model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = write_home(tmp_path / "home", model.url)
    async with serving(home) as served:
        await connected(served)
        thread = await ask_until(served, '[[call bookkeeper lookup {"query": "\\ud83d"}]]', *ENDED)
        await served.http.post(f"/api/threads/{thread['id']}/messages", json={"text": "[[say well]]"})
        await asyncio.sleep(1)
        thread = await served.wait(thread["id"], *ENDED)
        assert thread["runs"][0]["state"] == "done"
        assert answers(thread)[-1] == "well"


async def test_a_fork_that_is_interrupted_leaves_no_fork_without_its_memory(
    tmp_path: Path, model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = write_home(tmp_path / "home", model.url)

    async def dies(*_: Any) -> None:
        raise RuntimeError("killed here")

    async with serving(home) as served:
        thread = await ask_until(served, "[[say remember me]]", "idle")
        monkeypatch.setattr(Doors, "_copy_state", dies)
        await served.http.post(
            f"/api/threads/{thread['id']}/fork", json={"message_id": thread["messages"][-1]["id"]}
        )
        rows = (await served.http.get("/api/threads")).json()["threads"]
        for row in rows:
            if row["id"] == thread["id"]:
                continue
            before = len(model.asked)
            await served.http.post(f"/api/threads/{row['id']}/messages", json={"text": "[[say on]]"})
            await answered(served, row["id"], 2)
            assert "remember me" in json.dumps([asked.messages for asked in model.asked[before:]])


async def test_a_full_disk_is_said_clearly(
    tmp_path: Path, model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = write_home(tmp_path / "home", model.url)
    async with serving(home) as served:

        async def full(_work: Any) -> Any:
            raise FULL

        monkeypatch.setattr(served.doors._database, "write", full)
        response = await served.http.post("/api/threads", json={"text": "hello"})
        monkeypatch.undo()
        assert response.status_code == 503
        assert "disk" in response.text
