"""May this tool call run now, and did it run already? The one place where every tool call passes.

    stopped? -> already done? its stored result -> arguments fit?
      -> a decision stored? it binds; a gate and none stored? pause (rows in the database, nothing else)
      -> sent before, end unseen? ask what became of it, never repeat by itself
      -> limit reached? pause
      -> ledger: started -> call -> ledger: done

The stored decision is the truth: a paused call is started again after a decision or a crash, comes here
again, and finds what was decided. A pause is raised only where nothing is stored: no resume value is used.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import sqlalchemy as sa
from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import ToolMessage
from langgraph.config import get_config
from langgraph.types import Command

from pizzabot.agent import context, effects
from pizzabot.agent.activity import Activity, ActivityKind, Outcome
from pizzabot.agent.context import OutOfTime, RunContext, milliseconds_since, pause
from pizzabot.agent.effects import Effect
from pizzabot.agent.wording import refusal
from pizzabot.approvals import arguments
from pizzabot.approvals import store as actions
from pizzabot.approvals.policy import Gate, SkillWord
from pizzabot.approvals.store import Question
from pizzabot.errors import ModelFailed, OutcomeUnknown, ToolFailed
from pizzabot.inbox import runs
from pizzabot.inbox.threads import Message
from pizzabot.messages import Action, ActionKind, ActionState, Args, Verdict
from pizzabot.outbox import store as outbox
from pizzabot.tools.catalogue import ToolCatalogue, ToolSpec

Answer = ToolMessage | Command[Any]
_DETAIL = 200


@dataclass(frozen=True, slots=True)
class BoundTool:
    """A tool as one worker has it: under the model's name, with the skill's word on approvals."""

    name: str
    spec: ToolSpec
    word: SkillWord | None


@dataclass(frozen=True, slots=True)
class _Call:
    """One call of a tool; `key` is its name in the ledger and in questions."""

    key: str
    id: str
    tool: BoundTool
    args: Args


class Guard(AgentMiddleware[Any, Any, Any]):
    """Wraps every tool call of the root agent (`worker` None) or of one worker."""

    def __init__(self, worker: str | None, tools: Mapping[str, BoundTool], catalogue: ToolCatalogue) -> None:
        super().__init__()
        self._worker, self._tools, self._catalogue = worker, tools, catalogue

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Answer]]
    ) -> Answer:
        run = context.current.get()
        run.check_stop()
        wanted = request.tool_call
        if (unreadable := refusal(wanted)) is not None:
            return unreadable
        tool = self._tools.get(wanted["name"])
        key = call_key(str(wanted["id"]))
        if tool is not None:
            return await self._outside(run, _Call(key, str(wanted["id"]), tool, wanted["args"]))
        if request.tool is None and await self._settles(run, key):
            raise ModelFailed(
                "tool_unavailable",
                f"The tool {wanted['name']} is gone, and a call of it was decided or sent already. "
                "Bring its server back, then retry the thread.",
                retryable=False,
            )
        return await self._built_in(run, request, handler)

    async def _settles(self, run: RunContext, key: str) -> bool:
        """Whether something is known of a call whose tool is not there any more."""
        effect, action = await run.database.read(
            lambda connection: (effects.get(connection, key), actions.answered(connection, key))
        )
        return effect is not None or (action is not None and not action.is_open)

    async def _built_in(
        self,
        run: RunContext,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[Answer]],
    ) -> Answer:
        """Files of the run and `task`: no effect outside of the run, so neither gate nor ledger."""
        kind: ActivityKind = "worker" if request.tool_call["name"] == "task" else "tool"
        args = request.tool_call["args"]
        name = str(args.get("subagent_type", "task")) if kind == "worker" else request.tool_call["name"]
        started = run.begin(Activity(kind, name, "started", self._worker))
        began = time.monotonic()
        try:
            answer = await handler(request)
        except BaseException:
            # A pause inside a worker comes through here, too: it is recorded where it arose.
            run.forget(started)
            raise
        failed = isinstance(answer, ToolMessage) and answer.status == "error"
        ended = Activity(
            kind, name, "error" if failed else "ok", self._worker, None, milliseconds_since(began)
        )
        await run.done(started, ended)
        return answer

    async def _outside(self, run: RunContext, call: _Call) -> ToolMessage:
        def read(
            connection: sa.Connection,
        ) -> tuple[Effect | None, Action | None, Sequence[Message]]:
            effect, action = effects.get(connection, call.key), actions.answered(connection, call.key)
            was_asked = effect is not None or (action is not None and not action.is_open)
            of_run = (run.run.thread_id, run.run.id)
            return effect, action, actions.asides(connection, call.key, *of_run) if was_asked else ()

        effect, action, asides = await run.database.read(read)
        answer = await self._answered(run, call, effect, action)
        if not asides:
            return answer
        # After a crash they are found again, as those of this run.
        await run.database.write(lambda c: actions.hand_over(c, asides, run.run.id))
        return _beside(answer, asides)

    async def _answered(
        self, run: RunContext, call: _Call, effect: Effect | None, action: Action | None
    ) -> ToolMessage:
        """What the model is told of its call; pauses while somebody has to be asked."""
        if effect is not None and effect.state == "done":
            return _message_of(call, effect.result or {})
        if effect is None and (wrong := _unfit(call, call.args)) is not None:
            return wrong
        if run.refused:
            told = "was sent, and its end was not seen" if effect is not None else "was not made"
            return _message(call, f"The call {told}: the run ends here, at its limit.", error=True)
        gate, args = self._gate(run, call), call.args
        # A stored answer binds whatever the rules say now: the gate decides only whether to ask.
        if gate is not None or (action is not None and not action.is_open):
            action = await self._decision(run, call, gate, action)
            if action.lapsed:
                return _lapsed(call)
            if action.state is ActionState.REJECTED:
                return _rejected(call, action)
            if action.state is ActionState.RESPONDED:
                return _message(
                    call, f"{action.decided_by} answered instead of running the tool: {action.response}"
                )
            args = action.final_args if action.final_args is not None else call.args
        if effect is None and (wrong := _unfit(call, args)) is not None:  # the server changed the tool
            return wrong
        if call.tool.spec.read_only and effect is None:
            return await self._read(run, call, args)
        return await self._effect(run, call, args, effect)

    # -- the gate ----------------------------------------------------------------------------------------

    async def _decision(
        self, run: RunContext, call: _Call, gate: Gate | None, action: Action | None
    ) -> Action:
        """The decision about this call; pauses while there is none."""
        if action is None or action.is_open:
            assert gate is not None, "without a gate only a decided action comes here"
            await pause(run, self._question(call, gate))
        if gate is not None and not action.lapsed and not still_counts(gate, action):
            # The rules were tightened after the decision: what was approved is asked anew.
            return await self._ask_anew(run, call, gate, action)
        return action

    def _question(self, call: _Call, gate: Gate) -> Question:
        spec = call.tool.spec
        return Question(
            id=call.key,
            kind=ActionKind.TOOL,
            tool=spec.full_name,
            title=f"Run {spec.name}?",
            args=call.args,
            args_schema=spec.input_schema,
            allowed_decisions=gate.decisions,
            approvers=gate.approvers,
            skill=self._worker,
            why=spec.description[:500] or None,
            quorum=gate.quorum,
        )

    async def _ask_anew(self, run: RunContext, call: _Call, gate: Gate, action: Action) -> NoReturn:
        question = self._question(call, gate)

        def withdraw(connection: sa.Connection) -> None:
            actions.settle(connection, action.id, [action.state], state=ActionState.WITHDRAWN)
            outbox.repaint(connection, action.id, ActionState.WITHDRAWN, run.clock.now())

        await run.database.write(withdraw)
        await pause(run, question)

    # -- the call ----------------------------------------------------------------------------------------

    async def _read(self, run: RunContext, call: _Call, args: Args) -> ToolMessage:
        """A tool without side effects: no ledger, may be repeated after a crash."""
        await reserve_call(run)
        started, began = self._begin(run, call), time.monotonic()
        try:
            output = await run.race(self._send(call, args), breakable=True)
        except OutOfTime:
            run.forget(started)
            await pause(run, run.limit_question("run_seconds"))
        except ToolFailed as error:
            await run.done(started, self._ended(call, "error", began, str(error)))
            return _message(call, str(error), error=True)
        except BaseException:
            run.forget(started)
            raise
        await run.done(started, self._ended(call, "ok", began))
        return _message_of(call, output)

    async def _effect(self, run: RunContext, call: _Call, args: Args, effect: Effect | None) -> ToolMessage:
        """A tool with side effects: at most once, or a person says otherwise."""
        if effect is not None:
            verdict = await self._outcome(run, call, args, effect)
            if verdict is not Verdict.RETRY:
                return await self._settled(run, call, verdict)
        await reserve_call(run)
        started, began = self._begin(run, call), time.monotonic()
        if not await self._start(run, call, args, effect):
            run.forget(started)
            run.stop()
            run.check_stop()
        try:
            output = await run.race(self._send(call, args), breakable=False)
        except OutcomeUnknown as error:
            await run.done(
                started,
                self._ended(call, "error", began, str(error)),
                also=lambda connection: effects.lose(connection, call.key, run.clock.now()),
            )
            tries = effect.tries + 1 if effect else 1
            lost = Effect(call.key, "unknown", tries, None)
            await pause(run, self._outcome_question(run, call, args, lost))
        except ToolFailed as error:
            result = {"text": str(error), "error": True}
            await self._end(run, call, started, self._ended(call, "error", began, str(error)), result)
            return _message_of(call, result)
        except BaseException:
            # Stopped in the middle: the request was cancelled, and may have been carried out all the same.
            run.forget(started)
            await run.database.write(lambda c: effects.lose(c, call.key, run.clock.now()))
            raise
        await self._end(run, call, started, self._ended(call, "ok", began), output)
        return _message_of(call, output)

    async def _start(self, run: RunContext, call: _Call, args: Args, effect: Effect | None) -> bool:
        now = run.clock.now()

        def work(connection: sa.Connection) -> bool:
            return runs.holds(connection, run.run) and effects.start(
                connection,
                call.key,
                now,
                thread_id=run.run.thread_id,
                run_id=run.run.id,
                tool=call.tool.spec.full_name,
                args=args,
                previous=effect,
            )

        return await run.database.write(work)

    async def _end(
        self, run: RunContext, call: _Call, started: Activity, ended: Activity, result: Mapping[str, Any]
    ) -> None:
        now = run.clock.now()
        await run.done(started, ended, also=lambda c: effects.end(c, call.key, now, result))

    async def _outcome(self, run: RunContext, call: _Call, args: Args, effect: Effect) -> Verdict:
        """What a person says became of a call whose end nobody saw; pauses until they do."""
        question = self._outcome_question(run, call, args, effect)
        action = await run.answered(question.id)
        if action is None or action.decision is None:
            await pause(run, question)
        return action.decision

    def _outcome_question(self, run: RunContext, call: _Call, args: Args, effect: Effect) -> Question:
        spec = call.tool.spec
        return Question(
            id=f"{call.key}/outcome/{effect.tries}",
            kind=ActionKind.UNCERTAIN,
            tool=spec.full_name,
            title=f"What became of {spec.name}?",
            args=args,
            args_schema=spec.input_schema,
            allowed_decisions=(Verdict.RETRY, Verdict.DONE, Verdict.FAILED),
            approvers=gate.approvers if (gate := self._gate(run, call)) is not None else (),
            quorum=gate.quorum if gate is not None else 1,
            skill=self._worker,
            why="The call was sent and its end was not seen: it may or may not have happened. "
            "Please look, then say: retry (send it again), done (it happened) or failed (it did not).",
        )

    def _gate(self, run: RunContext, call: _Call) -> Gate | None:
        spec = call.tool.spec
        return run.policy.gate(spec.full_name, read_only=spec.read_only, skill=call.tool.word)

    async def _settled(self, run: RunContext, call: _Call, verdict: Verdict) -> ToolMessage:
        happened = verdict is Verdict.DONE
        text = (
            "A person checked: the call was carried out. Its result is not known."
            if happened
            else "A person checked: the call was not carried out."
        )
        result = {"text": text, "error": not happened}
        now = run.clock.now()
        await run.database.write(lambda connection: effects.end(connection, call.key, now, result))
        return _message_of(call, result)

    async def _send(self, call: _Call, args: Args) -> dict[str, Any]:
        output = await self._catalogue.call(call.tool.spec.full_name, dict(args))
        return {"text": output.text, "content": list(output.content), "structured": output.structured}

    def _begin(self, run: RunContext, call: _Call) -> Activity:
        return run.begin(Activity("tool", call.tool.spec.full_name, "started", self._worker))

    def _ended(self, call: _Call, outcome: Outcome, began: float, detail: str | None = None) -> Activity:
        short = detail[:_DETAIL] if detail else None
        return Activity(
            "tool", call.tool.spec.full_name, outcome, self._worker, short, milliseconds_since(began)
        )


async def reserve_call(run: RunContext) -> None:
    """Count the call; pauses when a limit leaves no room for it."""
    if (name := run.reserve("tool_calls")) is not None:
        await pause(run, run.limit_question(name))


def still_counts(gate: Gate, action: Action) -> bool:
    """Whether this could be decided so, and by these people, still; rules may have been tightened since."""
    if action.decision not in gate.decisions:
        return False
    if action.decided_by is None:
        return True
    runs_it = action.decision in (Verdict.APPROVE, Verdict.EDIT)
    said = {vote.person for vote in action.votes} if runs_it else set()
    said = {name.casefold() for name in said | {action.decided_by}}
    if gate.approvers:
        also = gate.substitutes if action.escalated_to else ()
        said &= {name.casefold() for name in (*gate.approvers, *also)}
    return len(said) >= (gate.quorum if runs_it else 1)


def call_key(tool_call_id: str) -> str:
    """The call's name: thread, place in the graph and id, the same after kill -9 in a new process.

    The place ("tools:<task id>|tools:<task id>") is derived by LangGraph from the checkpoint, so ids that a
    model uses twice in one conversation do not meet.
    """
    config = get_config()["configurable"]
    name = f"{config['thread_id']}/{config.get('checkpoint_ns', '')}/{tool_call_id}"
    return hashlib.sha256(name.encode()).hexdigest()


def _unfit(call: _Call, args: Args) -> ToolMessage | None:
    """What to tell the model when the arguments break the tool's schema; None when they fit."""
    errors = arguments.problems(args, call.tool.spec.input_schema)
    if not errors:
        return None
    told = "; ".join(f"{error['path'] or 'arguments'}: {error['message']}" for error in errors)
    return _message(call, f"The call was not made, its arguments are wrong: {told}", error=True)


