"""Does every mail go out once, and is it known for certain what became of one that did not?"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pizzabot.adapters.email.failures import Unreachable
from pizzabot.adapters.email.smtp import client as smtp_client
from pizzabot.adapters.email.smtp.replies import Away, Deferred, NoSuchRecipient, NotLetIn, Rejected
from pizzabot.adapters.email.smtp.sending import Sender
from pydantic import SecretStr

from pizzabot.errors import ConfigError, DeliveryFailed, DeliveryUnknown
from pizzabot.settings.tables import OAuthTable, SmtpTable
from tests.fakes.mail.certificate import Certificate, make_certificate
from tests.fakes.mail.smtp_sink import Fault, SmtpSink, Step
from tests.fakes.patience import PATIENCE_SECONDS

US, ADA, BOB = "pizza+b-1@example.com", "ada@example.org", "bob@example.org"
MAIL = b"Subject: hello\r\n\r\nHi.\r\n"
LARGE = MAIL + (b"x" * 900 + b"\r\n") * 4000  # more than the network holds between two programs


@pytest.fixture
def sink() -> Iterator[SmtpSink]:
    with SmtpSink() as running:
        yield running


@asynccontextmanager
async def sending(
    sink: SmtpSink, token: smtp_client.TokenSource | None = None, **settings: Any
) -> AsyncIterator[Sender]:
    table = SmtpTable(**({"host": "127.0.0.1", "port": sink.port, "security": "none"} | settings))
    sender = Sender(table, token)
    try:
        yield sender
    finally:
        await sender.close()


async def test_a_mail_goes_out_as_it_is(sink: SmtpSink) -> None:
    async with sending(sink) as sender:
        assert await sender.send(US, ADA, MAIL) == {}
    (mail,) = sink.mails
    assert (mail.sender, mail.recipients, mail.content) == (US, (ADA,), MAIL)
    assert mail.options == (f"SIZE={len(MAIL)}",)


@pytest.mark.parametrize(
    ("message", "arrives"),
    [
        (b"a\n\nb", b"a\r\n\r\nb\r\n"),
        (b".\r\n..\r\n.a\r\n", b".\r\n..\r\n.a\r\n"),
        (b"a\n.\nMAIL FROM:<eve@evil.example>\n", b"a\r\n.\r\nMAIL FROM:<eve@evil.example>\r\n"),
        (b"a\r.\r\n", b"a\r\n.\r\n"),
    ],
)
async def test_lines_end_with_crlf_and_a_dot_never_ends_the_mail_early(
    sink: SmtpSink, message: bytes, arrives: bytes
) -> None:
    async with sending(sink) as sender:
        await sender.send(US, ADA, message)
    assert [mail.content for mail in sink.mails] == [arrives]


async def test_the_connection_is_kept_for_the_next_mail_and_closed_politely(sink: SmtpSink) -> None:
    async with sending(sink) as sender:
        await asyncio.gather(*(sender.send(US, ADA, MAIL) for _ in range(20)))
        assert sink.open_connections == 1
    sink.until(lambda: sink.open_connections == 0)
    assert (sink.connections, len(sink.mails)) == (1, 20)


async def test_an_idle_connection_is_closed(sink: SmtpSink) -> None:
    sender = Sender(SmtpTable(host="127.0.0.1", port=sink.port, security="none"), idle_seconds=0.1)
    await sender.send(US, ADA, MAIL)
    async with asyncio.timeout(PATIENCE_SECONDS):
        while sink.open_connections:  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.01)
    await sender.send(US, ADA, MAIL)
    await sender.close()
    assert (sink.connections, len(sink.mails)) == (2, 2)


@pytest.mark.parametrize("checked_after", [0.0, 60.0])
async def test_a_kept_connection_that_the_server_cut_is_opened_again(
    sink: SmtpSink, monkeypatch: pytest.MonkeyPatch, checked_after: float
) -> None:
    monkeypatch.setattr("pizzabot.adapters.email.smtp.sending._CHECKED_AFTER_SECONDS", checked_after)
    async with sending(sink) as sender:
        await sender.send(US, ADA, MAIL)
        sink.cut_connections()
        await sender.send(US, ADA, MAIL)
    assert len(sink.mails) == 2


@pytest.mark.parametrize("step", ["MAIL", "RCPT", "DATA"])
async def test_421_on_a_kept_connection_means_to_connect_again(sink: SmtpSink, step: Step) -> None:
    async with sending(sink) as sender:
        await sender.send(US, ADA, MAIL)
        sink.faults.append(Fault(step, "421 4.7.0 too many mails in one connection"))
        await sender.send(US, ADA, MAIL)
    assert (sink.connections, len(sink.mails)) == (2, 2)


# -- what becomes of a mail that does not go out ---------------------------------------------------------


async def test_a_server_that_is_down_is_tried_again_and_found_when_it_is_up(sink: SmtpSink) -> None:
    sink.down()
    async with sending(sink) as sender:
        with pytest.raises(Away, match="connection refused") as caught:
            await sender.send(US, ADA, MAIL)
        assert caught.value.retryable
        sink.up()
        await sender.send(US, ADA, MAIL)
    assert len(sink.mails) == 1


@pytest.mark.parametrize(
    ("fault", "kind", "words"),
    [
        (Fault("greeting", "421 4.3.2 going down"), Away, "421 4.3.2 going down"),
        (Fault("greeting", "554 5.7.1 no service for you"), Away, "554 5.7.1 no service for you"),
        (Fault("greeting", cut=True), Away, "it closed the connection"),
        (Fault("EHLO", "502 5.5.1 what"), Away, "502 5.5.1 what"),
        (Fault("MAIL", "451 4.3.0 later"), Deferred, "451 4.3.0 later"),
        (Fault("RCPT", "450 4.2.1 greylisted"), Deferred, "450 4.2.1 greylisted"),
        (Fault("DATA", "451 4.3.0 later"), Deferred, "451 4.3.0 later"),
        (Fault("content", "451 4.3.0 later"), Deferred, "451 4.3.0 later"),
        (Fault("content", "421 4.3.2 going down"), Deferred, "421 4.3.2 going down"),
        (Fault("MAIL", "550 5.7.1 not you"), Rejected, "550 5.7.1 not you"),
        (Fault("MAIL", "552 5.3.4 too large"), Rejected, "552 5.3.4 too large"),
        (Fault("MAIL", "530 5.7.0 log in first"), NotLetIn, "530 5.7.0 log in first"),
        (Fault("RCPT", "550 5.7.1 policy"), Rejected, "550 5.7.1 policy"),
        (Fault("RCPT", "550 5.1.8 bad sender"), Rejected, "550 5.1.8 bad sender"),
        (Fault("RCPT", "552 5.2.2 mailbox full"), Rejected, "552 5.2.2 mailbox full"),
        (Fault("RCPT", "550 5.1.1 nobody here"), NoSuchRecipient, "550 5.1.1 nobody here"),
        (Fault("RCPT", "553 5.1.3 bad syntax"), NoSuchRecipient, "553 5.1.3 bad syntax"),
        (Fault("RCPT", "551 not local"), NoSuchRecipient, "551 not local"),
        (Fault("DATA", "554 5.5.1 no"), Rejected, "554 5.5.1 no"),
        (Fault("content", "554 5.7.1 spam"), Rejected, "554 5.7.1 spam"),
        (Fault("content", "550 5.1.1 nobody here"), Rejected, "550 5.1.1 nobody here"),
        (Fault("content", "no number"), DeliveryUnknown, "its answer is none"),
        (Fault("MAIL", cut=True), Away, "it closed the connection"),
        (Fault("content", cut=True), DeliveryUnknown, "said nothing"),
    ],
)
async def test_each_fault_says_whether_trying_again_can_help_and_the_next_mail_goes_out(
    sink: SmtpSink, fault: Fault, kind: type[DeliveryFailed], words: str
) -> None:
    async with sending(sink) as sender:
        sink.faults.append(fault)
        with pytest.raises(DeliveryFailed) as caught:
            await sender.send(US, ADA, MAIL)
        assert type(caught.value) is kind
        assert words in str(caught.value)
        assert caught.value.retryable == (not isinstance(caught.value, Rejected))
        taken = len(sink.mails)
        await sender.send(US, ADA, MAIL)
        assert len(sink.mails) == taken + 1


async def test_an_address_that_does_not_exist_is_named(sink: SmtpSink) -> None:
    sink.faults.append(Fault("RCPT", "550-5.1.1 The account\r\n550 5.1.1 does not exist"))
    async with sending(sink) as sender:
        with pytest.raises(NoSuchRecipient) as caught:
            await sender.send(US, ADA, MAIL)
    assert (caught.value.recipient, caught.value.status) == (ADA, "5.1.1")


async def test_a_mail_that_was_cut_off_on_the_way_did_not_arrive(sink: SmtpSink) -> None:
    sink.faults += [Fault("DATA", cut=True)]
    async with sending(sink) as sender:
        with pytest.raises(Away, match="in the middle of the mail"):
            await sender.send(US, ADA, LARGE)
    assert sink.mails == []


async def test_a_mail_cut_off_on_a_kept_connection_goes_out_on_a_new_one(sink: SmtpSink) -> None:
    async with sending(sink) as sender:
        await sender.send(US, ADA, MAIL)
        sink.faults += [Fault("DATA", cut=True)]
        await sender.send(US, ADA, LARGE)
    assert [len(mail.content) for mail in sink.mails] == [len(MAIL), len(LARGE)]


async def test_a_mail_whose_answer_was_lost_is_never_sent_again_by_itself(sink: SmtpSink) -> None:
    async with sending(sink) as sender:
        await sender.send(US, ADA, MAIL)
        sink.faults.append(Fault("content", cut=True))
        with pytest.raises(DeliveryUnknown):
            await sender.send(US, ADA, MAIL)
    assert len(sink.mails) == 2


async def test_a_server_that_does_not_answer_in_time_is_given_up(
    sink: SmtpSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(smtp_client, "COMMAND_SECONDS", 0.1)
    monkeypatch.setattr(smtp_client, "CONTENT_SECONDS", 0.1)
    async with sending(sink) as sender:
        sink.faults.append(Fault("MAIL", seconds=0.5))
        with pytest.raises(Away, match="did not answer in time"):
            await sender.send(US, ADA, MAIL)
        sink.faults.append(Fault("content", seconds=0.5))
        with pytest.raises(DeliveryUnknown):
            await sender.send(US, ADA, MAIL)


async def test_a_kept_connection_has_no_more_patience_than_a_new_one(
    sink: SmtpSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(smtp_client, "COMMAND_SECONDS", 0.3)
    async with sending(sink) as sender:
        await sender.send(US, ADA, MAIL)
        sink.faults.append(Fault("MAIL", seconds=1.0))
        await sender.send(US, ADA, MAIL)
    assert (sink.connections, len(sink.mails)) == (2, 2)


async def test_a_refused_recipient_does_not_keep_the_mail_from_the_others(sink: SmtpSink) -> None:
    async with sending(sink) as sender:
        sink.faults.append(Fault("RCPT", "550 5.1.1 nobody"))
        refused = await sender.send(US, [ADA, BOB, BOB], MAIL)
        assert list(refused) == [ADA]
        assert isinstance(refused[ADA], NoSuchRecipient)
    assert [mail.recipients for mail in sink.mails] == [(BOB,)]


async def test_when_all_recipients_are_refused_one_that_may_pass_counts(sink: SmtpSink) -> None:
    async with sending(sink) as sender:
        sink.faults += [Fault("RCPT", "550 5.1.1 nobody"), Fault("RCPT", "450 4.2.0 later")]
        with pytest.raises(Deferred):
            await sender.send(US, [ADA, BOB], MAIL)
    assert sink.mails == []


async def test_a_mail_larger_than_the_server_takes_is_not_sent() -> None:
    with SmtpSink(size=1000) as sink:
        async with sending(sink) as sender:
            with pytest.raises(Rejected, match="has 2002 bytes, and the server takes 1000"):
                await sender.send(US, ADA, b"x" * 2000)
            await sender.send(US, ADA, MAIL)
    assert len(sink.mails) == 1


@pytest.mark.parametrize(
    "address", ["ada", "ada@example.org>\r\nDATA", "a b@example.org", "<ada@example.org>", ""]
)
async def test_what_is_no_address_is_never_put_into_a_command(sink: SmtpSink, address: str) -> None:
    async with sending(sink) as sender:
        with pytest.raises(Rejected, match="is not a mail address"):
            await sender.send(US, address, MAIL)
    assert [verb for _, verb in sink.commands] == ["EHLO"]


async def test_a_bounce_address_may_be_empty(sink: SmtpSink) -> None:
    async with sending(sink) as sender:
        await sender.send("", ADA, MAIL)
    assert sink.mails[0].sender in ("", "<>")


# -- beyond ASCII ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("recipient", "message"), [("zoë@exämple.org", MAIL), (ADA, "Subject: Grüße\r\n\r\nHi\r\n".encode())]
)
async def test_unicode_in_addresses_and_headers_asks_for_smtputf8(
    sink: SmtpSink, recipient: str, message: bytes
) -> None:
    async with sending(sink) as sender:
        await sender.send(US, recipient, message)
    assert sink.mails[0].recipients == (recipient,)
    assert "SMTPUTF8" in sink.mails[0].options


async def test_a_server_without_smtputf8_is_a_lasting_error_for_unicode_addresses_alone() -> None:
    with SmtpSink(smtputf8=False) as sink:
        async with sending(sink) as sender:
            with pytest.raises(Rejected, match="SMTPUTF8"):
                await sender.send(US, "zoë@exämple.org", MAIL)
            await sender.send(US, ADA, "Subject: x\r\n\r\nGrüße\r\n".encode())
    assert sink.mails[0].options[1:] == ("BODY=8BITMIME",)


# -- encryption and login --------------------------------------------------------------------------------


@pytest.fixture
def certificate(tmp_path: Path) -> Certificate:
    return make_certificate(tmp_path)


@pytest.fixture
def trusted(certificate: Certificate, monkeypatch: pytest.MonkeyPatch) -> Certificate:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate.authority))
    return certificate


@pytest.mark.parametrize("security", ["tls", "starttls"])
async def test_mail_is_encrypted(trusted: Certificate, security: str) -> None:
    with SmtpSink(certificate=trusted, tls=security == "tls") as sink:
        async with sending(sink, security=security, host="127.0.0.1") as sender:
            await sender.send(US, ADA, MAIL)
            await sender.check()
    assert [mail.is_encrypted for mail in sink.mails] == [True]


@pytest.mark.parametrize("security", ["tls", "starttls"])
async def test_a_certificate_that_nobody_vouches_for_is_refused(
    certificate: Certificate, security: str
) -> None:
    with SmtpSink(certificate=certificate, tls=security == "tls") as sink:
        async with sending(sink, security=security, host="127.0.0.1") as sender:
            with pytest.raises(
                Away, match=r"the certificate of .* was refused: unable to get local issuer.* ca_file"
            ):
                await sender.send(US, ADA, MAIL)
    assert sink.mails == []


@pytest.mark.parametrize("security", ["tls", "starttls"])
async def test_an_authority_of_ones_own_vouches(certificate: Certificate, security: str) -> None:
    ca_file = str(certificate.authority)
    with SmtpSink(certificate=certificate, tls=security == "tls") as sink:
        async with sending(sink, security=security, host="127.0.0.1", ca_file=ca_file) as sender:
            await sender.send(US, ADA, MAIL)
        async with sending(sink, security=security, host="127.0.0.1", ca_file="/none.pem") as sender:
            with pytest.raises(Away, match=r"none\.pem: cannot be read as certificates"):
                await sender.send(US, ADA, MAIL)
    assert len(sink.mails) == 1


async def test_a_certificate_of_another_host_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign = make_certificate(tmp_path, host="192.0.2.1")
    monkeypatch.setenv("SSL_CERT_FILE", str(foreign.authority))
    with SmtpSink(certificate=foreign) as sink:
        async with sending(sink, security="starttls", host="127.0.0.1") as sender:
            with pytest.raises(Away, match=r"the certificate of 127\.0\.0\.1 was refused"):
                await sender.send(US, ADA, MAIL)


async def test_starttls_that_is_not_offered_is_no_reason_to_go_on_in_the_clear(sink: SmtpSink) -> None:
    async with sending(sink, security="starttls", username="pizza", password="secret-word") as sender:
        with pytest.raises(Away, match="does not offer STARTTLS"):
            await sender.send(US, ADA, MAIL)
    assert [verb for _, verb in sink.commands] == ["EHLO"]


async def test_what_a_stranger_puts_behind_the_answer_to_starttls_is_not_believed() -> None:
    """RFC 3207 §6: the injected reply is dropped with the buffer, so the handshake finds no TLS behind it."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        heard = bytearray()

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.sendall(b"220 x\r\n")
                heard.extend(connection.recv(1000))
                connection.sendall(b"250-x\r\n250 STARTTLS\r\n")
                heard.extend(connection.recv(1000))
                connection.sendall(b"220 go\r\n250-x\r\n250 AUTH PLAIN\r\n235 welcome\r\n")
                heard.extend(connection.recv(1000))

        thread = threading.Thread(target=serve)
        thread.start()
        table = SmtpTable(
            host="127.0.0.1",
            port=listening.getsockname()[1],
            username="pizza",
            password=SecretStr("secret-word"),
        )
        sender = Sender(table)
        with pytest.raises(Away):
            await sender.check()
        await sender.close()
        thread.join()
    assert b"AUTH" not in heard


