"""Does a form in a modal hold every argument, and give back exactly what was proposed or typed?"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from pizzabot.adapters.slack import modals

from pizzabot.approvals.forms import Field, FieldKind, fields, fill
from tests.fakes.slack.blocks import check_filled, check_view, controls, entered, state_of
from tests.unit.slack.pure.actions import (
    ANY_TEXT,
    ARGUMENTS,
    BOOLEAN,
    INTEGER,
    NUMBER,
    OBJECT,
    STRING,
    schemas,
)

ABOUT = modals.About("a1", "d" * 64)


def _form(found: tuple[Field, ...]) -> list[dict[str, Any]]:
    view = modals.edit("mcp:bank:pay", ABOUT, found)
    blocks: list[dict[str, Any]] = check_view(view, "modal")["blocks"]
    for block, element in controls(blocks):
        assert element.get("initial_value", "x")
        assert element["type"] != "plain_text_input" or (
            element["multiline"] or not set(element.get("initial_value", "")) & set("\r\n")
        )
        assert block["label"]["text"]
    return blocks


def _one(part: Any, *given: Any, required: bool = False) -> tuple[Field, ...]:
    return fields(
        {"properties": {"x": part}, "required": ["x"] * required}, dict(zip("x", given, strict=False))
    )


def _exactly(args: Mapping[str, Any]) -> str:
    """Text that tells 1, 1.0 and True apart and finds NaN equal."""
    return json.dumps(args, sort_keys=True)


def _element(found: tuple[Field, ...]) -> dict[str, Any]:
    return _form(found)[1]["element"]  # type: ignore[no-any-return]


@settings(deadline=None, max_examples=300)
@given(st.data(), ARGUMENTS)
def test_a_form_that_is_saved_untouched_changes_nothing(data: st.DataObject, args: dict[str, Any]) -> None:
    found = fields(data.draw(schemas(args)), args)
    assume(modals.is_editable(found))
    blocks = _form(found)
    assert [block["label"]["text"] for block in blocks[1:]] != [] or not found
    state = state_of(blocks, {})
    check_filled(blocks, state)
    filled = fill(found, modals.typed(state["values"], found))
    assert (dict(filled.errors), filled.changed) == ({}, ())
    assert _exactly(filled.args) == _exactly(args)


@settings(deadline=None, max_examples=200)
@given(st.data(), ARGUMENTS, ANY_TEXT)
def test_a_field_that_is_changed_changes_no_other(
    data: st.DataObject, args: dict[str, Any], text: str
) -> None:
    found = fields(data.draw(schemas(args)), args)
    assume(modals.is_editable(found) and found)
    blocks = _form(found)
    number = data.draw(st.integers(0, len(found) - 1))
    name, element = found[number].name, blocks[number + 1]["element"]
    assume(element["type"] == "plain_text_input")
    values = state_of(blocks, {})["values"]
    values[modals.block_of(number)] = {
        element["action_id"]: {"type": "plain_text_input", "value": text or None}
    }
    filled = fill(found, modals.typed(values, found))
    assert set(filled.changed) | set(filled.errors) <= {name}
    others = {key: value for key, value in args.items() if key != name}
    assert _exactly({k: v for k, v in filled.args.items() if k != name}) == _exactly(others)


ELEMENTS: list[tuple[Any, Any, str]] = [
    (STRING, "a", "plain_text_input"),
    (INTEGER, 42, "number_input"),
    (INTEGER, -(10**14), "number_input"),
    (INTEGER, 10**15, "plain_text_input"),
    (INTEGER, 10**400, "plain_text_input"),
    (INTEGER, "42", "plain_text_input"),
    (NUMBER, 12.5, "number_input"),
    (NUMBER, -0.0, "number_input"),
    (NUMBER, 1e3, "number_input"),
    (NUMBER, 1e30, "plain_text_input"),
    (NUMBER, 1e-7, "plain_text_input"),
    (NUMBER, 0.1 + 0.2, "plain_text_input"),
    (NUMBER, "12.50", "plain_text_input"),
    (BOOLEAN, True, "checkboxes"),
    (BOOLEAN, False, "checkboxes"),
    ({"type": ["boolean", "null"]}, None, "static_select"),
    ({"type": ["boolean", "null"]}, True, "static_select"),
    ({"enum": ["a", 1, None]}, 1, "static_select"),
    ({"enum": [f"c{n}" for n in range(99)]}, "c98", "static_select"),
    ({"enum": [f"c{n}" for n in range(100)]}, "c99", "plain_text_input"),
    ({"enum": ["x" * 75]}, "x" * 75, "static_select"),
    ({"enum": ["x" * 76]}, "x" * 76, "plain_text_input"),
    ({"enum": ["a\u202eb"]}, "a\u202eb", "plain_text_input"),
    ({"enum": ["-", "a"]}, "-", "plain_text_input"),
    ({"type": "array", "items": STRING}, ["a", "b"], "plain_text_input"),
    (OBJECT, {"a": [1, 1.0, None]}, "plain_text_input"),
]


@pytest.mark.parametrize(("part", "value", "kind"), ELEMENTS, ids=lambda value: str(value)[:30])
def test_each_value_has_an_input_that_holds_it(part: Any, value: Any, kind: str) -> None:
    for required in (False, True):
        found = _one(part, value, required=required)
        assert _element(found)["type"] == kind


@pytest.mark.parametrize("value", ["", " ", "\n\n", " a ", "a\n", "a\r\nb", "\ta"])
@pytest.mark.parametrize("required", [False, True])
def test_white_space_that_an_input_drops_is_no_change(value: str, required: bool) -> None:
    found = _one(STRING, value, required=required)
    blocks = _form(found)
    for sent in {value.strip() or None, value.replace("\r\n", "\n").strip() or None, value or None}:
        state = {"values": {"arg.0": {"value.0": {"type": "plain_text_input", "value": sent}}}}
        check_filled(blocks, state)
        filled = fill(found, modals.typed(state["values"], found))
        assert (filled.args, filled.changed, filled.errors) == ({"x": value}, (), {})


@pytest.mark.parametrize(
    ("part", "value", "sent"),
    [(NUMBER, 12.0, "12"), (NUMBER, 12.5, "12.50"), (NUMBER, 1000.0, "1000.00"), (INTEGER, 42, "42.0")],
)
def test_a_number_that_slack_writes_in_its_own_way_is_no_change(part: Any, value: Any, sent: str) -> None:
    found = _one(part, value)
    filled = fill(found, modals.typed({"arg.0": {"v": {"type": "number_input", "value": sent}}}, found))
    assert (filled.changed, filled.errors) == ((), {})
    assert _exactly(filled.args) == _exactly({"x": value})


CHANGES: list[tuple[Any, Any, Any, Any]] = [
    # schema, proposed, what a person enters, what becomes of it
    (STRING, "a", "42", "42"),
    (STRING, "a", "", ""),
    (INTEGER, 42, "43", 43),
    (NUMBER, 12.5, "13", 13),
    (NUMBER, 12.5, "13.0", 13.0),
    (BOOLEAN, True, [], False),
    (BOOLEAN, False, ["Yes"], True),
    ({"type": ["boolean", "null"]}, None, "true", True),
    ({"type": ["boolean", "null"]}, True, "-", None),
    ({"enum": ["a", 1, "1"]}, "a", "1", 1),
    ({"enum": ["a", 1, "1"]}, "a", '"1"', "1"),
    ({"enum": [f"c{n}" for n in range(200)]}, "c1", "c150", "c150"),
    ({"type": "array", "items": INTEGER}, [1], "1\n2", [1, 2]),
    (OBJECT, {"a": 1}, '{"a": "1"}', {"a": "1"}),
    (INTEGER, 10**20, "100000000000000000001", 10**20 + 1),
]


@pytest.mark.parametrize(("part", "value", "said", "becomes"), CHANGES, ids=lambda value: str(value)[:30])
def test_what_is_entered_has_the_type_of_its_argument(part: Any, value: Any, said: Any, becomes: Any) -> None:
    found = _one(part, value, required=True)
    element = _element(found)
    values = {"arg.0": {element["action_id"]: entered(element, said)}}
    filled = fill(found, modals.typed(values, found))
    assert filled.errors == {}
    assert filled.changed == ("x",)
    assert _exactly(filled.args) == _exactly({"x": becomes})


def test_an_argument_that_may_be_left_out_can_be() -> None:
    for part, value in ((BOOLEAN, None), ({"enum": ["a"]}, "a"), (INTEGER, 1)):
        found = _one(part, value) if value is not None else _one(part)
        element = _element(found)
        nothing = "-" if element["type"] == "static_select" else ""
        values = {"arg.0": {element["action_id"]: entered(element, nothing)}}
        assert fill(found, modals.typed(values, found)).args == {}


def test_a_choice_counts_by_its_number_whatever_slack_makes_of_its_text() -> None:
    found = _one({"enum": ["a & b", "<c>"]}, "a & b", required=True)
    option = {"text": {"type": "plain_text", "text": "&lt;c&gt;"}, "value": "1"}
    state = {"arg.0": {"value.0": {"type": "static_select", "selected_option": option}}}
    assert fill(found, modals.typed(state, found)).args == {"x": "<c>"}


@given(
    st.recursive(
        st.none() | st.text() | st.integers(),
        lambda v: (
            st.lists(v)
            | st.dictionaries(
                st.sampled_from(["arg.0", "value", "type", "selected_option", "selected_options"])
                | st.text(),
                v,
            )
        ),
    )
)
@example({"arg.0": {"v": {"type": "static_select", "selected_option": {"value": "99"}}}})
@example({"arg.0": {"v": {"type": "static_select", "selected_option": {"value": "²"}}}})
@example({"arg.0": {"v": {"type": "number_input", "value": "NaN"}}})
def test_a_state_that_makes_no_sense_is_read_as_something(state: Any) -> None:
    assume(isinstance(state, dict))
    for part, value in ((STRING, "a"), (INTEGER, 1), ({"enum": ["a"]}, "a"), (BOOLEAN, True)):
        found = _one(part, value)
        fill(found, modals.typed(state, found))


def test_an_input_that_slack_leaves_out_means_as_proposed() -> None:
    found = _one(INTEGER, 42)
    assert modals.typed({}, found) == {"x": None}
    assert fill(found, modals.typed({}, found)).args == {"x": 42}


def test_each_input_is_labelled_with_its_argument_and_told_what_it_takes() -> None:
    found = fields({"properties": {"to\u202e": INTEGER | {"description": "Who\u202e", "minimum": 1}}}, {})
    (_, block) = _form(found)
    assert block["label"]["text"] == "to\\u202e"
    assert block["hint"]["text"] == "Who\\u202e; whole number, at least 1"


@pytest.mark.parametrize(
    ("schema", "args", "is_editable"),
    [
        ({}, {"x": "x" * 3_000}, True),
        ({}, {"x": "x" * 3_001}, False),
        ({"properties": {f"x{n}": STRING for n in range(99)}}, {}, True),
        ({"properties": {f"x{n}": STRING for n in range(100)}}, {}, False),
        (
            {"properties": {f"x{n}": {"enum": ["é" * 70 + f"{k}" for k in range(99)]} for n in range(50)}},
            {},
            False,
        ),
        ({"properties": {f"{n}" * 5_000: STRING for n in range(30)}}, {}, True),
        ({"properties": {f"{n}" * 5_000: STRING for n in range(90)}}, {}, False),
    ],
)
def test_a_form_is_offered_when_a_view_can_hold_it(
    schema: dict[str, Any], args: dict[str, Any], is_editable: bool
) -> None:
    found = fields(schema, args)
    assert modals.is_editable(found) == is_editable
    if is_editable:
        assert len(_form(found)) == len(found) + 1


@pytest.mark.parametrize("tool", ["pay", "mcp:bank:pay", "mcp:x:" + "y" * 5_000, "a\u202eb", ""])
def test_every_view_fits_whatever_the_tool_is_called(tool: str) -> None:
    views = [
        modals.edit(tool, ABOUT, ()),
        modals.reject(tool, ABOUT),
        modals.respond(tool, ABOUT),
        modals.loading("Edit"),
        modals.told("T" * 100, "x" * 9_000),
    ]
    for view in views:
        check_view(view, "modal")
        assert "\u202e" not in str(view)


def test_a_view_says_which_action_it_is_about() -> None:
    for view in (modals.edit("pay", ABOUT, ()), modals.reject("pay", ABOUT), modals.respond("pay", ABOUT)):
        assert modals.about(view["private_metadata"]) == ABOUT


@pytest.mark.parametrize("metadata", ["", "{", "[]", "null", "5", '{"action": "a1"}', '"a1"'])
def test_metadata_that_is_not_ours_is_about_nothing(metadata: str) -> None:
    assert modals.about(metadata) is None


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ({"reason": {"value": {"value": " no \n"}}}, "no"),
        ({"reason": {"value": {"value": " \n"}}}, None),
        ({"reason": {"value": {"value": None}}}, None),
        ({"reason": {}}, None),
        ({}, None),
    ],
)
def test_a_reason_is_what_was_written_or_nothing(state: dict[str, Any], said: str | None) -> None:
    assert modals.said(state, modals.REASON) == said


def test_errors_stand_at_their_inputs() -> None:
    found = fields({"properties": {"a": INTEGER, "b\u202e": INTEGER}}, {})
    assert modals.errors_at({"b\u202e": "is wrong", "other": "too"}, found) == {"arg.1": "b\\u202e is wrong"}


def test_every_kind_of_field_was_met() -> None:
    assert {field.kind for part, value, _ in ELEMENTS for field in _one(part, value)} | {
        FieldKind.LONG_TEXT
    } == set(FieldKind)
