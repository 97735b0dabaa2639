"""Does a form show every argument in full, give back untouched what nobody touched, and coerce nothing?"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pizzabot.approvals.forms import Field, FieldKind, Filled, fields, fill
from tests.fakes.rows import PAY_SCHEMA

STRING, INTEGER, NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}
BOOLEAN, OBJECT = {"type": "boolean"}, {"type": "object"}
STRINGS, INTEGERS = {"type": "array", "items": STRING}, {"type": "array", "items": INTEGER}
NOTHING: Any = object()


def _field(
    part: Any,
    value: Any = NOTHING,
    *,
    required: bool = False,
    beside: Mapping[str, Any] = MappingProxyType({}),
) -> Field:
    """The field of one argument `x`."""
    schema = {"properties": {"x": part}, "required": ["x"] if required else [], **beside}
    (field,) = fields(schema, {} if value is NOTHING else {"x": value})
    return field


def _filled(field: Field, text: str | None) -> Any:
    """The argument's value or NOTHING; an error as `Error: …`."""
    filled = fill([field], {field.name: text})
    if filled.errors:
        return f"Error: {filled.errors[field.name]}"
    return filled.args.get(field.name, NOTHING)


def _typed(part: Any, text: str, value: Any = NOTHING, *, required: bool = False) -> Any:
    return _filled(_field(part, value, required=required), text)


def _sent(text: str) -> str:
    """A text as a browser sends what it was given: every line break as CR LF."""
    return re.sub("\r\n|\r|\n", "\r\n", text)


def _exactly(one: Any, other: Any) -> bool:
    """Equal with all types: 1, 1.0 and True differ, NaN does not."""
    if one is NOTHING or other is NOTHING:
        return one is other
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


# -- which fields ----------------------------------------------------------------------------------------


def test_fields_stand_in_the_order_of_the_schema_then_of_the_arguments() -> None:
    found = fields(PAY_SCHEMA, {"z": 1, "amount": 12.5, "a": None, "invoice": "INV-7"})
    assert [(f.name, f.given, f.required) for f in found] == [
        ("invoice", True, True),
        ("amount", True, True),
        ("copies", False, False),
        ("lines", False, False),
        ("z", True, False),
        ("a", True, False),
    ]


