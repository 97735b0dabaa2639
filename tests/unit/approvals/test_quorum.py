"""Where several have to approve: does a call run when enough people approved the very same arguments?"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pizzabot import audit
from pizzabot.agent.guard import still_counts
from pizzabot.approvals import store
from pizzabot.approvals.decide import Decided, decide
from pizzabot.approvals.policy import Gate
from pizzabot.database.connection import Database, SqliteDatabase
from pizzabot.database.migrate import migrate
from pizzabot.errors import Conflict, Forbidden
from pizzabot.inbox import runs
from pizzabot.messages import Action, ActionKind, ActionState, Decision, RunState, Verdict, Vote
from pizzabot.outbox import store as outbox
from pizzabot.people import People, Person
from tests.fakes.clock import FakeClock
from tests.fakes.rows import ADA, BOB, waits

EVE, FAY = Person("Eve", "approver"), Person("Fay", "approver")
PEOPLE = People([ADA, BOB, EVE, FAY])
THREE = ("Bob", "Eve", "Fay")
CHANGED = {"invoice": "INV-8", "amount": 1}
OTHERS = {"invoice": "INV-9", "amount": 2}


@dataclass
class Vault:
    """An action that takes several approvals."""

    database: Database
    clock: FakeClock
    people: People = PEOPLE

    async def asks(self, quorum: int = 2, **options: Any) -> Action:
        asked: dict[str, Any] = {"approvers": THREE, "quorum": quorum} | options
        (action,) = await self.database.write(lambda c: waits(c, self.clock, **asked))
        return action

    async def says(
        self, action: Action, who: Person, verdict: Verdict = Verdict.APPROVE, **parts: Any
    ) -> Decided:
        word = Decision(action.id, who.name, "web", verdict, **({"digest": action.digest} | parts))
        return await self.database.write(lambda c: decide(c, word, who, self.clock.now(), self.people))

    async def now(self, action: Action) -> Action:
        found = await self.database.read(lambda c: store.get(c, action.id))
        assert found is not None
        return found

    async def run(self, action: Action) -> RunState:
        run = await self.database.read(lambda c: runs.get(c, action.run_id))
        assert run is not None
        return run.state

    async def events(self) -> list[audit.AuditLine]:
        return list(reversed(await self.database.read(lambda c: audit.page(c, limit=50))))


@pytest.fixture
def vault(database: Database, clock: FakeClock) -> Vault:
    return Vault(database, clock)


def names(action: Action) -> list[str]:
    return [vote.person for vote in action.votes]


async def test_the_last_approval_that_it_takes_decides(vault: Vault) -> None:
    action = await vault.asks()
    first = await vault.says(action, BOB)
    assert (first.resumes, first.action.state, names(first.action)) == (False, ActionState.PENDING, ["Bob"])
    assert await vault.run(action) is RunState.WAITING
    vault.clock.advance(seconds=60)
    second = await vault.says(action, EVE)
    assert (second.resumes, second.action.state) == (True, ActionState.APPROVED)
    assert (second.action.decided_by, names(second.action)) == ("Eve", ["Bob", "Eve"])
    assert second.action.final_args == action.args
    lines = await vault.events()
    voted = [(line.actor, line.data["votes"]) for line in lines if line.event == "action.voted"]
    assert voted == [("Bob", 1), ("Eve", 2)]
    assert lines[-1].event == "action.approved"
    assert lines[-1].data["approvals"] == ["Bob", "Eve"]


async def test_nobody_counts_twice(vault: Vault) -> None:
    action = await vault.asks()
    await vault.says(action, BOB)
    with pytest.raises(Conflict, match="counted already; it takes 1 more") as refused:
        await vault.says(action, BOB)
    assert refused.value.code == "already_approved"
    assert names(await vault.now(action)) == ["Bob"]


async def test_who_may_not_decide_does_not_count(vault: Vault) -> None:
    action = await vault.asks()
    with pytest.raises(Forbidden):
        await vault.says(action, ADA)
    assert (await vault.now(action)).votes == ()


@pytest.mark.parametrize("voted", [False, True])
async def test_one_rejection_decides(vault: Vault, voted: bool) -> None:
    action = await vault.asks(3)
    if voted:
        await vault.says(action, BOB)
    rejected = await vault.says(action, EVE, Verdict.REJECT, reason="no")
    assert (rejected.action.state, rejected.resumes) == (ActionState.REJECTED, True)
    with pytest.raises(Conflict, match="Already rejected by Eve"):
        await vault.says(action, FAY)


async def test_an_edit_needs_the_others_again(vault: Vault) -> None:
    action = await vault.asks(3)
    await vault.says(action, BOB)
    edited = (await vault.says(action, EVE, Verdict.EDIT, args=CHANGED)).action
    assert (edited.state, edited.args, names(edited)) == (ActionState.PENDING, CHANGED, ["Eve"])
    assert (edited.asked_args, edited.edited_by) == (action.args, "Eve")
    assert edited.digest != action.digest
    with pytest.raises(Conflict) as stale:
        await vault.says(action, FAY)  # who still looks at what was asked first
    assert stale.value.code == "stale_digest"
    await vault.says(edited, BOB)
    done = await vault.says(edited, FAY)
    assert done.resumes
    assert (done.action.state, done.action.decision) == (ActionState.EDITED, Verdict.EDIT)
    assert (done.action.args, done.action.final_args) == (action.args, CHANGED)
    voided = [line.data.get("voided") for line in await vault.events() if line.event == "action.voted"]
    assert voided == [None, ["Bob"], None, None]


async def test_an_edit_by_who_approved_before_counts_once(vault: Vault) -> None:
    action = await vault.asks()
    await vault.says(action, BOB)
    edited = (await vault.says(action, BOB, Verdict.EDIT, args=CHANGED)).action
    assert names(edited) == ["Bob"]
    assert (await vault.says(edited, EVE)).action.final_args == CHANGED


async def test_what_was_edited_is_not_approved_by_who_does_not_say_what_they_saw(vault: Vault) -> None:
    action = await vault.asks()
    await vault.says(action, BOB, Verdict.EDIT, args=CHANGED)
    with pytest.raises(Conflict, match="edited by Bob"):
        await vault.says(action, EVE, digest=None)
    assert names(await vault.now(action)) == ["Bob"]


async def test_an_edit_back_to_what_was_asked_is_no_edit(vault: Vault) -> None:
    action = await vault.asks()
    edited = (await vault.says(action, BOB, Verdict.EDIT, args=CHANGED)).action
    back = (await vault.says(edited, EVE, Verdict.EDIT, args=action.args)).action
    assert (back.asked_args, back.digest, names(back)) == (None, action.digest, ["Eve"])
    assert (await vault.says(action, FAY)).action.state is ActionState.APPROVED


async def test_a_rejection_after_an_edit_keeps_what_was_proposed(vault: Vault) -> None:
    action = await vault.asks()
    await vault.says(action, BOB, Verdict.EDIT, args=CHANGED)
    rejected = (await vault.says(action, EVE, Verdict.REJECT, digest=None)).action
    assert (rejected.args, rejected.final_args) == (action.args, None)


async def test_sending_a_call_again_takes_as_many_as_sending_it(vault: Vault) -> None:
    outcomes = (Verdict.RETRY, Verdict.DONE, Verdict.FAILED)
    action = await vault.asks(kind=ActionKind.UNCERTAIN, allowed_decisions=outcomes)
    assert not (await vault.says(action, BOB, Verdict.RETRY)).resumes
    assert (await vault.says(action, EVE, Verdict.RETRY)).action.decision is Verdict.RETRY
    seen = await vault.asks(kind=ActionKind.UNCERTAIN, allowed_decisions=outcomes)
    assert (await vault.says(seen, BOB, Verdict.DONE)).resumes


async def test_the_vote_of_somebody_who_may_no_longer_decide_does_not_count(vault: Vault) -> None:
    action = await vault.asks()
    await vault.says(action, BOB)
    vault.people = People([ADA, EVE, FAY])
    assert not (await vault.says(action, EVE)).resumes
    assert (await vault.says(action, FAY)).resumes


async def test_when_too_few_are_left_an_owner_approves_with_them(vault: Vault) -> None:
    action = await vault.asks(approvers=("Bob", "Eve"))
    vault.people = People([ADA, EVE])
    await vault.says(action, EVE)
    assert (await vault.says(action, ADA)).action.state is ActionState.APPROVED


async def test_votes_at_the_same_moment_resume_the_run_once(vault: Vault) -> None:
    for _ in range(8):
        action = await vault.asks()
        results = await asyncio.gather(*(vault.says(action, who) for who in (BOB, EVE)))
        assert sorted(result.resumes for result in results) == [False, True]
        assert (await vault.now(action)).state is ActionState.APPROVED


async def test_of_an_edit_and_an_approval_at_the_same_moment_both_are_of_the_same_arguments(
    vault: Vault,
) -> None:
    for _ in range(8):
        action = await vault.asks()
        await asyncio.gather(
            vault.says(action, BOB),
            vault.says(action, EVE, Verdict.EDIT, args=CHANGED),
            return_exceptions=True,
        )
        now = await vault.now(action)
        assert (now.state, names(now), now.args) == (ActionState.PENDING, ["Eve"], CHANGED)


async def test_every_vote_repaints_the_cards(vault: Vault) -> None:
    action = await vault.asks(3)

    async def shown() -> str:
        return (await vault.now(action)).shown

    seen = [await shown()]
    await vault.says(action, BOB)
    seen.append(await shown())
    await vault.says(action, EVE)
    seen.append(await shown())
    assert len(set(seen)) == 3
    assert (
        await vault.database.write(lambda c: outbox.repaint(c, action.id, seen[-1], vault.clock.now())) == 0
    )


# -- rules that change -----------------------------------------------------------------------------------


def decided(*voters: str, by: str = "Bob", verdict: Verdict = Verdict.APPROVE, **parts: Any) -> Action:
    start = FakeClock().now()
    return Action(
        id="a",
        thread_id="t",
        run_id="r",
        kind=ActionKind.TOOL,
        tool="mcp:ledger:pay",
        title="Pay",
        args={},
        args_schema={},
        digest="d",
        allowed_decisions=tuple(Verdict),
        approvers=(),
        state=ActionState.APPROVED,
        created_at=start,
        decision=verdict,
        decided_by=by,
        votes=tuple(Vote(name, "web", start) for name in voters),
        **parts,
    )


@pytest.mark.parametrize(
    ("quorum", "approvers", "action", "counts"),
    [
        (2, ("Bob", "Eve"), decided("Bob", "Eve"), True),
        (2, ("Bob", "Eve"), decided(), False),
        (2, ("Bob", "Fay"), decided("Bob", "Eve"), False),
        (1, ("Bob",), decided("Bob", "Eve"), True),
        (1, ("Fay",), decided("Bob", "Eve"), False),
        (3, (), decided("Bob", "Eve"), False),
        (2, (), decided("Bob", "Eve"), True),
        (2, ("Bob", "Eve"), decided(verdict=Verdict.REJECT), True),
    ],
)
def test_a_decision_counts_when_as_many_as_the_rule_wants_now_approved(
    quorum: int, approvers: tuple[str, ...], action: Action, counts: bool
) -> None:
    assert still_counts(Gate(tuple(Verdict), approvers, quorum), action) is counts


# -- any order -------------------------------------------------------------------------------------------

WORDS = st.lists(
    st.tuples(
        st.sampled_from([BOB, EVE, FAY]),
        st.sampled_from(["approve", "edit", "other edit", "approve unseen", "approve the first"]),
    ),
    max_size=8,
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteDatabase]:
    """One database for all examples: each asks an action of its own."""
    path = tmp_path_factory.mktemp("votes") / "app.sqlite"
    migrate("", path)
    database = SqliteDatabase(path)
    yield database
    database.close()


@settings(max_examples=25, deadline=None, derandomize=True)
@given(quorum=st.integers(2, 3), words=WORDS)
def test_whatever_runs_was_approved_by_enough_people_as_it_runs(
    shared: SqliteDatabase, quorum: int, words: list[tuple[Person, str]]
) -> None:
    async def play() -> None:
        vault = Vault(shared, FakeClock())
        action = first = await vault.asks(quorum)
        agreed: dict[str, Any] = {}  # person -> the arguments that they last saw and approved
        for who, word in words:
            edit = {"edit": CHANGED, "other edit": OTHERS}.get(word)
            digest = {"approve unseen": None, "approve the first": first.digest}.get(word, action.digest)
            verdict = Verdict.EDIT if edit is not None else Verdict.APPROVE
            try:
                result = await vault.says(action, who, verdict, digest=digest, args=edit)
            except Conflict:
                continue
            agreed[who.name] = edit if edit is not None else action.args
            action = result.action
            if result.resumes:
                of_it = [name for name, args in agreed.items() if args == action.final_args]
                assert len(of_it) >= quorum
                assert sorted(names(action)) == sorted(of_it)
                return
        assert len(set(names(action))) == len(action.votes) < quorum

    asyncio.run(play())
