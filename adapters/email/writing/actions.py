"""What does a mail say about an action: what it is, its arguments, how to answer, and how it ended? Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pizzabot.approvals.forms import fields
from pizzabot.approvals.showing import (
    Shown,
    approvals,
    edited,
    escalated,
    server_name,
    shown,
    tool_name,
    voters,
)
from pizzabot.approvals.values import write
from pizzabot.messages import FAILURES, Action, ActionKind, ActionState, Args, Beginning, Verdict
from pizzabot.text import exact, visible

from .imitations import body, harmless, line

_ASKED_LENGTH, _ASKED_LINES = 600, 12  # of the words that asked: the mail is about what would run
_PLACES: Mapping[str, str] = {
    "email": "by email",
    "slack": "in Slack",
    "web": "in the web inbox",
    "terminal": "in the terminal",
    "api": "through the API",
}
_STATES: Mapping[ActionState, str] = {
    ActionState.APPROVED: "Approved",
    ActionState.EDITED: "Approved with changes",
    ActionState.REJECTED: "Rejected",
    ActionState.RESPONDED: "Answered",
}
_VERDICTS: Mapping[Verdict | None, str] = {
    Verdict.RETRY: "Retry chosen",
    Verdict.DONE: "Marked as done",
    Verdict.FAILED: "Marked as failed",
}
_NEXT: Mapping[Verdict | None, str] = {
    Verdict.APPROVE: "It runs with exactly these values.",
    Verdict.EDIT: "It runs with exactly these values.",
    Verdict.REJECT: "It does not run, and the agent is told.",
    Verdict.RESPOND: "It does not run; the agent gets the response in place of a result.",
    Verdict.RETRY: "The call is sent again.",
    Verdict.DONE: "The agent is told that it happened.",
    Verdict.FAILED: "The agent is told that it did not happen.",
}
_NEXT_AT_LIMIT: Mapping[Verdict | None, str] = {
    Verdict.APPROVE: "The run goes on.",
    Verdict.REJECT: "The run ends with what it has.",
}
_NEXT_OF_TRIGGER: Mapping[Verdict | None, str] = {
    Verdict.APPROVE: "The trigger fires again at its next time.",
    Verdict.REJECT: "The trigger is switched off.",
}
# How an answer by mail says each verdict. A change is said by changing the values.
PHRASES: Mapping[Verdict, str] = {
    Verdict.APPROVE: "Approve",
    Verdict.REJECT: "Reject: your reason",
    Verdict.RESPOND: "Respond: your text",
    Verdict.RETRY: "Retry",
    Verdict.DONE: "Done",
    Verdict.FAILED: "Failed",
}


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument to be read; `was` is what it was before an edit changed it, None when none did."""

    name: str
    text: str
    is_long: bool
    was: str | None = None


def facts(action: Action, title: str, trigger: str | None = None) -> list[tuple[str, str]]:
    """Labels and what stands beside them."""
    found = [("Conversation", title)]
    if action.kind is not ActionKind.LIMIT:
        server = server_name(action.tool)
        found.append(("Tool", tool_name(action.tool) + (f" of {server}" if server else "")))
    if action.skill is not None:
        found.append(("Skill", action.skill))
    if action.requested_by is not None:
        found.append(("Asked by", action.requested_by))
    if trigger is not None:
        found.append(("Begun by the trigger", trigger))
    if action.why and action.kind is ActionKind.TOOL:
        found.append(("What it does", action.why))
    return [(label, line(fact)) for label, fact in found]


def asked_with(action: Action, began: Beginning | None) -> tuple[str, bool]:
    """The words with which the work was asked for, and whether that is only where they begin."""
    if began is None:
        return "", False
    said = "\n\n".join(
        text.strip() if by == action.requested_by else f"{by}: {text.strip()}" for by, text in began.words
    ).strip()
    short = "\n".join(said[:_ASKED_LENGTH].split("\n")[:_ASKED_LINES])
    return body(short if short == said else f"{short} …"), short != said


def about(action: Action) -> str:
    """What an action is about, as a statement: the tool, or what its question says before it asks.

    What is answered is no question any more, least of all in a headline.
    """
    if action.kind is not ActionKind.LIMIT:
        return tool_name(action.tool)
    # "Go on? The run used …", and "… is paused. Let it go on?"
    before, after = action.title.rpartition(". ")[0], action.title.partition("? ")[2]
    return visible((before if action.title.endswith("?") else after) or action.title.rstrip("?"))


def proposed(action: Action) -> list[Argument]:
    """All arguments as they were proposed; none for a limit, whose question says it."""
    return [argument(arg) for arg in _given(action, action.args)]


def as_it_ran(action: Action) -> list[Argument]:
    """The arguments, and where an edit changed one what it was before; others may have to approve it yet."""
    asked = action.asked_args if action.asked_args is not None else action.args
    final = action.final_args if action.state is ActionState.EDITED else None
    before = {arg.name: arg for arg in _given(action, asked)}
    after = {arg.name: arg for arg in _given(action, final if final is not None else action.args)}
    found = []
    for name in dict.fromkeys((*before, *after)):
        was = before[name].text if name in before else "not given"
        now = after.get(name, Shown(name, "left out"))
        found.append(argument(now, was if now.text != was else None))
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


def argument(arg: Shown, was: str | None = None) -> Argument:
    """An argument as it stands in a mail."""
    return Argument(
        harmless(exact(arg.name)), harmless(arg.text), arg.is_long, harmless(was) if was is not None else None
    )


# -- its tool, and how it ended -----------------------------------------------------------------------------


def in_place(channel: str) -> str:
    """A channel behind a name: "by email"; empty for one that is not known."""
    return _PLACES.get(channel, "")


def standing(action: Action) -> list[str]:
    """How far a decision is that waits: who of several approved it, who edited it, who else was asked."""
    return [said for said in (approvals(action, in_place), edited(action), escalated(action)) if said]


def outcome(action: Action) -> str:
    """How an action ended: "Approved by Ada in Slack"."""
    if action.state is ActionState.WITHDRAWN and action.tool == FAILURES:
        return "Withdrawn: the trigger was switched on or off, or removed"
    if action.state is ActionState.WITHDRAWN:
        ended = "Withdrawn: the work it belongs to was stopped or ended"
        return ended if action.reason is None else "Withdrawn"
    if action.state is ActionState.EXPIRED:
        return "Expired: nobody decided in time"
    said = _VERDICTS.get(action.decision) if action.state is ActionState.RESOLVED else None
    said = said or _STATES.get(action.state, str(action.state).capitalize())
    if action.decided_by is None:
        return said
    if len(action.votes) > 1 and action.final_args is not None:
        return f"{said} by {voters(action, in_place)}"
    place = in_place(action.decided_via or "")
    return f"{said} by {visible(action.decided_by)} {place}".rstrip()


def what_follows(action: Action) -> str:
    """What an outcome means for the run; empty where that was said already."""
    if action.state is ActionState.PENDING:
        return "It runs with exactly these values when enough have approved."
    if action.lapsed:
        return _NEXT_AT_LIMIT[Verdict.REJECT] if action.kind is ActionKind.LIMIT else _NEXT[Verdict.REJECT]
    if action.is_open:
        return "The work waits. Reopen it in the inbox to decide after all."
    if action.state is ActionState.WITHDRAWN:
        return ""
    if action.tool == FAILURES:
        return _NEXT_OF_TRIGGER.get(action.decision, "")
    follows = _NEXT_AT_LIMIT if action.kind is ActionKind.LIMIT else _NEXT
    return follows.get(action.decision, "")