KIND_CASES: dict[str, tuple[Any, Any, FieldKind, str]] = {
    "a text of one line": (STRING, " a b ", FieldKind.TEXT, " a b "),
    "an empty text": (STRING, "", FieldKind.TEXT, ""),
    "an absent text": (STRING, NOTHING, FieldKind.TEXT, ""),
    "80 characters": (STRING, "x" * 80, FieldKind.TEXT, "x" * 80),
    "81 characters": (STRING, "x" * 81, FieldKind.LONG_TEXT, "x" * 81),
    "several lines": (STRING, "a\nb", FieldKind.LONG_TEXT, "a\nb"),
    "a lone carriage return": (STRING, "a\r", FieldKind.LONG_TEXT, "a\r"),
    "a tab": (STRING, "\t", FieldKind.LONG_TEXT, "\t"),
    "a control character": (STRING, "\x1b[31m", FieldKind.LONG_TEXT, "\x1b[31m"),
    "a line break of Unicode": (STRING, "a\u2028b", FieldKind.LONG_TEXT, "a\u2028b"),
    "a whole number": (INTEGER, 42, FieldKind.INTEGER, "42"),
    "a large whole number": (INTEGER, 10**30, FieldKind.INTEGER, "1" + "0" * 30),
    "a number": (NUMBER, 12.5, FieldKind.NUMBER, "12.5"),
    "a number without decimals": (NUMBER, 12, FieldKind.NUMBER, "12"),
    "a huge whole number as a number": (NUMBER, 10**400, FieldKind.NUMBER, "1" + "0" * 400),
    "true": (BOOLEAN, True, FieldKind.BOOLEAN, "true"),
    "false": (BOOLEAN, False, FieldKind.BOOLEAN, "false"),
    "neither true nor false": (BOOLEAN, NOTHING, FieldKind.BOOLEAN, ""),
    "texts": (STRINGS, ["a b", "c"], FieldKind.LIST, "a b\nc"),
    "no texts": (STRINGS, [], FieldKind.LIST, ""),
    "whole numbers": (INTEGERS, [1, -2], FieldKind.LIST, "1\n-2"),
    "truth values": ({"type": "array", "items": BOOLEAN}, [True, False], FieldKind.LIST, "true\nfalse"),
    "items of an enum": ({"type": "array", "items": {"enum": ["a", "b"]}}, NOTHING, FieldKind.LIST, ""),
    "items of a nullable type": (
        {"type": "array", "items": {"type": ["string", "null"]}},
        ["a"],
        FieldKind.LIST,
        "a",
    ),
    "items of no known type are what they are": ({"type": "array"}, ["a"], FieldKind.LIST, "a"),
    "items of a tuple are what they are": (
        {"type": "array", "items": [STRING, INTEGER]},
        [1, 2.5],
        FieldKind.LIST,
        "1\n2.5",
    ),
    "items of several types": ({"type": "array"}, ["a", 1], FieldKind.JSON, '[\n  "a",\n  1\n]'),
    "no items of no known type": ({"type": "array"}, [], FieldKind.JSON, "[]"),
    "lists of objects": ({"type": "array", "items": OBJECT}, NOTHING, FieldKind.JSON, ""),
    "an item that is empty": (STRINGS, [""], FieldKind.JSON, '[\n  ""\n]'),
    "an item with outer spaces": (STRINGS, ["a "], FieldKind.JSON, '[\n  "a "\n]'),
    "an item with a line break": (STRINGS, ["a\rb"], FieldKind.JSON, '[\n  "a\\rb"\n]'),
    "an item of another type": (STRINGS, [1], FieldKind.JSON, "[\n  1\n]"),
    "an item that is null": (STRINGS, [None], FieldKind.JSON, "[\n  null\n]"),
    "a truth value among numbers": (INTEGERS, [1, True], FieldKind.JSON, "[\n  1,\n  true\n]"),
    "an object": (OBJECT, {"ü": [1]}, FieldKind.JSON, '{\n  "ü": [\n    1\n  ]\n}'),
    "half a pair in JSON": (OBJECT, {"a": "ü\ud800"}, FieldKind.JSON, '{\n  "a": "ü\\ud800"\n}'),
    "a text that no input gives back": (STRING, "a\x00\ud800", FieldKind.JSON, '"a\\u0000\\ud800"'),
    "null where it is allowed": ({"type": ["string", "null"]}, None, FieldKind.TEXT, ""),
    "null where it is not": (STRING, None, FieldKind.JSON, "null"),
    "an integer field with a text": (INTEGER, "abc", FieldKind.TEXT, "abc"),
    "an integer field with a long text": (INTEGER, "a\nb", FieldKind.LONG_TEXT, "a\nb"),
    "an integer field with a float": (INTEGER, 4.0, FieldKind.JSON, "4.0"),
    "an integer field with a truth value": (INTEGER, True, FieldKind.JSON, "true"),
    "a number field with a truth value": (NUMBER, False, FieldKind.JSON, "false"),
    "a number field with NaN": (NUMBER, float("nan"), FieldKind.JSON, "NaN"),
    "a number field with an infinity": (NUMBER, float("-inf"), FieldKind.JSON, "-Infinity"),
    "a boolean field with a number": (BOOLEAN, 1, FieldKind.JSON, "1"),
    "a boolean field with a text": (BOOLEAN, "ja", FieldKind.TEXT, "ja"),
    "a boolean field with the text true": (BOOLEAN, "true", FieldKind.JSON, '"true"'),
    "an integer field with the text 42": (INTEGER, "42", FieldKind.JSON, '"42"'),
    "a number field with the text 4.50": (NUMBER, " 4.50", FieldKind.JSON, '" 4.50"'),
    "a text field with a number": (STRING, 42, FieldKind.JSON, "42"),
    "a list field with a text": (STRINGS, "a", FieldKind.JSON, '"a"'),
    "an object field with a text": (OBJECT, "a", FieldKind.JSON, '"a"'),
    "several types, a text": ({"type": ["integer", "string"]}, "a", FieldKind.TEXT, "a"),
    "several types, a whole number": ({"type": ["integer", "string"]}, 1, FieldKind.INTEGER, "1"),
    "several types, none of them": ({"type": ["integer", "string"]}, [1], FieldKind.JSON, "[\n  1\n]"),
    "several types, nothing": ({"type": ["integer", "string"]}, NOTHING, FieldKind.JSON, ""),
    "whole or not": ({"type": ["integer", "number"]}, NOTHING, FieldKind.NUMBER, ""),
    "a text or texts, a text": ({"anyOf": [STRING, STRINGS]}, "a", FieldKind.TEXT, "a"),
    "a text or texts, texts": ({"anyOf": [STRING, STRINGS]}, ["a"], FieldKind.LIST, "a"),
}


