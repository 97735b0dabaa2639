"""What is a run doing right now, in one line each?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from pizzabot.cli.text import shortened, took
from pizzabot.text import visible

_DETAIL = 300


def activity_line(activity: Mapping[str, Any]) -> str | None:
    """An activity as it is told; None for what only the machinery cares about."""
    kind, outcome = activity["kind"], activity["outcome"]
    name = visible(str(activity["name"]))
    lasted = took(activity.get("milliseconds"))
    inside = f"{visible(activity['worker'])}: " if activity.get("worker") else ""
    detail = f": {shortened(str(activity['detail']), _DETAIL)}" if activity.get("detail") else ""
    if kind == "retry":
        return f"  {inside}the model did not answer{detail}"
    if kind == "model":
        return f"  {inside}{name} failed{detail}" if outcome == "error" else None
    if kind == "wait" or outcome == "paused":
        return None
    if outcome == "started":
        return f"  {inside}{name} …"
    ending = {"error": "failed", "stopped": "stopped"}.get(outcome, "" if lasted else "done")
    return f"  {inside}{name} ({', '.join(part for part in (ending, lasted) if part)}){detail}"


class Told:
    """Which activities of a run were told already: events may be missed, and the thread may be read again."""

    def __init__(self) -> None:
        self._told: Counter[str] = Counter()

    def hear(self, activity: Mapping[str, Any]) -> str | None:
        """The line for an activity that just happened."""
        if activity["outcome"] != "started":
            self._told[_key(activity)] += 1
        return activity_line(activity)

    def catch_up(self, activities: Iterable[Mapping[str, Any]]) -> list[str]:
        """The lines for what the record holds and was not heard of."""
        seen: Counter[str] = Counter()
        lines = []
        for activity in activities:
            if activity["outcome"] == "started":
                continue
            key = _key(activity)
            seen[key] += 1
            if seen[key] > self._told[key]:
                self._told[key] = seen[key]
                if (line := activity_line(activity)) is not None:
                    lines.append(line)
        return lines


def _key(activity: Mapping[str, Any]) -> str:
    parts = ("run_id", "kind", "worker", "name", "outcome", "detail", "milliseconds")
    return repr([activity.get(part) for part in parts])
