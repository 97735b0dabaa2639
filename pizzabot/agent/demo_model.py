"""How can the whole product be tried without a key, a network or a bill?

`DemoModel` is a chat model that is none: a small planner over the tools it is offered, driven by plain
English sentences. It is deterministic, says what it is, and never claims to have done what it has not done.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import time
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LangSmithParams, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolCall, ToolMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from pizzabot.agent import demo_plan as planning
from pizzabot.agent import demo_words as words

DEMO_LABEL = "demo (offline, not a real model)"
TITLE_REQUEST = "Give a short title"
TITLE_WORDS = 6

_TODAY = re.compile(r"\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day,? (\d{4}-\d{2}-\d{2})\b")

_REJECTED = re.compile(r"\W*(?:(?:a person )?rejected\b|[^.;:]{1,80} rejected this call\b)", re.IGNORECASE)
_AROUND_WORDS = re.compile(r"\A[^\n]{1,80} writes:\n\n|^\[Attached [^\n]*\]$", re.MULTILINE)
_NOT_FOR_PEOPLE = re.compile(r"; it was not made and must not be tried again in another way")


class DemoModel(BaseChatModel):
    """A planner that stands in for a language model, offline."""

    latency_seconds: float = 0.0

    @property
    def _llm_type(self) -> str:
        return "demo"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model_name": DEMO_LABEL}

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        params = super()._get_ls_params(stop=stop, **kwargs)
        params["ls_provider"], params["ls_model_name"] = "demo", DEMO_LABEL
        return params

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,  # noqa: ARG002 - a planner cannot be forced
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002 - the base class says so
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002
        tools: Sequence[dict[str, Any]] = (),
        **kwargs: Any,  # noqa: ARG002
    ) -> ChatResult:
        if self.latency_seconds:
            time.sleep(self.latency_seconds)
        return _result(messages, tools)

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002
        run_manager: AsyncCallbackManagerForLLMRun | None = None,  # noqa: ARG002
        tools: Sequence[dict[str, Any]] = (),
        **kwargs: Any,  # noqa: ARG002
    ) -> ChatResult:
        if self.latency_seconds:
            await asyncio.sleep(self.latency_seconds)
        return _result(messages, tools)


def _result(messages: Sequence[BaseMessage], offered: Sequence[dict[str, Any]]) -> ChatResult:
    text, calls = _reply(messages, [_tool(spec) for spec in offered])
    written = len(text) + sum(len(json.dumps(call.args)) + len(call.name) for call in calls)
    read = sum(len(message.text) for message in messages)
    message = AIMessage(
        text,
        tool_calls=[
            ToolCall(name=call.name, args=dict(call.args), id=_call_id(messages, index))
            for index, call in enumerate(calls)
        ],
        response_metadata={"model_name": DEMO_LABEL, "model_provider": "demo"},
        usage_metadata=UsageMetadata(
            input_tokens=read // 4, output_tokens=written // 4, total_tokens=read // 4 + written // 4
        ),
    )
    return ChatResult(generations=[ChatGeneration(message=message)], llm_output={"model_name": DEMO_LABEL})


def _tool(spec: dict[str, Any]) -> planning.Tool:
    function = spec.get("function", {})
    return planning.Tool(
        function.get("name", ""), function.get("description", ""), function.get("parameters", {})
    )


def _call_id(messages: Sequence[BaseMessage], index: int) -> str:
    seen = hashlib.sha256()
    for message in messages:
        if not isinstance(message, SystemMessage):  # it holds the time of day
            seen.update(f"{message.type}\0{message.id}\0{message.text}\0".encode("utf-8", "replace"))
    return f"demo_{seen.hexdigest()[:20]}_{index}"


def _reply(
    messages: Sequence[BaseMessage], tools: Sequence[planning.Tool]
) -> tuple[str, Sequence[planning.Call]]:
    """Text or calls: one round of calls for a message of a person, then the answer."""
    place = max((i for i, m in enumerate(messages) if isinstance(m, HumanMessage)), default=None)
    if place is None:
        return "I am the offline demo model, and there is no message to answer.", ()
    text = _asked(messages[: place + 1])
    if text.startswith(TITLE_REQUEST):
        return _title(text), ()
    task = next((tool for tool in tools if tool.name == "task"), None)
    plan = _plan(messages[: place + 1], task, tools)
    results = [message for message in messages[place:] if isinstance(message, ToolMessage)]
    if not tools and not results:
        # The last call of a run is made without tools, so that it tells what was done so far.
        results = [message for message in messages if isinstance(message, ToolMessage)]
    if results:
        told = _told(results) if task is None else "\n\n".join(_line(result) for result in results)
        return "\n\n".join((told, *plan.questions)), ()
    if plan.calls:
        return "", plan.calls
    if plan.questions:
        return "\n\n".join(plan.questions), ()
    return (_introduction(text, planning.workers_of(task)) if task else _helpless(tools)), ()


def _plan(
    messages: Sequence[BaseMessage], task: planning.Tool | None, tools: Sequence[planning.Tool]
) -> planning.Plan:
    text = _asked(messages)
    if task is None:
        return planning.work(text, tools, _today(messages))
    workers = planning.workers_of(task)
    if not words.starts_with_command(text) and (asked_about := _asked_about(messages)):
        text = f"{asked_about}, {text}"
    return planning.delegate(text, workers)


def _asked(messages: Sequence[BaseMessage]) -> str:
    """What people wrote since the last answer, without what was put around their words."""
    asked: list[str] = []
    for message in reversed(messages):
        if not isinstance(message, HumanMessage):
            break
        asked.insert(0, _AROUND_WORDS.sub("", message.text).strip())
    return "\n".join(asked)


def _asked_about(messages: Sequence[BaseMessage]) -> str:
    """The earlier message whose missing part the last one may supply."""
    spoken = [m for m in messages[:-1] if isinstance(m, HumanMessage | AIMessage) and m.text.strip()]
    if len(spoken) >= 2 and isinstance(spoken[-2], HumanMessage) and planning.is_question(spoken[-1].text):
        return spoken[-2].text.strip().rstrip(".")
    return ""


def _today(messages: Sequence[BaseMessage]) -> date:
    """The day that the prompt names, which is the person's own; else the day in UTC."""
    for message in messages:
        if isinstance(message, SystemMessage) and (named := _TODAY.search(message.text)):
            return date.fromisoformat(named.group(1))
    return datetime.now(UTC).date()


