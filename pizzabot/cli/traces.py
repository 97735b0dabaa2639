"""How does the story of a thread's runs read on a terminal?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from zoneinfo import ZoneInfo

from pizzabot.cli.output import count
from pizzabot.cli.text import at, parsed_time, shortened, took
from pizzabot.text import visible

_DETAIL = 160
_SAID = {"ok": "", "started": "not ended", "user": "wrote", "assistant": "answered", "notice": "said"}


def trace_lines(thread: Mapping[str, Any], zone: ZoneInfo) -> Iterator[str]:
    """Each run from its beginning, each step with when it began after that."""
    yield visible(thread["title"])
    yield f"{visible(thread['id'])} · {visible(thread['state'])} · {_used(thread['usage'])}"
    if thread["has_older"]:
        yield "Earlier runs are left out."
    for run in thread["runs"]:
        yield ""
        yield from _run_lines(run, zone)


def _run_lines(run: Mapping[str, Any], zone: ZoneInfo) -> Iterator[str]:
    began = parsed_time(run["created_at"])
    attempts = f" · {count(int(run['attempts']), 'attempt')}" if run["attempts"] > 1 else ""
    began_by = f" · by the trigger {visible(run['trigger'])}" if "trigger" in run else ""
    yield f"── {visible(run['state'])} · for {visible(run['person'])} · {at(began, zone)}{began_by}{attempts}"
    yield f"   run {visible(run['id'])} · {visible(run['model_label'])} · {_used(run['usage'])}"
    yield (
        f"   {took(run['total_milliseconds'])} in all: {took(run['queued_milliseconds'])} queued, "
        f"{took(run['working_milliseconds'])} of work, "
        f"{took(run['waiting_milliseconds'])} waiting for a decision"
    )
    if error := run.get("error"):
        yield f"   failed: {visible(str(error['code']))}: {visible(str(error['message']))}"
    if run["steps_left_out"]:
        yield f"   {count(int(run['steps_left_out']), 'earlier step')} left out"
    for step in run["steps"]:
        begun = parsed_time(step["at"])
        after = (begun - began).total_seconds() * 1000 if begun is not None and began is not None else 0
        yield f"{'+' + took(max(0, after)):>14}  {visible(step['kind']):<8}  {step_line(step)}"


def step_line(step: Mapping[str, Any]) -> str:
    """What was done, how it ended and how long it took."""
    parts = [visible(str(step["name"]))]
    if step.get("worker"):
        parts.append(f"in {visible(str(step['worker']))}")
    if outcome := _SAID.get(step["outcome"], visible(str(step["outcome"]))):
        parts.append(outcome)
    if step.get("decided_by"):
        parts.append(f"by {visible(str(step['decided_by']))} in {visible(str(step['decided_via']))}")
    if step["kind"] == "delivery":
        parts.append(f"to {visible(str(step['channel']))}")
        if step.get("person"):
            parts.append(f"for {visible(str(step['person']))}")
    if step.get("milliseconds") and step["kind"] != "message":
        parts.append(took(step["milliseconds"]))
    if step.get("tries", 0) > 1:
        parts.append(f"({step['tries']} tries)")
    if "input_tokens" in step:
        cost = _dollars(step.get("cost_usd"))
        parts.append(f"({step['input_tokens']:,} in, {step['output_tokens']:,} out, {cost})")
    told = [shortened(str(step[key]), _DETAIL) for key in ("reason", "detail") if step.get(key)]
    return " ".join(parts) + "".join(f": {text}" for text in told)


def _used(usage: Mapping[str, Any]) -> str:
    tokens = int(usage["input_tokens"]) + int(usage["output_tokens"])
    calls = count(int(usage["model_calls"]), "model call")
    return f"{calls} · {tokens:,} tokens · {_dollars(usage['cost_usd'])}"


def _dollars(usd: float | None) -> str:
    return "price unknown" if usd is None else f"${usd:.4f}"
