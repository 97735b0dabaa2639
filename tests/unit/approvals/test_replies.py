"""What a written reply means for a pending action: words and values together."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pizzabot.approvals import replies, verdicts
from pizzabot.approvals.replies import Judged, judge
from pizzabot.approvals.values import write
from pizzabot.approvals.verdicts import Words
from pizzabot.messages import Action, ActionKind, ActionState, Verdict

ARGS = {"vendor": "Northwind Paper", "amount": 120, "note": "Invoice 2291"}
ACTION = Action(
    id="a1",
    thread_id="t1",
    run_id="r1",
    kind=ActionKind.TOOL,
    tool="mcp:ledger:pay_invoice",
    title="Pay",
    args=ARGS,
    args_schema={},
    digest="d",
    allowed_decisions=(Verdict.APPROVE, Verdict.EDIT, Verdict.REJECT),
    approvers=(),
    state=ActionState.PENDING,
    created_at=datetime(2026, 3, 2, tzinfo=UTC),
)
UNCERTAIN = replace(
    ACTION, kind=ActionKind.UNCERTAIN, allowed_decisions=(Verdict.RETRY, Verdict.DONE, Verdict.FAILED)
)
SAME = "\n".join(write({}, ARGS))
CHANGED = SAME.replace("120", "95")
EDIT = Judged(Verdict.EDIT, args=ARGS | {"amount": 95})


@pytest.mark.parametrize(
    ("text", "judged"),
    [
        ("Approve", Judged(Verdict.APPROVE)),
        ("Approve. Also, what time is it?", Judged(Verdict.APPROVE, message="Also, what time is it?")),
        ("Reject: too expensive", Judged(Verdict.REJECT, reason="too expensive")),
        ("Why so much?", Judged(message="Why so much?")),
        ("Approve?", Judged(message="Approve?", why=verdicts.QUESTION)),
        ("", Judged(why=verdicts.EMPTY)),
    ],
)
def test_words_alone_mean_what_they_say(text: str, judged: Judged) -> None:
    assert judge(text, True, None, ACTION) == judged
    assert judge(text, True, SAME, ACTION, in_quote=True) == judged


@pytest.mark.parametrize("text", ["Approve", "Reject", "What is this?", "", "Approve?"])
@pytest.mark.parametrize("values", [None, SAME, CHANGED])
def test_parts_that_disagree_decide_nothing(text: str, values: str | None) -> None:
    assert judge(text, False, values, ACTION) == Judged(message=text, why=replies.DISAGREE)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Approve",
        "Approved, thanks",
        "yes",
        "Change",
        "Please change",
        "With changes:",
        "See my change below",
        "see below",
        "Edited.",
        "Please use these values",
        "corrected",
        "Thanks!",
        "Hi,\n\nKind regards\nMaria",
        "Approved with changes",
        "New values:",
    ],
)
def test_changed_values_with_no_more_than_an_announcement_are_an_edit(text: str) -> None:
    assert judge(text, True, CHANGED, ACTION) == EDIT


@pytest.mark.parametrize(
    "text",
    [
        "Reject",
        "No",
        "Do not approve",
        "Approve?",
        "What about this?",
        "Maybe like this",
        "Wait for Tom",
        "not approved",
        "👎",
        "Approve the old values",
        "Do not change it",
        "Change it back",
        "Respond: no",
        "Approve, but only if Tom agrees",
    ],
)
def test_changed_values_with_any_other_word_are_unclear(text: str) -> None:
    assert judge(text, True, CHANGED, ACTION).why


@pytest.mark.parametrize("text", ["", "Change", "Thanks"])
def test_values_that_came_back_unchanged_approve_nothing(text: str) -> None:
    assert judge(text, True, SAME, ACTION).unclear


def test_unchanged_values_leave_the_words_what_they_are() -> None:
    assert judge("Approve", True, SAME, ACTION) == Judged(Verdict.APPROVE)
    assert judge("Reject: late", True, SAME, ACTION) == Judged(Verdict.REJECT, reason="late")
    assert judge("Why so much?", True, SAME, ACTION) == Judged(message="Why so much?")


@pytest.mark.parametrize("text", ["", "Approve", "Reject", "Change"])
def test_values_that_cannot_be_read_are_unclear_and_say_why(text: str) -> None:
    assert judge(text, True, SAME.replace("120", "abc"), ACTION).why == "amount is not a number"
    assert judge(text, True, SAME.replace("amount: 120\n", ""), ACTION).why == "amount is missing"
    assert judge(text, True, "", ACTION).unclear


def test_values_changed_in_the_quote_are_an_edit_only_without_any_word() -> None:
    assert judge("", True, CHANGED, ACTION, in_quote=True) == EDIT
    for text in ("Approve", "Reject", "See my change below", "Why?", "Thanks"):
        unclear = judge(text, True, CHANGED, ACTION, in_quote=True)
        assert unclear.why.startswith(replies.CHANGED_IN_QUOTE), text


@pytest.mark.parametrize(
    ("text", "values", "cure"),
    [
        ("Approve", CHANGED, "; take Approve away, or copy the lines above the quote"),
        ("Reject", CHANGED, "; take what you wrote away, or copy the lines above the quote"),
        ("Thanks", CHANGED, "; take what you wrote away, or copy the lines above the quote"),
        (
            "Approve",
            SAME.replace("120", "abc"),
            "amount is not a number; leave the quote out, or copy the lines above the quote",
        ),
    ],
)
def test_values_in_the_quote_that_do_not_count_come_with_what_to_do(
    text: str, values: str, cure: str
) -> None:
    assert judge(text, True, values, ACTION, in_quote=True).why.endswith(cure)


def test_a_quote_that_was_cut_changes_nothing() -> None:
    cut = SAME.partition("note")[0]
    assert judge("Approve", True, cut, ACTION, in_quote=True) == Judged(Verdict.APPROVE)
    assert judge("", True, cut, ACTION, in_quote=True) == Judged(why=verdicts.EMPTY)


def test_a_quote_that_was_spoilt_stands_only_against_an_approval() -> None:
    spoilt = SAME.replace("120", "1?0")
    assert judge("Approve", True, spoilt, ACTION, in_quote=True).unclear
    assert judge("", True, spoilt, ACTION, in_quote=True).unclear
    assert judge("Reject: late", True, spoilt, ACTION, in_quote=True) == Judged(Verdict.REJECT, reason="late")
    assert judge("Why so much?", True, spoilt, ACTION, in_quote=True) == Judged(message="Why so much?")


@pytest.mark.parametrize("text", ["", "Thanks", "Hi,\n\nKind regards\nMaria"])
@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("amount: banana", "amount is not a number"),
        ("amount: 95\ncurrency: CHF", "currency is not one of the choices: EUR, USD"),
    ],
)
def test_a_wrong_value_in_the_quote_without_a_word_is_named(text: str, value: str, why: str) -> None:
    schema = {"properties": {"amount": {"type": "number"}, "currency": {"enum": ["EUR", "USD"]}}}
    asked = replace(ACTION, args={"amount": 120, "currency": "EUR"}, args_schema=schema)
    lines = "\n".join([value, *write(schema, asked.args)[value.count("\n") + 1 :]])
    assert judge(text, True, lines, asked, in_quote=True) == Judged(message=text, why=why)


LINKED = {"to": "bob@example.com", "url": "https://example.com/pay?id=1", "note": "Müller → 3 €"}
LINKED_ACTION = replace(ACTION, args=LINKED)
_SENT = write({}, LINKED)


def came_back(name: str, value: str) -> str:
    """The lines of `LINKED` with one that a mail program touched."""
    return "\n".join(f"{name}: {value}" if line.startswith(f"{name}:") else line for line in _SENT)


TOUCHED_BY_PROGRAMS = {
    "an address written out": came_back("to", "bob@example.com<mailto:bob@example.com>"),
    "an address written out behind a space": came_back("to", "bob@example.com <mailto:bob@example.com>"),
    "a link written out": came_back("url", f"{LINKED['url']}<{LINKED['url']}>"),
    "SafeLinks": came_back(
        "url",
        "https://eur01.safelinks.protection.outlook.com/?url=https%3A%2F%2Fexample.com%2Fpay%3Fid%3D1&data=05",
    ),
    "a gateway of Barracuda": came_back(
        "url", "https://linkprotect.cudasvc.com/url?a=https%3a%2f%2fexample.com%2fpay%3fid%3d1&c=E"
    ),
    "URL Defense 3": came_back("url", "https://urldefense.com/v3/__https://example.com/pay?id=1__;!!Ab$"),
    "URL Defense 2": came_back(
        "url", "https://urldefense.proofpoint.com/v2/url?u=https-3A__example.com_pay-3Fid-3D1&d=Dw"
    ),
    "a small charset": came_back("note", "M?ller ? 3 ?"),
    "a charset with some of the letters": came_back("note", "Müller ? 3 €"),
    "letters that cannot be read": came_back("note", "M\ufffd\ufffdller \ufffd 3 \ufffd"),
}


@pytest.mark.parametrize("values", TOUCHED_BY_PROGRAMS.values(), ids=TOUCHED_BY_PROGRAMS)
@pytest.mark.parametrize("in_quote", [True, False])
def test_what_programs_do_to_values_is_no_change(values: str, in_quote: bool) -> None:
    assert values != "\n".join(_SENT)
    assert judge("", True, values, LINKED_ACTION, in_quote=in_quote).unclear
    approved = judge("Approve", True, values, LINKED_ACTION, in_quote=in_quote)
    assert approved == Judged(Verdict.APPROVE)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("url", "https://protect-eu.mimecast.com/s/AbCd1234"),
        ("url", "https://eur01.safelinks.protection.outlook.com/?url=https%3A%2F%2Fevil.example%2F&data=05"),
        ("note", "Muller  3"),
        ("note", "Müller 3 €"),
    ],
)
def test_a_change_in_a_quote_that_may_be_a_programs_decides_nothing_without_a_word(
    name: str, value: str
) -> None:
    values = came_back(name, value)
    for text in ("", "Approve"):
        why = judge(text, True, values, LINKED_ACTION, in_quote=True).why
        assert why == f"{replies.CHANGED_IN_QUOTE}; copy the lines above the quote"
    assert judge("Approve", True, values, LINKED_ACTION).verdict is Verdict.EDIT


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("to", "cay@example.com"),
        ("url", "https://example.com/pay?id=2"),
        ("note", "Müller → 4 ?"),
        ("note", "Meier → 3 €"),
    ],
)
def test_what_a_person_changes_in_a_quote_is_an_edit(name: str, value: str) -> None:
    judged = judge("", True, came_back(name, value), LINKED_ACTION, in_quote=True)
    assert judged == Judged(Verdict.EDIT, args=LINKED | {name: value})


def test_a_verdict_that_the_action_does_not_allow_is_unclear() -> None:
    for text in ("Retry", "It was done", "It failed", "Respond: use the other"):
        judged = judge(text, True, None, ACTION)
        assert judged.verdict is None
        assert judged.why.endswith("is not possible here; possible: approve, edit, reject")
    assert (
        judge("Approve", True, None, UNCERTAIN).why
        == "approve is not possible here; possible: retry, done, failed"
    )
    assert judge("", True, CHANGED, replace(ACTION, allowed_decisions=(Verdict.APPROVE,))).unclear


def test_the_outcome_of_an_uncertain_call() -> None:
    assert judge("Retry", True, None, UNCERTAIN) == Judged(Verdict.RETRY)
    assert judge("It was done.", True, None, UNCERTAIN) == Judged(Verdict.DONE)
    assert judge("It failed", True, None, UNCERTAIN) == Judged(Verdict.FAILED)


def test_a_response_carries_its_text() -> None:
    action = replace(ACTION, allowed_decisions=(Verdict.RESPOND,))
    assert judge("Answer: use the other", True, None, action) == Judged(
        Verdict.RESPOND, response="use the other"
    )


def test_configured_words_and_the_authors_name_count() -> None:
    words = Words(approve=frozenset({"freigegeben"}))
    assert judge("Freigegeben\nMaria", True, CHANGED, ACTION, words, names=("Maria Keller",)) == EDIT
    assert judge("Freigegeben\nTom", True, None, ACTION, words, names=("Maria Keller",)).unclear


_TEXTS = st.sampled_from(
    ["", "Approve", "Reject: x", "Approve?", "Change", "Why?", "no", "Retry", "Thanks"]
) | st.text(max_size=9)
_VALUES = (
    st.none()
    | st.sampled_from([SAME, CHANGED, SAME.replace("120", "x"), "", "{", SAME[:20]])
    | st.text(max_size=9)
)


@settings(max_examples=300, deadline=None)
@given(_TEXTS, st.booleans(), _VALUES, st.booleans())
def test_only_what_fits_together_decides(text: str, agrees: bool, values: str | None, in_quote: bool) -> None:
    judged = judge(text, agrees, values, ACTION, in_quote=in_quote)
    assert not (judged.verdict and judged.unclear)
    assert judged.verdict is None or (agrees and judged.verdict in ACTION.allowed_decisions)
    assert (judged.args is not None) == (judged.verdict is Verdict.EDIT)
    if judged.verdict is Verdict.APPROVE:
        assert verdicts.read(text).verdict is Verdict.APPROVE
        assert values != CHANGED
    if judged.verdict is None:
        assert judged.message == text
