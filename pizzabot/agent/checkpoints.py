"""Where does a graph's state live between two steps, so that twenty runs at once do not wait for one disk?

The stock SQLite saver commits each write by itself, and every commit waits for the disk. Here writes go
through `group_commit`, and a read needs one thread hop instead of six. Tables, serializer and the reading
itself are those of `langgraph-checkpoint-sqlite`; either can open the other's file.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, TypeVar

import aiosqlite
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from pizzabot.agent.group_commit import GroupCommit
from pizzabot.database.connection import give_back
from pizzabot.errors import Conflict, NotFound

T = TypeVar("T")

_PUT = """INSERT OR REPLACE INTO checkpoints
  (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata)
  VALUES (?, ?, ?, ?, ?, ?, ?)"""
_PUT_WRITES = """INSERT OR {clash} INTO writes
  (thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, value)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"""

# The way from one root checkpoint back to the first, plus what subgraphs stored during those steps: their
# metadata names the root checkpoint that they worked under.
_LINE = """WITH RECURSIVE line(id, parent) AS (
    SELECT checkpoint_id, parent_checkpoint_id FROM checkpoints
      WHERE thread_id = :source AND checkpoint_ns = '' AND checkpoint_id = :upto
    UNION
    SELECT c.checkpoint_id, c.parent_checkpoint_id FROM line JOIN checkpoints c
      ON c.thread_id = :source AND c.checkpoint_ns = '' AND c.checkpoint_id = line.parent
  ), earlier(id) AS (SELECT id FROM line WHERE id <> :upto), kept(ns, id) AS (
    SELECT '', id FROM line
    UNION
    SELECT checkpoint_ns, checkpoint_id FROM checkpoints
      WHERE thread_id = :source AND checkpoint_ns <> ''
      AND json_extract(CAST(metadata AS TEXT), '$.parents.""') IN (SELECT id FROM earlier)
  )"""
_COPY_CHECKPOINTS = """INSERT INTO checkpoints
  (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata)
  SELECT :target, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata
  FROM checkpoints WHERE thread_id = :source"""
_COPY_WRITES = """INSERT INTO writes
  (thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, value)
  SELECT :target, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, value
  FROM writes WHERE thread_id = :source"""
_EXISTS = """SELECT 1 FROM checkpoints WHERE thread_id = :source AND checkpoint_ns = ''
  AND checkpoint_id = coalesce(:upto, checkpoint_id)"""
_IN_LINE = " AND (checkpoint_ns, checkpoint_id) IN (SELECT ns, id FROM kept)"
_BEFORE = " AND checkpoint_id <> :upto"


class GroupCommitSaver(AsyncSqliteSaver):
    """The SQLite saver of LangGraph with group commit; open it with `open_checkpoints`."""

    def __init__(
        self, conn: aiosqlite.Connection, path: Path, *, serde: SerializerProtocol | None = None
    ) -> None:
        super().__init__(conn, serde=serde)
        self._path = path
        self._writer = GroupCommit(path, name="checkpoints")
        # More than one reading thread was measured, and gained nothing.
        self._reading = ThreadPoolExecutor(1, thread_name_prefix="checkpoints-read")
        self._reader: SqliteSaver | None = None

    @classmethod
    @asynccontextmanager
    async def from_conn_string(cls, conn_string: str) -> AsyncIterator[GroupCommitSaver]:
        async with open_checkpoints(Path(conn_string)) as saver:
            yield saver

    async def setup(self) -> None:
        if not self.is_setup:
            await super().setup()

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,  # noqa: ARG002 - the base class says so
    ) -> RunnableConfig:
        await self.setup()
        where = config["configurable"]
        place = {"thread_id": where["thread_id"], "checkpoint_ns": where["checkpoint_ns"]}
        told = json.dumps(get_checkpoint_metadata(config, metadata), ensure_ascii=False)
        row = (
            str(place["thread_id"]),
            place["checkpoint_ns"],
            checkpoint["id"],
            where.get("checkpoint_id"),
            *self.serde.dumps_typed(checkpoint),
            told.encode("utf-8", "ignore"),
        )
        await self._writer.write(lambda db: db.execute(_PUT, row).close())
        return {"configurable": {**place, "checkpoint_id": checkpoint["id"]}}

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        await self.setup()
        where = config["configurable"]
        place = (str(where["thread_id"]), str(where["checkpoint_ns"]), str(where["checkpoint_id"]))
        special = all(channel in WRITES_IDX_MAP for channel, _ in writes)
        sql = _PUT_WRITES.format(clash="REPLACE" if special else "IGNORE")
        rows = [
            (
                *place,
                task_id,
                task_path,
                WRITES_IDX_MAP.get(channel, index),
                channel,
                *self.serde.dumps_typed(value),
            )
            for index, (channel, value) in enumerate(writes)
        ]
        await self._writer.write(lambda db: db.executemany(sql, rows).close())

    async def adelete_thread(self, thread_id: str) -> None:
        await self.setup()

        def delete(db: sqlite3.Connection) -> None:
            for table in ("checkpoints", "writes"):
                db.execute(f"DELETE FROM {table} WHERE thread_id = ?", (str(thread_id),))

        await self._writer.write(delete)

    async def acopy_thread(
        self, source_thread_id: str, target_thread_id: str, upto_checkpoint_id: str | None = None
    ) -> None:
        """Copy a thread, with all its state, to an id that is not in use.

        With `upto_checkpoint_id` the copy is the thread as it stood when that root checkpoint was written:
        the line of checkpoints that led to it and nothing that came after. Without, it is everything, with
        pending interrupts too.

        Raises:
            NotFound: there is no such thread or no such checkpoint in it.
            Conflict: the target is in use.
        """
        await self.setup()
        names = (str(source_thread_id), str(target_thread_id), upto_checkpoint_id)
        await self._writer.write(lambda db: _copy(db, *names))

    async def thread_ids(self) -> list[str]:
        """Every thread that has a state here."""
        await self.setup()
        query = "SELECT DISTINCT thread_id FROM checkpoints"
        return await self._read(lambda saver: [row[0] for row in saver.conn.execute(query)])

    async def bytes_of(self, thread_ids: Sequence[str]) -> int:
        """About how many bytes the states of these threads take."""
        await self.setup()
        sums = (
            "SELECT sum(length(checkpoint) + length(metadata)) FROM checkpoints WHERE thread_id = ?",
            "SELECT sum(length(value)) FROM writes WHERE thread_id = ?",
        )

        def measure(saver: SqliteSaver) -> int:
            return sum(
                int(saver.conn.execute(query, (str(thread_id),)).fetchone()[0] or 0)
                for thread_id in thread_ids
                for query in sums
            )

        return await self._read(measure)

    async def give_back(self, pages: int) -> int:
        """Give so many unused pages of the file back to the disk; how many were."""
        await self.setup()
        given: int = await self._writer.write(lambda db: give_back(db, pages))
        return given

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        await self.setup()
        return await self._read(lambda saver: saver.get_tuple(config))

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        await self.setup()
        return await self._read(
            lambda saver: saver.get_delta_channel_history(config=config, channels=channels)
        )

    async def close(self) -> None:
        """Commit what waits, stop the threads, close the file. A second call does nothing."""
        await self._writer.stop()
        await asyncio.to_thread(self._reading.shutdown)
        if self._reader is not None:
            self._reader.conn.close()
            self._reader = None
        await self.conn.close()

    async def _read(self, question: Callable[[SqliteSaver], T]) -> T:
        return await self.loop.run_in_executor(self._reading, lambda: question(self._opened_reader()))

    def _opened_reader(self) -> SqliteSaver:
        if self._reader is None:
            db = sqlite3.connect(self._path, check_same_thread=False)
            db.execute("PRAGMA query_only=ON")
            self._reader = SqliteSaver(db, serde=self.serde)
            self._reader.is_setup = True  # its setup would write
        return self._reader


def _copy(db: sqlite3.Connection, source: str, target: str, upto: str | None) -> None:
    names = {"source": source, "target": target, "upto": upto}
    if db.execute("SELECT 1 FROM checkpoints WHERE thread_id = :target", names).fetchone():
        raise Conflict(f"the thread {target} has a state already; copy to a new id")
    if not db.execute(_EXISTS, names).fetchone():
        raise NotFound(f"the thread {source} has no checkpoint {upto or 'yet'}")
    line, kept, before = ("", "", "") if upto is None else (_LINE, _IN_LINE, _BEFORE)
    db.execute(line + _COPY_CHECKPOINTS + kept, names)
    db.execute(line + _COPY_WRITES + kept + before, names)


@asynccontextmanager
async def open_checkpoints(path: Path) -> AsyncIterator[GroupCommitSaver]:
    """The checkpoints in the file at `path`, made if absent, readable by this user alone."""
    _make_private(path)
    conn = await aiosqlite.connect(path)
    saver = GroupCommitSaver(conn, path)
    try:
        await saver.setup()
        yield saver
    finally:
        await saver.close()


def _make_private(path: Path) -> None:
    # SQLite gives its -wal and -shm files the mode of the database.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    path.chmod(0o600)
    if path.stat().st_size == 0:
        # Only a file without tables can still be told to give back what is deleted.
        with closing(sqlite3.connect(path)) as db:
            db.execute("PRAGMA auto_vacuum = INCREMENTAL")
            db.execute("VACUUM")