@pytest.mark.parametrize(("part", "value", "kind", "text"), KIND_CASES.values(), ids=KIND_CASES)
def test_a_field_shows_its_value_in_full(part: Any, value: Any, kind: FieldKind, text: str) -> None:
    field = _field(part, value)
    assert (field.kind, field.text) == (kind, text)
    assert field.given == (value is not NOTHING)
    assert _exactly(_filled(field, _sent(text)), value)


ODD_SCHEMAS: list[Any] = [
    True,
    False,
    None,
    5,
    "string",
    [],
    {},
    {"type": 5},
    {"type": "strng"},
    {"type": [["string"], 5]},
    {"type": []},
    {"enum": []},
    {"enum": "abc"},
    {"enum": {"a": 1}},
    {"anyOf": []},
    {"anyOf": 5},
    {"anyOf": [5, None]},
    {"anyOf": [False]},
    {"allOf": [5]},
    {"allOf": [STRING, {"minLength": 1}]},
    {"$ref": 5},
    {"$ref": "#/nowhere"},
    {"$ref": "#/$defs/circle"},
    {"$ref": "#/$defs/wide"},
    {"$ref": "http://203.0.113.1/schema.json"},
    {"description": 5, "title": ["x"], "minimum": "1", "maxLength": True, "pattern": 5, "format": []},
]
ODD_DEFS = {
    "circle": {"$ref": "#/$defs/circle"},
    "wide": {"anyOf": [{"$ref": "#/$defs/wider"}] * 20},
    "wider": {"oneOf": [{"allOf": [{"$ref": "#/$defs/wide"}]}, {"anyOf": [{"$ref": "#"}] * 20}] * 20},
}
OWN_KINDS: list[tuple[Any, FieldKind]] = [
    ("a", FieldKind.TEXT),
    ("a\nb", FieldKind.LONG_TEXT),
    (5, FieldKind.NUMBER),
    (2.5, FieldKind.NUMBER),
    (False, FieldKind.BOOLEAN),
    ([1, 2.5], FieldKind.LIST),
    ({"a": 1}, FieldKind.JSON),
    (None, FieldKind.JSON),
    (NOTHING, FieldKind.JSON),
]


@pytest.mark.parametrize("part", ODD_SCHEMAS, ids=str)
def test_without_a_usable_schema_the_value_is_what_it_is(part: Any) -> None:
    for value, kind in OWN_KINDS:
        field = _field(part, value, beside={"$defs": ODD_DEFS})
        assert (field.kind, field.choices, field.description, field.hint) == (
            kind,
            (),
            "",
            {FieldKind.JSON: "JSON", FieldKind.NUMBER: "number", FieldKind.LIST: "one number a line"}.get(
                kind, ""
            ),
        )


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"properties": 5},
        {"properties": [1]},
        {"properties": {}, "required": "a"},
        {"required": [["a"], None]},
        {"$ref": "#"},
        {"allOf": [True]},
        None,
        [],
    ],
    ids=str,
)
def test_a_schema_that_makes_no_sense_hides_no_argument(schema: Any) -> None:
    args = {"a": 1, "b": {"c": "d"}}
    found = fields(schema, args)
    assert [(f.name, f.required) for f in found] == [("a", False), ("b", False)]
    assert fill(found, {f.name: f.text for f in found}) == Filled(args, (), {})


def test_the_schema_of_other_arguments_counts_for_those_without_a_name() -> None:
    (field,) = fields({"additionalProperties": INTEGER}, {"a": 1})
    assert field.kind is FieldKind.INTEGER


def test_the_whole_schema_may_stand_elsewhere() -> None:
    schema = {
        "$ref": "#/definitions/Args",
        "definitions": {"Args": {"properties": {"x": INTEGER}, "required": ["x"]}},
    }
    (field,) = fields(schema, {})
    assert (field.kind, field.required) == (FieldKind.INTEGER, True)


def test_what_only_some_of_several_ways_require_is_not_required() -> None:
    schema = {"properties": {"x": STRING}, "anyOf": [{"required": ["x"]}, {"required": ["y"]}]}
    (field,) = fields(schema, {})
    assert not field.required


DEFS = {
    "a/b~c d": INTEGER,
    "next": {"$ref": "#/$defs/last"},
    "last": {"type": "boolean", "description": "of the last"},
    "list": {"type": "array", "items": {"$ref": "#/$defs/a~1b~0c%20d"}},
    "perhaps": {"anyOf": [{"$ref": "#/$defs/last"}, {"type": "null"}]},
}


