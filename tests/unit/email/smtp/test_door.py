"""Does the door take every mail that is for us, once it is committed, and nothing else?"""

from __future__ import annotations

import asyncio
import gc
import logging
import socket
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
from pizzabot.adapters.email.caps import TooMany
from pizzabot.adapters.email.letters import Envelope
from pizzabot.adapters.email.smtp.doorkeeper import Limits

from pizzabot.errors import ConfigError, Refused, Unavailable
from tests.fakes.mail.certificate import Certificate, make_certificate
from tests.fakes.patience import PATIENCE_SECONDS
from tests.unit.email.smtp.wire import HELLO, OURS, Wire, connected, open_door

TOKEN = "pizza+r-abc@example.com"


async def test_a_mail_for_us_arrives_byte_by_byte_with_its_envelope() -> None:
    async with open_door() as (door, taken), connected(door.port) as wire:
        assert (await wire.begin(TOKEN)).startswith("354")
        assert await wire.mail(HELLO) == "250 2.0.0 taken"
    assert taken.mails == [(HELLO.encode(), Envelope("ada@example.org", (TOKEN,), believes_results=True))]


async def test_the_door_says_when_it_listens_and_when_it_does_not() -> None:
    async with open_door() as (_, taken):
        assert taken.states == [("ok", None)]
    assert taken.states[-1] == ("off", None)


