"""How is an action edited, rejected and answered in a modal, and what did a person type there? Pure.

A light modal opens at once, because Slack's permission to open one lasts three seconds; the form replaces it.
Each input is a block `arg.N`, N the number of the field, and is labelled with the argument's name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from pizzabot.approvals.forms import Field, FieldKind
from pizzabot.approvals.showing import tool_name
from pizzabot.text import visible

from .blocks import (
    INPUT_TEXT,
    OPTION_TEXT,
    OPTIONS,
    VIEW_BLOCKS,
    Block,
    context,
    input_block,
    modal,
    option,
    plain_text,
    section,
    shortened,
    size_of,
    text_input,
)

EDIT, REJECT, RESPOND = "pizza_edit", "pizza_reject", "pizza_respond"
REASON, RESPONSE = "reason", "response"
_INPUT = "value"
_NOTHING = "-"  # an option: no value
# A view takes 250,000 characters of JSON, of which six may stand for one.
_VIEW_CHARACTERS = 100_000
# Whoever reads a number as JavaScript does has no more digits.
_SAFE_NUMBER = re.compile(r"-?\d{1,15}(\.\d{1,15})?")
View = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class About:
    """Which action a modal is about, as it was when the modal opened."""

    action_id: str
    digest: str

    def to_text(self) -> str:
        return json.dumps({"action": self.action_id, "digest": self.digest})


def about(metadata: str) -> About | None:
    """What a modal's metadata says; None when it is not ours."""
    try:
        held = json.loads(metadata)
        return About(str(held["action"]), str(held["digest"]))
    except (ValueError, TypeError, KeyError):
        return None


def loading(title: str) -> View:
    """What opens at once."""
    return modal(title, [section(plain_text("One moment…"))], close="Close")


def told(title: str, text: str) -> View:
    """Something to be read."""
    return modal(title, [section(plain_text(text))], close="Close")


def is_editable(proposed: Sequence[Field]) -> bool:
    """Whether a modal holds all of it: each value in an input, and all inputs in a view."""
    if len(proposed) >= VIEW_BLOCKS or any(len(field.text) > INPUT_TEXT for field in proposed):
        return False
    return size_of([_input(number, field) for number, field in enumerate(proposed)]) <= _VIEW_CHARACTERS


def edit(tool: str, subject: About, proposed: Sequence[Field]) -> View:
    """The arguments as typed inputs."""
    head = context(plain_text(f"{tool_name(tool)}: Save runs it with these values."))
    inputs = [_input(number, field) for number, field in enumerate(proposed)]
    return modal("Edit", [head, *inputs], callback_id=EDIT, metadata=subject.to_text(), submit="Save")


def reject(tool: str, subject: About) -> View:
    """Why not? May be left empty."""
    head = context(plain_text(f"{tool_name(tool)} will not run. The agent is told the reason."))
    reason = input_block(REASON, "Reason", text_input(_INPUT, multiline=True), optional=True)
    return modal("Reject", [head, reason], callback_id=REJECT, metadata=subject.to_text(), submit="Reject")


def respond(tool: str, subject: About) -> View:
    """An answer in place of the tool's."""
    head = context(plain_text(f"{tool_name(tool)} will not run; the agent gets this answer instead."))
    response = input_block(RESPONSE, "Response", text_input(_INPUT, multiline=True), optional=False)
    return modal(
        "Respond", [head, response], callback_id=RESPOND, metadata=subject.to_text(), submit="Respond"
    )


def _input(number: int, field: Field) -> Block:
    hint = "; ".join(visible(part) for part in (field.description, field.hint) if part)
    element = _element(field) | {"action_id": f"{_INPUT}.{number}"}
    # An unticked box and an empty input are values, too, where the schema allows them.
    optional = (
        element["type"] == "checkboxes" or not field.required or (field.given and not field.text.strip())
    )
    name = visible(field.name) or " "
    return input_block(block_of(number), name, element, optional=optional, hint=hint)


def block_of(number: int) -> str:
    """The block of a field."""
    return f"arg.{number}"


