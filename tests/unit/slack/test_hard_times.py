"""Does Slack stay truthful when things are deleted, refused, overtaken, slow or pressed by the wrong ones?"""

from __future__ import annotations

import sqlite3
from itertools import pairwise
from typing import Any

import pytest

from pizzabot.errors import Unavailable
from pizzabot.messages import Accepted, InboundMessage
from pizzabot.outbox.delivery import FIRST_DELAY
from tests.fakes.slack import Fault, Message
from tests.unit.slack.conftest import ADA, CAY, EVE, GENERAL, Office
from tests.unit.slack.test_cards import invoice, waiting
from tests.unit.slack.test_delivery import all_said

pytestmark = pytest.mark.asyncio(loop_scope="package")


def in_private(office: Office, user: str) -> list[Message]:
    """What the app wrote to somebody's direct messages, in any thread."""
    place = office.slack.dm(user)
    if place not in office.slack.channels:
        return []
    return [m for m in office.slack.channels[place].messages.values() if m.user == office.slack.bot_user]


async def home_holds(office: Office, user: str, words: str) -> None:
    await office.slack.until(lambda: words in office.slack.words(office.slack.home(user) or {"blocks": []}))


# -- what goes wrong with Slack ------------------------------------------------------------------------------


async def test_what_slack_fails_at_again_and_again_is_tried_with_growing_pauses(office: Office) -> None:
    ts = await office.asks(ADA, "[[say always 500]]")
    office.slack.faults_on["chat.postMessage"] = [Fault(status=500)] * 3
    await office.hears(ts, "always 500")
    posts = office.slack.calls_of("chat.postMessage")
    tries = [call.at for call in posts if "always 500" in str(call.args.get("text"))]
    pauses = [after - before for before, after in pairwise(tries)]
    assert len(pauses) >= 2  # what the run does may be shown meanwhile, and takes one of the faults
    assert all(pause > 0.95 * FIRST_DELAY.total_seconds() * 2**n for n, pause in enumerate(pauses))


async def test_a_scope_that_files_need_holds_up_nothing_else(office: Office) -> None:
    office.slack.faults_on["files.getUploadURLExternal"] = [Fault(error="missing_scope")]
    ts = await office.asks(ADA, "[[long 80001]]")
    told = await office.hears(ts, "The file could not be shared")
    assert f"{office.served.url}/threads/" in office.slack.words(told)
    await office.asks(ADA, "[[say the next one]]", thread_ts=ts)
    await office.hears(ts, "the next one")


async def test_a_file_in_private_is_shared_once_though_its_upload_was_cut(office: Office) -> None:
    cay = await office.served.as_person("Cay")
    office.slack.faults_on["files.completeUploadExternal"] = [Fault(cut=True)]
    await cay.post("/api/threads", json={"text": "[[long 70000]]", "title": "By API, long"})
    await office.slack.until(lambda: any(m.files for m in in_private(office, CAY)))
    await all_said(office)
    assert len([m for m in in_private(office, CAY) if m.files]) == 1


async def test_the_parts_of_an_answer_stand_in_one_thread_that_can_be_answered(office: Office) -> None:
    cay = await office.served.as_person("Cay")
    made = (await cay.post("/api/threads", json={"text": "[[long 25000]]", "title": "In parts"})).json()

    def parts() -> list[Message]:
        return [m for m in in_private(office, CAY) if len(office.slack.words(m)) > 3000 and not m.files]

    await office.slack.until(lambda: len(parts()) >= 3)
    await all_said(office)
    await office.slack.says(CAY, "[[say to the last part]]", thread_ts=parts()[-1].root_ts)
    thread = (await cay.get(f"/api/threads/{made['thread_id']}")).json()
    assert "[[say to the last part]]" in [m["text"] for m in thread["messages"]]


async def test_an_answer_whose_conversation_is_gone_reaches_its_owner(office: Office) -> None:
    ts = await office.asks(ADA, f"<@{office.slack.bot_user}> [[sleep 0.6]] root gone", GENERAL)
    office.slack.message(GENERAL, ts).deleted = True
    office.gone.add(ts)
    await office.slack.until(
        lambda: any("slept 0.6" in office.slack.words(m) for m in in_private(office, ADA))
    )


