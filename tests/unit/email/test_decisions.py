"""Does a clear answer by mail decide, an unclear one never, and is everybody told what was understood?"""

from __future__ import annotations

import asyncio
import json
import re
from datetime import timedelta
from email.message import EmailMessage

import pytest

from tests.fakes.mail.taken import body
from tests.fakes.runtime import ledger_calls
from tests.unit.email.conftest import ADA, AGENT, BOB, CAY, EVE, Post, addresses, comes, expense, invoice

pytestmark = pytest.mark.asyncio(loop_scope="package")


async def asks(
    post: Post, note: str, author: str = ADA, words: str | None = None
) -> tuple[str, EmailMessage]:
    """A thread that waits for a decision, and the mail that asks for it."""
    await post.sends(author, words or expense(note), subject=f"About {note}")
    question = await post.asked(author, note)
    return (await post.thread(note))["id"], question


def _heading(mail: EmailMessage) -> str:
    """What stands largest in the HTML part."""
    part = mail.get_body(("html",))
    assert part is not None
    found = re.search(r"<h1[^>]*>(.*?)</h1>", str(part.get_content()), re.DOTALL)
    assert found is not None
    return found[1]


async def test_the_mail_that_asks_shows_everything_and_how_to_answer(post: Post) -> None:
    _, question = await asks(post, "as asked")
    assert question["Subject"] == "[Action] submit_expense: About as asked"
    assert str(question["Reply-To"]).startswith("pizza+r-")
    lines = body(question).splitlines()
    assert lines[0] == "=== Please write your answer above this line ==="
    begin, end = lines.index("[[ begin values ]]"), lines.index("[[ end values ]]")
    assert {"amount: 12.5", "note: as asked"} <= set(lines[begin + 1 : end])
    assert addresses(question, "To") == [ADA]
    (sent,) = [m for m in post.sink.mails if str(question["Message-ID"]).encode() in m.content]
    assert sent.sender.startswith("pizza+b-")


async def test_approve_runs_what_was_shown_and_the_answer_says_what_was_understood(post: Post) -> None:
    thread, question = await asks(post, "approved by mail")
    await post.answers(ADA, question, "Approve")
    action = await post.decided(thread, "approved")
    assert (action["decided_by"], action["decided_via"]) == ("Ada", "email")
    receipt = await post.gets(ADA, "Approved: submit_expense")
    assert body(receipt).startswith("Approved: submit_expense\n---")
    assert "It runs with exactly these values." in body(receipt)
    assert {"amount: 12.5", "note: approved by mail", "Question: Run submit_expense?"} <= set(
        body(receipt).splitlines()
    )
    assert _heading(receipt) == "Approved: submit_expense"
    assert receipt["Subject"] == "Re: About approved by mail"
    assert not body(receipt).startswith("===")
    await post.gets(ADA, "EUR for approved by mail")
    assert [c for c in ledger_calls(post.served.home) if c["args"].get("note") == "approved by mail"]


async def test_an_answer_to_the_receipt_goes_on_with_the_conversation(post: Post) -> None:
    thread, question = await asks(post, "receipt answered")
    await post.answers(ADA, question, "Approve")
    await post.decided(thread, "approved")
    await post.answers(ADA, await post.gets(ADA, "note: receipt answered"), "[[say after the receipt]]")
    await post.gets(ADA, "after the receipt")
    assert (await post.thread("receipt answered"))["id"] == thread


async def test_reject_tells_the_agent_the_reason(post: Post) -> None:
    thread, question = await asks(post, "rejected by mail")
    await post.answers(ADA, question, "Reject: too expensive")
    assert (await post.decided(thread, "rejected"))["reason"] == "too expensive"
    assert "Reason: too expensive" in body(await post.gets(ADA, "Rejected: "))


async def test_changed_values_keep_their_types(post: Post) -> None:
    thread, question = await asks(post, "edited by mail")
    values = body(question).partition("[[ begin values ]]\n")[2].partition("[[ end values ]]")[0]
    changed = values.replace("amount: 12.5", "amount: 95")
    await post.answers(ADA, question, f"[[ begin values ]]\n{changed}[[ end values ]]")
    action = await post.decided(thread, "edited")
    assert action["final_args"]["amount"] == 95
    receipt = body(await post.gets(ADA, "Approved with your changes: submit_expense"))
    assert "It runs with exactly these values." in receipt
    assert "\namount: 95\n    was: 12.5\nnote: edited by mail\n" in receipt


