"""Is a mail a task, and does a conversation by mail go on as one?"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.fakes.mail.taken import body
from tests.unit.email.conftest import (
    ADA,
    AGENT,
    BOB,
    CAY,
    EVE,
    Post,
    addresses,
    comes,
    expense,
    until,
)

pytestmark = pytest.mark.asyncio(loop_scope="package")


async def said_by_people(post: Post, words: str) -> list[str]:
    thread = await post.thread(words)
    return [m["text"] for m in thread["messages"] if m["role"] == "user"]


async def is_stopped(post: Post) -> bool:
    return bool((await post.served.http.get("/api/status")).json()["stopped"])


async def told_after(post: Post, seen: int, words: str) -> None:
    """Wait until Ada is told these words in a mail that came after so many."""
    await until(lambda: any(words in body(m) for m in post.mails(ADA)[seen:]) or None, lambda: words)


@asynccontextmanager
async def going_on_afterwards(post: Post) -> AsyncIterator[None]:
    """Whatever happens in between, the other tests' work goes on."""
    try:
        yield
    finally:
        await post.served.http.post("/api/resume")


async def test_a_mail_begins_a_task_and_the_answer_comes_as_a_mail(post: Post) -> None:
    sent = await post.sends(ADA, "[[say the report is ready]]", subject="October report")
    answer = await post.gets(ADA, "the report is ready")
    assert answer["Subject"] == "Re: October report"
    assert answer["In-Reply-To"] == sent
    assert answer["Auto-Submitted"] == "auto-replied"
    assert addresses(answer, "From") == [AGENT]
    assert answer.get_body(("html",)) is not None
    assert (await post.thread("the report is ready"))["title"] == "October report"


async def test_an_answer_continues_its_conversation_and_only_what_is_new_is_handed_on(post: Post) -> None:
    await post.sends(ADA, "[[say first of two]]", subject="Twice")
    first = await post.gets(ADA, "first of two")
    await post.answers(ADA, first, "[[say second of two]]")
    second = await post.gets(ADA, "second of two")
    assert await said_by_people(post, "second of two") == ["[[say first of two]]", "[[say second of two]]"]
    assert str(second["References"]).split()[0] == str(first["References"]).split()[0]
    assert second["Subject"] == "Re: Twice"


async def test_an_answer_without_its_token_is_known_by_the_mail_that_it_names(post: Post) -> None:
    await post.sends(ADA, "[[say before the token was lost]]", subject="No token")
    first = await post.gets(ADA, "before the token was lost")
    await post.sends(ADA, "[[say after the token was lost]]", answers=first)
    await post.gets(ADA, "after the token was lost")
    assert len(await said_by_people(post, "after the token was lost")) == 2


async def test_a_new_mail_with_an_old_subject_begins_a_conversation_of_its_own(post: Post) -> None:
    await post.sends(ADA, "[[say one subject]]", subject="The same subject")
    await post.gets(ADA, "one subject")
    await post.sends(ADA, "[[say another begin]]", subject="Re: The same subject")
    await post.gets(ADA, "another begin")
    assert len(await said_by_people(post, "another begin")) == 1


async def test_what_was_forwarded_reaches_the_agent(post: Post) -> None:
    text = (
        "[[say forwarded]] Please look at this.\n\n---------- Forwarded message ---------\n"
        "From: Supplier <supplier@example.org>\nDate: Mon, Mar 2, 2026\nSubject: Late delivery\n"
        f"To: <{ADA}>\n\nThe paper comes on Friday.\n"
    )
    await post.sends(ADA, text, subject="Fwd: Late delivery")
    await post.gets(ADA, "forwarded")
    (said,) = await said_by_people(post, "forwarded")
    assert "The paper comes on Friday." in said


async def test_files_come_with_their_mail(post: Post) -> None:
    await post.sends(ADA, "[[say got the file]]", files=[("Rechnung März.pdf", b"%PDF")])
    await post.gets(ADA, "got the file")
    thread = await post.thread("got the file")
    (attachment,) = thread["messages"][0]["attachments"]
    assert attachment["filename"] == "Rechnung März.pdf"


