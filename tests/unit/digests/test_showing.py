"""How does a digest read, and what does each number offer? Pure."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given

from pizzabot.digests import showing
from pizzabot.markdown import markup
from pizzabot.messages import ActionKind, ActionState, DayUsage, Verdict
from tests.unit.digests.listed import NOW, URL, action, digest, item
from tests.unit.email.written import ANY_TEXT

APPROVE, REJECT = Verdict.APPROVE, Verdict.REJECT


@pytest.mark.parametrize(
    ("changes", "offered"),
    [
        ({}, (APPROVE, REJECT)),
        ({"args": {"body": "x" * 390}, "args_schema": {}}, (APPROVE, REJECT)),
        ({"args": {"body": "x" * 400}, "args_schema": {}}, (REJECT,)),
        ({"args": {"body": "x\n" * 12}, "args_schema": {}}, (REJECT,)),
        ({"args": {f"a{n}": 1 for n in range(9)}, "args_schema": {}}, (REJECT,)),
        ({"args": {"hidden": "\u202e" * 70}, "args_schema": {}}, (REJECT,)),  # written out, it is long
        ({"state": ActionState.REJECTED}, ()),
        ({"digest": "another"}, ()),
        ({"allowed_decisions": (APPROVE,)}, (APPROVE,)),
        ({"kind": ActionKind.LIMIT, "allowed_decisions": (APPROVE, REJECT)}, (APPROVE, REJECT)),
        (
            {
                "kind": ActionKind.UNCERTAIN,
                "args": {"body": "x" * 999},
                "args_schema": {},
                "allowed_decisions": (Verdict.RETRY, Verdict.DONE, Verdict.FAILED),
            },
            (Verdict.DONE, Verdict.FAILED),
        ),
    ],
)
def test_what_runs_is_offered_only_where_all_of_it_is_shown(
    changes: dict[str, object], offered: tuple[Verdict, ...]
) -> None:
    assert showing.offered(item(1, **changes)) == offered


def test_an_item_that_changed_since_shows_no_arguments() -> None:
    (line,) = showing.lines(digest(item(1, digest="another")))
    assert line.arguments is None


def test_the_message_has_every_part_and_leads_to_each() -> None:
    text = showing.message(digest(item(1), item(2), more_items=3, more_unread=4, more_failed=1), URL)
    for part in (
        "**5 to decide, 2 failed, 5 unread** · Mon 2 Mar, 08:00",
        f"1. [Pay invoice 1]({URL}/actions/a1) · pay_invoice of ledger · asked by Cay · 3 hours ago",
        "    - amount: `12.5`",
        f"And 3 more: [all that waits]({URL}/?view=action)",
        f"- [Weekly]({URL}/threads/f1), 5 minutes ago: The model did not answer",
        f"- [News]({URL}/threads/u1), 1 hour ago: The summary is ready",
        f"And 4 more: [all that is unread]({URL}/?view=unread)",
        "Used today: 12,345 tokens, $0.42 by everybody.",
        "Next: Morning Tue 3 Mar, 08:00",
    ):
        assert part in text


def test_how_many_are_put_off_is_said_where_there_are_any() -> None:
    for items in ((), (item(1),)):
        text = showing.message(digest(*items, put_off=2), URL)
        assert "\n\n2 put off until later.\n\n" in text
    assert "put off" not in showing.message(digest(item(1)), URL)


def test_what_is_not_there_has_no_heading() -> None:
    text = showing.message(digest(unread=(), failed=(), usage=None, coming=(), more_items=1), URL)
    assert not {"Unread", "Failed", "Used", "Next"} & set(text.replace(":", " ").split())


@given(ANY_TEXT)
def test_others_words_make_no_link_and_no_mark_in_the_message(text: str) -> None:
    listed = digest(item(1, title=f"[a](http://evil.example) {text}"), unread=(), failed=(), coming=())
    html = str(markup(showing.message(listed, URL)))
    assert 'href="http://evil.example"' not in html.replace("http://evil.example)", "")
    assert "<script" not in html


@pytest.mark.parametrize(
    ("passed", "said"), [(0, "1 second"), (59, "59 seconds"), (3600, "1 hour"), (86_400 * 3, "3 days")]
)
def test_how_long_ago(passed: int, said: str) -> None:
    assert showing.age(timedelta(seconds=passed)) == said


def test_a_price_that_is_not_known_is_said() -> None:
    assert showing.spent(DayUsage(1, None, of_everybody=False)) == "1 token, price not known"


def test_summary_names_what_there_is() -> None:
    assert showing.summary(digest(item(1))) == "1 to decide, 1 failed, 1 unread"
    assert showing.summary(digest(unread=(), failed=())) == "nothing new"


def test_arguments_are_exact_in_the_message() -> None:
    shown = showing.brief(action(1, args={"note": "a`b\u202ec"}, args_schema={}))
    assert shown is not None
    assert showing.code(shown[0].text) == "`` a`b\\u202ec ``"
    assert digest().made_at == NOW


def test_a_limit_says_what_approve_does_and_not_its_numbers() -> None:
    args = {"limit": "person_day_usd", "used": 0.06, "allowance": 0.0521}
    why = "Approve allows $0.0521 more on that day.\nReject ends this run."
    listed = digest(item(1, kind=ActionKind.LIMIT, tool="limit:person_day_usd", args=args, why=why))
    text = showing.message(listed, URL)
    assert "- About: `Approve allows $0.0521 more on that day. Reject ends this run.`" in text
    assert "allowance" not in text
