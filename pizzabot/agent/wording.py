"""Can what a model said be kept and carried out? As much of it as can, and the rest said back to it.

A model's text may hold what no database takes; its tool calls may be no JSON, or hold numbers and depths
that no checkpoint takes. Such a call stays a call, with a note in place of its arguments; the guard answers
it with an error, so that the model can try again.
"""

from __future__ import annotations

import math
from typing import Any

from langchain_core.messages import AIMessage, ToolCall, ToolMessage

from pizzabot.text import is_storable, storable

UNREADABLE = "__unreadable__"
_DEEPEST = 60
_LEAST, _MOST = -(2**63), 2**64 - 1  # integers of MessagePack


def kept(message: Any) -> Any:
    """The same answer, in a form that checkpoints and databases can hold."""
    if not isinstance(message, AIMessage):
        return message
    if not message.invalid_tool_calls and not message.tool_calls and is_storable(message.text):
        return message  # most of them
    calls = [_legible(call) for call in message.tool_calls]
    broken = [_broken(call) for call in message.invalid_tool_calls]
    update: dict[str, Any] = {"tool_calls": [*calls, *broken], "invalid_tool_calls": []}
    if not is_storable(message.text):
        update["content"] = storable(message.text)
    return message.model_copy(update=update)


def _legible(call: ToolCall) -> ToolCall:
    problem = _problem(call["args"], 0)
    args = {UNREADABLE: problem} if problem is not None else _storable_json(call["args"])
    return {**call, "args": args}


def _broken(call: Any) -> ToolCall:
    problem = "they are not valid JSON"
    return ToolCall(name=str(call["name"]), args={UNREADABLE: problem}, id=call["id"], type="tool_call")


def _problem(value: Any, depth: int) -> str | None:
    """Why a value cannot be kept; None when it can."""
    if depth > _DEEPEST:
        return f"they are nested more than {_DEEPEST} levels deep"
    if isinstance(value, bool):
        return None
    if isinstance(value, int) and not _LEAST <= value <= _MOST:
        return "they hold a whole number of more than 64 bits; send it as a text"
    if isinstance(value, float) and not math.isfinite(value):
        return "they hold a number that is not finite"
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next((found for item in inside if (found := _problem(item, depth + 1)) is not None), None)


def refusal(call: ToolCall) -> ToolMessage | None:
    """What a call whose arguments cannot be read is answered with; None when they can."""
    if UNREADABLE not in call["args"]:
        return None
    text = f"The arguments cannot be used: {call['args'][UNREADABLE]}. Nothing was done; call it again."
    return ToolMessage(text, tool_call_id=str(call["id"]), name=call["name"], status="error")


def _storable_json(value: Any) -> Any:
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, list):
        return [_storable_json(item) for item in value]
    if isinstance(value, dict):
        return {storable(str(key)): _storable_json(item) for key, item in value.items()}
    return value