@pytest.mark.parametrize(
    "text", ["Approve?", "Tom will approve it tomorrow.", "approve, but only if it is cheap"]
)
async def test_what_is_not_clear_changes_nothing_is_kept_and_is_asked_about(post: Post, text: str) -> None:
    thread, question = await asks(post, f"unclear {len(text)}")
    await post.answers(ADA, question, text)
    await post.gets(ADA, "Nothing was decided")
    assert (await post.action(thread))["state"] == "pending"
    assert text in [m["text"] for m in (await post.thread(f"unclear {len(text)}"))["messages"]]


async def test_unclear_words_reach_the_agent_with_the_decision_and_begin_no_work_of_their_own(
    post: Post,
) -> None:
    thread, question = await asks(post, "beside the word")
    await post.answers(ADA, question, "approve, but only if it is cheap")
    await post.gets(ADA, "Nothing was decided")
    await post.answers(ADA, question, "Approve")
    await post.decided(thread, "approved")
    told = body(await post.gets(ADA, "Ada wrote about this call before it was decided:"))
    assert "Result:" in told
    assert "approve, but only if it is cheap" in told
    found = await post.thread("beside the word")
    assert [run["state"] for run in found["runs"]] == ["done"]
    assert not any(message.get("held") for message in found["messages"])


async def test_a_file_beside_unclear_words_begins_work_that_can_read_it(post: Post) -> None:
    thread, question = await asks(post, "beside a file")
    await post.answers(ADA, question, "Approve? See this.", files=[("prices.txt", b"40")])
    await post.gets(ADA, "Nothing was decided")
    await post.answers(ADA, question, "Approve")
    await post.decided(thread, "approved")
    await comes(lambda: post.thread("beside a file"), lambda it: len(it["runs"]) == 2)


async def test_only_the_first_unclear_answer_in_an_hour_is_asked_about(post: Post) -> None:
    thread, question = await asks(post, "unclear often")
    for _ in range(3):
        await post.answers(ADA, question, "Approve?")
    await post.remarks("was asked about often enough")
    asked_back = [
        m for m in post.mails(ADA) if "Nothing was decided" in body(m) and "unclear often" in body(m)
    ]
    assert len(asked_back) <= 1
    assert (await post.action(thread))["state"] == "pending"


async def test_the_last_question_says_so_and_where_to_decide(post: Post) -> None:
    thread, question = await asks(post, "unclear at last")
    action = await post.action(thread)
    hours_ago = (post.served.doors.clock.now() - timedelta(hours=n) for n in (4, 2))
    asked = json.dumps([moment.isoformat() for moment in hours_ago])
    await post.served.doors.keep("email", {f"questions/{action['id']}": asked})
    await post.answers(ADA, question, "Approve?")
    last = body(await post.gets(ADA, "no further question"))
    assert f"/actions/{action['id']}" in last
    assert "within the hour" not in last
    assert (await post.action(thread))["state"] == "pending"


async def test_a_wrong_value_in_an_otherwise_empty_answer_is_named_and_nothing_is_kept(post: Post) -> None:
    thread, question = await asks(post, "banana")
    spoilt = EmailMessage(policy=question.policy)
    for name in ("Reply-To", "Subject", "Message-ID"):
        spoilt[name] = question[name]
    spoilt.set_content(body(question).replace("amount: 12.5", "amount: banana"))
    await post.answers(ADA, spoilt, "")
    asked_back = body(await post.gets(ADA, "amount is not a number"))
    assert "What you wrote" not in asked_back
    said = [m for m in (await post.thread("banana"))["messages"] if m["role"] == "user"]
    assert len(said) == 1
    assert (await post.action(thread))["state"] == "pending"


async def test_words_in_the_quoted_part_decide_nothing(post: Post) -> None:
    thread, question = await asks(post, "only quoted")
    await post.answers(ADA, question, "")
    await asyncio.sleep(0.3)
    assert (await post.action(thread))["state"] == "pending"


async def test_the_approver_alone_is_asked_and_decides(post: Post) -> None:
    await post.sends(ADA, invoice("for Bob"), subject="About for Bob")
    question = await post.asked(BOB, "for Bob")
    thread = (await post.thread("for Bob"))["id"]
    told = await post.asked(ADA, "for Bob")
    await post.answers(ADA, told, "Approve")
    await post.gets(ADA, "not yours to decide")
    assert (await post.action(thread))["state"] == "pending"
    await post.answers(BOB, question, "Approve")
    assert (await post.decided(thread, "approved"))["decided_by"] == "Bob"


async def test_whoever_was_not_in_the_conversation_reads_the_words_that_asked(post: Post) -> None:
    words = f"Please pay <b>them</b> today.\n{invoice('asked with words')}"
    await post.sends(CAY, words, subject="Paper")
    theirs = await post.asked(BOB, "asked with words")
    assert "\nAsked with these words:\n  | Please pay <b>them</b> today.\n" in body(theirs)
    assert "Asked by: Cay" in body(theirs)
    html = theirs.get_body(("html",))
    assert html is not None
    assert "Please pay &lt;b&gt;them&lt;/b&gt; today." in html.get_content()
    mine = await post.asked(CAY, "asked with words")
    assert "Asked with these words" not in body(mine)
    await post.answers(BOB, theirs, "Approve")
    await post.gets(BOB, "Approved: pay_invoice")


