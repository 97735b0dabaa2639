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


Announce = Callable[[sa.Connection, Action], None]
Publish = Callable[[Event], None]

current: ContextVar[RunContext] = ContextVar("run_context")


@dataclass(slots=True)
class RunContext:
    """One attempt of one run.

    `announce` queues the cards of a new action inside the transaction that stores it. `zone_time` is the
    moment this attempt began in words for its person; it does not move, so that prompts stay cacheable.
    """

    run: Run
    person: Person
    zone_time: str
    database: Database
    clock: Clock
    policy: Policy
    announce: Announce
    publish: Publish
    base_allowance: Bounds
    worker_tool_calls: int
    used: Bounds
    allowance: Bounds
    price: PriceOf
    model_label: str
    redact: Callable[[str], str]
    tracer: Tracer = OFF
    refused: bool = False  # a person said at a limit that the run ends with what it has
    draining: bool = False
    live: list[Activity] = field(default_factory=list)
    _spans: dict[int, Span] = field(default_factory=dict)  # by the identity of what began
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    _counted_until: float = field(default_factory=time.monotonic)
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

    def limit_question(self, name: LimitName) -> Question:
        """Ask whether the run may go on beyond a limit."""
        allowed = getattr(self.allowance, name)
        step = getattr(self.base_allowance, name)
        return Question(
            id=f"{self.run.id}/limit/{name}/{allowed:g}",
            kind=ActionKind.LIMIT,
            tool=f"limit:{name}",
            title=f"Go on? The run used its {limits.spoken(name, allowed)}",
            args={"limit": name, "used": round(getattr(self.used, name), 1), "allowance": step},
            args_schema={},
            allowed_decisions=(Verdict.APPROVE, Verdict.REJECT),
            approvers=(),
            why=f"Approve allows {limits.spoken(name, step)} more. Reject ends the run with what it has.",
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
        now = self.clock.now()

        def work(connection: sa.Connection) -> tuple[Action, bool]:
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
        if fresh:
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
        used, now = self.use().to_json(), self.clock.now()

        def work(connection: sa.Connection) -> bool:
            if also is not None:
                also(connection)
            self._keep(connection, ended, tokens, now)
            return runs.record_use(connection, self.run, used)

        if (span := self._spans.pop(id(started), None)) is not None:
            _end(span, ended, tokens)
        ours = await write_until_stored(self.database, work, lambda: self.stopped)
        self.forget(started)
        self._show(ended)
        if not ours:
            self.stop()

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


def milliseconds_since(began: float) -> int:
    """Whole milliseconds since a `time.monotonic` value."""
    return round((time.monotonic() - began) * 1000)


async def pause(run: RunContext, question: Question) -> NoReturn:
    """Ask, then leave the graph: what remains of the run are rows, no task and no connection (promise 4).

    An answer that came in this very moment changes nothing here: the engine sees it when the attempt ends
    and starts the next one at once.
    """
    from langgraph.types import interrupt  # costs seconds: this module is imported by what must start fast

    action = await run.ask(question)
    interrupt({"question": question.id, "action": action.id})
    raise AssertionError("nothing is ever resumed with a value")


def pending_questions(interrupts: Sequence[Any]) -> list[str]:
    """The question ids that a paused graph waits for."""
    return [str(interrupt.value["question"]) for interrupt in interrupts]