@pytest.mark.parametrize(
    ("part", "kind", "nullable"),
    [
        ({"$ref": "#/$defs/a~1b~0c d"}, FieldKind.INTEGER, False),
        ({"$ref": "#/$defs/a~1b~0c%20d"}, FieldKind.INTEGER, False),
        ({"$ref": "#/$defs/next"}, FieldKind.BOOLEAN, False),
        ({"$ref": "#/$defs/list"}, FieldKind.LIST, False),
        ({"$ref": "#/$defs/perhaps"}, FieldKind.BOOLEAN, True),
        ({"$ref": "#"}, FieldKind.JSON, False),
        ({"allOf": [{"$ref": "#/$defs/next"}], "default": True}, FieldKind.BOOLEAN, False),
        ({"type": ["string", "null"]}, FieldKind.TEXT, True),
        ({"type": "null"}, FieldKind.JSON, True),
        ({"anyOf": [INTEGER, {"type": "null"}]}, FieldKind.INTEGER, True),
        ({"oneOf": [{"const": None}, STRINGS]}, FieldKind.LIST, True),
        ({"anyOf": [{"anyOf": [INTEGER, NUMBER]}, {"type": "null"}]}, FieldKind.NUMBER, True),
        ({"type": "string", "anyOf": [{"pattern": "a"}, {"pattern": "b"}]}, FieldKind.TEXT, False),
        ({"anyOf": [False, INTEGER]}, FieldKind.INTEGER, False),
        ({"anyOf": [True, INTEGER]}, FieldKind.JSON, False),
        ({"enum": ["a", None]}, FieldKind.CHOICE, True),
        ({"const": 5}, FieldKind.CHOICE, False),
        ({"oneOf": [{"const": 1}, {"enum": [2, 3]}]}, FieldKind.CHOICE, False),
        ({"oneOf": [{"const": "auto"}, INTEGER]}, FieldKind.JSON, False),
    ],
    ids=str,
)
def test_references_and_unions_are_seen_through(part: Any, kind: FieldKind, nullable: bool) -> None:
    field = _field(part, beside={"type": "object", "$defs": DEFS})
    assert (field.kind, field.nullable) == (kind, nullable)


# -- choices ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "texts"),
    [
        ({"enum": ["a", "b c", "ü"]}, ["a", "b c", "ü"]),
        ({"enum": [1, 1.0, True, None]}, ["1", "1.0", "true", "null"]),
        ({"enum": ["1", 1]}, ['"1"', "1"]),
        ({"enum": ["1", '"1"', 1]}, ['"1"', '"\\"1\\""', "1"]),
        ({"enum": ["a", "a", {"b": 1, "a": 2}, {"a": 2, "b": 1}]}, ["a", '{"a": 2, "b": 1}']),
        ({"enum": ["", " a", "a\nb", "\ud800"]}, ['""', '" a"', '"a\\nb"', '"\\ud800"']),
        ({"anyOf": [{"const": "x"}, {"const": "y"}]}, ["x", "y"]),
        ({"anyOf": [{"enum": ["x"]}, {"type": "null"}]}, ["x", "null"]),
        ({"const": {"a": [1]}}, ['{"a": [1]}']),
    ],
    ids=str,
)
def test_the_texts_of_choices_differ_and_stand_plain_where_they_can(part: Any, texts: list[str]) -> None:
    field = _field(part)
    assert [choice.text for choice in field.choices] == texts
    assert field.text == ""
    for choice in field.choices:
        assert _exactly(_filled(field, choice.text), choice.value)
        assert _field(part, choice.value).text == choice.text


@pytest.mark.parametrize("value", ["c", "1", 1.0, True, None, [1], float("nan")], ids=str)
def test_a_value_outside_the_choices_is_one_more(value: Any) -> None:
    field = _field({"enum": ["a", 1]}, value)
    assert len(field.choices) == 3
    assert field.text == field.choices[2].text
    assert _exactly(_filled(field, field.text), value)
    assert _filled(field, field.choices[1].text) == 1


def test_a_text_that_is_no_choice_is_refused() -> None:
    assert _typed({"enum": ["a"]}, "b") == "Error: is not one of the choices"


