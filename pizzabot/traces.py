"""What happened in a thread, when, for how long and by whom? The story of its runs, from our own records.

Everything that leaves rows is a step with a beginning and, when it has one, an end: what was written, how
long the run was queued, model and tool calls, what a person was asked and said, what was delivered where.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from pizzabot.agent import activity, effects
from pizzabot.agent.models import label
from pizzabot.approvals import store as actions
from pizzabot.inbox import runs, threads
from pizzabot.inbox.runs import Run
from pizzabot.messages import Action, ActionState, RunState, Vote
from pizzabot.outbox import store as outbox

STEPS_OF_A_RUN = 1000
_EXCERPT = 80


@dataclass(frozen=True, slots=True)
class Step:
    """One thing of a run. `until` is None for what has not ended, and for moments `until` is `at`."""

    at: datetime
    until: datetime | None
    kind: str  # message | queued | model | tool | worker | retry | decision | vote | effect | delivery
    name: str
    outcome: str
    more: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """For the API: times in ISO 8601, what is not known left out."""
        return {
            "kind": self.kind,
            "name": self.name,
            "outcome": self.outcome,
            "at": self.at.isoformat(),
            "until": self.until.isoformat() if self.until is not None else None,
            "milliseconds": _milliseconds(self.until - self.at) if self.until is not None else None,
            **{key: value for key, value in self.more.items() if value is not None},
        }


@dataclass(frozen=True, slots=True)
class Records:
    """The rows of some runs of a thread."""

    runs: Sequence[Run]
    messages: Sequence[threads.Message]
    acted: Sequence[Mapping[str, Any]]
    spent: Sequence[activity.Spent]
    actions: Sequence[Action]
    effects: Sequence[effects.Sent]
    said: Sequence[outbox.Said]
    usage: Mapping[str, Mapping[str, Any]]
    counts: Mapping[str, int]


def read(connection: sa.Connection, thread_id: str, *, limit: int, before: str | None) -> Records:
    """The rows of the newest `limit` runs of a thread, or of those before a run; oldest first."""
    some = runs.newest_of_thread(connection, thread_id, limit=limit, before=before)
    ids = {run.id for run in some}
    return Records(
        runs=some,
        messages=[m for m in threads.messages_of(connection, thread_id) if m.run_id in ids],
        acted=activity.of_runs(connection, thread_id, ids, each=STEPS_OF_A_RUN),
        spent=activity.spent_of_runs(connection, ids),
        actions=actions.of_thread(connection, thread_id, ids),
        effects=[sent for sent in effects.of_thread(connection, thread_id) if sent.run_id in ids],
        said=outbox.said_in(connection, thread_id),
        usage=activity.usage_of_runs(connection, thread_id, ids),
        counts=activity.counts_of_runs(connection, thread_id, ids),
    )


def assembled(records: Records, now: datetime) -> list[dict[str, Any]]:
    """Each run with its steps in the order in which they began. Pure."""
    steps: dict[str, list[Step]] = defaultdict(list)
    for run_id, step in _steps(records):
        steps[run_id].append(step)
    return [_run(run, records, sorted(steps[run.id], key=lambda s: s.at), now) for run in records.runs]


def _run(run: Run, records: Records, steps: Sequence[Step], now: datetime) -> dict[str, Any]:
    ended = run.ended_at if run.ended_at is not None else now
    kept = sum(row["run_id"] == run.id for row in records.acted)
    row: dict[str, Any] = {
        "id": run.id,
        "state": str(run.state),
        "model": run.model,
        "model_label": label(run.model),
        "person": run.person,
        "attempts": run.attempt,
        "created_at": run.created_at.isoformat(),
        "started_at": run.started_at.isoformat() if run.started_at is not None else None,
        "ended_at": run.ended_at.isoformat() if run.ended_at is not None else None,
        "total_milliseconds": _milliseconds(ended - run.created_at),
        "queued_milliseconds": _milliseconds((run.started_at or ended) - run.created_at),
        "working_milliseconds": round(float(run.used.get("run_seconds", 0)) * 1000),
        "waiting_milliseconds": _milliseconds(_waited(steps, ended)),
        "usage": dict(records.usage.get(run.id, activity.NO_USAGE)),
        "steps": [step.to_json() for step in steps],
        # Counted, and too many to show; what retention removed is not among them.
        "steps_left_out": records.counts.get(run.id, 0) - kept,
    }
    if run.trigger_id is not None:
        row["trigger_id"] = run.trigger_id
    if run.error_code is not None:
        row["error"] = {"code": run.error_code, "message": run.error_message}
    return row


def _waited(steps: Iterable[Step], ended: datetime) -> timedelta:
    """How long at least one question was open: two that wait at once wait once."""
    total, until = timedelta(), datetime.min.replace(tzinfo=ended.tzinfo)
    for step in steps:
        if step.kind == "decision":
            end = min(step.until or ended, ended)
            total += max(timedelta(), end - max(step.at, until))
            until = max(until, end)
    return total


def _steps(records: Records) -> Iterator[tuple[str, Step]]:
    for run in records.runs:
        begun = run.started_at
        if begun is not None or run.state is RunState.QUEUED:
            yield (
                run.id,
                Step(run.created_at, begun, "queued", "queued", "started" if begun is None else "ok", {}),
            )
    for message in records.messages:
        assert message.run_id is not None
        excerpt = {"detail": threads.one_line(message.text, _EXCERPT), "channel": message.channel}
        moment = message.created_at
        yield message.run_id, Step(moment, moment, "message", message.author, message.role, excerpt)
    yield from _activity(records)
    for action in records.actions:
        yield action.run_id, _decision(action)
        yield from ((action.run_id, _vote(action, vote)) for vote in action.votes)
    for sent in records.effects:
        if sent.tries > 1 or sent.state != "done":  # else its tool call says it all
            tries = {"tries": sent.tries}
            yield sent.run_id, Step(sent.started_at, sent.ended_at, "effect", sent.tool, sent.state, tries)
    yield from _deliveries(records)


def _activity(records: Records) -> Iterator[tuple[str, Step]]:
    # Stored in one transaction with its model call, at the same moment.
    spent: dict[tuple[str, datetime], list[activity.Spent]] = defaultdict(list)
    for one in records.spent:
        spent[(one.run_id, one.at)].append(one)
    for row in records.acted:
        lasted = timedelta(milliseconds=row["milliseconds"] or 0)
        more: dict[str, Any] = {"worker": row["worker"], "detail": row["detail"]}
        waiting = spent[(row["run_id"], row["at"])]
        if row["kind"] == "model" and row["outcome"] == "ok" and waiting:
            found = waiting.pop(0)
            more |= {"input_tokens": found.input, "output_tokens": found.output, "cost_usd": found.cost_usd}
            more["unpriced"] = True if found.cost_usd is None else None
        step = Step(row["at"] - lasted, row["at"], row["kind"], row["name"], row["outcome"], more)
        yield row["run_id"], step


def _decision(action: Action) -> Step:
    more = {
        "action_id": action.id,
        "question": str(action.kind),
        "decision": str(action.decision) if action.decision is not None else None,
        "decided_by": action.decided_by,
        "decided_via": action.decided_via,
        "reason": action.reason,
        "worker": action.skill,
    }
    return Step(action.created_at, action.decided_at, "decision", action.tool, str(action.state), more)


def _vote(action: Action, vote: Vote) -> Step:
    who = {"action_id": action.id, "decided_by": vote.person, "decided_via": vote.via}
    return Step(vote.at, vote.at, "vote", action.tool, str(ActionState.APPROVED), who)


def _deliveries(records: Records) -> Iterator[tuple[str, Step]]:
    run_of_message = {message.seq: message.run_id for message in records.messages}
    run_of_action = {action.id: action.run_id for action in records.actions}
    ids = {run.id for run in records.runs}
    for said in records.said:
        run_id = (
            said.run_id
            or run_of_action.get(said.action_id or "")
            or run_of_message.get(said.message_seq or 0)
        )
        if run_id not in ids or run_id is None:
            continue
        name = f"repaint of {said.kind}" if said.is_repaint else str(said.kind)
        more = {
            "channel": said.channel,
            "person": said.person,
            "tries": said.tries,
            "detail": said.error,
            "action_id": said.action_id,
        }
        yield run_id, Step(said.created_at, said.sent_at, "delivery", name, said.state, more)


def _milliseconds(lasted: timedelta) -> int:
    return max(0, round(lasted / timedelta(milliseconds=1)))
