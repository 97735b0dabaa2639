"""May the model be called now, with what, and what if it fails? Every model call of a run passes here.

stopped? -> limit reached, budget used up? pause, or end with what is there when a person said so
  -> worker out of tool calls? one last call without tools, so that its work is not lost
  -> call, retried with back-off while the failure may pass -> what it used is stored
"""

from __future__ import annotations

import random
import time
from asyncio import sleep
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any

from deepagents.middleware.patch_tool_calls import PatchToolCallsMiddleware
from deepagents.middleware.summarization import DEEPAGENTS_DEFAULT_SUMMARY_PROMPT
from langchain.agents.middleware import AgentMiddleware, AgentState
from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    get_buffer_string,
)
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.errors import GraphBubbleUp

from pizzabot.agent import context
from pizzabot.agent.activity import Activity, Tokens
from pizzabot.agent.context import OutOfTime, RunContext, RunStopped, admit, milliseconds_since, pause
from pizzabot.agent.models import classify
from pizzabot.agent.prices import Amount, amount_of
from pizzabot.agent.wording import kept
from pizzabot.errors import ModelFailed

MAX_TRIES = 6
FIRST_DELAY_SECONDS = 0.5
_CUT_REASONS = frozenset({"length", "max_tokens", "model_length"})
_KEPT_AT_LIMIT = 10
NO_SUMMARY = "There is no summary of what was said before."
CUT_NOTICE = "\n\n*(This answer was cut: the model reached the longest output it can give.)*"

Handler = Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]


class ModelCalls(AgentMiddleware[Any, Any, Any]):
    """Wraps every model call of the root agent (`worker` None) or of one worker."""

    def __init__(self, worker: str | None, wait: Callable[[float], Awaitable[None]] = sleep) -> None:
        super().__init__()
        self._worker, self._wait = worker, wait
        self._rendered: dict[tuple[str, str], dict[str, Any]] = {}

    async def awrap_model_call(self, request: ModelRequest[Any], handler: Handler) -> ModelResponse[Any]:
        run = context.current.get()
        run.check_stop()
        if run.refused:
            return ModelResponse(result=[AIMessage(self._ending(request.messages))])
        response = await self._try(run, self._prepare(run, request), handler)
        response = ModelResponse(result=[kept(message) for message in response.result])
        if cut(response.result):
            return ModelResponse(result=[with_notice(message) for message in response.result])
        return response

    def summarizer(self, chat: BaseChatModel) -> Callable[[list[AnyMessage]], Coroutine[Any, Any, str]]:
        """What writes the summaries of long conversations: by calls that are bounded and counted like all."""

        async def made(request: ModelRequest[Any]) -> ModelResponse[Any]:
            return ModelResponse(result=[await chat.ainvoke(request.messages)])

        async def summarize(messages: list[AnyMessage]) -> str:
            run = context.current.get()
            run.check_stop()
            if run.refused:
                return NO_SUMMARY
            told = get_buffer_string(messages, format="xml")
            asked = HumanMessage(DEEPAGENTS_DEFAULT_SUMMARY_PROMPT.format(messages=told).rstrip())
            response = await self._try(run, ModelRequest(model=chat, messages=[asked]), made)
            return "\n".join(message.text for message in response.result).strip() or NO_SUMMARY

        return summarize

    def _ending(self, messages: Sequence[AnyMessage]) -> str:
        found = "\n\n".join(said_since_request(messages))
        if self._worker is not None:
            return found or "Nothing was found before the limit."
        if not found:
            return "The run was ended at its limit before anything was found."
        return f"The run was ended at its limit. What was there by then:\n\n{found}"

    def _prepare(self, run: RunContext, request: ModelRequest[Any]) -> ModelRequest[Any]:
        hints = [f"You work for {run.run.person}, for whom it is now {run.zone_time}."]
        if self._worker is not None and tool_calls_made(request.messages) >= run.worker_tool_calls:
            hints.append("You have used all your tool calls. Answer now with what you found, without tools.")
            request = request.override(tools=[])
        return request.override(
            system_message=_add(request.system_message, "\n".join(hints)),
            tools=[self._render(tool) for tool in request.tools],
        )

    def _render(self, tool: BaseTool | dict[str, Any]) -> dict[str, Any]:
        """The tool as providers take it, rendered once: the schemas cost more than the rest of a call."""
        if isinstance(tool, dict):
            return tool
        key = (tool.name, tool.description)
        if key not in self._rendered:
            self._rendered[key] = convert_to_openai_tool(tool)
        return self._rendered[key]

    async def _try(self, run: RunContext, request: ModelRequest[Any], handler: Handler) -> ModelResponse[Any]:
        for tried in range(1, MAX_TRIES + 1):
            try:
                return await self._admitted(run, request, handler, first=tried == 1)
            except ModelFailed as failure:
                if not failure.retryable or tried == MAX_TRIES:
                    raise
                delay = retry_delay(tried, failure.retry_after_seconds, random.random())
                detail = f"{failure} Trying again in {delay:.0f} s." if delay >= 1 else str(failure)
                waiting = run.begin(Activity("retry", run.model_label, "started", self._worker, detail))
                try:
                    await run.race(self._wait(delay), breakable=True)
                except OutOfTime:
                    await pause(run, run.limit_question("run_seconds"))
                finally:
                    run.forget(waiting)
        raise AssertionError("the last try returns or raises")

    async def _admitted(
        self, run: RunContext, request: ModelRequest[Any], handler: Handler, *, first: bool
    ) -> ModelResponse[Any]:
        await admit(run)
        try:
            if first and (name := run.reserve("model_calls")) is not None:
                await pause(run, run.limit_question(name))
            return await self._call(run, request, handler)
        finally:
            run.leave()

    async def _call(
        self, run: RunContext, request: ModelRequest[Any], handler: Handler
    ) -> ModelResponse[Any]:
        started = run.begin(Activity("model", run.model_label, "started", self._worker))
        began = time.monotonic()
        try:
            response = await run.race(handler(request), breakable=True)
        except OutOfTime:
            run.forget(started)
            await pause(run, run.limit_question("run_seconds"))
        except (RunStopped, GraphBubbleUp):
            run.forget(started)
            raise
        except Exception as error:  # noqa: BLE001 - every provider has errors of its own
            failure = classify(error, run.redact)
            ended = Activity(
                "model", run.model_label, "error", self._worker, failure.code, milliseconds_since(began)
            )
            await run.done(started, ended)
            # Without its cause, whose text LangGraph would keep in the checkpoint as the provider wrote it.
            raise failure from None
        ended = Activity("model", run.model_label, "ok", self._worker, None, milliseconds_since(began))
        await run.done(started, ended, tokens=tokens_of(response.result, run))
        return response


