"""What does the status message of a run say: what is done, what goes on, and Stop? Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from pizzabot.approvals.showing import tool_name
from pizzabot.messages import RunState, RunStatus, Step
from pizzabot.text import visible

from . import words
from .blocks import Block, actions, button, context, plain_text, section, shortened

STOP = "pizza_stop"
_STEPS_SHOWN = 8
_MARKS = {"started": "…", "error": " failed", "paused": " waits", "stopped": " stopped"}
_HEADINGS = {
    RunState.QUEUED: "Working",
    RunState.RUNNING: "Working",
    RunState.WAITING: "Waiting for a decision",
    RunState.DONE: "Done",
    RunState.FAILED: "Failed",
    RunState.STOPPED: "Stopped",
}


def status(
    run: RunStatus, thread_id: str, now: datetime, *, live: Sequence[Step] = ()
) -> tuple[str, list[Block]]:
    """The message, and its text for notifications; `live` are steps that go on right now."""
    active = run.state in (RunState.QUEUED, RunState.RUNNING, RunState.WAITING)
    text = _heading(run, now, active=active)
    steps = [*run.steps, *(live if active else ())]
    if not active:
        return text, [context(plain_text(_summary(text, steps)))]
    lines = [_line(step) for step in steps[-_STEPS_SHOWN:]]
    left_out = len(steps) - len(lines)
    if left_out > 0:
        lines.insert(0, f"{left_out} earlier steps")
    blocks = [section(plain_text("\n".join([text, *lines])))]
    return text, [*blocks, actions(f"status {run.run_id}", [button("Stop", STOP, value=thread_id)])]


def _heading(run: RunStatus, now: datetime, *, active: bool) -> str:
    said = _HEADINGS[run.state] + ("…" if active and run.state is not RunState.WAITING else "")
    if run.started_at is None or run.state is RunState.WAITING:
        return said
    return f"{said} ({words.spoken((run.ended_at or now) - run.started_at)})"


def _summary(text: str, steps: Sequence[Step]) -> str:
    names = dict.fromkeys(_name(step) for step in steps if step.outcome != "paused")
    told = ", ".join(list(names)[:_STEPS_SHOWN]) + (" and more" if len(names) > _STEPS_SHOWN else "")
    return f"{text}: {told}" if told else text


def _line(step: Step) -> str:
    lasted = f" ({step.milliseconds / 1000:.1f} s)" if step.milliseconds and step.milliseconds >= 100 else ""
    return f"{_name(step)}{_MARKS.get(step.outcome, '')}{lasted}"


def _name(step: Step) -> str:
    inside = f"{visible(step.worker)}: " if step.worker else ""
    return shortened(inside + tool_name(step.name), 120)
