"""How is the running server asked, and what does its refusal say?"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, BinaryIO
from zoneinfo import ZoneInfo

from pizzabot.cli.failures import Failed, NotRunning, program
from pizzabot.cli.place import Server, home_of, server_of
from pizzabot.text import visible

# httpx imports its own command line with pygments and click, half a second that no command here needs.
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
import httpx as httpx  # noqa: E402

_TIMEOUT = httpx.Timeout(60.0, connect=5.0)


class NoAnswer(Failed):
    """The request was sent and nothing sensible came back; it may have been carried out."""


class Refusal(Failed):
    """The API said no. `status` and `code` are its words for programs, `body` is everything it said."""

    def __init__(self, status: int, body: Mapping[str, Any]) -> None:
        error = body.get("error") if isinstance(body.get("error"), dict) else {}
        self.status, self.body = status, body
        self.error_code = str(error.get("code", "")) if error else ""
        message = str(error.get("message", "")) if error else ""
        super().__init__(*refusal_lines(status, message, _field_errors(body)))


def refusal_lines(status: int, message: str, fields: Sequence[Mapping[str, Any]]) -> list[str]:
    """What a refusal reads like: the message, then each field that is wrong. The one place that words it."""
    first = visible(message.strip()) or f"the server answered with status {status}"
    told = [f"{visible(str(f.get('path', '')))}: {visible(str(f.get('message', '')))}" for f in fields]
    fields_said = [line.lstrip("/") for line in told]
    if len(told) > 1 and first == " ".join(fields_said):
        return fields_said  # a line each is easier to read than all of them in one
    return [first, *(line for line in told if not first.endswith(line.lstrip("/")))]


def _field_errors(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    error = body.get("error")
    inside = error.get("errors", []) if isinstance(error, dict) else []
    found = body.get("errors") or inside
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []


class Api:
    """The HTTP API of one server, as one person."""

    def __init__(self, server: Server, http: httpx.Client, home_option: str | None = None) -> None:
        self.server, self.http, self._home_option = server, http, home_option

    def command(self, *words: str) -> str:
        """A command to be typed next, for the same home as this one."""
        home = f"--home {shlex.quote(self._home_option)} " if self._home_option else ""
        return f"{program()} {home}{' '.join(words)}"

    def get(self, path: str, **query: Any) -> Any:
        """The JSON of a page. Raises Refusal, or NotRunning when nobody answers."""
        return self.send("GET", path, query=query)

    def post(self, path: str, body: Mapping[str, Any] | None = None, **headers: str) -> Any:
        """The JSON that a change is answered with."""
        return self.send("POST", path, body=body if body is not None else {}, headers=headers)

    def send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """One request and its JSON."""
        wanted = {name: _sendable(value) for name, value in (query or {}).items() if value is not None}
        content = json.dumps(body).encode() if body is not None else None
        typed = {"Content-Type": "application/json"} if content is not None else {}
        try:
            response = self.http.request(
                method, path, params=wanted, content=content, headers=typed | dict(headers or {})
            )
        except httpx.ConnectError as error:
            raise NotRunning(self.server.home.path) from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            why = visible(str(error)) or type(error).__name__
            raise NoAnswer(f"the server did not answer: {why}") from error
        return _answer(response)

    def save(self, path: str, file: BinaryIO, **query: Any) -> None:
        """The bytes of a page into a file, as they come."""
        wanted = {name: _sendable(value) for name, value in query.items() if value is not None}
        try:
            with self.http.stream("GET", path, params=wanted) as response:
                if not response.is_success:
                    response.read()
                    _answer(response)
                for part in response.iter_bytes():
                    file.write(part)
        except httpx.ConnectError as error:
            raise NotRunning(self.server.home.path) from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            why = visible(str(error)) or type(error).__name__
            raise NoAnswer(f"the server's answer broke off: {why}") from error

    @cached_property
    def zone(self) -> ZoneInfo:
        """The time zone of the person who asks."""
        try:
            return ZoneInfo(str(self.get("/api/me").get("timezone") or "UTC"))
        except (ValueError, OSError, KeyError):
            return ZoneInfo("UTC")

    @property
    def now(self) -> datetime:
        return datetime.now(UTC)


def _sendable(value: Any) -> Any:
    """A word of the command line may hold bytes that are no text; a query cannot."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def _answer(response: httpx.Response) -> Any:
    try:
        body = response.json() if response.content else {}
    except ValueError:
        body = None
    if response.is_success:
        if body is None:
            raise Failed("the server's answer is not JSON; is another program on its port?")
        return body
    raise Refusal(response.status_code, body if isinstance(body, dict) else {})


@contextmanager
def connected(option: str | None, environ: Mapping[str, str] = os.environ) -> Iterator[Api]:
    """The API of the server of the chosen home."""
    server = server_of(home_of(option, environ), environ)
    headers = {"Authorization": f"Bearer {server.token}", "X-Pizzabot-Client": "terminal"}
    # Never through a proxy: the server is on this machine, and the token stays here.
    with httpx.Client(base_url=server.url, headers=headers, timeout=_TIMEOUT, trust_env=False) as http:
        yield Api(server, http, option)
