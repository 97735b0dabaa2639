"""How does one log in where no password is taken? With an access token (XOAUTH2), from one of two sources.

    token_command    a program prints it, each time we log in; it does its own keeping
    refresh_token    is exchanged at `token_url` (RFC 6749 §6) and the answer is kept until it expires

Gmail and Microsoft 365 work with either.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

import httpx

from pizzabot.settings.tables import OAuthTable
from pizzabot.text import visible

from .failures import NotLetIn, Unreachable

_SECONDS = 30.0
_BLOCKED_SECONDS = 2 * _SECONDS
_EARLY_SECONDS = 60.0  # a token that is about to expire is not used any more
_DEFAULT_LIFE_SECONDS = 300.0  # `expires_in` is only recommended (RFC 6749 §5.1)
_LARGEST_TOKEN = 64 * 1024


class TokenSource(Protocol):
    """Where access tokens come from."""

    async def token(self, *, fresh: bool = False) -> str:
        """An access token; `fresh` when the last one was refused.

        Raises:
            NotLetIn: there is none until the operator does something.
            Unreachable: there is none at the moment.
        """
        ...


def token_source(table: OAuthTable | None) -> TokenSource | None:
    """The source that the settings name; None where a password is used."""
    if table is None:
        return None
    return CommandTokens(table.token_command) if table.token_command else RefreshedTokens(table)


@dataclass(frozen=True, slots=True)
class BlockingTokens:
    """The same for a thread beside the event loop of `source`."""

    source: TokenSource
    loop: asyncio.AbstractEventLoop

    def token(self, *, fresh: bool = False) -> str:
        """As `TokenSource.token`; waits for it, and raises TimeoutError when that takes too long."""
        asked = asyncio.run_coroutine_threadsafe(self.source.token(fresh=fresh), self.loop)
        return asked.result(_BLOCKED_SECONDS)


def blocking(source: TokenSource | None) -> BlockingTokens | None:
    """`source` for threads. Called in the event loop."""
    return BlockingTokens(source, asyncio.get_running_loop()) if source is not None else None


class CommandTokens:
    """Access tokens that a program prints."""

    def __init__(self, command: Sequence[str], seconds: float = _SECONDS) -> None:
        self._command, self._seconds = command, seconds

    async def token(self, *, fresh: bool = False) -> str:
        del fresh  # the program decides, each time
        name = visible(self._command[0])
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,  # may hold a secret, and would reach our log
                start_new_session=True,
            )
        except OSError as error:
            raise NotLetIn(f"token_command {name} cannot be started ({error.strerror})") from error
        try:
            async with asyncio.timeout(self._seconds):
                printed, _ = await process.communicate()
        except TimeoutError as error:
            raise Unreachable(f"token_command {name} did not end within {self._seconds:.0f} s") from error
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)  # with whatever it started
                await process.wait()
        if process.returncode:
            raise NotLetIn(f"token_command {name} failed with exit code {process.returncode}; run it by hand")
        token = printed.decode("ascii", "replace").strip()
        if not _is_token(token):
            raise NotLetIn(f"token_command {name} did not print an access token on one line; run it by hand")
        return token


class RefreshedTokens:
    """Access tokens for a refresh token.

    A new refresh token in an answer replaces the old one (RFC 6749 §6) for as long as the process runs.
    """

    def __init__(self, table: OAuthTable, now: Callable[[], float] = time.monotonic) -> None:
        self._url, self._now = table.token_url, now
        secret = table.client_secret.get_secret_value() if table.client_secret else ""
        refresh = table.refresh_token.get_secret_value() if table.refresh_token else ""
        self._form = {
            "grant_type": "refresh_token",
            "refresh_token": refresh,
            "client_id": table.client_id,
            **({"client_secret": secret} if secret else {}),
            **({"scope": table.scope} if table.scope else {}),
        }
        self._token, self._good_until = "", float("-inf")

    async def token(self, *, fresh: bool = False) -> str:
        if fresh or self._now() >= self._good_until:
            await self._refresh()
        return self._token

    async def _refresh(self) -> None:
        try:
            async with httpx.AsyncClient(timeout=_SECONDS) as client:
                answer = await client.post(self._url, data=self._form)
        except httpx.HTTPError as error:
            raise Unreachable(f"no answer of token_url ({type(error).__name__})") from error
        said = _object(answer)
        if answer.status_code in (408, 429) or answer.status_code >= 500:
            raise Unreachable(f"token_url answered {answer.status_code}")
        token = said.get("access_token")
        if answer.status_code != 200 or not isinstance(token, str) or not _is_token(token):
            raise NotLetIn(_refused(answer.status_code, said))
        self._token = token
        self._good_until = self._now() + _life_seconds(said.get("expires_in")) - _EARLY_SECONDS
        if isinstance(said.get("refresh_token"), str):
            self._form["refresh_token"] = said["refresh_token"]


def _object(answer: httpx.Response) -> dict[str, Any]:
    try:
        said = answer.json()
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def _life_seconds(said: object) -> float:
    """`expires_in`; some servers write the number as a string."""
    return float(str(said)) if re.fullmatch(r"\d{1,9}", str(said)) else _DEFAULT_LIFE_SECONDS


def _refused(status: int, said: dict[str, Any]) -> str:
    """The sentence for an error answer (RFC 6749 §5.2)."""
    error = visible(str(said.get("error", "no access token")))[:100]
    cure = {
        "invalid_grant": "sign in again for a new refresh_token",
        "invalid_client": "look at client_id and client_secret",
        "invalid_scope": "look at scope",
    }.get(error, "look at the table oauth")
    return f"token_url gave no access token ({status}, {error}); {cure}"


def _is_token(text: str) -> bool:
    """Whether it is a b64token or at least nothing that could leave its line (RFC 6750 §2.1)."""
    return 0 < len(text) <= _LARGEST_TOKEN and text.isascii() and text.isprintable() and " " not in text