def _message(call: _Call, text: str, *, error: bool = False) -> ToolMessage:
    return ToolMessage(
        text, tool_call_id=call.id, name=call.tool.name, status="error" if error else "success"
    )


def _message_of(call: _Call, result: Mapping[str, Any]) -> ToolMessage:
    """The message for a result as the ledger keeps it."""
    content = result.get("content")
    images = [block for block in content or () if block.get("type") != "text"]
    return ToolMessage(
        content if images else str(result.get("text", "")),
        tool_call_id=call.id,
        name=call.tool.name,
        status="error" if result.get("error") else "success",
    )


def _beside(answer: ToolMessage, asides: Sequence[Message]) -> ToolMessage:
    """The answer, and what people wrote about the call while it waited."""
    said = "\n\n".join(f"{m.author} wrote about this call before it was decided:\n\n{m.text}" for m in asides)
    if isinstance(answer.content, str):
        return answer.model_copy(update={"content": f"{answer.content}\n\n{said}"})
    return answer.model_copy(update={"content": [*answer.content, {"type": "text", "text": said}]})


def _lapsed(call: _Call) -> ToolMessage:
    return _message(
        call,
        "Nobody decided on this call in time; it was not made and must not be tried again in another way. "
        "Say in your answer that it was not done, and why.",
        error=True,
    )


def _rejected(call: _Call, action: Action) -> ToolMessage:
    reason = f" Reason: {action.reason}" if action.reason else " No reason was given."
    return _message(
        call,
        f"{action.decided_by} rejected this call; it was not made and must not be tried again "
        f"in another way.{reason}",
        error=True,
    )
