"""Does what started by itself reach people in Slack, and can they go on with it there?"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.fakes.patience import PATIENCE_SECONDS
from tests.fakes.slack import Message
from tests.unit.slack.conftest import ADA, CAY, GENERAL, Office, expense

pytestmark = pytest.mark.asyncio(loop_scope="package")


async def fires(office: Office, **fields: Any) -> None:
    """A trigger that fires once."""
    made = await office.served.http.post("/api/triggers", json={"cron": "0 0 1 1 *", **fields})
    assert made.status_code == 201, made.text
    fired = await office.served.http.post(f"/api/triggers/{made.json()['id']}/run")
    assert fired.status_code == 202, fired.text


async def said(office: Office, words: str, channel: str) -> Message:
    """The message of the app in a channel, outside of threads, that holds these words."""

    def found() -> list[Message]:
        ours = [m for m in office.slack.messages(channel) if m.user == office.slack.bot_user]
        return [m for m in ours if words in office.slack.words(m)]

    message = (await office.slack.until(found, f"{words!r} in {channel}"))[0]
    # A person takes longer to answer than it takes to note where it was said.
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (await office.served.http.get("/api/status")).json()["outbox"]["pending"]:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    return message


async def test_a_result_comes_to_the_owner_in_private_and_a_reply_goes_on_with_it(office: Office) -> None:
    await fires(office, name="For Ada", prompt="[[say nobody asked for this]]")
    told = await said(office, "nobody asked for this", office.slack.dm(ADA))
    assert "For Ada" in office.slack.words(told)
    await office.asks(ADA, "[[say and now somebody did]]", thread_ts=told.ts)
    await office.hears(told.ts, "and now somebody did")
    thread = await office.thread("and now somebody did")
    assert [m["role"] for m in thread["messages"]] == ["user", "assistant", "user", "assistant"]


async def test_a_result_for_a_channel_is_a_conversation_that_everybody_known_goes_on_with(
    office: Office,
) -> None:
    await fires(office, name="For all", prompt="[[say news for all]]", channels=[f"slack:{GENERAL}"])
    told = await said(office, "news for all", GENERAL)
    await office.asks(CAY, "[[say Cay has a question]]", GENERAL, thread_ts=told.ts)
    await office.hears(told.ts, "Cay has a question", GENERAL)
    assert (await office.thread("Cay has a question"))["title"] == "For all"


async def test_what_needs_a_decision_is_asked_in_private_with_the_title_of_its_trigger(
    office: Office,
) -> None:
    await fires(office, name="Gated by night", prompt=expense("by night"))

    def cards() -> list[Message]:
        private = office.slack.messages(office.slack.dm(ADA))
        return [m for m in private if "by night" in office.slack.words(m) and office.slack.buttons(m)]

    card = (await office.slack.until(cards, "a card"))[0]
    assert "Gated by night" in office.slack.words(card)
    await office.slack.click(ADA, card, "Approve")
    await office.becomes(card, "Approved by Ada in Slack")
    await said(office, "Result:", office.slack.dm(ADA))
