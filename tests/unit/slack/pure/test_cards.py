"""Does a card show exactly what would run, and let nobody press what they could not read?"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pizzabot.adapters.slack.cards import Pressed as Click
from pizzabot.adapters.slack.cards import PutOff, action_id_of, card, pressed, put_off, reminder

from pizzabot.approvals.forms import fields
from pizzabot.approvals.showing import shown
from pizzabot.approvals.when import parse_when
from pizzabot.messages import FAILURES, Action, ActionKind, ActionState, Snooze, Verdict, Vote
from pizzabot.text import exact
from tests.fakes.slack.blocks import check_blocks, controls, label, words
from tests.unit.slack.pure.actions import ANY_TEXT, ARGUMENTS, INTEGER, NOW, STRING, action, schemas

PAGE = "https://pizza.example/actions/a1"
JSON_CHARACTERS = 13_200
FIRST, RETRY = {"Approve", "Edit"}, {"Retry"}
ENDED = [state for state in ActionState if state is not ActionState.PENDING]
LONG_TEXT = st.sampled_from(["🍕", '"', "\n", "\x1b", "<!channel>", "a", "\u202e"]).flatmap(
    lambda c: st.integers(0, 5_000).map(lambda n: c * n)
)


def _checked(asked: Action, *, title: str = "Invoices") -> tuple[str, list[dict[str, Any]]]:
    text, blocks = card(asked, title=title, page=PAGE)
    check_blocks(blocks)
    assert 0 < len(text) <= 4_000
    assert "<" not in text
    assert len(json.dumps(blocks, ensure_ascii=False)) <= JSON_CHARACTERS
    for block in blocks:
        for leaf in _leaves(block):
            assert leaf["text"]
    return text, blocks


def _leaves(block: dict[str, Any]) -> list[dict[str, Any]]:
    inside = block.get("elements", []) if block["type"].startswith("rich_text") else []
    return [found for part in inside for found in ([part] if part["type"] == "text" else _leaves(part))]


def _buttons(blocks: list[dict[str, Any]]) -> list[str]:
    return [label(element) for _, element in controls(blocks) if element["type"] == "button"]


def _arguments(blocks: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """The arguments that a card shows: each name in bold with the text in code behind it."""
    rich = [part for block in blocks[1:] if block["type"] == "rich_text" for part in block["elements"]]
    boxes = {id(part["elements"][0]) for part in rich if part["type"] == "rich_text_preformatted"}
    leaves = [leaf for part in rich for leaf in part["elements"] if "style" in leaf or id(leaf) in boxes]
    return [(name["text"], text["text"]) for name, text in zip(leaves[::2], leaves[1::2], strict=True)]


@settings(deadline=None, max_examples=200)
@given(st.data(), ARGUMENTS, st.sampled_from(ActionKind))
def test_approve_and_edit_stand_only_below_all_arguments(
    data: st.DataObject, args: dict[str, Any], kind: ActionKind
) -> None:
    if data.draw(st.booleans()):
        args[data.draw(ANY_TEXT)] = data.draw(LONG_TEXT)
    asked = action(
        args=args, args_schema=data.draw(schemas(args)), kind=kind, allowed_decisions=tuple(Verdict)
    )
    _, blocks = _checked(asked)
    given = [shown(field) for field in fields(asked.args_schema, args) if field.given]
    if (FIRST | RETRY) & set(_buttons(blocks)) and kind is not ActionKind.LIMIT:
        assert _arguments(blocks) == [
            (f"{exact(arg.name)}:" + ("" if arg.is_long else " "), arg.text or '""') for arg in given
        ]
    assert {"Reject", "Respond", "Review"} <= set(_buttons(blocks))


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ("INV-7", "INV-7"),
        ("", '""'),
        (" a ", '" a "'),
        ("42", '"42"'),
        (42, "42"),
        (12.5, "12.5"),
        (True, "true"),
        ("true", '"true"'),
        (None, "null"),
        ([], "[]"),
        ([""], '[\n  ""\n]'),
        ("a\x1b[31m", "a\\x1b[31m"),
        ("fdp\u202eexe", "fdp\\u202eexe"),
        ("a\u00a0b", "a\\xa0b"),
        ("<!channel> <@U0ADA>", "<!channel> <@U0ADA>"),
    ],
)
def test_an_argument_reads_exactly(value: Any, read: str) -> None:
    _, blocks = _checked(action(args={"x": value}, args_schema={"properties": {"x": {}}}))
    assert [text for _, text in _arguments(blocks)] == [read]


@pytest.mark.parametrize(
    "value",
    ["x" * 3_999, "🍕" * 3_900, "<&>" * 1_300, "ä b " * 5 + "c\n" * 199 + "x"],
    ids=lambda value: value[:4],
)
def test_up_to_four_thousand_characters_can_be_decided(value: str) -> None:
    _, blocks = _checked(action(args={"x": value}))
    assert set(_buttons(blocks)) >= {"Approve"}
    assert _arguments(blocks) == [("x:", value)]


@pytest.mark.parametrize(
    "args",
    [
        {"x": "x" * 4_001},
        {"x": "a\n" * 200 + "b"},
        {"x": "\x1b" * 1_500},
        {f"x{n}": n for n in range(31)},
        {"\x1b" * 1_500: 1},
        {"x": {"y": ["z" * 5_000]}},
    ],
    ids=["4,001 characters", "201 lines", "control characters", "31 arguments", "a long name", "nested"],
)
def test_what_cannot_be_read_in_full_cannot_be_approved(args: dict[str, Any]) -> None:
    asked = action(args=args, args_schema={}, allowed_decisions=tuple(Verdict))
    _, blocks = _checked(asked)
    assert _buttons(blocks) == ["Reject", "Respond", "It was done", "It failed", "Review"]
    assert "Review shows them all" in words(blocks, {})


@pytest.mark.parametrize(
    ("args", "schema"),
    [
        ({"x": "x" * 3_001}, {}),
        ({}, {"properties": {f"x{n}": STRING for n in range(100)}}),
        ({}, {"properties": {f"x{n}": {"enum": ["y" * 70 + str(k) for k in range(99)]} for n in range(60)}}),
    ],
    ids=["a long text", "many inputs", "many choices"],
)
def test_what_a_form_cannot_hold_cannot_be_edited(args: dict[str, Any], schema: dict[str, Any]) -> None:
    _, blocks = _checked(action(args=args, args_schema=schema))
    assert _buttons(blocks) == ["Approve", "Reject", "Respond", "Review"]


def test_only_what_is_allowed_is_offered_and_review_always_is() -> None:
    for allowed in ((), (Verdict.RETRY, Verdict.DONE, Verdict.FAILED), (Verdict.REJECT,)):
        _, blocks = _checked(action(allowed_decisions=allowed))
        assert len(_buttons(blocks)) == len(allowed) + 1
        assert _buttons(blocks)[-1] == "Review"


def test_a_button_says_which_action_as_shown_it_decides() -> None:
    _, blocks = _checked(action(id="a" * 36))
    for _, button in controls(blocks):
        if label(button) == "Review":
            assert button["url"] == PAGE
        elif button["type"] == "button":
            assert len(button["value"]) <= 2_000
            said = pressed(button["action_id"], button["value"])
            assert said is not None
            assert (said.action_id, said.digest) == ("a" * 36, "d" * 64)
            assert button["action_id"] == action_id_of(said.verdict, "a" * 36)


@pytest.mark.parametrize(
    ("action_id", "value", "said"),
    [
        ("pizza_decide_approve.a1", "a1 d", Click(Verdict.APPROVE, "a1", "d")),
        ("pizza_decide_approve.a1", "a1", Click(Verdict.APPROVE, "a1", "")),
        ("pizza_decide_approve.a1", "", None),
        ("pizza_decide_perhaps.a1", "a1 d", None),
        ("pizza_decide_", "a1 d", None),
        ("approve.a1", "a1 d", None),
        ("pizza_review", "a1 d", None),
    ],
)
def test_what_is_no_button_of_ours_says_nothing(action_id: str, value: str, said: Click | None) -> None:
    assert pressed(action_id, value) == said


DECIDED = {
    ActionState.APPROVED: "Approved by Ada in Slack",
    ActionState.EDITED: "Edited and approved by Ada in Slack",
    ActionState.REJECTED: "Rejected by Ada in Slack",
    ActionState.RESPONDED: "Answered by Ada in Slack",
    ActionState.RESOLVED: "Marked as done by Ada in Slack",
    ActionState.EXPIRED: "Expired: nobody decided in time. Reopen it in the inbox.",
    ActionState.WITHDRAWN: "Withdrawn.",
}


@pytest.mark.parametrize("state", ENDED)
def test_what_has_ended_says_how_and_holds_no_button(state: ActionState) -> None:
    ended = action(
        state=state,
        decision=Verdict.DONE if state is not ActionState.EXPIRED else None,
        decided_by="Ada",
        decided_via="slack",
        reason="<!here> wrong account\u202e",
        response="Pay *later*",
    )
    text, blocks = _checked(ended)
    assert text == f"{DECIDED[state]}: pay (Invoices)"
    assert _buttons(blocks) == []
    read = words(blocks, {})
    assert f"*{DECIDED[state]}*" in read
    assert "Reason: <!here> wrong account\\u202e" in read
    assert "Response: Pay *later*" in read
    assert _arguments(blocks) == [("invoice: ", "INV-7"), ("amount: ", "12.5")]


def test_what_was_withdrawn_without_a_reason_went_with_its_work() -> None:
    _, blocks = _checked(action(state=ActionState.WITHDRAWN))
    assert "*Withdrawn: the work it belongs to was stopped or ended.*" in words(blocks, {})


def test_an_edit_shows_what_ran_beside_what_was_proposed() -> None:
    edited = action(
        state=ActionState.EDITED,
        args={"invoice": "INV-7", "amount": 12.5, "note": "x"},
        final_args={"invoice": "INV-8\u202e", "amount": 12.5, "to\u202e": 1},
        decided_by="Ada",
        decided_via="web",
    )
    _, blocks = _checked(edited)
    read = words(blocks, {})
    assert "invoice: INV-8\\u202e (was INV-7)" in read
    assert "note: left out (was " in read
    assert "to\\u202e: 1 (was not given)" in read
    assert "amount: 12.5 (was" not in read


def test_a_question_of_a_limit_has_no_arguments() -> None:
    asked = action(
        kind=ActionKind.LIMIT, args={"limit": "tool_calls"}, title="50 tool calls are used up. Go on?"
    )
    _, blocks = _checked(asked)
    assert _arguments(blocks) == []
    assert "no arguments" not in words(blocks, {})


def test_a_question_about_a_trigger_says_what_failed_and_how_it_ended() -> None:
    asked = action(
        kind=ActionKind.LIMIT,
        tool=FAILURES,
        args={"limit": "failures", "used": 3, "trigger": "Morning", "error": "It broke."},
        title="“Morning” failed 3 times in a row and is paused. Let it go on?",
        why="The last time: It broke. Approve lets it fire at its next time again; Reject switches it off.",
        allowed_decisions=(Verdict.APPROVE, Verdict.REJECT),
    )
    _, blocks = _checked(asked)
    read = words(blocks, {})
    assert asked.title in read
    assert str(asked.why) in read
    assert _arguments(blocks) == []
    assert set(_buttons(blocks)) >= {"Approve", "Reject"}
    _, blocks = _checked(replace(asked, state=ActionState.WITHDRAWN))
    assert "Withdrawn: the trigger was switched on or off, or removed." in words(blocks, {})


def test_a_call_without_arguments_says_so() -> None:
    _, blocks = _checked(action(args={}))
    assert "It takes no arguments." in words(blocks, {})
    assert "Approve" in _buttons(blocks)


def test_who_asks_for_what_and_who_may_decide_is_said() -> None:
    asked = action(skill="invoices", requested_by="Cay", why="It is due.", approvers=("Ada", "Bob"))
    text, blocks = _checked(asked)
    assert text == "Decision needed: Pay INV-7? (Invoices)"
    read = words(blocks, {})
    for said in (
        "Invoices · pay of bank · skill invoices · asked by Cay",
        "It is due.",
        "Waits for Ada or Bob.",
    ):
        assert said in read


HOSTILE = ANY_TEXT | LONG_TEXT


@settings(deadline=None, max_examples=200)
@given(st.data(), st.sampled_from(ActionState), st.sampled_from(ActionKind))
def test_no_text_of_others_breaks_a_card(data: st.DataObject, state: ActionState, kind: ActionKind) -> None:
    named = ("title", "why", "skill", "requested_by", "decided_by", "reason", "response")
    asked = action(
        state=state,
        kind=kind,
        tool=f"mcp:{data.draw(HOSTILE)}:{data.draw(HOSTILE)}",
        approvers=(data.draw(HOSTILE),),
        args={"x": data.draw(HOSTILE), data.draw(HOSTILE): data.draw(HOSTILE)},
        final_args={"x": data.draw(HOSTILE), data.draw(HOSTILE): "y"},
        args_schema={},
        allowed_decisions=tuple(Verdict),
        **{name: data.draw(HOSTILE) for name in named},
    )
    _, blocks = _checked(asked, title=data.draw(HOSTILE))
    for block in blocks:
        for said in (block.get("text"), *block.get("elements", ())):
            if isinstance(said, dict) and said.get("type") == "mrkdwn":
                assert "<" not in said["text"]
                assert "\u202e" not in said["text"]


def test_a_whole_number_and_its_text_look_different() -> None:
    schema = {"properties": {"x": INTEGER}}
    (number, text) = (_arguments(_checked(action(args={"x": x}, args_schema=schema))[1]) for x in (42, "42"))
    assert number != text


def test_the_same_action_makes_the_same_card() -> None:
    asked = action()
    assert card(asked, title="T", page=PAGE) == card(replace(asked), title="T", page=PAGE)


def test_a_card_that_waits_says_how_far_it_is_and_what_the_clock_has_in_store() -> None:
    votes = (Vote("Bob <!here>", "email", NOW),)
    snoozes = tuple(Snooze(f"<!channel> {n}", NOW) for n in range(12))
    asked = action(
        quorum=2,
        votes=votes,
        expires_at=NOW,
        snoozes=snoozes,
        escalated_to=("Eve",),
        asked_args={},
        edited_by="Bob",
    )
    _, blocks = card(asked, title="Invoices", page=PAGE)
    check_blocks(blocks)
    read = words(blocks, {})
    assert "1 of 2 approved: Bob <!here> in email" in read
    assert "Edited by Bob" in read
    assert "Eve may decide, too" in read
    raw = json.dumps(blocks)
    assert "Expires <!date^" in raw
    assert "Put off by &lt;!channel&gt; 0 until <!date^" in raw


@pytest.mark.parametrize("state", list(ActionState))
def test_a_reminder_holds_nothing_to_press_but_links_and_none_when_it_is_over(state: ActionState) -> None:
    asked = action(state=state, decided_by="Ada", decided_via="slack", title="<!here> Pay?", skill="s")
    text, blocks = reminder(asked, NOW, title="<!channel>", page=PAGE, link="https://slack.example/p1")
    check_blocks(blocks)
    assert "<!" not in text.replace("<!date", "")
    assert "<!here>" not in json.dumps(blocks)
    is_open = state in (ActionState.PENDING, ActionState.EXPIRED)
    assert _buttons(blocks) == (["Go to the card", "Review"] if is_open else [])


# -- snooze ----------------------------------------------------------------------------------------------


def _menus(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [element for _, element in controls(blocks) if element["type"] == "static_select"]


def test_what_waits_can_be_put_off_until_times_that_are_understood_in_the_persons_zone() -> None:
    (menu,) = _menus(_checked(replace(action(), revision=3))[1])
    tuesday = datetime(2026, 3, 3, 15, 0, tzinfo=UTC)
    moments = {}
    for offered in menu["options"]:
        chosen = put_off(menu["action_id"], offered["value"])
        assert isinstance(chosen, PutOff)
        assert chosen.action_id == action().id
        until = parse_when(chosen.when, tuesday, ZoneInfo("Europe/Amsterdam"))
        moments[offered["text"]["text"]] = f"{until:%a %d %H:%M}"
    assert label(menu) == "Snooze"
    assert moments == {
        "In an hour": "Tue 03 16:00",
        "This evening": "Tue 03 17:00",
        "Tomorrow morning": "Wed 04 08:00",
        "Next Monday": "Mon 09 08:00",
    }


def test_a_card_that_changed_offers_a_menu_in_which_nothing_is_chosen_yet() -> None:
    names = {_menus(_checked(replace(action(), revision=revision))[1])[0]["action_id"] for revision in (1, 2)}
    assert len(names) == 2


@pytest.mark.parametrize("state", ENDED)
def test_what_is_over_cannot_be_put_off(state: ActionState) -> None:
    assert _menus(_checked(replace(action(), state=state, decided_by="Ada", decided_via="web"))[1]) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("pizza_snooze.a1.0", "2027-01-01"),
        ("pizza_snooze.", "1h"),
        ("pizza_decide_approve.a1", "1h"),
        ("", ""),
    ],
)
def test_a_menu_that_no_card_offers_puts_nothing_off(name: str, value: str) -> None:
    assert put_off(name, value) is None
