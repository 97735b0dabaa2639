"""How does code reach the database? `await database.write(work)` and `await database.read(work)`.

`work` is a function of one SQLAlchemy connection. It runs in a thread, inside a transaction, and must not
keep the connection. SQLite has one writer by nature: here that is one thread, and all that waits for it shares
one COMMIT (group commit), each piece of work in its own savepoint. So a write costs a fraction of an fsync
under load, and one failing piece harms no other. PostgreSQL runs each piece in its own transaction.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

import sqlalchemy as sa
from sqlalchemy import event

from pizzabot.errors import PizzaBotError

logger = logging.getLogger(__name__)
T = TypeVar("T")
Work = Callable[[sa.Connection], T]

_BATCH = 500
_READERS = 3
_BUSY_MILLISECONDS = 30_000


class DatabaseClosed(PizzaBotError):
    """The database was closed; nothing was written."""

    code = "database_closed"


class Database(Protocol):
    """The two ways in. Both raise what `work` raises, after undoing all that it did."""

    dialect: str

    async def write(self, work: Work[T]) -> T:
        """Run `work` in a transaction; returns after it is on disk. A cancelled caller does not undo it."""
        ...

    async def read(self, work: Work[T]) -> T:
        """Run `work` on a consistent snapshot; it must not write."""
        ...

    def close(self) -> None:
        """Finish what waits, then close. Further calls raise DatabaseClosed."""
        ...


def sqlite_engine(path: Path, *, read_only: bool = False) -> sa.Engine:
    """An engine whose transactions are begun by hand: WAL, synchronous=FULL, foreign keys on."""
    engine = sa.create_engine(f"sqlite:///{path}", poolclass=sa.NullPool)

    @event.listens_for(engine, "connect")
    def _connected(connection: sqlite3.Connection, _record: Any) -> None:
        connection.isolation_level = None
        connection.execute(f"PRAGMA busy_timeout = {_BUSY_MILLISECONDS}")
        if not read_only:
            connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        if read_only:
            connection.execute("PRAGMA query_only = ON")

    @event.listens_for(engine, "begin")
    def _begin(connection: sa.Connection) -> None:
        connection.exec_driver_sql("BEGIN" if read_only else "BEGIN IMMEDIATE")

    return engine


@dataclass(slots=True)
class _Item:
    work: Work[Any]
    done: Future[Any] = field(default_factory=Future)


class SqliteDatabase:
    """One SQLite file: one writer thread, a few readers."""

    dialect = "sqlite"

    def __init__(self, path: Path) -> None:
        self._writer_engine = sqlite_engine(path)
        self._reader_engine = sqlite_engine(path, read_only=True)
        self._queue: queue.SimpleQueue[_Item | None] = queue.SimpleQueue()
        self._closed = threading.Lock()  # held for ever once closed
        self._local = threading.local()
        self._reader_connections: list[sa.Connection] = []
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="database-reader")
        self._writer = threading.Thread(target=self._write_loop, name="database-writer", daemon=True)
        self._writer.start()

    async def write(self, work: Work[T]) -> T:
        return await asyncio.shield(asyncio.wrap_future(self.submit(work)))

    def submit(self, work: Work[T]) -> Future[T]:
        """Queue `work` from any thread; the future ends after the commit."""
        if self._closed.locked():
            raise DatabaseClosed("The database is closed; start the server again.")
        item = _Item(work)
        self._queue.put(item)
        return item.done

    async def read(self, work: Work[T]) -> T:
        if self._closed.locked():
            raise DatabaseClosed("The database is closed; start the server again.")
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._read, work)

    def _read(self, work: Work[T]) -> T:
        connection: sa.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = self._reader_engine.connect()
            self._reader_connections.append(connection)
        with connection.begin():
            return work(connection)

    def _write_loop(self) -> None:
        with self._writer_engine.connect() as connection:
            while True:
                batch, closing = self._next_batch()
                if batch:
                    commit_together(connection, batch)
                if closing:
                    return

    def _next_batch(self) -> tuple[list[_Item], bool]:
        batch: list[_Item] = []
        item = self._queue.get()
        while item is not None:
            batch.append(item)
            if len(batch) == _BATCH:
                return batch, False
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                return batch, False
        return batch, True

    def close(self) -> None:
        if not self._closed.acquire(blocking=False):
            return
        self._queue.put(None)
        self._writer.join()
        self._readers.shutdown()
        for connection in self._reader_connections:
            connection.close()
        self._writer_engine.dispose()
        self._reader_engine.dispose()


def commit_together(connection: sa.Connection, batch: list[_Item]) -> None:
    """Run every item in its own savepoint of one transaction; each future ends after the commit."""
    outcomes: list[tuple[_Item, Any, BaseException | None]] = []
    try:
        with connection.begin():
            for item in batch:
                outcomes.append(_run_in_savepoint(connection, item))
    except Exception as error:  # noqa: BLE001 - disk full, I/O: nothing of the batch is stored, all are told
        logger.error("commit of %d writes failed: %s", len(batch), error)
        for item in batch:
            item.done.set_exception(error)
        return
    for item, result, failure in outcomes:
        if failure is not None:
            item.done.set_exception(failure)
        else:
            item.done.set_result(result)


def _run_in_savepoint(connection: sa.Connection, item: _Item) -> tuple[_Item, Any, BaseException | None]:
    # Plain statements: SQLAlchemy's nested transactions cost more than the small writes they guard.
    connection.exec_driver_sql("SAVEPOINT item")
    try:
        result = item.work(connection)
    except Exception as error:  # noqa: BLE001 - handed to the one who asked
        connection.exec_driver_sql("ROLLBACK TO item")
        connection.exec_driver_sql("RELEASE item")
        return item, None, error
    connection.exec_driver_sql("RELEASE item")
    return item, result, None


class PostgresDatabase:
    """A PostgreSQL database: each piece of work in its own transaction, on a small pool."""

    dialect = "postgresql"

    def __init__(self, url: str) -> None:
        self._engine = sa.create_engine(postgres_url(url), pool_size=10, pool_pre_ping=True)
        self._threads = ThreadPoolExecutor(10, thread_name_prefix="database")

    async def write(self, work: Work[T]) -> T:
        future = asyncio.get_running_loop().run_in_executor(self._threads, self._transact, work)
        return await asyncio.shield(future)

    async def read(self, work: Work[T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._transact, work)

    def _transact(self, work: Work[T]) -> T:
        with self._engine.begin() as connection:
            return work(connection)

    def close(self) -> None:
        self._threads.shutdown()
        self._engine.dispose()


def postgres_url(url: str) -> str:
    """The URL with the driver named that this project tests: psycopg 3."""
    return "postgresql+psycopg://" + url.split("://", 1)[1]


def open_database(url: str, path: Path) -> Database:
    """The configured database: `url` when it is set, else the SQLite file `path`."""
    return PostgresDatabase(url) if url else SqliteDatabase(path)
