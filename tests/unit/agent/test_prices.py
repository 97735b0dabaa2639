"""What does a model call cost, and when is that not known?"""

from __future__ import annotations

import pytest

from pizzabot.agent.prices import Amount, amount_of, cost_usd, is_priced, list_price
from pizzabot.settings.tables import PriceTable

MILLION = 1_000_000
CALL = Amount(input=MILLION, output=MILLION)


@pytest.mark.parametrize(
    ("model", "usd"),
    [
        ("openai:gpt-5-mini", 2.25),
        ("openai:gpt-5-mini-2025-08-07", 2.25),
        ("anthropic:claude-sonnet-4-6", 18.0),
        ("anthropic:claude-haiku-4-5-20251001", 6.0),
        ("anthropic:claude-sonnet-4-0", 18.0),
        ("google_genai:gemini-2.5-flash", 2.8),
        ("google_genai:models/gemini-2.5-flash", 2.8),
        ("bedrock_converse:amazon.nova-pro-v1:0", 4.0),
        ("bedrock_converse:us.amazon.nova-pro-v1:0", 4.0),
        ("bedrock_converse:global.anthropic.claude-haiku-4-5-20251001-v1:0", 6.0),
        ("bedrock_converse:eu.anthropic.claude-haiku-4-5-20251001-v1:0", 6.6),
        ("bedrock_converse:global.anthropic.claude-opus-5-5", 24.0),
        ("openrouter:anthropic/claude-sonnet-4.6", 18.0),
        ("openrouter:openai/gpt-5-mini", 2.25),
        ("openrouter:somebody/something:free", 0.0),
        ("ollama:llama3.2", 0.0),
        ("demo:offline", 0.0),
    ],
)
def test_a_listed_model_of_each_provider_has_its_price(model: str, usd: float) -> None:
    assert cost_usd(model, CALL, {}) == pytest.approx(usd)
    assert is_priced(model, {})


@pytest.mark.parametrize(
    "model",
    [
        "openai:mock",
        "openai:gpt-5-mini-pro",
        "anthropic:claude-next",
        "google_genai:gemini",
        "bedrock_converse:meta.llama3-3-70b-instruct-v1:0",
        "bedrock_converse:arn:aws:bedrock:us-east-1:1:application-inference-profile/x",
        "openrouter:gpt-5-mini",
        "openrouter:deepseek/deepseek-chat",
    ],
)
def test_a_price_that_is_not_listed_is_not_guessed(model: str) -> None:
    assert cost_usd(model, CALL, {}) is None
    assert not is_priced(model, {})


def test_the_operators_price_wins_over_the_list_and_fills_its_gaps() -> None:
    said = {
        "openai:gpt-5-mini": PriceTable(input=1.0, output=0.0),
        "openai:mock": PriceTable(input=2.0, output=0.0),
        "ollama:big": PriceTable(input=3.0, output=0.0),
    }
    assert [cost_usd(model, CALL, said) for model in said] == [1.0, 2.0, 3.0]
    assert is_priced("openai:mock", said)


def test_input_from_the_cache_costs_its_own_price() -> None:
    amount = Amount(input=MILLION, output=0, cached=MILLION // 2, cache_written=MILLION // 4)
    assert cost_usd("anthropic:claude-sonnet-4-6", amount, {}) == pytest.approx(0.15 + 0.9375 + 0.75)
    said = {"openai:mock": PriceTable(input=4.0, output=0.0, cached_input=1.0, cache_write=8.0)}
    assert cost_usd("openai:mock", amount, said) == pytest.approx(0.5 + 2.0 + 1.0)


def test_cached_input_without_a_price_of_its_own_costs_like_other_input() -> None:
    said = {"openai:mock": PriceTable(input=4.0, output=0.0)}
    assert cost_usd("openai:mock", Amount(MILLION, 0, cached=MILLION), said) == 4.0


def test_a_call_with_very_long_input_costs_the_price_of_long_ones() -> None:
    short, long = Amount(200_000, 0), Amount(200_001, 0)
    assert cost_usd("google_genai:gemini-2.5-pro", short, {}) == pytest.approx(0.25)
    assert cost_usd("google_genai:gemini-2.5-pro", long, {}) == pytest.approx(200_001 * 2.5 / MILLION)


def test_usage_metadata_is_read_with_its_details() -> None:
    usage = {
        "input_tokens": 100,
        "output_tokens": 7,
        "total_tokens": 107,
        "input_token_details": {"cache_read": 60, "cache_creation": 20, "audio": None},
    }
    assert amount_of(usage) == Amount(100, 7, 60, 20)
    kept = {
        "cache_read": 1,
        "cache_creation": 0,
        "ephemeral_5m_input_tokens": 2,
        "ephemeral_1h_input_tokens": 3,
    }
    assert amount_of({"input_tokens": 9, "output_tokens": 1, "input_token_details": kept}) == Amount(
        9, 1, 1, 5
    )
    tier = {"priority_cache_read": 4, "priority": 5}
    assert amount_of({"input_tokens": 9, "output_tokens": 1, "input_token_details": tier}) == Amount(
        9, 1, 4, 0
    )


def test_a_provider_that_says_nothing_of_usage_used_nothing_known() -> None:
    assert amount_of(None) == Amount() == amount_of({})


def test_no_list_price_is_negative_or_dearer_from_the_cache() -> None:
    for model in ("openai:gpt-5.6-sol", "anthropic:claude-opus-5-5", "google_genai:gemini-3.8-flash"):
        price = list_price(model)
        assert price is not None
        assert price.cached_input is not None
        assert 0 < price.cached_input < price.input < price.output


@pytest.mark.parametrize(
    "usage",
    [
        {"input_tokens": 10, "output_tokens": -1_000_000_000},
        {"input_tokens": -1_000_000_000, "output_tokens": 10},
        {"input_tokens": 10, "output_tokens": 10, "input_token_details": {"cache_read": -1_000_000_000}},
    ],
)
def test_usage_below_nothing_gives_no_budget_back(usage: dict[str, object]) -> None:
    amount = amount_of(usage)
    assert amount.input >= 0
    assert amount.output >= 0
    assert (cost_usd("openai:gpt-5-mini", amount, {}) or 0.0) >= 0.0
