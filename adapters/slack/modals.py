"""How is an action edited, rejected and answered in a modal, and what did a person type there? Pure.

A light modal opens at once, because Slack's permission to open one lasts three seconds; the form replaces it.
Each input is a block `arg.N`, N the number of the field, and is labelled with the argument's name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pizzabot.approvals.forms import Field, FieldKind
from pizzabot.text import visible

from . import words
from .blocks import (
    INPUT_TEXT,
    OPTION_TEXT,
    OPTIONS,
    Block,
    context,
    input_block,
    modal,
    option,
    plain_text,
    section,
    shortened,
    text_input,
)

EDIT, REJECT, RESPOND = "pizza_edit", "pizza_reject", "pizza_respond"
REASON, RESPONSE = "reason", "response"
_INPUT = "value"
_NOTHING = "-"  # an option: no value
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


def edit(tool: str, subject: About, proposed: Sequence[Field]) -> View:
    """The arguments as typed inputs."""
    head = context(plain_text(f"{words.tool_name(tool)}: Save runs it with these values."))
    inputs = [_input(number, field) for number, field in enumerate(proposed)]
    return modal("Edit", [head, *inputs], callback_id=EDIT, metadata=subject.to_text(), submit="Save")


def reject(tool: str, subject: About) -> View:
    """Why not? May be left empty."""
    head = context(plain_text(f"{words.tool_name(tool)} will not run. The agent is told the reason."))
    reason = input_block(REASON, "Reason", text_input(_INPUT, multiline=True), optional=True)
    return modal("Reject", [head, reason], callback_id=REJECT, metadata=subject.to_text(), submit="Reject")


def respond(tool: str, subject: About) -> View:
    """An answer in place of the tool's."""
    head = context(plain_text(f"{words.tool_name(tool)} will not run; the agent gets this answer instead."))
    response = input_block(RESPONSE, "Response", text_input(_INPUT, multiline=True), optional=False)
    return modal(
        "Respond", [head, response], callback_id=RESPOND, metadata=subject.to_text(), submit="Respond"
    )


def _input(number: int, field: Field) -> Block:
    hint = "; ".join(visible(part) for part in (field.description, field.hint) if part)
    element = _element(field) | {"action_id": f"{_INPUT}.{number}"}
    # An unticked box and an empty input are values, too, where the schema allows them.
    optional = element["type"] == "checkboxes" or not field.required or (field.given and not field.text)
    name = visible(field.name) or " "
    return input_block(block_of(number), name, element, optional=optional, hint=hint)


def block_of(number: int) -> str:
    """The block of a field."""
    return f"arg.{number}"


def _element(field: Field) -> Block:
    if field.kind in (FieldKind.INTEGER, FieldKind.NUMBER):
        return _number_input(field)
    if field.kind is FieldKind.BOOLEAN:
        return _yes_or_no(field)
    texts = [choice.text for choice in field.choices]
    if field.kind is FieldKind.CHOICE and len(texts) <= OPTIONS - 1 and all(map(_is_option, texts)):
        return _select([*texts, _NOTHING] if _may_be_nothing(field) else texts, field.text)
    return text_input(
        _INPUT,
        field.text[:INPUT_TEXT],
        multiline=field.kind in (FieldKind.LONG_TEXT, FieldKind.LIST, FieldKind.JSON) or "\n" in field.text,
    )


def _is_option(text: str) -> bool:
    return len(text) <= OPTION_TEXT and text == visible(text) and text != _NOTHING


def _may_be_nothing(field: Field) -> bool:
    return field.nullable or not field.required


def _number_input(field: Field) -> Block:
    made: Block = {
        "type": "number_input",
        "action_id": _INPUT,
        "is_decimal_allowed": field.kind is FieldKind.NUMBER,
    }
    return made | {"initial_value": field.text} if field.text else made


def _yes_or_no(field: Field) -> Block:
    if field.nullable or not field.given:  # neither is a third thing to say
        return _select(
            ["true", "false", _NOTHING] if _may_be_nothing(field) else ["true", "false"], field.text
        )
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
            chosen = state.get("selected_option")
            return _chosen(str(chosen["text"]["text"])) if chosen else ""
    text = str(state.get("value") or "")
    # Inputs drop outer white space by themselves, which is no change that a person made.
    return field.text if text.strip() == field.text.strip() else text


def _chosen(text: str) -> str:
    return "" if text == _NOTHING else text


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
