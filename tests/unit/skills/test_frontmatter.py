"""Is a SKILL.md understood as its author meant it, and refused with its line when that is not certain?"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from pizzabot.errors import ConfigError
from pizzabot.skills.frontmatter import SkillFile, parse_skill, read_skill

PUBLIC = Path(__file__).parents[2] / "corpus" / "skills" / "public"
FOLDERS = sorted(path.name for path in PUBLIC.iterdir())
PATH = Path("/skills/expenses/SKILL.md")

HEAD = "name: expenses\ndescription: Files expenses.\n"


def parse(header: str, body: str = "Body.") -> SkillFile:
    return parse_skill(f"---\n{header}---\n{body}".encode(), PATH)


def refusal(header: str | bytes) -> str:
    """The line an author reads, without the folder."""
    raw = header if isinstance(header, bytes) else f"---\n{header}---\n".encode()
    with pytest.raises(ConfigError) as caught:
        parse_skill(raw, PATH)
    text = str(caught.value)
    assert text.isprintable()
    assert len(text) < 500
    return text.removeprefix("/skills/expenses/")


# What public collections write


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_shape_of_public_collections_is_understood(folder: str) -> None:
    skill = read_skill(PUBLIC / folder / "SKILL.md")
    assert skill.id == folder
    assert skill.name
    assert skill.description
    assert (skill.tools, skill.gates) == ((), ())


def test_there_are_enough_shapes() -> None:
    assert len(FOLDERS) >= 12


MEANT = {
    "literal": (
        "literal",
        'Plans a week of meals.\n\nExamples:\n- "three dinners without meat"\n- cost: at most 40 euros',
    ),
    "unicode": (
        "会議の準備 ☕",
        "会議の前に資料をまとめる。「準備」「アジェンダ」と言われたときに使用する。",
    ),
    "unquoted-colon": (
        "unquoted-colon",
        "Shows usage figures and failure rates. Usage: /unquoted-colon [--since N] [--fails]",
    ),
    "unquoted-colon-over-lines": (
        "unquoted-colon-over-lines",
        "Turns a reading into a conclusion. "
        "Use when: somebody states a number without a source. Not for: opinions",
    ),
    "unquoted-hint": ("unquoted-hint", "[DEV] Reviews a domain model for names that mean two things"),
    "Other_Name.v2": ("Company Portrait", "Keeps a long-lived profile of a company up to date."),
}


@pytest.mark.parametrize("folder", MEANT)
def test_names_and_descriptions_are_read_as_meant(folder: str) -> None:
    skill = read_skill(PUBLIC / folder / "SKILL.md")
    assert (skill.name, skill.description) == MEANT[folder]


@pytest.mark.parametrize(
    ("folder", "display_name"),
    [("nested-metadata", "Customer replies"), ("crlf", "From Windows"), ("plain", "plain")],
)
def test_the_display_name_stands_in_metadata_or_is_the_name(folder: str, display_name: str) -> None:
    assert read_skill(PUBLIC / folder / "SKILL.md").display_name == display_name


@pytest.mark.parametrize(
    ("folder", "body"),
    [
        ("crlf", "First line\nSecond line"),
        ("bom", "Body"),
        ("empty-keys", ""),
        ("licensed", "# Tables\n\n---\n\nA line of three hyphens in the body is a rule, not a header."),
    ],
)
def test_the_body_is_what_follows_the_header(folder: str, body: str) -> None:
    assert read_skill(PUBLIC / folder / "SKILL.md").body == body


# Tools


@pytest.mark.parametrize(
    "written",
    [
        "tools: [mcp:ledger:list, mcp:ledger:pay_*, builtin:eval]\n",
        "tools:\n  - mcp:ledger:list\n  - mcp:ledger:pay_*\n  - builtin:eval\n",
        "tools: mcp:ledger:list, mcp:ledger:pay_*,builtin:eval\n",
        "tools: mcp:ledger:list mcp:ledger:pay_* builtin:eval\n",
        "mcp: mcp:ledger:list, mcp:ledger:pay_*, builtin:eval,\n",
        "tools: mcp:ledger:list\nmcp: [mcp:ledger:pay_*, mcp:ledger:list, builtin:eval]\n",
    ],
)
def test_tools_are_a_list_or_a_line(written: str) -> None:
    assert parse(HEAD + written).tools == ("mcp:ledger:list", "mcp:ledger:pay_*", "builtin:eval")


@pytest.mark.parametrize(
    "written", ["", "tools:\n", "tools: []\n", "tools: ''\n", "allowed-tools: Bash, Read\n"]
)
def test_a_skill_may_have_no_tools(written: str) -> None:
    assert parse(HEAD + written).tools == ()


@pytest.mark.parametrize(
    ("written", "place"),
    [
        ("tools: {a: b}\n", "SKILL.md:4: tools: must be a list"),
        ("tools: 5\n", "SKILL.md:4: tools: must be a list"),
        ("tools: true\n", "SKILL.md:4: tools: must be a list"),
        ("tools:\n  - mcp:a:b\n  - 5\n", "SKILL.md:6: tools: holds something that is no text"),
        ("tools:\n  - mcp:a:b\n  - mcp:a\n", "SKILL.md:6: tools: "),
        ("tools: [mcp:a:b, Read]\n", "SKILL.md:4: tools: "),
        ("tools: mcp__a__b\n", "SKILL.md:4: tools: "),
        ("mcp: mcp:a:*x\n", "SKILL.md:4: mcp: "),
        ("tools: [builtin:evil]\n", "SKILL.md:4: tools: "),
        ("tools: [mcp:a:b, 'mcp:a:\\n']\n", "SKILL.md:4: tools: "),
        (f"tools: [mcp:a:{'x' * 60_000}]\n", "SKILL.md:4: tools: "),
    ],
)
def test_something_that_is_no_tool_makes_the_skill_broken(written: str, place: str) -> None:
    assert refusal(HEAD + written).startswith(place)


# Gates


@pytest.mark.parametrize(
    ("written", "ask", "decisions"),
    [
        ("true", True, ("approve", "edit", "reject")),
        ("yes", True, ("approve", "edit", "reject")),
        ("false", False, ("approve", "edit", "reject")),
        ("{allowedDecisions: [approve, reject]}", True, ("approve", "reject")),
        ("{allowedDecisions: [respond, respond]}", True, ("respond",)),
        (
            "{allowedDecisions: [approve, edit, reject, respond]}",
            True,
            ("approve", "edit", "reject", "respond"),
        ),
    ],
)
def test_a_gate_asks_or_loosens_and_names_its_decisions(
    written: str, ask: bool, decisions: tuple[str, ...]
) -> None:
    [gate] = parse(HEAD + f"interruptOn:\n  mcp:ledger:pay_*: {written}\n").gates
    assert (str(gate.reference), gate.ask, gate.decisions) == ("mcp:ledger:pay_*", ask, decisions)


@pytest.mark.parametrize(
    ("written", "line"),
    [
        ("interruptOn:\n", 4),
        ("interruptOn: {}\n", 4),
        ("interruptOn: []\n", 4),
        ("interruptOn: true\n", 4),
        ("interruptOn: mcp:a:b\n", 4),
        ("interruptOn: [mcp:a:b]\n", 4),
        ("interruptOn:\n  mcp:a:b:\n", 5),
        ("interruptOn:\n  mcp:a:b: 1\n", 5),
        ("interruptOn:\n  mcp:a:b: 'true'\n", 5),
        ("interruptOn:\n  mcp:a:b: ture\n", 5),
        ("interruptOn:\n  mcp:a:b: [approve]\n", 5),
        ("interruptOn:\n  mcp:a:b: {}\n", 5),
        ("interruptOn:\n  mcp:a:c: true\n  mcp:a:b: {allowedDecision: [approve]}\n", 6),
        ("interruptOn:\n  mcp:a:b: {alloweddecisions: [approve]}\n", 5),
        ("interruptOn:\n  mcp:a:b: {allowedDecisions: [approve], approvers: [Ada]}\n", 5),
        ("interruptOn:\n  mcp:a:b: {allowedDecisions: []}\n", 5),
        ("interruptOn:\n  mcp:a:b: {allowedDecisions: approve}\n", 5),
        ("interruptOn:\n  mcp:a:b: {allowedDecisions: [aprove]}\n", 5),
        ("interruptOn:\n  mcp:a:b: {allowedDecisions: [Approve]}\n", 5),
        ("interruptOn:\n  mcp:a:b: {allowedDecisions: [[approve]]}\n", 5),
        ("interruptOn:\n  mcp:a:b: {allowedDecisions: null}\n", 5),
        ("interruptOn:\n  pay_invoice: true\n", 5),
        ("interruptOn:\n  mcp:a: true\n", 5),
        ("interruptOn:\n  mcp:a:*b*: true\n", 5),
        ("interruptOn:\n  5: true\n", 4),
        ("interruptOn:\n  mcp:a:b: true\n  mcp:a:b: false\n", 6),
        ("interruptOn:\n  mcp:a:b: true\n  ' mcp:a:b': false\n", 6),
        ("interruptOn:\n  mcp:a:b: true\ninterruptOn:\n  mcp:a:c: true\n", 6),
        ("interruptOn:\n  mcp:a:b true\n", 4),
        ("interruptOn:\n\tmcp:a:b: true\n", 5),
    ],
)
def test_a_gate_that_is_not_understood_makes_the_skill_broken(written: str, line: int) -> None:
    assert refusal(HEAD + written).startswith(f"SKILL.md:{line}: ")


@pytest.mark.parametrize(
    "key",
    [
        "interrupton",
        "InterruptOn",
        "interrupt_on",
        "interrupt-on",
        "interruptsOn",
        "interuptOn",
        "interruptOn ",
    ],
)
def test_a_misspelt_gate_makes_the_skill_broken(key: str) -> None:
    assert "did you mean interruptOn?" in refusal(HEAD + f'"{key}":\n  mcp:a:b: true\n')


def test_a_gate_inside_metadata_makes_the_skill_broken() -> None:
    assert "move it out" in refusal(HEAD + "metadata:\n  interruptOn:\n    mcp:a:b: true\n")


def test_nothing_is_mended_in_a_file_with_gates() -> None:
    mendable = "name: expenses\ndescription: Use when: money\n"
    assert parse(mendable).description == "Use when: money"
    assert "is not YAML" in refusal(mendable + "interruptOn:\n  mcp:a:b: true\n")
    assert "is not YAML" in refusal(mendable + "# interruptOn was here\n")


def test_tools_are_never_mended() -> None:
    assert "is not YAML" in refusal("name: x\ndescription: Use when: money\ntools: mcp:a:b: c\n")


# The rest of the header


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("name: x\n", "SKILL.md:1: description: is missing; add description: …"),
        ("description: x\n", "SKILL.md:1: name: is missing; add name: …"),
        ("name: x\ndescription:\n", "SKILL.md:3: description: is missing; add description: …"),
        ("name: x\ndescription: '  '\n", "SKILL.md:3: description: must be text; write it in quotes"),
        ("name: 5\ndescription: x\n", "SKILL.md:2: name: must be text; write it in quotes"),
        ("name: x\ndescription: [a]\n", "SKILL.md:3: description: must be text; write it in quotes"),
        ("", "SKILL.md:1: name: is missing; add name: …"),
        ("- a\n", "SKILL.md:2: has a header without keys; name and description are required"),
        ("just words\n", "SKILL.md:2: has a header without keys; name and description are required"),
        (HEAD + "a: 1\na: 2\n", "SKILL.md:5: has a header that is not YAML: 'a' stands twice"),
        (HEAD + "a: &x 1\nb: *x\n", "SKILL.md:5: has a header that is not YAML: aliases are not allowed"),
        (HEAD + "a: !!python/object/apply:os.system [ls]\n", "SKILL.md:4: has a header that is not YAML: "),
        (HEAD + "a: [1\ntools: [\n", "SKILL.md:6: has a header that is not YAML: "),
        (HEAD + "? [a, b]\n: 1\n", "SKILL.md:4: has a header that is not YAML: a key must be a word"),
        (HEAD + "<<: {name: y}\n", "SKILL.md:4: has a header that is not YAML: "),
        (HEAD + "when: 2026-13-45\n", "SKILL.md:2: has a header that is not YAML we can read"),
        (HEAD + "\n\na: x\0y\n", "SKILL.md:6: has a character in its header that YAML forbids"),
        (HEAD + "a: " + "[" * 5000 + "\n", "SKILL.md:2: has a header that is not YAML we can read"),
    ],
)
def test_a_header_that_is_not_understood_names_line_and_reason(header: str, expected: str) -> None:
    assert refusal(header).startswith(expected)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"", "SKILL.md:1: has no header; the first line must be ---"),
        (b"# Title\n", "SKILL.md:1: has no header; the first line must be ---"),
        (b"--- \nname: x\n", "SKILL.md:1: has a header without end; close it with a line ---"),
        (b"----\n", "SKILL.md:1: has no header; the first line must be ---"),
        (b"---\nname: x\n\n# \xff\n---\n", "SKILL.md:4: is not UTF-8 text; save it as UTF-8"),
        ("---\nname: x\n---\n".encode("utf-16"), "SKILL.md:1: is not UTF-8 text; save it as UTF-8"),
        (
            b"---\n" + b"a" * 1_000_000,
            "SKILL.md: is larger than 1 MB; move the long parts into files beside it",
        ),
        (b"---\na: " + b"b" * 70_000 + b"\n---\n", "SKILL.md:1: has a header of more than 64 kB"),
    ],
)
def test_bytes_that_are_no_skill_are_refused(raw: bytes, expected: str) -> None:
    assert refusal(raw).startswith(expected)


def test_an_alias_bomb_is_refused_at_once() -> None:
    bomb = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1},*a{n - 1}]\n" for n in range(1, 60))
    started = time.monotonic()
    assert "aliases are not allowed" in refusal(HEAD + bomb)
    assert time.monotonic() - started < 2


@pytest.mark.parametrize("folder", ["a b", "ä", "x" * 65, "a:b"])
def test_a_folder_name_that_is_no_id_is_refused(folder: str) -> None:
    with pytest.raises(ConfigError, match="whose name is no id"):
        parse_skill(f"---\n{HEAD}---\n".encode(), Path("/skills") / folder / "SKILL.md")


def test_a_pipe_in_the_place_of_the_file_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "SKILL.md")
    with pytest.raises(ConfigError, match="is not a regular file"):
        read_skill(tmp_path / "SKILL.md")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read_skill(tmp_path / "SKILL.md")
