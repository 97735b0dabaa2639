"""Names in front of the model: valid everywhere, never the same for two tools, always the same for one."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from pizzabot.tools.names import model_name, model_names

servers = st.sampled_from(["a", "b", "a_b", "ledger", "x" * 64])
tools = st.text("ab_.:/-", min_size=1, max_size=4) | st.text("xy.", min_size=60, max_size=128)
full_names = st.builds("mcp:{}:{}".format, servers, tools) | st.just("builtin:eval") | st.text(max_size=80)
reserved = st.sets(st.sampled_from(["a", "b", "eval", "a_a", "ledger_a", "_"]))


@settings(max_examples=50, deadline=None)
@given(st.lists(full_names, max_size=30), reserved)
def test_names_are_valid_injective_and_deterministic(names: list[str], reserved: set[str]) -> None:
    mapping = model_names(names, reserved)
    assert set(mapping) == set(names)
    assert len(set(mapping.values())) == len(mapping)
    assert all(re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}", name) for name in mapping.values())
    assert reserved.isdisjoint(mapping.values())
    assert model_names(list(reversed(names)), reserved) == mapping


def test_a_tool_keeps_its_own_name_when_nobody_shares_it() -> None:
    assert model_names(["mcp:ledger:pay_invoice", "mcp:wiki:search.page", "builtin:eval"]) == {
        "mcp:ledger:pay_invoice": "pay_invoice",
        "mcp:wiki:search.page": "search_page",
        "builtin:eval": "eval",
    }


def test_tools_of_the_same_name_carry_their_server() -> None:
    assert model_names(["mcp:a:search", "mcp:b:search"]) == {
        "mcp:a:search": "a_search",
        "mcp:b:search": "b_search",
    }


def test_a_name_that_the_agent_uses_itself_is_left_to_it() -> None:
    assert model_names(["mcp:disk:read_file"], {"read_file"}) == {"mcp:disk:read_file": "disk_read_file"}
    assert model_name("mcp:disk:read_file", {"read_file", "disk_read_file"}).startswith("disk_read_file_")


def test_a_long_name_is_cut_and_told_apart_by_a_hash() -> None:
    first, second = (model_name(f"mcp:s:{'x' * 100}{end}") for end in "12")
    assert len(first) == len(second) == 64
    assert first != second
