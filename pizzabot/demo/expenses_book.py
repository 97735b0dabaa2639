"""What is in the expenses book, a CSV file, and how does it change without being torn?

Every change is made under a file lock, to a copy that takes the place of the old file once it is on disk:
after a crash the book is the old one or the new one. A spreadsheet program may open it at any time.
"""

from __future__ import annotations

import csv
import fcntl
import io
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, fields
from decimal import Decimal, InvalidOperation
from pathlib import Path

DECIMALS = {"EUR": 2, "USD": 2, "GBP": 2, "JPY": 0}


class BookError(Exception):
    """What is wrong with the book or with an entry, in words for the person."""


@dataclass(frozen=True)
class Expense:
    """One line of the book, as text; `tags` are separated by spaces."""

    date: str
    amount: str
    currency: str
    note: str
    tags: str
    filed_at: str

    def __str__(self) -> str:
        tags = f" [{', '.join(self.tags.split())}]" if self.tags else ""
        return f"{self.date}  {self.amount} {self.currency}  {self.note}{tags}"


COLUMNS = tuple(column.name for column in fields(Expense))


def amount_text(amount: float, currency: str) -> str:
    """The amount as decimal text with the currency's own number of decimals, e.g. 42.50."""
    # Six decimals are more than any currency has, and fewer than the noise of 0.1 + 0.2.
    exact, step = Decimal(str(round(amount, 6))), Decimal(1).scaleb(-DECIMALS[currency])
    try:
        rounded = exact.quantize(step)
    except InvalidOperation:
        raise BookError(f"{amount} is no amount of money") from None
    if rounded != exact:
        raise BookError(f"{exact} has too many decimals: {currency} has {DECIMALS[currency]}")
    return f"{rounded:f}"


def totals(expenses: Iterable[Expense]) -> dict[str, Decimal]:
    """The sum for each currency."""
    sums: dict[str, Decimal] = {}
    for expense in expenses:
        sums[expense.currency] = sums.get(expense.currency, Decimal(0)) + Decimal(expense.amount)
    return sums


class Book:
    """The book in the file at `path`, which need not exist yet."""

    def __init__(self, path: Path) -> None:
        self._path = path.resolve()

    def expenses(self) -> list[Expense]:
        """All entries, the first one first."""
        try:
            text = self._path.read_text(encoding="utf-8-sig")
        except FileNotFoundError:
            return []
        except (OSError, UnicodeDecodeError) as error:
            raise BookError(f"the book {self._path} cannot be read: {error}") from error
        return list(self._parsed(text))

    def append(self, expense: Expense) -> int:
        """Add an entry at the end; returns its number, from 1."""
        with self._locked():
            every = [*self.expenses(), expense]
            self._replace(every)
        return len(every)

    def remove(self, number: int) -> Expense:
        """Take the entry with this number out; those behind it move up."""
        with self._locked():
            every = self.expenses()
            if not 1 <= number <= len(every):
                raise BookError(f"there is no expense {number}: the book has {len(every)}")
            removed = every.pop(number - 1)
            self._replace(every)
        return removed

    def _parsed(self, text: str) -> Iterator[Expense]:
        lines = csv.reader(io.StringIO(text, newline=""))
        head = tuple(next(lines, COLUMNS))
        if head != COLUMNS:
            raise BookError(
                f"{self._path.name} is no expenses book: its first line is not {','.join(COLUMNS)}"
            )
        for cells in lines:
            if not cells:
                continue
            try:
                expense = Expense(*cells)
                Decimal(expense.amount)
            except (TypeError, InvalidOperation):
                raise BookError(f"{self._path.name}:{lines.line_num}: this line is not an expense") from None
            yield expense

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            lock = os.open(self._path.with_name(self._path.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise BookError(f"the book {self._path} cannot be written: {error.strerror}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _replace(self, expenses: Sequence[Expense]) -> None:
        draft = self._path.with_name(self._path.name + ".new")
        try:
            with open(draft, "w", encoding="utf-8", newline="") as file:
                lines = csv.writer(file, lineterminator="\n")
                lines.writerow(COLUMNS)
                lines.writerows(astuple(expense) for expense in expenses)
                file.flush()
                os.fsync(file.fileno())
            os.replace(draft, self._path)
            _sync_folder(self._path.parent)
        except OSError as error:
            raise BookError(f"the book {self._path} cannot be written: {error.strerror}") from error


def _sync_folder(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
