"""Is somebody told in Slack of what waits for them, and what became of it when nobody decided?"""

from __future__ import annotations

import copy
import json
from datetime import datetime

import pytest

from pizzabot.clock import spoken
from tests.fakes.runtime import ledger_calls
from tests.fakes.slack import Message
from tests.unit.slack.conftest import ADA, BOB, CAY, GENERAL, Office, expense
from tests.unit.slack.test_cards import invoice

pytestmark = pytest.mark.asyncio(loop_scope="package")


async def _action(office: Office, note: str) -> str:
    thread = await office.thread(note)
    return str(thread["actions"][0]["id"])


async def test_a_reminder_stands_under_the_card_and_says_how_it_ended(office: Office) -> None:
    ts = await office.asks(ADA, expense("remind me"))
    card = await office.card(ts)
    await office.served.is_late(await _action(office, "remind me"), "due_at")
    reminder = await office.hears(ts, "Still waiting for a decision")
    assert office.slack.buttons(reminder) == ["Review"]
    await office.slack.click(ADA, card, "Approve")
    await office.becomes(card, "Approved by Ada in Slack")
    await office.becomes(reminder, "Approved by Ada in Slack")
    assert office.slack.buttons(reminder) == []


async def test_a_reminder_in_private_leads_to_the_card_there(office: Office) -> None:
    await office.asks(ADA, invoice("remind Bob"))

    def told(words: str) -> list[Message]:
        place = office.slack.dm(BOB)
        shown = office.slack.messages(place) if place in office.slack.channels else []
        return [m for m in shown if words in office.slack.words(m)]

    (card,) = await office.slack.until(lambda: told("remind Bob"), "Bob's card")
    await office.served.is_late(await _action(office, "remind Bob"), "due_at")
    (reminder,) = await office.slack.until(lambda: told("Still waiting"), "Bob's reminder")
    assert office.slack.buttons(reminder) == ["Go to the card", "Review"]
    assert f"/p{card.ts.replace('.', '')}" in str(reminder.blocks)
    await office.slack.click(BOB, card, "Approve")
    await office.becomes(reminder, "Approved by Bob in Slack")


async def test_that_a_card_expired_is_said_on_it_and_below_it(office: Office) -> None:
    ts = await office.asks(ADA, expense("too late"))
    card = await office.card(ts)
    await office.served.is_late(await _action(office, "too late"), "expires_at")
    await office.becomes(card, "Expired: nobody decided in time. Reopen it in the inbox.")
    assert office.slack.buttons(card) == []
    await office.slack.until(
        lambda: [m for m in office.told(ts) if m.ts != card.ts and "Expired" in office.slack.words(m)],
        "a word that it expired",
    )


# -- snooze ----------------------------------------------------------------------------------------------


async def test_a_card_is_put_off_from_its_menu_for_who_chose_it_and_says_so_to_all(office: Office) -> None:
    ts = await office.asks(ADA, expense("not now"))
    card = await office.card(ts)
    await office.slack.click(ADA, card, "Snooze", "Tomorrow morning")
    await office.whispered(ADA, "you are not told of it before")
    await office.becomes(card, "Put off by Ada until")
    (snooze,) = (await office.thread("not now"))["actions"][0]["snoozed"]
    until = datetime.fromisoformat(snooze["until"])
    assert snooze["person"] == "Ada"
    assert spoken(until, office.served.doors.people.owner.timezone) in office.whispers(ADA)[-1]
    told = len(office.whispers(ADA))
    await office.slack.click(ADA, card, "Snooze", "In an hour")  # sooner after all
    await office.slack.until(lambda: len(office.whispers(ADA)) > told, "a second answer")
    await office.slack.click(ADA, card, "Approve")
    await office.becomes(card, "Approved by Ada in Slack")
    assert "Snooze" not in office.slack.words(card)


async def test_only_who_may_decide_puts_a_card_off(office: Office) -> None:
    ts = await office.asks(ADA, f"<@{office.slack.bot_user}> {expense('not yours to put off')}", GENERAL)
    card = await office.card(ts, GENERAL)
    await office.slack.click(CAY, card, "Snooze", "In an hour")
    await office.whispered(CAY, "This is not yours to decide", GENERAL)
    assert (await office.thread("not yours to put off"))["actions"][0]["snoozed"] == []


async def test_a_card_that_was_decided_meanwhile_is_not_put_off(office: Office) -> None:
    ts = await office.asks(ADA, expense("too late to put off"))
    card = copy.deepcopy(await office.card(ts))
    action = await _action(office, "too late to put off")
    await office.served.http.post(f"/api/actions/{action}/decision", json={"decision": "reject"})
    await office.slack.click(ADA, card, "Snooze", "In an hour")
    await office.whispered(ADA, "Too late: Rejected by Ada")


# -- several approvals -----------------------------------------------------------------------------------


async def test_every_card_says_who_approved_so_far_and_the_second_click_runs_it(office: Office) -> None:
    args = {"service": "twice approved", "replicas": 2}
    ts = await office.asks(ADA, f"[[call bookkeeper scale_service {json.dumps(args)}]]")
    mine = await office.card(ts)

    def told() -> list[Message]:
        place = office.slack.dm(BOB)
        shown = office.slack.messages(place) if place in office.slack.channels else []
        return [m for m in shown if "twice approved" in office.slack.words(m)]

    (theirs,) = await office.slack.until(told, "Bob's card")
    assert "0 of 2 approved" in office.slack.words(theirs)
    await office.slack.click(ADA, mine, "Approve")
    for card in (mine, theirs):
        await office.becomes(card, "1 of 2 approved: Ada in Slack")
    await office.slack.click(ADA, mine, "Approve")
    await office.whispered(ADA, "Your approval is counted already; it takes 1 more")
    await office.slack.click(BOB, theirs, "Approve")
    for card in (mine, theirs):
        await office.becomes(card, "Approved by Ada in Slack and Bob in Slack")
    await office.hears(ts, "Result:")
    assert [c["args"] for c in ledger_calls(office.served.home) if c["tool"] == "scale_service"] == [args]
