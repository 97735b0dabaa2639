"""A tool that changes something waits for a person, and does exactly what that person saw."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.fakes.model_server import ModelServer
from tests.fakes.runtime import BOOKKEEPER, Served, ledger_calls, serving, write_home
from tests.scenario.acting import (
    Json,
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

TREASURER = """---
name: treasurer
description: Pays invoices.
tools: mcp:ledger:pay_invoice
interruptOn:
  mcp:ledger:pay_invoice: {allowedDecisions: [approve, reject, respond]}
---
Pay.
"""
RULES = """
[[approvals.rules]]
tool = "mcp:ledger:send_email"
approvers = ["Bob"]
decisions = ["approve", "reject"]

[[approvals.rules]]
tool = "mcp:ledger:scale_service"
ask = false
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory, model: ModelServer) -> AsyncIterator[Served]:
    home = write_home(
        tmp_path_factory.mktemp("approvals") / "home",
        model.url,
        more_toml=RULES,
        skills={"bookkeeper": BOOKKEEPER, "treasurer": TREASURER},
    )
    async with serving(home) as running:
        yield running


def noted(served: Served, note: str, event: str = "start") -> list[object]:
    """The calls with this note that reached the ledger server."""
    return [row["args"] for row in ledger_calls(served.home, event) if row["args"].get("note") == note]


async def test_nothing_runs_before_a_decision(served: Served) -> None:
    thread = await ask_until(served, call("submit_expense", amount=1, note="before"), "waiting")
    await asyncio.sleep(0.2)
    assert noted(served, "before") == []
    assert thread["action_count"] == 1
    action = pending(thread)[0]
    assert action["tool"] == "mcp:ledger:submit_expense"
    assert action["args"] == {"amount": 1, "note": "before"}
    assert action["args_schema"]["required"] == ["amount", "note"]
    assert action["skill"] == "bookkeeper"


async def test_an_approved_call_runs_once_with_what_was_shown(served: Served) -> None:
    thread = await ask_until(served, call("submit_expense", amount=2.5, note="approved"), "waiting")
    action = await decide(served, pending(thread)[0], "approve")
    assert (action["state"], action["decided_by"], action["decided_via"]) == ("approved", "Ada", "api")
    thread = await settled(served, thread["id"])
    assert noted(served, "approved") == [{"amount": 2.5, "note": "approved"}]
    assert thread["action_count"] == 0
    assert len(answers(thread)) == 1
    assert "2.5" in answers(thread)[0]


async def test_an_edited_call_runs_with_the_edited_values_and_their_types(served: Served) -> None:
    thread = await ask_until(served, call("submit_expense", amount=3, note="draft"), "waiting")
    args = {"amount": 3.75, "note": "edited", "currency": "USD", "tags": ["a", "b"], "urgent": True}
    action = await decide(served, pending(thread)[0], "edit", args=args)
    await settled(served, thread["id"])
    assert noted(served, "edited") == [args]
    assert noted(served, "draft") == []
    assert action["args"] == {"amount": 3, "note": "draft"}
    assert action["final_args"] == args


@pytest.mark.parametrize(
    ("args", "path"),
    [
        ({"amount": "3.75", "note": "typed"}, "/amount"),
        ({"amount": 3, "note": "typed", "currency": "GBP"}, "/currency"),
        ({"amount": -1, "note": "typed"}, "/amount"),
        ({"amount": 3}, ""),
    ],
)
async def test_an_edit_that_breaks_the_schema_is_refused_and_changes_nothing(
    served: Served, args: dict[str, object], path: str
) -> None:
    thread = await ask_until(served, call("submit_expense", amount=3, note="typed"), "waiting")
    refused = await decide(served, pending(thread)[0], "edit", status=422, args=args)
    assert refused["error"]["code"] == "invalid_args"
    assert path in [error["path"] for error in refused["error"]["errors"]]
    thread = await served.wait(thread["id"], "waiting")
    assert len(pending(thread)) == 1


async def test_a_rejection_and_its_reason_reach_the_agent_and_nothing_runs(served: Served) -> None:
    thread = await ask_until(served, call("submit_expense", amount=9, note="rejected"), "waiting")
    await decide(served, pending(thread)[0], "reject", reason="too dear, ask Tom")
    thread = await settled(served, thread["id"])
    assert noted(served, "rejected") == []
    assert "too dear, ask Tom" in answers(thread)[0]


async def test_a_response_reaches_the_agent_instead_of_the_tool(served: Served) -> None:
    words = call("pay_invoice", skill="treasurer", vendor="V", amount=4, currency="EUR", note="respond")
    thread = await ask_until(served, words, "waiting")
    await decide(served, pending(thread)[0], "respond", response="It was paid in cash.")
    thread = await settled(served, thread["id"])
    assert noted(served, "respond") == []
    assert "It was paid in cash." in answers(thread)[0]


