"""How does Slack reach us without a public address? One websocket, watched, renewed, never two.

    apps.connections.open -> connect -> hello -> envelopes … -> disconnect or silence -> closed -> again

Alive is what answers a ping, not what delivers: a quiet workspace is no broken one. An envelope is
acknowledged when what it says is committed; what was not acknowledged is delivered again, as a retry.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

from pizzabot.errors import DeliveryFailed

from .client import Limited, NotLetIn

if TYPE_CHECKING:
    import aiohttp

logger = logging.getLogger(__name__)

_HELLO_SECONDS = 10.0
_PING_SECONDS = 10.0
_CLOSE_SECONDS = 1.0  # so long the other side has to say goodbye, before the next connection is opened
_LONGEST_WAIT = 30.0
_LASTED_SECONDS = 5.0
_LARGEST_ENVELOPE = 16 * 1024 * 1024
_RENEW = ("warning", "refresh_requested")

State = Literal["ok", "connecting", "down", "unauthorized", "off"]
Envelope = Mapping[str, Any]
# The body of the acknowledgement, or None when the envelope is not to be acknowledged.
Answer = Callable[[Envelope], Awaitable[Mapping[str, Any] | None]]


class Socket:
    """Keeps one connection for as long as it runs."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        ticket: Callable[[], Awaitable[str]],
        answer: Answer,
        changed: Callable[[State, str | None], None],
    ) -> None:
        """`ticket` gives an address that is good for one connection.

        `changed` hears how the connection is: ok, connecting, down or unauthorized, and why.
        """
        self._session, self._ticket, self._answer, self._changed = session, ticket, answer, changed
        self.is_open = False
        self._task: asyncio.Task[None] | None = None
        self._working: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="slack socket")

    async def stop(self) -> None:
        """Close; what is being answered may end, for some seconds."""
        if self._working:
            await asyncio.wait(self._working, timeout=5)
        for task in (self._task, *self._working):
            if task is not None:
                task.cancel()
        await asyncio.gather(*filter(None, (self._task, *self._working)), return_exceptions=True)

    async def _run(self) -> None:
        failures = 0
        self._changed("connecting", None)
        while True:
            began = asyncio.get_running_loop().time()
            try:
                await self._connection()
                self._changed("connecting", None)
                if asyncio.get_running_loop().time() - began >= _LASTED_SECONDS:
                    failures = 0
                    continue  # asked to, or cut: at once
                wait = 0.0  # a connection that never lasts would use up the tickets
            except NotLetIn as error:
                self._changed("unauthorized", str(error))
                wait = 10.0
            except Limited as error:
                self._changed("down", str(error))
                wait = error.retry_after_seconds or 1.0
            except DeliveryFailed as error:
                self._changed("down", str(error))
                wait = 0.0
            except Exception as error:
                logger.exception("the connection to Slack failed")
                self._changed("down", type(error).__name__)
                wait = 1.0
            failures += 1
            await asyncio.sleep(max(wait, back_off_seconds(failures) * random.uniform(0.8, 1.2)))

    async def _connection(self) -> None:
        """One connection from its ticket to its end; raises when it never said hello."""
        import aiohttp

        url = await self._ticket()
        try:
            async with asyncio.timeout(_HELLO_SECONDS):
                socket = await self._session.ws_connect(
                    url,
                    heartbeat=_PING_SECONDS,
                    max_msg_size=_LARGEST_ENVELOPE,
                    timeout=aiohttp.ClientWSTimeout(ws_close=_CLOSE_SECONDS),
                )
                await self._hello(socket)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise DeliveryFailed(f"no connection ({type(error).__name__})", retryable=True) from error
        try:
            self.is_open = True
            self._changed("ok", None)
            await self._read(socket)
        finally:
            self.is_open = False
            await socket.close()

    async def _hello(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        try:
            said = json.loads(await socket.receive_str())
        except (TypeError, ValueError) as error:
            await socket.close()
            raise DeliveryFailed("Slack did not say hello", retryable=True) from error
        if said.get("type") != "hello":
            await socket.close()
            reason = said.get("reason") or said.get("type")
            raise DeliveryFailed(f"Slack did not say hello but {reason}", retryable=True)

    async def _read(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        async for message in socket:
            try:
                envelope = json.loads(message.data)
            except (TypeError, ValueError):
                continue
            if envelope.get("type") == "disconnect":
                logger.info("Slack asked to connect anew: %s", envelope.get("reason"))
                if envelope.get("reason") not in _RENEW:
                    raise DeliveryFailed(f"Slack disconnected: {envelope.get('reason')}", retryable=True)
                await self._settle()
                return
            if "envelope_id" in envelope:
                task = asyncio.create_task(self._handle(socket, envelope))
                self._working.add(task)
                task.add_done_callback(self._working.discard)

    async def _settle(self) -> None:
        """Let what was read be acknowledged on the connection that it came by."""
        if self._working:
            await asyncio.wait(self._working, timeout=2)

    async def _handle(self, socket: aiohttp.ClientWebSocketResponse, envelope: Envelope) -> None:
        try:
            payload = await self._answer(envelope)
        except Exception:
            logger.exception("an envelope was not understood")
            return
        if payload is None or socket.closed:
            return
        said: dict[str, Any] = {"envelope_id": envelope["envelope_id"]}
        if payload:
            said["payload"] = payload
        with suppress(ConnectionError, RuntimeError):
            await socket.send_str(json.dumps(said))


def back_off_seconds(failures: int) -> float:
    """How long to wait after so many failures in a row: soon at first, as an outage is mostly short."""
    if failures <= 2:
        return 0.2 * failures
    if failures <= 20:
        return 1.0
    return min(_LONGEST_WAIT, 2.0 ** (failures - 20))
