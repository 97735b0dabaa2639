"""Is this request meant for us, and does every answer carry what protects it? One layer around all routes.

Host is ours?  no -> 421: a foreign name that points here is DNS rebinding
Origin is ours, or not there?  no -> 403: a page of somebody else sent it, `null` included
-> the routes -> security headers on whatever leaves; a failure of ours is logged under an id and told as 500
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import secrets
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from pizzabot.errors import Refused

from .refusals import ForeignHost, ForeignOrigin, Internal, TooLarge, TooSlow
from .refused import refused

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

# Method, pattern of the path, status, seconds.
Answered = Callable[[str, str | None, int, float], None]

logger = logging.getLogger(__name__)

_POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
    "Content-Security-Policy": _POLICY,
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_DEFAULT_PORTS = {"http": 80, "https": 443}
_LINGER_SECONDS = 2.0
_LINGER_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class OwnNames:
    """Under which names this server is reached: loopback with its port, and what the operator wrote down."""

    port: int
    origins: frozenset[tuple[str, str, int]]  # scheme, host, port

    def is_host(self, header: str) -> bool:
        """Whether a Host header is ours."""
        parts = _authority(header)
        if parts is None:
            return False
        host, port = parts
        if _is_loopback(host) and (port or 80) == self.port:
            return True
        return any(host == ours and port in (known, None) for _, ours, known in self._hosts(port))

    def _hosts(self, port: int | None) -> Iterable[tuple[str, str, int]]:
        # Without a port the header means the scheme's own one.
        return (o for o in self.origins if port is not None or o[2] == _DEFAULT_PORTS[o[0]])

    def is_https(self, header: str) -> bool:
        """Whether a Host header of ours is one under which people come over https."""
        parts = _authority(header)
        return parts is not None and ("https", parts[0], parts[1] or 443) in self.origins

    def is_origin(self, header: str) -> bool:
        """Whether an Origin header is ours; `null` never is."""
        origin = _origin(header)
        if origin is None:
            return False
        scheme, host, port = origin
        return origin in self.origins or (scheme == "http" and _is_loopback(host) and port == self.port)


def own_names(port: int, written: Iterable[str]) -> OwnNames:
    """The names of a server that listens on `port`, and the URLs that the operator wrote down for it."""
    return OwnNames(port, frozenset(origin for text in written if (origin := _origin(text)) is not None))


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _origin(text: str) -> tuple[str, str, int] | None:
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if parts.scheme not in _DEFAULT_PORTS or not host or parts.username is not None:
        return None
    return parts.scheme, host, _DEFAULT_PORTS[parts.scheme] if port is None else port


def _authority(header: str) -> tuple[str, int | None] | None:
    try:
        parts = urlsplit(f"//{header}")
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if not host or parts.netloc != header or "@" in header:
        return None
    return host.removesuffix("."), port


class Guard:
    """The layer; everything that the server serves goes through it."""

    def __init__(self, app: ASGIApp, *, names: OwnNames, answered: Answered) -> None:
        self._app, self._names, self._answered = app, names, answered

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        answer, began = _Answer(send), time.perf_counter()
        try:
            await self._serve(scope, receive, answer)
        finally:
            route = getattr(scope.get("route"), "path", None)
            self._answered(scope["method"], route, answer.status, time.perf_counter() - began)

    async def _serve(self, scope: Scope, receive: Receive, answer: _Answer) -> None:
        headers = Headers(scope=scope)
        try:
            self._check(headers)
            await self._app(scope, receive, answer.send)
        except Refused as error:
            unread = isinstance(error, TooLarge | TooSlow)
            await answer.tell(refused(scope["path"], headers, error), receive if unread else None)
        except ClientDisconnect:
            pass
        except Exception:
            log_id = secrets.token_hex(6)
            logger.exception("%s %s failed (%s)", scope["method"], scope["path"], log_id)
            await answer.tell(refused(scope["path"], headers, Internal(log_id)))

    def _check(self, headers: Headers) -> None:
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) != 1 or not self._names.is_host(hosts[0]):
            raise ForeignHost(
                "This server does not answer under that name (foreign host); "
                "use the address it printed at its start, or set web.public_url."
            )
        if not all(self._names.is_origin(origin) for origin in origins):
            raise ForeignOrigin(
                "A page of another site sent this request; if it is yours, add it to web.allowed_origins."
            )


class _Answer:
    """The way out: adds the headers that every answer has."""

    def __init__(self, send: Send) -> None:
        self._send, self.started = send, False
        self.status = 499  # until there is an answer: whoever asked has gone

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started, self.status = True, message["status"]
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        await self._send(message)

    async def tell(self, response: Response, unread: Receive | None = None) -> None:
        """Answer instead of the app. A body that was not read is thrown away for a moment, or the connection
        would break before the answer is heard."""
        if self.started:
            return
        if unread is not None:
            response.headers["Connection"] = "close"
        start = {
            "type": "http.response.start",
            "status": response.status_code,
            "headers": response.raw_headers,
        }
        await self.send(start)
        more = unread is not None
        await self._send({"type": "http.response.body", "body": response.body, "more_body": more})
        if unread is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(_LINGER_SECONDS):
                    await _throw_away(unread)
            await self._send({"type": "http.response.body", "body": b""})


async def _throw_away(receive: Receive) -> None:
    """Read on without keeping: a closed connection with unread data loses the answer on its way."""
    seen = 0
    while seen < _LINGER_BYTES:
        message = await receive()
        seen += len(message.get("body", b""))
        if message["type"] == "http.disconnect" or not message.get("more_body", False):
            return
