"""Do pages read times and costs as people do, lead only to our own pages, and put runs in their place?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pizzabot.adapters.web.pages.actions import _what_ran, card, is_checkbox
from pizzabot.adapters.web.pages.inbox import back_to
from pizzabot.adapters.web.pages.login import Attempts
from pizzabot.adapters.web.pages.threads import timeline
from pizzabot.adapters.web.pages.times import Times, bar, money, size, took
from pizzabot.adapters.web.pages.visit import csrf_of, local_path
from pizzabot.adapters.web.refusals import TooMany

from pizzabot.approvals.forms import fields
from tests.fakes.clock import FakeClock

# -- times -----------------------------------------------------------------------------------------------

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
SECOND, MINUTE, HOUR, DAY = (timedelta(**{unit: 1}) for unit in ("seconds", "minutes", "hours", "days"))


@pytest.mark.parametrize(
    ("age", "read"),
    [
        (timedelta(), "just now"),
        (MINUTE - SECOND, "just now"),
        (-HOUR, "just now"),  # two clocks never agree
        (MINUTE, "1 min ago"),
        (2 * MINUTE - SECOND, "1 min ago"),
        (HOUR - SECOND, "59 min ago"),
        (HOUR, "1 h ago"),
        (DAY - SECOND, "23 h ago"),
        (DAY, "1 d ago"),
        (7 * DAY - SECOND, "6 d ago"),
        (7 * DAY, "23 Feb"),
        (60 * DAY, "1 Jan"),
        (61 * DAY, "31 Dec 2025"),
        (1000 * DAY, "6 Jun 2023"),
    ],
    ids=str,
)
def test_how_long_ago_something_was(age: timedelta, read: str) -> None:
    assert Times(NOW, "UTC").ago((NOW - age).isoformat()) == read


@pytest.mark.parametrize(
    ("now", "moment", "zone", "read"),
    [
        # The same two moments, on two sides of a new year.
        ("2026-01-20T12:00:00+00:00", "2025-12-31T23:30:00+00:00", "UTC", "31 Dec 2025"),
        ("2026-01-20T12:00:00+00:00", "2025-12-31T23:30:00+00:00", "Europe/Amsterdam", "1 Jan"),
        ("2026-01-20T12:00:00+00:00", "2026-01-01T04:00:00+00:00", "America/New_York", "31 Dec 2025"),
        ("2025-12-31T23:30:00+00:00", "2025-12-01T00:00:00+00:00", "Asia/Tokyo", "1 Dec 2025"),
    ],
)
def test_a_date_is_that_of_the_readers_zone(now: str, moment: str, zone: str, read: str) -> None:
    assert Times(datetime.fromisoformat(now), zone).ago(moment) == read


@pytest.mark.parametrize(
    ("moment", "zone", "read"),
    [
        ("2026-11-30T01:04:59+00:00", "Europe/Amsterdam", "Mon 30 Nov 2026, 02:04 CET"),
        ("2026-11-30T01:04:59+00:00", "UTC", "Mon 30 Nov 2026, 01:04 UTC"),
        ("2026-11-30T01:04:59+00:00", "America/New_York", "Sun 29 Nov 2026, 20:04 EST"),
        ("2026-11-30T01:04:59+00:00", "Asia/Kolkata", "Mon 30 Nov 2026, 06:34 IST"),
        ("2026-11-30T01:04:59+00:00", "Pacific/Kiritimati", "Mon 30 Nov 2026, 15:04 +14"),
        # A summer time begins, and ends with an hour that is there twice.
        ("2026-03-29T00:59:59+00:00", "Europe/Amsterdam", "Sun 29 Mar 2026, 01:59 CET"),
        ("2026-03-29T01:00:00+00:00", "Europe/Amsterdam", "Sun 29 Mar 2026, 03:00 CEST"),
        ("2026-10-25T00:30:00+00:00", "Europe/Amsterdam", "Sun 25 Oct 2026, 02:30 CEST"),
        ("2026-10-25T01:30:00+00:00", "Europe/Amsterdam", "Sun 25 Oct 2026, 02:30 CET"),
        # Offsets of the moment itself do not matter.
        ("2026-11-30T03:04:59+02:00", "UTC", "Mon 30 Nov 2026, 01:04 UTC"),
        ("2026-11-30T01:04:59.123456+00:00", "UTC", "Mon 30 Nov 2026, 01:04 UTC"),
    ],
)
def test_a_moment_in_full_is_that_of_the_readers_zone(moment: str, zone: str, read: str) -> None:
    assert Times(NOW, zone).full(moment) == read


@pytest.mark.parametrize(
    ("milliseconds", "read"),
    [
        (None, ""),
        (0, "0 ms"),
        (85, "85 ms"),
        (999, "999 ms"),
        (1000, "1.0 s"),
        (1234, "1.2 s"),
        (99_900, "99.9 s"),
        (100_000, "2 min"),
        (180_000, "3 min"),
        (3_600_000, "60 min"),
    ],
)
def test_how_long_something_took(milliseconds: int | None, read: str) -> None:
    assert took(milliseconds) == read


@pytest.mark.parametrize(
    ("count", "read"),
    [
        (0, "0 B"),
        (812, "812 B"),
        (999, "999 B"),
        (1000, "1.0 KB"),
        (4100, "4.1 KB"),
        (999_900, "999.9 KB"),
        (1_000_000, "1.0 MB"),
        (26_214_400, "26.2 MB"),
    ],
)
def test_how_large_a_file_is(count: int, read: str) -> None:
    assert size(count) == read


@pytest.mark.parametrize(
    ("usd", "read"),
    [
        (None, "price unknown"),
        (0, "$0.00"),
        (0.0, "$0.00"),
        (0.0042, "$0.0042"),
        (0.1, "$0.10"),
        (1.2, "$1.20"),
        (1234.5, "$1234.50"),
    ],
)
def test_what_something_cost(usd: float | None, read: str) -> None:
    assert money(usd) == read


def test_a_cost_that_is_there_never_reads_as_none() -> None:
    assert money(0.00001) != "$0.0000"


# -- ways back -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/status",
        "/?view=unread&q=a%20b",
        "/threads/01a22968-afdf-7442-bd3e-eadb2bffc4ec?before=5#m4",
        "/?q=https://evil.example",
        "/" + "x" * 1999,
    ],
    ids=lambda path: path[:30],
)
def test_a_page_of_ours_is_a_way_back(path: str) -> None:
    assert local_path(path) == path


@pytest.mark.parametrize(
    "path",
    [
        None,
        "",
        "status",
        "//evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "https://evil.example/",
        "javascript:alert(1)",
        "/\t/evil.example",
        "/x\n",
        "\n/x",
        "/x y",
        "/ü",
        "/x\x7f",
        "/" + "x" * 2000,
        "/login",
        "/login?code=x",
        "/logout",
        "/events",
        "/static/app.js",
        "/api/me",
    ],
    ids=lambda path: str(path)[:30],
)
def test_everything_else_leads_to_the_inbox(path: str | None) -> None:
    assert local_path(path) == "/"


@settings(deadline=None)
@given(st.one_of(st.text(), st.text("/\\.:@?#%\t\n evil").map(lambda text: "/" + text)))
@example("/.//evil.example")
@example("/..//evil.example/%2e%2e")
@example("/;@evil.example")
def test_no_text_is_a_way_to_another_site(text: str) -> None:
    for path in (local_path(text), back_to(text, done="read")):
        assert path.startswith("/")
        assert not path.startswith(("//", "/\\"))
        assert path.isascii()
        assert path.isprintable()
        assert " " not in path
        assert urlsplit(urljoin("http://here.example:8642/threads/x", path)).netloc == "here.example:8642"


@pytest.mark.parametrize(
    ("sent_from", "back"),
    [
        ("/", "/?done=read&thread=t"),
        ("/?view=unread&q=a+b&cursor=1.2", "/?view=unread&q=a+b&cursor=1.2&done=read&thread=t"),
        ("/?done=delete&thread=x&other=1", "/?done=read&thread=t"),
        ("/?view=a&view=b", "/?view=a&done=read&thread=t"),
        ("/threads/x?view=unread", "/?done=read&thread=t"),
        ("//evil.example?view=unread", "/?done=read&thread=t"),
        ("https://evil.example/?view=unread", "/?done=read&thread=t"),
        ("", "/?done=read&thread=t"),
        ("/?q=%0d%0aX:y", "/?q=%0D%0AX%3Ay&done=read&thread=t"),
    ],
)
def test_a_form_of_the_inbox_leads_back_to_its_page_of_it(sent_from: str, back: str) -> None:
    assert back_to(sent_from, done="read", thread="t") == back


@given(st.text(), st.text())
def test_a_token_tells_nothing_of_its_secret(one: str, other: str) -> None:
    token = csrf_of(one)
    assert len(token) == 32
    assert (token == csrf_of(other)) == (one == other)


# -- what a thread shows ---------------------------------------------------------------------------------


def message(number: int, role: str, run: str | None) -> dict[str, Any]:
    return {"id": str(number), "role": role, "run_id": run}


def action(name: str, run: str) -> dict[str, Any]:
    return {"id": name, "run_id": run, "args": {}, "args_schema": {}}


def step(name: str, run: str) -> dict[str, Any]:
    return {"name": name, "run_id": run}


def order(items: list[dict[str, Any]]) -> list[str]:
    """A timeline in short: `m1`, or `r1(steps; actions)`, with `?` for a run that is not there."""
    return [
        f"m{item['message']['id']}"
        if "message" in item
        else f"{item['run']['id'] if item['run'] else '?'}"
        f"({' '.join(row['name'] for row in item['activity'])};"
        f"{' '.join(row['id'] for row in item['actions'])})"
        for item in items
    ]


@pytest.mark.parametrize(
    ("messages", "runs", "actions", "activity", "expected"),
    [
        ([], [], [], [], []),
        ([("user", "r1")], ["r1"], [], [], ["m0", "r1(;)"]),
        ([("user", "r1"), ("assistant", "r1")], ["r1"], [], [], ["m0", "r1(;)", "m1"]),
        (
            [("user", "r1"), ("notice", "r1"), ("assistant", "r1")],
            ["r1"],
            [("a", "r1")],
            [("s", "r1"), ("t", "r1")],
            ["m0", "r1(s t;a)", "m1", "m2"],
        ),
        (
            [("user", "r1"), ("assistant", "r1"), ("user", "r2"), ("user", "r2"), ("assistant", "r2")],
            ["r1", "r2"],
            [("a", "r2")],
            [("s", "r1"), ("t", "r2")],
            ["m0", "r1(s;)", "m1", "m2", "m3", "r2(t;a)", "m4"],
        ),
        # held messages are of no run, and a run that said nothing comes last
        ([("user", "r1"), ("user", None)], ["r1"], [("a", "r1")], [], ["m0", "m1", "r1(;a)"]),
        # a notice of no run
        ([("user", "r1"), ("notice", None)], ["r1"], [], [], ["m0", "m1", "r1(;)"]),
        # what waits of a run that is on another page
        ([("user", "r1"), ("assistant", "r1")], ["r1"], [("a", "r9")], [], ["m0", "r1(;)", "m1", "?(;a)"]),
        # activity of runs that are not shown is not shown
        ([("user", "r1")], ["r1"], [], [("s", "r9")], ["m0", "r1(;)"]),
        # the answer of a run whose row is gone
        ([("assistant", "r0")], [], [], [], ["m0"]),
        # the page begins in the middle of a run
        ([("assistant", "r1"), ("assistant", "r1")], ["r1"], [], [("s", "r1")], ["r1(s;)", "m0", "m1"]),
    ],
)
def test_a_run_stands_before_its_first_word(
    messages: list[tuple[str, str | None]],
    runs: list[str],
    actions: list[tuple[str, str]],
    activity: list[tuple[str, str]],
    expected: list[str],
) -> None:
    made = timeline(
        [message(number, role, run) for number, (role, run) in enumerate(messages)],
        [{"id": run} for run in runs],
        [action(*row) for row in actions],
        [step(*row) for row in activity],
    )
    assert order(made) == expected


@pytest.mark.parametrize(
    ("args", "is_short"),
    [
        ({}, True),
        ({"a": "x" * 1999}, True),
        ({"a": "x" * 2000}, False),
        ({"x" * 2001: 1}, False),
        ({str(n): "x" * 10 for n in range(300)}, False),
        ({"a": "x\n" * 29}, True),
        ({"a": "x\n" * 30}, False),
    ],
    ids=range(7),
)
def test_a_card_shows_all_arguments_or_leads_to_the_form(args: dict[str, Any], is_short: bool) -> None:
    assert card({"args": args, "args_schema": {}})["is_short"] is is_short


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ("a text", "a text"),
        ("", '""'),
        ("42", '"42"'),
        ("true", '"true"'),
        ("null", '"null"'),
        (" a", '" a"'),
        ("a\t", '"a\\t"'),
        ('"a"', '"\\"a\\""'),
        (42, "42"),
        (42.0, "42.0"),
        (True, "true"),
        (None, "null"),
        (["a", "b"], "a\nb"),
        (["a", "1"], '[\n  "a",\n  "1"\n]'),
        ({"a": 1}, '{\n  "a": 1\n}'),
        ("\u202ea", "\\u202ea"),
    ],
    ids=str,
)
def test_a_text_that_is_read_looks_like_no_other_value(value: Any, read: str) -> None:
    (argument,) = card({"args": {"a": value}, "args_schema": {}})["shown"]
    assert argument.text == read


SCHEMA = {"properties": {"a": {"type": "string"}, "n": {"type": "number"}, "b": {"type": "boolean"}}}


@pytest.mark.parametrize(
    ("args", "final", "expected"),
    [
        ({"a": "x"}, None, [("a", "x", "x")]),
        ({"a": "x"}, {"a": "x"}, [("a", "x", "x")]),
        ({"a": "x"}, {"a": "y"}, [("a", "x", "y")]),
        ({"a": "x", "n": 1}, {"a": "x"}, [("a", "x", "x"), ("n", "1", None)]),  # left out
        ({"a": "x"}, {"a": "x", "n": 1}, [("a", "x", "x"), ("n", None, "1")]),  # put in
        ({"a": "x"}, {"a": "x", "new": 5}, [("a", "x", "x"), ("new", None, "5")]),
        ({"n": 42}, {"n": 42.0}, [("n", "42", "42.0")]),
        ({"n": 42}, {"n": "42"}, [("n", "42", '"42"')]),
        ({"a": ""}, {}, [("a", '""', None)]),
        ({"a": ""}, {"a": ""}, [("a", '""', '""')]),
        ({"a": None}, {"a": "null"}, [("a", "null", '"null"')]),
        ({}, {}, []),
    ],
)
def test_what_ran_stands_beside_what_was_proposed(
    args: dict[str, Any], final: dict[str, Any] | None, expected: list[tuple[str, str | None, str | None]]
) -> None:
    found = {"args_schema": SCHEMA} | ({"final_args": final} if final is not None else {})
    ran = _what_ran(fields(SCHEMA, args), found)
    read = [((before or after).name, before and before.text, after and after.text) for before, after in ran]
    assert read == expected


@pytest.mark.parametrize(
    ("args", "types", "expected"),
    [
        ({"b": True}, "boolean", True),
        ({"b": False}, "boolean", True),
        ({}, "boolean", False),  # what was not given is neither yes nor no
        ({"b": True}, ["boolean", "null"], False),
        ({"b": "true"}, "boolean", False),
    ],
)
def test_a_checkbox_says_yes_or_no_where_nothing_else_can_be_said(
    args: dict[str, Any], types: str | list[str], expected: bool
) -> None:
    (field,) = fields({"properties": {"b": {"type": types}}}, args)
    assert is_checkbox(field) is expected


# -- wrong logins ----------------------------------------------------------------------------------------


def test_an_address_is_refused_when_it_was_wrong_too_often(clock: FakeClock) -> None:
    attempts = Attempts(per_address=2, in_all=100)
    for _ in range(2):
        attempts.fail("a", clock.now())
    with pytest.raises(TooMany):
        attempts.fail("a", clock.now())
    attempts.fail("b", clock.now())


@pytest.mark.parametrize(("seconds", "is_open"), [(0, False), (59.999, False), (60, True), (3600, True)])
def test_a_wrong_login_counts_for_a_minute(clock: FakeClock, seconds: float, is_open: bool) -> None:
    attempts = Attempts(per_address=1)
    attempts.fail("a", clock.now())
    clock.advance(seconds=seconds)
    if is_open:
        attempts.fail("a", clock.now())
        assert len(attempts.failed) == 1
        return
    with pytest.raises(TooMany):
        attempts.fail("a", clock.now())


def test_all_addresses_together_have_a_bound(clock: FakeClock) -> None:
    attempts = Attempts(per_address=10, in_all=5)
    for number in range(5):
        attempts.fail(str(number), clock.now())
    with pytest.raises(TooMany):
        attempts.fail("new", clock.now())


def test_what_is_remembered_of_wrong_logins_is_bounded(clock: FakeClock) -> None:
    attempts = Attempts()
    refused = 0
    for number in range(10_000):
        try:
            attempts.fail(str(number), clock.now())
        except TooMany:
            refused += 1
    assert (len(attempts.failed), refused) == (100, 9900)


@pytest.mark.parametrize(
    ("used", "allowed", "read"),
    [
        (0, 20, "░░░░░░░░░░"),
        (1.9, 20, "░░░░░░░░░░"),
        (16.1, 20, "████████░░"),
        (19.99, 20, "█████████░"),
        (20, 20, "██████████"),
        (35, 20, "██████████"),
    ],
)
def test_a_bar_is_full_only_when_nothing_is_left(used: float, allowed: float, read: str) -> None:
    assert bar(used, allowed) == read


def test_the_card_of_a_limit_says_its_sentence_and_no_raw_arguments() -> None:
    row = {
        "kind": "limit",
        "why": "Approve allows $0.05 more.",
        "args": {"allowance": 0.05},
        "args_schema": {},
    }
    assert (card(row)["shown"], card(row)["is_short"]) == ([], True)
    assert [arg.name for arg in card(row | {"kind": "tool"})["shown"]] == ["allowance"]
