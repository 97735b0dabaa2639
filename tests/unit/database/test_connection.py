"""Is what was acknowledged on disk, does one failing write harm no other, and do reads only read?"""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from pizzabot.database.connection import (
    Database,
    DatabaseClosed,
    PostgresDatabase,
    SqliteDatabase,
    sqlite_engine,
)
from pizzabot.database.schema import stops
from pizzabot.database.schema import usage as rows
from tests.fakes.clock import FakeClock

NOW = FakeClock().now()


def _add(name: str) -> Callable[[sa.Connection], None]:
    def work(connection: sa.Connection) -> None:
        connection.execute(
            sa.insert(rows).values(
                thread_id="t", run_id="r", person=name, model="m", input_tokens=0, output_tokens=0, at=NOW
            )
        )

    return work


def _add_and_fail(name: str) -> Callable[[sa.Connection], None]:
    def work(connection: sa.Connection) -> None:
        _add(name)(connection)
        raise LookupError(name)

    return work


def _names(connection: sa.Connection) -> list[str]:
    return list(connection.execute(sa.select(rows.c.person).order_by(rows.c.seq)).scalars())


class Held:
    """Keeps the writer busy, so that what is queued meanwhile becomes one batch."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._go, self._started = threading.Event(), threading.Event()
        self._first = database.submit(self._wait)
        assert self._started.wait(10)

    def _wait(self, _connection: sa.Connection) -> None:
        self._started.set()
        self._go.wait(10)

    def release(self) -> None:
        self._go.set()
        self._first.result(10)


# -- both databases --------------------------------------------------------------------------------------


async def test_a_write_returns_what_its_work_returns(database: Database) -> None:
    assert await database.write(lambda c: c.execute(sa.text("SELECT 42")).scalar_one()) == 42


async def test_a_failing_write_is_undone_and_raises_its_own_error(database: Database) -> None:
    results = await asyncio.gather(
        *(database.write((_add_and_fail if n % 3 == 0 else _add)(f"n{n}")) for n in range(30)),
        return_exceptions=True,
    )
    failed = [n for n, result in enumerate(results) if isinstance(result, LookupError)]
    assert failed == list(range(0, 30, 3))
    stored = await database.read(_names)
    assert sorted(stored) == sorted(f"n{n}" for n in range(30) if n % 3)


async def test_an_error_of_the_database_harms_only_its_own_write(database: Database) -> None:
    def twice(connection: sa.Connection) -> None:
        for _ in range(2):
            connection.execute(sa.insert(stops).values(scope="all", person="Ada", via="web", at=NOW))

    results = await asyncio.gather(
        database.write(_add("a")), database.write(twice), database.write(_add("b")), return_exceptions=True
    )
    assert [type(result) for result in results] == [type(None), sa.exc.IntegrityError, type(None)]
    assert sorted(await database.read(_names)) == ["a", "b"]
    assert await database.read(lambda c: c.execute(sa.select(stops)).all()) == []


async def test_a_cancelled_caller_does_not_undo_its_write(database: Database) -> None:
    task = asyncio.create_task(database.write(_add("a")))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await database.write(_add("b"))
    for _ in range(500):
        if sorted(await database.read(_names)) == ["a", "b"]:
            break
        await asyncio.sleep(0.01)
    assert sorted(await database.read(_names)) == ["a", "b"]


async def test_a_read_sees_one_moment(database: Database) -> None:
    """Both reads of the work see the same rows, though a write is committed between them."""
    looked, written = threading.Event(), threading.Event()

    def twice(connection: sa.Connection) -> tuple[list[str], list[str]]:
        before = _names(connection)
        looked.set()
        assert written.wait(10)
        return before, _names(connection)

    await database.write(_add("a"))
    reading = asyncio.create_task(database.read(twice))
    await asyncio.to_thread(looked.wait, 10)
    await database.write(_add("b"))
    written.set()
    assert await reading == (["a"], ["a"])
    assert await database.read(_names) == ["a", "b"]


async def test_a_read_cannot_write(database: Database) -> None:
    with pytest.raises(sa.exc.DBAPIError, match=r"(?i)read-?only"):
        await database.read(_add("a"))
    assert await database.read(_names) == []
    await database.write(_add("b"))


async def test_a_closed_database_says_so(database: Database) -> None:
    await database.write(_add("a"))
    database.close()
    database.close()
    with pytest.raises(DatabaseClosed):
        await database.write(_add("b"))
    with pytest.raises(DatabaseClosed):
        await database.read(_names)


# -- SQLite ----------------------------------------------------------------------------------------------


def test_what_waits_shares_one_commit(sqlite_database: SqliteDatabase, sqlite_path: Path) -> None:
    held = Held(sqlite_database)
    waiting = [sqlite_database.submit(_add(f"n{n}")) for n in range(100)]
    before = _change_counter(sqlite_path)
    held.release()
    for future in waiting:
        future.result(10)
    assert _change_counter(sqlite_path) - before <= 2


def _change_counter(path: Path) -> int:
    # The number of commits in the log of a WAL database: its frames that carry a database size.
    wal = path.with_name(path.name + "-wal")
    data = wal.read_bytes() if wal.exists() else b""
    page = int.from_bytes(data[8:12], "big") if len(data) > 32 else 0
    frames = range(32, len(data) - page, page + 24) if page else range(0)
    return sum(int.from_bytes(data[at + 4 : at + 8], "big") != 0 for at in frames)


async def test_what_waits_is_stored_before_the_end(sqlite_path: Path) -> None:
    database = SqliteDatabase(sqlite_path)
    held = Held(database)
    waiting = [database.submit(_add(f"n{n}")) for n in range(1200)]
    threading.Timer(0.05, held.release).start()
    database.close()
    assert all(future.done() and future.exception() is None for future in waiting)
    again = SqliteDatabase(sqlite_path)
    assert len(await again.read(_names)) == 1200
    again.close()


def test_a_write_that_was_cancelled_while_it_waited_is_left_out(sqlite_database: SqliteDatabase) -> None:
    held = Held(sqlite_database)
    dropped, kept = sqlite_database.submit(_add("dropped")), sqlite_database.submit(_add("kept"))
    assert dropped.cancel()
    held.release()
    kept.result(10)
    assert sqlite_database.submit(_names).result(10) == ["kept"]


def test_work_that_wants_to_exit_ends_only_itself(sqlite_database: SqliteDatabase) -> None:
    def leave(_connection: sa.Connection) -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        sqlite_database.submit(leave).result(10)
    sqlite_database.submit(_add("a")).result(10)


def test_writers_that_meet_the_end_are_told(sqlite_path: Path) -> None:
    database = SqliteDatabase(sqlite_path)
    futures: list[Future[Any]] = []
    told = threading.Event()

    def write_on() -> None:
        try:
            while True:
                futures.append(database.submit(_add("x")))
        except DatabaseClosed:
            told.set()

    writer = threading.Thread(target=write_on)
    writer.start()
    time.sleep(0.05)
    database.close()
    writer.join(10)
    assert told.is_set()
    assert all(future.done() for future in futures)


def test_on_a_full_disk_a_batch_fails_together_and_later_writes_work_again(
    sqlite_database: SqliteDatabase,
) -> None:
    def limit(pages: int) -> None:
        query = f"PRAGMA max_page_count = {pages}"
        sqlite_database.submit(lambda c: c.exec_driver_sql(query).all()).result(10)

    def large(connection: sa.Connection) -> None:
        _add("x" * 500_000)(connection)

    used = sqlite_database.submit(lambda c: c.exec_driver_sql("PRAGMA page_count").scalar_one()).result(10)
    limit(used + 20)
    held = Held(sqlite_database)
    batch = [sqlite_database.submit(work) for work in (_add("before"), large, _add("after"))]
    held.release()
    errors = [future.exception(10) for future in batch]
    assert isinstance(errors[1], sa.exc.OperationalError)
    stored = sqlite_database.submit(_names).result(10)
    # What was refused is not there, what was acknowledged is.
    acknowledged = [error is None for error in errors]
    assert stored == [name for name, kept in zip(("before", "x", "after"), acknowledged, strict=True) if kept]
    limit(1_000_000)
    sqlite_database.submit(large).result(10)
    sqlite_database.submit(_add("later")).result(10)


_FULL = """
import resource, signal, sys
from pathlib import Path
import sqlalchemy as sa
from pizzabot.database.connection import SqliteDatabase
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
database = SqliteDatabase(Path(sys.argv[1]))
def add(name):
    return lambda c: c.execute(sa.text(
        "INSERT INTO stops (scope, person, via, at) VALUES (:name, 'p', 'v', 0)"), {"name": name})
