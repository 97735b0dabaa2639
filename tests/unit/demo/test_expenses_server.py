from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp_types import CallToolResult, TextContent

from pizzabot.demo.expenses_book import Book, BookError, Expense, amount_text
from pizzabot.demo.expenses_server import build_server
from tests.fakes.patience import PATIENCE_SECONDS


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "expenses.csv"


@asynccontextmanager
async def running(file: Path) -> AsyncIterator[Client]:
    """The server as a process of its own, as a home starts it."""
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "pizzabot.demo.expenses_server"], env={"EXPENSES_BOOK": str(file)}
    )
    async with asyncio.timeout(PATIENCE_SECONDS), Client(server, read_timeout_seconds=30) as client:
        yield client


def text(result: CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


def written(file: Path) -> str | None:
    return file.read_text(encoding="utf-8") if file.exists() else None


async def call(file: Path, name: str, **args: Any) -> tuple[bool, str]:
    async with Client(build_server(Book(file))) as client:
        result = await client.call_tool(name, args)
        return bool(result.is_error), text(result)


def today() -> str:
    return datetime.now(UTC).date().isoformat()


async def test_the_process_files_lists_totals_and_removes(file: Path) -> None:
    requests: list[tuple[str, dict[str, Any]]] = [
        ("list_expenses", {}),
        (
            "add_expense",
            {"amount": 42.5, "note": "taxi to the\nairport", "tags": ["travel", "two words"]},
        ),
        (
            "add_expense",
            {"amount": 1200, "note": "ラーメン", "currency": "JPY", "date": "2026-11-03"},
        ),
        ("add_expense", {"amount": 0.1, "note": 'tea, "green"'}),
        ("list_expenses", {}),
        ("list_expenses", {"month": "2026-11"}),
        ("total_expenses", {}),
        ("total_expenses", {"currency": "JPY"}),
        ("remove_expense", {"number": 2}),
        ("total_expenses", {"currency": "JPY"}),
    ]
    async with running(file) as client:
        told = [text(await client.call_tool(name, args)) for name, args in requests]
    taxi, ramen, tea = (
        f"{today()}  42.50 EUR  taxi to the airport [travel, two-words]",
        "2026-11-03  1200 JPY  ラーメン",
        f'{today()}  0.10 EUR  tea, "green"',
    )
    everything = f"1. {taxi}\n2. {ramen}\n3. {tea}"
    november = everything if today().startswith("2026-11") else f"2. {ramen}"
    assert told == [
        "No expenses in the book.",
        f"Filed as expense 1: {taxi}",
        f"Filed as expense 2: {ramen}",
        f"Filed as expense 3: {tea}",
        everything,
        november,
        "Total: 42.60 EUR, 1200 JPY (3 expenses).",
        "Total: 1200 JPY (1 expenses).",
        f"Removed expense 2: {ramen}",
        "Total: nothing (0 expenses).",
    ]
    assert (written(file) or "").splitlines()[0] == "date,amount,currency,note,tags,filed_at"


async def test_each_tool_says_what_it_does_to_the_book(file: Path) -> None:
    async with Client(build_server(Book(file))) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    hints = {
        name: (tool.annotations.read_only_hint, tool.annotations.destructive_hint)
        for name, tool in tools.items()
        if tool.annotations
    }
    assert hints == {
        "list_expenses": (True, None),
        "total_expenses": (True, None),
        "add_expense": (False, True),
        "remove_expense": (False, True),
    }


async def test_the_schemas_are_plain_enough_for_a_form(file: Path) -> None:
    async with Client(build_server(Book(file))) as client:
        schemas = {tool.name: tool.input_schema for tool in (await client.list_tools()).tools}
    add: Mapping[str, Any] = schemas["add_expense"]
    assert add["required"] == ["amount", "note"]
    assert {name: declared["type"] for name, declared in add["properties"].items()} == {
        "amount": "number",
        "note": "string",
        "currency": "string",
        "date": "string",
        "tags": "array",
    }
    assert add["properties"]["amount"]["exclusiveMinimum"] == 0
    assert add["properties"]["currency"]["enum"] == ["EUR", "USD", "GBP", "JPY"]
    assert add["properties"]["currency"]["default"] == "EUR"
    assert add["properties"]["date"]["format"] == "date"
    assert "default" not in add["properties"]["date"]
    assert all("description" in p for schema in schemas.values() for p in schema["properties"].values())


@pytest.mark.parametrize(
    ("name", "args", "reason"),
    [
        ("add_expense", {"amount": 0, "note": "x"}, "greater than 0"),
        ("add_expense", {"amount": 1.005, "note": "x"}, "1.005 has too many decimals: EUR has 2"),
        ("add_expense", {"amount": 1.5, "note": "x", "currency": "JPY"}, "JPY has 0"),
        ("add_expense", {"amount": 1, "note": "x", "currency": "XXX"}, "'EUR', 'USD'"),
        ("add_expense", {"amount": 1, "note": ""}, "at least 1 character"),
        ("add_expense", {"amount": 1, "note": "x", "date": "soon"}, "valid date"),
        ("add_expense", {"amount": 1e300, "note": "x"}, "is no amount of money"),
        ("remove_expense", {"number": 1}, "there is no expense 1: the book has 0"),
        ("list_expenses", {"month": "2026-13"}, "match pattern"),
    ],
)
async def test_what_is_wrong_is_said_and_nothing_is_filed(
    file: Path, name: str, args: dict[str, Any], reason: str
) -> None:
    failed, told = await call(file, name, **args)
    assert failed
    assert reason in told
    assert written(file) is None


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("a,b\n1,2\n", "expenses.csv is no expenses book"),
        (
            "date,amount,currency,note,tags,filed_at\n2026-11-03,12\n",
            "expenses.csv:2: this line is not an expense",
        ),
        (
            "date,amount,currency,note,tags,filed_at\na,b,c,d,e,f\n",
            "expenses.csv:2: this line is not an expense",
        ),
    ],
)
def test_a_book_that_is_not_one_is_left_alone(file: Path, content: str, reason: str) -> None:
    file.write_text(content)
    failed, told = asyncio.run(call(file, "add_expense", amount=1, note="x"))
    assert failed
    assert reason in told
    assert written(file) == content


