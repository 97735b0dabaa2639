from __future__ import annotations

import json
import re
import stat
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from langchain_core.messages import AIMessage
from langchain_core.tools import StructuredTool
from mcp import Client

from pizzabot.agent.demo_model import DemoModel
from pizzabot.demo.expenses_book import Book
from pizzabot.demo.expenses_server import build_server
from pizzabot.demo.home import TRY, write_demo_home

SKILL = Path(__file__).parents[3] / "skills" / "expenses" / "SKILL.md"


def skill() -> dict[str, Any]:
    header: dict[str, Any] = yaml.safe_load(SKILL.read_text(encoding="utf-8").split("---\n")[1])
    return header


def test_a_demo_home_is_written(tmp_path: Path) -> None:
    home = tmp_path / "new" / "home"
    write_demo_home(home, sys.executable, 'Zoë "Z" O\'Hara')
    settings = tomllib.loads((home / "pizzabot.toml").read_text(encoding="utf-8"))
    assert settings == {
        "model": "demo:offline",
        "people": [{"name": 'Zoë "Z" O\'Hara', "role": "owner", "emails": ["you@demo.example"]}],
        "web": {"port": 8642},
        "email": {
            "address": "pizza@demo.example",
            "trusted_authserv_ids": ["mx.demo.example"],
            "listen": {"port": 8025},
            "smtp": {"host": "127.0.0.1", "port": 8026, "security": "none"},
        },
    }
    servers = json.loads((home / ".mcp.json").read_text())["mcpServers"]
    assert servers == {
        "expenses": {
            "command": sys.executable,
            "args": ["-m", "pizzabot.demo.expenses_server"],
            "env": {"EXPENSES_BOOK": str(home / "expenses.csv")},
        }
    }
    assert [expense.amount for expense in Book(home / "expenses.csv").expenses()] == [
        "12.40",
        "63.00",
        "19.99",
    ]
    assert {stat.S_IMODE(path.stat().st_mode) for path in home.iterdir()} == {0o600}


def test_what_is_there_is_never_changed(tmp_path: Path) -> None:
    (tmp_path / "pizzabot.toml").write_text("mine")
    write_demo_home(tmp_path, "python3")
    (tmp_path / ".mcp.json").write_text("mine too")
    (tmp_path / "expenses.csv").unlink()
    write_demo_home(tmp_path, "python3")
    assert (tmp_path / "pizzabot.toml").read_text() == "mine"
    assert (tmp_path / ".mcp.json").read_text() == "mine too"
    assert len(Book(tmp_path / "expenses.csv").expenses()) == 3


EXPECTED = [
    (
        "add_expense",
        {"amount": 42.5, "note": "taxi to the airport", "currency": "EUR", "tags": ["travel"]},
    ),
    ("add_expense", {"amount": 18, "note": "lunch with a customer", "currency": "USD"}),
    ("list_expenses", {}),
    ("total_expenses", {}),
]


async def offered(tmp_path: Path) -> list[StructuredTool]:
    async with Client(build_server(Book(tmp_path / "expenses.csv"))) as client:
        tools = (await client.list_tools()).tools
    return [
        StructuredTool(
            name=f"expenses_{tool.name}", description=tool.description or "", args_schema=tool.input_schema
        )
        for tool in tools
    ]


@pytest.mark.parametrize(("sentence", "expected"), list(zip(TRY, EXPECTED, strict=True)))
async def test_each_sentence_to_try_leads_to_its_tool(
    sentence: str, expected: tuple[str, dict[str, Any]], tmp_path: Path
) -> None:
    root = DemoModel().bind_tools([task_tool()])
    delegated = (await root.ainvoke(sentence)).tool_calls
    assert [call["args"] for call in delegated] == [{"description": sentence, "subagent_type": "expenses"}]
    worker = DemoModel().bind_tools([*(await offered(tmp_path))])
    answer: AIMessage = await worker.ainvoke(delegated[0]["args"]["description"])
    (call,) = answer.tool_calls
    named = dict(call["args"])
    assert ("date" in named) == ("yesterday" in sentence)
    named.pop("date", None)
    assert (call["name"], named) == (f"expenses_{expected[0]}", expected[1])


def task_tool() -> StructuredTool:
    workers = f"- expenses: {skill()['description']}\n- crm-note: Notes on customers."
    return StructuredTool(
        name="task",
        description=f"Available agent types:\n{workers}",
        args_schema={"type": "object", "properties": {"description": {"type": "string"}}},
    )


async def test_the_skill_gates_exactly_the_tools_that_change_the_book(tmp_path: Path) -> None:
    async with Client(build_server(Book(tmp_path / "expenses.csv"))) as client:
        tools = (await client.list_tools()).tools
    changing = {f"mcp:expenses:{t.name}" for t in tools if t.annotations and not t.annotations.read_only_hint}
    header = skill()
    assert header["tools"] == "mcp:expenses:*"
    assert set(header["interruptOn"]) == changing
    assert header["interruptOn"]["mcp:expenses:add_expense"] == {
        "allowedDecisions": ["approve", "edit", "reject"]
    }
    assert header["name"] == SKILL.parent.name


def test_the_skill_names_only_tools_that_exist() -> None:
    body = SKILL.read_text(encoding="utf-8").split("---\n", 2)[2]
    assert set(re.findall(r"\b[a-z]+_expenses?\b", body)) == {
        "list_expenses",
        "total_expenses",
        "add_expense",
        "remove_expense",
    }