# -- words about a field ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "description"),
    [
        (STRING | {"description": " Who\n  gets\tit ", "title": "To"}, "Who gets it"),
        (STRING | {"title": "To"}, "To"),
        (STRING | {"description": " ", "title": "To"}, "To"),
        (STRING | {"description": "x" * 301}, "x" * 299 + "…"),
        ({"$ref": "#/$defs/last"}, "of the last"),
        ({"$ref": "#/$defs/last", "description": "of the field"}, "of the field"),
        ({"anyOf": [STRING | {"description": "of the text"}, {"type": "null"}]}, "of the text"),
        ({"oneOf": [{"const": 1, "title": "One"}, {"const": 2, "title": "Two"}]}, ""),
        ({"oneOf": [{"const": 1, "title": "One"}, {"const": 2}], "title": "How many"}, "How many"),
    ],
    ids=str,
)
def test_a_description_is_one_line_about_the_argument(part: Any, description: str) -> None:
    assert _field(part, beside={"$defs": DEFS}).description == description


@pytest.mark.parametrize(
    ("part", "hint"),
    [
        (STRING, ""),
        (INTEGER | {"minimum": 1, "maximum": 100}, "whole number, 1 to 100"),
        (INTEGER | {"minimum": 0}, "whole number, at least 0"),
        (NUMBER | {"maximum": 2.5}, "number, at most 2.5"),
        (
            NUMBER | {"exclusiveMinimum": 0, "exclusiveMaximum": 1},
            "number, more than 0, less than 1",
        ),
        (NUMBER | {"minimum": float("nan"), "exclusiveMaximum": True}, "number"),
        (STRING | {"minLength": 1}, "at least 1 character"),
        (STRING | {"minLength": 1, "maxLength": 80}, "1 to 80 characters"),
        (STRING | {"pattern": "^[A-Z]+$"}, "matching ^[A-Z]+$"),
        (STRING | {"pattern": "x" * 500}, f"matching {'x' * 99}…"),
        (STRING | {"format": "date"}, "YYYY-MM-DD"),
        (STRING | {"format": "date-time"}, "YYYY-MM-DDThh:mm:ssZ"),
        (STRING | {"format": "email", "maxLength": 9}, "an email address, at most 9 characters"),
        (STRING | {"format": "uri"}, "a URL"),
        (STRING | {"format": "strange", "minimum": 1}, ""),
        (STRINGS | {"minItems": 2}, "one item a line, at least 2 items"),
        (INTEGERS, "one whole number a line"),
        (BOOLEAN, ""),
        ({"enum": [1, 2]}, ""),
        (OBJECT, "JSON"),
        ({"anyOf": [INTEGER | {"minimum": 1}, {"type": "null"}]}, "whole number, at least 1"),
        ({"anyOf": [INTEGER | {"minimum": 1}, STRING]}, "JSON"),
    ],
    ids=str,
)
def test_a_hint_tells_the_constraints_in_words(part: Any, hint: str) -> None:
    assert _field(part).hint == hint


def test_a_value_of_another_type_leaves_the_hint_of_the_schema() -> None:
    assert _field(INTEGER | {"minimum": 1}, "many").hint == "whole number, at least 1"
    assert _field(INTEGER | {"minimum": 1}, "42").hint == "JSON, whole number, at least 1"
    assert _field(STRING | {"minLength": 3}, 42).hint == "JSON, text in double quotes, at least 3 characters"


# -- what is typed ---------------------------------------------------------------------------------------