@pytest.mark.parametrize("offers", ["LOGIN PLAIN", "LOGIN"])
async def test_a_password_beyond_ascii_logs_in(
    trusted: Certificate, monkeypatch: pytest.MonkeyPatch, offers: str
) -> None:
    with SmtpSink(users={"pizza": "pässword"}, certificate=trusted, mechanisms=offers) as sink:
        async with sending(sink, security="starttls", username="pizza", password="pässword") as sender:
            await sender.send(US, ADA, MAIL)
    assert [mail.user for mail in sink.mails] == ["pizza"]


async def test_a_wrong_password_is_tried_once_and_said() -> None:
    with SmtpSink(users={"pizza": "right-word"}) as sink:
        async with sending(sink, username="pizza", password="wrong-word") as sender:
            for ask in (sender.check, lambda: sender.send(US, ADA, MAIL)):
                with pytest.raises(NotLetIn, match="535") as caught:
                    await ask()
                assert caught.value.retry_after_seconds == 60
                assert "wrong-word" not in str(caught.value)
    assert [verb for _, verb in sink.commands] == ["EHLO", "AUTH"] * 2


async def test_a_login_that_fails_for_now_is_no_wrong_password() -> None:
    with SmtpSink(users={"pizza": "right-word"}) as sink:
        sink.faults.append(Fault("AUTH", "454 4.7.0 later"))
        async with sending(sink, username="pizza", password="right-word") as sender:
            with pytest.raises(Away, match=r"454 4\.7\.0 later"):
                await sender.send(US, ADA, MAIL)
            await sender.send(US, ADA, MAIL)
    assert len(sink.mails) == 1


