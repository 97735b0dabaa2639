"""Is a decision made in Slack the one that was shown, by somebody who may make it, and seen everywhere?"""

from __future__ import annotations

import asyncio
import copy
import json

import pytest

from pizzabot.messages import Action, Decision
from tests.fakes.runtime import ledger_calls
from tests.fakes.slack import Fault, Message
from tests.unit.slack.conftest import ADA, BOB, CAY, EVE, GENERAL, Office, expense

pytestmark = pytest.mark.asyncio(loop_scope="package")


def paid(office: Office, note: str) -> list[dict[str, object]]:
    """The calls that were made with that note."""
    return [c["args"] for c in ledger_calls(office.served.home) if c["args"].get("note") == note]


def invoice(note: str) -> str:
    """Words that make the model pay an invoice, which is Bob's to decide."""
    args = {"vendor": "V", "amount": 5, "currency": "EUR", "note": note}
    return f"[[call bookkeeper pay_invoice {json.dumps(args)}]]"


async def waiting(office: Office, note: str, **args: object) -> tuple[str, Message]:
    ts = await office.asks(ADA, expense(note, **args))
    return ts, await office.card(ts)


async def test_a_card_shows_everything_and_its_buttons(office: Office) -> None:
    _, card = await waiting(office, "all shown", tags=["a", "b"], urgent=True)
    words = office.slack.words(card)
    for part in (
        "submit_expense",
        "ledger",
        "bookkeeper",
        "asked by Ada",
        "12.5",
        "all shown",
        "a\nb",
        "true",
    ):
        assert part in words
    assert office.slack.buttons(card) == ["Approve", "Edit", "Reject", "Review"]


async def test_approve_runs_what_was_shown_and_the_card_says_who_decided(office: Office) -> None:
    ts, card = await waiting(office, "approve me")
    delivery = await office.slack.click(ADA, card, "Approve")
    assert delivery.seconds < 3
    await office.hears(ts, "Result:")
    await office.becomes(card, "Approved by Ada in Slack")
    assert office.slack.buttons(card) == []
    assert paid(office, "approve me") == [{"amount": 12.5, "note": "approve me"}]


async def test_edit_keeps_types_and_runs_the_changed_arguments(office: Office) -> None:
    ts, card = await waiting(office, "edit me", tags=["x"], urgent=False)
    await office.slack.click(ADA, card, "Edit")
    await office.slack.until(lambda: "amount" in str(office.slack.modal(ADA)), "the form")
    answer = await office.slack.submit(
        ADA, {"amount": "15", "currency": "USD", "tags": "one\ntwo", "urgent": ["Yes"]}
    )
    assert answer == {}
    await office.hears(ts, "Result:")
    await office.becomes(card, "Edited and approved by Ada in Slack")
    assert paid(office, "edit me") == [
        {"amount": 15, "note": "edit me", "currency": "USD", "tags": ["one", "two"], "urgent": True}
    ]


async def test_errors_stand_at_the_field_and_nothing_is_decided(office: Office) -> None:
    ts, card = await waiting(office, "wrong edit")
    await office.slack.click(ADA, card, "Edit")
    await office.slack.until(lambda: "amount" in str(office.slack.modal(ADA)), "the form")
    answer = await office.slack.submit(ADA, {"amount": "-3"})
    assert answer["response_action"] == "errors"
    (error,) = answer["errors"].values()
    assert error == "amount must be 0 or more"
    assert "Approve" in office.slack.buttons(card)
    assert await office.slack.submit(ADA, {"amount": "3"}) == {}
    await office.hears(ts, "Result:")
    assert paid(office, "wrong edit") == [{"amount": 3, "note": "wrong edit"}]


async def test_saving_without_a_change_is_no_decision(office: Office) -> None:
    _, card = await waiting(office, "unchanged")
    await office.slack.click(ADA, card, "Edit")
    await office.slack.until(lambda: "amount" in str(office.slack.modal(ADA)), "the form")
    answer = await office.slack.submit(ADA)
    assert "press Approve" in str(answer["errors"])
    assert "Approve" in office.slack.buttons(card)


