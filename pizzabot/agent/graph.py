"""What does the agent consist of? The root graph, and one lazily built worker per skill.

The root agent holds files and `task`, and no tool of the outside world. A worker is one skill: its name is
the skill's id, its prompt the body, its tools exactly the declared ones. Workers are built when they are
called, so a server that connects slowly delays only the run that needs it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from deepagents import CompiledSubAgent, HarnessProfile, create_deep_agent, register_harness_profile
from deepagents._models import get_model_provider
from deepagents.backends import StateBackend
from deepagents.middleware._parent_notifier import _ParentNotifierMiddleware
from deepagents.middleware.summarization import create_summarization_middleware
from deepagents.profiles.harness.harness_profiles import GeneralPurposeSubagentProfile
from langchain.agents import factory
from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.tools import StructuredTool
from langgraph.graph.state import CompiledStateGraph
from langsmith.utils import tracing_is_enabled

from pizzabot.agent import context
from pizzabot.agent.calls import Mended, ModelCalls
from pizzabot.agent.guard import BoundTool, Guard
from pizzabot.agent.models import Options, make_model
from pizzabot.approvals.policy import SkillWord
from pizzabot.errors import ModelFailed
from pizzabot.messages import Verdict
from pizzabot.rendering import render_text
from pizzabot.skills.catalogue import Readiness, Skill, SkillCatalogue, gate_for, readiness, resolved_tools
from pizzabot.tools.catalogue import ToolCatalogue, ToolSpec, model_names

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver

logger = logging.getLogger(__name__)
Graph = CompiledStateGraph[Any, Any, Any, Any]
Hook = TypeVar("Hook")


def _as_it_is(**_how: Any) -> Callable[[Hook], Hook]:
    return lambda hook: hook


# LangChain wraps every hook of every middleware for LangSmith's tracing. While that is off a wrapper does
# nothing, but it takes a twentieth of a run's processor time, and hops to a thread and back twice.
if not tracing_is_enabled():
    factory.traceable = _as_it_is  # type: ignore[attr-defined,assignment]

LOADING_PATIENCE_SECONDS = 30.0
_GRAPHS_KEPT = 16


@dataclass(frozen=True, slots=True)
class SkillState:
    """A skill and whether it can be called now."""

    skill: Skill
    readiness: Readiness


class Agent:
    """Builds graphs for runs and keeps those that are still right."""

    def __init__(
        self,
        *,
        options: Options,
        environ: Mapping[str, str],
        skills: Callable[[], SkillCatalogue],
        tools: ToolCatalogue,
        checkpoints: BaseCheckpointSaver[Any],
        wait: Callable[[float], Any] = asyncio.sleep,
    ) -> None:
        self._options, self._environ, self._wait = options, environ, wait
        self._skills, self._tools, self._checkpoints = skills, tools, checkpoints
        self._models: dict[str, BaseChatModel] = {}
        self._roots: OrderedDict[Any, Graph] = OrderedDict()
        self._workers: OrderedDict[Any, Graph] = OrderedDict()

    def skill_states(self) -> list[SkillState]:
        """Every skill of the catalogue and whether it can be called now."""
        tools = self._tools.tools()
        servers = {state.name: state.state for state in self._tools.states()}
        return [SkillState(skill, readiness(skill, tools, servers)) for skill in self._skills().skills]

    def model(self, name: str) -> BaseChatModel:
        """The chat model of that name, made once.

        Raises:
            ModelFailed: it cannot be made as configured.
        """
        if name not in self._models:
            made = make_model(name, self._options(name.partition(":")[0]), self._environ)
            provider = get_model_provider(made) or name.partition(":")[0]
            register_harness_profile(provider, profile_of(provider))
            self._models[name] = made
        return self._models[name]

    def warm(self, model: str) -> None:
        """Import and build what the first run needs; takes seconds, so call it in a thread."""
        try:
            key, build = self._wanted_root(model, resuming=False)
            _kept(self._roots, key, build)
        except ModelFailed as error:
            logger.warning("the model cannot be used: %s", error)

    async def root(
        self,
        model: str,
        *,
        resuming: bool,
        needed: frozenset[str] = frozenset(),
        scope: Collection[str] | None = None,
    ) -> Graph:
        """The graph for a run: the same for all people, so that it is built once, and whose run it is stands
        in what each call adds. A resumed one knows every skill, so that a paused worker is found again; of
        the `needed` skills also those that are gone, to say so instead of dropping what was decided. With a
        `scope`, it knows of no other skills than these.

        Building one takes tens of milliseconds of pure computing: not on the event loop.
        """
        key, build = self._wanted_root(model, resuming=resuming, needed=needed, scope=scope)
        if key in self._roots:
            return _kept(self._roots, key, build)
        return await asyncio.to_thread(_kept, self._roots, key, build)

    def _wanted_root(
        self,
        model: str,
        *,
        resuming: bool,
        needed: frozenset[str] = frozenset(),
        scope: Collection[str] | None = None,
    ) -> tuple[Any, Callable[[], Graph]]:
        """What the root graph depends on, and how it is built."""
        wanted = None if scope is None else {name.casefold() for name in scope}
        states = [
            state
            for state in self.skill_states()
            if state.readiness.state != "disabled" and (wanted is None or state.skill.id.casefold() in wanted)
        ]
        callable_now = [
            state
            for state in states
            if state.readiness.state in ("ready", "loading") or (resuming and state.skill.content)
        ]
        unready = [state for state in states if state.readiness.state in ("unavailable", "broken")]
        gone = tuple(sorted(needed - {state.skill.id for state in callable_now}))
        key = (
            model,
            gone,
            tuple(state.skill for state in callable_now),
            tuple((state.skill.id, state.readiness.reason) for state in unready),
        )
        return key, lambda: self._build_root(model, callable_now, unready, gone)

    def _build_root(
        self,
        model: str,
        callable_now: Sequence[SkillState],
        unready: Sequence[SkillState],
        gone: Sequence[str],
    ) -> Graph:
        prompt = render_text(
            "prompts/root.md.j2",
            unready=[{"name": s.skill.id, "reason": s.readiness.reason} for s in unready],
        )
        chat = self.model(model)
        own = {spec.name: BoundTool(spec.name, spec, _ASKS) for spec in self._tools.own()}
        return create_deep_agent(
            chat,
            [_offered(tool) for tool in own.values()],
            system_prompt=prompt,
            subagents=[
                *(self._worker(model, state.skill) for state in callable_now),
                *(_gone_worker(name) for name in gone),
            ],
            middleware=self._middleware(chat, Guard(None, own, self._tools), ModelCalls(None, self._wait)),
            checkpointer=self._checkpoints,
            name="root",
        )

    def _middleware(self, chat: BaseChatModel, guard: Guard, calls: ModelCalls) -> list[Any]:
        # The stock counter renders every tool's schema at every call, which costs more than the call's own
        # bookkeeping; the schemas are a small constant beside the context window.
        summarize = create_summarization_middleware(
            chat,
            StateBackend(),
            token_counter=lambda messages: count_tokens_approximately(messages),
            summarizer=calls.summarizer(chat),
        )
        return [summarize, Mended(), guard, calls]

    # -- workers -----------------------------------------------------------------------------------------

    def _worker(self, model: str, skill: Skill) -> CompiledSubAgent:
        async def work(state: dict[str, Any], config: RunnableConfig) -> dict[str, Any]:
            graph = await self._ready_worker(model, skill)
            if isinstance(graph, str):
                return {"messages": [AIMessage(graph)]}
            result: dict[str, Any] = await graph.ainvoke(state, config)
            return result

        description = skill.content.description if skill.content else ""
        return CompiledSubAgent(name=skill.id, description=description, runnable=RunnableLambda(work))

    async def _ready_worker(self, model: str, skill: Skill) -> Graph | str:
        """The worker's graph, or the sentence that says why there is none; waits for connecting servers.

        A run with calls of this worker to settle waits for servers that are down, too: they are being
        restarted, perhaps after the very call that has to be settled.
        """
        run = context.current.get()
        needed = await run.has_begun(skill.id)
        hopeful = ("loading", "unavailable") if needed else ("loading",)
        state = self._readiness(skill)
        waited = 0.0
        while state.state in hopeful and waited < LOADING_PATIENCE_SECONDS:
            run.check_stop()
            await self._wait(0.1)
            waited += 0.1
            state = self._readiness(skill)
        if state.state == "ready":
            return await asyncio.to_thread(self._worker_graph, model, skill)
        reason = f"The skill {skill.id} cannot be used now: {state.reason}."
        if needed:
            # Somebody may have decided about a call of this worker already: keep the run where it is.
            raise ModelFailed("skill_unavailable", f"{reason} Retry the thread when it can.", retryable=False)
        return reason

    def _readiness(self, skill: Skill) -> Readiness:
        servers = {state.name: state.state for state in self._tools.states()}
        return readiness(skill, self._tools.tools(), servers)

    def _worker_graph(self, model: str, skill: Skill) -> Graph:
        specs = self._tools.tools()
        names = resolved_tools(skill, specs)
        key = (model, skill, self._tools.version)
        return _kept(
            self._workers, key, lambda: self._build_worker(model, skill, [specs[name] for name in names])
        )

    def _build_worker(self, model: str, skill: Skill, specs: Sequence[ToolSpec]) -> Graph:
        assert skill.content is not None, "a broken skill is never ready"
        shown = model_names([spec.full_name for spec in specs], reserved=RESERVED_TOOL_NAMES)
        bound = {
            shown[spec.full_name]: BoundTool(shown[spec.full_name], spec, word_of(skill, spec.full_name))
            for spec in specs
        }
        chat = self.model(model)
        return create_deep_agent(
            chat,
            [_offered(tool) for tool in bound.values()],
            system_prompt=render_text("prompts/worker.md.j2", name=skill.id, body=skill.content.body),
            middleware=self._middleware(
                chat, Guard(skill.id, bound, self._tools), ModelCalls(skill.id, self._wait)
            ),
            name=skill.id,
        )


# What a tool of our own does, somebody always decides about, whatever the operator's default is.
_ASKS = SkillWord(ask=True)

RESERVED_TOOL_NAMES = frozenset(
    {"task", "ls", "read_file", "write_file", "edit_file", "delete", "glob", "grep", "execute", "write_todos"}
)


def profile_of(provider: str) -> HarnessProfile:
    """What of the stock agent is left out.

    A second, general worker would call models past the limits and the guard. The notifier reports to an agent
    server that is not there, in a step of its own at the end of every run; Anthropic's cache marks mean
    nothing to others, and every wrapper costs each call.
    """
    useless: set[type[AgentMiddleware[Any, Any, Any]] | str] = {_ParentNotifierMiddleware}
    if provider != "anthropic":
        useless.add("AnthropicPromptCachingMiddleware")
    return HarnessProfile(
        general_purpose_subagent=GeneralPurposeSubagentProfile(enabled=False),
        excluded_middleware=frozenset(useless),
    )


def _gone_worker(name: str) -> CompiledSubAgent:
    """Stands where a skill was that something is still to be done for: keeps the run where it is."""

    async def work(_state: dict[str, Any]) -> dict[str, Any]:
        raise ModelFailed(
            "skill_unavailable",
            f"The skill {name} is gone, and calls of it were decided or sent already. "
            "Bring it back, then retry the thread.",
            retryable=False,
        )

    return CompiledSubAgent(name=name, description="This skill is gone.", runnable=RunnableLambda(work))


def word_of(skill: Skill, tool: str) -> SkillWord | None:
    """What the skill's `interruptOn` says about a tool."""
    gate = gate_for(skill, tool)
    if gate is None:
        return None
    return SkillWord(gate.ask, tuple(Verdict(word) for word in gate.decisions))


def _offered(tool: BoundTool) -> StructuredTool:
    """The tool as the model sees it. The guard carries the call, so this is only name, text and schema."""

    async def never(**_arguments: Any) -> str:
        raise AssertionError("the guard did not take this call")

    return StructuredTool(
        name=tool.name,
        description=tool.spec.description or tool.spec.name,
        args_schema=tool.spec.input_schema,
        coroutine=never,
    )


def _kept(graphs: OrderedDict[Any, Graph], key: Any, build: Callable[[], Graph]) -> Graph:
    """The graph under `key`, built when it is not there; the least used ones are dropped."""
    if key in graphs:
        graphs.move_to_end(key)
        return graphs[key]
    graph = graphs[key] = build()
    while len(graphs) > _GRAPHS_KEPT:
        graphs.popitem(last=False)
    return graph