async def test_a_server_that_lets_nobody_log_in_is_not_let_in(sink: SmtpSink) -> None:
    sink.mechanisms = ""
    async with sending(sink, username="pizza", password="right-word") as sender:
        with pytest.raises(NotLetIn, match="neither PLAIN nor LOGIN"):
            await sender.check()


class Tokens:
    def __init__(self, *tokens: str | Exception) -> None:
        self._tokens = list(tokens)
        self.asked: list[bool] = []

    def token(self, *, fresh: bool = False) -> str:
        self.asked.append(fresh)
        found = self._tokens.pop(0)
        if isinstance(found, Exception):
            raise found
        return found


async def test_a_stale_access_token_is_replaced_once_by_a_fresh_one() -> None:
    token = "ya29." + "x" * 2000
    with SmtpSink(users={"pizza": token}) as sink:
        tokens = Tokens("stale-token", token, "stale-token", "stale-again")
        oauth = OAuthTable(token_command=("x",))
        async with sending(sink, tokens, username="pizza", oauth=oauth) as sender:
            await sender.send(US, ADA, MAIL)
        async with sending(sink, tokens, username="pizza", oauth=oauth) as sender:
            with pytest.raises(NotLetIn, match="535"):
                await sender.send(US, ADA, MAIL)
    assert [mail.user for mail in sink.mails] == ["pizza"]
    assert tokens.asked == [False, True] * 2


