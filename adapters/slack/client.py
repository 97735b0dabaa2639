"""How is Slack's Web API called? One method at a time, each failure as one of our own errors.

    not reached                   -> Away: nothing happened
    cut off, 5xx, no JSON         -> DeliveryUnknown: it may have happened; looked up, not repeated blindly
    429, `ratelimited`            -> Limited: when it may be tried again
    not let in                    -> NotLetIn: until the operator does something
    everything else               -> Denied: trying again changes nothing; `error` is Slack's word

The SDK repeats calls after a lost connection by default, which would say things twice; here nothing does.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pizzabot.errors import DeliveryFailed, DeliveryUnknown

if TYPE_CHECKING:
    import aiohttp
    from slack_sdk.web.async_client import AsyncWebClient

logger = logging.getLogger(__name__)

CALL_SECONDS = 15.0
_DOWNLOAD_SECONDS = 120.0
_NOT_LET_IN_AGAIN_SECONDS = 60.0
# These take JSON; others only forms.
_JSON = ("chat.", "views.", "assistant.", "conversations.open", "files.completeUploadExternal")
_NOT_LET_IN = frozenset(
    (
        "account_inactive",
        "app_not_installed",
        "invalid_auth",
        "missing_scope",
        "no_permission",
        "not_allowed_token_type",
        "not_authed",
        "org_login_required",
        "team_access_not_granted",
        "token_expired",
        "token_revoked",
    )
)
_PASSING = frozenset(("internal_error", "fatal_error", "service_unavailable", "request_timeout"))


class Away(DeliveryFailed):
    """Slack cannot be reached."""

    def __init__(self, why: str) -> None:
        super().__init__(f"Slack cannot be reached ({why})", retryable=True)


class Limited(DeliveryFailed):
    """Slack asked to wait."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"Slack asked to wait {seconds:.0f} s", retryable=True, retry_after=seconds)


class NotLetIn(DeliveryFailed):
    """The token is not valid, or may not do this."""

    def __init__(self, method: str, error: str, needed: str | None) -> None:
        self.error, self.needed = error, needed
        cure = f"; add the scope {needed} to the app and install it again" if needed else ""
        super().__init__(
            f"Slack refused {method} ({error}){cure}", retryable=True, retry_after=_NOT_LET_IN_AGAIN_SECONDS
        )


class Denied(DeliveryFailed):
    """Slack does not do this; `error` is its word for why."""

    def __init__(self, method: str, error: str, details: str = "") -> None:
        self.error = error
        super().__init__(f"Slack refused {method}: {error}{details}", retryable=False)


