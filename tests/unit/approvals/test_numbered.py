"""Which replies to a numbered list decide, what exactly, and which change nothing?"""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pizzabot.approvals.numbered import MESSAGE, Command, Listed, read
from pizzabot.approvals.verdicts import Words
from pizzabot.messages import Verdict

LIST = range(1, 9)
APPROVE, REJECT, RETRY, DONE, FAILED = (
    Verdict.APPROVE,
    Verdict.REJECT,
    Verdict.RETRY,
    Verdict.DONE,
    Verdict.FAILED,
)


def said(text: str) -> list[tuple[int, str]]:
    """Number and word of each command, as `approve`, `reject: why`, `snooze: when`."""
    return [
        (c.number, f"snooze: {c.snooze}" if c.verdict is None else f"{c.verdict}: {c.reason}".rstrip(": "))
        for c in read(text, LIST, names=["Ada Lovelace"]).commands
    ]


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("approve 1", [(1, "approve")]),
        ("Approve 1.", [(1, "approve")]),
        ("please approve 1, thanks", [(1, "approve")]),
        ("approve: 1,3", [(1, "approve"), (3, "approve")]),
        ("Approved 1, 2 and 4", [(1, "approve"), (2, "approve"), (4, "approve")]),
        ("approve #1 & #2", [(1, "approve"), (2, "approve")]),
        ("approve 1-3", [(1, "approve"), (2, "approve"), (3, "approve")]),
        ("approve 1–2", [(1, "approve"), (2, "approve")]),
        ("approve 1, reject 2", [(1, "approve"), (2, "reject")]),
        ("approve 1 and reject 2: no budget", [(1, "approve"), (2, "reject: no budget")]),
        ("Approve 1. Reject 2.", [(1, "approve"), (2, "reject")]),
        ("don’t approve 1", [(1, "reject")]),
        ("reject 2 because it is too dear", [(2, "reject: because it is too dear")]),
        ("reject 2 - too dear", [(2, "reject: too dear")]),
        ("Reject 2: 30% is too much; 3 was better", []),
        ("decline 2,3: ask Bob", [(2, "reject: ask Bob"), (3, "reject: ask Bob")]),
        (
            "approve 1,3; reject 2: too dear; snooze 4 to Mon",
            [(1, "approve"), (3, "approve"), (2, "reject: too dear"), (4, "snooze: Mon")],
        ),
        ("snooze 4 until tomorrow 9:00", [(4, "snooze: tomorrow 9:00")]),
        ("retry 1\ndone 2\nfailed 3", [(1, "retry"), (2, "done"), (3, "failed")]),
        (
            "Hi Pizza,\n\napprove 1\nreject 2: late\n\nKind regards,\nAda",
            [(1, "approve"), (2, "reject: late")],
        ),
    ],
)
def test_what_is_clear_is_taken_number_by_number(text: str, meant: list[tuple[int, str]]) -> None:
    assert said(text) == meant


def test_a_reason_that_a_mail_program_broke_is_one_reason() -> None:
    text = (
        "reject 2: this costs far more than we agreed on when we\n"
        "spoke about it in spring\napprove 1\n\nThanks"
    )
    assert said(text) == [
        (2, "reject: this costs far more than we agreed on when we spoke about it in spring"),
        (1, "approve"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "approve 1 if Bob agrees",
        "approve 1?",
        "approve 1...",
        "approve 1 but not 2",
        "approve 1 except the second line",
        "approve 1, 2 or 3",
        "approve 1.5",
        "approve 1,000",
        "approve 1%",
        "approve 1 €",
        "approve 9",
        "approve 0",
        "approve 3-1",
        "approve 1; reject 1",
        "approve 1, 1",
        "approve 1\nreject 2: because approve is wrong",
        "reject 2: too dear, approve 3",
        "reject 2: too dear\naprove 3",
        "reject 2: never mind, I was joking",
        "never approve 1",
        "I would approve 1",
        "approve 1; maybe 2",
        "approve 1; what about 2?",
        "approve 1: fine by me",
        "approve number one",
        "approve all",
        "approve the rest",
        "approve",
        "yes",
        "👍",
        "reject: too dear",
        "no",
        "snooze 4",
        "snooze 4 to Mon, approve 5",
        "snooze 4 to Mon?",
        "ok",
        "",
    ],
)
def test_what_is_not_clear_decides_nothing_and_says_why(text: str) -> None:
    found = read(text, LIST)
    assert found.commands == ()
    assert found.why