async def test_long_words_are_marked_as_shortened_and_lead_to_all_of_them(post: Post) -> None:
    await post.sends(CAY, f"{invoice('asked at length')}\n" + "Paper and pencils. " * 60, subject="Long")
    asked = body(await post.asked(BOB, "asked at length"))
    thread = (await post.thread("Long"))["id"]
    assert re.search(rf"Only their beginning is shown here. All of it:\nhttp\S+/threads/{thread}\n", asked)
    assert asked.count("pencils") < 40


async def test_what_a_trigger_began_names_the_trigger(post: Post) -> None:
    trigger = {"name": "Books at night", "kind": "cron", "cron": "0 3 * * *", "prompt": expense("by trigger")}
    made = (await post.served.http.post("/api/triggers", json=trigger)).json()
    await post.served.http.post(f"/api/triggers/{made['id']}/run")
    asked = body(await post.asked(ADA, "note: by trigger"))
    assert "Begun by the trigger: Books at night" in asked
    assert "Asked with these words" not in asked


async def test_another_persons_answer_to_a_question_decides_nothing(post: Post) -> None:
    thread, question = await asks(post, "not for Cay")
    await post.answers(CAY, question, "Approve")
    await post.remarks("answers a question that was put to somebody else")
    assert (await post.action(thread))["state"] == "pending"


async def test_a_forged_answer_decides_nothing(post: Post) -> None:
    thread, question = await asks(post, "forged")
    await post.answers(ADA, question, "Approve", results="dmarc=fail")
    await post.remarks("sender that is not verified")
    assert (await post.action(thread))["state"] == "pending"


SIGNS_TO = "v=1; a=rsa-sha256; d=example.com; s=1; h=from:to:subject:date:message-id; bh=x; b=x"
SIGNS_CC_TOO = SIGNS_TO.replace("from:to", "from:to:cc")
SIGNS_NEITHER = SIGNS_TO.replace("from:to", "from")


async def resent(post: Post, question: EmailMessage, *fields: str) -> None:
    """Ada's proven word in a mail with these fields is handed to the address where she is asked."""
    raw = "\r\n".join(
        (
            "Authentication-Results: mx.bot.example; dkim=pass header.d=example.com; "
            "dmarc=pass header.from=example.com",
            f"From: {ADA}",
            *(field.format(token=question["Reply-To"], name=question["Message-ID"]) for field in fields),
            "Subject: Lunch?",
            f"Message-ID: <{hash(fields)}.{question['Message-ID'].strip('<>')}>",
            "",
            "Yes",
            "",
        )
    )
    reached = AGENT if any("In-Reply-To" in field for field in fields) else str(question["Reply-To"])
    await post.brings(raw.encode(), EVE, [reached])


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param((f"To: {CAY}",), id="by envelope"),
        pytest.param((f"To: {CAY}", "Delivered-To: {token}"), id="by a delivery field"),
        pytest.param((f"To: {CAY}", "In-Reply-To: {name}"), id="through In-Reply-To"),
        pytest.param((f"To: {CAY}", f"Cc: {AGENT}"), id="by the address without its token"),
        pytest.param(("To: {token}", f"To: {CAY}"), id="with a second To"),
        pytest.param((f"DKIM-Signature: {SIGNS_TO}", f"To: {CAY}", "Cc: {token}"), id="with a Cc beside"),
        pytest.param(
            (f"DKIM-Signature: {SIGNS_CC_TOO}", f"DKIM-Signature: {SIGNS_TO}", f"To: {CAY}", "Cc: {token}"),
            id="with a signature made up",
        ),
        pytest.param((), id="without receivers"),
    ],
)
async def test_a_word_that_was_written_to_somebody_else_decides_nothing(
    post: Post, fields: tuple[str, ...], request: pytest.FixtureRequest
) -> None:
    note = f"sent on {request.node.callspec.id}"
    thread, question = await asks(post, note)
    await resent(post, question, *fields)
    await post.gets(ADA, "does not name our address in To or Cc")
    assert (await post.action(thread))["state"] == "pending"


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param((f"DKIM-Signature: {SIGNS_TO}", "To: {token}"), id="To is signed"),
        pytest.param((f"DKIM-Signature: {SIGNS_CC_TOO}", f"To: {CAY}", "Cc: {token}"), id="Cc is signed"),
        pytest.param((f"DKIM-Signature: {SIGNS_NEITHER}", "To: {token}"), id="neither is signed"),
        pytest.param((f"To: {CAY}, {{token}}",), id="beside somebody else"),
        pytest.param((f"To: {AGENT}", "In-Reply-To: {name}"), id="through In-Reply-To"),
    ],
)
async def test_a_word_that_was_written_to_us_decides(
    post: Post, fields: tuple[str, ...], request: pytest.FixtureRequest
) -> None:
    thread, question = await asks(post, f"meant {request.node.callspec.id}")
    await resent(post, question, *fields)
    await post.decided(thread, "approved")