def test_a_book_that_a_spreadsheet_saved_is_read(file: Path) -> None:
    file.write_bytes(
        b"\xef\xbb\xbfdate,amount,currency,note,tags,filed_at\r\n2026-11-03,1.00,EUR,tea,,x\r\n\r\n"
    )
    assert asyncio.run(call(file, "list_expenses"))[1] == "1. 2026-11-03  1.00 EUR  tea"


async def test_a_folder_that_is_gone_is_said(tmp_path: Path) -> None:
    failed, told = await call(tmp_path / "gone" / "expenses.csv", "add_expense", amount=1, note="x")
    assert failed
    assert "cannot be written: No such file or directory" in told


async def test_two_servers_on_one_book_lose_nothing(file: Path) -> None:
    async def fill(client: Client, name: str) -> None:
        for number in range(10):
            await client.call_tool("add_expense", {"amount": 1, "note": f"{name}{number}"})

    async with running(file) as one, running(file) as other:
        await asyncio.gather(fill(one, "a"), fill(other, "b"))
    assert len(Book(file).expenses()) == 20


async def test_every_filed_expense_survives_kill_9(file: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from pizzabot.demo.expenses_book import Book, Expense\n"
        "book = Book(Path(sys.argv[1]))\n"
        "while True: print(book.append(Expense('2026-11-03', '1.00', 'EUR', 'tea', '', 'x')), flush=True)"
    )
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, str(file), stdout=asyncio.subprocess.PIPE
    )
    assert child.stdout is not None
    filed = [await child.stdout.readline() for _ in range(50)]
    child.kill()
    rest = await child.stdout.read()
    await child.wait()
    acknowledged = len(filed) + rest.count(b"\n")
    assert acknowledged <= len(Book(file).expenses()) <= acknowledged + 1


async def test_without_a_book_it_says_what_is_missing() -> None:
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "pizzabot.demo.expenses_server", stderr=asyncio.subprocess.PIPE, env={}
    )
    _, told = await child.communicate()
    assert child.returncode == 1
    assert told.decode().strip() == "EXPENSES_BOOK is not set: it names the CSV file that holds the expenses"


def test_amounts_carry_no_float_noise() -> None:
    assert amount_text(0.1 + 0.2, "EUR") == "0.30"
    assert amount_text(1e6, "EUR") == "1000000.00"
    with pytest.raises(BookError, match="too many decimals"):
        amount_text(0.001, "EUR")


def test_an_expense_reads_as_one_line() -> None:
    expense = Expense("2026-11-03", "1.00", "EUR", "tea", "food work", "x")
    assert str(expense) == "2026-11-03  1.00 EUR  tea [food, work]"
