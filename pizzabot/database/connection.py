"""How does code reach the database? `await database.write(work)` and `await database.read(work)`.

`work` is a function of one SQLAlchemy connection. It runs in a thread, inside a transaction, and must not
keep the connection. SQLite has one writer by nature: here that is one thread, and all that waits for it
shares one COMMIT (group commit), each piece of work in its own savepoint. So a write costs a fraction of an
fsync under load, and one failing piece harms no other. PostgreSQL runs each piece in its own transaction,
again when the server undid it for another's sake: so `work` changes nothing but rows.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

import sqlalchemy as sa

# Some statements import it when they are built: here, in one thread, and not in several at once.
import sqlalchemy.orm
from sqlalchemy import event
from sqlalchemy.pool import PoolProxiedConnection

from pizzabot.errors import PizzaBotError, Unavailable

logger = logging.getLogger(__name__)
T = TypeVar("T")
Work = Callable[[sa.Connection], T]

_BATCH = 500
_AGAIN_SECONDS = 1.0
_READERS = 3
_BUSY_MILLISECONDS = 30_000
_INCREMENTAL = 2
_CLOSED = "The database is closed; start the server again."
_TRIES = 5
_REPEATABLE = ("40001", "40P01")  # PostgreSQL undid one of two that were in each other's way


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

    def begin(dbapi_connection: PoolProxiedConnection) -> None:
        dbapi_connection.cursor().execute("BEGIN" if read_only else "BEGIN IMMEDIATE")

    # Not by listening to "begin": an engine that is listened to looks for listeners around every statement,
    # which costs a fifth of it.
    engine.dialect.do_begin = begin  # type: ignore[method-assign]

    @event.listens_for(engine, "connect")
    def _connected(connection: sqlite3.Connection, _record: Any) -> None:
        connection.isolation_level = None
        connection.execute(f"PRAGMA busy_timeout = {_BUSY_MILLISECONDS}")
        if not read_only:
            if connection.execute("PRAGMA page_count").fetchone() == (0,):
                # Heard only by a new file, see `give_back`; in every other one it would write.
                connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            _use_wal(connection)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        if read_only:
            connection.execute("PRAGMA query_only = ON")

    return engine


def free_pages(connection: sa.Connection, most: int) -> int:
    """`give_back` within a piece of work; 0 on PostgreSQL, which has a way of its own."""
    if connection.dialect.name != "sqlite":
        return 0
    driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    return give_back(driver, most)


def give_back(driver: sqlite3.Connection, most: int) -> int:
    """Give so many unused pages of a SQLite file back to the disk; how many were.

    0 also where the file was made before it could: `pizzabot compact` makes it anew.
    """
    (mode,) = driver.execute("PRAGMA auto_vacuum").fetchone()
    (unused,) = driver.execute("PRAGMA freelist_count").fetchone()
    pages = min(most, int(unused)) if mode == _INCREMENTAL else 0
    for _ in range(pages):
        driver.execute("PRAGMA incremental_vacuum(1)")  # Python takes one step of it, which is one page
    return pages


async def write_now(database: Database, work: Work[T]) -> T:
    """Store something for somebody who waits.

    Raises Unavailable when nothing was stored: the disk is full, or the database is locked or gone.
    """
    try:
        return await database.write(work)
    except sa.exc.OperationalError as error:
        logger.exception("nothing was stored")
        raise Unavailable(
            "Nothing was stored: the disk is full or the database cannot be written. Send it again later."
        ) from error


async def write_until_stored(database: Database, work: Work[T], gives_up: Callable[[], bool]) -> T:
    """Write something that must not be lost, as often as it takes: a full disk has space again some day.

    Raises what the database said as soon as `gives_up`; what `work` itself raises is never tried again.
    """
    while True:
        try:
            return await database.write(work)
        except sa.exc.OperationalError:
            if gives_up():
                raise
            logger.exception("the database cannot be written; trying again")
            await asyncio.sleep(_AGAIN_SECONDS)


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switch the file to WAL, which needs it alone for a moment.

    SQLite does not wait for its busy time-out here: two that open a new file at once would fail.
    """
    deadline = time.monotonic() + _BUSY_MILLISECONDS / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


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
        self._gate = threading.Lock()  # nothing is queued behind the end of the queue
        self._closed = False
        self._local = threading.local()
        self._reader_connections: list[sa.Connection] = []
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="database-reader")
        self._writer = threading.Thread(target=self._write_loop, name="database-writer", daemon=True)
        self._writer.start()

    async def write(self, work: Work[T]) -> T:
        return await asyncio.shield(asyncio.wrap_future(self.submit(work)))

    def submit(self, work: Work[T]) -> Future[T]:
        """Queue `work` from any thread; the future ends after the commit."""
        item = _Item(work)
        with self._gate:
            if self._closed:
                raise DatabaseClosed(_CLOSED)
            self._queue.put(item)
        return item.done

    async def read(self, work: Work[T]) -> T:
        if self._closed:
            raise DatabaseClosed(_CLOSED)
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
        with self._gate:
            if self._closed:
                return
            self._closed = True
            self._queue.put(None)
        self._writer.join()
        self._readers.shutdown()
        for connection in self._reader_connections:
            connection.close()
        self._writer_engine.dispose()
        self._reader_engine.dispose()