database.submit(add("first")).result()
wal = Path(sys.argv[1] + "-wal").stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (wal + 10_000, resource.RLIM_INFINITY))
import threading
go = threading.Event()
holder = database.submit(lambda c: go.wait())
batch = [database.submit(add(f"{n}" * 2000)) for n in range(1, 10)]
go.set()
print(*sorted({type(f.exception()).__name__ for f in batch}))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
database.submit(add("last")).result()
print(*database.submit(lambda c: c.execute(sa.text("SELECT scope FROM stops")).scalars().all()).result())
database.close()
"""


def test_when_the_log_cannot_grow_all_of_a_batch_are_told(sqlite_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _FULL, sqlite_path], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.splitlines() == ["OperationalError", "first last"]


_WRITES_ON = """
import sys
from pathlib import Path
import sqlalchemy as sa
from pizzabot.database.connection import SqliteDatabase
database = SqliteDatabase(Path(sys.argv[1]))
n = 0
while True:
    batch = []
    for _ in range(20):
        batch.append((n, database.submit(lambda c, n=n: c.execute(sa.text(
            "INSERT INTO stops (scope, person, via, at) VALUES (:n, 'p', 'v', 0)"), {"n": str(n)}))))
        n += 1
    for number, future in batch:
        future.result()
        sys.stdout.write(f"{number}\\n")
    sys.stdout.flush()
