"""What does a model call cost? A small table, overridden by `[prices]`; unknown stays unknown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

MILLION = 1_000_000

# Dollars for a model's input and output tokens; None when no price is known.
PriceOf = Callable[[str, int, int], float | None]


class Price(Protocol):
    """US dollars per million tokens."""

    @property
    def input(self) -> float: ...
    @property
    def output(self) -> float: ...


@dataclass(frozen=True, slots=True)
class ListPrice:
    """A price as the provider published it."""

    input: float
    output: float


# Published list prices of November 2026 may differ: `[prices]` in pizzabot.toml wins.
BUILT_IN: Mapping[str, ListPrice] = {
    "openai:gpt-5": ListPrice(1.25, 10.0),
    "openai:gpt-5-mini": ListPrice(0.25, 2.0),
    "openai:gpt-5-nano": ListPrice(0.05, 0.40),
    "google_genai:gemini-2.5-pro": ListPrice(1.25, 10.0),
    "google_genai:gemini-2.5-flash": ListPrice(0.30, 2.50),
    "google_genai:gemini-2.5-flash-lite": ListPrice(0.10, 0.40),
}


def cost_usd(
    model: str, input_tokens: int, output_tokens: int, overrides: Mapping[str, Price]
) -> float | None:
    """Dollars for one call, 0 for models that run for nothing, None when no price is known."""
    if model.partition(":")[0] in ("demo", "ollama") and model not in overrides:
        return 0.0
    price: Price | None = overrides.get(model) or BUILT_IN.get(model)
    if price is None:
        return None
    return (input_tokens * price.input + output_tokens * price.output) / MILLION
