"""What was sent with a request? Its bytes, as far as they are wanted, in the time they may take.

A body over its limit is refused from its declared length before a byte is read, and from what really arrives
otherwise. Slow senders get 30 s, and longer only while they keep up a modest pace.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect

from .refusals import BadBody, TooLarge, TooSlow

JSON_BYTES = 2_000_000
FILES_BYTES = 64 * 1024 * 1024
PATIENCE_SECONDS = 30.0
_SLOWEST_BYTES_PER_SECOND = 100_000

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


async def read_body(
    receive: Receive, headers: Headers, limit_bytes: int, *, patience_seconds: float = PATIENCE_SECONDS
) -> bytes:
    """The whole body.

    Raises:
        BadBody: the declared length is no number.
        TooLarge: more than `limit_bytes`, declared or sent.
        TooSlow: it did not arrive in time.
        ClientDisconnect: nobody is there any more.
    """
    _check_declared(headers.get("content-length"), limit_bytes)
    loop = asyncio.get_running_loop()
    started, body = loop.time(), bytearray()
    try:
        async with asyncio.timeout_at(started + patience_seconds) as deadline:
            more = True
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                body += message.get("body", b"")
                if len(body) > limit_bytes:
                    raise _too_large(limit_bytes)
                more = message.get("more_body", False)
                deadline.reschedule(started + patience_seconds + len(body) / _SLOWEST_BYTES_PER_SECOND)
    except TimeoutError as error:
        raise TooSlow(
            f"The body did not arrive within {patience_seconds:.0f} s; send it again on a better line."
        ) from error
    return bytes(body)


def _check_declared(length: str | None, limit_bytes: int) -> None:
    if length is None:
        return
    if not (length.isascii() and length.isdigit()):
        raise BadBody("The header Content-Length is not a number.", code="bad_request")
    if len(length) > 18 or int(length) > limit_bytes:
        raise _too_large(limit_bytes)


def _too_large(limit_bytes: int) -> TooLarge:
    return TooLarge(
        f"The body is larger than {limit_bytes:,} bytes, the most that is taken here; send less at once."
    )