@pytest.mark.parametrize("failure", [Unreachable("no answer of token_url"), TimeoutError()])
async def test_a_token_server_that_is_away_is_no_wrong_password(failure: Exception) -> None:
    with SmtpSink(users={"pizza": "good-token"}) as sink:
        async with sending(
            sink, Tokens(failure), username="pizza", oauth=OAuthTable(token_command=("x",))
        ) as sender:
            with pytest.raises(Away, match="token"):
                await sender.send(US, ADA, MAIL)


async def test_a_token_that_cannot_be_had_is_not_let_in_and_asks_again() -> None:
    with SmtpSink(users={"pizza": "good-token"}) as sink:
        tokens = Tokens(ConfigError("pizzabot.toml", "the token_command failed"), "good-token")
        async with sending(sink, tokens, username="pizza", oauth=OAuthTable(token_command=("x",))) as sender:
            with pytest.raises(NotLetIn, match="the token_command failed"):
                await sender.send(US, ADA, MAIL)
            await sender.send(US, ADA, MAIL)
    assert len(sink.mails) == 1


async def test_closing_sends_what_was_begun_and_nothing_that_waits(sink: SmtpSink) -> None:
    sink.faults.append(Fault("MAIL", seconds=0.2))
    sender = Sender(SmtpTable(host="127.0.0.1", port=sink.port, security="none"))
    begun, waiting = (asyncio.create_task(sender.send(US, ADA, MAIL)) for _ in range(2))
    await asyncio.to_thread(sink.until, lambda: (1, "MAIL") in sink.commands)
    await sender.close()
    await begun
    for late in (waiting, sender.send(US, ADA, MAIL), sender.check()):
        with pytest.raises(Away):
            await late
    assert len(sink.mails) == 1


