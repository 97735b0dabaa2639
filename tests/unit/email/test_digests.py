"""Does a digest by mail show what can be decided, and do its numbers decide exactly that, all or nothing?"""

from __future__ import annotations

import itertools
import operator
import re
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import EmailMessage
from functools import partial
from typing import Any

import pytest

from tests.fakes.mail.taken import body
from tests.fakes.runtime import ledger_calls
from tests.unit.email.conftest import ADA, CAY, Post, comes, expense, until

pytestmark = pytest.mark.asyncio(loop_scope="package")

_names: Iterator[int] = itertools.count(1)


@dataclass(frozen=True)
class Listed:
    """A digest of Cay's, with the number and the thread of each expense that it lists."""

    mail: EmailMessage
    numbers: dict[str, int]
    threads: dict[str, str]


async def digest(post: Post, count: int, person: str = CAY) -> Listed:
    """Some expenses that wait for Cay, and the digest that lists them."""
    notes = [f"listed {next(_names)}." for _ in range(count)]
    for note in notes:
        await post.sends(person, expense(note), subject=f"About {note}")
        await post.asked(person, note)
    before = len(digests(post, person))
    response = await post.served.http.post("/api/triggers/digest:Cay/run")
    assert response.json()["state"] == "succeeded", response.text
    await comes(_count(post, person), lambda found: found > before)
    mail = digests(post, person)[-1]
    threads = {note: (await post.thread(note))["id"] for note in notes}
    return Listed(mail, {note: _number(body(mail), note) for note in notes}, threads)


def thread_at(found: Listed, number: int) -> str:
    """The thread of what stands under a number."""
    return next(found.threads[note] for note, at in found.numbers.items() if at == number)


def digests(post: Post, person: str = CAY) -> list[EmailMessage]:
    return [mail for mail in post.mails(person) if str(mail["Subject"]).startswith("Digest: ")]


def _count(post: Post, person: str) -> Any:
    async def look() -> int:
        return len(digests(post, person))

    return look


async def answered(post: Post, found: Listed, words: str) -> str:
    """What the first mail about that digest says that has these words."""

    def look() -> EmailMessage | None:
        about = [m for m in post.mails(CAY) if str(found.mail["Message-ID"]) in str(m["References"])]
        return next((mail for mail in about if words in body(mail)), None)

    return body(await until(look, lambda: f"{words!r} about {found.mail['Subject']}"))


def _number(text: str, note: str) -> int:
    """Under which number something stands in a mail."""
    above = text.partition(f"note: {note}")[0]
    return int(re.findall(r"^(\d+)\. ", above, re.MULTILINE)[-1])


async def states(post: Post, found: Listed) -> list[str]:
    return [(await post.action(thread))["state"] for thread in found.threads.values()]


def runs_with(post: Post, note: str) -> list[dict[str, Any]]:
    return [c["args"] for c in ledger_calls(post.served.home) if c["args"].get("note") == note]


async def clear(post: Post) -> None:
    """Nothing waits for Cay any more."""
    cay = await post.served.as_person("Cay")
    for action in (await cay.get("/api/actions?state=pending&limit=100")).json()["actions"]:
        await cay.post(f"/api/actions/{action['id']}/decision", json={"decision": "reject"})


async def test_a_digest_lists_what_waits_with_its_numbers_and_how_to_answer(post: Post) -> None:
    await clear(post)
    found = await digest(post, 2)
    text = body(found.mail)
    assert str(found.mail["Subject"]).startswith("Digest: 2 to decide")
    assert str(found.mail["Reply-To"]).startswith("pizza+r-")
    assert found.mail["In-Reply-To"] is None
    assert sorted(found.numbers.values()) == [1, 2]
    assert "    amount: 12.5" in text.splitlines()
    assert "For example: approve 1; reject 2: your reason" in text.splitlines()
    html = found.mail.get_body(("html",))
    assert html is not None
    assert "approve 1; reject 2: your reason" in html.get_content()


async def test_numbers_decide_what_stood_beside_them_and_the_answer_repeats_each(post: Post) -> None:
    await clear(post)
    found = await digest(post, 3)
    (one, two, three), numbers = found.numbers, found.numbers
    await post.answers(
        CAY,
        found.mail,
        f"Hi,\n\napprove {numbers[one]}, {numbers[three]}; reject {numbers[two]}: too dear\n\nCay",
    )
    said = await answered(post, found, "What you decided")
    assert re.findall(r"^(\d)\. .*: (approved|rejected)\.", said, re.MULTILINE) == sorted(
        (str(numbers[note]), state)
        for note, state in ((one, "approved"), (two, "rejected"), (three, "approved"))
    )
    assert "rejected. Reason: too dear" in said
    for note, state in ((one, "approved"), (two, "rejected"), (three, "approved")):
        action = await post.decided(found.threads[note], state)
        assert (action["decided_by"], action["decided_via"]) == ("Cay", "email")
    assert (await post.action(found.threads[two]))["reason"] == "too dear"
    for note in (one, three):
        await comes(_ran(post, note), lambda calls: len(calls) == 1)
    assert runs_with(post, two) == []


def _ran(post: Post, note: str) -> Any:
    async def look() -> list[dict[str, Any]]:
        return runs_with(post, note)

    return look


async def test_one_unclear_part_changes_nothing_and_is_asked_about(post: Post) -> None:
    await clear(post)
    found = await digest(post, 2)
    before = len(asked_back(post))
    await post.answers(CAY, found.mail, "approve 1; reject 2?")
    await comes(_asked(post), lambda count: count > before)
    assert await states(post, found) == ["pending", "pending"]
    again = asked_back(post)[-1]
    assert "Nothing was decided" in body(again)
    # The question itself can be answered.
    await post.answers(CAY, again, "approve 1")
    await post.decided(thread_at(found, 1), "approved")


