from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pizzabot.agent.group_commit import GroupCommit, Work, WriterClosed


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "notes.sqlite"
    db = sqlite3.connect(path)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("CREATE TABLE notes (text TEXT PRIMARY KEY)")
    db.close()
    return path


@pytest.fixture
async def writer(file: Path) -> AsyncIterator[GroupCommit]:
    writer = GroupCommit(file, name="notes")
    yield writer
    await writer.stop()


def insert(text: str) -> Work:
    return lambda db: db.execute("INSERT INTO notes VALUES (?)", (text,)).close()


def stored(file: Path) -> list[str]:
    db = sqlite3.connect(file)
    try:
        return [text for (text,) in db.execute("SELECT text FROM notes ORDER BY rowid")]
    finally:
        db.close()


class Held:
    """Keeps the writing thread busy, so that what is handed in meanwhile becomes one batch."""

    def __init__(self, writer: GroupCommit) -> None:
        self.release = threading.Event()
        self.task = asyncio.create_task(writer.write(lambda db: self.release.wait(10)))

    async def together(self, *works: Work, writer: GroupCommit) -> list[Any]:
        await asyncio.sleep(0.05)
        tasks = [asyncio.create_task(writer.write(work)) for work in works]
        await asyncio.sleep(0)
        self.release.set()
        return await asyncio.gather(*tasks, return_exceptions=True)


async def test_writes_that_wait_together_share_one_commit(writer: GroupCommit, file: Path) -> None:
    seen_from_outside: list[int] = []
    works: list[Work] = [insert(str(number)) for number in range(20)]
    works.append(lambda db: seen_from_outside.append(len(stored(file))))
    await Held(writer).together(*works, writer=writer)
    assert seen_from_outside == [0]
    assert stored(file) == [str(number) for number in range(20)]


async def test_only_the_guilty_write_of_a_batch_fails(writer: GroupCommit, file: Path) -> None:
    outcomes = await Held(writer).together(
        insert("a"), insert("b"), insert("a"), insert("c\ud800"), insert("d"), writer=writer
    )
    assert [type(outcome) for outcome in outcomes] == [
        type(None),
        type(None),
        sqlite3.IntegrityError,
        UnicodeEncodeError,
        type(None),
    ]
    assert stored(file) == ["a", "b", "d"]


async def test_a_failing_unit_of_several_statements_leaves_nothing(writer: GroupCommit, file: Path) -> None:
    def half(db: sqlite3.Connection) -> None:
        db.execute("INSERT INTO notes VALUES ('half')")
        raise ValueError("no second half")

    with pytest.raises(ValueError, match="no second half"):
        await writer.write(half)
    assert stored(file) == []


async def test_a_full_disk_fails_every_write_and_later_ones_work_again(
    writer: GroupCommit, file: Path
) -> None:
    def shrink(db: sqlite3.Connection) -> None:
        db.execute("PRAGMA max_page_count=4").fetchall()

    outcomes = await Held(writer).together(shrink, insert("a"), insert("x" * 100_000), writer=writer)
    assert {getattr(outcome, "sqlite_errorname", None) for outcome in outcomes} == {"SQLITE_FULL"}
    assert len({id(outcome) for outcome in outcomes}) == 3
    await writer.write(insert("x" * 100_000))
    assert len(stored(file)) == 1


async def test_a_locked_file_fails_the_batch_once_and_then_works(
    writer: GroupCommit, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pizzabot.agent.group_commit.BUSY_TIMEOUT_SECONDS", 0.05)
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        await writer.write(insert("a"))
    other.execute("ROLLBACK")
    other.close()
    await writer.write(insert("b"))
    assert stored(file) == ["b"]


async def test_a_cancelled_caller_takes_nothing_back_and_harms_no_other(
    writer: GroupCommit, file: Path
) -> None:
    held = Held(writer)
    await asyncio.sleep(0.05)
    tasks = [asyncio.create_task(writer.write(insert(text))) for text in "abc"]
    await asyncio.sleep(0)
    tasks[1].cancel()
    await asyncio.sleep(0)
    held.release.set()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(outcomes[1], asyncio.CancelledError)
    assert (outcomes[0], outcomes[2]) == (None, None)
    assert stored(file) == ["a", "b", "c"]


async def test_stop_commits_what_waits(file: Path) -> None:
    writer = GroupCommit(file, name="notes")
    tasks = [asyncio.create_task(writer.write(insert(str(number)))) for number in range(1200)]
    await asyncio.sleep(0)
    await writer.stop()
    assert await asyncio.gather(*tasks) == [None] * 1200
    assert len(stored(file)) == 1200


async def test_a_write_after_stop_is_refused_in_plain_words(file: Path) -> None:
    writer = GroupCommit(file, name="notes")
    await writer.stop()
    await writer.stop()
    with pytest.raises(WriterClosed, match="the notes are closed; nothing was written"):
        await writer.write(insert("late"))