@pytest.mark.parametrize("security", ["none", "starttls"])
async def test_closing_does_not_wait_for_a_server_that_dawdles(
    trusted: Certificate, monkeypatch: pytest.MonkeyPatch, security: str
) -> None:
    monkeypatch.setattr("pizzabot.adapters.email.smtp.sending._CLOSE_SECONDS", 0.1)
    with SmtpSink(certificate=trusted) as sink:
        sink.faults.append(Fault("content", seconds=30))
        async with sending(sink, security=security, host="127.0.0.1") as sender:
            sent = asyncio.create_task(sender.send(US, ADA, MAIL))
            await asyncio.to_thread(sink.until, lambda: len(sink.mails) == 1)
            async with asyncio.timeout(5):
                await sender.close()
            with pytest.raises(DeliveryUnknown):
                await sent


async def test_a_mail_that_is_withdrawn_while_it_waits_is_not_sent(sink: SmtpSink) -> None:
    sink.faults.append(Fault("MAIL", seconds=0.2))
    async with sending(sink) as sender:
        first, second = (asyncio.create_task(sender.send(US, ADA, MAIL)) for _ in range(2))
        await asyncio.to_thread(sink.until, lambda: (1, "MAIL") in sink.commands)
        second.cancel()
        await asyncio.gather(first, second, return_exceptions=True)
    assert len(sink.mails) == 1


