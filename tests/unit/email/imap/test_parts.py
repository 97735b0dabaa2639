"""The small parts behind a mailbox: what an envelope is made of, how long to wait, one thread."""

from __future__ import annotations

import asyncio
import threading

import pytest

from adapters.email.imap.door import back_off_seconds
from adapters.email.imap.intake import envelope_of
from adapters.email.imap.thread import BlockingThread


@pytest.mark.parametrize(
    ("raw", "sender"),
    [
        (b"Return-Path: <ada@example.com>\r\nSubject: x\r\n\r\nHello", "ada@example.com"),
        (b"return-path:<ada@example.com>\nSubject: x\n\nHello", "ada@example.com"),
        (b"Return-Path:\r\n <ada@example.com>\r\n\r\n", "ada@example.com"),
        (b"Return-Path: ada@example.com\n\n", "ada@example.com"),
        (b"Return-Path: <>\r\n\r\n", ""),
        (b"Received: x\r\nReturn-Path: <a@b.c>\r\n\r\n", "a@b.c"),
        (b"Return-Path: <first@b.c>\nReturn-Path: <second@b.c>\n\n", "first@b.c"),
        (b"Subject: x\r\n\r\nReturn-Path: <forged@example.com>\r\n", None),
        (b"X-Return-Path: <forged@example.com>\r\n\r\n", None),
        (b"\r\nReturn-Path: <forged@example.com>\r\n", None),
        (b"", None),
    ],
)
def test_the_sender_is_what_the_header_return_path_says(raw: bytes, sender: str | None) -> None:
    envelope = envelope_of(raw)
    assert envelope.sender == sender
    assert envelope.recipients == ()
    assert envelope.believes_results


def test_waiting_doubles_up_to_five_minutes() -> None:
    waits = [back_off_seconds(failures, 1.0, 300.0) for failures in (1, 2, 3, 9, 10, 10_000)]
    assert waits == [1.0, 2.0, 4.0, 256.0, 300.0, 300.0]


async def test_calls_are_made_in_order_in_one_thread() -> None:
    thread, ended = BlockingThread("test"), threading.Event()
    names = await asyncio.gather(*(thread.call(lambda: threading.current_thread()) for _ in range(3)))
    thread.end(ended.set)
    assert len(set(names)) == 1
    assert await asyncio.to_thread(ended.wait, 5)
    names[0].join(5)
    assert not names[0].is_alive()


async def test_what_a_call_raises_is_raised_where_it_was_asked_for() -> None:
    thread = BlockingThread("test")
    with pytest.raises(ZeroDivisionError):
        await thread.call(lambda: 1 // 0)
    assert await thread.call(lambda: 1) == 1
    thread.end(lambda: None)
