"""What makes runs go? Claims queued runs, drives each through the agent's graph, and stores how it ended.

wake -> claim (rows) -> workflow -> graph, from the input or from its checkpoint
  -> answer     -> done, with the answer and its outbox rows in one transaction; held messages queue the next
  -> questions  -> waiting: the attempt ends here, what remains are rows
  -> failure    -> failed, in plain words
  -> stopped    -> nothing: whoever stopped it stored that already
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import sqlalchemy as sa

from pizzabot import logs, tracing
from pizzabot.agent import context, effects
from pizzabot.agent.context import RunContext, RunStopped, pending_questions
from pizzabot.agent.limits import Bounds
from pizzabot.agent.models import label
from pizzabot.agent.prices import PriceOf
from pizzabot.agent.spending import Spending
from pizzabot.approvals import store as actions
from pizzabot.approvals.policy import Policy
from pizzabot.clock import Clock, spoken
from pizzabot.database.connection import Database, DatabaseClosed, write_until_stored
from pizzabot.digests import store as digests
from pizzabot.engine import conversation, titles
from pizzabot.engine.endings import Endings
from pizzabot.engine.workflows import Workflows
from pizzabot.errors import PizzaBotError
from pizzabot.inbox import runs, threads
from pizzabot.inbox.runs import Run
from pizzabot.messages import Action, ActionState, Event, RunState
from pizzabot.outbox import recipients
from pizzabot.people import People
from pizzabot.tracing import OFF, Span, Tracer

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from pizzabot.agent.graph import Agent, Graph

logger = logging.getLogger(__name__)
T = TypeVar("T")

# Bounded by the run's own limits long before; LangGraph's default of 25 would end honest work.
_RECURSION_LIMIT = 10_000
_IDLE_SECONDS = 30.0
_STORE_AGAIN_SECONDS = 1.0
_DRAIN_SECONDS = 8.0
_BREAK_OFF_SECONDS = 2.0  # whoever pressed stop gets an answer within three


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """What the engine is configured with."""

    model: str
    allowance: Bounds
    worker_tool_calls: int
    parallel_runs: int
    policy: Policy
    price: PriceOf
    spending: Spending
    redact: Callable[[str], str]
    tracer: Tracer = OFF


class Engine:
    """All runs of this process."""

    def __init__(
        self,
        *,
        database: Database,
        clock: Clock,
        people: People,
        settings: EngineSettings,
        workflows: Workflows,
        agent: Callable[[], Awaitable[Agent]],
        channels: Mapping[str, recipients.Reaches],
        publish: Callable[[Event], None],
        delivered: Callable[[], None],
        due: Callable[[], None],
        files: conversation.Files,
    ) -> None:
        self._database, self._clock, self._people, self._settings = database, clock, people, settings
        self._workflows, self._agent = workflows, agent
        self.endings = Endings(
            clock, people, channels, settings.model, settings.allowance.to_json(), settings.policy
        )
        self._publish, self._delivered, self.due, self._files = publish, delivered, due, files
        self._wake = asyncio.Event()
        self._still: set[str] = set()  # threads of which nothing may start just now
        self._claiming = asyncio.Lock()
        self._claimed: dict[tuple[str, int], Run] = {}  # by run and attempt: an older attempt may come back
        self._contexts: dict[str, RunContext] = {}  # by thread
        self._titles: set[asyncio.Task[None]] = set()
        self._dispatcher: asyncio.Task[None] | None = None
        self._closing = False

    # -- life --------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Queue again what a crash interrupted, then start whatever is queued."""
        await self._database.write(runs.recover)
        await self._workflows.launch(self._body)
        self._dispatcher = asyncio.create_task(self._dispatch(), name="engine")

    async def stop(self) -> None:
        """Start nothing more; runs leave at their next step and go on after the next start."""
        self._closing = True
        if self._dispatcher is not None:
            self._dispatcher.cancel()
            await asyncio.gather(self._dispatcher, return_exceptions=True)
        for run in self._contexts.values():
            run.draining = True
        await self._ended(list(self._contexts.values()), _DRAIN_SECONDS)
        await self.break_off(list(self._contexts))
        for task in self._titles:
            task.cancel()
        await asyncio.gather(*self._titles, return_exceptions=True)
        await self._workflows.close()

    def wake(self) -> None:
        """Something may be queued."""
        self._wake.set()

    def context_of(self, thread_id: str) -> RunContext | None:
        """The running attempt of a thread in this process."""
        return self._contexts.get(thread_id)

    @asynccontextmanager
    async def still(self, thread_id: str) -> AsyncIterator[bool]:
        """Start nothing of a thread in this block; False when something of it is at work already."""
        async with self._claiming:
            self._still.add(thread_id)
        try:
            at_work = any(run.thread_id == thread_id for run in self._claimed.values())
            yield thread_id not in self._contexts and not at_work
        finally:
            self._still.discard(thread_id)
            self._wake.set()

    async def break_off(self, thread_ids: Sequence[str]) -> None:
        """End what these threads' stopped runs have in flight; returns when nothing of them is at work."""
        stopped = [self._contexts[i] for i in thread_ids if i in self._contexts]
        for run in stopped:
            run.stop()
        await self._ended(stopped, _BREAK_OFF_SECONDS)

    async def _ended(self, contexts: Sequence[RunContext], seconds: float) -> None:
        """Wait, but not longer than that, until these attempts are over."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                for run in contexts:
                    await run.ended.wait()

    async def _dispatch(self) -> None:
        while True:
            self._wake.clear()
            try:
                await self._claim()
            except DatabaseClosed:
                return
            except Exception:
                logger.exception("queued runs could not be started; trying again")
                await asyncio.sleep(_STORE_AGAIN_SECONDS)
                continue
            # Not wait_for: in Python 3.11 it can swallow the cancellation that ends this loop.
            with suppress(TimeoutError):
                async with asyncio.timeout(_IDLE_SECONDS):
                    await self._wake.wait()

    async def _claim(self) -> None:
        async with self._claiming:
            await self._claim_free()

    async def _claim_free(self) -> None:
        free = self._settings.parallel_runs - len(self._contexts) - len(self._claimed)
        if free <= 0:
            return
        now, busy = self._clock.now(), [*self._contexts, *self._still]
        claimed = await self._database.write(lambda c: runs.claim(c, free, now, busy=busy))
        self._claimed |= {(run.id, run.attempt): run for run in claimed}
        for number, run in enumerate(claimed):
            try:
                await self._workflows.start(run.id, run.attempt)
            except BaseException:
                await self._release(claimed[number:])
                raise
            self._announce_state(run.thread_id, RunState.RUNNING)

    async def _release(self, unstarted: Sequence[Run]) -> None:
        """Give back what was claimed and could not be started."""

        def work(connection: sa.Connection) -> None:
            for run in unstarted:
                runs.release(connection, run)

        for run in unstarted:
            self._claimed.pop((run.id, run.attempt), None)
        await self._store(work)

    # -- one attempt -------------------------------------------------------------------------------------

    async def _body(self, run_id: str, attempt: int) -> None:
        run = self._claimed.pop((run_id, attempt), None)
        fresh = run is not None and attempt == 1
        if run is None:
            # A workflow that a crash interrupted: it has the run only when nobody claimed it since.
            now = self._clock.now()
            run = await self._database.write(lambda c: runs.claim_again(c, run_id, attempt, now))
        if run is not None:
            with logs.within(run=run.id, thread=run.thread_id):
                await self._attempt(run, fresh=fresh)

    async def _attempt(self, run: Run, *, fresh: bool) -> None:
        # Known before the first wait: whoever stops or closes must find every attempt there is.
        running = self._contexts[run.thread_id] = self._context(run)
        token, span = context.current.set(running), self._begun(run)
        outcome: tuple[str, str | None] = ("stopped", None)
        try:
            needed: frozenset[str] = frozenset()
            if not fresh:
                answered, needed = await self._database.read(lambda c: _answered(c, run))
                running.refused = any(
                    action.state is ActionState.REJECTED or action.lapsed for action in answered
                )
            outcome = (await self._drive(running, fresh=fresh, needed=needed), None)
        except RunStopped:
            logger.info("run %s was stopped", run.id)
        except PizzaBotError as error:
            outcome = ("failed", error.code)
            await self._fail(running, error.code, str(error))
        except Exception:
            outcome = ("failed", "internal")
            logger.exception("run %s failed", run.id)
            message = f"Something went wrong inside Pizza Bot. The log has the details under {run.id}."
            await self._fail(running, "internal", message)
        finally:
            context.current.reset(token)
            if self._contexts.get(run.thread_id) is running:
                del self._contexts[run.thread_id]
            running.ended.set()
            self._wake.set()
            if span is not None:
                span.end({"pizzabot.outcome": outcome[0]}, error=outcome[1])

    def _begun(self, run: Run) -> Span | None:
        """The span of this attempt, linked to the one before: nothing is held open while a run waits."""
        if self._settings.tracer is OFF:
            return None
        about = tracing.agent_attributes(threads.AGENT_NAME) | {
            "gen_ai.conversation.id": run.thread_id,
            "pizzabot.run.id": run.id,
            "pizzabot.attempt": run.attempt,
        }
        before = [tracing.attempt_ids(run.id, run.attempt - 1)] if run.attempt > 1 else []
        return self._settings.tracer.begin(
            f"invoke_agent {threads.AGENT_NAME}",
            about,
            ids=tracing.attempt_ids(run.id, run.attempt),
            links=before,
            holds_others=True,
        )

    def _context(self, run: Run) -> RunContext:
        """What an attempt needs to know."""
        person = self._people.by_name(run.person) or self._people.owner
        # A run of a former version knows nothing of limits that came since: the settings' hold for it.
        allowance = Bounds.from_json(run.allowance, self._settings.allowance)
        return RunContext(
            run=run,
            person=person,
            zone_time=spoken(self._clock.now(), person.timezone),
            database=self._database,
            clock=self._clock,
            policy=self._settings.policy,
            announce=self.endings.announce,
            tell=self.endings.noted,
            publish=self._publish_live,
            given=Bounds.from_json(run.allowance.get("given", {}), allowance),
            worker_tool_calls=self._settings.worker_tool_calls,
            used=Bounds.from_json(run.used),
            allowance=allowance,
            price=self._settings.price,
            spending=self._settings.spending,
            owners=tuple(owner.name for owner in self._people.owners),
            model_label=label(run.model),
            redact=self._settings.redact,
            tracer=self._settings.tracer,
        )

    async def _drive(self, running: RunContext, *, fresh: bool, needed: frozenset[str]) -> str:
        """Work until it ends or asks: done, or waiting."""
        run = running.run
        agent = await running.race(self._agent(), breakable=False)
        running.count_from_now()
        graph = await agent.root(run.model, resuming=not fresh, needed=needed, scope=run.skills)
        config: RunnableConfig = {
            "configurable": {"thread_id": run.thread_id},
            "metadata": {"run_id": run.id},
            "recursion_limit": _RECURSION_LIMIT,
        }
        state: Mapping[str, Any] | None = None
        start: dict[str, Any] | None = None
        if fresh or (state := await _progress(graph, config, run.id)) is None:
            start = await self._input(run)
        if state is None or not state.get("finished"):
            result = await graph.ainvoke(start, config, durability="sync")
            questions = pending_questions(result.get("__interrupt__", ()))
            messages = result["messages"]
        else:
            questions, messages = [], state["messages"]
        if questions:
            await self._pause(running, questions)
            return "waiting"
        await self._finish(running, conversation.answer_of(messages))
        return "done"

    async def _input(self, run: Run) -> dict[str, Any]:
        def read(connection: sa.Connection) -> tuple[conversation.Asked, Sequence[effects.Made]]:
            _still_held(connection, run)
            thread = threads.get(connection, run.thread_id)
            earlier = runs.before(connection, run)
            messages = threads.messages_of_run(connection, run.id, run.thread_id)
            told = None
            if messages and thread is not None and thread.channel == threads.UNATTENDED:
                told = _told(connection, run.thread_id, messages[0].seq, earlier)
            attached = threads.attachments_of(connection, run.thread_id)
            asked = conversation.Asked(messages, attached, thread.owner if thread else run.person, told)
            broken_off = earlier is not None and earlier.state in (RunState.STOPPED, RunState.FAILED)
            return asked, effects.of_run(connection, earlier.id) if earlier and broken_off else ()

        asked, made = await self._database.read(read)
        return await conversation.graph_input(asked, made, self._files)

    # -- endings -----------------------------------------------------------------------------------------

    async def _store(self, work: Callable[[sa.Connection], T]) -> T:
        """Write how an attempt ended: a full disk must not lose a finished answer."""
        return await write_until_stored(self._database, work, lambda: self._closing)

    async def _pause(self, running: RunContext, questions: Sequence[str]) -> None:
        used = running.use().to_json()
        state = await self._store(lambda c: self.endings.paused(c, running.run, used, questions))
        if state is not None:
            self._announce_state(running.run.thread_id, state)
            self._delivered()

    async def _finish(self, running: RunContext, text: str) -> None:
        run, used = running.run, running.use().to_json()
        author = conversation.author(running.model_label)

        def work(connection: sa.Connection) -> tuple[bool, str | None]:
            stored = self.endings.done(connection, run, used, author, text)
            return stored, titles.untitled(connection, run) if stored else None

        stored, untitled = await self._store(work)
        if stored:
            self._announce_state(run.thread_id, RunState.DONE)
            self._delivered()
        if untitled is not None:
            self._give_title(run, untitled, text)

    async def _fail(self, running: RunContext, code: str, message: str) -> None:
        run, used = running.run, running.use().to_json()
        if await self._store(lambda c: self.endings.failed(c, run, used, code, message)):
            self._announce_state(run.thread_id, RunState.FAILED)
            self._delivered()

    # -- telling -----------------------------------------------------------------------------------------

    def _publish_live(self, event: Event) -> None:
        self._publish(event)
        if event.kind in ("action", "message"):
            self._delivered()
            self.due()

    def _announce_state(self, thread_id: str, state: RunState) -> None:
        self._publish(Event("run", thread_id, {"state": str(state)}))

    def _give_title(self, run: Run, question: str, answer: str) -> None:
        if self._closing:
            return
        rooms = (self._database, self._clock, self._agent, self._settings)
        task = asyncio.create_task(titles.give(*rooms, run, question, answer, self._publish))
        self._titles.add(task)
        task.add_done_callback(self._titles.discard)


def _told(connection: sa.Connection, thread_id: str, seq: int, earlier: Run | None) -> str | None:
    """The digest before a message that no run before this one was told of."""
    made = digests.newest_in(connection, thread_id, seq)
    if made is None or (earlier is not None and earlier.created_at > made.made_at):
        return None
    message = threads.message(connection, made.message_seq)
    return message.text if message is not None else None


def _still_held(connection: sa.Connection, run: Run) -> None:
    """Raise RunStopped when the run was stopped before its attempt could be told."""
    if not runs.holds(connection, run):
        raise RunStopped


def _answered(connection: sa.Connection, run: Run) -> tuple[Sequence[Action], frozenset[str]]:
    """What was answered about the limits of a run, and the skills that asked; RunStopped as above."""
    _still_held(connection, run)
    return actions.limits_of_run(connection, run.id), actions.skills_of_run(connection, run.id)


async def _progress(graph: Graph, config: RunnableConfig, run_id: str) -> Mapping[str, Any] | None:
    """Where an earlier attempt of this run got; None when it did not get to its first checkpoint.

    `next == ()` does not mean finished: it is also so while all tasks of a step have stored what they found,
    and the step itself is not stored yet.
    """
    snapshot = await graph.aget_state(config)
    metadata = snapshot.metadata or {}
    if metadata.get("run_id") != run_id:
        return None
    return {"finished": not snapshot.tasks, "messages": snapshot.values.get("messages", ())}
