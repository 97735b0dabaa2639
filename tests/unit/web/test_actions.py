"""Does a decision through the API bind, and does everybody see the same one?"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.fakes.runtime import Served, ledger_calls

pytestmark = pytest.mark.asyncio(loop_scope="package")


async def asked(served: Served, note: str, amount: float = 4) -> dict[str, Any]:
    """A pending action of the owner."""
    args = json.dumps({"amount": amount, "note": note})
    text = f"[[call bookkeeper submit_expense {args}]]"
    made = (await served.http.post("/api/threads", json={"text": text})).json()
    thread = await served.wait(made["thread_id"], "waiting")
    (action,) = thread["actions"]
    return dict(action)


def calls(served: Served, note: str) -> list[dict[str, Any]]:
    return [row["args"] for row in ledger_calls(served.home) if row["args"].get("note") == note]


async def test_an_action_has_the_shape_of_the_contract(served: Served) -> None:
    action = await asked(served, "shape")
    assert action["kind"] == "tool"
    assert action["tool"] == "mcp:ledger:submit_expense"
    assert action["args"] == {"amount": 4, "note": "shape"}
    assert action["args_schema"]["properties"]["amount"]["type"] == "number"
    assert action["allowed_decisions"] == ["approve", "edit", "reject"]
    assert (action["state"], action["may_decide"]) == ("pending", True)
    assert "decision" not in action
    assert (await served.http.get(f"/api/actions/{action['id']}")).json() == action
    listed = (await served.http.get("/api/actions", params={"state": "pending"})).json()
    assert action in listed["actions"]


async def test_an_approved_call_runs_once_and_a_late_word_learns_who_was_first(served: Served) -> None:
    action = await asked(served, "approved")
    path = f"/api/actions/{action['id']}/decision"
    body = {"decision": "approve", "digest": action["digest"]}
    decided = await served.http.post(path, json=body, headers={"X-Pizzabot-Client": "terminal"})
    assert decided.status_code == 200
    row = decided.json()
    assert (row["state"], row["decision"], row["decided_by"], row["decided_via"]) == (
        "approved",
        "approve",
        "Ada",
        "terminal",
    )
    assert row["final_args"] == row["args"]
    late = await served.http.post(path, json={"decision": "reject"})
    assert (late.status_code, late.json()["error"]["code"]) == (409, "already_decided")
    assert late.json()["action"] == row
    thread = await served.wait(action["thread_id"], "idle")
    assert "filed 4 EUR" in thread["messages"][-1]["text"]
    assert calls(served, "approved") == [action["args"]]


async def test_of_many_decisions_at_once_one_wins(served: Served) -> None:
    action = await asked(served, "race")
    path = f"/api/actions/{action['id']}/decision"
    words = ["approve", "reject"] * 5
    answers = await asyncio.gather(*(served.http.post(path, json={"decision": word}) for word in words))
    assert sorted(a.status_code for a in answers) == [200] + [409] * 9
    won = next(a.json() for a in answers if a.status_code == 200)
    assert {a.json()["action"]["decision"] for a in answers if a.status_code == 409} == {won["decision"]}
    await served.wait(action["thread_id"], "idle")
    assert len(calls(served, "race")) == (1 if won["decision"] == "approve" else 0)


async def test_an_edit_keeps_types_and_what_was_proposed(served: Served) -> None:
    action = await asked(served, "edited")
    path = f"/api/actions/{action['id']}/decision"
    args = {"amount": 4.5, "note": "edited", "tags": ["a"], "urgent": True}
    row = (await served.http.post(path, json={"decision": "edit", "args": args})).json()
    assert (row["state"], row["args"], row["final_args"]) == ("edited", action["args"], args)
    await served.wait(action["thread_id"], "idle")
    assert calls(served, "edited") == [args]


async def test_a_rejection_keeps_its_reason(served: Served) -> None:
    action = await asked(served, "rejected")
    path = f"/api/actions/{action['id']}/decision"
    row = (await served.http.post(path, json={"decision": "reject", "reason": "too dear"})).json()
    assert (row["state"], row["reason"]) == ("rejected", "too dear")
    thread = await served.wait(action["thread_id"], "idle")
    assert "too dear" in thread["messages"][-1]["text"]
    assert calls(served, "rejected") == []


async def test_what_cannot_be_decided_says_why_and_changes_nothing(served: Served) -> None:
    action = await asked(served, "refused")
    path = f"/api/actions/{action['id']}/decision"
    for body, status, code in (
        ({"decision": "edit", "args": {"amount": "4", "note": "refused"}}, 422, "invalid_args"),
        ({"decision": "edit"}, 422, "invalid_args"),
        ({"decision": "edit", "args": None}, 422, "invalid_args"),
        ({"decision": "approve", "args": {"amount": 1, "note": "x"}}, 422, "invalid_args"),
        ({"decision": "respond", "response": "hello"}, 422, "decision_not_allowed"),
        ({"decision": "perhaps"}, 422, "decision_not_allowed"),
        ({"decision": "approve", "digest": "0" * 64}, 409, "stale_digest"),
        ({"decision": "reject", "reason": "x" * 10_001}, 422, "text_too_long"),
        ({}, 422, "invalid_body"),
    ):
        response = await served.http.post(path, json=body)
        assert (response.status_code, response.json()["error"]["code"]) == (status, code), body
        assert response.json()["error"]["message"]
        if status == 409:
            assert response.json()["action"]["digest"] == action["digest"]
    row = (await served.http.get(f"/api/actions/{action['id']}")).json()
    assert row == action


async def test_wrong_arguments_are_named_by_their_paths(served: Served) -> None:
    action = await asked(served, "paths")
    args = {"amount": -1, "note": "x", "tags": [1], "currency": "GBP"}
    path = f"/api/actions/{action['id']}/decision"
    error = (await served.http.post(path, json={"decision": "edit", "args": args})).json()["error"]
    assert {e["path"] for e in error["errors"]} == {"/amount", "/tags/0", "/currency"}
    assert all(e["message"] for e in error["errors"])


async def test_only_expired_actions_are_reopened(served: Served) -> None:
    action = await asked(served, "reopen")
    response = await served.http.post(f"/api/actions/{action['id']}/reopen")
    assert (response.status_code, response.json()["error"]["code"]) == (409, "not_expired")
    assert response.json()["action"]["id"] == action["id"]


async def test_stopping_a_waiting_thread_withdraws_its_actions(served: Served) -> None:
    action = await asked(served, "withdrawn")
    await served.http.post(f"/api/threads/{action['thread_id']}/stop")
    row = (await served.http.get(f"/api/actions/{action['id']}")).json()
    assert row["state"] == "withdrawn"
    late = await served.http.post(f"/api/actions/{action['id']}/decision", json={"decision": "approve"})
    assert (late.status_code, late.json()["error"]["code"]) == (409, "already_decided")
    assert calls(served, "withdrawn") == []


async def test_a_member_neither_sees_nor_decides_what_is_not_theirs(served: Served) -> None:
    action = await asked(served, "foreign")
    cay, bob = await served.as_person("Cay"), await served.as_person("Bob")
    for other in (cay, bob):
        for path in (f"/api/actions/{action['id']}", f"/api/threads/{action['thread_id']}"):
            assert (await other.get(path)).status_code == 404
        decided = await other.post(f"/api/actions/{action['id']}/decision", json={"decision": "approve"})
        assert (decided.status_code, decided.json()["error"]["code"]) == (404, "not_found")
        assert action["id"] not in [a["id"] for a in (await other.get("/api/actions")).json()["actions"]]
    assert (await served.http.get(f"/api/actions/{action['id']}")).json()["state"] == "pending"


async def test_actions_page_backwards(served: Served) -> None:
    first = (await served.http.get("/api/actions", params={"limit": 2})).json()
    assert len(first["actions"]) == 2
    second = (
        await served.http.get("/api/actions", params={"limit": 2, "before": first["next_before"]})
    ).json()
    ids = [a["id"] for a in first["actions"] + second["actions"]]
    assert ids == sorted(ids, reverse=True)
    assert len(set(ids)) == len(ids)


async def test_an_action_is_put_off_until_a_time_in_words(served: Served) -> None:
    action = await asked(served, "put off")
    path = f"/api/actions/{action['id']}/snooze"
    snoozed = (await served.http.post(path, json={"until": "2h"})).json()
    assert [row["person"] for row in snoozed["snoozed"]] == ["Ada"]
    assert snoozed["state"] == "pending"
    wrong = await served.http.post(path, json={"until": "some day"})
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (422, "invalid_time")
    assert "write 2h" in wrong.json()["error"]["message"]
    assert (await served.http.post(path, json={})).status_code == 422
    stranger = await served.as_person("Dan")
    assert (await stranger.post(path, json={"until": "2h"})).status_code == 404