async def test_a_mail_that_comes_again_is_taken_once(post: Post) -> None:
    for _ in range(2):
        await post.sends(ADA, "[[say only once]]", subject="Once", message_id="<once@example.com>")
    await post.gets(ADA, "only once")
    await asyncio.sleep(0.3)
    assert len([t for t in await post.threads() if t["title"] == "Once"]) == 1
    assert len([m for m in post.mails(ADA) if "only once" in body(m)]) == 1


BOUNCE_HEADERS = [("X-Failed-Recipients", "nobody@example.com")]


@pytest.mark.parametrize(
    ("first", "more"),
    [
        pytest.param(EVE, {}, id="by somebody unknown"),
        pytest.param(EVE, {"headers": BOUNCE_HEADERS}, id="in a report"),
        pytest.param(ADA, {"results": "dmarc=fail"}, id="by a forger"),
        pytest.param(CAY, {}, id="by a colleague"),
    ],
)
async def test_a_message_id_that_was_used_before_takes_nothing_from_its_mail(
    post: Post, first: str, more: dict[str, object], request: pytest.FixtureRequest
) -> None:
    words = f"not lost {request.node.callspec.id}"
    name = f"<{words.replace(' ', '.')}@example.com>"
    await post.sends(first, "[[say something else]]", message_id=name, **more)  # type: ignore[arg-type]
    await post.sends(ADA, f"[[say {words}]]", subject="Mine", message_id=name)
    await post.gets(ADA, words)
    assert words not in "".join(map(body, post.mails(first) if first != ADA else []))


async def test_a_colleague_with_the_name_of_a_conversation_does_not_get_its_answers(post: Post) -> None:
    root = await post.sends(ADA, "[[say between us]]", subject="Between us")
    first = await post.gets(ADA, "between us")
    await post.sends(CAY, "[[say taken over]]", subject="Between them", message_id=root)
    await post.gets(CAY, "taken over")
    await post.sends(CAY, "[[say taken over again]]", message_id=str(first["Message-ID"]))
    await post.gets(CAY, "taken over again")
    await post.sends(ADA, "[[say still between us]]", answers=first)
    answer = await post.gets(ADA, "still between us")
    assert addresses(answer, "To") == [ADA]
    assert await said_by_people(post, "still between us") == [
        "[[say between us]]",
        "[[say still between us]]",
    ]
    assert not [m for m in post.mails(CAY) if "between us" in body(m)]


@pytest.mark.parametrize(
    ("author", "more", "remark"),
    [
        (ADA, {"results": None}, "sender that is not verified"),
        (ADA, {"results": "dmarc=fail"}, "sender that is not verified"),
        (EVE, {}, "somebody who is not in [[people]]"),
        (ADA, {"headers": [("Auto-Submitted", "auto-replied")]}, "written by no person: auto"),
        (ADA, {"headers": [("List-Id", "<talk.example.com>")]}, "written by no person: list"),
    ],
)
async def test_what_no_known_and_verified_person_wrote_begins_nothing_and_is_never_answered(
    post: Post, author: str, more: dict[str, object], remark: str
) -> None:
    before, sent = len(await post.threads()), len(post.sink.mails)
    await post.sends(author, "[[say never]]", **more)  # type: ignore[arg-type]
    await post.remarks(remark)
    await asyncio.sleep(0.2)
    assert len(await post.threads()) == before
    assert len(post.sink.mails) == sent


async def test_mail_to_another_address_is_refused_at_the_door(post: Post) -> None:
    with pytest.raises(Exception, match=r"5\.1\.1"):
        await post.brings(b"Subject: x\r\n\r\nx\r\n", EVE, ["postmaster@bot.example"])


