"""How do many writers share one wait for the disk?

One thread owns all writing to one SQLite file. Whatever waits when it looks is committed in one transaction,
and each caller is answered after that commit: what was acknowledged is on disk (WAL, synchronous=FULL), also
after a power cut. When a transaction fails it is rolled back and each unit is tried alone, so that only the
guilty one fails.
"""

from __future__ import annotations

import asyncio
import copy
import logging
import queue
import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

log = logging.getLogger(__name__)

Work = Callable[[sqlite3.Connection], Any]

BATCH = 500
BUSY_TIMEOUT_SECONDS = 10.0

# Trouble of the disk or the file: no single unit is guilty, and trying each one again only takes longer.
_NOBODYS_FAULT = frozenset(
    {
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
    }
)


class WriterClosed(RuntimeError):
    """A write came after the file was closed: whoever sent it must not go on."""


@dataclass(frozen=True)
class _Unit:
    work: Work
    outcome: asyncio.Future[Any]


class GroupCommit:
    """The writer of one file. Units are done in the order in which they were handed in.

    Made inside a running event loop; `write` belongs to that loop.
    """

    def __init__(self, path: Path, *, name: str) -> None:
        self._path, self._name, self._loop = path, name, asyncio.get_running_loop()
        self._queue: queue.SimpleQueue[_Unit | None] = queue.SimpleQueue()
        self._closed = False
        self._db: sqlite3.Connection | None = None
        self._thread = threading.Thread(target=self._run, name=f"{name}-write", daemon=True)
        self._thread.start()

    async def write(self, work: Work) -> Any:
        """Run `work` in the next transaction; its result, after the commit.

        A caller that is cancelled while it waits takes nothing back: the unit is committed all the same.

        Raises:
            WriterClosed: after `stop`.
            sqlite3.Error: this unit failed, or the disk did; nothing of it was stored.
        """
        if self._closed:
            raise WriterClosed(f"the {self._name} are closed; nothing was written")
        outcome: asyncio.Future[Any] = self._loop.create_future()
        self._queue.put(_Unit(work, outcome))
        return await outcome

    async def stop(self) -> None:
        """Commit what waits and end the thread."""
        if not self._closed:
            self._closed = True
            self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        last = False
        while not last:
            batch, last = self._next_batch()
            if batch:
                self._answer(batch, self._commit(batch))
        self._disconnect()

    def _next_batch(self) -> tuple[list[_Unit], bool]:
        batch: list[_Unit] = []
        unit = self._queue.get()
        while unit is not None:
            batch.append(unit)
            if len(batch) == BATCH:
                break
            try:
                unit = self._queue.get_nowait()
            except queue.Empty:
                break
        return batch, unit is None

    def _commit(self, batch: Sequence[_Unit]) -> list[Any]:
        try:
            return self._transaction(batch)
        except Exception as error:  # noqa: BLE001 - whatever it is, every caller must get an answer
            if _is_nobodys_fault(error):
                log.error("the %s could not be written: %s", self._name, error)
                # A connection that met an I/O error is not trusted again: the next batch opens a new one.
                self._disconnect()
                return [copy.copy(error) for _ in batch]
            if len(batch) == 1:
                return [error]
            return [outcome for unit in batch for outcome in self._commit([unit])]

    def _transaction(self, batch: Sequence[_Unit]) -> list[Any]:
        db = self._connect()
        try:
            db.execute("BEGIN IMMEDIATE")
            results = [unit.work(db) for unit in batch]
            db.execute("COMMIT")
        except Exception:
            self._roll_back(db)
            raise
        return results

    def _roll_back(self, db: sqlite3.Connection) -> None:
        try:
            if db.in_transaction:  # SQLite may have rolled back by itself
                db.execute("ROLLBACK")
        except sqlite3.Error:
            self._disconnect()

    def _connect(self) -> sqlite3.Connection:
        if self._db is None:
            self._db = sqlite3.connect(self._path, isolation_level=None, timeout=BUSY_TIMEOUT_SECONDS)
            self._db.execute("PRAGMA synchronous=FULL")
        return self._db

    def _disconnect(self) -> None:
        if self._db is not None:
            with suppress(sqlite3.Error):
                self._db.close()
            self._db = None

    def _answer(self, batch: Sequence[_Unit], outcomes: Sequence[Any]) -> None:
        def answer() -> None:
            for unit, outcome in zip(batch, outcomes, strict=True):
                if unit.outcome.done():
                    continue
                if isinstance(outcome, Exception):
                    unit.outcome.set_exception(outcome)
                else:
                    unit.outcome.set_result(outcome)

        with suppress(RuntimeError):  # the loop is gone, and with it everybody who waited
            self._loop.call_soon_threadsafe(answer)


def _is_nobodys_fault(error: Exception) -> bool:
    return isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", 0) & 0xFF in _NOBODYS_FAULT