async def test_reject_tells_the_agent_the_reason(office: Office) -> None:
    ts, card = await waiting(office, "reject me")
    await office.slack.click(ADA, card, "Reject")
    await office.slack.until(lambda: "Reason" in str(office.slack.modal(ADA)), "the form")
    assert await office.slack.submit(ADA, {"Reason": "too dear"}) == {}
    await office.hears(ts, "too dear")
    await office.becomes(card, "Rejected by Ada in Slack")
    assert paid(office, "reject me") == []


async def test_a_reason_may_be_left_out(office: Office) -> None:
    _, card = await waiting(office, "no reason")
    await office.slack.click(ADA, card, "Reject")
    await office.slack.until(lambda: "Reason" in str(office.slack.modal(ADA)), "the form")
    assert await office.slack.submit(ADA) == {}
    await office.becomes(card, "Rejected by Ada in Slack")


async def test_respond_answers_in_place_of_the_tool(office: Office) -> None:
    ts = await office.asks(ADA, '[[call clerk send_email {"to": "x@y.z", "subject": "hi", "body": "b"}]]')
    card = await office.card(ts)
    assert "Respond" in office.slack.buttons(card)
    await office.slack.click(ADA, card, "Respond")
    await office.slack.until(lambda: "Response" in str(office.slack.modal(ADA)), "the form")
    assert await office.slack.submit(ADA, {"Response": "I wrote it myself"}) == {}
    await office.hears(ts, "I wrote it myself")


async def test_only_who_may_decide_decides_and_everybody_else_is_told(office: Office) -> None:
    ts = await office.asks(ADA, f"<@{office.slack.bot_user}> {invoice('rule')}", GENERAL)
    card = await office.card(ts, GENERAL)
    refusals = {ADA: "not yours to decide", CAY: "not yours to decide", EVE: "only work for people"}
    for user, words in refusals.items():
        delivery = await office.slack.click(user, card, "Approve")
        assert delivery.acked
        await office.whispered(user, words, GENERAL)
    assert "Approve" in office.slack.buttons(card)
    await office.slack.click(BOB, card, "Approve")
    await office.becomes(card, "Approved by Bob in Slack")
    await office.hears(ts, "Result:", GENERAL)
    assert len(paid(office, "rule")) == 1


async def test_an_approver_gets_a_card_of_their_own_and_all_copies_tell_the_same(office: Office) -> None:
    ts = await office.asks(ADA, invoice("copies"))
    card = await office.card(ts)
    place = office.slack.dm(BOB)

    def own() -> Message | None:
        if place not in office.slack.channels:
            return None
        cards = [m for m in office.slack.messages(place) if "Approve" in office.slack.buttons(m)]
        return next((m for m in cards if "copies" in office.slack.words(m)), None)

    copied = await office.slack.until(own, "a card for Bob")
    assert copied is not None
    await office.slack.click(BOB, copied, "Approve")
    await office.becomes(copied, "Approved by Bob in Slack")
    await office.becomes(card, "Approved by Bob in Slack")
    await office.hears(ts, "Result:")


async def test_the_owner_of_a_direct_message_gets_one_card(office: Office) -> None:
    _, card = await waiting(office, "one card only")
    place = office.slack.dm(ADA)
    said = [m for m in office.slack.channels[place].messages.values() if m.user == office.slack.bot_user]
    assert [m.ts for m in said if "one card only" in office.slack.words(m)] == [card.ts]


async def test_a_late_click_is_told_and_changes_nothing(office: Office) -> None:
    ts, card = await waiting(office, "too late")
    stale = copy.deepcopy(card)
    await office.slack.click(ADA, card, "Approve")
    await office.becomes(card, "Approved by Ada")
    assert (await office.slack.click(ADA, stale, "Approve")).acked
    await office.whispered(ADA, "That is settled: Approved by Ada in Slack")
    assert (await office.slack.click(BOB, stale, "Approve")).acked
    await office.whispered(BOB, "not yours to decide", office.slack.dm(ADA))
    for label in ("Reject", "Edit"):
        assert (await office.slack.click(ADA, stale, label)).acked
        await office.slack.until(lambda: "Approved by Ada" in str(office.slack.modal(ADA)), label)
        office.slack.closes_modal(ADA)
    await office.hears(ts, "Result:")
    assert len(paid(office, "too late")) == 1


