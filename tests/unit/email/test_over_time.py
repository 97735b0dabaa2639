"""Is somebody told by mail of what waits for them, and what became of it when nobody decided?"""

from __future__ import annotations

import json

import pytest

from tests.fakes.mail.taken import body
from tests.unit.email.conftest import ADA, BOB, CAY, Post, invoice
from tests.unit.email.test_decisions import asks

pytestmark = pytest.mark.asyncio(loop_scope="package")


async def test_a_reminder_asks_again_in_the_same_conversation_and_can_be_answered(post: Post) -> None:
    thread, first = await asks(post, "asked again by mail", CAY)
    await post.served.is_late((await post.action(thread))["id"], "due_at")
    again = await post.gets(CAY, "Reminder: this has waited for a decision since")
    assert again["Subject"] == first["Subject"]
    assert again["In-Reply-To"] == first["Message-ID"]
    assert again["Reply-To"] != first["Reply-To"]
    assert "note: asked again by mail" in body(again)
    await post.answers(CAY, again, "Approve")
    await post.decided(thread, "approved")
    await post.gets(CAY, "Approved: ")
    await post.gets(CAY, "Result:")
    assert "note: asked again by mail" in body(await post.gets(CAY, "Approved: "))
    told = [m for m in post.mails(CAY) if body(m).startswith("Approved by Cay")]
    assert [m for m in told if "asked again by mail" in body(m)] == []


async def test_the_mail_that_was_there_first_can_still_be_answered(post: Post) -> None:
    thread, first = await asks(post, "answered the first", CAY)
    await post.served.is_late((await post.action(thread))["id"], "due_at")
    await post.gets(CAY, "Reminder: this has waited")
    await post.answers(CAY, first, "Reject: no")
    assert (await post.decided(thread, "rejected"))["reason"] == "no"


async def test_an_expiry_is_told_once_and_a_late_answer_is_told_so(post: Post) -> None:
    thread, question = await asks(post, "expired by mail", CAY)
    await post.served.is_late((await post.action(thread))["id"], "expires_at")
    await post.decided(thread, "expired")
    told = await post.gets(CAY, "Expired: nobody decided in time")
    assert told["In-Reply-To"] == question["Message-ID"]
    await post.answers(CAY, question, "Approve")
    late = await post.gets(CAY, "It expired: nobody decided in time. Nothing was changed.")
    assert "Reopen it" in body(late)
    expired = [m for m in post.mails(CAY) if body(m).startswith("Expired") and "expired by mail" in body(m)]
    assert len(expired) == 1


async def test_whoever_owns_work_that_nobody_began_learns_that_it_stands_still_without_having_been_asked(
    post: Post,
) -> None:
    """Bob was asked, and is told by the mail that says how his question ended; Cay gets one of her own."""
    cay = await post.served.as_person("Cay")
    trigger = {"name": "Pays by night", "prompt": invoice("stands still"), "cron": "0 0 1 1 *"}
    made = (await cay.post("/api/triggers", json=trigger)).json()
    await cay.post(f"/api/triggers/{made['id']}/run")
    await post.asked(BOB, "stands still")
    thread = (await post.thread("Pays by night"))["id"]
    await post.served.is_late((await post.action(thread))["id"], "expires_at")
    told = await post.gets(CAY, "stands still")
    assert body(told).startswith("Expired: nobody decided in time")
    assert "Pays by night" in str(told["Subject"])
    await post.gets(BOB, "Expired: nobody decided in time")
    about = [m for m in post.mails(BOB) if body(m).startswith("Expired") and "stands still" in body(m)]
    assert len(about) == 1


# -- several approvals -----------------------------------------------------------------------------------


async def test_who_approves_after_an_edit_answers_the_mail_that_shows_it(post: Post) -> None:
    args = {"service": "twice by mail", "replicas": 2}
    await post.sends(ADA, f"[[call bookkeeper scale_service {json.dumps(args)}]]", subject="Scale it")
    mine, theirs = await post.asked(ADA, "twice by mail"), await post.asked(BOB, "twice by mail")
    assert "0 of 2 approved" in body(theirs)
    values = body(mine).partition("[[ begin values ]]\n")[2].partition("[[ end values ]]")[0]
    changed = values.replace("replicas: 2", "replicas: 3")
    await post.answers(ADA, mine, f"[[ begin values ]]\n{changed}[[ end values ]]")
    edited = await post.gets(BOB, "replicas: 3")
    assert "1 of 2 approved: Ada by email" in body(edited)
    assert "Edited by Ada" in body(edited)
    assert edited["Subject"] == theirs["Subject"]
    receipt = body(await post.gets(ADA, "Your approval counts: scale_service"))
    assert "1 of 2 approved: Ada by email" in receipt
    assert "It runs with exactly these values when enough have approved." in receipt
    assert "\nreplicas: 3\n    was: 2\n" in receipt
    await post.answers(BOB, theirs, "Approve")
    await post.gets(BOB, "This was edited by Ada")
    await post.answers(BOB, edited, "Approve")
    thread = (await post.thread("Scale it"))["id"]
    action = await post.decided(thread, "edited")
    assert [vote["person"] for vote in action["approvals"]] == ["Ada", "Bob"]
    assert action["final_args"] == args | {"replicas": 3}
    assert action["args"] == args
    await post.gets(ADA, "Result:")
