"""Does `pizzabot doctor --send` see its mail come back, and find out whom the mail server lets lie?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adapters.email.checks import Found
from adapters.email.letters import Envelope, LetterKind, Ours
from adapters.email.places import OwnAddress
from adapters.email.reading.headers import headers_of
from adapters.email.reading.pipeline import read
from adapters.email.trial import Patience, try_out
from adapters.email.trial_mails import forgery, of_forgery, of_returned, topmost, trial
from pizzabot.settings import Settings
from tests.fakes.mail.certificate import make_certificate
from tests.fakes.mail.delivering import Delivering
from tests.fakes.mail.dovecot import PASSWORD, USER, Dovecot, dovecot_server
from tests.fakes.mail.smtp_sink import Fault, Mail, SmtpSink
from tests.fakes.mail.watching import Watched
from tests.unit.email.written import NOW

AGENT, SERVER = "pizza@bot.example", "mx.bot.example"
OWN = OwnAddress(AGENT)
QUICK = Patience(trial=5, forgery=5, look=0.02, line=0.05)
SHORT = replace(QUICK, trial=0.3, forgery=0.2)


@pytest.fixture(scope="module")
def dovecot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dovecot]:
    with dovecot_server(make_certificate(tmp_path_factory.mktemp("tls"))) as server:
        yield server


@pytest.fixture
def sink(dovecot: Dovecot) -> Iterator[SmtpSink]:
    with SmtpSink() as server:
        server.deliver = Delivering(dovecot, "bot.example")
        yield server


def settings(sink: SmtpSink, dovecot: Dovecot | None, *trusted: str, **changed: Any) -> Settings:
    email: dict[str, Any] = {"address": AGENT, "trusted_authserv_ids": trusted, **changed}
    email["smtp"] = {"host": "127.0.0.1", "port": sink.port, "security": "none"}
    if dovecot is None:
        email["listen"] = {}
    else:
        way = {"host": "127.0.0.1", "port": dovecot.port, "security": "none"}
        email["imap"] = way | {"username": USER, "password": PASSWORD, **changed.pop("imap", {})}
    people = [{"name": "Ada", "role": "owner"}]
    return Settings.model_validate({"email": email, "people": people})


class Told(list[str]):
    def __call__(self, line: str) -> None:
        self.append(line)


async def tried(table: Settings, patience: Patience = QUICK, told: Told | None = None) -> list[Found]:
    return list(await try_out(table, Path(), told if told is not None else Told(), patience))


async def test_nothing_is_sent_while_email_is_off() -> None:
    assert await tried(Settings()) == []


async def test_a_mail_comes_back_and_a_forged_one_is_not_believed(sink: SmtpSink, dovecot: Dovecot) -> None:
    told = Told()
    found = await tried(settings(sink, dovecot, SERVER), told=told)
    assert [level for level, _, _ in found] == ["ok", "ok", "ok"]
    assert re.fullmatch(r"a mail to pizza\+r-[a-z0-9]+@bot.example came back after \d s", found[0][1])
    assert found[1][1] == f"{SERVER} says dmarc=pass spf=pass dkim=pass, and is believed"
    assert "would not be believed: our server says dmarc=fail" in found[2][1]
    assert told[0].startswith("A mail to pizza+r-")
    assert told[-1].startswith("A forged mail")


async def test_an_unknown_server_is_shown_with_the_line_to_paste(sink: SmtpSink, dovecot: Dovecot) -> None:
    found = await tried(settings(sink, dovecot, "mx.old.example"))
    assert found[1][0] == "warning"
    assert 'trusted_authserv_ids = ["mx.old.example", "mx.bot.example"]' in found[1][2]


async def test_a_server_that_lets_forged_verdicts_through_is_an_error(
    sink: SmtpSink, dovecot: Dovecot
) -> None:
    sink.deliver = Delivering(dovecot, "bot.example", results="", removes_forged=False)
    found = await tried(settings(sink, dovecot, SERVER))
    assert [level for level, _, _ in found] == ["ok", "warning", "error"]
    assert "without Authentication-Results" in found[1][1]
    assert "would be believed: dmarc=pass for example.com" in found[2][1]
    assert "trusted_authserv_ids = []" in found[2][2]


async def test_a_server_without_a_name_can_neither_be_believed_nor_forged(
    sink: SmtpSink, dovecot: Dovecot
) -> None:
    sink.deliver = Delivering(dovecot, "bot.example", server="")
    found = await tried(settings(sink, dovecot))
    assert [level for level, _, _ in found] == ["ok", "ok", "ok"]
    assert "not who it is, as Microsoft 365 does" in found[1][1]
    assert found[2][1] == "no verdict is believed, so there is none to forge"


async def test_a_mail_that_does_not_come_back(sink: SmtpSink, dovecot: Dovecot) -> None:
    sink.deliver = Delivering(dovecot, "bot.example", loses=lambda address: "+" in address)
    told = Told()
    ((level, text, cure),) = await tried(settings(sink, dovecot, SERVER), SHORT, told)
    assert level == "error"
    assert text.startswith("the mail did not come back to INBOX")
    assert "plus_addressing = false" in cure
    assert any(line.startswith("Not there yet, after") for line in told)
    plain = await tried(settings(sink, dovecot, SERVER, plus_addressing=False))
    assert plain[0][1].startswith(f"a mail to {AGENT} came back")


async def test_an_address_with_a_tag_that_does_not_exist(sink: SmtpSink, dovecot: Dovecot) -> None:
    sink.faults.append(Fault("RCPT", "550 5.1.1 no such user"))
    ((level, text, cure),) = await tried(settings(sink, dovecot, SERVER))
    assert level == "error"
    assert "with a tag does not exist" in text
    assert "plus_addressing = false" in cure


async def test_a_forged_mail_that_does_not_go_out_or_does_not_arrive(
    sink: SmtpSink, dovecot: Dovecot
) -> None:
    delivering = Delivering(dovecot, "bot.example", loses=lambda address: address == AGENT)
    sink.deliver = delivering
    found = await tried(settings(sink, dovecot, SERVER), replace(QUICK, forgery=0.1))
    assert found[2] == ("ok", "a forged mail was not delivered, or set aside as spam", "")

    def refuse_the_next(mail: Mail) -> None:
        delivering(mail)
        sink.faults.append(Fault("MAIL", "553 5.7.1 not your address"))

    sink.deliver = refuse_the_next
    found = await tried(settings(sink, dovecot, SERVER))
    assert found[2][0] == "ok"
    assert "does not even go out: the mail server refused it (553" in found[2][1]


async def test_a_mail_that_a_running_server_has_moved_is_found(sink: SmtpSink, dovecot: Dovecot) -> None:
    delivering = Delivering(dovecot, "bot.example")

    def deliver_and_move(mail: Mail) -> None:
        delivering(mail)
        with dovecot.other() as client:
            if not client.folder_exists("Taken"):
                client.create_folder("Taken")
            client.move(client.search(), "Taken")

    sink.deliver = deliver_and_move
    found = await tried(settings(sink, dovecot, SERVER, imap={"move_to": "Taken"}))
    assert [level for level, _, _ in found] == ["ok", "ok", "ok"]


async def test_a_running_server_still_gets_the_mails_and_nothing_is_marked(
    sink: SmtpSink, dovecot: Dovecot
) -> None:
    async with Watched(dovecot.settings(poll_seconds=1)) as watched:
        await watched.until_state("ok")
        assert len(await tried(settings(sink, dovecot, SERVER))) == 3
        await watched.until(lambda: len(watched.mails) == 2)
    with dovecot.other() as client:
        assert not client.search("SEEN")


async def test_with_a_door_alone_it_says_what_it_cannot_see(sink: SmtpSink) -> None:
    sink.deliver = lambda mail: None
    ((level, text, cure),) = await tried(settings(sink, None, SERVER))
    assert level == "warning"
    assert text.startswith("nothing is proven yet")
    assert cure.startswith("`pizzabot serve` has to run")
    assert len(sink.mails) == 1


async def test_no_mail_server_at_all_is_an_error(dovecot: Dovecot) -> None:
    table = settings(SmtpSink(port=1), dovecot, SERVER)
    ((level, text, _),) = await tried(table)
    assert (level, text.startswith("the mail was not sent")) == ("error", True)


@pytest.mark.parametrize("is_forged", [False, True])
def test_a_server_that_runs_leaves_these_mails_alone(is_forged: bool) -> None:
    mail = (
        forgery(OWN, [SERVER], "token", NOW)
        if is_forged
        else trial(OWN, "Pizza Bot", OWN.tagged("r", "a" * 25), "token", NOW)
    )
    letter = read(mail, Envelope(believes_results=True), Ours((AGENT,), "mark", (SERVER,)))
    assert letter.kind is LetterKind.AUTO
    assert letter.is_ours is not is_forged


@pytest.mark.parametrize(
    ("value", "server", "words"),
    [
        ("mx.google.com; dkim=pass header.i=@x.example; dmarc=pass", "mx.google.com", "dmarc=pass dkim=pass"),
        (
            "spf=pass (sender IP is 192.0.2.1)\r\n smtp.mailfrom=x.example; dmarc=fail",
            "",
            "dmarc=fail spf=pass",
        ),
        ('"Mx.Example" 1; none', "mx.example", "nothing"),
        ("(by the way) mx.example; spf=pass (dmarc=pass; it says)", "mx.example", "spf=pass"),
    ],
)
def test_whom_a_verdict_names_and_what_it_says(value: str, server: str, words: str) -> None:
    verdicts = topmost(headers_of(f"Authentication-Results: {value}\r\n".encode()))
    assert verdicts is not None
    assert (verdicts.server, verdicts.words) == (server, words)


def test_a_verdict_without_a_name_is_not_to_be_trusted() -> None:
    ((level, _, cure),) = of_returned(b"Authentication-Results: spf=pass; dmarc=pass\r\n\r\n", [SERVER])
    assert level == "error"
    assert "trusted_authserv_ids = []" in cure


def test_a_verdict_without_dmarc_proves_nothing() -> None:
    ((level, text, _),) = of_returned(
        f"Authentication-Results: {SERVER}; spf=pass\r\n\r\n".encode(), [SERVER]
    )
    assert level == "warning"
    assert "nothing of DMARC" in text


def test_an_outgoing_server_that_writes_our_own_address_forges_nothing() -> None:
    level, text, _ = of_forgery(f"From: {AGENT}\r\n\r\n".encode(), OWN, [SERVER])
    assert (level, "our own address" in text) == ("ok", True)