async def test_a_form_that_is_sent_after_the_decision_says_so(office: Office) -> None:
    _, card = await waiting(office, "form too late")
    await office.slack.click(ADA, card, "Edit")
    await office.slack.until(lambda: "amount" in str(office.slack.modal(ADA)), "the form")
    thread = await office.thread("form too late")
    (action,) = thread["actions"]
    await office.served.http.post(f"/api/actions/{action['id']}/decision", json={"decision": "reject"})
    answer = await office.slack.submit(ADA, {"amount": "99"})
    assert answer["response_action"] == "update"
    assert "Too late: Rejected by Ada in the API" in str(answer["view"])
    assert paid(office, "form too late") == []


async def test_what_was_decided_elsewhere_is_shown_on_the_card(office: Office) -> None:
    _, card = await waiting(office, "decided elsewhere")
    thread = await office.thread("decided elsewhere")
    (action,) = thread["actions"]
    await office.served.http.post(f"/api/actions/{action['id']}/decision", json={"decision": "approve"})
    await office.becomes(card, "Approved by Ada in the API")
    assert office.slack.buttons(card) == []


async def test_a_click_settles_its_own_card_and_no_other(office: Office) -> None:
    _, one = await waiting(office, "card one")
    _, two = await waiting(office, "card two")
    await office.slack.click(ADA, two, "Approve")
    await office.becomes(two, "Approved by Ada")
    assert "Approve" in office.slack.buttons(one)
    assert paid(office, "card one") == []
    await office.slack.click(ADA, one, "Approve")
    await office.becomes(one, "Approved by Ada")


async def test_two_who_press_at_once_decide_once(office: Office) -> None:
    ts, card = await waiting(office, "at once")
    stale = copy.deepcopy(card)
    await asyncio.gather(*(office.slack.click(ADA, stale, "Approve") for _ in range(5)))
    await office.hears(ts, "Result:")
    assert len(paid(office, "at once")) == 1


async def test_what_is_too_long_to_be_shown_is_not_approved_here(office: Office) -> None:
    _, card = await waiting(office, "x" * 5_000)
    assert office.slack.buttons(card) == ["Reject", "Review"]
    assert "too long to be shown" in office.slack.words(card)


async def test_stopping_a_run_closes_its_card(office: Office) -> None:
    ts, card = await waiting(office, "stop me")
    await office.asks(ADA, "stop", thread_ts=ts)
    await office.becomes(card, "Withdrawn")
    assert office.slack.buttons(card) == []


@pytest.mark.parametrize("words", ["yes", "ok", "approve?", "approve if it is cheap", "Tom will approve it"])
async def test_words_beside_a_card_that_name_no_decision_are_kept(office: Office, words: str) -> None:
    note = f"words beside {len(words)}"
    ts, card = await waiting(office, note)
    await office.asks(ADA, words, thread_ts=ts)
    await office.whispered(ADA, "To decide, press one of its buttons")
    assert "Approve" in office.slack.buttons(card)
    assert paid(office, note) == []


async def test_a_clear_word_in_the_thread_decides_what_waits_there(office: Office) -> None:
    ts, card = await waiting(office, "said aloud")
    await office.asks(ADA, "Reject: too dear", thread_ts=ts)
    await office.becomes(card, "Rejected by Ada in Slack")
    assert "too dear" in office.slack.words(card)
    ts, card = await waiting(office, "approved aloud")
    await office.asks(ADA, "approve", thread_ts=ts)
    await office.becomes(card, "Approved by Ada in Slack")
    await office.hears(ts, "Result:")


