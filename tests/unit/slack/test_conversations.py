"""Does what people write in Slack become work, once, in the right thread, and nothing else?"""

from __future__ import annotations

import pytest

from tests.fakes.slack import Fault
from tests.unit.slack.conftest import ADA, BOT, CAY, EVE, GENERAL, Office

pytestmark = pytest.mark.asyncio(loop_scope="package")


async def test_a_direct_message_is_answered_in_its_thread(office: Office) -> None:
    ts = await office.asks(ADA, "[[say Hello from the agent]]")
    answer = await office.hears(ts, "Hello from the agent")
    assert answer.thread_ts == ts


async def test_each_direct_message_begins_a_thread_of_its_own(office: Office) -> None:
    one = await office.asks(ADA, "[[say first of two]]")
    two = await office.asks(ADA, "[[say second of two]]")
    await office.hears(one, "first of two")
    await office.hears(two, "second of two")
    assert len({(await office.thread(f"{n} of two"))["id"] for n in ("first", "second")}) == 2


async def test_a_reply_goes_on_with_its_thread(office: Office) -> None:
    ts = await office.asks(ADA, "[[say alpha to begin]]")
    await office.hears(ts, "alpha to begin")
    await office.asks(ADA, "[[say alpha to go on]]", thread_ts=ts)
    await office.hears(ts, "alpha to go on")
    thread = await office.thread("alpha to go on")
    assert [m["role"] for m in thread["messages"]] == ["user", "assistant", "user", "assistant"]


async def test_a_reply_that_is_also_shown_in_the_channel_is_a_message(office: Office) -> None:
    ts = await office.asks(ADA, f"<@{office.slack.bot_user}> [[say broadcast begun]]", GENERAL)
    await office.hears(ts, "broadcast begun", GENERAL)
    await office.asks(ADA, "[[say broadcast heard]]", GENERAL, thread_ts=ts, subtype="thread_broadcast")
    await office.hears(ts, "broadcast heard", GENERAL)


async def test_a_mention_arrives_as_two_events_and_is_one_message(office: Office) -> None:
    ts = await office.asks(CAY, f"<@{office.slack.bot_user}> [[say mentioned once]]", GENERAL)
    await office.hears(ts, "mentioned once", GENERAL)
    thread = await office.thread("mentioned once")
    assert [m["text"] for m in thread["messages"] if m["role"] == "user"] == ["[[say mentioned once]]"]


async def test_people_who_are_known_go_on_in_a_channel_thread_without_a_mention(office: Office) -> None:
    ts = await office.asks(ADA, f"<@{office.slack.bot_user}> [[say begun by Ada]]", GENERAL)
    await office.hears(ts, "begun by Ada", GENERAL)
    await office.asks(CAY, "[[say gone on by Cay]]", GENERAL, thread_ts=ts)
    await office.hears(ts, "gone on by Cay", GENERAL)


async def test_talk_that_is_not_for_us_is_left_alone(office: Office) -> None:
    before = len(await office.inbox())
    ts = await office.asks(ADA, "Lunch?", GENERAL)
    await office.asks(CAY, "Yes!", GENERAL, thread_ts=ts)
    assert office.slack.deliveries[-1].acked
    assert len(await office.inbox()) == before
    assert office.told(ts, GENERAL) == []


async def test_what_is_delivered_again_is_taken_once(office: Office) -> None:
    ts = await office.asks(ADA, "[[say taken once]]")
    delivery = office.slack.deliveries[-1]
    again = [await office.slack.redeliver(delivery) for _ in range(3)]
    assert all(d.acked for d in again)
    await office.hears(ts, "taken once")
    thread = await office.thread("taken once")
    assert [m["role"] for m in thread["messages"]] == ["user", "assistant"]


async def test_a_stranger_is_told_once_how_to_be_let_in(office: Office) -> None:
    await office.asks(EVE, "Let me in")
    await office.asks(EVE, "Please!")
    place = office.slack.dm(EVE)
    await office.slack.until(lambda: [m for m in office.slack.messages(place) if m.user != EVE])
    await office.asks(EVE, "Hello?")
    await office.slack.event({"type": "message", "channel": place, "user": EVE, "ts": "1.1", "text": "x"})
    said = [office.slack.words(m) for m in office.slack.messages(place) if m.user != EVE]
    assert len(said) == 1
    assert "Ask Ada" in said[0]
    assert EVE in said[0]


