"""What does the offline demo model do next: which worker, which tools, or which question?

Pure functions from a sentence and what is offered to calls. A sentence with several parts may become several
calls; what does not stand alone belongs to the part before it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from pizzabot.agent import demo_words as words
from pizzabot.agent.demo_arguments import Filled, fill

WORKER_FITS = 0.75
EVERYTHING_WORKER = "general-purpose"
# Tools that every agent has for itself. A model without understanding keeps its hands off them.
HOUSEHOLD = frozenset(
    {"ls", "read_file", "write_file", "edit_file", "delete_file", "glob", "grep", "execute", "eval"}
    | {"write_todos", "task"}
)
_READS = frozenset(
    words.stem(word) for word in ("list", "find", "total", "count", "read", "check", "describe")
)
_DESTROYS = words.stem("remove")
_WORKER_LINE = re.compile(r"^- ([\w.-]+): (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Tool(words.Described):
    """A tool as it was offered to the model."""

    schema: Mapping[str, Any] = field(default_factory=dict)

    @property
    def reads(self) -> bool:
        return bool(self.name_stems & _READS)

    @property
    def destroys(self) -> bool:
        return _DESTROYS in self.name_stems

    @property
    def required(self) -> tuple[str, ...]:
        return tuple(self.schema.get("required", ()))


@dataclass(frozen=True)
class Call:
    """A tool call without its id."""

    name: str
    args: Mapping[str, Any]


@dataclass(frozen=True)
class Plan:
    """What to do with one message of a person: calls, and questions about what was not said."""

    calls: tuple[Call, ...] = ()
    questions: tuple[str, ...] = ()


def workers_of(task_tool: Tool) -> list[words.Described]:
    """The workers that the description of the `task` tool lists."""
    lines = _WORKER_LINE.findall(task_tool.description)
    return [words.Described(name, about) for name, about in lines if name != EVERYTHING_WORKER]


def delegate(text: str, workers: Sequence[words.Described]) -> Plan:
    """Which worker gets which part of the sentence; no calls when none fits."""
    groups = _grouped(words.parts(text), lambda part, _: _best_worker(part, workers))
    chosen = {worker for worker, _ in groups if worker}
    if len(chosen) <= 1:
        worker = chosen.pop() if chosen else _best_worker(text, workers)
        return Plan((_task(worker, text),) if worker else ())
    return Plan(tuple(_task(worker, words.tidy(part)) for worker, part in groups if worker))


def _task(worker: str, text: str) -> Call:
    return Call("task", {"description": text, "subagent_type": worker})


def _best_worker(text: str, workers: Sequence[words.Described]) -> str | None:
    # "File 12 EUR for lunch" says that something was paid without the word.
    money = words.numbers(text) and words.currency(text)
    fits = words.scores(f"{text} (paid)" if money else text, workers, command_weight=0.3)
    best = max(fits, key=lambda name: fits[name], default=None)
    return best if best is not None and fits[best] >= WORKER_FITS else None


def _grouped(
    parts: Iterable[str], choose: Callable[[str, str | None], str | None]
) -> list[tuple[str | None, str]]:
    """Parts for the same choice, and parts that fit nothing, are joined to their neighbour."""
    groups: list[tuple[str | None, str]] = []
    for part in parts:
        before = groups[-1][0] if groups else None
        choice = choose(part, before)
        if groups and (choice is None or before is None or choice == before):
            groups[-1] = (before or choice, groups[-1][1] + part)
        else:
            groups.append((choice, part))
    return groups


def work(text: str, tools: Sequence[Tool], today: date) -> Plan:
    """Which tools a worker calls for its instruction, and what it has to ask."""
    offered = [tool for tool in tools if tool.name not in HOUSEHOLD]
    calls: list[Call] = []
    questions: list[str] = []
    for tool, part in _assigned(text, offered, today):
        filled = _filled(tool, part, today)
        if filled.missing:
            questions.append(_question(tool, filled.missing))
        else:
            calls.append(Call(tool.name, filled.args))
    return Plan(tuple(calls), tuple(questions))


def _assigned(text: str, tools: Sequence[Tool], today: date) -> list[tuple[Tool, str]]:
    found: list[tuple[Tool, str]] = []
    pending = ""
    for part in words.parts(text):
        tool = _best_tool(part, tools, today)
        if tool is None and found and _goes_on(found[-1][0], part, today):
            tool = found[-1][0]
        if found and (tool is None or _filled(tool, part, today).missing):
            found[-1] = (found[-1][0], found[-1][1] + part)
        elif tool is None:
            pending += part
        else:
            found.append((tool, pending + part))
            pending = ""
    if not found and (tool := _best_tool(text, tools, today)):
        found = [(tool, text)]
    return found


def _goes_on(tool: Tool, part: str, today: date) -> bool:
    """Is `part` one more of the same, as in "… and 30 EUR for a taxi"?"""
    return bool(tool.required) and bool(words.numbers(part)) and not _filled(tool, part, today).missing


def _best_tool(text: str, tools: Sequence[Tool], today: date) -> Tool | None:
    fits = words.scores(text, tools, command_weight=1.0)
    ranked = {tool.name: fits[tool.name] + _leaning(text, tool) for tool in tools}
    able = [tool for tool in tools if fits[tool.name] > 0 and ranked[tool.name] > 0]
    if able:
        return max(able, key=lambda tool: ranked[tool.name])
    # "I paid 12 EUR for lunch" names no tool; it is clear when it holds all that exactly one tool needs.
    complete = [
        tool
        for tool in tools
        if words.wants_to_write(text) and not tool.reads and not tool.destroys
        if tool.required and not _filled(tool, text, today).missing
    ]
    return complete[0] if len(complete) == 1 else None


def _leaning(text: str, tool: Tool) -> float:
    lean = 0.0
    if words.wants_to_read(text):
        lean += 1.5 if tool.reads else -1.5
    elif words.wants_to_write(text):
        lean += -1.5 if tool.reads else 0.5
    if tool.destroys and _DESTROYS not in words.stems(text):
        lean -= 5
    return lean


def _filled(tool: Tool, text: str, today: date) -> Filled:
    return fill(tool.schema, words.tidy(text), today=today, commands=tool.name_stems)


def _question(tool: Tool, missing: Sequence[str]) -> str:
    declared = tool.schema.get("properties", {})
    named = []
    for name in missing:
        about = str(declared.get(name, {}).get("description", "")).strip().rstrip(".")
        named.append(f"{name.replace('_', ' ')} ({about})" if about else name.replace("_", " "))
    return f"Before I can use {tool.name} I need to know: {', '.join(named)}. What should I put there?"


def is_question(text: str) -> bool:
    """Did the demo model ask for something that was missing?"""
    return "I need to know: " in text and text.rstrip().endswith("What should I put there?")