async def test_a_word_that_is_delivered_again_is_no_message(office: Office) -> None:
    ts, card = await waiting(office, "said and redelivered")
    await office.asks(ADA, "approve", thread_ts=ts)
    delivery = office.slack.deliveries[-1]
    await office.becomes(card, "Approved by Ada in Slack")
    await office.hears(ts, "Result:")
    await office.slack.redeliver(delivery)
    thread = await office.thread("said and redelivered")
    assert "approve" not in [m["text"] for m in thread["messages"]]


async def test_a_word_decides_that_is_delivered_again_after_a_crash(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def dies(decision: Decision) -> Action:
        raise RuntimeError("killed before it was stored")

    ts, card = await waiting(office, "said before a crash")
    with monkeypatch.context() as patched:
        patched.setattr(office.served.doors, "decide", dies)
        await office.asks(ADA, "approve", thread_ts=ts)
        assert "Approve" in office.slack.buttons(card)
    await office.slack.redeliver(office.slack.deliveries[-1])
    await office.becomes(card, "Approved by Ada in Slack")
    thread = await office.thread("said before a crash")
    assert "approve" not in [m["text"] for m in thread["messages"]]


async def test_who_may_not_decide_is_told_so_when_they_say_it(office: Office) -> None:
    ts = await office.asks(ADA, f"<@{office.slack.bot_user}> {invoice('not yours to say')}", GENERAL)
    card = await office.card(ts, GENERAL)
    await office.asks(CAY, "approve", GENERAL, thread_ts=ts)
    await office.whispered(CAY, "press one of its buttons", GENERAL)
    assert "Approve" in office.slack.buttons(card)


async def test_review_leads_to_the_page_of_the_action(office: Office) -> None:
    _, card = await waiting(office, "review me")
    thread = await office.thread("review me")
    urls = [
        e["url"] for b in card.blocks for e in b.get("elements", []) if isinstance(e, dict) and "url" in e
    ]
    assert urls == [f"{office.served.url}/actions/{thread['actions'][0]['id']}"]
    assert (await office.slack.click(ADA, card, "Review")).acked


async def test_a_click_is_answered_in_time_while_the_database_is_slow(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    ts, card = await waiting(office, "slow click")
    decide = office.served.doors.decide

    async def slowly(decision: Decision) -> Action:
        await asyncio.sleep(3)
        return await decide(decision)

    monkeypatch.setattr(office.served.doors, "decide", slowly)
    delivery = await office.slack.click(ADA, card, "Approve")
    assert delivery.acked
    await office.whispered(ADA, "takes longer than usual")
    await office.becomes(card, "Approved by Ada in Slack")
    await office.hears(ts, "Result:")


async def test_somebody_who_may_not_decide_gets_no_form(office: Office) -> None:
    ts = await office.asks(ADA, f"<@{office.slack.bot_user}> {invoice('no form')}", GENERAL)
    card = await office.card(ts, GENERAL)
    await office.slack.click(ADA, card, "Edit")
    await office.slack.until(lambda: "not yours to decide" in str(office.slack.modal(ADA)), "a refusal")
    office.slack.closes_modal(ADA)


async def test_a_form_that_slack_does_not_open_is_told(office: Office) -> None:
    _, card = await waiting(office, "no modal")
    office.slack.faults_on["views.open"] = [Fault(error="expired_trigger_id")]
    assert (await office.slack.click(ADA, card, "Edit")).acked
    await office.whispered(ADA, "did not open the form")


async def test_the_card_of_an_approver_leads_to_the_conversation(office: Office) -> None:
    ts = await office.asks(ADA, f"<@{office.slack.bot_user}> {invoice('leads back')}", GENERAL)
    place = office.slack.dm(BOB)

    def own() -> list[Message]:
        told = office.slack.messages(place) if place in office.slack.channels else []
        return [m for m in told if "leads back" in office.slack.words(m)]

    (copied,) = await office.slack.until(own, "a card for Bob")
    assert f"/archives/{GENERAL}/p{ts.replace('.', '')}|" in str(copied.blocks)
