"""What does a mail say about an action: which one it is, with which arguments, and how to answer? Pure."""

from __future__ import annotations

from dataclasses import dataclass

from pizzabot.approvals.forms import fields
from pizzabot.approvals.showing import Shown, shown
from pizzabot.approvals.values import write
from pizzabot.messages import Action, ActionKind, ActionState, Args, Verdict
from pizzabot.text import exact, visible

from .imitations import harmless, line
from .outcomes import PHRASES, server_name, tool_name


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument to be read; `was` is what it was before an edit changed it, None when none did."""

    name: str
    text: str
    is_long: bool
    was: str | None = None


def facts(action: Action, title: str) -> list[tuple[str, str]]:
    """Labels and what stands beside them."""
    found = [("Conversation", title)]
    if action.kind is not ActionKind.LIMIT:
        server = server_name(action.tool)
        found.append(("Tool", tool_name(action.tool) + (f" of {server}" if server else "")))
    if action.skill is not None:
        found.append(("Skill", action.skill))
    if action.requested_by is not None:
        found.append(("Asked by", action.requested_by))
    if action.why and action.kind is ActionKind.TOOL:
        found.append(("What it does", action.why))
    return [(label, line(fact)) for label, fact in found]


def proposed(action: Action) -> list[Argument]:
    """All arguments as they were proposed; none for a limit, whose question says it."""
    return [_argument(arg) for arg in _given(action, action.args)]


def as_it_ran(action: Action) -> list[Argument]:
    """The arguments, and where an edit changed one what it was before."""
    before = {arg.name: arg for arg in _given(action, action.args)}
    if action.final_args is None or action.state is not ActionState.EDITED:
        return list(map(_argument, before.values()))
    after = {arg.name: arg for arg in _given(action, action.final_args)}
    found = []
    for name in dict.fromkeys((*before, *after)):
        was = before[name].text if name in before else "not given"
        now = after.get(name, Shown(name, "left out"))
        found.append(_argument(now, was if now.text != was else None))
    return found


def length(action: Action) -> int:
    """How many characters the arguments take."""
    return sum(len(arg.text) for arg in proposed(action))


def lines(action: Action) -> tuple[list[str], bool]:
    """The arguments as lines to be changed in an answer, and whether they come back as they are.

    They do not when one of them holds a marker: a client that wraps it would make a line of the marker.
    """
    if action.kind is ActionKind.LIMIT:
        return [], False
    written = write(action.args_schema, action.args)
    safe = [harmless(visible(one)) for one in written]
    return safe, bool(written) and safe == written


def unseen(written: list[str]) -> list[str]:
    """Those of the lines that hold what could be taken for nothing or for a space, with that written out."""
    return [exact(one) for one in written if exact(one) != one]


def phrases(offered: tuple[Verdict, ...]) -> list[str]:
    """What an answer may say in words."""
    return [PHRASES[verdict] for verdict in offered if verdict in PHRASES]


def _given(action: Action, args: Args) -> list[Shown]:
    if action.kind is ActionKind.LIMIT:
        return []
    return [shown(field) for field in fields(action.args_schema, args) if field.given]


def _argument(arg: Shown, was: str | None = None) -> Argument:
    return Argument(
        harmless(exact(arg.name)), harmless(arg.text), arg.is_long, harmless(was) if was is not None else None
    )
