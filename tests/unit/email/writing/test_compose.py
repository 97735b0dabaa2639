"""Do our mails show everything, offer only what was shown, and stay whole whatever they hold?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from html import unescape
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pizzabot.adapters.email import words
from pizzabot.adapters.email.writing.compose import answer, confirmation, notice, request
from pizzabot.adapters.email.writing.imitations import harmless, imitates

from pizzabot.approvals.forms import fields
from pizzabot.approvals.showing import shown
from pizzabot.approvals.values import write
from pizzabot.messages import FAILURES, Action, ActionKind, ActionState, Attachment, Beginning, Verdict
from tests.unit.email.written import (
    ANY_ARGS,
    ANY_TEXT,
    ARGS,
    NOW,
    PAGE,
    SCHEMA,
    Page,
    action,
    heads,
    html_of,
    lines_between_markers,
    read,
    text_of,
)

UNCERTAIN = {
    "kind": ActionKind.UNCERTAIN,
    "title": "What became of pay_invoice?",
    "allowed_decisions": (Verdict.RETRY, Verdict.DONE, Verdict.FAILED),
}
LIMIT = {
    "kind": ActionKind.LIMIT,
    "tool": "limit:tool_calls",
    "title": "Go on?",
    "args": {"limit": "tool_calls", "used": 100},
    "args_schema": {},
    "allowed_decisions": (Verdict.APPROVE, Verdict.REJECT),
}
TRIGGER: dict[str, Any] = LIMIT | {
    "tool": FAILURES,
    "title": "“Morning” failed 3 times in a row and is paused. Let it go on?",
    "args": {"limit": "failures", "used": 3, "trigger": "Morning", "error": "It broke."},
    "why": "The last time: It broke. Approve lets it fire at its next time again; Reject switches it off.",
}
CHARACTERS_THAT_ARE_TOO_MANY = 100_000


def _request(asked: Action, **changed: Any) -> bytes:
    told: dict[str, Any] = {"title": "Paper", "may_decide": True, "page": PAGE} | changed
    data: bytes = request(heads(), asked, **told).data
    return data


def _collapsed(text: str) -> str:
    return " ".join(text.split())


# -- requests --------------------------------------------------------------------------------------------


def test_the_text_of_a_request_begins_with_the_line_to_write_above() -> None:
    assert text_of(_request(action())).split("\n")[0] == "=== Please write your answer above this line ==="
    assert Page(html_of(_request(action()))).text.strip().startswith("=== Please write your answer above")


def test_the_arguments_stand_as_lines_between_the_markers_in_both_parts() -> None:
    data = _request(action())
    lines = ["vendor: Northwind Paper", "amount: 120", "note: Invoice 2291"]
    assert lines_between_markers(text_of(data))[:3] == lines
    inside = re.search(r"\[\[ begin values \]\](.*)\[\[ end values \]\]", html_of(data), re.DOTALL)
    assert inside is not None
    assert re.findall(r"<div[^>]*>([^<]+)</div>", inside[1])[:3] == lines


@pytest.mark.parametrize("letter", ["a", "é", "漢", "="])
def test_a_line_of_values_is_never_broken_or_wrapped(letter: str) -> None:
    args = {"note": f"{letter * 40} " * 100 + "end"}
    data = _request(action(args=args))
    assert lines_between_markers(text_of(data)) == [f"note: {args['note']}"]
    assert max(map(len, data.split(b"\r\n"))) <= 78


@pytest.mark.parametrize("letter", ["a", "é", "漢", "=", "> "])
def test_the_lines_survive_being_quoted_in_an_answer(letter: str) -> None:
    args = {"first": letter * 30, "second  one": f"two  {letter}", "third": [letter, {"a": None}]}
    data = _request(action(args=args))
    quoted = "".join(f"> {line}\n" for line in text_of(data).split("\n"))
    assert lines_between_markers(re.sub("^> ", "", quoted, flags=re.MULTILINE)) == write({}, args)
    # Replies that are written in HTML keep the elements, and their text part is made from them.
    of_html = [line for line in Page(html_of(data)).text.split("\n") if line]
    assert lines_between_markers("\n".join(of_html)) == write({}, args)


def test_a_request_says_which_action_it_is_and_why() -> None:
    text = text_of(_request(action()))
    for told in (
        "Run pay_invoice?",
        "Conversation: Paper",
        "Tool: pay_invoice of ledger",
        "Skill: expenses",
        "Asked by: Maria",
        "What it does: Pays an open invoice.",
    ):
        assert f"\n{told}\n" in text


def test_what_is_asked_beside_tools_says_itself_what_it_is_about() -> None:
    data = _request(action(**LIMIT, why="Approve allows 100 more."))
    assert "\n\nApprove allows 100 more.\n\n" in text_of(data)
    assert "Approve allows 100 more." in html_of(data)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, "Answer this mail with: Approve or Reject: your reason"),
        (
            {"allowed_decisions": (Verdict.APPROVE, Verdict.REJECT, Verdict.RESPOND)},
            "Answer this mail with: Approve, Reject: your reason or Respond: your text",
        ),
        (UNCERTAIN, "Answer this mail with: Retry, Done or Failed"),
        (LIMIT, "Answer this mail with: Approve or Reject: your reason"),
        ({"allowed_decisions": (Verdict.REJECT,)}, "Answer this mail with: Reject: your reason"),
    ],
)
def test_a_request_says_how_to_answer(changed: dict[str, Any], said: str) -> None:
    data = _request(action(**changed))
    assert f"\n{said}\n" in text_of(data)
    assert said.replace("with:", "with") in _collapsed(Page(html_of(data)).text)


@pytest.mark.parametrize(
    ("changed", "is_said"), [({}, True), (UNCERTAIN, False), (LIMIT, False), ({"args": {}}, False)]
)
def test_changing_values_is_explained_where_it_counts(changed: dict[str, Any], is_said: bool) -> None:
    data = _request(action(**changed))
    how = "To change something, edit the values between the two marked lines, in your answer, "
    how += "or in what it quotes and then write nothing else."
    assert (how in _collapsed(text_of(data))) is is_said
    assert (how in html_of(data)) is is_said


def test_a_limit_shows_no_arguments_and_a_call_without_them_says_so() -> None:
    assert "values ]]" not in text_of(_request(action(**LIMIT)))
    assert "It takes no arguments." not in text_of(_request(action(**LIMIT)))
    assert "It takes no arguments." in text_of(_request(action(args={})))


def test_what_is_offered_is_what_is_allowed() -> None:
    asked = action(**UNCERTAIN)
    assert request(heads(), asked, title="", may_decide=True).offered == asked.allowed_decisions


def test_who_may_not_decide_is_offered_nothing_and_told_who_does() -> None:
    made = request(heads(), action(), title="Paper", may_decide=False, page=PAGE, deadline=NOW)
    assert made.offered == ()
    assert "It waits for Ada or Bob." in text_of(made.data)
    assert "Waits for Ada or Bob" in html_of(made.data)
    for body in (text_of(made.data), html_of(made.data)):
        assert "Answer this mail" not in body
        assert "To change" not in body
        assert "decide on" not in body
    assert lines_between_markers(text_of(made.data)) == write(SCHEMA, ARGS)


@pytest.mark.parametrize(
    "args",
    [
        {"note": "x" * CHARACTERS_THAT_ARE_TOO_MANY},
        {f"name {n}": n for n in range(3_000)},
        {"note": "漢" * (CHARACTERS_THAT_ARE_TOO_MANY // 3)},
    ],
)
def test_arguments_too_long_for_a_mail_are_not_shown_in_part_and_nothing_is_offered(
    args: dict[str, Any],
) -> None:
    made = request(heads(), action(args=args), title="Paper", may_decide=True, page=PAGE)
    assert made.offered == ()
    assert len(made.data) < 20_000
    for body in (text_of(made.data), Page(html_of(made.data)).text):
        assert "The arguments are too long for a mail" in body
        assert "Approve" not in body
        assert "values ]]" not in body
    assert Page(html_of(made.data)).links == [PAGE]


def test_a_request_is_never_so_long_that_clients_cut_it() -> None:
    for length in range(20_000, 60_000, 2_500):
        assert len(html_of(_request(action(args={"note": "x" * length}))).encode()) < 102_000


@pytest.mark.parametrize(
    "args",
    [
        {"note": "a [[ end values ]] b"},
        {"note": "a\n[[ BEGIN  values ]]\namount: 1\n[[end values]]"},
        {"note": ["=== Please write your answer above this line ==="]},
    ],
)
def test_arguments_that_imitate_a_marker_are_shown_and_not_offered_for_changing(args: dict[str, Any]) -> None:
    made = request(heads(), action(args=args, args_schema={}), title="Paper", may_decide=True)
    assert made.offered == (Verdict.APPROVE, Verdict.REJECT)
    (line,) = lines_between_markers(text_of(made.data))
    assert re.search(r"\\x(?:5b|50)", line)
    seen = Page(html_of(made.data)).text
    assert re.search(r"\\x(?:5b|50)", seen)
    assert not imitates(seen.split("===", 2)[2])  # behind the real one


@pytest.mark.parametrize(
    "text",
    ["[[ begin values ]]", "[[ *begin* values ]]", "[\\[ begin\nvalues ]]", "[[ b&#101;gin values ]&#93;"],
)
def test_an_answer_cannot_imitate_a_marker(text: str) -> None:
    data = answer(heads(), f"{text}\n\namount: 1")
    assert not imitates(text_of(data))
    assert not imitates(Page(html_of(data)).text)
    assert "values" in Page(html_of(data)).text


def test_the_deadline_is_told_in_the_zone_of_the_date() -> None:
    data = _request(action(), deadline=datetime(2027, 6, 18, 8, 14, tzinfo=UTC))
    assert "expires on Fri 18 Jun 2027, 10:14 CEST" in _collapsed(text_of(data))
    assert "expires on Fri 18 Jun 2027, 10:14 CEST" in html_of(data)


def test_what_cannot_be_seen_in_an_argument_is_written_out_in_both_parts() -> None:
    data = _request(action(args={"note": "a\xa0b\u202ec"}, args_schema={}))
    assert "\u202e" not in text_of(data) + html_of(data)
    assert r"a\xa0b\u202ec" in html_of(data)


def test_several_spaces_and_lines_are_shown_as_they_are() -> None:
    html = html_of(_request(action(args={"note": "a  b\n  c"})))
    assert "a&nbsp; b<br>&nbsp; c" in html


# -- confirmations ---------------------------------------------------------------------------------------


def _decided(**changed: Any) -> Action:
    return action(**({"decided_by": "Ada", "decided_via": "email", "decided_at": NOW} | changed))


def test_a_confirmation_repeats_what_was_understood_and_what_changed() -> None:
    edited = _decided(
        state=ActionState.EDITED,
        decision=Verdict.EDIT,
        final_args={"vendor": "Contoso", "amount": 120, "items": []},
    )
    data = confirmation(heads(), edited, title="Paper", page=PAGE)
    text = text_of(data)
    assert text.startswith("Approved with changes by Ada by email\n---")
    assert "\nvendor: Contoso\n    was: Northwind Paper\n" in text
    assert "\namount: 120\nnote: left out\n    was: Invoice 2291\n" in text
    seen = _collapsed(Page(html_of(data)).text)
    assert "vendor Contoso was: Northwind Paper amount 120" in seen


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"state": ActionState.APPROVED, "decision": Verdict.APPROVE}, "Approved by Ada by email"),
        (
            {"state": ActionState.REJECTED, "decision": Verdict.REJECT, "decided_via": "slack"},
            "Rejected by Ada in Slack",
        ),
        ({"state": ActionState.RESPONDED, "decision": Verdict.RESPOND}, "Answered by Ada by email"),
        ({"state": ActionState.RESOLVED, "decision": Verdict.RETRY}, "Retry chosen by Ada by email"),
        ({"state": ActionState.RESOLVED, "decision": Verdict.DONE}, "Marked as done by Ada by email"),
        ({"state": ActionState.EXPIRED, "decided_by": None}, "Expired: nobody decided in time"),
        (
            {"state": ActionState.WITHDRAWN, "decided_by": None},
            "Withdrawn: the work it belongs to was stopped",
        ),
    ],
)
def test_a_confirmation_says_how_it_ended(changed: dict[str, Any], said: str) -> None:
    data = confirmation(heads(), _decided(**changed), title="Paper")
    assert text_of(data).startswith(said)
    assert said in html_of(data)


def test_a_confirmation_repeats_reason_and_response() -> None:
    rejected = _decided(
        state=ActionState.REJECTED, decision=Verdict.REJECT, reason="Too dear.\nAsk <Contoso>."
    )
    data = confirmation(heads(), rejected, title="Paper")
    assert "Reason:\n  | Too dear.\n  | Ask <Contoso>.\n" in text_of(data)
    assert "Too dear.<br>Ask &lt;Contoso&gt;." in html_of(data)


def test_a_limit_that_was_raised_tells_that_the_run_goes_on() -> None:
    done = _decided(**LIMIT, state=ActionState.APPROVED, decision=Verdict.APPROVE)
    assert "The run goes on." in text_of(confirmation(heads(), done, title="Paper"))


def test_a_question_about_a_trigger_says_what_failed_and_what_either_answer_does() -> None:
    for said in (text_of(_request(action(**TRIGGER))), html_of(_request(action(**TRIGGER)))):
        flat = _collapsed(said)
        assert TRIGGER["title"] in flat
        assert TRIGGER["why"] in flat
        assert "run ends" not in flat
        assert "takes no arguments" not in flat


@pytest.mark.parametrize(
    ("state", "verdict", "said"),
    [
        (ActionState.APPROVED, Verdict.APPROVE, "The trigger fires again at its next time."),
        (ActionState.REJECTED, Verdict.REJECT, "The trigger is switched off."),
        (ActionState.WITHDRAWN, None, "Withdrawn: the trigger was switched on or off, or removed"),
    ],
)
def test_an_answer_about_a_trigger_tells_what_becomes_of_it(
    state: ActionState, verdict: Verdict | None, said: str
) -> None:
    done = _decided(**TRIGGER, state=state, decision=verdict)
    assert said in _collapsed(text_of(confirmation(heads(), done, title="Paper")))


@pytest.mark.parametrize(
    ("asked", "about"),
    [
        ({}, "pay_invoice"),
        ({"kind": ActionKind.UNCERTAIN, "title": "What became of pay_invoice?"}, "pay_invoice"),
        (
            {"kind": ActionKind.LIMIT, "title": "Go on? The run used its $2.00"},
            "The run used its $2.00",
        ),
        (
            {"kind": ActionKind.LIMIT, "title": "“a. b?” failed 3 times and is paused. Let it go on?"},
            "“a. b?” failed 3 times and is paused",
        ),
        ({"kind": ActionKind.LIMIT, "title": "More?"}, "More"),
    ],
)
def test_a_headline_about_what_was_decided_asks_nothing(asked: dict[str, Any], about: str) -> None:
    done = _decided(**asked, state=ActionState.APPROVED, decision=Verdict.APPROVE)
    assert words.decided(done) == f"Approved: {about}"
    for data in (
        confirmation(heads(), done, title="Paper"),
        confirmation(heads(), done, title="Paper", headline=words.decided(done)),
    ):
        first, _, rest = text_of(data).partition("\n---")
        assert not first.endswith("?")
        assert f"\nQuestion: {done.title}\n" in rest
        heading = re.search(r"<h1[^>]*>(.*)</h1>", html_of(data))
        assert heading is not None
        assert unescape(heading[1]).removeprefix("Approved: ") == about


def test_whoever_decided_reads_first_what_was_understood_and_then_who_decided() -> None:
    approved = _decided(state=ActionState.APPROVED, decision=Verdict.APPROVE, final_args=ARGS)
    data = confirmation(heads(), approved, title="Paper", page=PAGE, headline="Approved: pay_invoice")
    assert text_of(data).startswith(
        "Approved: pay_invoice\n---------------------\n\nApproved by Ada by email\n\n"
        "It runs with exactly these values.\n\nvendor: Northwind Paper\namount: 120\nnote: Invoice 2291\n"
    )
    seen = _collapsed(Page(html_of(data)).text)
    assert "Approved by Ada by email Approved: pay_invoice It runs with exactly these values. vendor" in seen


def test_words_that_asked_are_bounded_harmless_and_marked_when_shortened() -> None:
    began = Beginning(words=(("Maria", "Pay this\n[[ end values ]]\n" + "x\n" * 50), ("Tom", "and more")))
    data = request(
        heads(), action(), title="Paper", may_decide=True, page=PAGE, thread_page=f"{PAGE}/t", began=began
    ).data
    text = text_of(data)
    assert "\nAsked with these words:\n  | Pay this\n  | [\\x5b end values ]]\n  | x\n" in text
    assert text.count("  | x") == 10
    assert f"Only their beginning is shown here. All of it:\n{PAGE}/t\n" in text
    assert lines_between_markers(text)
    page = Page(html_of(data), links=[PAGE, f"{PAGE}/t"])
    assert page.wrong == []
    assert f"{PAGE}/t" in page.links
    short = request(
        heads(),
        action(),
        title="Paper",
        may_decide=True,
        began=Beginning(words=(("Maria", "Pay."), ("Tom", "Today."))),
    ).data
    assert "Asked with these words:\n  | Pay.\n  |\n  | Tom: Today.\n" in re.sub(
        r" +\n", "\n", text_of(short)
    )
    assert "Only their beginning" not in text_of(short)


def test_a_confirmation_of_what_is_too_long_says_so() -> None:
    done = _decided(
        state=ActionState.APPROVED,
        decision=Verdict.APPROVE,
        args={"note": "x" * CHARACTERS_THAT_ARE_TOO_MANY},
        final_args={"note": "x" * CHARACTERS_THAT_ARE_TOO_MANY},
    )
    assert "too long for a mail (100,000 characters)" in text_of(confirmation(heads(), done, title="Paper"))


# -- answers and notices ---------------------------------------------------------------------------------


def test_an_answer_is_markdown_as_html_and_as_text() -> None:
    data = answer(heads(), "# Prices\n\n- **Paper**: 4 [here](https://a.example)", page=PAGE)
    assert "Prices\n======\n\n- *Paper*: 4 here (https://a.example)\n" in text_of(data)
    page = Page(html_of(data), links=["https://a.example", PAGE])
    assert page.wrong == []
    assert "Paper: 4 here" in _collapsed(page.text)


def test_an_answer_without_text_says_so() -> None:
    assert "(There is no text in this answer.)" in text_of(answer(heads(), " \n"))


def test_a_long_answer_goes_along_whole_as_a_file() -> None:
    whole = "Paragraph of words. \ud800\n\n" * 6_000
    data = answer(heads(), whole, attachments=[Attachment("a.csv", "text/csv", b"1,2")])
    first, second = read(data).iter_attachments()
    assert first.get_filename() == "answer.md"
    assert first.get_content() == whole.replace("\ud800", "\ufffd")
    assert second.get_filename() == "a.csv"
    for body in (text_of(data), html_of(data)):
        assert "This is only the beginning." in _collapsed(body)
        assert "answer.md" in body
        assert len(body) < 20_000


def test_a_notice_quotes_what_it_is_about() -> None:
    data = notice(
        heads(), "Please say it more clearly", "Nothing was changed.\n\nApprove?", quoted="<b>ok</b>\nmaybe"
    )
    assert text_of(data) == (
        "Please say it more clearly\n\nNothing was changed.\n\nApprove?\n\n  | <b>ok</b>\n  | maybe\n"
    )
    assert "&lt;b&gt;ok&lt;/b&gt;<br>maybe" in html_of(data)


# -- whatever they hold ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make", [lambda: answer(heads(), "x"), lambda: _request(action())], ids=["answer", "request"]
)
def test_the_same_values_make_the_same_bytes(make: Any) -> None:
    assert make() == make()


def _check(data: bytes, links: Sequence[str] | None = (PAGE,)) -> None:
    mail = read(data)
    assert mail.get_content_type() == "multipart/alternative"
    assert [part.get_content_type() for part in mail.iter_parts()] == ["text/plain", "text/html"]
    assert all(len(line) <= 78 for line in data.split(b"\r\n"))
    assert b"\r" not in data.replace(b"\r\n", b"")
    assert b"\n" not in data.replace(b"\r\n", b"")
    text, html = text_of(data), html_of(data)
    assert Page(html, links).wrong == []
    for body in (text, html):
        assert not re.search(
            "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]", body
        )


@given(ANY_ARGS, ANY_TEXT, ANY_TEXT)
@settings(derandomize=True, deadline=None, max_examples=150)
def test_no_argument_breaks_a_request(args: dict[str, Any], title: str, why: str) -> None:
    asked = action(
        args=args, args_schema={}, title=title, why=why, requested_by=why, skill=title, approvers=(why,)
    )
    for may_decide in (True, False):
        made = request(heads(subject=title), asked, title=why, may_decide=may_decide, page=PAGE)
        _check(made.data)
        text, seen = text_of(made.data), Page(html_of(made.data)).text
        assert [
            line for line in text.split("\n") if "write your answer above" in line and line.startswith("===")
        ] == [text.split("\n")[0]]
        if args:
            assert lines_between_markers(text) == [harmless(line) for line in write({}, args)]
        if Verdict.EDIT in made.offered:
            lines = [line for line in seen.split("\n") if line]
            assert lines_between_markers("\n".join(lines)) == write({}, args)


@given(st.dictionaries(st.text("abc", min_size=1, max_size=5), ANY_TEXT, max_size=4))
@settings(derandomize=True, deadline=None, max_examples=100)
def test_every_argument_is_shown_in_full(args: dict[str, Any]) -> None:
    seen = "".join(
        Page(html_of(_request(action(args=args, args_schema={})))).text.replace("\\x5b", "[").split()
    )
    for field in fields({}, args):
        text = shown(field).text
        assert "".join(text.replace("\\x5b", "[").split()) in seen.replace("\\x3d", "=") or "===" in text


@given(ANY_TEXT, ANY_TEXT)
@settings(derandomize=True, deadline=None, max_examples=150)
def test_no_text_breaks_an_answer_a_notice_or_a_confirmation(first: str, second: str) -> None:
    _check(answer(heads(subject=second), first, page=PAGE), links=None)
    _check(notice(heads(), first, second, quoted=first, page=PAGE))
    ended = _decided(
        state=ActionState.EDITED,
        decision=Verdict.EDIT,
        reason=first,
        response=second,
        decided_by=second,
        final_args={first: second},
    )
    _check(confirmation(heads(), ended, title=first, page=PAGE))


@pytest.mark.parametrize(
    ("filename", "expected"),
    [
        ("a.csv", "a.csv"),
        ("../../etc/passwd", "passwd"),
        ("C:\\x\\a.csv", "a.csv"),
        ('a"\r\nBcc: x@y.example', "a' Bcc: x@y.example"),
        ("ünïcödé 漢字.csv", "ünïcödé 漢字.csv"),
        (".hidden", "hidden"),
        ("", "file"),
        ("n" * 500, "n" * 119 + "…"),
    ],
)
def test_a_file_has_a_harmless_name(filename: str, expected: str) -> None:
    mail = read(answer(heads(), "x", attachments=[Attachment(filename, "text/csv", b"1,2")]))
    (file,) = mail.iter_attachments()
    assert file.get_filename() == expected
    assert mail["Bcc"] is None
    assert mail.get_content_type() == "multipart/mixed"


@pytest.mark.parametrize(
    ("media_type", "expected"),
    [
        ("text/csv", "text/csv"),
        ("application/vnd.ms-excel", "application/vnd.ms-excel"),
        ("message/rfc822", "application/octet-stream"),
        ("multipart/mixed", "application/octet-stream"),
        ("text/html\r\nX: y", "application/octet-stream"),
        ("", "application/octet-stream"),
    ],
)
def test_a_file_keeps_its_bytes_and_a_type_that_may_be_encoded(media_type: str, expected: str) -> None:
    mail = read(answer(heads(), "x", attachments=[Attachment("a", media_type, b"\x00\xff\r\n1")]))
    (file,) = mail.iter_attachments()
    assert file.get_content_type() == expected
    assert file.get_payload(decode=True) == b"\x00\xff\r\n1"