def commit_together(connection: sa.Connection, batch: list[_Item]) -> None:
    """Run every item in its own savepoint of one transaction; each future ends after the commit."""
    # From here on a caller can no longer cancel an item, so its future can be ended.
    batch = [item for item in batch if item.done.set_running_or_notify_cancel()]
    outcomes: list[tuple[_Item, Any, BaseException | None]] = []
    try:
        with connection.begin():
            for item in batch:
                outcomes.append(_run_in_savepoint(connection, item))
    except BaseException as error:  # noqa: BLE001 - disk full, I/O: nothing of the batch is stored, all are told
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
    _plainly(connection, "SAVEPOINT item")
    try:
        result = item.work(connection)
    except BaseException as error:  # noqa: BLE001 - handed to the one who asked
        _plainly(connection, "ROLLBACK TO item")
        _plainly(connection, "RELEASE item")
        return item, None, error
    _plainly(connection, "RELEASE item")
    return item, result, None


def _plainly(connection: sa.Connection, sql: str) -> None:
    """Run a statement of SQLite's own transactions, which through SQLAlchemy costs as much as a small write.

    Raises what SQLAlchemy would.
    """
    try:
        connection.connection.driver_connection.execute(sql)  # type: ignore[union-attr]
    except sqlite3.Error as error:
        raise sa.exc.OperationalError(sql, None, error) from error


class PostgresDatabase:
    """A PostgreSQL database: each piece of work in its own transaction, on a small pool.

    Of two pieces that wait for each other's rows the server undoes one; it is run again.
    """

    dialect = "postgresql"

    def __init__(self, url: str) -> None:
        self._engine = sa.create_engine(postgres_url(url), pool_size=10, pool_pre_ping=True)
        self._snapshots = self._engine.execution_options(
            isolation_level="REPEATABLE READ", postgresql_readonly=True
        )
        self._threads = ThreadPoolExecutor(10, thread_name_prefix="database")
        self._closed = False

    async def write(self, work: Work[T]) -> T:
        return await asyncio.shield(self._run(self._engine, work))

    async def read(self, work: Work[T]) -> T:
        return await self._run(self._snapshots, work)

    def _run(self, engine: sa.Engine, work: Work[T]) -> asyncio.Future[T]:
        if self._closed:
            raise DatabaseClosed(_CLOSED)
        return asyncio.get_running_loop().run_in_executor(self._threads, _transact, engine, work)

    def close(self) -> None:
        self._closed = True
        self._threads.shutdown()
        self._engine.dispose()


def _transact(engine: sa.Engine, work: Work[T]) -> T:
    for tries_left in reversed(range(_TRIES)):
        try:
            with engine.begin() as connection:
                return work(connection)
        except sa.exc.OperationalError as error:
            if not tries_left or getattr(error.orig, "sqlstate", None) not in _REPEATABLE:
                raise
    raise AssertionError("unreachable")


def postgres_url(url: str) -> str:
    """The URL with the driver named that this project tests: psycopg 3."""
    return "postgresql+psycopg://" + url.split("://", 1)[1]


def open_database(url: str, path: Path) -> Database:
    """The configured database: `url` when it is set, else the SQLite file `path`."""
    return PostgresDatabase(url) if url else SqliteDatabase(path)
