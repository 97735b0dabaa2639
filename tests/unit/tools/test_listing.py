"""Entries of a listing that look right and are not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pizzabot.tools.listing import sift


def deep(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        (None, "not the schema of an object"),
        ({}, "not the schema of an object"),
        ({"type": ["object", "null"]}, "not the schema of an object"),
        ({"type": "object", "required": "all"}, "invalid"),
        ({"type": "object", "properties": [1]}, "invalid"),
        ({"type": "object", "$schema": 7}, "invalid"),
        ({"type": "object", "$schema": ["x"]}, "invalid"),
        ({"type": "object", "properties": {"a": {"$ref": "file:///etc/passwd"}}}, "another document"),
        ({"type": "object", "allOf": [{"$dynamicRef": "other.json#x"}]}, "another document"),
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/gone"}}}, "does not hold"),
        ({"type": "object", "properties": {"a": {"$ref": "#nowhere"}}}, "does not hold"),
        ({"type": "object", "properties": {"a": {"$ref": "#/type"}}}, "does not hold"),
        ({"type": "object", "properties": {"a": {"pattern": "("}}}, "pattern"),
        ({"type": "object", "patternProperties": {"*": {}}}, "pattern"),
        (deep(5000), "too deeply"),
    ],
)
def test_an_unusable_schema_withdraws_its_tool(schema: object, problem: str) -> None:
    sifted = sift(
        [{"name": "bad", "inputSchema": schema}, {"name": "good", "inputSchema": {"type": "object"}}]
    )
    assert [entry["name"] for entry in sifted.entries] == ["good"]
    assert len(sifted.problems) == 1
    assert problem in sifted.problems[0]


def test_references_within_a_schema_are_fine() -> None:
    schema = {
        "type": "object",
        "$id": "https://example.com/schema",
        "properties": {"a": {"$ref": "#/$defs/a"}, "me": {"$ref": "#"}},
        "$defs": {"a": {"type": "string"}},
    }
    assert sift([{"name": "good", "inputSchema": schema}]).problems == []


def test_an_older_dialect_is_judged_by_its_own_rules() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"a": {"$ref": "#/definitions/a"}},
        "definitions": {"a": {"items": [{"type": "string"}]}},
    }
    assert sift([{"name": "good", "inputSchema": schema}]).problems == []


def test_only_hints_that_are_true_or_false_survive() -> None:
    entry = {
        "name": "a",
        "inputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": "true", "destructiveHint": False, "idempotentHint": 1, "title": "A"},
        "outputSchema": {"$ref": "http://127.0.0.1/"},
        "icons": "none",
    }
    (kept,) = sift([entry]).entries
    assert kept["annotations"] == {"destructiveHint": False}
    assert set(kept) == {"name", "description", "inputSchema", "annotations"}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(["object", "#", "#/a"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["$ref", "$id", "$schema", "$anchor", "properties", "a"]), inner)
    ),
    max_leaves=12,
)


@settings(max_examples=50, deadline=None)
@given(
    st.dictionaries(st.sampled_from(["$ref", "$id", "$schema", "$defs", "properties", "allOf"]), json_values)
)
def test_no_schema_raises(schema: dict[str, Any]) -> None:
    sifted = sift([{"name": "a", "inputSchema": {**schema, "type": "object"}}])
    assert len(sifted.entries) + len(sifted.problems) == 1
