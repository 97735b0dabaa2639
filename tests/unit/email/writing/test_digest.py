"""Does a mail with a list show what it offers, and can nothing in it be taken for a decision? Pure."""

from __future__ import annotations

from email import message_from_bytes
from email.policy import default
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from pizzabot.adapters.email.letters import BEGIN_VALUES, REPLY_ABOVE
from pizzabot.adapters.email.writing import compose

from pizzabot.approvals.numbered import read
from pizzabot.messages import ActionState, Failure, UnreadThread, Verdict
from tests.unit.digests.listed import NOW, URL, digest, item
from tests.unit.email.written import _HEADS, ANY_ARGS, ANY_TEXT


def parts(made: compose.Request) -> tuple[str, str]:
    """The text and the HTML of a mail."""
    mail: Any = message_from_bytes(made.data, policy=default)
    return tuple(mail.get_body((kind,)).get_content() for kind in ("plain", "html"))


def test_both_parts_say_the_same_and_how_to_answer() -> None:
    made = compose.digest(_HEADS, digest(item(1), item(2), more_items=2, put_off=3), url=URL)
    assert made.offered == (Verdict.APPROVE, Verdict.REJECT)
    for part in parts(made):
        assert REPLY_ABOVE in part
        for words in (
            *(
                "4 to decide, 1 failed, 1 unread",
                "Pay invoice 1",
                "pay_invoice of ledger",
                "Northwind",
                "12.5",
            ),
            *("About 2", f"{URL}/actions/a2", f"{URL}/?view=action", "Weekly", "The model did not answer"),
            *(
                "3 put off until later.",
                "The summary is ready",
                "12,345 tokens",
                "Morning",
                "approve 1; reject 2: your reason",
            ),
        ):
            assert words in part, words


def test_what_is_settled_says_so_and_offers_nothing() -> None:
    done = item(1, state=ActionState.REJECTED, decided_by="Bob", decided_via="slack")
    made = compose.digest(_HEADS, digest(done), url=URL)
    assert made.offered == ()
    for part in parts(made):
        assert "Rejected by Bob in Slack" in part
        assert "For example" not in part


def test_a_long_one_offers_what_needs_no_arguments() -> None:
    made = compose.digest(_HEADS, digest(item(1, args={"b": "x" * 999}, args_schema={})), url=URL)
    assert made.offered == (Verdict.REJECT,)
    text, _ = parts(made)
    assert "All arguments are on its page." in text
    assert "For example: reject 1: your reason" in text


@given(st.lists(st.tuples(ANY_TEXT, ANY_ARGS), min_size=1, max_size=20), ANY_TEXT)
@settings(deadline=None)
def test_whatever_stands_in_it_the_mail_is_whole_and_its_own_text_decides_nothing(
    listed: list[tuple[str, dict[str, Any]]], words: str
) -> None:
    items = [
        item(n, title=title, args=args, args_schema={}, requested_by=words)
        for n, (title, args) in enumerate(listed, 1)
    ]
    unread = (UnreadThread("u1", words, words, NOW),)
    failed = (Failure(words, words, NOW),)
    made = compose.digest(_HEADS, digest(*items, unread=unread, failed=failed), url=URL)
    text, html = parts(made)
    assert text.count(REPLY_ABOVE) == 1
    assert BEGIN_VALUES not in text
    assert "<script" not in html
    assert len(html.encode()) <= 95_000
    numbers = range(1, len(items) + 1)
    # A client that marks no quote sends all of it back: that is no decision.
    assert read(text, numbers).commands == ()
    for line in text.splitlines():
        if not line.startswith(" "):  # what others wrote never begins a line
            assert read(line, numbers).commands == ()
