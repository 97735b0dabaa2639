"""How does a person's word become a decision? One transaction, first one wins (promises 5 and 7).

    may see? -> may decide? -> still pending? -> saw these very arguments? -> word allowed?
      -> edited arguments fit the schema and the policy? -> stored, audited, run queued, copies repainted

Where several have to approve, each approval is a vote for the very arguments that were shown. The last one
that it takes decides; a rejection or a response decides at once; an edit proposes other arguments, which its
author has approved and every earlier vote has not.

Every refusal changes nothing, apart from the line in the audit that says it was tried.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from pizzabot import audit
from pizzabot.approvals import arguments, raises, reminders, store
from pizzabot.clock import spoken
from pizzabot.errors import Conflict, Forbidden, Invalid, NotFound, Refused
from pizzabot.inbox import runs, threads
from pizzabot.inbox.intake import check_text
from pizzabot.messages import FAILURES, Action, ActionKind, ActionState, Decision, Verdict
from pizzabot.outbox import store as outbox
from pizzabot.people import People, Person, may_administer, may_decide, may_see
from pizzabot.text import is_storable

_STATE_AFTER = {
    Verdict.APPROVE: ActionState.APPROVED,
    Verdict.EDIT: ActionState.EDITED,
    Verdict.REJECT: ActionState.REJECTED,
    Verdict.RESPOND: ActionState.RESPONDED,
    Verdict.RETRY: ActionState.RESOLVED,
    Verdict.DONE: ActionState.RESOLVED,
    Verdict.FAILED: ActionState.RESOLVED,
}
_MAX_REASON = 10_000


@dataclass(frozen=True, slots=True)
class Decided:
    """A stored decision; `resumes` when the waiting run was queued by it, `also` what it answered besides."""

    action: Action
    resumes: bool
    also: tuple[Action, ...] = ()


def seen_action(connection: sa.Connection, action_id: str, person: Person) -> tuple[Action, threads.Thread]:
    """The action and its thread, for somebody who may see them.

    Raises:
        NotFound: no such action, or not for this person: the same words for both.
    """
    action = store.get(connection, action_id) if is_storable(action_id) else None
    thread = threads.get(connection, action.thread_id) if action else None
    if action is None or thread is None or not _sees(person, thread, action):
        raise NotFound("There is no such action.")
    return action, thread


def _sees(person: Person, thread: threads.Thread, action: Action) -> bool:
    return may_see(person, thread.owner, may_decide(person, frozenset(action.approvers), thread.owner))


def decide(
    connection: sa.Connection, decision: Decision, person: Person, now: datetime, people: People
) -> Decided:
    """Store a decision and queue what follows from it.

    Raises:
        NotFound: no such action for this person.
        Forbidden: `not_an_approver`.
        Conflict: `already_decided` or `stale_digest`; `details["action"]` is the present Action.
        Invalid: `decision_not_allowed`, or `invalid_args` with `details["errors"]`.
    """
    action, thread = seen_action(connection, decision.action_id, person)
    if action.quorum > 1:
        store.lock(connection, action.id)
        action, thread = seen_action(connection, decision.action_id, person)
    permitted = people.decides_action(person, action, thread.owner)
    if raises.is_about_a_day(action):  # whoever is named on it, also by a version that let others step in
        permitted = permitted and may_administer(person)
    check(decision, action, permitted=permitted)
    if action.quorum > 1 and _runs(decision.verdict):
        action = _vote(connection, decision, action, person, now)
        if _counted(action, people, thread.owner) < action.quorum:
            outbox.repaint(connection, action.id, action.shown, now)
            return Decided(action, resumes=False)
        if action.asked_args is not None:
            decision = replace(decision, verdict=Verdict.EDIT, args=action.args)
    return _settle(connection, decision, action, person, now)


def _settle(
    connection: sa.Connection, decision: Decision, action: Action, person: Person, now: datetime
) -> Decided:
    raises_day = raises.is_about_a_day(action) and decision.verdict is Verdict.APPROVE
    if raises_day:
        raises.lock(connection)
    final_args = decision.args if decision.verdict is Verdict.EDIT else action.args
    settled = store.settle(
        connection,
        action.id,
        [ActionState.PENDING],
        state=_STATE_AFTER[decision.verdict],
        decision=decision.verdict,
        reason=decision.reason,
        response=decision.response,
        **({"args": dict(action.asked_args), "asked_args": None} if action.asked_args is not None else {}),
        final_args=final_args if _runs(decision.verdict) else None,
        decided_by=person.name,
        decided_at=now,
        decided_via=decision.via,
    )
    if settled is None:
        raise already_decided(store.get(connection, action.id) or action)
    audit.append(
        connection,
        now,
        actor=person.name,
        via=decision.via,
        event=f"action.{settled.state}",
        subject=action.id,
        data={
            "thread": action.thread_id,
            "tool": action.tool,
            "decision": str(decision.verdict),
            "reason": decision.reason,
            "shown": action.digest,
        }
        | (
            {"runs": arguments.digest(action.id, action.tool, final_args or {})}
            if _runs(decision.verdict)
            else {}
        )
        | ({"approvals": [vote.person for vote in settled.votes]} if settled.votes else {}),
    )
    outbox.repaint(connection, action.id, settled.shown, now)
    if settled.tool == FAILURES:  # no run waits for it
        return Decided(settled, resumes=False)
    also: tuple[Action, ...] = ()
    if raises_day:
        also = _raise_day(connection, settled, person.name, decision.via, now)
    elif settled.kind is ActionKind.LIMIT and decision.verdict is Verdict.APPROVE:
        _allow_more(connection, settled)
    resumes = runs.requeue(connection, action.run_id, now)
    return Decided(settled, resumes, also)


def _vote(
    connection: sa.Connection, decision: Decision, action: Action, person: Person, now: datetime
) -> Action:
    """Store one approval of several, for the arguments as the person wants them; the action as it is then."""
    args = dict(decision.args if decision.args is not None else action.args)
    digest = arguments.digest(action.id, action.tool, args)
    if digest == action.digest:
        if any(vote.person == person.name for vote in action.votes):
            raise _counted_already(action)
        store.vote(connection, action, person.name, decision.via, now)
        revised = store.revise(connection, action.id)
        voided: list[str] = []
    else:
        voided = [vote.person for vote in action.votes if vote.person != person.name]
        store.forget_votes(connection, action.id)
        store.vote(connection, replace(action, digest=digest), person.name, decision.via, now)
        asked = dict(action.asked_args if action.asked_args is not None else action.args)
        is_back = arguments.digest(action.id, action.tool, asked) == digest
        revised = store.revise(
            connection,
            action.id,
            args=args,
            digest=digest,
            asked_args=None if is_back else asked,
            edited_by=person.name,
        )
    assert revised is not None, "the row is locked, and was pending"
    audit.append(
        connection,
        now,
        actor=person.name,
        via=decision.via,
        event="action.voted",
        subject=action.id,
        data={
            "thread": action.thread_id,
            "tool": action.tool,
            "decision": str(decision.verdict),
            "reason": decision.reason,
            "shown": action.digest,
            "approved": digest,
            "votes": len(revised.votes),
            "quorum": action.quorum,
        }
        | ({"voided": voided} if voided else {}),
    )
    return revised


def _counted(action: Action, people: People, thread_owner: str) -> int:
    """How many of the votes are of people who may decide still."""
    voters = (people.by_name(vote.person) for vote in action.votes)
    return sum(1 for voter in voters if voter and people.decides_action(voter, action, thread_owner))


def _counted_already(action: Action) -> Conflict:
    missing = action.quorum - len(action.votes)
    return Conflict(
        f"Your approval is counted already; it takes {missing} more, of other people.",
        code="already_approved",
        details={"action": action},
    )


def _runs(verdict: Verdict) -> bool:
    return verdict in (Verdict.APPROVE, Verdict.EDIT, Verdict.RETRY)


def check(decision: Decision, action: Action, *, permitted: bool) -> None:
    """Refuse a decision that may not be stored; pure."""
    if not permitted:
        raise Forbidden(
            "This is not yours to decide"
            + (f"; it waits for {' or '.join(action.approvers)}." if action.approvers else "."),
            code="not_an_approver",
        )
    if action.state is not ActionState.PENDING:
        raise already_decided(action)
    # Arguments that somebody edited are only ever approved by who was shown them.
    unseen = decision.digest is None and action.asked_args is not None and _runs(decision.verdict)
    if unseen or decision.digest not in (None, action.digest):
        raise Conflict(
            f"The arguments were edited by {action.edited_by} since you saw them; look at them again."
            if action.asked_args is not None
            else "The action changed since you saw it; look at it again.",
            code="stale_digest",
            details={"action": action},
        )
    if decision.verdict not in action.allowed_decisions:
        allowed = ", ".join(action.allowed_decisions)
        raise Invalid(
            f"{decision.verdict} is not possible here; possible: {allowed}.", code="decision_not_allowed"
        )
    for field, text in (("reason", decision.reason), ("response", decision.response)):
        check_text(text or "", field, _MAX_REASON)
    if decision.verdict is Verdict.RESPOND and not (decision.response or "").strip():
        raise Invalid("A response needs a text in `response`.", code="invalid_args")
    if decision.verdict is Verdict.EDIT:
        _check_edit(decision, action)
    elif decision.args is not None:
        raise Invalid(
            "Only an edit carries arguments; send decision edit, or leave args out.", code="invalid_args"
        )


def _check_edit(decision: Decision, action: Action) -> None:
    if decision.args is None:
        raise Invalid("An edit needs the full set of arguments in `args`.", code="invalid_args")
    errors = arguments.problems(decision.args, action.args_schema)
    if errors:
        first = errors[0]
        raise Invalid(
            f"These arguments do not fit {action.tool}: {first['path'] or 'arguments'}: {first['message']}",
            code="invalid_args",
            details={"errors": errors},
        )


def already_decided(action: Action) -> Conflict:
    """The refusal of a late word: says who was first, what, where."""
    if action.decided_by:
        by = f"Already {action.state} by {action.decided_by} in {action.decided_via}."
    elif action.lapsed:
        by = "Too late: it expired because nobody decided in time, and the agent was told."
    elif action.is_open:
        by = "Too late: it expired because nobody decided in time. Reopen it to decide after all."
    else:
        by = f"This action is {action.state}; it can no longer be decided."
    return Conflict(by, code="already_decided", details={"action": action})


def _allow_more(connection: sa.Connection, action: Action) -> None:
    run = runs.get(connection, action.run_id)
    if run is None:
        return
    what, more = str(action.args["limit"]), action.args["allowance"]
    allowance: dict[str, Any] = dict(run.allowance)
    present = allowance.get(what, more)  # absent in a run that began before there was this limit
    # What it was given at first is what every approval gives again.
    allowance["given"] = {what: present} | dict(allowance.get("given", {}))
    allowance[what] = present + more
    runs.allow_more(connection, run.id, allowance)


def _raise_day(
    connection: sa.Connection, action: Action, person: str, via: str, now: datetime
) -> tuple[Action, ...]:
    """Allow more of a day: one word for every run that waits for it, so that nobody is asked again."""
    raises.allow(connection, action, now, person=person, via=via)
    audit.append(
        connection,
        now,
        actor=person,
        via=via,
        event="budget.raised",
        subject=action.id,
        data={key: action.args[key] for key in ("limit", "day", "person", "allowance") if key in action.args},
    )
    released = []
    for other in raises.asking_the_same(connection, action):
        settled = store.settle(
            connection,
            other.id,
            [ActionState.PENDING, ActionState.EXPIRED],
            state=ActionState.APPROVED,
            decision=Verdict.APPROVE,
            reason="Answered together with another run that waited for the same budget.",
            final_args=other.args,
            decided_by=person,
            decided_at=now,
            decided_via=via,
        )
        if settled is None:
            continue
        audit.append(
            connection,
            now,
            actor=person,
            via=via,
            event=f"action.{settled.state}",
            subject=other.id,
            data={"thread": other.thread_id, "tool": other.tool, "with": action.id},
        )
        runs.requeue(connection, other.run_id, now)
        outbox.repaint(connection, other.id, settled.shown, now)
        released.append(settled)
    return tuple(released)


def reopen(
    connection: sa.Connection, action_id: str, person: Person, via: str, now: datetime, people: People
) -> tuple[Action, threads.Thread]:
    """Make an expired action pending again; for those who may decide it."""
    action, thread = seen_action(connection, action_id, person)
    if not people.decides_action(person, action, thread.owner):
        raise Forbidden("This is not yours to reopen.", code="not_an_approver")
    opened = store.reopen(connection, action_id)
    if opened is None:
        raise Conflict(
            already_decided(action).args[0]
            if action.lapsed
            else f"Only an expired action can be reopened; this one is {action.state}.",
            code="not_expired",
            details={"action": action},
        )
    audit.append(connection, now, actor=person.name, via=via, event="action.reopened", subject=action_id)
    outbox.repaint(connection, action_id, opened.shown, now)
    return opened, thread


def snooze(
    connection: sa.Connection,
    action_id: str,
    person: Person,
    until: datetime,
    via: str,
    now: datetime,
    people: People,
) -> Action:
    """Put a pending action off for one person, who is told of it again at `until` and not before.

    Raises Forbidden, Conflict `already_decided`, or Invalid `after_expiry`.
    """
    action, thread = seen_action(connection, action_id, person)
    if not people.decides_action(person, action, thread.owner):
        raise Forbidden(
            "This is not yours to decide, so there is nothing to put off.", code="not_an_approver"
        )
    if action.state is not ActionState.PENDING:
        raise already_decided(action)
    if action.expires_at is not None and action.expires_at <= until:
        expiry = spoken(action.expires_at, person.timezone)
        raise Invalid(
            f"It expires before that, on {expiry}; put it off until an earlier time.", code="after_expiry"
        )
    reminders.snooze(connection, action_id, person.name, until)
    snoozed = store.revise(connection, action_id)
    if snoozed is None:
        raise already_decided(store.get(connection, action_id) or action)
    audit.append(
        connection,
        now,
        actor=person.name,
        via=via,
        event="action.snoozed",
        subject=action_id,
        data={"thread": action.thread_id, "until": until.isoformat()},
    )
    outbox.repaint(connection, action_id, snoozed.shown, now)
    return snoozed


def record_refusal(
    connection: sa.Connection, decision: Decision, person: str, error: Refused, now: datetime
) -> None:
    """A word that was not taken is part of the story, too."""
    audit.append(
        connection,
        now,
        actor=person,
        via=decision.via,
        event="decision.refused",
        subject=decision.action_id[:64],
        data={"decision": str(decision.verdict), "why": error.code},
    )