async def test_a_stranger_who_talks_in_a_thread_of_ours_is_no_part_of_it(office: Office) -> None:
    ts = await office.asks(ADA, f"<@{office.slack.bot_user}> [[say our thread]]", GENERAL)
    await office.hears(ts, "our thread", GENERAL)
    await office.asks(EVE, "[[say from a stranger]]", GENERAL, thread_ts=ts)
    thread = await office.thread("our thread")
    assert [m["author"] for m in thread["messages"] if m["role"] == "user"] == ["Ada"]


async def test_what_is_written_while_a_run_works_is_kept_and_the_sender_is_told(office: Office) -> None:
    ts = await office.asks(ADA, "[[sleep 1]]")
    await office.asks(ADA, "[[say kept words]]", thread_ts=ts)
    await office.whispered(ADA, "Kept. I take it up as soon as")
    await office.hears(ts, "slept 1")
    await office.hears(ts, "kept words")


async def test_stop_written_in_a_thread_stops_its_run(office: Office) -> None:
    ts = await office.asks(ADA, "[[sleep 30]]")
    await office.slack.until(lambda: office.told(ts), "a status message")
    await office.asks(ADA, "Stop!", thread_ts=ts)
    await office.hears(ts, "Stopped by Ada")


@pytest.mark.parametrize(
    "event",
    [
        {"subtype": "message_changed", "message": {"text": "[[say edited]]", "user": ADA}, "hidden": True},
        {"subtype": "message_deleted", "deleted_ts": "1.0"},
        {"subtype": "channel_join", "user": ADA, "text": "joined"},
        {"user": ADA, "text": "", "bot_id": "B0OTHER"},
        {"bot_id": "B0OTHER", "subtype": "bot_message", "text": "beep"},
    ],
)
async def test_edits_deletions_joins_and_bots_are_acknowledged_and_do_nothing(
    office: Office, event: dict[str, object]
) -> None:
    before = len(await office.inbox())
    sent = {"type": "message", "channel": office.slack.dm(ADA), "channel_type": "im", "ts": "2.2"} | event
    assert (await office.slack.event(sent)).acked
    assert len(await office.inbox()) == before


async def test_our_own_messages_are_never_heard(office: Office) -> None:
    before = len(await office.inbox())
    own = {"user": office.slack.bot_user, "bot_id": office.slack.bot_id, "text": "[[say me]]"}
    place = {"channel": office.slack.dm(ADA), "channel_type": "im", "ts": "3.3"}
    assert (await office.slack.event({"type": "message", **place, **own})).acked
    assert len(await office.inbox()) == before


async def test_an_allowed_bot_is_answered_until_it_talks_in_circles(office: Office) -> None:
    ts = await office.asks(BOT, "[[say round 0]]", bot_id="B0ROBOT", subtype="bot_message")
    await office.hears(ts, "round 0", user=BOT)
    for number in range(1, 10):
        await office.asks(BOT, f"[[say round {number}]]", thread_ts=ts, bot_id="B0ROBOT")
        await office.hears(ts, f"round {number}", user=BOT)
    await office.asks(BOT, "[[say one too many]]", thread_ts=ts, bot_id="B0ROBOT")
    assert office.slack.deliveries[-1].acked
    thread = await office.thread("round 9")
    assert "one too many" not in str(thread["messages"])


async def test_names_marks_and_links_reach_the_agent_as_people_read_them(office: Office) -> None:
    office.slack.add_person("U0GUS", "gus", profile={"display_name": "Gus"})
    text = (
        f"Ask <@{CAY}> and <@U0GUS> in <#C1|sales>: is 3 &lt; 4 &amp; true? "
        "<https://example.com/a?b=1&amp;c=2|the page> <https://plain.example> <!here>"
    )
    await office.asks(ADA, text)
    thread = await office.thread("is 3 < 4 & true?")
    (asked,) = [m["text"] for m in thread["messages"] if m["role"] == "user"]
    assert asked == (
        "Ask @Cay and @Gus in #sales: is 3 < 4 & true? "
        "the page (https://example.com/a?b=1&c=2) https://plain.example @here"
    )


