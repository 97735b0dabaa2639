"""A stored decision binds, whatever the rules, the skill or the tool say by the time it is carried out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.fakes.model_server import ModelServer
from tests.fakes.runtime import ledger_calls, serving, write_home
from tests.scenario.acting import answers, ask_until, call, decide, pending, until

# One event loop for all: the workflow engine is a singleton and keeps to the loop that it met first.
pytestmark = pytest.mark.asyncio(loop_scope="module")


def ran(home: object, note: str) -> list[object]:
    return [row["args"] for row in ledger_calls(home) if row["args"].get("note") == note]  # type: ignore[arg-type]


async def test_decisions_bind_when_the_gate_has_gone_before_they_are_carried_out(
    tmp_path: Path, model: ModelServer
) -> None:
    home = write_home(tmp_path / "home", model.url)
    async with serving(home) as served:
        rejected = await ask_until(served, call("submit_expense", amount=1, note="rejected"), "waiting")
        edited = await ask_until(served, call("submit_expense", amount=42, note="edited"), "waiting")
        await served.http.post("/api/stop")
        await decide(served, pending(rejected)[0], "reject", reason="no")
        args = {"amount": 1, "note": "edited"}
        await decide(served, pending(edited)[0], "edit", args=args)
    home.toml.write_text(home.toml.read_text() + '\n[approvals]\ndefault = "allow"\n')
    async with serving(home) as served:
        await served.http.post("/api/resume")
        first = await served.wait(rejected["id"], "idle", "failed")
        second = await served.wait(edited["id"], "idle", "failed")
        assert (first["state"], second["state"]) == ("idle", "idle")
        assert "rejected this call" in answers(first)[0]
    assert ran(home, "rejected") == []
    assert ran(home, "edited") == [args]


async def test_an_approved_call_whose_server_has_gone_waits_for_it_and_is_made_once(
    tmp_path: Path, model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = write_home(tmp_path / "home", model.url)
    servers = home.mcp_json.read_text()
    async with serving(home) as served:
        thread = await ask_until(served, call("submit_expense", amount=1, note="patient"), "waiting")
        await served.http.post("/api/stop")
        await decide(served, pending(thread)[0], "approve")
    home.mcp_json.write_text(json.dumps({"mcpServers": {}}))
    monkeypatch.setattr("pizzabot.agent.graph.LOADING_PATIENCE_SECONDS", 0.3)
    async with serving(home) as served:
        await served.http.post("/api/resume")
        failed = await served.wait(thread["id"], "failed", "idle")
        assert failed["runs"][0]["error"]["code"] == "skill_unavailable"
    monkeypatch.undo()
    home.mcp_json.write_text(servers)
    async with serving(home) as served:
        await served.http.post(f"/api/threads/{thread['id']}/retry")
        await served.wait(thread["id"], "idle")
        await until(lambda: ran(home, "patient"))
    assert len(ran(home, "patient")) == 1


async def test_an_approver_who_is_no_longer_named_does_not_let_a_call_run(
    tmp_path: Path, model: ModelServer
) -> None:
    home = write_home(tmp_path / "home", model.url)
    plain = home.toml.read_text()
    async with serving(home) as served:
        thread = await ask_until(served, call("submit_expense", amount=1, note="by Ada"), "waiting")
        await served.http.post("/api/stop")
        await decide(served, pending(thread)[0], "approve")
    rule = '\n[[approvals.rules]]\ntool = "mcp:ledger:submit_expense"\napprovers = ["bob"]\n'
    home.toml.write_text(plain + rule)
    async with serving(home) as served:
        await served.http.post("/api/resume")
        thread = await served.wait(thread["id"], "waiting")
        assert ran(home, "by Ada") == []
        assert [action["state"] for action in thread["actions"]] == ["withdrawn", "pending"]
        assert pending(thread)[0]["approvers"] == ["Bob"]
        bob = await served.as_person("Bob")
        shown = (await bob.get("/api/actions", params={"state": "pending"})).json()["actions"]
        assert [action["id"] for action in shown] == [pending(thread)[0]["id"]]
        path = f"/api/threads/{thread['id']}"
        assert (await bob.patch(path, json={"title": "mine"})).status_code == 403
        assert (await bob.post(f"{path}/messages", json={"text": "do more"})).status_code == 403
        message = thread["messages"][0]["id"]
        assert (await bob.post(f"{path}/fork", json={"message_id": message})).status_code == 403