async def test_everybody_known_on_a_mail_gets_its_answer_and_others_are_named(post: Post) -> None:
    await post.sends(ADA, "[[say for all of us]]", cc=[BOB, "supplier@example.org"])
    answer = await post.gets(ADA, "for all of us")
    assert addresses(answer, "To") == [ADA]
    assert addresses(answer, "Cc") == [BOB]
    assert "Not sent to supplier@example.org" in body(answer).replace("`", "")
    assert [m for m in post.sink.mails if "supplier@example.org" in m.recipients] == []


async def test_who_was_on_the_mails_may_go_on_and_nobody_else(post: Post) -> None:
    await post.sends(ADA, "[[say begun by Ada]]", cc=[CAY], subject="Shared")
    answer = await post.gets(CAY, "begun by Ada")
    await post.answers(CAY, answer, "[[say gone on by Cay]]", cc=[ADA])
    await post.gets(ADA, "gone on by Cay")
    assert len(await said_by_people(post, "gone on by Cay")) == 2
    await post.answers("dan@example.com", answer, "[[say begun by Dan]]")
    await post.gets("dan@example.com", "begun by Dan")
    assert len(await said_by_people(post, "begun by Dan")) == 1


async def test_what_is_written_while_a_run_works_is_kept_and_its_sender_is_told(post: Post) -> None:
    await post.sends(ADA, "[[say ready for more]]", subject="Busy")
    first = await post.gets(ADA, "ready for more")
    await post.answers(ADA, first, "[[sleep 1.5]]")
    await post.answers(ADA, first, "[[say after the nap]]")
    await post.gets(ADA, "Your message is kept")
    await post.gets(ADA, "after the nap")


async def test_stop_stops(post: Post) -> None:
    await post.sends(ADA, "[[say to be stopped soon]]", subject="Stop me")
    first = await post.gets(ADA, "to be stopped soon")
    await post.answers(ADA, first, "[[sleep 30]]")
    await asyncio.sleep(0.3)
    await post.answers(ADA, first, "Stop.")
    await post.gets(ADA, "Stopped by Ada")


async def test_a_stop_that_comes_again_after_a_crash_is_no_task(post: Post) -> None:
    await post.sends(ADA, "[[say to be stopped once]]", subject="Stop me once")
    first = await post.gets(ADA, "to be stopped once")
    await post.answers(ADA, first, "[[sleep 30]]")
    thread = await post.thread("Stop me once")
    await post.served.wait(thread["id"], "running")
    await post.answers(ADA, first, "Stop.", message_id="<stop@example.com>")
    await post.served.wait(thread["id"], "stopped")
    await post.served.doors.forget("email", "taken/")  # as if killed before it was noted that it was taken
    await post.answers(ADA, first, "Stop.", message_id="<stop@example.com>")
    assert "Stop." not in await said_by_people(post, "Stop me once")
    assert (await post.thread("Stop me once"))["state"] == "stopped"


async def test_nobody_is_first_with_the_message_id_of_another_person(post: Post) -> None:
    await post.sends(BOB, "[[say told by Bob]]", message_id="<taken@example.com>")
    await post.gets(BOB, "told by Bob")
    await post.sends(ADA, "[[say told by Ada]]", message_id="<taken@example.com>")
    await post.gets(ADA, "told by Ada")


async def test_nobody_takes_over_the_name_of_a_mail_of_ours(post: Post) -> None:
    await post.sends(ADA, "[[say of Ada's thread]]", subject="Ada's own")
    answer = await post.gets(ADA, "of Ada's thread")
    await post.sends(BOB, "[[say of Bob's thread]]", message_id=str(answer["Message-ID"]))
    await post.gets(BOB, "of Bob's thread")
    await post.sends(ADA, "[[say goes on in hers]]", answers=answer)
    await post.gets(ADA, "goes on in hers")
    assert await said_by_people(post, "goes on in hers") == [
        "[[say of Ada's thread]]",
        "[[say goes on in hers]]",
    ]