def _told(results: Sequence[ToolMessage]) -> str:
    if len(results) == 1:
        return _line(results[0])
    return "\n".join(f"- {_line(result)}" for result in results)


def _line(result: ToolMessage) -> str:
    text = result.text.strip() or "(no text came back)"
    if _REJECTED.match(text):
        return f"I did not do it: {_NOT_FOR_PEOPLE.sub('', text)}"
    if re.search(r"\boutcome\b.{0,20}\bunknown\b", text, re.IGNORECASE):
        return f"I cannot say whether it was done: {text}"
    if result.status == "error":
        return f"It did not work ({result.name}): {text}" if result.name else f"It did not work: {text}"
    return text


def _introduction(text: str, workers: Sequence[words.Described]) -> str:
    understood = ", ".join(words.telling(text)) or "none"
    lines = [
        "I am the offline demo model, a small planner and not a real language model. "
        f"The words I understood are: {understood}. None of my workers fits them.",
    ]
    if not workers:
        return f"{lines[0]} No worker is ready at the moment."
    lines.append("The workers I can use:")
    lines += [f"- {worker.name}: {worker.description}" for worker in workers]
    lines.append(f"Try for example: {_example(workers)}")
    return "\n".join(lines)


def _example(workers: Sequence[words.Described]) -> str:
    for worker in workers:
        if quoted := re.search(r"[\"“]([^\"“”]{8,})[\"”]", worker.description):
            return f'"{quoted.group(1)}"'
    return f'"Please use {workers[0].name} for this: …"'


def _helpless(tools: Sequence[planning.Tool]) -> str:
    names = [tool.name for tool in tools if tool.name not in planning.HOUSEHOLD]
    known = f"The tools I have: {', '.join(names)}." if names else "I have no tools here."
    return f"I am the offline demo model and found no tool for this, so nothing was done. {known}"


def _title(request: str) -> str:
    head, _, conversation = request.partition("\n")
    if not conversation.strip():
        conversation = head.removeprefix(TITLE_REQUEST).partition(":")[2]
    first = next((line for line in conversation.splitlines() if line.strip()), "")
    sentence = re.split(r"(?<=[.!?])\s", re.sub(r"^\s*[A-Za-z][\w ]{0,20}:\s+", "", first).strip())[0]
    kept = words.without_lead_in(sentence).strip(" .,:;!").split()[:TITLE_WORDS]
    title = " ".join(kept).rstrip(" .,:;")
    return title[:1].upper() + title[1:] or "New conversation"
