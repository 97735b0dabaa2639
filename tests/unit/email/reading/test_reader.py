"""Does a mail that hangs or kills its reading harm only itself?"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pizzabot.adapters.email.letters import Envelope, Letter, LetterKind
from pizzabot.adapters.email.reading.pipeline import read
from pizzabot.adapters.email.reading.reader import Reader

from pizzabot.errors import Unavailable

from ..mails import OURS, PASS, TRUSTED, load, mail

ROOT = Path(__file__).parents[4]


@pytest.fixture
async def reader() -> AsyncIterator[Reader]:
    reader = Reader(checks_signatures=False)
    yield reader
    await reader.stop()


@pytest.fixture
async def odd(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Reader]:
    """A reader whose process obeys the mail."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    odd = Reader(seconds=5, worker="tests.unit.email.reading.odd_worker")
    yield odd
    await odd.stop()


async def pid(reader: Reader) -> int:
    return int((await reader.read(b"pid", TRUSTED, OURS)).subject)


async def test_a_mail_is_read_as_it_is_within_the_process(reader: Reader) -> None:
    for name in ("c01_gmail_web_approve.eml", "d01_dsn_postfix.eml", "b24_winmail.eml"):
        raw = load(name)
        assert await reader.read(raw, TRUSTED, OURS) == read(raw, TRUSTED, OURS)


async def test_a_mail_of_20_mib_comes_through_with_its_file(reader: Reader) -> None:
    body = (
        b"--b\r\n\r\nSee this.\r\n--b\r\nContent-Type: a/b\r\n\r\n" + b"x" * (20 * 2**20) + b"\r\n--b--\r\n"
    )
    letter = await reader.read(
        mail(PASS, "Content-Type: multipart/mixed; boundary=b", body=body), TRUSTED, OURS
    )
    assert [len(file.data) for file in letter.attachments] == [20 * 2**20]


async def test_many_mails_at_once_get_each_their_own_letter(reader: Reader) -> None:
    async def subject(number: int) -> str:
        letter = await reader.read(mail(f"Subject: {number}"), Envelope(), OURS)
        name: str = letter.subject
        return name

    assert await asyncio.gather(*map(subject, range(40))) == list(map(str, range(40)))


async def test_one_process_reads_all_mails_and_ends_when_stopped(odd: Reader) -> None:
    first = await pid(odd)
    assert await pid(odd) == first != os.getpid()
    await odd.stop()
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)
    assert await pid(odd) != first


async def test_stopping_a_reader_that_never_read_does_nothing() -> None:
    await Reader().stop()


async def test_a_mail_that_takes_too_long_is_malformed_and_the_next_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    odd = Reader(seconds=1, worker="tests.unit.email.reading.odd_worker")
    letter, next_letter = await asyncio.gather(
        odd.read(b"hang", TRUSTED, OURS), odd.read(mail(PASS), TRUSTED, OURS)
    )
    await odd.stop()
    assert (letter.kind, letter.why) == (LetterKind.MALFORMED, "it took too long to read")
    assert next_letter.verified


async def test_a_mail_that_kills_its_process_is_malformed_and_the_next_is_read(odd: Reader) -> None:
    letter = await odd.read(b"die always", TRUSTED, OURS)
    assert (letter.kind, letter.why) == (LetterKind.MALFORMED, "the process that read it died")
    assert (await odd.read(mail(PASS), TRUSTED, OURS)).verified


async def test_a_mail_waits_while_no_process_can_be_started(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("sys.executable", "/nowhere/python")
        with pytest.raises(Unavailable, match="No process can be started"):
            await reader.read(mail(PASS), TRUSTED, OURS)
    assert (await reader.read(mail(PASS), TRUSTED, OURS)).verified


async def test_a_process_that_died_of_something_else_costs_no_mail(odd: Reader, tmp_path: Path) -> None:
    letter = await odd.read(b"die once %s" % bytes(tmp_path / "died"), TRUSTED, OURS)
    assert letter.why != "the process that read it died"
    os.kill(await pid(odd), signal.SIGKILL)
    assert (await odd.read(mail(PASS), TRUSTED, OURS)).verified


async def test_a_mail_that_wants_too_much_memory_is_malformed(odd: Reader) -> None:
    letter = await odd.read(b"eat", TRUSTED, OURS)
    assert letter.kind is LetterKind.MALFORMED
    assert (await odd.read(mail(PASS), TRUSTED, OURS)).verified


async def test_what_a_library_prints_is_no_answer(odd: Reader) -> None:
    assert isinstance(await odd.read(b"print", TRUSTED, OURS), Letter)
    assert (await odd.read(mail("Subject: next"), TRUSTED, OURS)).subject == "next"


async def test_a_reading_that_is_given_up_leaves_no_answer_behind(odd: Reader) -> None:
    await pid(odd)
    hanging = asyncio.create_task(odd.read(b"hang", TRUSTED, OURS))
    await asyncio.sleep(0.05)
    hanging.cancel()
    with pytest.raises(asyncio.CancelledError):
        await hanging
    assert (await odd.read(mail("Subject: next"), TRUSTED, OURS)).subject == "next"


async def test_the_same_mail_has_the_same_digest_however_often_it_kills(odd: Reader) -> None:
    first, second = [await odd.read(b"die always", TRUSTED, OURS) for _ in range(2)]
    assert first.digest == second.digest