# -- deleted threads -----------------------------------------------------------------------------------------


async def test_the_card_of_a_deleted_thread_holds_nothing_to_press(office: Office) -> None:
    _, card = await waiting(office, "deleted with its card")
    thread = await office.thread("deleted with its card")
    await office.served.http.delete(f"/api/threads/{thread['id']}")
    await office.becomes(card, "This was deleted.")
    assert office.slack.buttons(card) == []


async def test_the_status_message_of_a_deleted_thread_is_closed_and_forgotten(office: Office) -> None:
    ts = await office.asks(ADA, "[[sleep 20]] deleted at work")
    status = await office.hears(ts, "Working")
    thread = await office.thread("deleted at work")
    await office.served.http.delete(f"/api/threads/{thread['id']}")
    await office.becomes(status, "This was deleted.")
    assert office.slack.buttons(status) == []


# -- order ---------------------------------------------------------------------------------------------------


async def test_a_reply_while_the_files_of_a_mention_are_fetched_is_not_lost(office: Office) -> None:
    office.slack.faults_on["download"] = [Fault(status=500)]
    text = f"<@{office.slack.bot_user}> read this"
    ts = await office.asks(ADA, text, GENERAL, files=[("notes.txt", b"hello")])
    await office.asks(ADA, "[[say heard meanwhile]]", GENERAL, thread_ts=ts)
    await office.hears(ts, "heard meanwhile", GENERAL)


async def test_a_reply_that_overtakes_its_mention_is_not_lost(office: Office) -> None:
    slack = office.slack
    root = slack.post(GENERAL, ADA, f"<@{slack.bot_user}> [[say root]]")
    reply = slack.post(GENERAL, ADA, "[[say the early reply]]", thread_ts=root.ts)
    for message in (reply, root):
        parts = {"channel": GENERAL, "channel_type": "channel", "event_ts": message.ts}
        await office.event(slack.as_json(message) | parts)
    await office.hears(root.ts, "the early reply", GENERAL)


