"""Does the door answer whatever it is told, and stay open for the next?"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pizzabot.adapters.email.smtp.doorkeeper import Limits
from pizzabot.adapters.email.smtp.wire import has_bare_line_end, plain

from tests.unit.email.smtp.wire import HELLO, OURS, Wire, connected, open_door

_REPLY = re.compile(r"([2345]\d\d[ -][^\r\n]*\n)*[2345]\d\d [^\r\n]*")

_VERBS = st.sampled_from(
    [
        *("EHLO", "HELO", "LHLO", "MAIL", "RCPT", "RSET", "NOOP", "VRFY", "EXPN", "HELP", "AUTH", "STARTTLS"),
        *("BDAT", "ETRN", "TURN", "ehlo", "mAiL", "PROXY"),
    ]
)
_WORDS = st.one_of(
    st.sampled_from(
        [
            "FROM:<a@b.example>",
            "FROM:<>",
            "FROM:",
            f"TO:<{OURS}>",
            "TO:<@a,@b:c@d>",
            "TO:<(((((((((a@b",
            'TO:<"@b>',
            "TO:a@b@c",
            "TO:<[]@>",
            "SIZE=99999999999999999999",
            "SIZE=²",
            "SIZE=",
            "BODY=8BITMIME",
            "SMTPUTF8",
            "SMTPUTF8=1",
            "PLAIN",
            "\udcff",
            "é",
        ]
    ),
    st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=30),
    st.text('<>@()[]\\",;: \t=.', max_size=40),
)
_COMMANDS = st.one_of(
    st.builds(
        lambda verb, words: " ".join((verb, *words)).encode("utf-8", "surrogateescape"),
        _VERBS,
        st.lists(_WORDS, max_size=3),
    ),
    st.binary(max_size=40).map(lambda line: line.replace(b"\n", b"").replace(b"\r", b"")),
    st.integers(500, 200_000).map(lambda length: b"NOOP " + b"x" * length),
).filter(lambda line: not re.match(rb"(?i)\s*(QUIT|DATA)", line))


@pytest.fixture
def faults(caplog: pytest.LogCaptureFixture) -> Iterator[list[logging.LogRecord]]:
    """What was logged as an error by the end of the test has to be nothing."""
    yield caplog.records
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(commands=st.lists(_COMMANDS, min_size=1, max_size=12))
@pytest.mark.usefixtures("faults")
def test_every_command_line_is_answered_once_and_the_door_stays_open(commands: list[bytes]) -> None:
    async def scenario() -> None:
        async with open_door(Limits(mistakes=1000)) as (door, taken):
            async with connected(door.port) as wire:
                for command in commands:
                    wire.send(command + b"\r\n")
                    reply = await wire.reply()
                    assert _REPLY.fullmatch(reply), (command, reply)
                    assert "Traceback" not in reply
                    if reply.startswith("502 5.5.1 Too many unrecognized"):
                        return
                assert await wire.say("QUIT") == "221 Bye"
            async with connected(door.port) as wire:
                await wire.begin()
                assert await wire.mail(HELLO) == "250 2.0.0 taken"
            assert len(taken.mails) == 1
            assert "fault" not in door.refused

    asyncio.run(scenario())


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.lists(
        st.sampled_from([b"\r", b"\n", b"\r\n", b".", b"a", b"\0", b"\xff", b"MAIL FROM:<e@x>", b"\r\n."]),
        max_size=30,
    ).map(b"".join),
    cuts=st.lists(st.integers(0, 60), max_size=4),
)
@pytest.mark.usefixtures("faults")
def test_a_mail_ends_at_its_dot_and_nowhere_else(content: bytes, cuts: list[int]) -> None:
    """Whatever stands in it, a mail gets one answer, and is taken exactly as it was sent or not at all."""
    stuffed = (b"\r\n" + content).replace(b"\r\n.", b"\r\n..")[2:]
    sent = stuffed + (b"" if not content or content.endswith(b"\r\n") else b"\r\n") + b".\r\n"

    async def scenario() -> None:
        async with open_door() as (door, taken), connected(door.port) as wire:
            await wire.begin()
            await _in_pieces(wire, sent, cuts)
            reply = await wire.reply()
            assert (await wire.say("NOOP")).startswith("250")
            if reply == "250 2.0.0 taken":
                whole = content if not content or content.endswith(b"\r\n") else content + b"\r\n"
                assert [mail for mail, _ in taken.mails] == [whole]
            else:
                assert reply.startswith("550 5.5.2")
                assert has_bare_line_end(content + b"\r\n")
                assert taken.mails == []

    asyncio.run(scenario())


async def _in_pieces(wire: Wire, sent: bytes, cuts: list[int]) -> None:
    places = sorted({min(cut, len(sent)) for cut in cuts})
    for start, end in zip([0, *places], [*places, len(sent)], strict=True):
        wire.send(sent[start:end])
        await wire.flushed()
        await asyncio.sleep(0)


@given(lines=st.lists(st.text(".ab", max_size=4).map(str.encode), max_size=8))
def test_what_was_made_transparent_becomes_plain_again(lines: list[bytes]) -> None:
    content = b"".join(line + b"\r\n" for line in lines)
    stuffed = b"".join((b"." if line.startswith(b".") else b"") + line + b"\r\n" for line in lines)
    assert plain(bytearray(b"\r\n" + stuffed + b".\r\n")) == content
    assert not has_bare_line_end(content)


@given(st.binary(max_size=20))
def test_a_line_end_is_bare_unless_it_is_a_pair(content: bytes) -> None:
    assert has_bare_line_end(content) == bool(re.search(rb"(?<!\r)\n|\r(?!\n)", content))