LONG = "9" * 4300
READ_CASES: list[tuple[Any, str, Any]] = [
    (STRING, "42", "42"),
    (STRING, " null ", " null "),
    (STRING, "a\r\nb\rc", "a\nb\nc"),
    (INTEGER, "42", 42),
    (INTEGER, " +42\r\n", 42),
    (INTEGER, "-0", 0),
    (INTEGER, LONG, int(LONG)),
    (INTEGER, f"-{LONG}", -int(LONG)),
    (INTEGER, LONG + "9", "Error: has too many digits; at most 4300 are taken"),
    (INTEGER, "4.0", "Error: is not a whole number"),
    (INTEGER, "1e2", "Error: is not a whole number"),
    (INTEGER, "1,000", "Error: is not a whole number"),
    (INTEGER, "0x10", "Error: is not a whole number"),
    (INTEGER, "1_000", "Error: is not a whole number"),
    (INTEGER, "007", "Error: is not a whole number"),
    (INTEGER, "٤٢", "Error: is not a whole number"),
    (INTEGER, "true", "Error: is not a whole number"),
    (INTEGER, "--1", "Error: is not a whole number"),
    (NUMBER, "42", 42),
    (NUMBER, "42.0", 42.0),
    (NUMBER, "+1.5e-3", 0.0015),
    (NUMBER, "1E2", 100.0),
    (NUMBER, "1e999", "Error: is too large for a number"),
    (NUMBER, "9" * 5000, "Error: has too many digits; at most 4300 are taken"),
    (NUMBER, "NaN", "Error: is not a number"),
    (NUMBER, "Infinity", "Error: is not a number"),
    (NUMBER, ".5", "Error: is not a number"),
    (NUMBER, "5.", "Error: is not a number"),
    (NUMBER, "1 000", "Error: is not a number"),
    (NUMBER, "１", "Error: is not a number"),
    (NUMBER, "42,50", "Error: is not a number; write 42.50"),
    (NUMBER, "1,000", "Error: is not a number; write 1.000 or 1000"),
    (NUMBER, "1.234,50", "Error: is not a number"),
    (BOOLEAN, "TRUE", True),
    (BOOLEAN, " on ", True),
    (BOOLEAN, "Yes", True),
    (BOOLEAN, "1", True),
    (BOOLEAN, "off", False),
    (BOOLEAN, "no", False),
    (BOOLEAN, "0", False),
    (BOOLEAN, "perhaps", "Error: is neither true nor false"),
    (STRINGS, "a\r\n\r\n b  c \r\n\r\n", ["a", "b  c"]),
    (STRINGS, "1\ntrue", ["1", "true"]),
    (INTEGERS, "1\n 2 \n\n", [1, 2]),
    (INTEGERS, "1\n\n2", "Error: line 2 is empty"),
    (INTEGERS, "1\nx", "Error: line 2 is not a whole number"),
    ({"type": "array", "items": BOOLEAN}, "yes\nno", [True, False]),
    ({"type": "array", "items": NUMBER}, "1,5", "Error: line 1 is not a number; write 1.5"),
    (OBJECT, '{"a": [1, 1.0, null]}', {"a": [1, 1.0, None]}),
    (OBJECT, "\r\n5 ", 5),
    (OBJECT, '{"a": 1,\r\n "a": 2}', 'Error: names the key "a" twice; give it once'),
    (OBJECT, "[NaN]", "Error: holds NaN, which is no JSON; write a finite number"),
    (OBJECT, "[1e999]", "Error: is too large for a number"),
    (OBJECT, f"[-{LONG}9]", "Error: has too many digits; at most 4300 are taken"),
    (OBJECT, "[" * 51 + "]" * 51, "Error: is nested too deeply; at most 50 levels are taken"),
    (OBJECT, "[" * 100_000, "Error: is nested too deeply; at most 50 levels are taken"),
    (
        OBJECT,
        '{\r\n  "a": b\r\n}',
        "Error: is not JSON at line 2, column 8: Expecting value",
    ),
]


@pytest.mark.parametrize(("part", "text", "expected"), READ_CASES, ids=lambda value: str(value)[:40])
def test_a_text_is_read_as_the_type_of_the_schema_or_refused(part: Any, text: str, expected: Any) -> None:
    assert _exactly(_typed(part, text), expected)


def test_fifty_levels_are_read() -> None:
    text = "[" * 50 + "]" * 50
    assert _typed(OBJECT, text) == json.loads(text)


NEEDED = "Error: is needed; expected: "
PERHAPS = {"type": ["integer", "null"]}
PERHAPS_TEXT = {"type": ["string", "null"]}
EMPTY_CASES: list[tuple[Any, Any, bool, Any]] = [
    # schema, proposed, required, what an empty text becomes
    (STRING, NOTHING, False, NOTHING),
    (STRING, NOTHING, True, f"{NEEDED}text"),
    (STRING, "a", False, ""),
    (STRING, "a", True, ""),
    (STRING, "", True, ""),
    (PERHAPS_TEXT, None, False, None),
    (PERHAPS_TEXT, None, True, None),
    (PERHAPS_TEXT, "a", True, ""),
    (PERHAPS_TEXT, NOTHING, True, None),
    (INTEGER, NOTHING, False, NOTHING),
    (INTEGER, NOTHING, True, f"{NEEDED}whole number"),
    (INTEGER, 1, False, NOTHING),
    (INTEGER, 1, True, f"{NEEDED}whole number"),
    (INTEGER, "a", False, NOTHING),
    (INTEGER, "a", True, f"{NEEDED}whole number"),
    (PERHAPS, 1, True, None),
    (PERHAPS, 1, False, NOTHING),
    (PERHAPS, None, False, None),
    (PERHAPS, None, True, None),
    (NUMBER, 1.5, True, f"{NEEDED}number"),
    (BOOLEAN, NOTHING, False, NOTHING),
    (BOOLEAN, True, True, f"{NEEDED}true or false"),
    (BOOLEAN, False, False, NOTHING),
    ({"enum": ["a"]}, NOTHING, True, f"{NEEDED}one of the choices"),
    ({"enum": ["a"]}, "a", False, NOTHING),
    ({"enum": ["a", None]}, "a", True, None),
    (STRINGS, NOTHING, False, NOTHING),
    (STRINGS, NOTHING, True, []),
    (STRINGS, ["a"], False, []),
    (STRINGS | {"type": ["array", "null"]}, None, True, None),
    (OBJECT, {}, False, NOTHING),
    (OBJECT, {}, True, f"{NEEDED}JSON"),
]