async def test_files_come_with_their_message(office: Office) -> None:
    content = bytes(range(256)) * 10
    ts = await office.asks(ADA, "[[say got the file]]", files=[("plan ü.bin", content)])
    await office.hears(ts, "got the file")
    thread = await office.thread("got the file")
    (file,) = thread["messages"][0]["attachments"]
    assert file["filename"] == "plan ü.bin"
    stored = await office.served.http.get(f"/api/threads/{thread['id']}/attachments/{file['id']}")
    assert stored.content == content


async def test_a_file_without_words_is_a_message(office: Office) -> None:
    ts = await office.asks(ADA, "", files=[("only.txt", b"[[say nothing]]")])
    await office.slack.until(lambda: office.told(ts), "an answer")


async def test_a_message_with_files_is_acknowledged_before_they_are_fetched(office: Office) -> None:
    office.slack.faults_on["download"] = [Fault(status=500)] * 2
    ts = await office.asks(ADA, "[[say fetched at last]]", files=[("slow.txt", b"slow")])
    assert office.slack.deliveries[-1].seconds < 1
    await office.hears(ts, "fetched at last")
    assert (await office.thread("fetched at last"))["messages"][0]["attachments"]


async def test_a_file_that_cannot_be_had_is_told_and_the_message_taken(office: Office) -> None:
    office.slack.faults_on["download"] = [Fault(status=404)]
    ts = await office.asks(ADA, "[[say without it]]", files=[("gone.txt", b"gone")])
    await office.hears(ts, "without it")
    await office.whispered(ADA, "gone.txt could not be fetched")


async def test_an_empty_mention_is_told_what_to_do(office: Office) -> None:
    await office.asks(ADA, f"<@{office.slack.bot_user}>", GENERAL)
    await office.whispered(ADA, "write what should be done", GENERAL)


async def test_opening_the_conversation_offers_something_to_ask(office: Office) -> None:
    office.slack.prompts.clear()
    await office.slack.opens_home(ADA, "messages")
    place = office.slack.dm(ADA)
    await office.slack.until(lambda: office.slack.prompts.get((place, "")))
    assert 1 <= len(office.slack.prompts[place, ""]) <= 4


async def test_a_run_in_a_direct_message_shows_that_it_works_and_gets_a_title(office: Office) -> None:
    ts = await office.asks(ADA, "[[sleep 0.6]]")
    place = office.slack.dm(ADA)
    await office.slack.until(lambda: office.slack.statuses.get((place, ts)), "a hint")
    await office.hears(ts, "slept 0.6")
    await office.slack.until(lambda: office.slack.titles.get((place, ts)), "a title")


async def test_stop_of_somebody_elses_work_is_refused_and_is_no_message(office: Office) -> None:
    ts = await office.asks(ADA, f"<@{office.slack.bot_user}> [[sleep 2]] not theirs", GENERAL)
    await office.hears(ts, "Working", GENERAL)
    await office.asks(CAY, "stop", GENERAL, thread_ts=ts)
    await office.whispered(CAY, "Only Ada or an owner may stop this", GENERAL)
    await office.hears(ts, "slept 2", GENERAL)
    assert len([m for m in (await office.thread("slept 2"))["messages"] if m["role"] == "user"]) == 1


async def test_the_token_goes_to_no_other_host(office: Office) -> None:
    asked = {"type": "message", "channel": office.slack.dm(ADA), "channel_type": "im", "user": ADA}
    file = {"id": "F1", "name": "x.txt", "mimetype": "text/plain", "url_private": "http://evil.example/x"}
    ts = await office.asks(ADA, "[[say first]]")
    event = asked | {"subtype": "file_share", "ts": "1.1", "thread_ts": ts, "text": "[[say no token]]"}
    await office.slack.event(event | {"files": [file]})
    await office.whispered(ADA, "not kept in Slack")
