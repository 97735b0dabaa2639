"""Does everything that is said arrive in Slack, once, whole and as it should look, whatever goes wrong?"""

from __future__ import annotations

import asyncio
import copy

import pytest

from tests.fakes.patience import PATIENCE_SECONDS
from tests.fakes.slack import Fault, Message
from tests.unit.slack.conftest import ADA, Office, expense

pytestmark = pytest.mark.asyncio(loop_scope="package")


def copies(office: Office, words: str, ts: str) -> list[Message]:
    return [m for m in office.told(ts) if words in office.slack.words(m)]


@pytest.mark.parametrize(
    ("name", "faults"),
    [
        ("cut once", [Fault(cut=True)]),
        ("failed", [Fault(status=500)]),
        ("failed inside", [Fault(error="internal_error")]),
        ("limited", [Fault(status=429, retry_after=1)] * 2),
        ("answered by a proxy", [Fault(garbage="<html>Sorry</html>")]),
        ("answered by half", [Fault(garbage='{"ok": tr', cut=False)]),
    ],
)
async def test_an_answer_arrives_once_whatever_happens_on_its_way(
    office: Office, name: str, faults: list[Fault]
) -> None:
    ts = await office.asks(ADA, f"[[sleep 0.05]] {name}")
    office.slack.faults_on["chat.postMessage"] = list(faults)
    await office.hears(ts, "slept 0.05")
    await office.slack.until(lambda: not office.slack.faults_on.get("chat.postMessage"))
    await all_said(office)
    assert len(copies(office, "slept 0.05", ts)) == 1


async def test_an_answer_waits_while_slack_is_away_and_comes_once_after(office: Office) -> None:
    ts = await office.asks(ADA, "[[sleep 0.3]] while away")
    office.slack.go_away()
    thread = await office.thread("while away")
    await office.served.wait(thread["id"], "idle")
    office.slack.come_back()
    await office.hears(ts, "slept 0.3")
    assert len(copies(office, "slept 0.3", ts)) == 1
    await office.slack.connected()


async def test_a_card_arrives_once_though_its_answer_was_lost(office: Office) -> None:
    ts = await office.asks(ADA, expense("lost card"))
    office.slack.faults_on["chat.postMessage"] = [Fault(cut=True)]
    card = await office.card(ts)
    await office.slack.click(ADA, card, "Approve")
    await office.hears(ts, "Result:")
    await office.becomes(card, "Approved by Ada in Slack")
    assert len(copies(office, "skill bookkeeper", ts)) == 1


async def test_a_repaint_that_failed_is_made_up_for(office: Office) -> None:
    ts = await office.asks(ADA, expense("lost repaint"))
    card = await office.card(ts)
    office.slack.faults_on["chat.update"] = [Fault(status=500), Fault(status=429, retry_after=1)]
    await office.slack.click(ADA, card, "Approve")
    await office.becomes(card, "Approved by Ada in Slack")


async def test_a_long_answer_comes_in_order_and_whole(office: Office) -> None:
    ts = await office.asks(ADA, "[[long 30000]]")
    await office.slack.until(lambda: sum(len(office.slack.words(m)) for m in office.told(ts)) > 29_000)
    assert 2 <= len(office.told(ts)) <= 4


async def test_the_rest_of_a_long_answer_follows_after_a_cut(office: Office) -> None:
    ts = await office.asks(ADA, "[[long 30000]] cut in the middle")
    office.slack.faults_on["chat.postMessage"] = [Fault(status=0), Fault(cut=True)]
    await office.slack.until(lambda: sum(len(office.slack.words(m)) for m in office.told(ts)) > 29_000)
    texts = [office.slack.words(m) for m in office.told(ts) if len(office.slack.words(m)) > 1000]
    assert len(texts) == len(set(texts)) == 3


async def test_a_very_long_answer_is_a_file_and_its_beginning(office: Office) -> None:
    ts = await office.asks(ADA, "[[long 100000]]")
    shared = await office.slack.until(lambda: next((m for m in office.told(ts) if m.files), None))
    assert shared is not None
    (file,) = [office.slack.files[f["id"]] for f in shared.files]
    assert len(file.content) == 100_000
    begun = await office.hears(ts, "The whole answer has 100,000 characters")
    assert file.name in office.slack.words(begun)
    assert begun.ts < shared.ts


async def test_a_file_whose_upload_was_cut_is_shared_once(office: Office) -> None:
    office.slack.faults_on["files.completeUploadExternal"] = [Fault(cut=True)]
    ts = await office.asks(ADA, "[[long 90000]]")
    await office.slack.until(lambda: any(m.files for m in office.told(ts)))
    await office.slack.until(lambda: not office.slack.faults_on.get("files.completeUploadExternal"))
    await all_said(office)
    assert len([m for m in office.told(ts) if m.files]) == 1
    assert len(copies(office, "The whole answer has", ts)) == 1


