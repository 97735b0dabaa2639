"""What does code inside the graph need to know of the run it works for?

One `RunContext` per attempt of a run, found through a context variable: LangGraph's tasks inherit it, also
those of workers. It is the only way from the graph to the database, to the stop signal and to the limits.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NoReturn, TypeVar

import sqlalchemy as sa

from pizzabot import tracing
from pizzabot.agent import activity, effects, limits
from pizzabot.agent.activity import Activity, Tokens
from pizzabot.agent.limits import Bounds, LimitName
from pizzabot.agent.prices import PriceOf
from pizzabot.agent.spending import NOTE_AT, Bound, Spending, Today
from pizzabot.approvals import raises
from pizzabot.approvals import store as actions
from pizzabot.approvals.policy import Policy
from pizzabot.approvals.store import Question
from pizzabot.clock import Clock
from pizzabot.database.connection import Database, write_until_stored
from pizzabot.errors import PizzaBotError
from pizzabot.inbox import runs
from pizzabot.inbox.runs import Run
from pizzabot.messages import Action, ActionKind, Event, Verdict
from pizzabot.people import Person
from pizzabot.tracing import OFF, Span, Tracer

T = TypeVar("T")


class RunStopped(PizzaBotError):
    """A person stopped the run, or another process took it over: nothing more may be started."""

    code = "stopped"


class OutOfTime(PizzaBotError):
    """The run's time was up in the middle of a call that may be broken off."""

    code = "out_of_time"


@dataclass(frozen=True, slots=True)
class Note:
    """Something that is said once per key: in the thread, and to the owners when it is about the house."""

    key: str
    text: str
    to_owners: bool


Announce = Callable[[sa.Connection, Action], None]
Tell = Callable[[sa.Connection, Run, Note], bool]
Publish = Callable[[Event], None]

current: ContextVar[RunContext] = ContextVar("run_context")


@dataclass(slots=True)
class _Calls:
    """The run's model calls: how many are in flight, how many ended, what the dearest one used."""

    in_flight: int = 0
    ended: int = 0
    usd: float = 0.0
    tokens: int = 0
    today: Today | None = None  # as it was when the newest call began
    one_ended: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(slots=True)
