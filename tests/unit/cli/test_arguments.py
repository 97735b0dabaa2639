"""`edit ACTION key=value…`: values take the type that the tool's schema asks for, or are refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from pizzabot.cli.arguments import edited, full_set
from pizzabot.cli.failures import Failed

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "amount": {"type": "number"},
        "count": {"type": "integer"},
        "note": {"type": "string"},
        "urgent": {"type": "boolean"},
        "currency": {"enum": ["EUR", "USD"]},
        "level": {"enum": [1, 2, None, True]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "place": {"type": "object"},
        "day": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "either": {"type": ["string", "integer"]},
        "named": {"$ref": "#/$defs/Size"},
        "free": {},
    },
    "$defs": {"Size": {"type": "integer"}},
}


@pytest.mark.parametrize(
    ("change", "value"),
    [
        ("amount=42.5", 42.5),
        ("amount=3", 3),
        ("amount=-1e3", -1000.0),
        ("count=7", 7),
        ("note=42", "42"),
        ("note=", ""),
        ("note=a=b", "a=b"),
        ("note= spaces kept ", " spaces kept "),
        ('note="quoted"', '"quoted"'),
        ("urgent=true", True),
        ("urgent=False", False),
        ("currency=USD", "USD"),
        ("level=2", 2),
        ("level=null", None),
        ("level=true", True),
        ('tags=["a", "b"]', ["a", "b"]),
        ("tags=[]", []),
        ('place={"x": 1}', {"x": 1}),
        ("day=null", None),
        ("day=2026-01-02", "2026-01-02"),
        ("either=5", 5),
        ("either=five", "five"),
        ("named=4", 4),
        ("free=text", "text"),
        ("free=12", 12),
    ],
)
def test_a_value_takes_its_arguments_type(change: str, value: object) -> None:
    result = edited({}, SCHEMA, [change])
    (found,) = result.values()
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("amount=x", "amount: 'x' is not a number"),
        ("amount=true", "amount: 'true' is not a number"),
        ("amount=NaN", "amount: 'NaN' is not a number"),
        ("amount=", "amount: '' is not a number"),
        ("count=1.5", "count: '1.5' is not a whole number"),
        ("urgent=yes", "urgent: 'yes' is not true or false"),
        ("currency=GBP", "currency: 'GBP' is not possible; possible: EUR, USD"),
        ("tags=a,b", "tags: 'a,b' is not a list; write JSON"),
        ('tags={"a": 1}', "tags: "),
        ("place=[]", "place: '[]' is not an object"),
        ("amout=3", "amout: there is no such argument; there are amount, count"),
        ("amount", "amount is not key=value"),
        ("=3", "=3 is not key=value"),
        ("named=x", "named: 'x' is not a whole number"),
    ],
)
def test_a_wrong_value_is_refused_by_name(change: str, told: str) -> None:
    with pytest.raises(Failed, match=f"^{__import__('re').escape(told)}"):
        edited({"note": "tea"}, SCHEMA, [change])


def test_changes_are_merged_into_the_present_arguments() -> None:
    present = {"note": "tea", "amount": 3}
    assert edited(present, SCHEMA, ["amount=4", "note=a", "note=b"]) == {"note": "b", "amount": 4}
    assert present == {"note": "tea", "amount": 3}


def test_without_a_schema_values_are_json_or_text() -> None:
    assert edited({"a": 1}, {}, ["a=2", "b=text"]) == {"a": 2, "b": "text"}


def test_a_schema_that_allows_more_takes_more() -> None:
    schema = {"properties": {"a": {"type": "integer"}}, "additionalProperties": True}
    assert edited({}, schema, ["other=x"]) == {"other": "x"}


def test_a_reference_in_a_circle_ends() -> None:
    schema = {"properties": {"a": {"$ref": "#/properties/a"}}}
    assert edited({}, schema, ["a=x"]) == {"a": "x"}


def test_json_gives_the_full_set() -> None:
    assert full_set('{"a": 1}') == {"a": 1}
    for wrong in ("", "[]", "{", "NaN", "[" * 100_000):
        with pytest.raises(Failed, match="--json"):
            full_set(wrong)