@pytest.mark.parametrize(
    "text",
    [
        "What is number 3 about, and who asked for it?",
        "The tests failed 3 times yesterday, please find out why and write it down.",
        "I have done 3 of the reviews that you listed; summarise the remaining ones for me.",
        "Tell me more about the invoices that came this week from the new vendor.",
    ],
)
def test_anything_else_is_a_message(text: str) -> None:
    assert read(text, LIST) == MESSAGE


def test_words_of_the_settings_take_numbers_too() -> None:
    words = Words(frozenset({"freigegeben"}), frozenset({"abgelehnt"}))
    assert read("Freigegeben 1; abgelehnt 2: zu teuer", LIST, words) == Listed(
        (Command(1, APPROVE), Command(2, REJECT, reason="zu teuer"))
    )


_VERBS = {
    APPROVE: ("approve", "Approve", "approved", "i approve", "please approve", "go ahead with"),
    REJECT: ("reject", "Rejected", "decline", "do not approve", "deny"),
    RETRY: ("retry",),
    DONE: ("done",),
    FAILED: ("failed",),
}
_DECISIONS = st.dictionaries(st.integers(1, 8), st.sampled_from(list(_VERBS)), min_size=1)


@given(_DECISIONS, st.sampled_from(["; ", "\n", ";\n", ". "]), st.randoms(use_true_random=False))
def test_whatever_is_written_in_the_grammar_is_read_back(meant, separator, random) -> None:  # type: ignore[no-untyped-def]
    by_verdict = itertools.groupby(sorted(meant, key=lambda n: (meant[n], n)), key=lambda n: meant[n])
    parts = [
        f"{random.choice(_VERBS[verdict])} {random.choice([',', ', ', ' and ', ' ']).join(map(str, numbers))}"
        for verdict, numbers in by_verdict
    ]
    random.shuffle(parts)
    found = read(separator.join(parts), LIST)
    assert {c.number: c.verdict for c in found.commands} == meant
    assert not any(c.reason or c.snooze for c in found.commands)


_DOUBTS = (
    *("if", "but", "not", "unless", "maybe", "later", "only", "perhaps", "half", "wait", "or", "hmm", "?"),
    *("tomorrow", "except", "x", "I think", "вместо", "nicht", "of them", "…", ".."),
)


@given(_DECISIONS, st.sampled_from(_DOUBTS), st.integers(0, 40))
def test_one_word_too_many_and_nothing_at_all_is_decided(meant, doubt, where) -> None:  # type: ignore[no-untyped-def]
    words = " ; ".join(f"approve {number}" for number in meant).split(" ")
    words.insert(where % (len(words) + 1), doubt)
    assert read(" ".join(words), LIST).commands == ()


@given(st.text(max_size=300))
def test_any_text_is_read_and_nothing_is_approved_without_its_word(text) -> None:  # type: ignore[no-untyped-def]
    found = read(text, LIST)
    if any(command.verdict is APPROVE for command in found.commands):
        assert "approve" in text.lower() or "go ahead" in text.lower()
    assert not (found.commands and found.why)


@given(
    st.lists(
        st.sampled_from(
            ["approve", "reject", "snooze", "1", "2", ",", ";", ":", "\n", " ", "-", "to", "and", "x"]
        ),
        max_size=30,
    )
)
def test_pieces_of_the_grammar_in_any_order_name_each_number_once(pieces) -> None:  # type: ignore[no-untyped-def]
    numbers = [command.number for command in read(" ".join(pieces), [1, 2]).commands]
    assert len(numbers) == len(set(numbers))
    assert set(numbers) <= {1, 2}