def asked_back(post: Post) -> list[EmailMessage]:
    return [mail for mail in post.mails(CAY) if "Which numbers do you decide" in body(mail)]


def _asked(post: Post) -> Any:
    async def look() -> int:
        return len(asked_back(post))

    return look


async def test_the_last_question_about_a_digest_says_so_and_where_to_decide(post: Post) -> None:
    await clear(post)
    found = await digest(post, 1)
    before = len(asked_back(post))
    for count in (1, 2):
        await post.answers(CAY, found.mail, "approve 1?")
        await comes(_asked(post), partial(operator.eq, before + count))
    assert "no further question" not in body(asked_back(post)[-1])
    await post.answers(CAY, found.mail, "approve 1?")
    last = body(await post.gets(CAY, "Please decide what the digest lists on its page"))
    assert "no further question" in last
    assert "/?view=action" in last
    await post.answers(CAY, found.mail, "approve 1?")
    await post.remarks("was asked about often enough")
    assert await states(post, found) == ["pending"]


async def test_who_was_first_counts_and_the_other_numbers_still_do(post: Post) -> None:
    await clear(post)
    found = await digest(post, 2)
    first, second = thread_at(found, 1), thread_at(found, 2)
    action = await post.action(first)
    await post.served.http.post(f"/api/actions/{action['id']}/decision", json={"decision": "reject"})
    await post.answers(CAY, found.mail, "approve 1, 2")
    said = await answered(post, found, "What you decided")
    assert "rejected by Ada (api) before. Your word changed nothing." in " ".join(said.split())
    await post.decided(second, "approved")
    assert (await post.action(first))["state"] == "rejected"


async def test_the_same_mail_twice_decides_once_and_is_answered_once(post: Post) -> None:
    await clear(post)
    found = await digest(post, 1)
    name = f"<twice.{next(_names)}@example.com>"
    for _ in range(2):
        await post.answers(CAY, found.mail, "approve 1", message_id=name)
    await post.decided(next(iter(found.threads.values())), "approved")
    (note,) = found.numbers
    await comes(_ran(post, note), lambda calls: len(calls) == 1)

    def answers() -> list[EmailMessage]:
        return [m for m in post.mails(CAY) if "What you decided" in body(m) and name in str(m["References"])]

    await until(lambda: answers() or None, lambda: str(found.mail["Message-ID"]))
    await comes(lambda: _waits_to_be_sent(post), lambda count: count == 0)
    assert len(answers()) == 1


async def test_a_digest_of_somebody_else_decides_nothing(post: Post) -> None:
    await clear(post)
    found = await digest(post, 1)
    await post.answers(ADA, found.mail, "approve 1")
    await post.remarks("answers a question that was put to somebody else")
    assert await states(post, found) == ["pending"]


async def test_words_in_the_quote_decide_nothing(post: Post) -> None:
    await clear(post)
    found = await digest(post, 2)
    before = len(asked_back(post))
    await post.answers(CAY, found.mail, "")
    await comes(_asked(post), lambda count: count > before)
    assert await states(post, found) == ["pending", "pending"]


async def test_anything_else_goes_to_the_agent_which_knows_the_digest(post: Post) -> None:
    await clear(post)
    found = await digest(post, 1)
    (note,) = found.numbers
    question = f"Tell me why the expense with number one is needed at all. [[say about {note} indeed]]"
    await post.answers(CAY, found.mail, question)
    answer = await post.gets(CAY, f"about {note} indeed")
    assert answer["In-Reply-To"] is not None
    assert await states(post, found) == ["pending"]
    thread = await post.thread(f"about {note} indeed")
    assert thread["title"] == "Digest"
    assert any(question in message["text"] for message in thread["messages"])


async def test_a_number_is_one_of_the_list_it_answers_after_a_talk_about_an_older_list_too(
    post: Post,
) -> None:
    await clear(post)
    older = await digest(post, 2)
    await post.answers(CAY, older.mail, "Why is it so dear? [[say because of the ink]]")
    answer = await post.gets(CAY, "because of the ink")
    await clear(post)
    newer = await digest(post, 2)
    await post.answers(CAY, answer, "reject 1: of no list [[say that is about no list]]")
    await post.gets(CAY, "that is about no list")
    assert await states(post, newer) == ["pending", "pending"]
    await post.answers(CAY, newer.mail, "reject 2: not this one")
    action = await post.decided(thread_at(newer, 2), "rejected")
    assert action["reason"] == "not this one"
    assert (await post.action(thread_at(newer, 1)))["state"] == "pending"


async def test_snooze_puts_off_and_says_until_when(post: Post) -> None:
    await clear(post)
    found = await digest(post, 2)
    await post.answers(CAY, found.mail, "approve 1; snooze 2 to Mon")
    said = await answered(post, found, "What you decided")
    assert "put off until Monday" in said
    await post.decided(thread_at(found, 1), "approved")
    assert (await post.action(thread_at(found, 2)))["state"] == "pending"


async def test_nothing_to_tell_is_no_mail(post: Post) -> None:
    dan = await post.served.as_person("Dan")
    for thread in (await dan.get("/api/threads?view=unread&limit=100")).json()["threads"]:
        await dan.patch(f"/api/threads/{thread['id']}", json={"unread": False})
    before = len(post.mails("dan@example.com"))
    ran = (await dan.post("/api/triggers/digest:Dan/run")).json()
    assert (ran["state"], ran["error"]) == ("skipped", "nothing to tell")
    assert len(post.mails("dan@example.com")) == before


async def _waits_to_be_sent(post: Post) -> int:
    outbox = (await post.served.http.get("/api/status")).json()["outbox"]
    return int(outbox["pending"]) + int(outbox["unknown"])