@pytest.mark.parametrize(
    ("part", "value", "required", "expected"),
    EMPTY_CASES,
)
def test_an_empty_text_means_what_the_argument_allows(
    part: Any, value: Any, required: bool, expected: Any
) -> None:
    field = _field(part, value, required=required)
    # Spaces are a text, and nothing to any other kind.
    for text in [""] if field.reads is FieldKind.TEXT else ["", " \r\n"]:
        assert _exactly(_filled(field, text), expected)


def test_a_missing_text_means_as_proposed() -> None:
    found = fields(PAY_SCHEMA, {"amount": 1.0})
    assert (
        fill(found, {})
        == fill(found, dict.fromkeys(["invoice", "amount"]))
        == Filled({"amount": 1.0}, (), {})
    )


@pytest.mark.parametrize(
    ("part", "value", "text", "expected"),
    [
        (INTEGER, "abc", "42", 42),
        (INTEGER, "abc", "abd", "Error: is not a whole number"),
        (INTEGER, "  ", "  ", "  "),
        (NUMBER, "42,50", "42.50", 42.5),
        (NUMBER, "1.50", "1.50", 1.5),
        (NUMBER, "1.50", '"1.50"', "1.50"),
        (BOOLEAN, "ja", "yes", True),
        (BOOLEAN, "true", "true", True),
        (STRING, 42, '"42"', "42"),
        (STRING, "a\x00", '"a"', "a"),
        (INTEGER, 4.0, "4", 4),
        (NUMBER, float("nan"), "1.5", 1.5),
        (STRING, None, '"a"', "a"),
    ],
)
def test_a_value_that_did_not_fit_can_be_put_right(part: Any, value: Any, text: str, expected: Any) -> None:
    assert _exactly(_typed(part, text, value), expected)


@pytest.mark.parametrize(
    ("part", "value", "text", "changed"),
    [
        (STRING, "a", "a", False),
        (STRING, "a", "a ", True),
        (STRING, "a", "", True),
        (STRING, "a\r\nb\rc", "a\nb\r\nc", False),
        (STRING, NOTHING, "", False),
        (STRING, NOTHING, "a", True),
        (INTEGER, 1, " 1", False),
        (INTEGER, 1, "+1", False),
        (INTEGER, 1, "", True),
        (INTEGER, "1", "1", True),
        (NUMBER, 1, "1.0", True),
        (NUMBER, 1.0, "1", True),
        (NUMBER, 1.5, "1.50", False),
        ({}, {"a": 1, "b": 2}, '{"b": 2, "a": 1}', False),
        ({}, {"a": 1}, '{"a": true}', True),
        ({"enum": ["1", 1]}, "1", "1", True),
        (STRINGS, ["a", "b"], "a\n\nb", False),
        (STRINGS, ["a", "b"], "b\na", True),
    ],
)
def test_only_another_value_is_a_change(part: Any, value: Any, text: str, changed: bool) -> None:
    filled = fill([_field(part, value)], {"x": text})
    assert filled.errors == {}
    assert filled.changed == (("x",) if changed else ())


def test_every_wrong_text_is_named() -> None:
    found = fields(PAY_SCHEMA, {"invoice": "INV-7", "amount": 1})
    filled = fill(found, {"invoice": "INV-8", "amount": "x", "copies": "1.5", "lines": "{"})
    assert set(filled.errors) == {"amount", "copies", "lines"}
    assert filled.changed == ("invoice",)


# -- size ------------------------------------------------------------------------------------------------


def test_large_arguments_take_linear_time() -> None:
    text = "ä\r\n" * 350_000
    schema = {
        "$defs": {"one": {"anyOf": [STRING, {"type": "null"}]}},
        "properties": {f"p{n}": {"$ref": "#/$defs/one"} for n in range(5000)},
    }
    args = {"p1": text, "texts": ["x"] * 100_000, "json": [{"a": n} for n in range(50_000)]}
    started = time.perf_counter()
    found = fields(schema, args)
    filled = fill(found, {f.name: _sent(f.text) for f in found})
    assert filled == Filled(args, (), {})
    assert fill(found, {"p1": text + "x"}).changed == ("p1",)
    assert time.perf_counter() - started < 10