class RunContext:
    """One attempt of one run.

    `announce` queues the cards of a new action inside the transaction that stores it, `tell` says a note and
    returns whether it was new. `zone_time` is the moment this attempt began in words for its person; it does
    not move, so that prompts stay cacheable. `given` is what the run was allowed at first.
    """

    run: Run
    person: Person
    zone_time: str
    database: Database
    clock: Clock
    policy: Policy
    announce: Announce
    tell: Tell
    publish: Publish
    given: Bounds
    worker_tool_calls: int
    used: Bounds
    allowance: Bounds
    price: PriceOf
    spending: Spending
    owners: tuple[str, ...]
    model_label: str
    redact: Callable[[str], str]
    tracer: Tracer = OFF
    refused: bool = False  # a person said at a limit that the run ends with what it has
    draining: bool = False
    live: list[Activity] = field(default_factory=list)
    _spans: dict[int, Span] = field(default_factory=dict)  # by the identity of what began
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    _counted_until: float = field(default_factory=time.monotonic)
    _calls: _Calls = field(default_factory=lambda: _Calls())
    _noted: set[str] = field(default_factory=set)
    _stop: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    # -- stop and time -----------------------------------------------------------------------------------

    def stop(self) -> None:
        """Break off what is in flight and start nothing more."""
        if not self._stop.done():
            self._stop.set_result(None)

    @property
    def stopped(self) -> bool:
        return self._stop.done()

    def check_stop(self) -> None:
        """Raise RunStopped when a person stopped the run, or this process is going down."""
        if self._stop.done() or self.draining:
            raise RunStopped("The run was stopped.")

    def count_from_now(self) -> None:
        """What came before was not the run's work: the product was still loading."""
        self._counted_until = time.monotonic()

    def use(self) -> Bounds:
        """What was used so far, the running second included."""
        now = time.monotonic()
        self.used = self.used.plus("run_seconds", now - self._counted_until)
        self._counted_until = now
        return self.used

    async def race(self, work: Awaitable[T], *, breakable: bool) -> T:
        """Await `work`, but leave it when the run is stopped or, when `breakable`, out of time.

        Leaving cancels `work`, which cancels the request on the wire.
        """
        task = asyncio.ensure_future(work)
        if self.stopped or (self.draining and breakable):
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            self.check_stop()
        left = max(0.0, self.allowance.run_seconds - self.use().run_seconds) if breakable else None
        try:
            both: set[asyncio.Future[Any]] = {task, self._stop}
            await asyncio.wait(both, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not task.done():
                task.cancel()
        if task.done() and not task.cancelled():
            return task.result()
        await asyncio.gather(task, return_exceptions=True)
        if not task.cancelled():
            return task.result()  # it ended in this very moment: what is known is not thrown away
        self.check_stop()
        raise OutOfTime("The run's time is up.")

    # -- limits ------------------------------------------------------------------------------------------

    def reserve(self, name: LimitName) -> LimitName | None:
        """Count one more call, before it is made, so that parallel calls cannot pass a limit together.

        Returns the limit that leaves no room for it; then nothing is counted.
        """
        reached = limits.reached(self.use(), self.allowance, ("run_seconds", name))
        if reached is None:
            self.used = self.used.plus(name, 1)
        return reached

    async def enter(self) -> LimitName | Bound | None:
        """Take a place among the run's model calls; returns the budget that leaves no room, and takes none.

        What a call uses is known when it has ended. So a call beside others is made only when there is room
        for as much as the dearest one used so far, for each of them; else it waits until one has ended. The
        last call of a run may go beyond a budget, and no other starts behind it.

        Raises:
            OutOfTime: the run's time was up while it waited.
        """
        calls = self._calls
        while True:
            self.check_stop()
            ended = calls.ended
            today = await self._today()
            if ended != calls.ended:
                continue  # what it used may not be in the sum
            found = limits.reached(self.used, self.allowance, limits.BUDGETS) or today.used_up()
            if found is not None:
                return found
            if calls.in_flight == 0 or self._has_room_beside(today):
                break
            await self.race(calls.one_ended.wait(), breakable=True)
        calls.in_flight += 1
        calls.today = today
        return None

    def leave(self) -> None:
        """Give back the place that `enter` took."""
        calls = self._calls
        calls.in_flight -= 1
        calls.ended += 1
        calls.one_ended.set()
        calls.one_ended = asyncio.Event()

    async def _today(self) -> Today:
        now = self.clock.now()
        return await self.database.read(lambda c: self.spending.today(c, now, self.run.person))

    def _has_room_beside(self, today: Today) -> bool:
        calls = self._calls
        usd, tokens = calls.in_flight * calls.usd, calls.in_flight * calls.tokens
        used, allowed = self.used, self.allowance
        pairs = [(used.usd or 0.0, allowed.usd, usd), (used.tokens or 0, allowed.tokens, tokens)]
        pairs += [(b.used, b.allowed, tokens if b.name == "day_tokens" else usd) for b in today.bounds]
        return not any(limits.used_up(*pair) for pair in pairs)

    def _use_tokens(self, tokens: Tokens) -> None:
        usd, total = tokens.cost_usd or 0.0, tokens.input + tokens.output
        self.used = self.used.plus("usd", usd).plus("tokens", total)
        self._calls.usd, self._calls.tokens = max(self._calls.usd, usd), max(self._calls.tokens, total)

    def limit_question(self, name: LimitName) -> Question:
        """Ask whether the run may go on beyond a limit."""
        allowed = getattr(self.allowance, name)
        step = getattr(self.given, name)
        return Question(
            id=f"{self.run.id}/limit/{name}/{allowed:g}",
            kind=ActionKind.LIMIT,
            tool=f"limit:{name}",
            title=f"Go on? The run used its {limits.spoken(name, allowed)}",
            args={"limit": name, "used": _rounded(getattr(self.used, name)), "allowance": step},
            args_schema={},
            allowed_decisions=(Verdict.APPROVE, Verdict.REJECT),
            approvers=(),
            why=f"Approve allows {limits.spoken(name, step)} more. Reject ends the run with what it has.",
        )

    def day_question(self, bound: Bound) -> Question:
        """Ask owners whether runs may go on beyond the budget of a day.

        How often it was raised is part of the id: an answer given once answers no later question.
        """
        more = bound.spoken(bound.step)
        whose = f" of {bound.person}" if bound.person else ""
        return Question(
            id=f"{self.run.id}/limit/{bound.name}/{bound.day}/{bound.raised.times}/{bound.allowed:g}",
            kind=ActionKind.LIMIT,
            tool=f"limit:{bound.name}",
            title=f"Go on? The budget{whose} for {bound.day} is used up: {bound.spoken(bound.allowed)}",
            args={
                "limit": bound.name,
                "day": bound.day,
                **({"person": bound.person} if bound.person else {}),
                "used": _rounded(bound.used),
                "allowance": _rounded(bound.step),
            },
            args_schema={},
            allowed_decisions=(Verdict.APPROVE, Verdict.REJECT),
            approvers=self.owners,
            why=f"Approve allows {more} more on that day, for every run that waits for it. "
            "Reject ends this run with what it has. Without a word it goes on when that day is over."
            f"{bound.uncounted}",
        )

    # -- decisions ---------------------------------------------------------------------------------------

    async def answered(self, question_id: str) -> Action | None:
        """The stored answer to a question, or the pending action that asks it."""
        return await self.database.read(lambda connection: actions.answered(connection, question_id))

    async def has_begun(self, skill: str) -> bool:
        """Whether a worker has calls to settle: something was asked, or was sent and not seen to end."""
        run_id = self.run.id

        def read(connection: sa.Connection) -> bool:
            asked = skill in actions.skills_of_run(connection, run_id)
            return asked or effects.any_open(connection, run_id)

        return self.run.attempt > 1 and await self.database.read(read)

    async def ask(self, question: Question) -> Action:
        """Store the question once and tell those who may answer; returns the action, new or known."""
        action = await self._ask(question, lambda _: True)
        assert action is not None
        return action

    async def ask_for_day(self, bound: Bound) -> Action | None:
        """The same about a day's budget; None when somebody allowed more in this very moment."""

        def used_up(connection: sa.Connection) -> bool:
            raises.lock(connection)
            found = self.spending.today(connection, self.clock.now(), self.run.person).used_up()
            return found is not None and (found.key, found.raised) == (bound.key, bound.raised)

        return await self._ask(self.day_question(bound), used_up)

    async def _ask(self, question: Question, still: Callable[[sa.Connection], bool]) -> Action | None:
        now = self.clock.now()

        def work(connection: sa.Connection) -> tuple[Action | None, bool]:
            if not still(connection):
                return None, False
            action, fresh = actions.ask(
                connection,
                question,
                now,
                thread_id=self.run.thread_id,
                run_id=self.run.id,
                requested_by=self.run.person,
            )
            if fresh:
                self.announce(connection, action)
            return action, fresh

        action, fresh = await self.database.write(work)
        if fresh and action is not None:
            self.publish(Event("action", self.run.thread_id, {"action_id": action.id, "state": "pending"}))
        return action

    # -- records -----------------------------------------------------------------------------------------

    def begin(self, started: Activity) -> Activity:
        """Show that something began; `done` keeps how it ended."""
        self.live.append(started)
        self._show(started)
        if self.tracer is not OFF and (span := _begun(self.tracer, started, self.run.model)) is not None:
            self._spans[id(started)] = span
        return started

    async def done(
        self,
        started: Activity,
        ended: Activity,
        *,
        tokens: Tokens | None = None,
        also: Callable[[sa.Connection], None] | None = None,
    ) -> None:
        """Keep how something ended, what it used, and whatever `also` has to write, in one transaction.

        When the run is no longer this attempt's, the attempt is stopped: its next step raises RunStopped.
        """
        if tokens is not None:
            self._use_tokens(tokens)
        used, today = self.use().to_json(), self._calls.today

        def work(connection: sa.Connection) -> tuple[bool, list[tuple[Note, bool]]]:
            if also is not None:
                also(connection)
            now = self.clock.now()  # of this try: sums of a day trust that rows are not older than a minute
            self._keep(connection, ended, tokens, now)
            ours = runs.record_use(connection, self.run, used)
            notes = self._notes(connection, tokens, today, now) if tokens is not None and ours else []
            return ours, [(note, self.tell(connection, self.run, note)) for note in notes]

        if (span := self._spans.pop(id(started), None)) is not None:
            _end(span, ended, tokens)
        ours, told = await write_until_stored(self.database, work, lambda: self.stopped)
        self._noted |= {note.key for note, _ in told}
        self.forget(started)
        self._show(ended)
        if any(new for _, new in told):
            self.publish(Event("message", self.run.thread_id))
        if not ours:
            self.stop()

    def _notes(
        self, connection: sa.Connection, tokens: Tokens, today: Today | None, now: datetime
    ) -> list[Note]:
        """What has to be said about budgets that are nearly used up, unless this attempt said it."""
        found = [
            Note(
                f"budget/run/{self.run.id}/{name}",
                f"This run has used {limits.spoken(name, used)} of {limits.spoken(name, allowed)}. "
                "When that is used up, it pauses and asks.",
                to_owners=False,
            )
            for name in limits.BUDGETS
            if (allowed := getattr(self.allowance, name)) is not None
            and (used := getattr(self.used, name)) >= NOTE_AT * allowed
        ]
        spent = {"day_tokens": tokens.input + tokens.output}
        if today is not None and any(
            b.key not in self._noted
            and b.used + spent.get(b.name, tokens.cost_usd or 0.0) >= NOTE_AT * b.allowed
            for b in today.bounds
        ):
            exactly = self.spending.today(connection, now, self.run.person)
            found += [
                day_note(b, self.spending.budget.zone)
                for b in exactly.bounds
                if b.used >= NOTE_AT * b.allowed
            ]
        return [note for note in found if note.key not in self._noted]

    def _keep(self, connection: sa.Connection, ended: Activity, tokens: Tokens | None, now: datetime) -> None:
        activity.record(connection, ended, now, thread_id=self.run.thread_id, run_id=self.run.id)
        if tokens is not None:
            activity.spend(
                connection,
                tokens,
                now,
                thread_id=self.run.thread_id,
                run_id=self.run.id,
                person=self.run.person,
                model=self.run.model,
                trigger_id=self.run.trigger_id,
            )

    def forget(self, started: Activity) -> None:
        """Show something no longer as going on."""
        if (span := self._spans.pop(id(started), None)) is not None:
            span.end({"pizzabot.outcome": "left"})  # paused, or broken off
        if started in self.live:
            self.live.remove(started)

    def _show(self, shown: Activity) -> None:
        data: Mapping[str, Any] = shown.to_json() | {"run_id": self.run.id}
        self.publish(Event("activity", self.run.thread_id, data))


def _begun(tracer: Tracer, started: Activity, model: str) -> Span | None:
    name, worker = tracing.known_name(started.name), started.worker
    if started.kind == "model":
        about = tracing.model_attributes(model, worker)
        return tracer.begin(f"chat {about['gen_ai.request.model']}", about, kind="client")
    if started.kind == "tool":
        return tracer.begin(f"execute_tool {name}", tracing.tool_attributes(name, worker))
    if started.kind == "worker":
        return tracer.begin(f"invoke_agent {name}", tracing.agent_attributes(name), holds_others=True)
    return None


def _end(span: Span, ended: Activity, tokens: Tokens | None) -> None:
    known: dict[str, tracing.Value] = {"pizzabot.outcome": ended.outcome}
    if tokens is not None:
        known |= {"gen_ai.usage.input_tokens": tokens.input, "gen_ai.usage.output_tokens": tokens.output}
        if tokens.cost_usd is not None:
            known["pizzabot.cost_usd"] = tokens.cost_usd
    failed = ended.outcome == "error"
    # A failed model call says why in one of our own words; what a tool says may be anything.
    why = ended.detail if ended.kind == "model" and ended.detail else f"{ended.kind}_failed"
    span.end(known, error=why if failed else None)


def day_note(bound: Bound, zone: str) -> Note:
    """What is said when a day's budget is nearly used up."""
    text = (
        f"{bound.spoken(bound.used)} of {bound.spoken(bound.allowed)} is used: {bound.whose} "
        f"for {bound.day} ({zone}). When that is used up, runs pause and ask.{bound.uncounted}"
    )
    return Note(bound.key, text, to_owners=bound.person is None)


def _rounded(used: float) -> float:
    """As it stands on a card: dollars to a hundredth of a cent."""
    return round(used, 4)


def milliseconds_since(began: float) -> int:
    """Whole milliseconds since a `time.monotonic` value."""
    return round((time.monotonic() - began) * 1000)


async def pause(run: RunContext, question: Question) -> NoReturn:
    """Ask, then leave the graph: what remains of the run are rows, no task and no connection (promise 4).

    An answer that came in this very moment changes nothing here: the engine sees it when the attempt ends
    and starts the next one at once.
    """
    _leave_graph(question.id, await run.ask(question))


async def admit(run: RunContext) -> None:
    """Return when a model call may start, with a place for it among the run's calls: give it back with
    `run.leave`. Pauses when a budget is used up.
    """
    while True:
        try:
            found = await run.enter()
        except OutOfTime:
            found = "run_seconds"
        if found is None:
            return
        if not isinstance(found, Bound):
            await pause(run, run.limit_question(found))
        action = await run.ask_for_day(found)
        if action is not None:
            _leave_graph(run.day_question(found).id, action)


def _leave_graph(question_id: str, action: Action) -> NoReturn:
    from langgraph.types import interrupt  # costs seconds: this module is imported by what must start fast

    interrupt({"question": question_id, "action": action.id})
    raise AssertionError("nothing is ever resumed with a value")


def pending_questions(interrupts: Sequence[Any]) -> list[str]:
    """The question ids that a paused graph waits for."""
    return [str(interrupt.value["question"]) for interrupt in interrupts]
