"""Does the status of a run say what is done and what goes on, and can it be stopped while it can?"""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pizzabot.adapters.slack.status import STOP, status
from pizzabot.adapters.slack.words import outcome, place, spoken

from pizzabot.approvals.showing import server_name, tool_name
from pizzabot.messages import ActionState, RunState, RunStatus, Step, Verdict
from tests.fakes.slack.blocks import check_blocks, controls, words
from tests.unit.slack.pure.actions import ANY_TEXT, NOW, action

ACTIVE = (RunState.QUEUED, RunState.RUNNING, RunState.WAITING)
STEPS = st.builds(
    Step,
    ANY_TEXT | st.just("x" * 5_000),
    st.none() | ANY_TEXT | st.just("w" * 5_000),
    st.sampled_from(["started", "ok", "error", "paused", "stopped"]),
    st.none() | st.integers(0, 10**9),
)


@settings(deadline=None)
@given(st.sampled_from(RunState), st.lists(STEPS, max_size=40), st.lists(STEPS, max_size=10), st.booleans())
def test_any_run_fits_and_only_an_active_one_can_be_stopped(
    state: RunState, steps: list[Step], live: list[Step], is_started: bool
) -> None:
    run = RunStatus("r1", state, NOW if is_started else None, None, tuple(steps))
    text, blocks = status(run, "t1", NOW, live=live)
    check_blocks(blocks)
    assert text
    assert [element["action_id"] for _, element in controls(blocks)] == [STOP] * (state in ACTIVE)
    assert [element["value"] for _, element in controls(blocks)] == ["t1"] * (state in ACTIVE)


RUNNING = RunStatus(
    "r1",
    RunState.RUNNING,
    NOW,
    None,
    (
        Step("mcp:bank:pay", None, "ok", 1_250),
        Step("search", "reader", "error", 50),
        Step("mcp:bank:list", None, "paused"),
    ),
)


def test_a_run_under_way_says_each_step() -> None:
    text, blocks = status(RUNNING, "t1", NOW + timedelta(seconds=75), live=[Step("write", None, "started")])
    assert text == "Working… (1 min 15 s)"
    assert words(blocks[:1], {}) == (
        "Working… (1 min 15 s)\npay (1.2 s)\nreader: search failed\nlist waits\nwrite…"
    )


def test_of_many_steps_the_last_are_said_and_the_others_counted() -> None:
    steps = tuple(Step(f"s{n}", None, "ok") for n in range(20))
    _, blocks = status(RunStatus("r1", RunState.RUNNING, None, None, steps), "t1", NOW)
    lines = words(blocks[:1], {}).split("\n")
    assert lines == ["Working…", "12 earlier steps", *(f"s{n}" for n in range(12, 20))]


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (RunState.DONE, "Done (5 s): pay, reader: search"),
        (RunState.FAILED, "Failed (5 s): pay, reader: search"),
        (RunState.STOPPED, "Stopped (5 s): pay, reader: search"),
    ],
)
def test_a_run_that_ended_is_one_line(state: RunState, said: str) -> None:
    ended = RunStatus("r1", state, NOW, NOW + timedelta(seconds=5), RUNNING.steps)
    _, blocks = status(ended, "t1", NOW + timedelta(hours=1), live=[Step("late", None, "started")])
    assert words(blocks, {}) == said


def test_a_run_that_waits_says_for_what_and_not_how_long() -> None:
    text, _ = status(RunStatus("r1", RunState.WAITING, NOW, None), "t1", NOW + timedelta(days=3))
    assert text == "Waiting for a decision"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (-5, "0 s"),
        (0.4, "0 s"),
        (59.4, "59 s"),
        (59.6, "1 min"),
        (61, "1 min 1 s"),
        (3_599, "59 min 59 s"),
        (3_600, "1 h"),
        (3_661, "1 h 1 min"),
        (90_000, "25 h"),
    ],
)
def test_durations_are_said_in_two_units(seconds: float, said: str) -> None:
    assert spoken(timedelta(seconds=seconds)) == said


@pytest.mark.parametrize(
    ("reference", "tool", "server"),
    [
        ("mcp:bank:pay", "pay", "bank"),
        ("shell", "shell", None),
        ("mcp:bank", "bank", None),
        ("mcp:a:b:c", "c", None),
        ("mcp:bank:p\u202ey", "p\\u202ey", "bank"),
    ],
)
def test_a_tool_is_called_by_its_own_name(reference: str, tool: str, server: str | None) -> None:
    assert (tool_name(reference), server_name(reference)) == (tool, server)


@pytest.mark.parametrize(
    ("channel", "said"), [("slack", "Slack"), ("api", "the API"), ("web", "web"), (None, "an unknown place")]
)
def test_places_are_called_as_people_do(channel: str | None, said: str) -> None:
    assert place(channel) == said


@pytest.mark.parametrize(
    ("decision", "said"),
    [
        (Verdict.RETRY, "Retry chosen by Ada in web"),
        (Verdict.DONE, "Marked as done by Ada in web"),
        (Verdict.FAILED, "Marked as failed by Ada in web"),
        (Verdict.APPROVE, "Resolved by Ada in web"),
        (None, "Resolved by Ada in web"),
    ],
)
def test_what_became_of_an_uncertain_call(decision: Verdict | None, said: str) -> None:
    ended = action(state=ActionState.RESOLVED, decision=decision, decided_by="Ada", decided_via="web")
    assert outcome(ended) == said
