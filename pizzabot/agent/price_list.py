"""What do providers ask for tokens? List prices as they were published, in US dollars per million.

As of 30 November 2026, read from the price data of the library genai-prices 0.2.3 (its sources are the
price pages of OpenAI, Anthropic, Google and Amazon Bedrock). Prices change and accounts have agreements of
their own: what `[prices]` in pizzabot.toml says wins. A model that stands nowhere has no known price; it is
never guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ListPrice:
    """US dollars per million tokens. What is read from a cache or written to one costs like other input when
    nothing else is known. A call whose input is longer than `long_from` tokens costs `long` instead.
    """

    input: float
    output: float
    cached_input: float | None = None
    cache_write: float | None = None
    long_from: int | None = None
    long: ListPrice | None = None

    def times(self, factor: float) -> ListPrice:
        """The same, dearer or cheaper."""
        cached, written = self.cached_input, self.cache_write
        return ListPrice(
            self.input * factor,
            self.output * factor,
            cached * factor if cached is not None else None,
            written * factor if written is not None else None,
            self.long_from,
            self.long.times(factor) if self.long is not None else None,
        )


OPENAI: Mapping[str, ListPrice] = {
    "gpt-4.1": ListPrice(2.0, 8.0, 0.5),
    "gpt-4.1-mini": ListPrice(0.4, 1.6, 0.1),
    "gpt-4.1-nano": ListPrice(0.1, 0.4, 0.025),
    "gpt-4o": ListPrice(2.5, 10.0, 1.25),
    "gpt-4o-mini": ListPrice(0.15, 0.6, 0.075),
    "gpt-5": ListPrice(1.25, 10.0, 0.125),
    "gpt-5-mini": ListPrice(0.25, 2.0, 0.025),
    "gpt-5-nano": ListPrice(0.05, 0.4, 0.005),
    "gpt-5.1": ListPrice(1.25, 10.0, 0.125),
    "gpt-5.2": ListPrice(1.75, 14.0, 0.175),
    "gpt-5.4": ListPrice(2.5, 15.0, 0.25, None, 272_000, ListPrice(5.0, 22.5, 0.5)),
    "gpt-5.4-mini": ListPrice(0.75, 4.5, 0.075),
    "gpt-5.4-nano": ListPrice(0.2, 1.25, 0.02),
    "gpt-5.5": ListPrice(5.0, 30.0, 0.5, None, 272_000, ListPrice(10.0, 45.0, 1.0)),
    "gpt-5.6-luna": ListPrice(0.2, 1.2, 0.02, 0.25, 272_000, ListPrice(0.4, 1.8, 0.04, 0.5)),
    "gpt-5.6-sol": ListPrice(4.0, 20.0, 0.4, 5.0, 272_000, ListPrice(8.0, 30.0, 0.8, 10.0)),
    "gpt-5.6-terra": ListPrice(2.0, 12.0, 0.2, 2.5, 272_000, ListPrice(4.0, 18.0, 0.4, 5.0)),
    "o3": ListPrice(2.0, 8.0, 0.5),
    "o4-mini": ListPrice(1.1, 4.4, 0.275),
}

_OPUS_4_5 = ListPrice(5.0, 25.0, 0.5, 6.25)
ANTHROPIC: Mapping[str, ListPrice] = {
    "claude-haiku-4-5": ListPrice(1.0, 5.0, 0.1, 1.25),
    "claude-haiku-5-5": ListPrice(0.1, 0.5, 0.01, 0.125, 100_000, ListPrice(0.5, 2.5, 0.05, 0.625)),
    "claude-opus-4": ListPrice(15.0, 75.0, 1.5, 18.75),
    "claude-opus-4-1": ListPrice(15.0, 75.0, 1.5, 18.75),
    "claude-opus-4-5": _OPUS_4_5,
    "claude-opus-4-6": _OPUS_4_5,
    "claude-opus-4-7": _OPUS_4_5,
    "claude-opus-4-8": _OPUS_4_5,
    "claude-opus-5": _OPUS_4_5,
    "claude-opus-5-5": ListPrice(4.0, 20.0, 0.2, 5.0),
    "claude-sonnet-4": ListPrice(3.0, 15.0, 0.3, 3.75),
    "claude-sonnet-4-5": ListPrice(3.0, 15.0, 0.3, 3.75, 200_000, ListPrice(6.0, 22.5, 0.6, 7.5)),
    "claude-sonnet-4-6": ListPrice(3.0, 15.0, 0.3, 3.75),
    "claude-sonnet-5": ListPrice(2.0, 10.0, 0.2, 2.5),
    "claude-sonnet-5-5": ListPrice(2.0, 10.0, 0.1, 2.5),
}

_GEMINI_3_PRO = ListPrice(2.0, 12.0, 0.2, None, 200_000, ListPrice(4.0, 18.0, 0.4))
GOOGLE: Mapping[str, ListPrice] = {
    "gemini-2.5-flash": ListPrice(0.3, 2.5, 0.03),
    "gemini-2.5-flash-lite": ListPrice(0.1, 0.4, 0.01),
    "gemini-2.5-pro": ListPrice(1.25, 10.0, 0.125, None, 200_000, ListPrice(2.5, 15.0, 0.25)),
    "gemini-3-flash-preview": ListPrice(0.5, 3.0, 0.05),
    "gemini-3-pro-preview": _GEMINI_3_PRO,
    "gemini-3.1-flash-lite": ListPrice(0.25, 1.5, 0.025),
    "gemini-3.1-pro-preview": _GEMINI_3_PRO,
    "gemini-3.5-flash": ListPrice(1.5, 9.0, 0.15),
    "gemini-3.5-flash-lite": ListPrice(0.3, 2.5, 0.03),
    "gemini-3.6-flash": ListPrice(1.5, 7.5, 0.15),
    "gemini-3.7-flash": ListPrice(1.5, 7.5, 0.15),
    "gemini-3.8-flash": ListPrice(1.5, 7.5, 0.15),
}

AMAZON: Mapping[str, ListPrice] = {
    "nova-2-lite": ListPrice(0.3, 2.5, 0.075),
    "nova-lite": ListPrice(0.06, 0.24, 0.015),
    "nova-micro": ListPrice(0.035, 0.14, 0.00875),
    "nova-premier": ListPrice(2.5, 12.5, 0.625),
    "nova-pro": ListPrice(0.8, 3.2, 0.2),
}
# Bedrock asks more for these where the data stays in a region (`us.`, `eu.`…) than for `global.`.
BEDROCK_REGION_FACTOR = 1.1
BEDROCK_SAME_EVERYWHERE = frozenset(
    (
        "claude-opus-4",
        "claude-opus-4-1",
        "claude-sonnet-4",
        "nova-lite",
        "nova-micro",
        "nova-premier",
        "nova-pro",
    )
)
# OpenRouter hands these vendors' prices on as they are.
OPENROUTER: Mapping[str, Mapping[str, ListPrice]] = {
    "anthropic": ANTHROPIC,
    "google": {name: GOOGLE[name] for name in GOOGLE if not name.startswith("gemini-3.") or "pro" in name},
    "openai": {name: OPENAI[name] for name in OPENAI if name.startswith("gpt-")},
}