class Mended(AgentMiddleware[Any, Any, Any]):
    """Answers, in what the model is shown, the calls that a broken-off run left open: providers refuse a
    conversation with an open call.

    It stands in for the stock middleware, which does the same to the graph's state: in a step and a
    checkpoint of its own before every run, while hardly any has something to mend.
    """

    name = PatchToolCallsMiddleware.__name__
    _stock = PatchToolCallsMiddleware()

    async def awrap_model_call(self, request: ModelRequest[Any], handler: Handler) -> ModelResponse[Any]:
        mended = self._stock.before_agent(AgentState(messages=request.messages), request.runtime)
        if mended is not None:
            request = request.override(messages=mended["messages"][1:])  # the first says: remove all others
        return await handler(request)


def retry_delay(tried: int, retry_after: float | None, jitter: float) -> float:
    """Seconds to wait after the `tried`-th failure: doubling, spread by `jitter` in 0..1, at least
    what the provider asked for."""
    backed_off = FIRST_DELAY_SECONDS * 2 ** (tried - 1) * (0.75 + jitter / 2)
    return float(max(backed_off, retry_after or 0.0))


def tool_calls_made(messages: Sequence[AnyMessage]) -> int:
    """How many tool results stand in a worker's conversation."""
    return sum(isinstance(message, ToolMessage) for message in messages)


def _add(system: SystemMessage | None, text: str) -> SystemMessage:
    if system is None or isinstance(system.content, str):
        return SystemMessage(f"{system.content}\n\n{text}" if system else text)
    return SystemMessage(content_blocks=[*system.content_blocks, {"type": "text", "text": f"\n\n{text}"}])


def tokens_of(messages: Sequence[Any], run: RunContext) -> Tokens:
    """What the answer's usage metadata says; zero when the provider says nothing."""
    amount = Amount()
    for message in messages:
        amount = amount.plus(amount_of(getattr(message, "usage_metadata", None)))
    return Tokens(amount.input, amount.output, run.price(run.run.model, amount))


def cut(messages: Sequence[Any]) -> bool:
    """Whether the provider says that it stopped at its output limit."""
    return any(
        str(_finish_reason(getattr(message, "response_metadata", {}))).lower() in _CUT_REASONS
        for message in messages
    )


def _finish_reason(metadata: Mapping[str, Any]) -> Any:
    if metadata.get("status") == "incomplete":  # OpenAI's Responses API
        details = metadata.get("incomplete_details") or {}
        return "length" if details.get("reason") == "max_output_tokens" else details.get("reason")
    return metadata.get("finish_reason") or metadata.get("stop_reason") or metadata.get("stopReason")


def with_notice(message: Any) -> Any:
    """The same answer, saying that it was cut; a message with tool calls stays as it is."""
    if not isinstance(message, AIMessage) or message.tool_calls:
        return message
    return message.model_copy(update={"content": f"{message.text}{CUT_NOTICE}"})


def said_since_request(messages: Sequence[AnyMessage]) -> list[str]:
    """What was said and found since a person's last message, oldest first, nothing twice, the newest ten."""
    found: list[str] = []
    for message in reversed(messages):
        if message.type == "human" or len(found) == _KEPT_AT_LIMIT:
            break
        text = message.text.strip()
        if text and text not in found:
            found.append(text)
    return found[::-1]
