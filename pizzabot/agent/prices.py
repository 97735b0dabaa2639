"""What does a model call cost? Published prices, overridden by `[prices]`; what is unknown stays unknown."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pizzabot.agent import price_list
from pizzabot.agent.price_list import ListPrice

MILLION = 1_000_000
FREE_PROVIDERS = ("demo", "ollama")

_DATED = re.compile(r"-(\d{4}-\d\d-\d\d|\d{8})$")
_BEDROCK = re.compile(
    r"(?:(?P<region>[a-z-]+)\.)?(?P<vendor>anthropic|amazon)\.(?P<name>.+?)(?:-v\d+(?::\d+)?)?$"
)


@dataclass(frozen=True, slots=True)
class Amount:
    """The tokens of one call. `input` is all that was read, `cached` and `cache_written` are parts of it."""

    input: int = 0
    output: int = 0
    cached: int = 0
    cache_written: int = 0

    def plus(self, other: Amount) -> Amount:
        """Both together."""
        return Amount(
            self.input + other.input,
            self.output + other.output,
            self.cached + other.cached,
            self.cache_written + other.cache_written,
        )


# Dollars for what one call of a model used; None when no price is known.
PriceOf = Callable[[str, Amount], float | None]


class Price(Protocol):
    """US dollars per million tokens; what is None costs like other input."""

    @property
    def input(self) -> float: ...
    @property
    def output(self) -> float: ...
    @property
    def cached_input(self) -> float | None: ...
    @property
    def cache_write(self) -> float | None: ...


_MOST_TOKENS = 2**40  # more than any call can use; sums of many fit into a column


def amount_of(usage: Mapping[str, Any] | None) -> Amount:
    """What LangChain's `usage_metadata` says (langchain_core.messages.ai.UsageMetadata).

    A service tier stands before the name of a detail (`priority_cache_read`); Anthropic's writes are told
    by how long they are kept, and then `cache_creation` is 0.
    """
    if not usage:
        return Amount()
    details = {key: _counted(value) for key, value in (usage.get("input_token_details") or {}).items()}
    cached = sum(value for key, value in details.items() if key.endswith("cache_read"))
    written = sum(
        value
        for key, value in details.items()
        if key.endswith("cache_creation") or key.startswith("ephemeral_")
    )
    read, wrote = _counted(usage.get("input_tokens")), _counted(usage.get("output_tokens"))
    return Amount(read, wrote, cached, written)


def _counted(tokens: Any) -> int:
    """A number of tokens as a database keeps it. Below nothing would give budget back."""
    return min(max(0, int(tokens or 0)), _MOST_TOKENS)


def list_price(model: str) -> ListPrice | None:
    """The published price of `provider:model`; None when it is not known."""
    provider, _, name = model.partition(":")
    if provider in FREE_PROVIDERS or (provider == "openrouter" and name.endswith(":free")):
        return ListPrice(0.0, 0.0)
    if provider == "openai":
        return price_list.OPENAI.get(_DATED.sub("", name))
    if provider == "anthropic":
        return price_list.ANTHROPIC.get(_claude(name))
    if provider == "google_genai":
        return price_list.GOOGLE.get(name.removeprefix("models/"))
    if provider == "bedrock_converse":
        return _bedrock(name)
    if provider == "openrouter":
        vendor, _, known_as = name.partition("/")
        prices = price_list.OPENROUTER.get(vendor, {})
        return prices.get(_claude(known_as) if vendor == "anthropic" else known_as)
    return None


def _claude(name: str) -> str:
    """`claude-sonnet-4-0`, `claude-sonnet-4.5` and `claude-haiku-4-5-20251001` as the list writes them."""
    plain = _DATED.sub("", name).removesuffix("-latest").replace(".", "-")
    return plain.removesuffix("-0")


def _bedrock(name: str) -> ListPrice | None:
    found = _BEDROCK.fullmatch(name)
    if found is None:
        return None
    known_as = _claude(found["name"])
    price = (price_list.ANTHROPIC if found["vendor"] == "anthropic" else price_list.AMAZON).get(known_as)
    if price is None or found["region"] == "global" or known_as in price_list.BEDROCK_SAME_EVERYWHERE:
        return price
    return price.times(price_list.BEDROCK_REGION_FACTOR)


def is_priced(model: str, overrides: Mapping[str, Price]) -> bool:
    """Whether the price of a model is known."""
    return model in overrides or list_price(model) is not None


def cost_usd(model: str, amount: Amount, overrides: Mapping[str, Price]) -> float | None:
    """Dollars for one call, 0 for models that run for nothing, None when no price is known."""
    price: Price | None = overrides.get(model)
    if price is None:
        listed = list_price(model)
        if listed is not None and listed.long_from is not None and amount.input > listed.long_from:
            listed = listed.long
        price = listed
    if price is None:
        return None
    plain = max(0, amount.input - amount.cached - amount.cache_written)
    cached = price.input if price.cached_input is None else price.cached_input
    written = price.input if price.cache_write is None else price.cache_write
    return (
        plain * price.input
        + amount.cached * cached
        + amount.cache_written * written
        + amount.output * price.output
    ) / MILLION
