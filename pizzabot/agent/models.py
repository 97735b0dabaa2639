"""Which model answers, and what does its failure mean?

Models are made by LangChain's `init_chat_model`; its imports take seconds, so they happen on first use.
Retrying is this project's (agent.calls), so the clients do none.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import httpx

from pizzabot.errors import ModelFailed

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

REQUEST_SECONDS = 180.0
DEMO_PROVIDER = "demo"

_KEY_VARIABLE = {
    "openai": "OPENAI_API_KEY",
    "google_genai": "GOOGLE_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "openrouter": "OPENROUTER_API_KEY",
}
_EXTRA = {
    "anthropic": "anthropic",
    "bedrock_converse": "bedrock",
    "ollama": "ollama",
    "openrouter": "openrouter",
}

Options = Callable[[str], Mapping[str, Any]]


def label(model: str) -> str:
    """The model's name as it is shown to people: the demo model never passes for a real one."""
    provider = model.partition(":")[0]
    return "demo (offline, not a real model)" if provider == DEMO_PROVIDER else model


def make_model(
    model: str, options: Mapping[str, Any], environ: Mapping[str, str] = os.environ
) -> BaseChatModel:
    """The chat model `provider:name` with the keywords of `[models.<provider>]`.

    Raises:
        ModelFailed: `auth` without a key, `not_found` when the provider's package is not installed.
    """
    provider, _, name = model.partition(":")
    if provider == DEMO_PROVIDER:
        from pizzabot.agent.demo_model import DemoModel

        return DemoModel()
    arguments = dict(options)
    variable = _KEY_VARIABLE.get(provider)
    if variable and "api_key" not in arguments and not environ.get(variable):
        if "base_url" not in arguments:
            raise ModelFailed(
                "auth",
                f"There is no API key for {provider}: set {variable}, or api_key in [models.{provider}].",
                retryable=False,
            )
        # A compatible server of one's own needs no key; the client insists on one.
        arguments["api_key"] = "none"
    arguments.setdefault("max_retries", 0 if provider == "openai" else 1)
    arguments.setdefault("timeout", REQUEST_SECONDS)
    from langchain.chat_models import init_chat_model

    try:
        made: BaseChatModel = init_chat_model(name, model_provider=provider, **arguments)
    except ImportError as error:
        extra = _EXTRA.get(provider, provider)
        raise ModelFailed(
            "not_found",
            f"The package for {provider} is not installed: pip install 'pizzabot[{extra}]'.",
            retryable=False,
        ) from error
    except (ValueError, TypeError) as error:
        raise ModelFailed(
            "other", f"[models.{provider}] does not fit {provider}: {_first_line(error)}", retryable=False
        ) from error
    if provider == "openai":
        openai: Any = made
        openai.async_client = _Straight(openai.async_client)
    return made


class _Straight:
    """OpenAI's chat completions, sent as they are.

    The client walks through messages and tools, trying each against every type that it could be: milliseconds
    in a long conversation, and nothing in them has another name on the wire. What goes as `extra_body`
    it does not look at.
    """

    def __init__(self, completions: Any) -> None:
        self._completions = completions

    @property
    def with_raw_response(self) -> _Straight:
        return _Straight(self._completions.with_raw_response)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._completions, name)  # everything else is as it was

    async def create(self, *, messages: Any, extra_body: Any = None, **more: Any) -> Any:
        straight = {"messages": messages} | ({"tools": more.pop("tools")} if "tools" in more else {})
        body = straight | (extra_body or {})
        return await self._completions.create(messages=[], extra_body=body, **more)


def classify(error: BaseException, redact: Callable[[str], str] = str) -> ModelFailed:
    """What a provider's exception means, by status code and type, in words that say what to do.

    A provider may repeat the key it refused: `redact` blots secrets out of its words.

    Status codes: RFC 9110, RFC 6585 (429), and 529 as Anthropic uses it for "overloaded".
    """
    if isinstance(error, ModelFailed):
        return error
    status, text = _status(error), redact(_first_line(error))
    lower = text.lower()
    if status in (401, 403):
        return ModelFailed(
            "auth", f"The provider refused the API key ({status}): check it. {text}", retryable=False
        )
    if status == 404:
        return ModelFailed(
            "not_found", f"The provider does not know this model: check its name. {text}", retryable=False
        )
    if status == 429 and ("insufficient_quota" in lower or "billing" in lower):
        return ModelFailed(
            "rate_limit", f"The account has no credit left: top it up. {text}", retryable=False
        )
    if status == 429:
        return ModelFailed(
            "rate_limit",
            "The provider limits how often it may be asked; try again in some minutes.",
            retryable=True,
            retry_after=_retry_after(error),
        )
    if type(error).__name__ == "ContextOverflowError" or (
        status in (400, 413, 422)
        and any(
            word in lower
            for word in ("context_length", "context length", "too many tokens", "maximum context", "too long")
        )
    ):
        return ModelFailed(
            "context_length",
            "The conversation is too long for this model: start a new thread, or fork an earlier message.",
            retryable=False,
        )
    if status is not None and (status >= 500 or status == 408):
        return ModelFailed(
            "unavailable",
            f"The provider has trouble at the moment ({status}); try again later.",
            retryable=True,
            retry_after=_retry_after(error),
        )
    if _is_timeout(error):
        return ModelFailed("timeout", "The model did not answer in time; try again.", retryable=True)
    if _is_connection(error):
        return ModelFailed(
            "unavailable",
            "The model's server cannot be reached: check the network and base_url.",
            retryable=True,
        )
    return ModelFailed("other", f"The model call failed: {text}", retryable=False)


def _status(error: BaseException) -> int | None:
    for value in (
        getattr(error, "status_code", None),
        getattr(error, "code", None),
        getattr(getattr(error, "response", None), "status_code", None),
    ):
        if isinstance(value, int) and 100 <= value < 600:
            return value
    cause = error.__cause__
    return _status(cause) if cause is not None else None


def _retry_after(error: BaseException) -> float | None:
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    try:
        return min(max(float(headers.get("retry-after", "")), 0.0), 600.0)
    except (TypeError, ValueError):
        return None


def _is_timeout(error: BaseException) -> bool:
    return isinstance(error, TimeoutError | httpx.TimeoutException) or "Timeout" in type(error).__name__


def _is_connection(error: BaseException) -> bool:
    if isinstance(error, OSError | httpx.TransportError) or "Connection" in type(error).__name__:
        return True
    return error.__cause__ is not None and _is_connection(error.__cause__)


def _first_line(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return (text[0] if text else type(error).__name__)[:300]
