"""Does `pizzabot doctor` find out of real servers whether mail works, and name the cure?"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from adapters.email.checks import Found, check
from adapters.email.smtp.door import MailDoor
from pizzabot.settings import Settings
from pizzabot.settings.tables import ListenTable
from tests.fakes.mail.certificate import Certificate, make_certificate
from tests.fakes.mail.dovecot import PASSWORD, USER, Dovecot, dovecot_server
from tests.fakes.mail.smtp_sink import SmtpSink

AGENT = "pizza@bot.example"
OWNER = {"name": "Ada", "role": "owner", "emails": ["ada@example.com"]}


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return make_certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def dovecot(certificate: Certificate) -> Iterator[Dovecot]:
    with dovecot_server(certificate) as server:
        yield server


@pytest.fixture(scope="module")
def sink() -> Iterator[SmtpSink]:
    with SmtpSink(users={"pizza": "right"}) as server:
        yield server


def smtp(sink: SmtpSink, password: str = "right") -> dict[str, Any]:
    way = {"host": "127.0.0.1", "port": sink.port, "security": "none"}
    return way | {"username": "pizza", "password": password}


def imap(dovecot: Dovecot, **changed: object) -> dict[str, Any]:
    way = {"host": "127.0.0.1", "port": dovecot.port, "security": "none"}
    return way | {"username": USER, "password": PASSWORD, **changed}


def settings(email: Mapping[str, Any], *people: Mapping[str, Any]) -> Settings:
    table = {"address": AGENT, "trusted_authserv_ids": ["mx.bot.example"], **email}
    web = {"public_url": "https://pizza.example"}
    return Settings.model_validate({"email": table, "people": people or (OWNER,), "web": web})


async def found(email: Mapping[str, Any], *people: Mapping[str, Any], folder: Path = Path()) -> list[Found]:
    return list(await check(settings(email, *people), folder))


def wrong(findings: list[Found]) -> list[Found]:
    return [finding for finding in findings if finding[0] != "ok"]


async def test_nothing_is_asked_while_email_is_off() -> None:
    assert await check(Settings(), Path()) == ()


async def test_all_is_well_with_servers_that_let_us_in(dovecot: Dovecot, sink: SmtpSink) -> None:
    assert await found({"imap": imap(dovecot), "smtp": smtp(sink)}) == [
        ("ok", "127.0.0.1 lets pizza in and opens INBOX", ""),
        ("ok", "127.0.0.1 takes outgoing mail", ""),
        ("ok", "knows Ada", ""),
        ("ok", "believes what mx.bot.example says of senders", ""),
    ]


async def test_wrong_passwords_are_told_apart_from_absent_servers(
    certificate: Certificate, sink: SmtpSink
) -> None:
    with dovecot_server(certificate) as dovecot:  # its own: it lets people wait who had a wrong password
        refused = wrong(
            await found({"imap": imap(dovecot, password="no"), "smtp": smtp(sink, password="no, too")})
        )
    assert [level for level, _, _ in refused] == ["error", "error"]
    assert all(".env" in cure for _, _, cure in refused)
    nowhere = {**smtp(sink), "port": 1}
    absent = wrong(await found({"imap": imap(dovecot, port=1), "smtp": nowhere}))
    assert [level for level, _, _ in absent] == ["error", "error"]
    assert all("[email." in cure for _, _, cure in absent)


async def test_a_folder_that_is_not_there(dovecot: Dovecot, sink: SmtpSink) -> None:
    ((level, text, cure),) = wrong(await found({"imap": imap(dovecot, folder="Nowhere"), "smtp": smtp(sink)}))
    assert level == "error"
    assert "does not open Nowhere" in text
    assert "email.imap.folder" in cure


async def test_what_a_poor_mailbox_cannot_do(certificate: Certificate, sink: SmtpSink) -> None:
    with dovecot_server(certificate, "imap_capability = IMAP4rev1") as poor:
        moving = wrong(await found({"imap": imap(poor, move_to="Taken"), "smtp": smtp(sink)}))
    assert [level for level, _, _ in moving] == ["warning", "warning"]
    assert "asked every 60 s" in moving[0][1]
    assert "cannot move mails" in moving[1][1]


@pytest.mark.parametrize("protocol", ["smtp", "lmtp"])
async def test_the_open_door_of_a_running_server_is_ours(sink: SmtpSink, protocol: str) -> None:
    async def take(raw: bytes, envelope: object) -> None:
        raise AssertionError("nothing is sent")

    table = ListenTable.model_validate({"port": 0, "protocol": protocol})
    door = MailDoor(table, lambda address: address == AGENT, take, lambda state, said: None)
    await door.start()
    try:
        listen = {"port": door.port, "protocol": protocol}
        assert (
            "ok",
            f"the door is open at port {door.port} on 127.0.0.1 and takes mail for {AGENT}",
            "",
        ) in (await found({"listen": listen, "smtp": smtp(sink)}))
        assert not door.refused
    finally:
        await door.stop()


async def test_a_door_that_another_program_stands_in(sink: SmtpSink) -> None:
    ((level, text, _),) = wrong(await found({"listen": {"port": sink.port}, "smtp": smtp(sink)}))
    assert (level, text) == ("error", f"port {sink.port} on 127.0.0.1 is in use by another program")


async def test_a_free_door_with_a_certificate(
    sink: SmtpSink, certificate: Certificate, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    (tmp_path / "door.pem").write_bytes(certificate.chain.read_bytes() + certificate.key.read_bytes())
    listen = {"port": port, "certificate": "door.pem"}
    assert (await found({"listen": listen, "smtp": smtp(sink)}, folder=tmp_path))[:2] == [
        ("ok", "the certificate door.pem and its key can be used", ""),
        ("ok", f"port {port} on 127.0.0.1 is free for the door", ""),
    ]
    ((level, text, _),) = wrong(await found({"listen": listen, "smtp": smtp(sink)}, folder=tmp_path / "else"))
    assert level == "error"
    assert "email.listen.certificate" in text


async def test_a_key_that_does_not_sign(sink: SmtpSink, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("no key")
    email = {"listen": {"port": 0}, "smtp": smtp(sink), "dkim": {"selector": "s", "key_file": "key"}}
    ((level, text, _),) = wrong(await found(email, folder=tmp_path))
    assert level == "error"
    assert "email.dkim.key_file" in text
    assert "no key" not in text


async def test_who_cannot_be_reached(sink: SmtpSink) -> None:
    email = {"listen": {"port": 0}, "smtp": smtp(sink)}
    nobody = {"name": "Bob", "role": "member"}
    ((level, text, cure),) = wrong(await found(email, OWNER, nobody))
    assert (level, text) == ("warning", "Bob has no mail address and is not reached by mail")
    assert "emails" in cure
    ((level, text, _),) = wrong(await found(email, {"name": "Ada", "role": "owner"}))
    assert (level, text) == ("error", "knows nobody: no person has a mail address")
    ((level, text, _),) = wrong(await found(email, OWNER, {**nobody, "emails": [AGENT]}))
    assert level == "error"
    assert "our own address" in text


async def test_nobody_is_believed_without_an_authserv_id(dovecot: Dovecot, sink: SmtpSink) -> None:
    email = {"imap": imap(dovecot), "smtp": smtp(sink), "trusted_authserv_ids": []}
    ((level, text, cure),) = wrong(await found(email))
    assert level == "warning"
    assert "DKIM" in text
    assert "doctor --send" in cure


@pytest.mark.parametrize("listen", [{}, {"host": "0.0.0.0", "trusted_networks": ["127.0.0.0/8", "10.0.0.5"]}])
async def test_a_door_behind_a_server_wants_the_name_of_that_server(
    sink: SmtpSink, listen: dict[str, Any]
) -> None:
    email = {"listen": {"port": 0, **listen}, "smtp": smtp(sink), "trusted_authserv_ids": []}
    ((level, text, cure),) = wrong(await found(email))
    assert (level, text.startswith("trusted_authserv_ids is empty")) == ("warning", True)
    assert "the mail server before the door" in cure
    assert "--send" not in cure  # with a door it cannot say


async def test_a_door_that_no_server_stands_before_rightly_believes_nobody(sink: SmtpSink) -> None:
    listen = {"port": 0, "host": "0.0.0.0"}
    findings = await found({"listen": listen, "smtp": smtp(sink), "trusted_authserv_ids": []})
    assert wrong(findings) == []
    assert "trusted_authserv_ids is rightly empty" in findings[-1][1]


async def test_links_that_open_on_this_machine_alone_are_warned_of(sink: SmtpSink) -> None:
    local = settings({"listen": {"port": 0}, "smtp": smtp(sink)}).model_copy(update={"web": Settings().web})
    ((level, text, cure),) = wrong(list(await check(local, Path())))
    assert (level, text) == (
        "warning",
        "links in mails lead to http://127.0.0.1:8642, which opens on this machine alone",
    )
    assert "web.public_url" in cure


async def test_an_outgoing_server_that_is_not_there_or_not_trusted_is_named(
    certificate: Certificate, sink: SmtpSink
) -> None:
    ((_, text, _),) = wrong(await found({"listen": {"port": 0}, "smtp": {**smtp(sink), "port": 1}}))
    assert text == "the outgoing mail server cannot be used (127.0.0.1:1: connection refused)"
    with SmtpSink(certificate=certificate, tls=True) as secure:
        way = {"host": "127.0.0.1", "port": secure.port, "security": "tls"}
        ((_, text, _),) = wrong(await found({"listen": {"port": 0}, "smtp": way}))
    assert "the certificate of 127.0.0.1 was refused" in text
    assert "ca_file" in text