async def test_what_is_to_be_noted_is_noted_before_the_server_can_have_the_mail(sink: SmtpSink) -> None:
    seen: list[int] = []

    async def note() -> None:
        seen.append(len(sink.mails))

    async with sending(sink) as sender:
        await sender.send(US, ADA, MAIL, about_to_end=note)
    assert (seen, len(sink.mails)) == ([0], 1)


@pytest.mark.parametrize("step", ["greeting", "EHLO", "MAIL", "RCPT", "DATA"])
@pytest.mark.parametrize("fault", [{"reply": "451 4.7.1 later"}, {"cut": True}], ids=["refused", "cut"])
async def test_a_mail_that_the_server_was_not_given_whole_is_not_noted(
    sink: SmtpSink, step: Step, fault: dict[str, Any]
) -> None:
    async def note() -> None:
        raise AssertionError("the server cannot have it")

    sink.faults.append(Fault(step, **fault))
    async with sending(sink) as sender:
        with pytest.raises(DeliveryFailed) as caught:
            await sender.send(US, ADA, MAIL, about_to_end=note)
    assert not isinstance(caught.value, DeliveryUnknown)
    assert sink.mails == []


async def test_a_mail_that_cannot_be_noted_is_not_sent_and_the_next_one_is(sink: SmtpSink) -> None:
    async def note() -> None:
        raise OSError(28, "No space left on device")

    async with sending(sink) as sender:
        with pytest.raises(Away, match="No space left"):
            await sender.send(US, ADA, MAIL, about_to_end=note)
        assert sink.mails == []
        await sender.send(US, BOB, MAIL)
    assert [mail.recipients for mail in sink.mails] == [(BOB,)]


@pytest.mark.parametrize("step", ["MAIL", "DATA"])
async def test_a_mail_that_is_withdrawn_on_the_way_is_neither_noted_nor_sent(
    sink: SmtpSink, step: Step
) -> None:
    async def note() -> None:
        raise AssertionError("it was withdrawn")

    sink.faults.append(Fault(step, seconds=0.2))
    async with sending(sink) as sender:
        withdrawn = asyncio.create_task(sender.send(US, ADA, MAIL, about_to_end=note))
        await asyncio.to_thread(sink.until, lambda: (1, step) in sink.commands)
        withdrawn.cancel()
        await sender.send(US, BOB, MAIL)
        with pytest.raises(asyncio.CancelledError):
            await withdrawn
    assert [mail.recipients for mail in sink.mails] == [(BOB,)]