def _element(field: Field) -> Block:
    if field.kind in (FieldKind.INTEGER, FieldKind.NUMBER) and _is_safe(field.text):
        return _number_input(field)
    if field.kind is FieldKind.BOOLEAN and not field.nullable and field.given:
        return _yes_or_no(field)
    if texts := _options(field):
        return _select(texts, field.text)
    return text_input(
        _INPUT,
        field.text[:INPUT_TEXT],
        multiline=field.kind in (FieldKind.LONG_TEXT, FieldKind.LIST, FieldKind.JSON) or "\n" in field.text,
    )


def _options(field: Field) -> list[str]:
    """What a select offers for a field; nothing where it is typed."""
    texts = [choice.text for choice in field.choices]
    if field.kind is FieldKind.BOOLEAN:
        texts = ["true", "false"]
    if not (0 < len(texts) < OPTIONS and all(map(_is_option, texts))):
        return []
    return [*texts, _NOTHING] if field.nullable or not field.required else texts


def _is_safe(number: str) -> bool:
    """Whether an input of numbers gives back what it was given."""
    return not number or (len(number) <= 17 and _SAFE_NUMBER.fullmatch(number) is not None)


def _is_option(text: str) -> bool:
    return len(text) <= OPTION_TEXT and text == visible(text) and text != _NOTHING


def _number_input(field: Field) -> Block:
    made: Block = {
        "type": "number_input",
        "action_id": _INPUT,
        "is_decimal_allowed": field.kind is FieldKind.NUMBER,
    }
    return made | {"initial_value": field.text} if field.text else made


def _yes_or_no(field: Field) -> Block:
    yes = option("Yes", "true")
    made: Block = {"type": "checkboxes", "action_id": _INPUT, "options": [yes]}
    return made | {"initial_options": [yes]} if field.value is True else made


def _select(texts: Sequence[str], chosen: str) -> Block:
    options = [option(text, str(number)) for number, text in enumerate(texts)]
    made: Block = {"type": "static_select", "action_id": _INPUT, "options": options}
    selected = chosen or _NOTHING
    return made | {"initial_option": options[texts.index(selected)]} if selected in texts else made


# -- what was typed ------------------------------------------------------------------------------------------


def typed(values: Mapping[str, Any], proposed: Sequence[Field]) -> dict[str, str | None]:
    """The text of each field, by name, from a view's `state.values`; None: as proposed."""
    return {field.name: _typed(_state(values, block_of(n)), field) for n, field in enumerate(proposed)}


def _state(values: Mapping[str, Any], block: str) -> Mapping[str, Any] | None:
    """What Slack says of the only input of a block."""
    held = values.get(block)
    state = next(iter(held.values()), None) if isinstance(held, dict) else None
    return state if isinstance(state, dict) else None


def _typed(state: Mapping[str, Any] | None, field: Field) -> str | None:
    if state is None:
        return None
    match state.get("type"):
        case "checkboxes":
            return "true" if state.get("selected_options") else "false"
        case "static_select":
            return _chosen(state.get("selected_option"), _options(field))
    text = str(state.get("value") or "")
    if state.get("type") == "number_input" and _is_same_number(text, field.text):
        return field.text
    text = str(state.get("value") or "")
    # Inputs drop outer white space by themselves, which is no change that a person made.
    return field.text if text.strip() == field.text.strip() else text


def _chosen(option: Mapping[str, Any] | None, texts: Sequence[str]) -> str:
    """The text that an option stands for, by its number: Slack writes texts in its own way."""
    number = str(option.get("value")) if option else ""
    text = texts[int(number)] if number.isdecimal() and int(number) < len(texts) else _NOTHING
    return "" if text == _NOTHING else text


def _is_same_number(one: str, other: str) -> bool:
    """Whether both are written for one number: an input may say 12 for 12.0."""
    try:
        return Decimal(one) == Decimal(other)
    except InvalidOperation:
        return False


def said(values: Mapping[str, Any], block: str) -> str | None:
    """What stands in a text input; None when it is empty."""
    text = str((_state(values, block) or {}).get("value") or "").strip()
    return text or None


def errors_at(found: Mapping[str, str], proposed: Sequence[Field]) -> dict[str, str]:
    """Errors by argument as Slack takes them, by block."""
    return {
        block_of(number): shortened(f"{visible(field.name)} {found[field.name]}", 300)
        for number, field in enumerate(proposed)
        if field.name in found
    }
