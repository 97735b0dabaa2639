"""Which words do cards, status messages and answers share? Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from pizzabot.approvals.showing import approvals, edited, escalated, voters
from pizzabot.messages import FAILURES, Action, ActionState, Verdict

PLACES: Mapping[str, str] = {"slack": "Slack", "api": "the API"}

LABELS: Mapping[Verdict, str] = {
    Verdict.APPROVE: "Approve",
    Verdict.EDIT: "Edit",
    Verdict.REJECT: "Reject",
    Verdict.RESPOND: "Respond",
    Verdict.RETRY: "Retry",
    Verdict.DONE: "It was done",
    Verdict.FAILED: "It failed",
}
_DECIDED: Mapping[ActionState, str] = {
    ActionState.APPROVED: "Approved",
    ActionState.EDITED: "Edited and approved",
    ActionState.REJECTED: "Rejected",
    ActionState.RESPONDED: "Answered",
}
_RESOLVED: Mapping[Verdict | None, str] = {
    Verdict.RETRY: "Retry chosen",
    Verdict.DONE: "Marked as done",
    Verdict.FAILED: "Marked as failed",
}


def place(channel: str | None) -> str:
    """A channel as people call it."""
    return PLACES.get(channel or "", channel or "an unknown place")


def in_place(channel: str) -> str:
    """A channel behind a name: "in Slack"."""
    return f"in {place(channel)}"


def standing(action: Action) -> list[str]:
    """How far a decision is that waits: who of several approved it, who edited it, who else was asked."""
    return [said for said in (approvals(action, in_place), edited(action), escalated(action)) if said]


def outcome(action: Action) -> str:
    """How an action ended: "Approved by Ada in Slack"."""
    if action.state is ActionState.WITHDRAWN and action.tool == FAILURES:
        return "Withdrawn: the trigger was switched on or off, or removed."
    if action.state is ActionState.WITHDRAWN:
        ended = "Withdrawn: the work it belongs to was stopped or ended."
        return ended if action.reason is None else "Withdrawn."
    if action.lapsed:
        return "Expired: nobody decided in time, and the agent was told."
    if action.state is ActionState.EXPIRED:
        return "Expired: nobody decided in time. Reopen it in the inbox."
    said = _RESOLVED.get(action.decision) if action.state is ActionState.RESOLVED else None
    said = said or _DECIDED.get(action.state, str(action.state).capitalize())
    if len(action.votes) > 1 and action.final_args is not None:
        return f"{said} by {voters(action, in_place)}"
    return f"{said} by {action.decided_by} in {place(action.decided_via)}"


def moment(at: datetime) -> str:
    """A moment, in mrkdwn, as the reader's own Slack writes it; where it cannot, in UTC."""
    fallback = f"{at:%a} {at.day} {at:%b %Y, %H:%M} UTC"
    return f"<!date^{int(at.timestamp())}^{{date_short_pretty}} at {{time}}|{fallback}>"


def spoken(duration: timedelta) -> str:
    """A duration in the two largest units: "1 h 5 min", "12 s"."""
    seconds = max(0, round(duration.total_seconds()))
    if seconds < 60:
        return f"{seconds} s"
    minutes, seconds = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes} min {seconds} s" if seconds else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"