async def test_an_early_reply_that_could_not_be_stored_is_taken_with_the_next_delivery(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    slack, accept = office.slack, office.served.doors.accept
    failed: list[InboundMessage] = []

    async def fails_once(message: InboundMessage) -> Accepted:
        if "stored late" in message.text and not failed:
            failed.append(message)
            raise Unavailable("the database is busy")
        return await accept(message)

    monkeypatch.setattr(office.served.doors, "accept", fails_once)
    root = slack.post(GENERAL, ADA, f"<@{slack.bot_user}> [[say root]]")
    reply = slack.post(GENERAL, ADA, "[[say stored late]]", thread_ts=root.ts)
    for message in (reply, root, root):
        parts = {"channel": GENERAL, "channel_type": "channel", "event_ts": message.ts}
        await office.event(slack.as_json(message) | parts)
    assert failed
    await office.hears(root.ts, "stored late", GENERAL)


# -- the Home tab --------------------------------------------------------------------------------------------


async def test_a_home_tab_catches_up_after_slack_failed(office: Office) -> None:
    await office.slack.opens_home(ADA)
    await office.slack.until(lambda: office.slack.home(ADA))
    office.slack.faults_on["views.publish"] = [Fault(status=429, retry_after=1), Fault(status=500)]
    ts = await office.asks(ADA, "[[say home words]]")
    await office.hears(ts, "home words")
    await home_holds(office, ADA, "home words")


async def test_a_home_tab_catches_up_after_slack_was_away(office: Office) -> None:
    await office.slack.opens_home(ADA)
    await office.slack.until(lambda: office.slack.home(ADA))
    await office.asks(ADA, "[[sleep 0.4]] while nobody looked")
    office.slack.go_away()
    thread = await office.thread("while nobody looked")
    await office.served.wait(thread["id"], "idle")
    office.slack.come_back()
    await home_holds(office, ADA, "slept 0.4")
    await office.slack.connected()


async def test_what_is_mine_to_decide_is_found_among_much_that_is_not(office: Office) -> None:
    await waiting(office, "mine among many")
    for number in range(8):
        await office.card(await office.asks(ADA, invoice(f"not mine {number}")))
    await office.slack.opens_home(ADA)
    await home_holds(office, ADA, "mine among many")


# -- presses -------------------------------------------------------------------------------------------------


async def pressed(office: Office, user: str, action_id: str, value: str) -> None:
    """A button that no longer stands anywhere, or never did."""
    action = {"type": "button", "action_id": action_id, "block_id": "b", "value": value}
    body: dict[str, Any] = {"trigger_id": office.slack.new_trigger(user), "actions": [action]}
    body["container"] = {"type": "view", "view_id": "V1"}
    assert (await office.slack._interact("block_actions", user, body)).acked


@pytest.mark.parametrize("value", ["", "\x00 garbage", "a" * 2000, "no-such-id digest"])
@pytest.mark.parametrize(
    "action_id",
    ["pizza_decide_approve.x", "pizza_decide_nonsense.x", "pizza_gone", "pizza_stop", "pizza_retry", ""],
)
async def test_a_button_that_means_nothing_is_answered(office: Office, action_id: str, value: str) -> None:
    office.slack.modals.pop(ADA, None)
    await pressed(office, ADA, action_id, value)
    await office.slack.until(lambda: office.slack.modal(ADA))
    office.slack.closes_modal(ADA)


async def test_a_strangers_press_on_a_home_tab_is_answered_and_the_tab_emptied(office: Office) -> None:
    await pressed(office, EVE, "pizza_stop_all", "")
    await office.slack.until(lambda: office.slack.modal(EVE))
    office.slack.closes_modal(EVE)
    await home_holds(office, EVE, "only work for people I was told about")


async def test_a_click_that_is_delivered_twice_is_no_reproach(office: Office) -> None:
    ts, card = await waiting(office, "delivered twice")
    delivery = await office.slack.click(ADA, card, "Approve")
    await office.slack.redeliver(delivery)
    await office.hears(ts, "Result:")
    await office.whispered(ADA, "That is settled: Approved by Ada in Slack")


async def test_an_answer_that_slack_does_not_take_goes_another_way(office: Office) -> None:
    _, card = await waiting(office, "stranger clicks")
    office.slack.faults_on["response_url"] = [Fault(status=500)]
    await office.slack.click(EVE, card, "Approve")
    await office.whispered(EVE, "only work for people", office.slack.dm(ADA))


@pytest.mark.parametrize("fault", [Fault(status=429, retry_after=1), Fault(error="view_too_large")])
async def test_a_form_is_never_left_at_one_moment(office: Office, fault: Fault) -> None:
    _, card = await waiting(office, f"form {fault.status}")
    office.slack.faults_on["views.update"] = [fault]
    await office.slack.click(ADA, card, "Edit")
    await office.slack.until(lambda: "One moment" not in str(office.slack.modal(ADA) or "One moment"))
    office.slack.closes_modal(ADA)


@pytest.mark.parametrize("what", ["click", "command", "form"])
async def test_people_are_answered_in_time_while_the_database_is_locked(office: Office, what: str) -> None:
    _, card = await waiting(office, f"locked {what}")
    if what == "form":
        await office.slack.click(ADA, card, "Reject")
        await office.slack.until(lambda: "Reason" in str(office.slack.modal(ADA)))
    lock = sqlite3.connect(office.served.home.app_database, isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    try:
        match what:
            case "click":
                assert (await office.slack.click(ADA, card, "Approve")).acked
            case "command":
                assert "longer than usual" in (await office.slack.command(ADA, "/pizza stop"))["text"]
            case "form":
                assert "longer than usual" in str((await office.slack.submit(ADA))["view"])
    finally:
        lock.execute("ROLLBACK")
        lock.close()
    if what != "command":
        await office.slack.until(lambda: "Approve" not in office.slack.buttons(card))