"""


@pytest.mark.parametrize("milliseconds", [1, 30, 90])
def test_after_kill_9_everything_acknowledged_is_there(sqlite_path: Path, milliseconds: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", _WRITES_ON, sqlite_path], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    first = process.stdout.readline()
    time.sleep(milliseconds / 1000)
    os.kill(process.pid, signal.SIGKILL)
    acknowledged = {line.strip() for line in [first, *process.stdout] if line.endswith("\n")}
    process.stdout.close()
    process.wait(10)
    with sqlite3.connect(sqlite_path) as connection:
        stored = {scope for (scope,) in connection.execute("SELECT scope FROM stops")}
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
    assert acknowledged
    assert acknowledged <= stored


def test_every_commit_is_synced(sqlite_database: SqliteDatabase) -> None:
    def pragmas(connection: sa.Connection) -> list[object]:
        names = ("journal_mode", "synchronous", "foreign_keys")
        return [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in names]

    assert sqlite_database.submit(pragmas).result(10) == ["wal", 2, 1]


# -- PostgreSQL ------------------------------------------------------------------------------------------


async def test_two_that_wait_for_each_other_both_succeed(postgres_database: PostgresDatabase) -> None:
    await postgres_database.write(_add("a"))
    await postgres_database.write(_add("b"))
    meeting = threading.Barrier(2)
    runs: list[str] = []

    def change(first: str, second: str) -> Callable[[sa.Connection], None]:
        def work(connection: sa.Connection) -> None:
            runs.append(first)
            for n, name in enumerate((first, second)):
                connection.execute(
                    sa.update(rows).where(rows.c.person == name).values(input_tokens=rows.c.input_tokens + 1)
                )
                if n == 0 and len(runs) <= 2:
                    meeting.wait(10)

        return work

    await asyncio.gather(postgres_database.write(change("a", "b")), postgres_database.write(change("b", "a")))
    assert sorted(runs) in (["a", "a", "b"], ["a", "b", "b"])
    counted = await postgres_database.read(
        lambda c: c.execute(sa.select(rows.c.input_tokens)).scalars().all()
    )
    assert counted == [2, 2]


def test_no_listener_is_looked_for_around_a_statement(sqlite_path: Path) -> None:
    engine = sqlite_engine(sqlite_path)
    assert "_has_events" not in vars(engine)  # what SQLAlchemy looks at before and after every statement
    engine.dispose()
