"""Does each mail of ours arrive once, whatever its server does, and is somebody told when it cannot?"""

from __future__ import annotations

import pytest

from tests.fakes.mail.smtp_sink import Fault
from tests.fakes.mail.taken import body
from tests.unit.email.conftest import ADA, CAY, EVE, Post, comes, expense, until

pytestmark = pytest.mark.asyncio(loop_scope="package")


def with_words(post: Post, to: str, words: str) -> list[str]:
    return [str(m["Message-ID"]) for m in post.mails(to) if words in body(m)]


def undelivered(to: str, recipient: str, name: str) -> bytes:
    """A report of a server that says that the mail to somebody cannot be delivered."""
    return (
        f"From: MAILER-DAEMON@mail.example.com\r\nTo: {to}\r\nSubject: Undelivered Mail\r\n"
        f"Message-ID: <{name}@mail.example.com>\r\nAuto-Submitted: auto-replied\r\nMIME-Version: 1.0\r\n"
        'Content-Type: multipart/report; report-type=delivery-status; boundary="b"\r\n\r\n'
        "--b\r\nContent-Type: text/plain\r\n\r\nIt could not be delivered.\r\n"
        "--b\r\nContent-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; mail.example.com\r\n\r\n"
        f"Final-Recipient: rfc822; {recipient}\r\nAction: failed\r\nStatus: 5.1.1\r\n"
        "Diagnostic-Code: smtp; 550 no such user\r\n\r\n--b--\r\n"
    ).encode()


@pytest.mark.parametrize(
    "fault",
    [
        Fault("greeting", "421 4.3.2 busy"),
        Fault("MAIL", "451 4.7.1 greylisted"),
        Fault("RCPT", "451 4.2.1 later"),
        Fault("DATA", cut=True),
        Fault("content", "451 4.3.0 try again"),
    ],
    ids=lambda fault: f"{fault.step} {fault.reply[:3]}".strip(),
)
async def test_what_fails_for_now_is_sent_again_and_arrives_once(post: Post, fault: Fault) -> None:
    words = f"after {fault.reply[:3] or 'a cut'} at {fault.step}"
    post.sink.cut_connections()
    post.sink.faults.append(fault)
    await post.sends(ADA, f"[[say {words}]]")
    await post.gets(ADA, words)
    assert len(with_words(post, ADA, words)) == 1


async def test_a_cut_after_the_mail_is_followed_by_one_more_with_the_same_id(post: Post) -> None:
    post.sink.faults.append(Fault("content", cut=True))
    await post.sends(ADA, "[[say maybe twice]]")
    await until(lambda: len(with_words(post, ADA, "maybe twice")) == 2 or None, lambda: "two copies")
    first, second = with_words(post, ADA, "maybe twice")
    assert first == second


async def test_a_mail_that_is_cut_twice_is_not_sent_a_third_time(post: Post) -> None:
    post.sink.faults += [Fault("content", cut=True), Fault("content", cut=True)]
    await post.sends(ADA, "[[say cut and cut]]")
    await comes(lambda: _failed(post, "probably arrived"), bool)
    assert len(with_words(post, ADA, "cut and cut")) == 2


