"""Does the first word of somebody who may decide count, and every other word change nothing but the audit?"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import sqlalchemy as sa

from pizzabot import audit
from pizzabot.agent.limits import Bounds
from pizzabot.approvals import raises, store
from pizzabot.approvals.decide import Decided, decide, record_refusal, reopen
from pizzabot.database.connection import Database
from pizzabot.errors import Conflict, Forbidden, Invalid, NotFound, Refused
from pizzabot.inbox import runs, threads
from pizzabot.messages import Action, ActionKind, ActionState, Decision, RunState, Verdict
from pizzabot.outbox import store as outbox
from pizzabot.people import People, Person
from tests.fakes.clock import FakeClock
from tests.fakes.rows import ADA, ALLOWANCE, BOB, CAY, DAN, question, waits

EVERY_VERDICT = tuple(Verdict)


async def _waits(database: Database, clock: FakeClock, **options: Any) -> Action:
    (action,) = await database.write(lambda c: waits(c, clock, **options))
    return action


def _word(action: Action, verdict: Verdict = Verdict.APPROVE, **parts: Any) -> Decision:
    return Decision(action.id, "somebody", "web", verdict, **parts)


PEOPLE = People([ADA, BOB, CAY, DAN])


async def _decide(database: Database, clock: FakeClock, decision: Decision, person: Person = ADA) -> Decided:
    return await database.write(lambda c: decide(c, decision, person, clock.now(), PEOPLE))


async def _action(database: Database, action_id: str) -> Action:
    action = await database.read(lambda c: store.get(c, action_id))
    assert action is not None
    return action


async def _refused(
    database: Database,
    clock: FakeClock,
    decision: Decision,
    person: Person = ADA,
    error: type[Refused] = Refused,
) -> Refused:
    """The refusal of a word, which must have changed nothing."""
    before = await database.read(
        lambda c: store.get(c, decision.action_id) if decision.action_id.isascii() else None
    )
    with pytest.raises(error) as caught:
        await _decide(database, clock, decision, person)
    if before is not None:
        assert await _action(database, decision.action_id) == before
    return caught.value


# -- what counts -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verdict", "parts", "state", "ran"),
    [
        (Verdict.APPROVE, {}, ActionState.APPROVED, True),
        (Verdict.EDIT, {"args": {"invoice": "X", "amount": 1}}, ActionState.EDITED, True),
        (Verdict.REJECT, {"reason": "too dear"}, ActionState.REJECTED, False),
        (Verdict.REJECT, {}, ActionState.REJECTED, False),
        (Verdict.RESPOND, {"response": "ask Bob"}, ActionState.RESPONDED, False),
        (Verdict.RETRY, {}, ActionState.RESOLVED, True),
        (Verdict.DONE, {}, ActionState.RESOLVED, False),
        (Verdict.FAILED, {}, ActionState.RESOLVED, False),
    ],
)
async def test_a_word_is_stored_and_resumes_the_run(
    database: Database,
    clock: FakeClock,
    verdict: Verdict,
    parts: dict[str, Any],
    state: ActionState,
    ran: bool,
) -> None:
    action = await _waits(database, clock, allowed_decisions=EVERY_VERDICT)
    clock.advance(seconds=60)
    decided = await _decide(database, clock, _word(action, verdict, **parts))
    assert decided.resumes
    stored = await _action(database, action.id)
    assert stored == decided.action
    assert (stored.state, stored.decision, stored.decided_by, stored.decided_via) == (
        state,
        verdict,
        "Ada",
        "web",
    )
    assert stored.decided_at == clock.now()
    assert (stored.reason, stored.response) == (parts.get("reason"), parts.get("response"))
    assert stored.args == action.args
    assert stored.final_args == (parts.get("args", action.args) if ran else None)
    run = await database.read(lambda c: runs.get(c, action.run_id))
    thread = await database.read(lambda c: threads.get(c, action.thread_id))
    assert run is not None
    assert thread is not None
    assert (run.state, thread.state, thread.action_count) == (RunState.QUEUED, "queued", 0)


async def test_an_edit_keeps_the_types_it_was_given(database: Database, clock: FakeClock) -> None:
    schema: dict[str, Any] = {"type": "object"}
    action = await _waits(database, clock, args_schema=schema)
    args = {
        "whole": 1,
        "float": 1.0,
        "text": "1",
        "yes": True,
        "none": None,
        "big": 10**30,
        "odd": "\x00\ud800ü",
    }
    await _decide(database, clock, _word(action, Verdict.EDIT, args=args))
    final = (await _action(database, action.id)).final_args
    assert final == args
    assert {name: type(value) for name, value in (final or {}).items()} == {
        n: type(v) for n, v in args.items()
    }


async def test_a_right_digest_counts(database: Database, clock: FakeClock) -> None:
    action = await _waits(database, clock)
    await _decide(database, clock, _word(action, digest=action.digest))
    assert (await _action(database, action.id)).state is ActionState.APPROVED


@pytest.mark.parametrize("answers", [2, 6])
async def test_of_words_that_come_together_the_first_one_counts(
    database: Database, clock: FakeClock, answers: int
) -> None:
    for _ in range(5):
        action = await _waits(database, clock)
        words = [_word(action, (Verdict.APPROVE, Verdict.REJECT)[n % 2]) for n in range(answers)]
        results = await asyncio.gather(
            *(_decide(database, clock, word) for word in words), return_exceptions=True
        )
        won = [result for result in results if isinstance(result, Decided)]
        lost = [result for result in results if isinstance(result, Conflict)]
        assert (len(won), len(lost)) == (1, answers - 1)
        assert won[0].resumes
        assert {error.code for error in lost} == {"already_decided"}
        assert all(error.details["action"].id == action.id for error in lost)
        assert (await _action(database, action.id)).state is won[0].action.state
    log = await database.read(lambda c: audit.page(c, limit=1000))
    assert len([line for line in log if line.event.startswith("action.")]) == 5
    assert (await database.read(audit.verify)).broken_at is None


async def test_actions_of_one_thread_decided_together_are_all_counted_and_resume_once(
    database: Database, clock: FakeClock
) -> None:
    for _ in range(5):
        made = await database.write(lambda c: waits(c, clock, asks=6))
        decided = await asyncio.gather(*(_decide(database, clock, _word(action)) for action in made))
        assert sum(one.resumes for one in decided) == 1
        thread = await database.read(partial(threads.get, thread_id=made[0].thread_id))
        assert thread is not None
        assert thread.action_count == 0


async def test_a_decision_and_a_pause_at_the_same_moment_do_not_block_each_other(
    database: Database, clock: FakeClock
) -> None:
    for _ in range(5):
        (action, _) = await database.write(lambda c: waits(c, clock, asks=2))

        def run_on(connection: sa.Connection, action: Action = action) -> runs.Run:
            runs.requeue(connection, action.run_id, clock.now())
            return runs.claim(connection, 1, clock.now())[0]

        run = await database.write(run_on)
        await asyncio.gather(
            _decide(database, clock, _word(action)),
            database.write(partial(runs.pause, run=run, now=clock.now(), used={}, decided=True)),
        )
        assert (await _action(database, action.id)).state is ActionState.APPROVED


async def test_the_other_copies_of_the_card_are_repainted(database: Database, clock: FakeClock) -> None:
    action = await _waits(database, clock)

    def shown(connection: sa.Connection) -> None:
        for place in ("A", "B"):
            outbox.enqueue(
                connection,
                clock.now(),
                key=f"card/{place}",
                channel="slack",
                address=place,
                kind="action",
                thread_id=action.thread_id,
                action_id=action.id,
            )
        for row in outbox.take(connection, clock.now(), limit=9):
            outbox.sent(connection, row, "1.1", ActionState.PENDING, clock.now())

    await database.write(shown)
    await _decide(database, clock, _word(action))
    rows = await database.write(lambda c: outbox.take(c, clock.now(), limit=9))
    assert {(row.address, row.external_id) for row in rows} == {("A", "1.1"), ("B", "1.1")}


# -- who may -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("owner", "approvers", "person", "error"),
    [
        ("Cay", (), CAY, None),
        ("Cay", (), ADA, None),
        ("Cay", (), BOB, NotFound),
        ("Cay", (), DAN, NotFound),
        ("Cay", ("Bob",), BOB, None),
        ("Cay", ("bOB",), BOB, None),
        ("Cay", ("Bob",), CAY, Forbidden),
        ("Cay", ("Bob",), ADA, Forbidden),
        ("Cay", ("Bob",), DAN, NotFound),
        ("Cay", ("Dan",), DAN, NotFound),
        ("cay", (), CAY, None),
    ],
)
async def test_who_may_decide(
    database: Database,
    clock: FakeClock,
    owner: str,
    approvers: tuple[str, ...],
    person: Person,
    error: type[Refused] | None,
) -> None:
    action = await _waits(database, clock, person=owner, approvers=approvers)
    if error is None:
        assert (await _decide(database, clock, _word(action), person)).action.decided_by == person.name
        return
    refusal = await _refused(database, clock, _word(action), person, error)
    assert refusal.code == ("not_an_approver" if error is Forbidden else "not_found")
    # Also in a state that is over: nobody learns more than they may see.
    await database.write(lambda c: store.withdraw(c, action.thread_id, clock.now()))
    assert (await _refused(database, clock, _word(action), person, error)).code == refusal.code


@pytest.mark.parametrize("action_id", ["", "nothing", "a\x00b", "\ud800", "x" * 100_000])
async def test_there_is_no_action_of_a_strange_id(
    database: Database, clock: FakeClock, action_id: str
) -> None:
    with pytest.raises(NotFound):
        await _decide(database, clock, Decision(action_id, "Ada", "web", Verdict.APPROVE))


async def test_a_hidden_action_and_no_action_are_told_in_the_same_words(
    database: Database, clock: FakeClock
) -> None:
    action = await _waits(database, clock)
    hidden = await _refused(database, clock, _word(action), DAN, NotFound)
    missing = await _refused(
        database, clock, Decision("0" * 36, "Dan", "web", Verdict.APPROVE), DAN, NotFound
    )
    assert str(hidden) == str(missing)


# -- what is refused -----------------------------------------------------------------------------------------

Change = Callable[[sa.Connection, Action], object]
OVER: dict[ActionState, Change] = {
    ActionState.EXPIRED: lambda c, a: store.settle(c, a.id, [ActionState.PENDING], state=ActionState.EXPIRED),
    ActionState.WITHDRAWN: lambda c, a: store.withdraw(c, a.thread_id, a.created_at),
}


@pytest.mark.parametrize("state", OVER)
async def test_what_is_over_cannot_be_decided(
    database: Database, clock: FakeClock, state: ActionState
) -> None:
    action = await _waits(database, clock)
    await database.write(lambda c: OVER[state](c, action))
    refusal = await _refused(database, clock, _word(action), error=Conflict)
    assert refusal.code == "already_decided"
    assert refusal.details["action"].state is state


async def test_a_late_word_is_told_who_was_first(database: Database, clock: FakeClock) -> None:
    action = await _waits(database, clock)
    await _decide(database, clock, _word(action, Verdict.REJECT))
    refusal = await _refused(database, clock, _word(action), error=Conflict)
    assert str(refusal) == "Already rejected by Ada in web."


EDIT = {"invoice": "INV-7", "amount": 10}
REFUSED: dict[str, tuple[Verdict, dict[str, Any], str]] = {
    "a word that is not allowed": (Verdict.RESPOND, {"response": "x"}, "decision_not_allowed"),
    "a word of another kind": (Verdict.RETRY, {}, "decision_not_allowed"),
    "another digest": (Verdict.APPROVE, {"digest": "0" * 64}, "stale_digest"),
    "an empty digest": (Verdict.APPROVE, {"digest": ""}, "stale_digest"),
    "approving with arguments": (Verdict.APPROVE, {"args": EDIT}, "invalid_args"),
    "an edit without arguments": (Verdict.EDIT, {}, "invalid_args"),
    "an edit that does not fit": (Verdict.EDIT, {"args": EDIT | {"amount": "10"}}, "invalid_args"),
    "an edit that is not JSON": (Verdict.EDIT, {"args": EDIT | {"amount": float("nan")}}, "invalid_args"),
    "a reason with NUL": (Verdict.REJECT, {"reason": "a\x00"}, "invalid_text"),
    "a long reason": (Verdict.REJECT, {"reason": "x" * 10_001}, "text_too_long"),
}


@pytest.mark.parametrize(("verdict", "parts", "code"), REFUSED.values(), ids=REFUSED)
async def test_a_refused_word_changes_nothing(
    database: Database, clock: FakeClock, verdict: Verdict, parts: dict[str, Any], code: str
) -> None:
    action = await _waits(database, clock)
    assert (await _refused(database, clock, _word(action, verdict, **parts))).code == code
    run = await database.read(lambda c: runs.get(c, action.run_id))
    assert run is not None
    assert run.state is RunState.WAITING


async def test_an_empty_response_is_refused(database: Database, clock: FakeClock) -> None:
    action = await _waits(database, clock, allowed_decisions=EVERY_VERDICT)
    assert (
        await _refused(database, clock, _word(action, Verdict.RESPOND, response=" "))
    ).code == "invalid_args"


async def test_an_edit_that_does_not_fit_names_the_places(database: Database, clock: FakeClock) -> None:
    action = await _waits(database, clock)
    word = _word(action, Verdict.EDIT, args={"invoice": 7, "amount": "x"})
    refusal = await _refused(database, clock, word, error=Invalid)
    assert [problem["path"] for problem in refusal.details["errors"]] == ["/amount", "/invoice"]


# -- limits, questions, expiry -------------------------------------------------------------------------------


async def _limit(database: Database, clock: FakeClock) -> Action:
    return await _waits(
        database,
        clock,
        kind=ActionKind.LIMIT,
        tool="tool_calls",
        args={"limit": "tool_calls", "used": 50, "allowance": 25},
        args_schema={},
        allowed_decisions=(Verdict.APPROVE, Verdict.REJECT),
    )


@pytest.mark.parametrize(("verdict", "calls"), [(Verdict.APPROVE, 75), (Verdict.REJECT, 50)])
async def test_only_approving_a_limit_raises_the_allowance(
    database: Database, clock: FakeClock, verdict: Verdict, calls: int
) -> None:
    action = await _limit(database, clock)
    await _decide(database, clock, _word(action, verdict))
    run = await database.read(lambda c: runs.get(c, action.run_id))
    assert run is not None
    assert Bounds.from_json(run.allowance) == Bounds.from_json(ALLOWANCE | {"tool_calls": calls})


async def test_every_approval_gives_what_the_run_was_given_at_first(
    database: Database, clock: FakeClock
) -> None:
    action = await _limit(database, clock)
    await _decide(database, clock, _word(action))
    run = await database.read(lambda c: runs.get(c, action.run_id))
    assert run is not None
    assert (run.allowance["tool_calls"], run.allowance["given"]) == (75, {"tool_calls": 50})


def _about_the_day(**changes: Any) -> dict[str, Any]:
    args = {"limit": "day_usd", "day": "2026-03-02", "used": 20.5, "allowance": 20.0} | changes
    return {
        "kind": ActionKind.LIMIT,
        "tool": f"limit:{args['limit']}",
        "args": args,
        "args_schema": {},
        "allowed_decisions": (Verdict.APPROVE, Verdict.REJECT),
        "approvers": ("Ada",),
    }


async def test_one_approval_of_a_days_budget_answers_everybody_who_waits_for_it(
    database: Database, clock: FakeClock
) -> None:
    action = await _waits(database, clock, **_about_the_day())
    same = await _waits(database, clock, person="Cay", **_about_the_day(used=21.0))
    lapsed = await _expired(database, clock, **_about_the_day())
    others = [
        await _waits(database, clock, **_about_the_day(day="2026-03-01")),
        await _waits(database, clock, **_about_the_day(limit="person_day_usd", person="Cay")),
        await _limit(database, clock),
    ]
    decided = await _decide(database, clock, _word(action))
    assert {also.id for also in decided.also} == {same.id, lapsed.id}
    for released in (same, lapsed):
        stored = await _action(database, released.id)
        assert (stored.state, stored.decided_by, stored.decided_via) == (ActionState.APPROVED, "Ada", "web")
        (run,) = await database.read(partial(runs.with_ids, run_ids=[released.run_id]))
        assert run.state is RunState.QUEUED
    for other in others:
        assert (await _action(database, other.id)).state is ActionState.PENDING
    raised = await database.read(lambda c: raises.of_day(c, "2026-03-02", "Ada"))
    assert raised == {"day_usd": raises.Raised(20.0, 1)}
    log = await database.read(lambda c: audit.page(c, limit=50))
    assert [(line.actor, line.via, line.subject) for line in log if line.event == "budget.raised"] == [
        ("Ada", "web", action.id)
    ]
    assert {line.subject for line in log if line.data.get("with") == action.id} == {same.id, lapsed.id}


async def test_rejecting_more_of_a_day_ends_only_the_run_that_asked(
    database: Database, clock: FakeClock
) -> None:
    action = await _waits(database, clock, **_about_the_day())
    same = await _waits(database, clock, **_about_the_day())
    assert (await _decide(database, clock, _word(action, Verdict.REJECT))).also == ()
    assert (await _action(database, same.id)).state is ActionState.PENDING
    assert await database.read(lambda c: raises.of_day(c, "2026-03-02", "Ada")) == {}


async def test_two_approvals_at_once_raise_a_day_once(database: Database, clock: FakeClock) -> None:
    waiting = [await _waits(database, clock, **_about_the_day()) for _ in range(4)]
    words = await asyncio.gather(
        *(_decide(database, clock, _word(action)) for action in waiting), return_exceptions=True
    )
    assert sum(isinstance(word, Decided) for word in words) == 1
    assert {word.code for word in words if isinstance(word, Refused)} == {"already_decided"}
    raised = await database.read(lambda c: raises.of_day(c, "2026-03-02", "Ada"))
    assert raised == {"day_usd": raises.Raised(20.0, 1)}


async def test_a_tool_that_is_named_like_a_limit_raises_nothing(database: Database, clock: FakeClock) -> None:
    about = _about_the_day() | {"kind": ActionKind.TOOL}
    await _decide(database, clock, _word(await _waits(database, clock, **about)))
    assert await database.read(lambda c: raises.of_day(c, "2026-03-02", "Ada")) == {}


async def test_asking_twice_finds_the_first_action(database: Database, clock: FakeClock) -> None:
    asked = question(id="thread/ns/call_1")
    first = await _waits(database, clock, id=asked.id)

    def again(connection: sa.Connection) -> tuple[Action, bool]:
        return store.ask(
            connection, asked, clock.now(), thread_id=first.thread_id, run_id=first.run_id, requested_by="Ada"
        )

    assert await database.write(again) == (first, False)
    await _decide(database, clock, _word(first))
    found, new = await database.write(again)
    assert (found.id, found.state, new) == (first.id, ActionState.APPROVED, False)
    assert await database.read(lambda c: store.any_decided(c, ["other", asked.id]))
    assert not await database.read(lambda c: store.any_decided(c, ["other", "thread/ns/call_"]))


async def test_a_withdrawn_question_that_is_asked_again_is_a_new_action(
    database: Database, clock: FakeClock
) -> None:
    first = await _waits(database, clock, id="q")

    def again(connection: sa.Connection) -> tuple[Action, bool]:
        assert len(store.withdraw(connection, first.thread_id, clock.now())) == 1
        assert store.answered(connection, "q") is None
        return store.ask(
            connection,
            question(id="q"),
            clock.now(),
            thread_id=first.thread_id,
            run_id=first.run_id,
            requested_by="Ada",
        )

    second, new = await database.write(again)
    third, newest = await database.write(again)
    assert new
    assert newest
    assert len({first.id, second.id, third.id}) == len({first.digest, second.digest, third.digest}) == 3
    thread = await database.read(lambda c: threads.get(c, first.thread_id))
    assert thread is not None
    assert thread.action_count == 1


async def _expired(database: Database, clock: FakeClock, **options: Any) -> Action:
    action = await _waits(database, clock, **options)
    await database.write(lambda c: OVER[ActionState.EXPIRED](c, action))
    return action


async def test_an_expired_action_can_be_reopened_and_then_decided(
    database: Database, clock: FakeClock
) -> None:
    action = await _expired(database, clock)
    opened, _ = await database.write(lambda c: reopen(c, action.id, ADA, "web", clock.now(), PEOPLE))
    assert opened.state is ActionState.PENDING
    await _decide(database, clock, _word(action))
    log = await database.read(lambda c: audit.page(c, limit=2))
    assert [(line.event, line.subject) for line in log] == [
        ("action.approved", action.id),
        ("action.reopened", action.id),
    ]


@pytest.mark.parametrize("state", [state for state in ActionState if state is not ActionState.EXPIRED])
async def test_nothing_but_an_expired_action_can_be_reopened(
    database: Database, clock: FakeClock, state: ActionState
) -> None:
    action = await _waits(database, clock)
    await database.write(lambda c: store.settle(c, action.id, [ActionState.PENDING], state=state))
    with pytest.raises(Conflict) as caught:
        await database.write(lambda c: reopen(c, action.id, ADA, "web", clock.now(), PEOPLE))
    assert caught.value.code == "not_expired"


@pytest.mark.parametrize(("person", "error"), [(CAY, Forbidden), (DAN, NotFound)])
async def test_only_who_may_decide_may_reopen(
    database: Database, clock: FakeClock, person: Person, error: type[Refused]
) -> None:
    action = await _expired(database, clock, person="Cay", approvers=("Bob",))
    with pytest.raises(error):
        await database.write(lambda c: reopen(c, action.id, person, "web", clock.now(), PEOPLE))


# -- the audit ---------------------------------------------------------------------------------------------


async def test_a_decision_is_in_the_audit_with_what_was_shown_and_what_runs(
    database: Database, clock: FakeClock
) -> None:
    action = await _waits(database, clock)
    await _decide(database, clock, _word(action, Verdict.EDIT, args=EDIT, reason="less"))
    (line,) = await database.read(lambda c: audit.page(c, limit=1))
    assert (line.event, line.actor, line.via, line.subject) == ("action.edited", "Ada", "web", action.id)
    assert line.data["shown"] == action.digest != line.data["runs"]
    assert (line.data["decision"], line.data["reason"]) == ("edit", "less")


async def test_a_refusal_is_in_the_audit(database: Database, clock: FakeClock) -> None:
    action = await _waits(database, clock, approvers=("Bob",))
    error = await _refused(database, clock, _word(action))
    await database.write(lambda c: record_refusal(c, _word(action), "Ada", error, clock.now()))
    (line,) = await database.read(lambda c: audit.page(c, limit=1))
    assert (line.event, line.actor, line.subject) == ("decision.refused", "Ada", action.id)
    assert line.data == {"decision": "approve", "why": "not_an_approver"}


async def test_a_refused_word_leaves_no_other_trace(database: Database, clock: FakeClock) -> None:
    action = await _waits(database, clock)
    before = await database.read(lambda c: audit.verify(c).head)
    await _refused(database, clock, _word(action, digest="0" * 64))
    assert await database.read(lambda c: audit.verify(c).head) == before