async def test_a_result_from_elsewhere_comes_by_mail_and_can_be_answered(post: Post) -> None:
    cay = await post.served.as_person("Cay")
    made = (await cay.post("/api/threads", json={"text": "[[say made by API]]", "title": "By API"})).json()
    told = await post.gets(CAY, "made by API")
    assert told["Subject"] == "By API"
    assert told["Auto-Submitted"] == "auto-generated"
    await post.answers(CAY, told, "[[say answered by mail]]")
    again = await post.gets(CAY, "answered by mail")
    assert again["In-Reply-To"] is not None
    thread = (await cay.get(f"/api/threads/{made['thread_id']}")).json()
    assert "[[say answered by mail]]" in [m["text"] for m in thread["messages"]]


@pytest.mark.parametrize("word", ["Stop everything", "stop!"])
async def test_an_owner_stops_everything_by_mail_and_answers_to_go_on(post: Post, word: str) -> None:
    async with going_on_afterwards(post):
        await post.sends(ADA, word, subject=f"Wait, {word}")
        told = await post.gets(ADA, f"Re: Wait, {word}")
        assert "Stopped by Ada" in body(told)
        assert await is_stopped(post)
        seen = len(post.mails(ADA))
        await post.answers(ADA, told, "Resume")
        await comes(lambda: is_stopped(post), lambda stopped: not stopped)
        await told_after(post, seen, "Everything goes on")
    assert not [m for m in post.mails(ADA) if "You said" in body(m) and "top" in body(m)]


async def test_a_word_to_stop_that_nobody_was_free_to_begin_is_no_task_after_resume(post: Post) -> None:
    async with going_on_afterwards(post):
        await post.served.http.post("/api/stop")
        await post.sends(ADA, "Stop everything", subject="Nobody is free")
        assert "Stopped by Ada" in body(await post.gets(ADA, "Re: Nobody is free"))
    await post.sends(ADA, "[[say what came after]]")
    await post.gets(ADA, "what came after")
    assert (await post.thread("Nobody is free"))["state"] == "stopped"


async def test_a_word_to_stop_that_comes_again_after_a_crash_stops_nothing_more(post: Post) -> None:
    async with going_on_afterwards(post):
        await post.sends(ADA, "Stop everything", subject="Again", message_id="<again@example.com>")
        told = await post.gets(ADA, "Re: Again")
        await post.served.http.post("/api/resume")
        await post.answers(ADA, told, "[[sleep 1.25]] after all")
        await post.served.doors.forget("email", "taken/")  # as if killed before it was noted that it was
        await post.sends(ADA, "Stop everything", subject="Again", message_id="<again@example.com>")
        await post.gets(ADA, "slept 1.25")
        assert not await is_stopped(post)


@pytest.mark.parametrize("state", ["idle", "running", "waiting"])
async def test_a_word_to_stop_in_a_conversation_is_no_task_in_it(post: Post, state: str) -> None:
    words = {
        "idle": "[[say at rest]]",
        "running": "[[sleep 30]]",
        "waiting": expense(f"stopped while {state}"),
    }
    await post.sends(ADA, f"[[say stop me {state}]]", subject=f"Stop while {state}")
    first = await post.gets(ADA, f"stop me {state}")
    thread = (await post.thread(f"Stop while {state}"))["id"]
    await post.answers(ADA, first, words[state])
    await post.served.wait(thread, state)
    async with going_on_afterwards(post):
        seen = len(post.mails(ADA))
        await post.answers(ADA, first, "Stop everything")
        await told_after(post, seen, "Everything is stopped")
        assert await is_stopped(post)
    after = (await post.served.http.get(f"/api/threads/{thread}")).json()
    assert after["state"] == {"idle": "idle", "running": "stopped", "waiting": "waiting"}[state]
    assert not [m for m in after["messages"] if "Stop everything" in m["text"]]


async def test_stop_in_a_new_mail_of_anybody_else_is_a_message(post: Post) -> None:
    await post.sends(CAY, "Stop", subject="A word")
    await post.gets(CAY, "You said")
    assert not (await post.served.http.get("/api/status")).json()["stopped"]