async def test_a_server_that_dawdles_before_it_has_the_mail_gets_it_however_often_it_does(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    await post.sends(ADA, "[[say hello]]")
    await post.gets(ADA, "hello")
    post.sink.faults += [Fault("MAIL", seconds=0.4) for _ in range(3)]
    with monkeypatch.context() as patched:
        patched.setattr("pizzabot.outbox.delivery.DELIVERY_SECONDS", 0.2)
        await post.sends(ADA, "[[say at long last]]")
        await until(lambda: not post.sink.faults or None, lambda: f"{post.sink.faults}")
    await post.gets(ADA, "at long last")
    assert len(with_words(post, ADA, "at long last")) == 1


async def test_the_note_of_a_decision_is_a_mail_like_any_other_and_not_sent_a_third_time(post: Post) -> None:
    await post.sends(ADA, expense("noted twice"), subject="Noted twice")
    await post.asked(ADA, "noted twice")
    thread = await post.thread("Noted twice")
    action = await post.action(thread["id"])
    known = len(await _failed(post, "probably arrived"))
    post.sink.faults += [Fault("content", cut=True), Fault("content", cut=True)]
    await post.served.http.post(f"/api/actions/{action['id']}/decision", json={"decision": "reject"})
    await comes(lambda: _failed(post, "probably arrived"), lambda failed: len(failed) == known + 1)
    notes = [
        m for m in post.mails(ADA) if "Noted twice" in str(m["Subject"]) and "Rejected by Ada" in body(m)
    ]
    first, second = (m["Message-ID"] for m in notes)
    assert first == second


async def _failed(post: Post, words: str) -> list[dict[str, str]]:
    outbox = (await post.served.http.get("/api/status")).json()["outbox"]
    return [row for row in outbox["failed"] if words in row["error"]]


async def test_while_its_server_is_away_mail_waits_and_everything_else_works(post: Post) -> None:
    post.sink.down()
    await post.sends(ADA, "[[say waited for its server]]")
    await comes(post.state, lambda state: state["state"] == "down")
    thread = await post.thread("waited for its server")
    await post.served.wait(thread["id"], "idle")
    post.sink.up()
    await post.gets(ADA, "waited for its server")
    await comes(post.state, lambda state: state["state"] == "ok")


async def test_an_address_that_does_not_exist_is_marked_and_cleared_by_a_mail_from_it(post: Post) -> None:
    cay = await post.served.as_person("Cay")
    post.sink.cut_connections()
    post.sink.faults.append(Fault("RCPT", "550 5.1.1 no such user"))
    await cay.post("/api/threads", json={"text": "[[say to nobody]]", "title": "To nobody"})
    await post.remarks(f"mail to {CAY} cannot be delivered")
    await post.sends(CAY, "[[say alive again]]")
    await post.gets(CAY, "alive again")
    assert CAY not in ((await post.state()).get("detail") or "")


async def test_a_delivery_report_about_a_mail_of_ours_marks_its_address(post: Post) -> None:
    await post.sends(CAY, "[[say will bounce]]")
    await post.gets(CAY, "will bounce")
    (sent,) = [m for m in post.sink.mails if b"will bounce" in m.content and CAY in m.recipients]
    report = undelivered(sent.sender, CAY, "dsn-1")
    await post.brings(report, "", [sent.sender])
    await post.remarks(f"mail to {CAY} cannot be delivered")
    await post.sends(CAY, "[[say back after the bounce]]")
    await post.gets(CAY, "back after the bounce")


async def test_of_several_people_on_a_mail_only_the_one_whom_a_report_names_is_marked(post: Post) -> None:
    await post.sends(ADA, "[[say reaches only some]]", cc=[CAY])
    await post.gets(CAY, "reaches only some")
    (sent,) = [m for m in post.sink.mails if b"reaches only some" in m.content and CAY in m.recipients]
    await post.brings(undelivered(sent.sender, CAY, "dsn-3"), "", [sent.sender])
    remarks = await post.remarks(f"mail to {CAY} cannot be delivered")
    assert f"mail to {ADA}" not in remarks
    await post.brings(undelivered(sent.sender, EVE, "dsn-4"), "", [sent.sender])
    remarks = await post.remarks("reports a delivery to somebody it was not sent to")
    assert f"mail to {ADA}" not in remarks
    await post.sends(CAY, "[[say reached again]]")
    await post.gets(CAY, "reached again")


async def test_a_delivery_report_about_nothing_of_ours_changes_nothing(post: Post) -> None:
    report = undelivered("pizza@bot.example", ADA, "dsn-2")
    await post.brings(report, "", ["pizza@bot.example"])
    await post.remarks("reports a delivery that changes nothing")
    assert ADA not in ((await post.state()).get("detail") or "")
