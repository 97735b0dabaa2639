"""How do an argument and a tool read, so that a person sees exactly what would run?"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pizzabot.approvals.forms import Field, FieldKind
from pizzabot.messages import FAILURES, Action, ActionKind
from pizzabot.text import exact, visible

_ONE_LINE = 80
_LIMITS: Mapping[str, str] = {
    "limit:run_seconds": "Time of a run",
    "limit:model_calls": "Model calls of a run",
    "limit:tool_calls": "Tool calls of a run",
    "limit:usd": "Budget of a run",
    "limit:tokens": "Tokens of a run",
    "limit:day_usd": "Budget of the day",
    "limit:day_tokens": "Tokens of the day",
    "limit:person_day_usd": "Budget of {person} for the day",
    FAILURES: "Paused trigger",
}


@dataclass(frozen=True, slots=True)
class Shown:
    """An argument to be read: nothing cut, nothing unseen, and a text never looks like another value."""

    name: str
    text: str

    @property
    def is_long(self) -> bool:
        return len(self.text) > _ONE_LINE or "\n" in self.text


def approvals(action: Action, place: Callable[[str], str]) -> str:
    """Who approved it, when it takes several: "1 of 2 approved: Ada in Slack". Empty when it takes one.

    `place` says a channel as a reader calls it, with its preposition.
    """
    if action.quorum == 1:
        return ""
    counted = f"{len(action.votes)} of {action.quorum} approved"
    return f"{counted}: {voters(action, place)}" if action.votes else counted


def voters(action: Action, place: Callable[[str], str]) -> str:
    """Those who approved: "Ada in Slack and Bob by email"."""
    said = [visible(f"{vote.person} {place(vote.via)}".strip()) for vote in action.votes]
    return " and ".join(part for part in (", ".join(said[:-1]), *said[-1:]) if part)


def edited(action: Action) -> str:
    """That the arguments are not those that were asked for at first; empty when they are."""
    if action.asked_args is None or action.edited_by is None:
        return ""
    return f"Edited by {visible(action.edited_by)}: whoever approved it before has to approve this, too."


def escalated(action: Action) -> str:
    """Who else was asked because nobody decided; empty when nobody was."""
    if not action.escalated_to:
        return ""
    return f"Nobody decided for a while, so {visible(' and '.join(action.escalated_to))} may decide, too."


def shown(field: Field) -> Shown:
    """A proposed argument as it is read."""
    value = field.value
    if value and isinstance(value, list) and field.kind is FieldKind.LIST and all(map(_is_plain, value)):
        return Shown(field.name, exact("\n".join(value)))
    if _is_plain(value):
        return Shown(field.name, exact(value))
    text = json.dumps(value, ensure_ascii=False, indent=2 if isinstance(value, dict | list) else None)
    return Shown(field.name, exact(text))


def _is_plain(value: Any) -> bool:
    """Whether it is a text that needs no quotes: it reads like no other JSON and does not hide its ends."""
    if not isinstance(value, str) or value != value.strip(" \t") or value[:1] in ("", '"', "[", "{"):
        return False
    try:
        json.loads(value)
    except (ValueError, RecursionError):
        return True
    return False


def tool_name(reference: str) -> str:
    """The tool's own name in `mcp:server:tool`."""
    return visible(reference.rpartition(":")[2])


def subject_of(action: Action) -> str:
    """What an action is about, in a few words: its tool, or which limit was reached."""
    if action.kind is not ActionKind.LIMIT or action.tool not in _LIMITS:
        return tool_name(action.tool)
    return _LIMITS[action.tool].format(person=visible(str(action.args.get("person", "a person"))))


def server_name(reference: str) -> str | None:
    """The server in `mcp:server:tool`; None for tools of the house."""
    parts = reference.split(":")
    return visible(parts[1]) if len(parts) == 3 and parts[0] == "mcp" else None