async def all_said(office: Office) -> None:
    """Return when the outbox is empty."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            waits = (await office.served.http.get("/api/status")).json()["outbox"]
            if waits["pending"] == waits["unknown"] == 0:
                return
            await asyncio.sleep(0.05)


async def test_what_slack_does_not_take_goes_out_in_plain_text(office: Office) -> None:
    office.slack.faults_on["chat.postMessage"] = [Fault(error="invalid_blocks")]
    ts = await office.asks(ADA, "[[say plain at last]]")
    message = await office.hears(ts, "plain at last")
    assert message.blocks == []


async def test_an_answer_mentions_nobody_and_links_where_it_says(office: Office) -> None:
    said = "<!channel> <@U0BOB> [https://bank.example](https://evil.example) done"
    ts = await office.asks(ADA, f"[[say {said}]]")
    message = await office.hears(ts, "done")
    raw = str(message.blocks)
    assert "<!channel>" not in raw + message.text
    assert "<@U0BOB>" not in raw + message.text
    assert "[https://bank.example](" not in raw
    assert "https://evil.example" in raw


async def test_a_failure_is_told_with_a_way_to_go_on(office: Office) -> None:
    ts = await office.asks(ADA, "[[fail 400 1]]")
    message = await office.hears(ts, "This did not work")
    assert office.slack.buttons(message) == ["Retry"]
    stale = copy.deepcopy(message)
    await office.slack.click(ADA, message, "Retry")
    await office.becomes(message, "Retried by Ada")
    await office.hears(ts, "recovered")
    assert office.slack.buttons(message) == []
    await office.slack.click(ADA, stale, "Retry")
    await office.whispered(ADA, "Only a failed or stopped")


async def test_a_failure_that_goes_on_before_it_could_be_told_offers_no_retry(office: Office) -> None:
    ts = await office.asks(ADA, "[[fail 400 1]] told late")
    office.slack.go_away()
    thread = await office.thread("told late")
    await office.served.wait(thread["id"], "failed")
    assert (await office.served.http.post(f"/api/threads/{thread['id']}/retry")).status_code < 300
    await office.served.wait(thread["id"], "idle")
    office.slack.come_back()
    message = await office.hears(ts, "This did not work")
    assert office.slack.buttons(message) == []
    await office.hears(ts, "recovered")
    await office.slack.connected()


async def test_a_long_run_shows_what_it_does_with_a_stop_button_and_ends_as_one_line(office: Office) -> None:
    ts = await office.asks(ADA, '[[call bookkeeper slow {"seconds": 2.5}]]')
    status = await office.hears(ts, "Working")
    assert office.slack.buttons(status) == ["Stop"]
    await office.becomes(status, "slow")
    await office.hears(ts, "Result:")
    await office.becomes(status, "Done")
    assert office.slack.buttons(status) == []
    assert office.told(ts)[0].ts == status.ts
    assert len(office.told(ts)) == 2


async def test_a_short_run_shows_only_its_answer(office: Office) -> None:
    ts = await office.asks(ADA, "[[say quick]]")
    await office.hears(ts, "quick")
    assert len(office.told(ts)) == 1


async def test_stop_stops_and_a_second_press_is_told(office: Office) -> None:
    ts = await office.asks(ADA, "[[sleep 30]] to be stopped")
    status = await office.hears(ts, "Working")
    delivery = await office.slack.click(ADA, status, "Stop")
    assert delivery.seconds < 3
    await office.hears(ts, "Stopped by Ada")
    await office.becomes(status, "Stopped")


async def test_only_those_who_may_stop_do(office: Office) -> None:
    place = "C0GENERAL"
    ts = await office.asks(ADA, f"<@{office.slack.bot_user}> [[sleep 3]]", place)
    status = await office.hears(ts, "Working", place)
    await office.slack.click("U0CAY", status, "Stop")
    await office.slack.until(lambda: office.whispers("U0CAY", place), "an answer")
    await office.hears(ts, "slept 3", place)


async def test_a_result_from_elsewhere_is_told_where_its_owner_wants_it(office: Office) -> None:
    cay = await office.served.as_person("Cay")
    made = (await cay.post("/api/threads", json={"text": "[[say told in Slack]]", "title": "By API"})).json()
    place = office.slack.dm("U0CAY")

    def told() -> Message | None:
        if place not in office.slack.channels:
            return None
        said = office.slack.messages(place)
        return next((m for m in said if "told in Slack" in office.slack.words(m)), None)

    message = await office.slack.until(told, "a message to Cay")
    assert message is not None
    assert "By API" in office.slack.words(message)
    await all_said(office)
    # A reply there goes on with that very thread.
    await office.slack.says("U0CAY", "[[say and answered]]", thread_ts=message.ts)
    thread = (await cay.get(f"/api/threads/{made['thread_id']}")).json()
    assert [m["text"] for m in thread["messages"]][-1:] != ["told in Slack"]


async def test_a_status_message_comes_again_after_everything_was_stopped_and_resumed(office: Office) -> None:
    ts = await office.asks(ADA, "[[sleep 20]] before the stop")
    status = await office.hears(ts, "Working")
    await office.slack.command(ADA, "/pizza stop all")
    await office.becomes(status, "Stopped")
    await office.slack.command(ADA, "/pizza resume")
    await office.asks(ADA, "[[sleep 2]] after it", thread_ts=ts)
    await office.slack.until(lambda: len(copies(office, "Working", ts)) == 1, "a new status message")
    await office.hears(ts, "slept 2")


async def test_an_answer_does_not_wait_for_the_repaint_of_its_status_message(office: Office) -> None:
    ts = await office.asks(ADA, "[[sleep 2]] hurry")
    status = await office.hears(ts, "Working")
    office.slack.faults_on["chat.update"] = [Fault(status=429, retry_after=2)] * 2
    await office.hears(ts, "slept 2")
    assert "Working" in office.slack.words(status)
    await office.becomes(status, "Done")


async def test_a_run_that_goes_on_after_a_decision_ends_with_all_its_steps(office: Office) -> None:
    ts = await office.asks(
        ADA,
        '[[calls bookkeeper [["slow", {"seconds": 1.5}], ["submit_expense", '
        '{"amount": 1, "note": "goes on"}], ["slow", {"seconds": 3}]]]]',
    )
    card = await office.card(ts)
    (status,) = await office.slack.until(lambda: copies(office, "Waiting for a decision", ts))
    await office.slack.click(ADA, card, "Approve")
    await office.hears(ts, "Result:")
    await office.becomes(status, "Done")
    assert "slow" in office.slack.words(status)
