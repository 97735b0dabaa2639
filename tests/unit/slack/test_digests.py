"""A digest in Slack: its buttons and its numbers decide, and it follows what was decided elsewhere."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from tests.fakes.patience import PATIENCE_SECONDS
from tests.fakes.runtime import ledger_calls
from tests.fakes.slack import Message
from tests.unit.slack.conftest import ADA, CAY, Office, expense

pytestmark = pytest.mark.asyncio(loop_scope="package")
_names = itertools.count(1)


async def digest(office: Office, count: int, more: str = "") -> tuple[Message, list[str]]:
    """A digest of Cay's with so many expenses, and their notes in its order; `more` ends each of them."""
    cay = await office.served.as_person("Cay")
    for action in (await cay.get("/api/actions?state=pending&limit=100")).json()["actions"]:
        await cay.post(f"/api/actions/{action['id']}/decision", json={"decision": "reject"})
    notes = [f"in a list {next(_names)}.{more}" for _ in range(count)]
    for note in notes:
        ts = await office.asks(CAY, expense(note))
        await office.card(ts, user=CAY)
    before = len(digests(office))
    ran = (await cay.post("/api/triggers/digest:Cay/run")).json()
    assert ran["state"] == "succeeded"
    await office.slack.until(lambda: len(digests(office)) > before, "a digest")
    async with asyncio.timeout(PATIENCE_SECONDS):  # a copy that can be answered is one that was noted
        while (await office.served.http.get("/api/status")).json()["outbox"]["pending"]:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    return digests(office)[-1], notes


def digests(office: Office) -> list[Message]:
    place = office.slack.dm(CAY)
    return [m for m in office.slack.messages(place) if "to decide" in office.slack.words(m)[:40]]


async def state(office: Office, note: str) -> dict[str, Any]:
    thread = await office.thread(note)
    (action,) = thread["actions"]
    return dict(action)


async def decided(office: Office, note: str) -> list[dict[str, Any]]:
    return [c["args"] for c in ledger_calls(office.served.home) if c["args"].get("note") == note]


async def test_it_lists_what_waits_with_buttons_and_a_click_decides_and_repaints(office: Office) -> None:
    listed, notes = await digest(office, 2)
    words = office.slack.words(listed)
    assert all(part in words for part in (*notes, "1. ", "2. ", "submit_expense of ledger", "12.5"))
    assert office.slack.buttons(listed) == ["Approve", "Reject", "Review"] * 2
    first = await state(office, notes[0])
    await office.slack.click(CAY, listed, "Approve", value=f"{first['id']} {first['digest']}")
    await office.becomes(listed, "Approved by Cay in Slack")
    assert office.slack.buttons(listed) == ["Approve", "Reject", "Review"]
    assert [(await state(office, note))["state"] for note in notes] == ["approved", "pending"]


async def test_what_is_decided_elsewhere_is_seen_in_the_digest(office: Office) -> None:
    listed, (note,) = await digest(office, 1)
    action = await state(office, note)
    await office.served.http.post(f"/api/actions/{action['id']}/decision", json={"decision": "reject"})
    await office.becomes(listed, "Rejected by Ada in the API")
    assert office.slack.buttons(listed) == []


async def test_numbers_written_below_it_decide_all_or_nothing(office: Office) -> None:
    listed, notes = await digest(office, 2)
    await office.asks(CAY, "approve 1; reject 2?", thread_ts=listed.ts)
    await office.whispered(CAY, "Nothing was decided: it says more than the decisions")
    assert [(await state(office, note))["state"] for note in notes] == ["pending", "pending"]
    await office.asks(CAY, "approve 1; reject 2: too dear", thread_ts=listed.ts)
    await office.whispered(CAY, "rejected. Reason: too dear")
    await office.becomes(listed, "Approved by Cay in Slack")
    await office.becomes(listed, "Rejected by Cay in Slack")
    assert sorted([(await state(office, note))["state"] for note in notes]) == ["approved", "rejected"]


async def test_what_is_put_off_stays_so_when_the_same_words_are_delivered_again(office: Office) -> None:
    listed, (note,) = await digest(office, 1)
    await office.asks(CAY, "snooze 1 to 2h", thread_ts=listed.ts)
    said = office.slack.deliveries[-1]
    await office.whispered(CAY, "put off until")
    action = await state(office, note)
    (first,) = action["snoozed"]
    await office.slack.redeliver(said)
    assert (await state(office, note))["snoozed"] == [first]
    # Nor does it undo what was said since.
    cay = await office.served.as_person("Cay")
    changed = await cay.post(f"/api/actions/{action['id']}/snooze", json={"until": "3 days"})
    assert changed.status_code == 200, changed.text
    second = (await state(office, note))["snoozed"]
    await office.slack.redeliver(said)
    assert (await state(office, note))["snoozed"] == second != [first]


async def test_anything_else_below_it_goes_to_the_agent(office: Office) -> None:
    listed, _ = await digest(office, 1)
    await office.asks(CAY, "Why is the first one so dear? [[say because of the paper]]", thread_ts=listed.ts)
    place = office.slack.dm(CAY)
    await office.slack.until(
        lambda: any("because of the paper" in office.slack.words(m) for m in office.slack.messages(place)),
        "an answer",
    )
    thread = await office.thread("because of the paper")
    assert thread["title"] == "Digest"


async def test_a_number_is_one_of_the_list_it_is_written_below_after_a_talk_below_an_older_list_too(
    office: Office,
) -> None:
    older, _ = await digest(office, 2)
    await office.asks(CAY, "Why is it so dear? [[say because of the ink]]", thread_ts=older.ts)
    await office.hears(older.ts, "because of the ink", user=CAY)
    newer, notes = await digest(office, 2)
    assert newer.thread_ts is None
    first, second = sorted(notes, key=office.slack.words(newer).index)
    await office.asks(CAY, "reject 2: not this one", thread_ts=newer.root_ts)
    await office.whispered(CAY, "Reason: not this one")
    assert [(await state(office, note))["state"] for note in (first, second)] == ["pending", "rejected"]


async def test_a_number_that_did_not_fit_decides_nothing_also_when_another_thread_is_deleted(
    office: Office,
) -> None:
    listed, long_notes = await digest(office, 12, "x" * 330)
    words = office.slack.words(listed)
    held = sum(note in words for note in long_notes)
    assert 0 < held < 12
    cay = await office.served.as_person("Cay")
    notes = [note.rstrip("x") for note in long_notes]
    first = next(note for note in notes if note in words)
    thread = await office.thread(first)
    assert (await cay.delete(f"/api/threads/{thread['id']}")).status_code < 300
    await office.asks(CAY, f"approve {held + 1}", thread_ts=listed.ts)
    await office.whispered(CAY, "Nothing was decided: ")
    assert {(await state(office, note))["state"] for note in notes if note != first} == {"pending"}
    await office.asks(CAY, "reject 2: not this one either", thread_ts=listed.ts)
    await office.whispered(CAY, "Reason: not this one either")


async def test_a_digest_of_somebody_else_decides_nothing(office: Office) -> None:
    listed, (note,) = await digest(office, 1)
    await office.slack.click(ADA, listed, "Reject")
    assert (await state(office, note))["state"] == "pending"
