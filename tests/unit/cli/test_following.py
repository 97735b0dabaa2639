"""Where the work stands is read from the thread; what is told of it is told once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pizzabot.cli.client import Api, httpx
from pizzabot.cli.failures import Failed
from pizzabot.cli.following import GOING, Posted, follow, outcome_of
from pizzabot.cli.progress import Told, activity_line
from pizzabot.cli.sse import Heard, parsed
from tests.unit.cli.conftest import Answers, action_row, thread_row

Serving = Callable[[Answers], Api]
POSTED = Posted(thread_row(1)["id"], "run-1", "1")
HELD = Posted(thread_row(1)["id"], None, "2")


def thread(state: str, run: str | None, **more: Any) -> dict[str, Any]:
    runs = [{"id": "run-1", "state": run}] if run else []
    found: dict[str, Any] = {"messages": [], "actions": [], "activity": [], "runs": runs}
    return thread_row(1, state=state) | found | more


def said(role: str, text: str, run_id: str | None, number: int = 1) -> dict[str, Any]:
    return {"id": str(number), "role": role, "text": text, "run_id": run_id}


def test_the_answer_is_what_this_run_said() -> None:
    messages = [
        said("assistant", "old", "run-0"),
        said("user", "q", "run-1"),
        said("assistant", "A", "run-1"),
    ]
    outcome = outcome_of(thread("idle", "done", messages=messages), POSTED)
    assert (outcome.ending, outcome.text) == ("answered", "A")


def test_a_message_that_was_answered_at_once_ends_with_that_answer() -> None:
    messages = [said("notice", "before", None), said("notice", "1 approved", None, 2)]
    for state in ("idle", "running"):
        outcome = outcome_of(thread(state, None, messages=messages), HELD)
        assert (outcome.ending, outcome.text) == ("answered", "1 approved")


@pytest.mark.parametrize("state", ["queued", "running"])
def test_a_run_that_goes_on_is_no_end(state: str) -> None:
    assert outcome_of(thread(state, state), POSTED) is GOING


def test_a_failed_run_says_why() -> None:
    failed = thread("failed", "failed")
    failed["runs"][0]["error"] = {"code": "auth", "message": "The key was refused."}
    assert outcome_of(failed, POSTED).text == "The key was refused."
    assert outcome_of(thread("failed", "failed"), POSTED).text == "The run failed."


def test_a_run_waits_for_its_own_actions_only() -> None:
    actions = [action_row(1), action_row(2, state="approved"), action_row(3, run_id="run-0")]
    outcome = outcome_of(thread("waiting", "waiting", actions=actions), POSTED)
    assert (outcome.ending, outcome.actions) == ("waiting", (actions[0],))


def test_a_run_whose_decision_was_just_made_goes_on() -> None:
    assert (
        outcome_of(thread("waiting", "waiting", actions=[action_row(1, state="approved")]), POSTED) is GOING
    )


def test_a_held_message_waits_for_the_decision_before_it() -> None:
    messages = [said("user", "first", "run-1"), said("user", "second", None, 2)]
    waiting = thread("waiting", "waiting", messages=messages, actions=[action_row(1)])
    assert outcome_of(waiting, HELD).ending == "waiting"
    assert outcome_of(thread("running", "running", messages=messages), HELD) is GOING


def test_a_held_message_is_answered_by_the_run_that_takes_it() -> None:
    messages = [said("user", "second", "run-1", 2), said("assistant", "both", "run-1", 3)]
    assert outcome_of(thread("idle", "done", messages=messages), HELD).text == "both"


def activity(**changes: Any) -> dict[str, Any]:
    row = {"run_id": "run-1", "kind": "tool", "name": "mcp:a:b", "outcome": "ok", "worker": "books"}
    return row | {"detail": None, "milliseconds": 40} | changes


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({}, "  books: mcp:a:b (40 ms)"),
        ({"outcome": "started", "milliseconds": None}, "  books: mcp:a:b …"),
        ({"outcome": "error", "detail": "no\x1b[31m"}, r"  books: mcp:a:b (failed, 40 ms): no\x1b[31m"),
        ({"outcome": "stopped", "milliseconds": None}, "  books: mcp:a:b (stopped)"),
        ({"kind": "worker", "name": "books", "worker": None}, "  books (40 ms)"),
        (
            {"kind": "retry", "outcome": "started", "detail": "Too many."},
            "  books: the model did not answer: Too many.",
        ),
        ({"kind": "model"}, None),
        ({"kind": "model", "outcome": "error", "detail": "auth"}, "  books: mcp:a:b failed: auth"),
        ({"outcome": "paused"}, None),
        ({"kind": "wait"}, None),
    ],
)
def test_an_activity_is_one_line(changes: dict[str, Any], line: str | None) -> None:
    assert activity_line(activity(**changes)) == line


def test_what_was_heard_is_not_told_again() -> None:
    told = Told()
    assert told.hear(activity()) is not None
    assert told.catch_up([activity()]) == []
    assert told.catch_up([activity(), activity(), activity(outcome="started")]) == [
        "  books: mcp:a:b (40 ms)"
    ]
    assert told.catch_up([activity(), activity()]) == []


def test_a_stream_is_its_events() -> None:
    lines = [
        "retry: 2000",
        "",
        ": comment",
        "event: run",
        'data: {"kind": "run", "thread_id": "t", "data": {"state": "done"}}',
        "",
        "event: run",
        "data: no json",
        "",
        'data: {"data": {}}',
        "",
        "event: action",
        'data: {"data":',
        "data: {}}",
        "",
        "event: run",
        'data: {"data": {"unfinished": 1}}',
    ]
    assert list(parsed(lines)) == [Heard("run", {"state": "done"}), Heard("action", {})]


def events(*kinds: str) -> httpx.Response:
    text = "".join(f'event: {kind}\ndata: {{"data": {{}}}}\n\n' for kind in kinds)
    return httpx.Response(200, content=text.encode())


def test_a_broken_stream_loses_nothing(serving: Serving) -> None:
    states = iter(["queued", "running", "done"])
    streams = iter([events("run"), httpx.Response(503), events()])

    def answer(request: httpx.Request) -> Any:
        if request.url.path == "/api/events":
            return next(streams, events())
        if request.url.path == "/api/status":
            return {"stopped": False}
        state = next(states)
        messages = [said("assistant", "A", "run-1")]
        return thread(state, state, messages=messages, activity=[activity()])

    lines: list[str] = []
    outcome = follow(serving(answer), POSTED, 30, lines.append)
    assert (outcome.ending, outcome.text) == ("answered", "A")
    assert lines == ["  books: mcp:a:b (40 ms)"]


def test_the_time_may_run_out(serving: Serving) -> None:
    def answer(request: httpx.Request) -> Any:
        return events() if request.url.path == "/api/events" else thread("running", "running")

    assert follow(serving(answer), POSTED, 0, lambda _: None) is GOING


def test_everything_stopped_ends_the_waiting(serving: Serving) -> None:
    def answer(request: httpx.Request) -> Any:
        found = {"/api/events": events(), "/api/status": {"stopped": True}}
        return found.get(request.url.path, thread("queued", "queued"))

    assert follow(serving(answer), POSTED, 30, lambda _: None).ending == "paused"


def test_a_thread_deleted_meanwhile_is_told(serving: Serving) -> None:
    def answer(request: httpx.Request) -> Any:
        return events() if request.url.path == "/api/events" else httpx.Response(404, content=b"{}")

    with pytest.raises(Failed, match="deleted meanwhile"):
        follow(serving(answer), POSTED, 30, lambda _: None)