async def test_only_the_allowed_decisions_are_taken(served: Served) -> None:
    words = call("pay_invoice", skill="treasurer", vendor="V", amount=4, currency="EUR")
    thread = await ask_until(served, words, "waiting")
    action = pending(thread)[0]
    assert action["allowed_decisions"] == ["approve", "reject", "respond"]
    args = {"vendor": "V", "amount": 5, "currency": "EUR"}
    refused = await decide(served, action, "edit", status=422, args=args)
    assert refused["error"]["code"] == "decision_not_allowed"


async def test_the_second_decision_is_told_who_was_first(served: Served) -> None:
    thread = await ask_until(served, call("submit_expense", amount=1, note="late"), "waiting")
    action = pending(thread)[0]
    await decide(served, action, "reject", reason="no")
    refused = await decide(served, action, "approve", status=409)
    assert refused["error"]["code"] == "already_decided"
    assert "Ada" in refused["error"]["message"]
    assert refused["action"]["state"] == "rejected"


async def test_racing_decisions_leave_one_winner_and_one_call(served: Served) -> None:
    thread = await ask_until(served, call("submit_expense", amount=1, note="race"), "waiting")
    action = pending(thread)[0]
    url = f"/api/actions/{action['id']}/decision"
    answered = await asyncio.gather(
        *(served.http.post(url, json={"decision": "approve", "digest": action["digest"]}) for _ in range(8))
    )
    assert sorted(response.status_code for response in answered) == [200] + [409] * 7
    await settled(served, thread["id"])
    assert len(noted(served, "race")) == 1


async def test_a_decision_about_other_arguments_is_stale(served: Served) -> None:
    thread = await ask_until(served, call("submit_expense", amount=1, note="stale"), "waiting")
    action = pending(thread)[0] | {"digest": "0" * 64}
    refused = await decide(served, action, "approve", status=409)
    assert refused["error"]["code"] == "stale_digest"
    assert noted(served, "stale") == []


async def test_several_calls_of_one_turn_are_decided_one_by_one(served: Served) -> None:
    calls = [
        ["submit_expense", {"amount": 1, "note": "one of three"}],
        ["pay_invoice", {"vendor": "V", "amount": 2, "currency": "EUR", "note": "two of three"}],
        ["lookup", {"query": "abc"}],
    ]
    thread = await ask_until(served, f"[[calls bookkeeper {json.dumps(calls)}]]", "waiting")
    assert [row["args"] for row in ledger_calls(served.home) if row["tool"] == "lookup"] != []
    first, second = sorted(pending(thread), key=lambda action: str(action["tool"]), reverse=True)
    await decide(served, first, "approve")
    await until(lambda: noted(served, "one of three", "end"))
    thread = await served.wait(thread["id"], "waiting")
    assert [action["id"] for action in pending(thread)] == [second["id"]]
    await decide(served, second, "reject", reason="not today")
    thread = await settled(served, thread["id"])
    assert len(noted(served, "one of three")) == 1
    assert noted(served, "two of three") == []
    assert "not today" in answers(thread)[0]


async def test_two_workers_pause_side_by_side_and_are_decided_in_any_order(served: Served) -> None:
    jobs = [
        ["bookkeeper", "submit_expense", {"amount": 1, "note": "worker one"}],
        ["treasurer", "pay_invoice", {"vendor": "V", "amount": 2, "currency": "EUR", "note": "worker two"}],
    ]
    thread = await ask_until(served, f"[[workers {json.dumps(jobs)}]]", "waiting")
    by_skill = {action["skill"]: action for action in pending(thread)}
    await decide(served, by_skill["treasurer"], "approve")
    await decide(served, by_skill["bookkeeper"], "approve")
    thread = await settled(served, thread["id"])
    assert len(noted(served, "worker one")) == len(noted(served, "worker two")) == 1
    assert len(answers(thread)) == 1


async def test_a_message_during_a_pause_is_held_and_answers_nothing(served: Served) -> None:
    thread_id = await ask(served, call("submit_expense", amount=1, note="held"))
    thread = await served.wait(thread_id, "waiting")
    for text in ("approve", "[[say the second answer]]"):
        posted = await served.http.post(f"/api/threads/{thread_id}/messages", json={"text": text})
        assert (posted.status_code, posted.json()["held"]) == (202, True)
    thread = await served.wait(thread_id, "waiting")
    assert len(pending(thread)) == 1
    assert noted(served, "held") == []
    await decide(served, pending(thread)[0], "approve")
    thread = await answered(served, thread_id, 2)
    assert answers(thread)[1] == "the second answer"
    assert len(thread["runs"]) == 2
    assert [message["held"] for message in thread["messages"]] == [False] * 5


