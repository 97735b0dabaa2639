"""The table of commands: help at once, `--home` in either place, a heading in the docs for each command."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pizzabot import __version__
from pizzabot.cli.table import COMMANDS, GROUPS, Command, help_text, home_behind, quick_answer

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs" / "commands.md"
SERVER = {"langgraph", "langchain", "deepagents", "dbos", "sqlalchemy", "mcp", "starlette", "uvicorn"}
HEAVY = SERVER | {"httpx", "typer", "rich", "pydantic"}


def test_help_names_every_command() -> None:
    text = help_text()
    for command in COMMANDS:
        assert f"\n  {command.words} " in text
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.words)
def test_every_command_has_a_function_and_its_help(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    from pizzabot.cli import main

    module, _, function = command.target.partition(":")
    assert callable(getattr(importlib.import_module(f"pizzabot.cli.{module}"), function))
    assert main([*command.words.split(), "--help"]) == 0
    assert command.summary.split(".")[0] in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.words)
def test_the_docs_have_a_heading_for_every_command(command: Command) -> None:
    headings = re.findall(r"^### `pizzabot ([^`]*)`", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    assert any(heading == command.words or heading.startswith(command.words + " ") for heading in headings)


def test_the_docs_name_no_command_that_is_not_there() -> None:
    known = {command.words for command in COMMANDS}
    for heading in re.findall(r"^### `pizzabot ([^`]*)`", DOCS.read_text(encoding="utf-8"), re.MULTILINE):
        words = heading.split()
        assert words[0] in known or " ".join(words[:2]) in known


@pytest.mark.parametrize("folder", ["pizzabot", "adapters", "docs", "templates"])
def test_every_command_that_a_text_names_is_there(folder: str) -> None:
    known = {command.words for command in COMMANDS}
    files = [file for file in (ROOT / folder).rglob("*") if file.suffix in (".py", ".md", ".j2", ".toml")]
    assert files
    for file in files:
        for found in re.findall(r"`pizzabot ([a-z][^`]*)`", file.read_text(encoding="utf-8")):
            first, *more = found.split()
            either = more[0].split("|") if more else []
            told = {first} if first in known else {f"{first} {word}" for word in either}
            assert told, f"{file}: {found} is a group"
            assert told <= known, f"{file}: {found}"


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (["--home", "x", "ask", "text"], ["ask", "--home", "x", "text"]),
        (["--home=x", "ask", "text"], ["ask", "--home=x", "text"]),
        (["--home", "x", "mcp", "list"], ["mcp", "list", "--home", "x"]),
        (["--home", "x", "--home", "y", "inbox"], ["inbox", "--home", "y"]),
        (["ask", "--home", "x"], ["ask", "--home", "x"]),
        (["ask", "--", "--home"], ["ask", "--", "--home"]),
        (["--home", "x", "mcp"], ["mcp"]),
        (["--home", "x", "mcp", "--help"], ["mcp", "--home", "x", "--help"]),
        (["mcp", "--help", "--home", "x"], ["mcp", "--help", "--home", "x"]),
        (["mcp", "--home", "x", "list"], ["mcp", "list", "--home", "x"]),
        (["--home=x", "mcp", "--home=y", "list"], ["mcp", "list", "--home=y"]),
        (["mcp", "--home", "x"], ["mcp"]),
        (["mcp", "--home"], ["mcp", "--home"]),
        (["--home", "x"], []),
        (["--home"], ["--home"]),
        (["--homely", "ask"], ["--homely", "ask"]),
        (["--home", "ask", "inbox"], ["inbox", "--home", "ask"]),
        ([], []),
    ],
)
def test_home_before_the_command_is_home_behind_it(given: list[str], meant: list[str]) -> None:
    assert home_behind(given) == meant


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize(
    "given",
    [
        "--home x GROUP --help",
        "--home=x GROUP --help",
        "GROUP --home x --help",
        "GROUP --help --home x",
        "GROUP --help",
    ],
)
def test_a_group_helps_wherever_the_home_stands(
    group: str, given: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from pizzabot.cli import main

    assert main(given.replace("GROUP", group).split()) == 0
    said = capsys.readouterr()
    assert GROUPS[group] in said.out
    assert said.err == ""


@pytest.mark.parametrize("given", [[], ["--help"], ["-h"], ["--home", "x"], ["--home", "x", "--help"]])
def test_help_needs_no_parser(given: list[str]) -> None:
    assert quick_answer(given) == help_text()


@pytest.mark.parametrize("given", [["--version"], ["version"], ["--home", "x", "--version"]])
def test_the_version_needs_no_parser(given: list[str]) -> None:
    assert quick_answer(given) == f"pizzabot {__version__}\n"


def test_other_commands_are_not_answered_from_the_table() -> None:
    assert quick_answer(["ask", "--help"]) is None


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_loads_nothing_heavy(option: str) -> None:
    program = (
        "import sys; from pizzabot.cli import main; code = main(sys.argv[1:]);"
        "print(*sys.modules, file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", program, option], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stderr.split()}
    assert "pizzabot" in loaded
    assert loaded.isdisjoint(HEAVY)


def test_a_command_loads_no_server() -> None:
    program = (
        "import sys; from pizzabot.cli import main; main(['--home', '/nowhere', 'ask', 'x']);"
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert loaded.isdisjoint(SERVER)
