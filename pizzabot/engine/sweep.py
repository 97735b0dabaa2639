"""What did a crash leave behind? Checkpoints of deleted threads, and files that no row names."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Protocol

import sqlalchemy as sa

from pizzabot.database.connection import Database
from pizzabot.database.schema import attachments
from pizzabot.inbox import threads


class Saved(Protocol):
    """The graph states that are on disk."""

    async def thread_ids(self) -> list[str]: ...

    async def adelete_thread(self, thread_id: str) -> None: ...


async def orphans(database: Database, saved: Saved, folder: Path, before: float) -> int:
    """Remove what belongs to no thread; how many things that were.

    `before` is the Unix time when this process started: what is younger may wait for its row.
    """
    stored = await saved.thread_ids()
    known = await database.read(lambda connection: threads.existing(connection, stored))
    lost = [thread_id for thread_id in stored if thread_id not in known]
    for thread_id in lost:
        await saved.adelete_thread(thread_id)
    return len(lost) + await _unnamed_files(database, folder, before)


async def _unnamed_files(database: Database, folder: Path, before: float) -> int:
    listed = await asyncio.to_thread(_files_older_than, folder, before)

    def named(connection: sa.Connection) -> set[Any]:
        return set(connection.execute(sa.select(attachments.c.id)).scalars())

    names = await database.read(named)
    unnamed = [path for path in listed if path.name not in names]
    for path in unnamed:
        await asyncio.to_thread(path.unlink, missing_ok=True)
    return len(unnamed)


def _files_older_than(folder: Path, moment: float) -> list[Path]:
    return [path for path in folder.iterdir() if path.is_file() and path.stat().st_mtime < moment]