async def test_a_rule_names_who_may_decide(served: Served) -> None:
    words = call("send_email", to="a@example.com", subject="s", body="b")
    thread = await ask_until(served, words, "waiting")
    action = pending(thread)[0]
    assert action["approvers"] == ["Bob"]
    refused = await decide(served, action, "approve", status=403)
    assert refused["error"]["code"] == "not_an_approver"
    bob = await served.as_person("Bob")
    seen = (await bob.get("/api/actions", params={"state": "pending"})).json()["actions"]
    assert action["id"] in [row["id"] for row in seen]
    done = await bob.post(f"/api/actions/{action['id']}/decision", json={"decision": "approve"})
    assert done.json()["decided_by"] == "Bob"
    await settled(served, thread["id"])


async def test_a_stranger_to_the_thread_cannot_see_its_action(served: Served) -> None:
    thread = await ask_until(served, call("submit_expense", amount=1, note="private"), "waiting")
    cay = await served.as_person("Cay")
    action_id = pending(thread)[0]["id"]
    assert (await cay.get(f"/api/actions/{action_id}")).status_code == 404
    body = {"decision": "approve"}
    assert (await cay.post(f"/api/actions/{action_id}/decision", json=body)).status_code == 404


async def test_a_rule_can_let_one_tool_run_without_asking(served: Served) -> None:
    words = call("scale_service", service="web", replicas=2)
    thread = await ask_until(served, words, "idle", "waiting")
    assert thread["state"] == "idle"
    assert [row["args"] for row in ledger_calls(served.home) if row["tool"] == "scale_service"] == [
        {"service": "web", "replicas": 2}
    ]


async def test_arguments_that_break_the_schema_are_told_to_the_model_and_to_nobody_else(
    served: Served,
) -> None:
    thread = await ask_until(served, call("submit_expense", amount="much", note="wrong"), "idle", "waiting")
    assert thread["state"] == "idle"
    assert thread["actions"] == []
    assert "/amount" in answers(thread)[0]


async def test_a_tool_error_is_told_to_the_model(served: Served) -> None:
    thread = await ask_until(served, call("fail", message="the till is stuck"), "idle", "waiting")
    assert "the till is stuck" in answers(thread)[0]


async def lost(served: Served, note: str) -> Json:
    """A thread whose approved call reached the server, which then died."""
    await connected(served)
    thread = await ask_until(served, call("pay_and_die", note=note), "waiting")
    await decide(served, pending(thread)[0], "approve")
    await until(lambda: noted(served, note))
    return await served.wait(thread["id"], "waiting")


@pytest.mark.parametrize(
    ("verdict", "told"), [("done", "was carried out"), ("failed", "was not carried out")]
)
async def test_a_lost_call_asks_what_became_of_it_and_is_not_repeated(
    served: Served, verdict: str, told: str
) -> None:
    thread = await lost(served, f"lost and {verdict}")
    action = pending(thread)[0]
    assert action["kind"] == "uncertain"
    assert action["allowed_decisions"] == ["retry", "done", "failed"]
    assert (await decide(served, action, verdict))["state"] == "resolved"
    thread = await settled(served, thread["id"])
    assert told in answers(thread)[0]
    assert len(noted(served, f"lost and {verdict}")) == 1


async def test_a_lost_call_is_sent_again_only_when_a_person_says_so(served: Served) -> None:
    thread = await lost(served, "lost and retried")
    await decide(served, pending(thread)[0], "retry")
    await until(lambda: len(noted(served, "lost and retried")) == 2)
    thread = await served.wait(thread["id"], "waiting")
    assert [action["kind"] for action in pending(thread)] == ["uncertain"]
    await decide(served, pending(thread)[0], "failed")
    await settled(served, thread["id"])
    assert len(noted(served, "lost and retried")) == 2


async def test_a_server_that_dies_in_a_read_is_told_to_the_model_and_comes_back(served: Served) -> None:
    await connected(served)
    thread = await ask_until(served, call("crash"), "idle", "waiting")
    assert thread["state"] == "idle"
    await connected(served)
    thread = await ask_until(served, call("submit_expense", amount=1, note="after a crash"), "waiting")
    await decide(served, pending(thread)[0], "approve")
    await settled(served, thread["id"])
    assert len(noted(served, "after a crash")) == 1


async def test_every_decision_stands_in_the_audit_and_the_chain_holds(served: Served) -> None:
    thread = await ask_until(served, call("submit_expense", amount=1, note="audited"), "waiting")
    action = pending(thread)[0]
    await decide(served, action, "reject", reason="no")
    lines = (await served.http.get("/api/audit", params={"limit": 50})).json()["lines"]
    events = [line["event"] for line in lines if line["subject"] == action["id"]]
    assert events == ["action.rejected", "action.asked"]
    assert (await served.http.get("/api/audit/verify")).json()["ok"] is True