async def test_the_same_mail_twice_decides_and_answers_once(post: Post) -> None:
    thread, question = await asks(post, "replayed")
    for _ in range(2):
        await post.answers(ADA, question, "Approve", message_id="<replayed@example.com>")
    await post.decided(thread, "approved")
    await post.gets(ADA, "Result:")
    await asyncio.sleep(0.3)
    confirmed = [m for m in post.mails(ADA) if m["In-Reply-To"] == "<replayed@example.com>"]
    assert len([m for m in confirmed if "Approved: " in body(m)]) == 1


async def test_copies_of_an_answer_that_come_at_the_same_moment_are_one_answer(post: Post) -> None:
    thread, question = await asks(post, "in six copies")
    copies = (post.answers(ADA, question, "Approve", message_id="<six@example.com>") for _ in range(6))
    await asyncio.gather(*copies)
    await post.decided(thread, "approved")
    await post.served.wait(thread, "idle")
    await comes(lambda: post.served.http.get("/api/status"), lambda it: it.json()["outbox"]["pending"] == 0)
    told = [body(m) for m in post.mails(ADA) if "<six@example.com>" in str(m["References"])]
    assert [("Approved: " in text, "Already" in text) for text in told if "Result:" not in text] == [
        (True, False)
    ]


async def test_copies_of_an_unclear_answer_that_come_at_the_same_moment_are_asked_about_once(
    post: Post,
) -> None:
    _, question = await asks(post, "unclear in copies")
    before = await _too_often(post)
    copies = (post.answers(ADA, question, "Approve?", message_id="<unclear@example.com>") for _ in range(6))
    await asyncio.gather(*copies)
    await post.gets(ADA, "Nothing was decided")
    said = [m["text"] for m in (await post.thread("unclear in copies"))["messages"] if m["role"] == "user"]
    assert said.count("Approve?") == 1
    assert await _too_often(post) == before


async def _too_often(post: Post) -> list[str]:
    """How often status says that an answer was unclear once too often."""
    return re.findall(r"asked about often enough: \d+", (await post.state()).get("detail") or "")


async def test_a_late_answer_is_told_and_changes_nothing(post: Post) -> None:
    thread, question = await asks(post, "decided elsewhere")
    action = await post.action(thread)
    await post.served.http.post(f"/api/actions/{action['id']}/decision", json={"decision": "reject"})
    await post.gets(ADA, "Rejected by Ada")
    await post.answers(ADA, question, "Approve")
    await post.gets(ADA, "Already rejected")
    assert (await post.action(thread))["state"] == "rejected"


async def test_a_question_to_an_answered_action_goes_on_with_the_conversation(post: Post) -> None:
    thread, question = await asks(post, "talk after it")
    await post.answers(ADA, question, "Approve")
    await post.decided(thread, "approved")
    await post.gets(ADA, "Result:")
    await post.answers(ADA, question, "[[say a later word]]")
    await post.gets(ADA, "a later word")


async def test_an_answer_to_two_questions_at_once_decides_neither(post: Post) -> None:
    one, first = await asks(post, "first of both")
    other, second = await asks(post, "second of both")
    raw = (
        f"Authentication-Results: mx.bot.example; dmarc=pass header.from=example.com\r\nFrom: {ADA}\r\n"
        f"To: {first['Reply-To']}, {second['Reply-To']}\r\nSubject: Re: both\r\n"
        "Message-ID: <both@example.com>\r\n\r\nApprove\r\n"
    )
    await post.brings(raw.encode(), ADA, [str(first["Reply-To"]), str(second["Reply-To"])])
    await post.gets(ADA, "several questions at once")
    assert (await post.action(one))["state"] == (await post.action(other))["state"] == "pending"


async def test_stop_as_an_answer_to_a_question_withdraws_it(post: Post) -> None:
    thread, question = await asks(post, "to be withdrawn")
    await post.answers(ADA, question, "stop")
    await post.decided(thread, "withdrawn")


async def test_an_answer_without_its_token_decides_by_the_mail_that_it_names(post: Post) -> None:
    thread, question = await asks(post, "by reference")
    await post.sends(ADA, "Approve", to=AGENT, answers=question)
    await post.decided(thread, "approved")
