"""How long is what kept? Removes what is older than `[retention]` says, once a day, in small pieces.

    tick -> due? -> some batches, each its own transaction -> more? again in a moment : done until tomorrow

A batch is small, so whoever writes meanwhile waits for milliseconds. Doing a batch twice does it once.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

import sqlalchemy as sa

from pizzabot import audit
from pizzabot.database.connection import Database, free_pages
from pizzabot.engine import pruning
from pizzabot.engine.pruning import Amount
from pizzabot.messages import Event

logger = logging.getLogger(__name__)

EVERY = timedelta(days=1)
BATCH = 200
_BATCHES_OF_A_TURN = 40
_AUDIT_BATCH = 2000
_PAGES = 500

KINDS = ("messages", "checkpoints", "attachments", "outbox", "activity", "audit")


@dataclass(frozen=True, slots=True)
class Ages:
    """How old each kind gets; None: it is kept."""

    messages: timedelta | None = None
    checkpoints: timedelta | None = None
    attachments: timedelta | None = None
    outbox: timedelta | None = None
    activity: timedelta | None = None
    audit: timedelta | None = None


class Saved(Protocol):
    """The graph's states."""

    async def thread_ids(self) -> list[str]: ...

    async def bytes_of(self, thread_ids: Sequence[str]) -> int: ...

    async def adelete_thread(self, thread_id: str) -> None: ...

    async def give_back(self, pages: int) -> int: ...


Still = Callable[[str], AbstractAsyncContextManager[bool]]


class Retention:
    """Everything that `[retention]` asks for; `still` keeps runs of a thread from starting meanwhile."""

    def __init__(
        self,
        *,
        database: Database,
        ages: Ages,
        folder: Path,
        saved: Callable[[], Awaitable[Saved]],
        still: Still,
        publish: Callable[[Event], None],
    ) -> None:
        self._database, self.ages, self._folder = database, ages, folder
        self._saved, self._still, self._publish = saved, still, publish
        self._working = asyncio.Lock()

    async def amounts(self, now: datetime) -> dict[str, Amount]:
        """What would go at `now`, of every kind that has an age."""
        found: dict[str, Amount] = {}
        count: Mapping[str, Callable[[sa.Connection, datetime], Amount]] = {
            "messages": pruning.amount_of_threads,
            "attachments": pruning.amount_of_files,
            "outbox": pruning.amount_of_said,
            "activity": pruning.amount_of_activity,
            "audit": lambda connection, before: Amount(*audit.prunable(connection, before)),
        }
        for kind, before in self._due(now):
            if kind == "checkpoints":
                ids = await self._forgettable(before)
                found[kind] = Amount(len(ids), await (await self._saved()).bytes_of(ids))
            else:
                found[kind] = await self._database.read(lambda c, k=kind, b=before: count[k](c, b))  # type: ignore[misc]
        return found

    async def tick(self, now: datetime) -> datetime | None:
        """Do some of what is due; when to come again."""
        last = await self._database.read(pruning.last_done)
        if last is not None and now < last + EVERY:
            return last + EVERY
        _, finished = await self.work(now)
        return now + EVERY if finished else now

    async def work(self, now: datetime, *, batches: int = _BATCHES_OF_A_TURN) -> tuple[dict[str, int], bool]:
        """Remove at most so many batches; how many of each kind, and whether nothing is left."""
        removed: Counter[str] = Counter()
        async with self._working:
            for kind, before in self._due(now):
                while batches > 0:
                    batches -= 1
                    some = await self._batch(kind, before, now)
                    removed[kind] += some
                    if not some:
                        break
                    await asyncio.sleep(0)
            finished = batches > 0
            while batches > 0 and await self._give_back():
                batches -= 1
            if finished:
                await self._database.write(lambda c: pruning.done(c, now))
        told = {kind: count for kind, count in removed.items() if count}
        if told:
            logger.info("removed what was old enough: %s", ", ".join(f"{n} of {k}" for k, n in told.items()))
        return told, finished

    def _due(self, now: datetime) -> list[tuple[str, datetime]]:
        return [(kind, now - age) for kind in KINDS if (age := getattr(self.ages, kind)) is not None]

    async def _batch(self, kind: str, before: datetime, now: datetime) -> int:
        if kind == "messages":
            return await self._threads(before, now)
        if kind == "checkpoints":
            return await self._checkpoints(before)
        if kind == "attachments":
            names = await self._database.write(lambda c: pruning.delete_files(c, before, limit=BATCH))
            await self._unlink(names)
            return len(names)
        if kind == "audit":
            return await self._database.write(lambda c: audit.prune(c, before, now, limit=_AUDIT_BATCH))
        delete = pruning.delete_said if kind == "outbox" else pruning.delete_activity
        return await self._database.write(lambda c: delete(c, before, limit=BATCH))

    async def _threads(self, before: datetime, now: datetime) -> int:
        old = await self._database.read(lambda c: pruning.old_threads(c, before, limit=BATCH))
        gone = 0
        for thread_id in old:
            async with self._still(thread_id) as is_still:
                if not is_still:
                    continue
                files = await self._database.write(
                    lambda c, i=thread_id: pruning.delete_thread(c, i, before, now)  # type: ignore[misc]
                )
                if files is None:
                    continue
                await (await self._saved()).adelete_thread(thread_id)
            await self._unlink(files)
            self._publish(Event("thread", thread_id, {"deleted": True, "owner": "", "copies": []}))
            gone += 1
        return gone

    async def _forgettable(self, before: datetime) -> list[str]:
        stored = await (await self._saved()).thread_ids()
        return await self._database.read(lambda c: pruning.forgettable(c, stored, before))

    async def _checkpoints(self, before: datetime) -> int:
        gone = 0
        for thread_id in (await self._forgettable(before))[:BATCH]:
            async with self._still(thread_id) as is_still:
                if is_still and await self._is_forgettable(thread_id, before):
                    await (await self._saved()).adelete_thread(thread_id)
                    gone += 1
        return gone

    async def _is_forgettable(self, thread_id: str, before: datetime) -> bool:
        """Asked like a write: behind whatever was being stored when the thread was asked to be still."""
        return await self._database.write(lambda c: bool(pruning.forgettable(c, [thread_id], before)))

    async def _unlink(self, names: Sequence[str]) -> None:
        for name in names:
            await asyncio.to_thread((self._folder / name).unlink, missing_ok=True)

    async def _give_back(self) -> int:
        """Some unused pages of both files go back to the disk; how many."""
        pages = await self._database.write(lambda c: free_pages(c, _PAGES))
        return pages + await (await self._saved()).give_back(_PAGES)
