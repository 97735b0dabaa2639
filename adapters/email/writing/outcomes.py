"""Which words do mails use for an action, its tool and how it ended? Pure."""

from __future__ import annotations

from collections.abc import Mapping

from pizzabot.messages import Action, ActionKind, ActionState, Verdict
from pizzabot.text import visible

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
# How an answer by mail says each verdict. A change is said by changing the values.
PHRASES: Mapping[Verdict, str] = {
    Verdict.APPROVE: "Approve",
    Verdict.REJECT: "Reject: your reason",
    Verdict.RESPOND: "Respond: your text",
    Verdict.RETRY: "Retry",
    Verdict.DONE: "Done",
    Verdict.FAILED: "Failed",
}


def tool_name(reference: str) -> str:
    """The tool's own name in `mcp:server:tool`."""
    return visible(reference.rpartition(":")[2])


def server_name(reference: str) -> str | None:
    """The server in `mcp:server:tool`; None for tools of the house."""
    parts = reference.split(":")
    return visible(parts[1]) if len(parts) == 3 and parts[0] == "mcp" else None


def outcome(action: Action) -> str:
    """How an action ended: "Approved by Ada in Slack"."""
    if action.state is ActionState.WITHDRAWN:
        return "Withdrawn: the work it belongs to was stopped or ended"
    if action.state is ActionState.EXPIRED:
        return "Expired: nobody decided in time"
    said = _VERDICTS.get(action.decision) if action.state is ActionState.RESOLVED else None
    said = said or _STATES.get(action.state, str(action.state).capitalize())
    if action.decided_by is None:
        return said
    place = _PLACES.get(action.decided_via or "", "")
    return f"{said} by {visible(action.decided_by)} {place}".rstrip()


def what_follows(action: Action) -> str:
    """What an outcome means for the run; empty where that was said already."""
    if action.state in (ActionState.WITHDRAWN, ActionState.EXPIRED):
        return ""
    follows = _NEXT_AT_LIMIT if action.kind is ActionKind.LIMIT else _NEXT
    return follows.get(action.decision, "")
