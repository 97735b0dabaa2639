"""A small MCP server to try things with: an expenses book in the CSV file that EXPENSES_BOOK names.

EXPENSES_BOOK=expenses.csv python -m pizzabot.demo.expenses_server
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import Field

from pizzabot.demo.expenses_book import Book, BookError, Expense, amount_text, totals

Currency = Literal["EUR", "USD", "GBP", "JPY"]


def _plain(schema: dict[str, Any]) -> None:
    """Instead of pydantic's "or null", an argument that may be left out is simply not in `required`."""
    schema.update(schema.pop("anyOf")[0])
    del schema["default"]


Month = Annotated[
    str | None,
    Field(
        pattern=r"^\d{4}-(0[1-9]|1[0-2])$",
        description="Only this month, as YYYY-MM",
        json_schema_extra=_plain,
    ),
]
Day = Annotated[
    date | None, Field(description="When it was paid; today if left out", json_schema_extra=_plain)
]
OneCurrency = Annotated[Currency | None, Field(description="Only this currency", json_schema_extra=_plain)]

READS = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
CHANGES = ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=False)


def build_server(book: Book) -> MCPServer:
    """The server with its four tools over `book`."""
    server = MCPServer("expenses", instructions="Keeps a book of expenses.", log_level="WARNING")

    @server.tool(annotations=READS, structured_output=False)
    def list_expenses(month: Month = None) -> str:
        """List the expenses in the book, numbered, with date, amount, note and tags."""
        with _told():
            found = [
                f"{number}. {expense}"
                for number, expense in enumerate(book.expenses(), 1)
                if month is None or expense.date.startswith(month)
            ]
        return "\n".join(found) or f"No expenses in {month or 'the book'}."

    @server.tool(annotations=READS, structured_output=False)
    def total_expenses(currency: OneCurrency = None) -> str:
        """Tell how much was spent in total, for each currency."""
        with _told():
            expenses = [e for e in book.expenses() if currency in (None, e.currency)]
            sums = totals(expenses)
        told = ", ".join(f"{amount:f} {code}" for code, amount in sorted(sums.items()))
        return f"Total: {told or 'nothing'} ({len(expenses)} expenses)."

    @server.tool(annotations=CHANGES, structured_output=False)
    def add_expense(
        amount: Annotated[float, Field(gt=0, description="What was paid")],
        note: Annotated[str, Field(min_length=1, description="What it was for")],
        currency: Annotated[Currency, Field(description="Currency of the amount")] = "EUR",
        date: Day = None,
        tags: Annotated[list[str], Field(description="Words to find it by")] = [],  # noqa: B006 - never changed
    ) -> str:
        """File one expense in the book: what was paid and what it was for."""
        now = datetime.now(UTC)
        with _told():
            expense = Expense(
                date=(date or now.date()).isoformat(),
                amount=amount_text(amount, currency),
                currency=currency,
                note=" ".join(note.split()),
                tags=" ".join("-".join(tag.split()) for tag in tags),
                filed_at=now.isoformat(timespec="seconds"),
            )
            number = book.append(expense)
        return f"Filed as expense {number}: {expense}"

    @server.tool(annotations=CHANGES, structured_output=False)
    def remove_expense(
        number: Annotated[int, Field(ge=1, description="Its number in the list of expenses")],
    ) -> str:
        """Remove one expense from the book by its number."""
        with _told():
            return f"Removed expense {number}: {book.remove(number)}"

    return server


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except BookError as error:
        raise ToolError(str(error)) from error


def main() -> Any:
    """Serve on stdin and stdout."""
    path = os.environ.get("EXPENSES_BOOK", "")
    if not path:
        sys.exit("EXPENSES_BOOK is not set: it names the CSV file that holds the expenses")
    return build_server(Book(Path(path))).run("stdio")


if __name__ == "__main__":
    main()
