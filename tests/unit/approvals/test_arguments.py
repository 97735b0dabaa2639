"""Does a digest bind every argument, and is what does not fit the schema refused, by place, uncoerced?"""

from __future__ import annotations

from typing import Any

import pytest

from pizzabot.approvals.arguments import digest, problems
from tests.fakes.rows import PAY_SCHEMA

ARGS: dict[str, Any] = {"invoice": "INV-7", "amount": 12.5, "urgent": True, "lines": [{"sku": 1}, {"sku": 2}]}
SHOWN = digest("a1", "mcp:ledger:pay", ARGS)


@pytest.mark.parametrize(
    "changed",
    [
        ARGS | {"invoice": "INV-8"},
        ARGS | {"amount": 12.50001},
        ARGS | {"amount": "12.5"},
        ARGS | {"urgent": 1},
        ARGS | {"urgent": None},
        ARGS | {"lines": [{"sku": 2}, {"sku": 1}]},
        ARGS | {"lines": [{"sku": 1}, {"sku": 2.0}]},
        ARGS | {"extra": None},
        {key: value for key, value in ARGS.items() if key != "urgent"},
        ARGS | {"invoice": "INV-7\u200b"},
        {},
    ],
)
def test_a_digest_changes_with_any_argument(changed: dict[str, Any]) -> None:
    assert digest("a1", "mcp:ledger:pay", changed) != SHOWN


def test_a_digest_binds_action_and_tool_and_ignores_the_order_of_fields() -> None:
    assert digest("a2", "mcp:ledger:pay", ARGS) != SHOWN
    assert digest("a1", "mcp:ledger:pay_all", ARGS) != SHOWN
    assert digest("a1", "mcp:ledger:pay", dict(reversed(ARGS.items()))) == SHOWN


def test_a_digest_is_the_same_in_every_version() -> None:
    assert digest("a", "t", {"b": 1, "a": "ä"}) == (
        "1c47d8fd05b7de33b566849ba85711091af7757d606d0be4457ed6aa8a879fc2"
    )


def test_text_that_no_encoding_holds_has_a_digest() -> None:
    assert digest("a", "t", {"x": "\ud800"}) != digest("a", "t", {"x": "\ud801"})


@pytest.mark.parametrize(
    ("args", "paths"),
    [
        ({"invoice": "INV-7", "amount": 12}, []),
        ({"invoice": "INV-7", "amount": "12"}, ["/amount"]),
        ({"invoice": 7, "amount": 12}, ["/invoice"]),
        ({"invoice": "INV-7", "amount": True}, ["/amount"]),
        ({"invoice": "INV-7", "amount": 12, "copies": 1.5}, ["/copies"]),
        ({"invoice": "INV-7", "amount": 12, "copies": "1"}, ["/copies"]),
        ({"invoice": "", "amount": 1001}, ["/amount", "/invoice"]),
        ({"invoice": "INV-7"}, [""]),
        ({"invoice": "INV-7", "amount": 1, "to": "x"}, [""]),
        ({"invoice": "INV-7", "amount": 1, "lines": [{}, {"a/b": "x"}]}, ["/lines/1/a~1b"]),
        ([], [""]),
        ("invoice=7", [""]),
        (None, [""]),
        ({"invoice": "INV-7", "amount": float("nan")}, [""]),
        ({"invoice": "INV-7", "amount": float("-inf")}, [""]),
    ],
)
def test_every_place_that_does_not_fit_is_named(args: Any, paths: list[str]) -> None:
    assert [problem["path"] for problem in problems(args, PAY_SCHEMA)] == paths


def test_a_tilde_in_a_name_is_escaped() -> None:
    schema = {"properties": {"a~b": {"type": "integer"}}}
    assert problems({"a~b": "x"}, schema)[0]["path"] == "/a~0b"


def test_long_and_many_problems_are_kept_short() -> None:
    schema = {"additionalProperties": {"type": "integer"}}
    found = problems({f"f{n}": "x" * 5000 for n in range(100)}, schema)
    assert len(found) == 20
    assert max(len(problem["message"]) for problem in found) <= 300


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "strng"},
        {"properties": [1]},
        {"required": 5},
        {"properties": {"a": {"pattern": "["}}},
        {"properties": {"a": {"multipleOf": 0}}},
        {"$ref": "#"},
        {"$ref": "#/nowhere"},
        {"$ref": "http://203.0.113.1/schema.json"},
        {"$schema": 5},
    ],
)
def test_a_schema_that_cannot_be_used_lets_nothing_pass(schema: dict[str, Any]) -> None:
    (problem,) = problems({"a": "x"}, schema)
    assert "schema cannot be used" in problem["message"]


def test_the_schema_says_which_draft_it_is() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "definitions": {"id": {"type": "integer"}},
        "properties": {"a": {"$ref": "#/definitions/id"}},
    }
    assert problems({"a": 1}, schema) == []
    assert problems({"a": "1"}, schema)[0]["path"] == "/a"


def test_an_empty_schema_takes_every_object() -> None:
    assert problems({"anything": [None]}, {}) == []


@pytest.mark.parametrize(
    ("schema", "value", "told"),
    [
        ({"type": "string", "format": "date"}, "yesterday", "is no date, as in 2026-11-30"),
        ({"type": "string", "format": "email"}, "nobody", "is no email"),
        ({"type": "string", "minLength": 1}, "", "needs at least 1 character"),
        ({"type": "array", "minItems": 2}, [], "needs at least 2 items"),
        ({"type": "number", "exclusiveMinimum": 0}, 0, "must be more than 0"),
        ({"type": "integer", "maximum": 9}, 10, "must be 9 or less"),
    ],
)
def test_a_problem_reads_like_a_sentence_about_the_value(schema: Any, value: Any, told: str) -> None:
    (problem,) = problems({"x": value}, {"type": "object", "properties": {"x": schema}})
    assert problem == {"path": "/x", "message": told}


def test_a_format_that_tools_understand_differently_is_left_to_the_tool() -> None:
    schema = {"properties": {"at": {"type": "string", "format": "date-time"}}}
    assert problems({"at": "2026-11-30 10:00"}, schema) == []
