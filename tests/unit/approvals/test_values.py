"""Lines of values: what is written comes back the same, a change is typed, and nothing is guessed."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pizzabot.approvals.values import MISSING, read, write
from pizzabot.messages import Json

INVOICE = {"vendor": "Northwind Paper", "amount": 120, "currency": "EUR", "note": "Invoice 2291"}
INVOICE_SCHEMA = {
    "type": "object",
    "properties": {
        "vendor": {"type": "string"},
        "amount": {"type": "number", "maximum": 1000},
        "currency": {"enum": ["EUR", "USD"]},
        "note": {"type": "string"},
    },
    "required": ["vendor", "amount"],
}
SERVICE = {"service": "checkout", "replicas": 3, "notify": True}
LINES = "\n".join(write({}, INVOICE))


def edited(old: str, new: str, lines: str = LINES) -> str:
    assert old in lines
    return lines.replace(old, new)


def changes(
    lines: str, args: dict[str, Json] | None = None, schema: dict[str, Any] | None = None
) -> dict[str, Json]:
    found = read(lines, schema or {}, args or INVOICE)
    assert not found.errors, found.errors
    assert {k: v for k, v in found.args.items() if k not in found.changed} == {
        k: v for k, v in (args or INVOICE).items() if k not in found.changed
    }
    return {name: found.args[name] for name in found.changed}


def errors(
    lines: str, args: dict[str, Json] | None = None, schema: dict[str, Any] | None = None
) -> dict[str, str]:
    found = dict(read(lines, schema or {}, args or INVOICE).errors or {})
    assert found
    return found


# -- writing ---------------------------------------------------------------------------------------------


def test_a_line_is_the_name_a_colon_and_the_value() -> None:
    assert write({}, INVOICE) == [
        "vendor: Northwind Paper",
        "amount: 120",
        "currency: EUR",
        "note: Invoice 2291",
    ]


def test_the_schema_gives_the_order() -> None:
    assert [line[0] for line in write({"properties": {"b": {}, "a": {}, "c": {}}}, {"a": 1, "b": 2})] == [
        "b",
        "a",
    ]


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("plain text: with a colon", "plain text: with a colon"),
        ("x" * 500, "x" * 500),
        ("5", '"5"'),
        ("", '""'),
        (" x", '" x"'),
        ("x ", '"x "'),
        ("a\nb", r'"a\nb"'),
        ("true", '"true"'),
        ("null", '"null"'),
        ("NaN", '"NaN"'),
        ('"quoted"', r'"\"quoted\""'),
        ("[x", '"[x"'),
        ("a\u202eb", r'"a\u202eb"'),
        ("a\tb", r'"a\tb"'),
        ("a  b", '"a  b"'),
        ("größe", "größe"),
        (5, "5"),
        (1.5, "1.5"),
        (True, "true"),
        (None, "null"),
        ([1, "a"], '[1, "a"]'),
        ({"a": 1}, '{"a": 1}'),
    ],
)
def test_a_string_is_plain_unless_it_could_be_misread_and_all_else_is_json(value: Json, written: str) -> None:
    assert write({}, {"x": value}) == [f"x: {written}"]


@pytest.mark.parametrize("name", ["we:ird", " x", "", "a\nb", '"a"', "- a", "{a", "1. a"])
def test_a_name_that_could_be_misread_is_json(name: str) -> None:
    (line,) = write({}, {name: 1})
    assert line[0] == '"'
    assert json.loads(line.removesuffix(": 1")) == name


# -- reading ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("schema", [{}, INVOICE_SCHEMA])
def test_what_came_back_unchanged_is_no_change(schema: dict[str, Any]) -> None:
    found = read(LINES, schema, INVOICE)
    assert (found.args, found.changed, found.errors, found.missing) == (INVOICE, (), {}, ())


@pytest.mark.parametrize("schema", [{}, INVOICE_SCHEMA])
@pytest.mark.parametrize(
    "lines",
    [
        edited("120", "95"),
        edited("amount: 120", "Amount: 95"),
        edited("amount: 120", "AMOUNT:95"),
        edited("amount: 120", "amount:\u00a095"),
        edited("amount: 120", "amount： 95"),
        edited("amount: 120", "amount：９５"),
        edited("amount: 120", "amount : 95"),
        edited("amount: 120", "*amount:* 95"),
        "\n\n" + edited("120", "95").replace("\n", "\n\n"),
        edited("120", "95").replace("\n", "\r\n"),
        "\n".join("- " + x for x in edited("120", "95").split("\n")),
        "\n".join("• " + x for x in edited("120", "95").split("\n")),
        "\n".join("   " + x for x in edited("120", "95").split("\n")),
        edited("amount: 120", "amount: 95\namount: 95"),
        edited("amount: 120", "amount:\n95"),
        "\n".join(reversed(edited("120", "95").split("\n"))),
        json.dumps(INVOICE | {"amount": 95}),
        json.dumps(INVOICE | {"amount": 95}, indent=2),
        json.dumps(INVOICE | {"amount": 95}).replace('"', "”"),
        json.dumps(INVOICE | {"amount": 95}).replace(" ", "\u00a0"),
    ],
)
def test_a_changed_number_is_a_number_however_it_is_laid_out(lines: str, schema: dict[str, Any]) -> None:
    found = changes(lines, schema=schema)
    assert found == {"amount": 95}
    assert type(found["amount"]) is int


@pytest.mark.parametrize(
    ("old", "new", "change"),
    [
        ("note: Invoice 2291", "note: paid late", {"note": "paid late"}),
        ("note: Invoice 2291", "note: it: was: late", {"note": "it: was: late"}),
        ("note: Invoice 2291", "note:", {"note": ""}),
        ("note: Invoice 2291", 'note: ""', {"note": ""}),
        ("note: Invoice 2291", r'note: "a\nb"', {"note": "a\nb"}),
        ("note: Invoice 2291", 'note: "5"', {"note": "5"}),
        ("note: Invoice 2291", "note: 5", {"note": "5"}),
        ("note: Invoice 2291", "note: see https://x.example/a?b=c", {"note": "see https://x.example/a?b=c"}),
        ("amount: 120", "amount: 95.50", {"amount": 95.5}),
        ("currency: EUR", "currency: USD", {"currency": "USD"}),
        ("vendor: Northwind Paper", "vendor:   Northwind \u00a0 Paper ", {}),
        ("vendor: Northwind Paper", "vendor: northwind paper", {"vendor": "northwind paper"}),
    ],
)
def test_a_text_may_be_changed_to_any_text(old: str, new: str, change: dict[str, Json]) -> None:
    assert changes(edited(old, new), schema=INVOICE_SCHEMA) == change


def test_a_value_that_a_program_wrapped_is_joined() -> None:
    long = "Invoice 2291, delivered on the second of October to the warehouse in Potsdam and checked at night"
    wrapped = long.replace("in Potsdam", "in\nPotsdam")
    assert changes(edited("Invoice 2291", wrapped)) == {"note": long}
    assert changes(f"note: {wrapped}", {"note": long}) == {}
    assert errors(edited("Invoice 2291", "Invoice\n2291 and more")) == {
        "note": "goes on over a line break, which may not be meant: 2291 and more"
    }


def test_lists_and_objects_are_json_also_over_lines() -> None:
    args = {"to": ["a@x", "b@x"], "about": {"id": 1}}
    assert changes('to: ["a@x"]\nabout: {"id": 2}', args) == {"to": ["a@x"], "about": {"id": 2}}
    assert changes('to: [\n  "a@x",\n  "b@x"\n]\nabout: {"id":\n1}', args) == {}
    assert "not JSON" in errors('to: ["a@x"\nabout: {"id": 1}', args)["to"]
    assert "not JSON" in errors('to: a@x\nabout: {"id": 1}', args)["to"]


@pytest.mark.parametrize("schema", [{}, INVOICE_SCHEMA])
@pytest.mark.parametrize(
    ("lines", "name", "said"),
    [
        (edited("amount: 120", 'amount: "95"'), "amount", "is not a number"),
        (edited("amount: 120", "amount: abc"), "amount", "is not a number"),
        (edited("amount: 120", "amount: 95 EUR"), "amount", "is not a number"),
        (edited("amount: 120", "amount: ~~120~~ 95"), "amount", "is not a number"),
        (edited("amount: 120", "amount: 1,000"), "amount", "is not a number; write 1.000 or 1000"),
        (edited("amount: 120", "amount: 1.000.000"), "amount", "is not a number"),
        (edited("amount: 120", "amount:"), "amount", "is needed; expected: number"),
        (edited("amount: 120", "amount: null"), "amount", "is not a number"),
        (
            edited("amount: 120", "amount: 95\namount: 950"),
            "amount",
            "stands there twice with different values",
        ),
        (edited("amount: 120\n", ""), "amount", MISSING),
        (edited("amount: 120", "amout: 95"), "amout", "is not among the values"),
        (LINES + "\nurgent: true", "urgent", "is not among the values"),
        ("hello\n" + LINES, "", "begin with a line that names none of them: hello"),
        (json.dumps(INVOICE | {"amount": "95"}), "amount", "is not a number"),
        (json.dumps(INVOICE | {"x": 1}), "x", "is not among the values"),
        (json.dumps({"vendor": "x"}), "amount", MISSING),
        (json.dumps(INVOICE)[:-1], "", "is not JSON"),
        (json.dumps(INVOICE)[:-1] + ', "amount": 1}', "", 'names the key "amount" twice'),
        ("", "vendor", MISSING),
    ],
)
def test_what_cannot_be_read_without_guessing_is_an_error(
    lines: str, name: str, said: str, schema: dict[str, Any]
) -> None:
    assert errors(lines, schema=schema)[name].startswith(said)


@pytest.mark.parametrize(
    ("written", "advice"),
    [("2.000", "write 2000 or 2"), ("1.250", "write 1250 or 1.25"), ("1.234", "write 1234 or 1.2340")],
)
def test_a_point_that_may_separate_thousands_is_asked_about(written: str, advice: str) -> None:
    schema = {"properties": {"amount": {"type": "number"}}}
    assert errors(f"amount: {written}", {"amount": 120}, schema) == {
        "amount": f"can be read in two ways; {advice}"
    }
    for plain in advice.removeprefix("write ").split(" or "):
        assert changes(f"amount: {plain}", {"amount": 120}, schema)
    assert changes(f"amount: {written}", {"amount": 0.125}, schema)


LINKS = {"to": "ada@example.com", "note": "It's at https://pay.example/a?b=c, see - or ask ada@example.com"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("ada@example.com", "ada@example.com<mailto:ada@example.com>"),
        ("ada@example.com", "ada@example.com <mailto:ada@example.com>"),
        ("ada@example.com", "[ada@example.com](mailto:ada@example.com)"),
        ("https://pay.example/a?b=c", "https://pay.example/a?b=c<https://pay.example/a?b=c>"),
        ("https://pay.example/a?b=c", "<https://pay.example/a?b=c>"),
        (
            "https://pay.example/a?b=c",
            "https://pay.example/a?b=c <https://safe.gate.example/?url=https%3A%2F%2Fpay.example%2Fa%3Fb%3Dc&d=1>",
        ),
        ("It's", "It’s"),
        (" - ", " – "),
    ],
)
def test_what_mail_programs_make_of_links_and_signs_is_no_change(old: str, new: str) -> None:
    lines = "\n".join(write({}, LINKS))
    assert lines != lines.replace(old, new)
    assert changes(lines.replace(old, new), LINKS) == {}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("ada@example.com", "eve@example.com <mailto:ada@example.com>"),
        ("ada@example.com", "ada@example.com <mailto:eve@example.com>"),
        ("https://pay.example/a", "https://pay.example/ab"),
        ("https://pay.example/a", "https://pay.example/a <https://evil.example>"),
        ("https://pay.example/a", "https://evil.example/?url=https://pay.example/a"),
    ],
)
def test_another_address_is_a_change_however_it_is_linked(old: str, new: str) -> None:
    lines = "\n".join(write({}, LINKS))
    assert changes(lines.replace(old, new), LINKS)


def test_a_change_must_fit_the_schema() -> None:
    assert errors(edited("120", "5000"), schema=INVOICE_SCHEMA) == {"amount": "must be 1000 or less"}
    assert errors(edited("EUR", "GBP"), schema=INVOICE_SCHEMA) == {
        "currency": "is not one of the choices: EUR, USD"
    }


def test_a_change_keeps_the_type_that_no_schema_names() -> None:
    assert (
        errors('{"service": "checkout", "replicas": "5", "notify": true}', SERVICE)["replicas"]
        == "is not a number"
    )
    assert (
        errors('{"service": 5, "replicas": 3, "notify": true}', SERVICE)["service"]
        == "is a number now and was a text"
    )
    assert errors("service: checkout\nreplicas: true\nnotify: true", SERVICE)["replicas"] == "is not a number"
    assert errors("x: {}", {"x": []})["x"] == "is an object now and was a list"


def test_names_that_differ_by_case_are_told_apart() -> None:
    args = {"A": 1, "a": 2}
    assert changes("A: 1\na: 3", args) == {"a": 3}


def test_only_a_cut_block_says_that_it_is_cut() -> None:
    assert read(edited("amount: 120\n", ""), {}, INVOICE).is_cut
    assert read("", {}, INVOICE).is_cut
    assert not read(edited("amount: 120\n", "").replace("EUR", "USD"), {}, INVOICE).is_cut
    assert not read(edited("120", "abc"), {}, INVOICE).is_cut
    assert not read(LINES, {}, INVOICE).is_cut


# -- whatever the arguments are --------------------------------------------------------------------------

_TEXT = st.text(max_size=12) | st.sampled_from(
    [
        *(
            "",
            " ",
            "a: b",
            "- a",
            "5",
            "true",
            "null",
            "a\nb",
            '"x"',
            "“x”",
            "[1]",
            "{",
            "a  b",
            "\u00a0",
            "\ud800",
            "\x00",
            "x" * 100,
        )
    ]
)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _TEXT,
    lambda x: st.lists(x, max_size=3) | st.dictionaries(_TEXT, x, max_size=3),
    max_leaves=6,
)
_ARGS = st.dictionaries(_TEXT, _JSON, min_size=1, max_size=5)


@settings(max_examples=400, deadline=None)
@given(_ARGS)
def test_any_arguments_come_back_as_they_went(args: dict[str, Json]) -> None:
    lines = write({}, args)
    assert all("\n" not in line and "\r" not in line for line in lines)
    found = read("\n".join(lines), {}, args)
    assert (found.args, found.changed, found.errors) == (args, (), {})


@settings(max_examples=200, deadline=None)
@given(_ARGS)
def test_respacing_is_never_a_change(args: dict[str, Json]) -> None:
    lines = ["  " + line.replace(" ", "\u00a0 ") + "  " for line in write({}, args)]
    found = read("\n\n".join(lines), {}, args)
    assert not found.changed
    assert not found.errors


_PAIR = st.one_of(
    st.tuples(st.text(max_size=20), st.text(max_size=20)),
    st.tuples(st.integers(), st.integers()),
    st.tuples(st.booleans(), st.booleans()),
    st.tuples(
        st.lists(st.integers(), min_size=1, max_size=4), st.lists(st.integers(), min_size=1, max_size=4)
    ),
)


@settings(max_examples=300, deadline=None)
@given(_PAIR)
def test_a_written_change_is_read_as_it_was_meant(pair: tuple[Json, Json]) -> None:
    before, after = pair
    found = read("\n".join(write({}, {"x": after, "y": 1})), {}, {"x": before, "y": 1})
    if isinstance(after, str) and " ".join(after.split()) == " ".join(str(before).split()):
        return  # white space alone is no change
    assert not found.errors
    assert found.args == {"x": after, "y": 1}


@settings(max_examples=300, deadline=None)
@given(_ARGS, st.lists(_TEXT | st.sampled_from(["x: 1", "{", "}", ":", "\n"]), max_size=8).map("\n".join))
def test_nothing_raises(args: dict[str, Json], lines: str) -> None:
    found = read(lines, {}, args)
    assert set(found.missing) <= set(found.errors or {})


@pytest.mark.parametrize(
    "lines",
    [
        "x\n" * 100000,
        "note: a\n" + "b\n" * 100000,
        "note: [\n" + "1,\n" * 100000,
        "amount: 1\n" * 50000,
        ":" * 250000,
        "note: " + "x" * 60 + "\n" + ("y" * 70 + "\n") * 3000,
        "{" * 200000,
        '"' * 200000,
        "- " * 100000,
        "*" * 200000,
        *("note: " + piece * 40000 for piece in ("www.", "a@", "[www.", "<https://", "[a@b](", "a@b<")),
    ],
)
def test_no_lines_take_long(lines: str) -> None:
    began = time.thread_time()
    read(lines, {}, INVOICE)
    assert time.thread_time() - began < 1  # second, of this thread's own work
