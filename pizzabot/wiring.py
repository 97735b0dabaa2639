"""How is the product put together? The composition root: settings -> database -> rooms -> channels.

What takes seconds to import (LangGraph, DeepAgents, the model clients) is loaded beside everything else, so
the doors open at once: what arrives meanwhile is stored, and starts when the agent is there.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from pizzabot.agent.limits import Bounds
from pizzabot.agent.prices import cost_usd
from pizzabot.agent.spending import DayBudget, Spending
from pizzabot.approvals.policy import Policy, Rule, Timing
from pizzabot.channel import Channel
from pizzabot.clock import Clock, SystemClock
from pizzabot.database.connection import Database, open_database
from pizzabot.database.migrate import migrate
from pizzabot.doors import Doors
from pizzabot.engine import sweep, switches
from pizzabot.engine.clockwork import Clockwork, Tick
from pizzabot.engine.engine import Engine, EngineSettings
from pizzabot.engine.retention import Ages, Retention
from pizzabot.engine.undecided import Undecided
from pizzabot.engine.workflows import DbosWorkflows
from pizzabot.errors import ConfigError, Invalid
from pizzabot.events import Events
from pizzabot.home import Home
from pizzabot.logs import Redaction
from pizzabot.messages import Action, Event
from pizzabot.metrics import Metrics
from pizzabot.outbox.delivery import Delivery
from pizzabot.people import People
from pizzabot.reports import Reports
from pizzabot.sessions import Sessions
from pizzabot.settings import Settings
from pizzabot.skills.catalogue import SkillRoot, builtin_root, listed, readiness
from pizzabot.skills.live import LiveSkills
from pizzabot.tokens import Tokens
from pizzabot.tools.catalogue import ToolCatalogue
from pizzabot.tools.config import read_servers
from pizzabot.tracing import OFF, Tracer
from pizzabot.triggers import tool
from pizzabot.triggers.firing import Work
from pizzabot.triggers.ticker import Ticker
from pizzabot.triggers.trigger import OF_DIGESTS
from pizzabot.triggers.triggers import Triggers
from pizzabot.triggers.webhooks import Seal

if TYPE_CHECKING:
    from pizzabot.agent.checkpoints import GroupCommitSaver
    from pizzabot.agent.graph import Agent

logger = logging.getLogger(__name__)
CHANNEL_GROUP = "pizzabot.channels"
_SECRET_NAMES = ("KEY", "SECRET", "TOKEN", "PASSWORD")
_SHORTEST_SECRET = 8
_TOOLS_SETTLE_SECONDS = 30.0  # what starts by itself waits so long for MCP servers that connect


@dataclass(frozen=True, slots=True)
class Runtime:
    """The parts of a running server that its command line needs.

    `working` ends when runs are being started; its exception says why none can be.
    """

    home: Home
    settings: Settings
    people: People
    tokens: Tokens
    doors: Doors
    channels: Mapping[str, Channel]
    tools: ToolCatalogue
    skills: LiveSkills
    working: asyncio.Task[None]

    @property
    def url(self) -> str:
        """Where people reach the web view."""
        return self.doors.url()


_Load = Callable[[AsyncExitStack], Coroutine[Any, Any, "tuple[Agent, GroupCommitSaver]"]]


class _Heavy:
    """The agent and its checkpoints, loaded in the background; whoever needs them waits for them."""

    def __init__(self, load: _Load) -> None:
        self._stack = AsyncExitStack()
        self._task = asyncio.create_task(load(self._stack), name="agent")
        self._task.add_done_callback(_log_failure)

    async def agent(self) -> Agent:
        return (await asyncio.shield(self._task))[0]

    async def checkpoints(self) -> GroupCommitSaver:
        return (await asyncio.shield(self._task))[1]

    async def adelete_thread(self, thread_id: str) -> None:
        await (await self.checkpoints()).adelete_thread(thread_id)

    async def acopy_thread(self, source: str, target: str, upto_checkpoint_id: str | None = None) -> None:
        await (await self.checkpoints()).acopy_thread(source, target, upto_checkpoint_id)

    async def alist(
        self, config: Any, *, filter: dict[str, Any] | None = None, limit: int | None = None
    ) -> AsyncIterator[Any]:
        async for found in (await self.checkpoints()).alist(config, filter=filter, limit=limit):
            yield found

    def going_down(self) -> None:
        """What is still being loaded may fail now without a word: the server goes down around it."""
        self._task.remove_done_callback(_log_failure)

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._stack.aclose()


def _log_failure(task: asyncio.Task[Any]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.error("the agent could not be loaded", exc_info=error)


@dataclass(frozen=True, slots=True)
class _House:
    """Skills and servers as reports show them."""

    catalogue: LiveSkills
    tools: ToolCatalogue

    def skills(self) -> list[dict[str, Any]]:
        tools = self.tools.tools()
        states = {state.name: state.state for state in self.tools.states()}
        return [listed(skill, readiness(skill, tools, states)) for skill in self.catalogue().skills]

    def servers(self) -> list[dict[str, Any]]:
        return [
            {
                "name": state.name,
                "transport": state.transport,
                "state": state.state,
                "tools": [{"name": t.name, "read_only": t.read_only} for t in state.tools],
                "unused": bool(state.tools) and not any(self._used(t.full_name) for t in state.tools),
                **({"error": state.error} if state.error else {}),
            }
            for state in self.tools.states()
        ]

    def _used(self, full_name: str) -> bool:
        return any(
            reference.matches(full_name)
            for skill in self.catalogue().skills
            if skill.content is not None and not skill.disabled
            for reference in skill.content.references
        )

    def broken(self) -> list[dict[str, Any]]:
        files: list[tuple[str, int | None, str | None]] = [
            *((b.file, b.line, b.reason) for b in self.tools.broken),
            *((str(skill.path), skill.line, skill.reason) for skill in self.catalogue().broken),
            *((str(folder.file), None, folder.reason) for folder in self.catalogue().unreadable),
        ]
        return [
            {"file": file, "reason": reason} | ({"line": line} if line is not None else {})
            for file, line, reason in files
        ]


@asynccontextmanager
async def open_runtime(
    home: Home,
    settings: Settings,
    environ: Mapping[str, str],
    *,
    clock: Clock | None = None,
    tracer: Tracer | None = None,
) -> AsyncIterator[Runtime]:
    """A running server on a locked home; everything is closed again at the end, in reverse order."""
    clock, started = clock or SystemClock(), time.time()
    async with AsyncExitStack() as stack:
        tracer = tracer or tracer_of(settings)
        stack.push_async_callback(asyncio.to_thread, tracer.close)
        await asyncio.to_thread(migrate, settings.database.url, home.app_database)
        database = open_database(settings.database.url, home.app_database)
        stack.callback(database.close)
        people = settings.directory()
        spending = Spending(_day_budget(settings, people))
        tokens = Tokens(home, people)
        tokens.ensure_owner()
        events = Events()
        tools = ToolCatalogue(read_servers(home.mcp_json, environ))
        roots = [SkillRoot(home.skills, "home"), builtin_root()]
        skills = LiveSkills(roots, await database.read(switches.disabled))
        stack.push_async_callback(tools.stop)
        tools.on_change.append(lambda: events.publish(Event("servers")))
        opened = asyncio.Event()

        async def load(heavy_stack: AsyncExitStack) -> tuple[Agent, GroupCommitSaver]:
            await opened.wait()
            return await _load_agent(heavy_stack, home, settings, environ, skills, tools, database, started)

        heavy = _Heavy(load)
        stack.push_async_callback(heavy.close)
        channels: dict[str, Channel] = {}
        delivery = Delivery(database, clock, channels, tracer)
        every: list[Tick] = []
        clockwork = Clockwork(every, clock)

        def publish(event: Event) -> None:
            events.publish(event)
            if event.kind in ("run", "action") and ticker.concerns(event.thread_id):
                clockwork.wake()

        engine = Engine(
            database=database,
            clock=clock,
            people=people,
            settings=_engine_settings(
                settings, people, spending, Redaction(secrets_of(settings, home, environ)), tracer
            ),
            workflows=DbosWorkflows(home.workflows),
            agent=heavy.agent,
            channels=channels,
            publish=publish,
            delivered=delivery.wake,
            due=clockwork.wake,
            files=home.attachments,
        )

        def began() -> None:
            engine.wake()
            delivery.wake()

        def url() -> str:
            return str(getattr(channels.get("api"), "url", settings.web.public_url))

        def has_skill(name: str) -> bool:
            return skills().is_usable(name)

        ticker = Ticker(
            database,
            Work(people, engine.endings, settings.model, _allowance(settings).to_json(), url, has_skill),
            ready=lambda: tools.settle(_TOOLS_SETTLE_SECONDS),
            began=began,
            publish=events.publish,
        )
        every.append(ticker)
        triggers = Triggers(
            database=database,
            clock=clock,
            people=people,
            seal=Seal(home.seal_key),
            ticker=ticker,
            has_skill=has_skill,
            has_channel=lambda name: name in channels,
            publish=events.publish,
            changed=clockwork.wake,
        )
        tools.offer(tool.SPEC, tool.create_trigger(triggers))
        try:
            await triggers.keep_in_step(triggers_of(settings))
        except Invalid as error:
            raise ConfigError(str(home.toml), str(error)) from error
        house = _House(skills, tools)

        def undecided(action: Action) -> None:
            delivery.wake()
            engine.wake()
            data = {"action_id": action.id, "state": str(action.state)}
            events.publish(Event("action", action.thread_id, data))

        every.append(Undecided(database, engine.endings, spending, undecided))
        reports = Reports(
            database=database,
            clock=clock,
            settings=settings,
            skills=house,
            people=people,
            channels=channels,
            context_of=engine.context_of,
            spending=spending,
        )
        scraper = settings.telemetry.metrics_token
        metrics = Metrics(
            database=database,
            clock=clock,
            channels=channels,
            servers=house.servers,
            token=scraper.get_secret_value() if scraper is not None else None,
        )
        retention = Retention(
            database=database,
            ages=Ages(**dict(settings.retention)),
            folder=home.attachments,
            saved=heavy.checkpoints,
            still=engine.still,
            publish=events.publish,
        )
        doors = Doors(
            settings=settings,
            home=home,
            people=people,
            tokens=tokens,
            database=database,
            clock=clock,
            events=events,
            engine=engine,
            delivery=delivery,
            checkpoints=heavy,
            servers=tools,
            skills=skills,
            reports=reports,
            triggers=triggers,
            metrics=metrics,
            retention=retention,
            sessions=Sessions(database, clock, people, lambda: events.publish(Event("sessions"))),
            routes=lambda: [route for channel in channels.values() for route in channel.routes()],
            url=url,
        )
        channels.update(load_channels(doors))
        every.append(retention)
        for channel in channels.values():
            await channel.start()
            stack.push_async_callback(channel.stop)
        # Last to start and first to stop: a channel that is not there would fail, and failing is waited out.
        await delivery.start()
        stack.push_async_callback(delivery.stop)

        # The doors are open; only now comes what takes seconds, or it would take them from the doors.
        async def begin() -> None:
            # One after the other: two threads that import packages with circular imports at once can be
            # handed half of a module.
            await asyncio.to_thread(import_module, "pizzabot.tools.connection")
            await tools.start()
            await asyncio.to_thread(import_module, "dbos")
            await asyncio.to_thread(_import_agent)
            opened.set()
            await engine.start()
            await clockwork.start()

        working = asyncio.create_task(begin(), name="engine start")
        stack.push_async_callback(engine.stop)
        stack.push_async_callback(clockwork.stop)
        stack.push_async_callback(asyncio.wait, {working})
        stack.callback(heavy.going_down)
        yield Runtime(home, settings, people, tokens, doors, channels, tools, skills, working)


def secrets_of(settings: Settings, home: Home, environ: Mapping[str, str]) -> set[str]:
    """Everything that must not be shown: of the settings, of `.mcp.json`, and keys in the environment."""
    found = {
        value
        for name, value in environ.items()
        if name.upper().rpartition("_")[2] in _SECRET_NAMES and len(value) >= _SHORTEST_SECRET
    }
    return {*found, *settings.secrets(), *read_servers(home.mcp_json, environ).secrets}


def load_channels(doors: Doors) -> dict[str, Channel]:
    """Every installed channel that wants to run under these settings, by name."""
    made: dict[str, Channel] = {}
    for entry in entry_points(group=CHANNEL_GROUP):
        channel: Channel | None = entry.load()(doors)
        if channel is not None:
            made[channel.name] = channel
    return made


def tracer_of(settings: Settings) -> Tracer:
    """What `[telemetry]` asks for; without an endpoint nothing of OpenTelemetry is even imported.

    Raises:
        ConfigError: the extra `otel` is not installed.
    """
    table = settings.telemetry
    if table.otlp_endpoint is None:
        return OFF
    try:
        from pizzabot.otel import otlp_tracer

        headers = {name: value.get_secret_value() for name, value in table.otlp_headers.items()}
        return otlp_tracer(table.otlp_endpoint, headers, table.service_name)
    except ModuleNotFoundError as error:
        raise ConfigError(
            "pizzabot.toml",
            "OpenTelemetry needs its packages; pip install 'pizzabot[otel]'",
            key="telemetry.otlp_endpoint",
        ) from error


def _day_budget(settings: Settings, people: People) -> DayBudget:
    own = {person.name: person.day_usd for person in settings.people if person.day_usd is not None}
    return DayBudget(people.owner.timezone, settings.limits.day_usd, settings.limits.day_tokens, own)


def _engine_settings(
    settings: Settings, people: People, spending: Spending, redaction: Redaction, tracer: Tracer
) -> EngineSettings:
    limits, approvals = settings.limits, settings.approvals
    rules = [
        Rule(
            rule.tool,
            rule.ask,
            rule.decisions,
            approvers=tuple(_spelt(people, name) for name in rule.approvers),
            quorum=rule.quorum,
            urgent=rule.urgent,
            escalate_after=approvals.escalation(rule)[0],
            escalate_to=tuple(_spelt(people, name) for name in approvals.escalation(rule)[1]),
        )
        for rule in approvals.rules
    ]
    times = Timing(
        approvals.reminder_after,
        approvals.expire_after,
        approvals.on_expiry,
        approvals.escalate_after,
        tuple(_spelt(people, name) for name in approvals.escalate_to),
    )
    return EngineSettings(
        model=settings.model,
        allowance=_allowance(settings),
        worker_tool_calls=limits.worker_tool_calls,
        parallel_runs=limits.parallel_runs,
        policy=Policy(approvals.default, rules, approvals.skills_may_loosen, times),
        price=lambda model, amount: cost_usd(model, amount, settings.prices),
        spending=spending,
        redact=redaction.redacted,
        tracer=tracer,
    )


def _allowance(settings: Settings) -> Bounds:
    limits = settings.limits
    return Bounds(
        limits.run_seconds, limits.model_calls, limits.tool_calls, limits.run_usd, limits.run_tokens
    )


def triggers_of(settings: Settings) -> list[Mapping[str, Any]]:
    """The triggers that pizzabot.toml asks for: its own tables, and a digest for whoever wants one."""
    digests = [
        {"name": f"{OF_DIGESTS}{person.name}", "kind": "digest", "cron": person.digest, "owner": person.name}
        for person in settings.people
        if person.digest is not None
    ]
    return [*(table.fields() for table in settings.triggers), *digests]


def _spelt(people: People, name: str) -> str:
    """A name as `[[people]]` writes it: a rule may write it in another case."""
    person = people.by_name(name)
    return person.name if person is not None else name


async def _load_agent(
    stack: AsyncExitStack,
    home: Home,
    settings: Settings,
    environ: Mapping[str, str],
    skills: LiveSkills,
    tools: ToolCatalogue,
    database: Database,
    started: float,
) -> tuple[Agent, GroupCommitSaver]:
    graph, checkpoints = await asyncio.to_thread(_import_agent)
    saver = await stack.enter_async_context(checkpoints.open_checkpoints(home.checkpoints))
    agent = graph.Agent(
        options=lambda provider: _options(settings, provider),
        environ=environ,
        skills=skills,
        tools=tools,
        checkpoints=saver,
    )
    await asyncio.to_thread(agent.warm, settings.model)
    # What was imported stays for good; looking through it again and again costs a tenth of the processor.
    gc.freeze()
    await sweep.orphans(database, saver, home.attachments, started)
    return agent, saver


def _import_agent() -> tuple[Any, Any]:
    from pizzabot.agent import checkpoints, graph

    return graph, checkpoints


def _options(settings: Settings, provider: str) -> Mapping[str, Any]:
    table = settings.models.get(provider)
    return table.arguments() if table is not None else {}