def test_a_value_nested_beyond_what_can_be_typed_is_shown_on_one_line() -> None:
    value = json.loads("[" * 400 + "]" * 400)
    field = _field({}, value)
    assert field.text == "[" * 400 + "]" * 400
    assert _filled(field, field.text) == value


# -- anything at all -------------------------------------------------------------------------------------

# All of Unicode: half surrogate pairs, controls and line breaks come from models as well.
TEXTS = st.text(st.characters(codec=None), max_size=12) | st.sampled_from(
    ["", " ", "\n", "a\r\nb\rc\n", "42", "null", '"a"', "\ud800", "\x00", "x" * 100]
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | TEXTS
VALUES = st.recursive(
    SCALARS, lambda v: st.lists(v, max_size=4) | st.dictionaries(TEXTS, v, max_size=3), max_leaves=8
)
PARTS = st.recursive(
    st.sampled_from(ODD_SCHEMAS + [case[0] for case in KIND_CASES.values()])
    | st.lists(VALUES, max_size=4).map(lambda values: {"enum": values})
    | VALUES.map(lambda value: {"const": value}),
    lambda p: (
        st.lists(p, max_size=3).map(lambda parts: {"anyOf": parts})
        | st.lists(p, max_size=2).map(lambda parts: {"allOf": parts})
        | p.map(lambda items: {"type": "array", "items": items})
    ),
    max_leaves=4,
)


@st.composite
def _schemas(draw: st.DrawFn, args: dict[str, Any]) -> dict[str, Any]:
    names = st.sampled_from(sorted(args)) | TEXTS if args else TEXTS
    return {
        "$defs": ODD_DEFS,
        "properties": draw(st.dictionaries(names, PARTS, max_size=4)),
        # What is required and missing is an error, and rightly so.
        "required": [name for name in args if draw(st.booleans())],
        "additionalProperties": draw(PARTS),
    }


@settings(deadline=None, derandomize=True, max_examples=300)
@given(st.data(), st.dictionaries(TEXTS, VALUES, max_size=4))
def test_what_nobody_touched_comes_back_as_it_was(data: st.DataObject, args: dict[str, Any]) -> None:
    found = fields(data.draw(_schemas(args)), args)
    filled = fill(found, {f.name: _sent(f.text) for f in found})
    assert filled.errors == {}
    assert filled.changed == ()
    assert _exactly(filled.args, args)


@settings(deadline=None, derandomize=True, max_examples=300)
@given(PARTS, VALUES)
@example({"enum": ["1", 1, '"1"']}, '"\\"1\\""')
def test_every_input_can_hold_its_text(part: Any, value: Any) -> None:
    field = _field(part, value, beside={"$defs": ODD_DEFS})
    texts = [choice.text for choice in field.choices]
    assert len(texts) == len(set(texts))
    if field.kind is FieldKind.CHOICE:
        assert texts.count(field.text) == 1
    if field.kind not in (FieldKind.LONG_TEXT, FieldKind.LIST, FieldKind.JSON):
        assert all(not set(text) & set("\r\n\t\x1b\u2028") for text in [field.text, *texts])
    for text in (field.text, *texts):
        assert "\x00" not in text
        text.encode("utf-8")


@settings(deadline=None, derandomize=True, max_examples=300)
@given(PARTS, VALUES | st.just(NOTHING), TEXTS, st.booleans())
def test_any_text_makes_a_value_or_an_error_and_never_more(
    part: Any, value: Any, text: str, required: bool
) -> None:
    field = _field(part, value, required=required, beside={"$defs": ODD_DEFS})
    filled = fill([field], {"x": text})
    assert bool(filled.errors) + bool(filled.args) <= 1
    if filled.errors:
        assert filled.changed == ()


@settings(deadline=None, derandomize=True, max_examples=200)
@given(VALUES)
def test_json_that_is_touched_and_put_back_is_no_change(value: Any) -> None:
    field = _field({"type": ["string", "integer", "boolean", "array", "object"]}, value)
    if field.kind is FieldKind.JSON and "NaN" not in field.text and "Infinity" not in field.text:
        assert fill([field], {"x": f"{field.text} \n\n"}).changed == ()
        assert _exactly(_filled(field, "\n" + field.text.replace("\n", " ")), value)