async def _lets_in(port: int) -> None:
    """Wait until a connection is greeted."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            async with connected(port, greeted=False) as wire:
                if (await wire.reply()).startswith("220"):
                    return


async def test_the_answer_waits_for_the_commit() -> None:
    gate = asyncio.Event()
    async with open_door() as (door, taken), connected(door.port) as wire:
        taken.before = lambda: _wait(gate)
        await wire.begin()
        answer = asyncio.create_task(wire.mail(HELLO))
        await asyncio.sleep(0.05)
        assert not answer.done()
        assert not taken.mails
        gate.set()
        assert (await answer).startswith("250")


async def _wait(gate: asyncio.Event) -> None:
    await gate.wait()


async def _until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not holds():  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.01)


async def test_a_connection_cut_during_the_commit_does_not_break_it_off() -> None:
    gate, begun = asyncio.Event(), asyncio.Event()

    async def slowly() -> None:
        begun.set()
        await gate.wait()

    async with open_door() as (door, taken):
        taken.before = slowly
        async with connected(door.port) as wire:
            await wire.begin()
            wire.send(HELLO + ".\r\n")
            await begun.wait()
            wire.cut()
        gate.set()
        await _until(lambda: bool(taken.mails))


@pytest.mark.parametrize(
    ("error", "reply", "reason"),
    [
        (
            Unavailable("the disk is full; send it again"),
            "451 4.3.0 the disk is full; send it again",
            "storage",
        ),
        (
            TooMany("Ada"),
            "451 4.7.1 more mail came from you in this hour than is taken in; keep it, and send it later",
            "rate",
        ),
        (Refused("not\r\n250 taken"), r"550 5.7.1 not\r\n250 taken", "content"),
        (RuntimeError("secret detail"), "451 4.3.0 this server failed; try again later", "fault"),
    ],
)
async def test_what_cannot_be_committed_is_answered_with_its_own_words(
    error: Exception, reply: str, reason: str
) -> None:
    async def fails() -> None:
        raise error

    async with open_door() as (door, taken), connected(door.port) as wire:
        taken.before = fails
        await wire.begin()
        assert await wire.mail(HELLO) == reply
        taken.before = None
        await wire.again()
        assert await wire.mail(HELLO) == "250 2.0.0 taken"
        assert door.refused == {reason: 1}


async def test_recipients_that_are_not_ours_are_refused_and_nothing_is_relayed() -> None:
    async with open_door() as (door, taken), connected(door.port) as wire:
        await wire.say("EHLO x")
        await wire.say("MAIL FROM:<ada@example.org>")
        for address in ("eve@elsewhere.example", "pizza%elsewhere.example@other.example", "postmaster"):
            assert await wire.say(f"RCPT TO:<{address}>") == "550 5.1.1 no such recipient here"
        assert (await wire.say("DATA")).startswith("503")
        assert (await wire.say(f"RCPT TO:<{OURS}>")).startswith("250")
        assert (await wire.say("DATA")).startswith("354")
        assert (await wire.mail(HELLO)).startswith("250")
    assert [envelope.recipients for _, envelope in taken.mails] == [(OURS,)]
    assert door.refused == {"recipient": 3}


async def test_the_null_sender_is_known_as_such() -> None:
    async with open_door() as (door, taken), connected(door.port) as wire:
        await wire.begin(sender="")
        await wire.mail(HELLO)
    assert taken.mails[0][1].sender == ""


async def test_only_networks_of_the_operator_are_believed() -> None:
    async with open_door(trusted_networks=("192.0.2.0/24",)) as (door, taken), connected(door.port) as wire:
        await wire.begin()
        await wire.mail(HELLO)
    assert not taken.mails[0][1].believes_results


async def test_a_dot_at_the_start_of_a_line_comes_through() -> None:
    content = ".first\r\n..\r\n.\r\n \r\n"
    async with open_door() as (door, taken), connected(door.port) as wire:
        await wire.begin()
        await wire.mail("..first\r\n...\r\n..\r\n \r\n")
    assert taken.mails[0][0] == content.encode()


async def test_an_empty_mail_ends_at_its_first_line() -> None:
    async with open_door() as (door, taken), connected(door.port) as wire:
        await wire.begin()
        assert await wire.say(".") == "250 2.0.0 taken"
    assert taken.mails[0][0] == b""


async def test_a_line_may_be_longer_than_what_is_read_at_once() -> None:
    content = b"Subject: long\r\n\r\n" + b"x" * 1_000_000 + b"\r\n"
    async with open_door() as (door, taken), connected(door.port) as wire:
        await wire.begin()
        assert (await wire.mail(content)).startswith("250")
    assert taken.mails[0][0] == content


@pytest.mark.parametrize("cut", range(1, 6))
async def test_the_end_is_found_wherever_the_network_cuts_it(cut: int) -> None:
    async with open_door() as (door, taken), connected(door.port) as wire:
        await wire.begin()
        whole = b"a\r\n.\r\n"
        wire.send(whole[:cut])
        await wire.flushed()
        await asyncio.sleep(0.01)
        wire.send(whole[cut:])
        assert (await wire.reply()).startswith("250")
    assert taken.mails[0][0] == b"a\r\n"


@pytest.mark.parametrize(
    "end", [b"\n.\n", b"\n.\r\n", b"\r\n.\n", b"\r.\r\n", b"\r\n.\r", b"\r.\r", b"\r\n\0.\n"]
)
async def test_commands_hidden_behind_a_false_end_are_not_commands_and_the_mail_is_refused(
    end: bytes,
) -> None:
    smuggled = f"MAIL FROM:<boss@example.com>\r\nRCPT TO:<{OURS}>\r\nDATA\r\nSubject: pay\r\n\r\npay".encode()
    async with open_door() as (door, taken), connected(door.port) as wire:
        await wire.begin()
        assert (await wire.mail(b"hello" + end + smuggled + b"\r\n")).startswith("550 5.5.2")
        assert (await wire.say("NOOP")).startswith("250")
    assert not taken.mails
    assert door.refused == {"line_end": 1}


async def test_a_command_ends_with_crlf_alone() -> None:
    async with open_door() as (door, _), connected(door.port) as wire:
        for command in (b"NOOP\n", b"NOOP \r NOOP\r\n", b"NOOP \0\r\n"):
            wire.send(command)
            assert (await wire.reply()).startswith("500 5.5.2")
        assert (await wire.say("NOOP")).startswith("250")


async def test_a_mail_that_is_sent_before_it_was_asked_for_is_not_taken() -> None:
    async with open_door() as (door, taken), connected(door.port) as wire:
        await wire.say("EHLO x")
        wire.send(f"MAIL FROM:<a@b.example>\r\nRCPT TO:<{OURS}>\r\nDATA\r\n{HELLO}.\r\n")
        assert [(await wire.reply())[:3] for _ in range(3)] == ["250", "250", "503"]
        assert (await wire.reply()).startswith("421")
        assert await wire.is_closed()
    assert not taken.mails
    assert door.refused == {"pipelining": 1}


async def test_commands_may_come_together_up_to_data() -> None:
    async with open_door() as (door, taken), connected(door.port) as wire:
        assert "250-PIPELINING" in await wire.say("EHLO x")
        wire.send(f"MAIL FROM:<a@b.example>\r\nRCPT TO:<{OURS}>\r\nDATA\r\n")
        assert [(await wire.reply())[:3] for _ in range(3)] == ["250", "250", "354"]
        assert (await wire.mail(HELLO)).startswith("250")
    assert len(taken.mails) == 1


async def test_size_and_the_encodings_are_offered_and_login_is_not() -> None:
    async with open_door() as (door, _), connected(door.port) as wire:
        offered = (await wire.say("EHLO x")).split("\n")
        assert [line[4:] for line in offered] == [
            "mx.example.com",
            "8BITMIME",
            "SMTPUTF8",
            "PIPELINING",
            "SIZE 26214400",
        ]
        for command in ("AUTH PLAIN AGEAYg==", "VRFY pizza", "EXPN all", "STARTTLS", "BDAT 5 LAST"):
            assert (await wire.say(command))[:3] in ("454", "500", "502")


async def test_a_mail_with_unicode_addresses_is_taken() -> None:
    async with open_door() as (door, taken), connected(door.port) as wire:
        await wire.say("EHLO x")
        assert (await wire.say("MAIL FROM:<zoë@exämple.org> BODY=8BITMIME SMTPUTF8")).startswith("250")
        assert (await wire.say(f"RCPT TO:<{OURS}>")).startswith("250")
        await wire.say("DATA")
        await wire.mail("Subject: Grüße\r\n\r\nÄ\r\n")
    assert taken.mails == [
        ("Subject: Grüße\r\n\r\nÄ\r\n".encode(), Envelope("zoë@exämple.org", (OURS,), True)),
    ]


async def test_a_mail_that_says_it_is_too_large_is_refused_before_it_is_sent() -> None:
    async with open_door() as (door, _), connected(door.port) as wire:
        await wire.say("EHLO x")
        assert (await wire.say("MAIL FROM:<a@b.example> SIZE=26214401")).startswith("552 5.3.4")
        assert (await wire.say("MAIL FROM:<a@b.example> SIZE=26214400")).startswith("250")


async def test_a_mail_that_grows_too_large_is_read_to_its_end_and_not_kept() -> None:
    async with (
        open_door(Limits(mail_bytes=100_000, receiving_bytes=150_000)) as (door, taken),
        connected(door.port) as wire,
    ):
        await wire.begin()
        assert (await wire.mail(b"x" * 100_000 + b"\r\n")).startswith("552 5.3.4")
        await wire.again()
        assert (await wire.mail(b"x" * 99_998 + b"\r\n")).startswith("250")
    assert [len(content) for content, _ in taken.mails] == [100_000]
    assert door.refused == {"size": 1}


async def test_more_mail_at_once_than_there_is_room_for_is_put_off() -> None:
    async with (
        open_door(Limits(receiving_bytes=200_000)) as (door, taken),
        connected(door.port) as first,
        connected(door.port) as second,
    ):
        await first.begin()
        first.send(b"x" * 150_000)
        await first.flushed()
        await asyncio.sleep(0.05)
        await second.begin()
        assert (await second.mail(b"y" * 100_000 + b"\r\n")).startswith("451 4.3.1")
        assert (await first.mail(b"\r\n")).startswith("250")
        await second.again()
        assert (await second.mail(b"y" * 100_000 + b"\r\n")).startswith("250")
    assert [len(content) for content, _ in taken.mails] == [150_002, 100_002]


async def test_what_was_cut_off_leaves_its_room_to_others() -> None:
    async with open_door(Limits(receiving_bytes=200_000)) as (door, taken):
        for _ in range(5):
            async with connected(door.port) as wire:
                await wire.begin()
                wire.send(b"x" * 150_000)
                await wire.flushed()
                wire.cut()
        async with connected(door.port) as wire:
            await wire.begin()
            assert (await wire.mail(b"y" * 190_000 + b"\r\n")).startswith("250")
    assert len(taken.mails) == 1


async def test_the_recipients_of_one_mail_are_bounded() -> None:
    async with open_door(Limits(recipients=3)) as (door, taken), connected(door.port) as wire:
        await wire.say("EHLO x")
        await wire.say("MAIL FROM:<a@b.example>")
        replies = [await wire.say(f"RCPT TO:<pizza+{n}@example.com>") for n in range(5)]
        assert [reply[:9] for reply in replies] == ["250 2.1.5"] * 3 + ["452 4.5.3"] * 2
        await wire.say("DATA")
        assert (await wire.mail(HELLO)).startswith("250")
    assert len(taken.mails[0][1].recipients) == 3


async def test_a_peer_has_so_many_connections_and_gets_them_back() -> None:
    async with open_door(Limits(connections_per_peer=2)) as (door, _):
        async with connected(door.port), connected(door.port), connected(door.port, greeted=False) as third:
            assert (await third.reply()).startswith("421 4.7.0")
            assert await third.is_closed()
        assert door.refused == {"connections": 1}
        await _lets_in(door.port)


async def test_all_peers_together_have_so_many_connections() -> None:
    async with (
        open_door(Limits(connections=1)) as (door, _),
        connected(door.port),
        connected(door.port, greeted=False) as second,
    ):
        assert (await second.reply()).startswith("421 4.7.0")


async def test_whoever_says_nothing_or_drips_is_sent_away() -> None:
    async with (
        open_door(Limits(command_seconds=0.2)) as (door, _),
        connected(door.port) as silent,
        connected(door.port) as dripping,
    ):
        drip = asyncio.create_task(_drip(dripping))
        assert (await silent.reply()).startswith("421 4.4.2")
        assert (await dripping.reply()).startswith("421 4.4.2")
        drip.cancel()
        assert await silent.is_closed()
    assert door.refused == {"timeout": 2}


async def _drip(wire: Wire) -> None:
    while True:
        wire.send("N")
        await asyncio.sleep(0.02)


async def test_a_mail_has_so_long_as_a_whole() -> None:
    async with (
        open_door(Limits(data_seconds=0.3, command_seconds=60)) as (door, taken),
        connected(door.port) as wire,
    ):
        await wire.begin()
        drip = asyncio.create_task(_drip(wire))
        assert (await wire.reply()).startswith("421 4.4.2")
        drip.cancel()
    assert not taken.mails


async def test_commands_without_a_mail_keep_nobody_here() -> None:
    async with open_door(Limits(between_mails_seconds=0.4)) as (door, taken), connected(door.port) as wire:
        await wire.begin()
        await asyncio.sleep(0.5)
        assert (await wire.mail(HELLO)).startswith("250")
        replies = []
        while (reply := await wire.say("NOOP")).startswith("250"):
            replies.append(reply)
            await asyncio.sleep(0.02)
        assert reply.startswith("421 4.4.2")
    assert replies
    assert len(taken.mails) == 1


async def test_whoever_reads_no_answers_is_cut_off() -> None:
    limits = Limits(connections=1, command_seconds=0.3, linger_seconds=0.1)
    async with open_door(limits) as (door, _):
        _, writer = await asyncio.open_connection("127.0.0.1", door.port)
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(b"HELP\r\n" * 1_000_000)
        await _until(lambda: door.refused["timeout"] == 1)
        await _lets_in(door.port)
        writer.transport.abort()


async def test_whoever_only_makes_mistakes_is_sent_away() -> None:
    async with open_door(Limits(mistakes=3)) as (door, _), connected(door.port) as wire:
        for _ in range(3):
            assert (await wire.say("RCPT TO:<x>")).startswith("503")
        assert (await wire.reply()).startswith("421 4.7.0")
        assert await wire.is_closed()


async def test_a_thousand_mails_of_one_sender_leave_the_door_open() -> None:
    async with open_door() as (door, taken):

        async def flood(count: int) -> None:
            async with connected(door.port) as wire:
                await wire.begin()
                for n in range(count):
                    assert (await wire.mail(HELLO)).startswith("250")
                    if n < count - 1:
                        await wire.again()

        await asyncio.gather(*(flood(100) for _ in range(10)))
        async with connected(door.port) as wire:
            assert (await wire.say("NOOP")).startswith("250")
    assert len(taken.mails) == 1000


# -- TLS -------------------------------------------------------------------------------------------------


@pytest.fixture
def certificate(tmp_path: Path) -> Certificate:
    return make_certificate(tmp_path)


async def test_starttls_protects_the_mail(certificate: Certificate) -> None:
    context = ssl.create_default_context(cafile=certificate.authority)
    async with (
        open_door(certificate=str(certificate.chain), key=str(certificate.key)) as (door, taken),
        connected(door.port) as wire,
    ):
        assert "250-STARTTLS" in await wire.say("EHLO x")
        assert (await wire.say("STARTTLS")).startswith("220")
        await wire.start_tls(context)
        assert (await wire.say("MAIL FROM:<a@b.example>")).startswith("503")  # all is forgotten
        offered = await wire.say("EHLO x")
        assert "STARTTLS" not in offered
        assert "AUTH" not in offered
        assert (await wire.say("STARTTLS")).startswith("503")
        assert (await wire.again()).startswith("354")
        assert (await wire.mail(HELLO)).startswith("250")
    assert len(taken.mails) == 1


async def test_what_is_put_in_the_clear_behind_starttls_is_thrown_away(
    certificate: Certificate,
) -> None:
    context = ssl.create_default_context(cafile=certificate.authority)
    async with (
        open_door(certificate=str(certificate.chain), key=str(certificate.key)) as (door, _),
        connected(door.port) as wire,
    ):
        await wire.say("EHLO x")
        wire.send("STARTTLS\r\nEHLO injected\r\nMAIL FROM:<eve@evil.example>\r\n")
        assert (await wire.reply()).startswith("220")
        await wire.start_tls(context)
        assert (await wire.say(f"RCPT TO:<{OURS}>")).startswith("503")


async def test_a_failed_handshake_harms_nobody_else(
    certificate: Certificate, caplog: pytest.LogCaptureFixture
) -> None:
    limits = Limits(connections=1)
    async with open_door(limits, certificate=str(certificate.chain), key=str(certificate.key)) as (
        door,
        taken,
    ):
        async with connected(door.port) as wire:
            await wire.say("EHLO x")
            await wire.say("STARTTLS")
            wire.send("this is no handshake\r\n" * 20)
            assert await wire.ends()
        await _until(lambda: door.refused["tls"] == 1)
        async with connected(door.port) as wire:
            await wire.begin()
            assert (await wire.mail(HELLO)).startswith("250")
    assert len(taken.mails) == 1
    gc.collect()
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_a_renewed_certificate_is_shown_without_a_restart(certificate: Certificate) -> None:
    async with open_door(certificate=str(certificate.chain), key=str(certificate.key)) as (door, _):
        make_certificate(certificate.chain.parent)
        async with connected(door.port) as wire:
            await wire.say("EHLO x")
            await wire.say("STARTTLS")
            await wire.start_tls(ssl.create_default_context(cafile=certificate.authority))
            assert (await wire.say("NOOP")).startswith("250")


async def test_a_certificate_that_cannot_be_used_is_an_error_of_the_settings(tmp_path: Path) -> None:
    (tmp_path / "bad.pem").write_text("no certificate")
    for path in ("/nowhere.pem", str(tmp_path / "bad.pem")):
        with pytest.raises(ConfigError, match=r"email\.listen\.certificate: cannot be used"):
            async with open_door(certificate=path):
                pass


# -- LMTP, PROXY, life -----------------------------------------------------------------------------------


async def test_lmtp_answers_for_each_recipient() -> None:
    async with open_door(protocol="lmtp") as (door, taken), connected(door.port) as wire:
        assert (await wire.say("EHLO x")).startswith("500")
        await wire.begin("pizza+a@example.com", "pizza+b@example.com", hello="LHLO")
        assert await wire.mail(HELLO) == "250 2.0.0 <pizza+a@example.com> taken"
        assert await wire.reply() == "250 2.0.0 <pizza+b@example.com> taken"
        await wire.again("pizza+a@example.com", "pizza+b@example.com")
        assert (await wire.mail("bad\nworse\r\n")).startswith("550 5.5.2 <pizza+a@example.com> ")
        assert (await wire.reply()).startswith("550 5.5.2 <pizza+b@example.com> ")
    assert len(taken.mails) == 1


async def test_a_proxy_of_ours_says_who_it_is() -> None:
    async with (
        open_door(Limits(connections_per_peer=1), proxy_protocol=True) as (door, taken),
        connected(door.port, greeted=False) as first,
        connected(door.port, greeted=False) as same,
        connected(door.port, greeted=False) as other,
    ):
        first.send("PROXY TCP4 198.51.100.7 192.0.2.1 40000 25\r\n")
        assert (await first.reply()).startswith("220")
        same.send("PROXY TCP4 198.51.100.7 192.0.2.1 40001 25\r\n")
        assert (await same.reply()).startswith("421")
        other.send("PROXY TCP4 198.51.100.8 192.0.2.1 40002 25\r\n")
        assert (await other.reply()).startswith("220")
        await first.begin()
        await first.mail(HELLO)
    assert not taken.mails[0][1].believes_results


@pytest.mark.parametrize("line", ["PROXY UNKNOWN\r\n", "PROXY TCP4 127.0.0.1 127.0.0.1 1 2\r\n"])
async def test_what_a_proxy_does_not_know_is_not_believed(line: str) -> None:
    async with open_door(proxy_protocol=True) as (door, taken), connected(door.port, greeted=False) as wire:
        wire.send(line)
        assert (await wire.reply()).startswith("220")
        await wire.begin()
        await wire.mail(HELLO)
    assert taken.mails[0][1].believes_results == ("127.0.0.1" in line)


async def test_nobody_else_says_where_somebody_comes_from() -> None:
    async with (
        open_door(proxy_protocol=True, trusted_networks=("192.0.2.0/24",)) as (door, _),
        connected(door.port, greeted=False) as wire,
    ):
        assert (await wire.reply()).startswith("421")
    async with open_door() as (door, _), connected(door.port) as wire:
        assert (await wire.say("PROXY TCP4 192.0.2.1 192.0.2.1 1 2")).startswith("500")


async def test_an_occupied_port_is_said_and_taken_when_it_is_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as occupant:
        port = occupant.getsockname()[1]
        async with open_door(port=port) as (door, taken):
            assert taken.states == [("down", f"port {port} on 127.0.0.1 is in use by another program")]
            occupant.close()
            await _until(lambda: taken.states[-1][0] == "ok")
            async with connected(door.port):
                pass


async def test_stopping_answers_what_is_being_committed_and_says_goodbye_to_the_others() -> None:
    gate, begun = asyncio.Event(), asyncio.Event()

    async def slowly() -> None:
        begun.set()
        await gate.wait()

    async with open_door() as (door, taken), connected(door.port) as idle, connected(door.port) as busy:
        taken.before = slowly
        await busy.begin()
        answer = asyncio.create_task(busy.mail(HELLO))
        await begun.wait()
        stopping = asyncio.create_task(door.stop())
        await asyncio.sleep(0.02)
        gate.set()
        await stopping
        assert await answer == "250 2.0.0 taken"
        assert (await idle.reply()).startswith("421 4.3.2")