class Slack:
    """The Web API of one workspace."""

    def __init__(self, web: AsyncWebClient, session: aiohttp.ClientSession) -> None:
        self._web, self._session = web, session

    def _holds(self, url: str) -> bool:
        """Whether a file's address is Slack's: the token goes nowhere else."""
        host = urlsplit(url).hostname or ""
        return host == urlsplit(self._web.base_url).hostname or host.endswith(".slack.com")

    async def call(self, method: str, *, token: str | None = None, **arguments: Any) -> Mapping[str, Any]:
        """The answer of a method; arguments that are None are left out.

        Raises:
            Away, Limited, NotLetIn, Denied, DeliveryUnknown: see the module.
        """
        import aiohttp
        from slack_sdk.errors import SlackApiError

        sent = {name: value for name, value in arguments.items() if value is not None}
        body: dict[str, Any] = {"json": sent} if method.startswith(_JSON) else {"data": sent}
        headers = {"Authorization": f"Bearer {token}"} if token is not None else None
        try:
            async with asyncio.timeout(CALL_SECONDS):
                response = await self._web.api_call(method, headers=headers, **body)
        except SlackApiError as error:
            raise _failure(method, error.response) from error
        except aiohttp.ClientConnectorError as error:
            raise Away(type(error).__name__) from error
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise DeliveryUnknown(f"Slack was cut off ({type(error).__name__})") from error
        except (AttributeError, TypeError, ValueError) as error:
            # The SDK stumbles over what is no JSON object: a proxy's page, or half an answer.
            raise DeliveryUnknown(f"Slack's answer to {method} cannot be read") from error
        if not isinstance(response.data, dict):
            raise DeliveryUnknown(f"Slack's answer to {method} cannot be read")
        return {**response.data, "_headers": response.headers}

    async def say(self, url: str, **message: Any) -> None:
        """Tell whoever pressed something, through the address that came with it; seen by them alone.

        Raises DeliveryFailed when it could not be told.
        """
        import aiohttp

        body = {"response_type": "ephemeral", "replace_original": False, **message}
        try:
            timeout = aiohttp.ClientTimeout(total=CALL_SECONDS)
            async with self._session.post(url, json=body, timeout=timeout) as response:
                if response.status >= 400:
                    raise Denied("response_url", str(response.status))
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise Away(type(error).__name__) from error

    async def upload(self, url: str, content: bytes) -> None:
        """Bring a file's bytes to the address that Slack gave for them."""
        import aiohttp

        try:
            timeout = aiohttp.ClientTimeout(total=_DOWNLOAD_SECONDS)
            async with self._session.post(url, data=content, timeout=timeout) as response:
                if response.status >= 500:
                    raise DeliveryUnknown(f"Slack did not take the file ({response.status})")
                if response.status >= 400:
                    raise Denied("upload", str(response.status))
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise DeliveryUnknown(f"the file was cut off ({type(error).__name__})") from error

    async def download(self, url: str, token: str, most: int) -> bytes:
        """A person's file of at most `most` bytes.

        Raises:
            Denied: it is larger, or Slack answers with its sign-in page, as it does without the right scope.
            Away: try again later.
        """
        import aiohttp

        if not self._holds(url):
            raise Denied("file", "not_in_slack")
        headers = {"Authorization": f"Bearer {token}"}
        timeout = aiohttp.ClientTimeout(total=_DOWNLOAD_SECONDS)
        try:
            async with self._session.get(url, headers=headers, timeout=timeout) as response:
                if response.status in (429,) or response.status >= 500:
                    raise Away(str(response.status))
                if response.status != 200:
                    raise Denied("file", str(response.status))
                content = await response.content.read(most + 1)
                while len(content) <= most and (more := await response.content.read(most + 1 - len(content))):
                    content += more
                if len(content) > most:
                    raise Denied("file", "too_large")
                if (
                    response.content_type == "text/html"
                    and content.lstrip()[:15].lower() == b"<!doctype html>"
                ):
                    raise Denied("file", "sign_in_page", "; the scope files:read may be missing")
                return content
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise Away(type(error).__name__) from error


def _failure(method: str, response: Any) -> DeliveryFailed:
    status = int(getattr(response, "status_code", 0) or 0)
    data = response.data if isinstance(getattr(response, "data", None), dict) else {}
    error = str(data.get("error") or "")
    if status == 429 or error == "ratelimited":
        return Limited(_seconds(getattr(response, "headers", {})))
    if status >= 500 or error in _PASSING or not error:
        # Without Slack's own word for it, it may be a proxy that speaks, and Slack may have done it.
        return DeliveryUnknown(f"Slack failed at {method} ({error or status})")
    if error in _NOT_LET_IN:
        needed = str(data.get("needed") or "") or ("unknown" if error == "missing_scope" else None)
        return NotLetIn(method, error, needed)
    said = (data.get("response_metadata") or {}).get("messages") or ()
    return Denied(method, error, "".join(f"; {text}" for text in list(said)[:3]))


def _seconds(headers: Mapping[str, Any]) -> float:
    found = next((value for name, value in headers.items() if name.lower() == "retry-after"), "1")
    try:
        return min(max(float(found), 0.5), 3600.0)
    except (TypeError, ValueError):
        return 1.0
