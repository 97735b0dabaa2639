"""How does a row of the outbox reach a person? A loop that delivers what is due (promise 10).

    due row -> unknown? ask the channel whether it arrived -> deliver -> sent, with the copy's name
            -> failed for now: later, doubling, at least what the channel asked for -> failed for good: shown

A delivery never touches the run that it tells about.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta

import sqlalchemy as sa

from pizzabot import logs
from pizzabot.agent import activity
from pizzabot.approvals import store as actions
from pizzabot.channel import Channel
from pizzabot.clock import Clock
from pizzabot.database.connection import Database, write_until_stored
from pizzabot.digests import store as digests
from pizzabot.errors import DeliveryFailed, DeliveryUnknown
from pizzabot.inbox import runs, threads
from pizzabot.inbox.runs import Run
from pizzabot.messages import ACTIVE_RUN_STATES, RETRIABLE_RUN_STATES, OutboundItem, Receipt, RunStatus, Step
from pizzabot.outbox import store
from pizzabot.outbox.store import OutboxRow
from pizzabot.tracing import OFF, Ids, Tracer, attempt_ids

logger = logging.getLogger(__name__)

FIRST_DELAY = timedelta(seconds=1)
LONGEST_DELAY = timedelta(hours=1)
GIVE_UP_AFTER = timedelta(hours=48)
DELIVERY_SECONDS = 60.0
_AT_ONCE = 20
_IDLE_SECONDS = 60.0
_STEPS_SHOWN = 40
_TRIES_OF_A_FAULT = 5


class Delivery:
    """Delivers until it is stopped; `wake` it when rows were added."""

    def __init__(
        self, database: Database, clock: Clock, channels: Mapping[str, Channel], tracer: Tracer = OFF
    ) -> None:
        self._tracer = tracer
        self._database, self._clock, self._channels = database, clock, channels
        self._due = asyncio.Event()
        self._working: set[asyncio.Task[None]] = set()
        self._loop: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Look at what a crash left, then deliver in the background."""
        now = self._clock.now()
        await self._database.write(lambda connection: store.recover(connection, now))
        self._loop = asyncio.create_task(self._run(), name="outbox")

    async def stop(self) -> None:
        """Take nothing more; what is being sent may end, for some seconds."""
        if self._loop is not None:
            self._loop.cancel()
            await asyncio.gather(self._loop, return_exceptions=True)
        if self._working:
            _, late = await asyncio.wait(self._working, timeout=5)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def wake(self) -> None:
        """There may be something due."""
        self._due.set()

    async def is_back(self, channel: str) -> None:
        """A channel that was away can deliver again: nothing waits out its delay."""
        now = self._clock.now()
        await self._database.write(lambda c: store.due_now(c, channel, now))
        self.wake()

    async def _run(self) -> None:
        while True:
            self._due.clear()
            try:
                wait = await self._take()
            except Exception:
                logger.exception("the outbox could not be read; trying again")
                wait = 5.0
            # Not wait_for: in Python 3.11 it can swallow the cancellation that ends this loop.
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._due.wait()

    async def _take(self) -> float:
        """Start what is due; returns the seconds until something else is."""
        now = self._clock.now()
        free = _AT_ONCE - len(self._working)
        if free <= 0:
            return _IDLE_SECONDS
        rows, next_due = await self._database.write(
            lambda c: (store.take(c, now, limit=free), store.next_due(c))
        )
        for row in rows:
            task = asyncio.create_task(self._deliver(row), name=f"deliver {row.key}")
            self._working.add(task)
            task.add_done_callback(self._finished)
        if next_due is None or len(rows) == free:
            return _IDLE_SECONDS
        return min(_IDLE_SECONDS, max(0.0, (next_due - now).total_seconds()))

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._working.discard(task)
        self._due.set()

    async def _deliver(self, row: OutboxRow) -> None:
        about = {"run": row.run_id} if row.run_id is not None else {}
        with logs.within(thread=row.thread_id, channel=row.channel, item=row.id, **about):
            await self._try(row)

    async def _try(self, row: OutboxRow) -> None:
        try:
            item = await self._database.read(lambda c: self._item(c, row))
            if item is None:
                await self._database.write(lambda c: store.failed(c, row, "what it tells was deleted"))
                return
            await self._say(row, item)
        except DeliveryFailed as error:
            await self._later(row, error)
        except Exception as error:
            logger.exception("delivery of %s failed", row.key)
            lost = DeliveryUnknown(f"{type(error).__name__} inside the channel {row.channel}")
            # A fault of ours does not pass by itself, and what it holds up is everything behind it.
            lost.retryable = row.tries < _TRIES_OF_A_FAULT
            await self._later(row, lost)

    async def _say(self, row: OutboxRow, item: OutboundItem) -> None:
        if self._tracer is OFF:
            return await self._hand_over(row, item)
        attempt = await self._database.read(lambda c: _attempt_of(c, row))
        span = self._tracer.begin(
            f"deliver {row.channel}",
            {
                "pizzabot.channel": row.channel,
                "pizzabot.delivery.kind": row.kind,
                "pizzabot.delivery.repaint": row.external_id is not None,
                "pizzabot.delivery.tries": row.tries,
                "pizzabot.thread.id": row.thread_id,
            },
            kind="client",
            links=[attempt] if attempt is not None else [],
        )
        failure: str | None = "cancelled"
        try:
            await self._hand_over(row, item)
            failure = None
        except Exception as error:
            failure = getattr(error, "code", "internal")
            raise
        finally:
            if span is not None:
                span.end({}, error=failure)

    async def _hand_over(self, row: OutboxRow, item: OutboundItem) -> None:
        channel = self._channels.get(row.channel)
        if channel is None:
            raise DeliveryFailed(f"the channel {row.channel} is not configured", retryable=True)
        try:
            async with asyncio.timeout(DELIVERY_SECONDS):
                found = await _left_by_an_earlier_try(row, item, channel)
                receipt = found or (await channel.deliver(item) if _is_worth_saying(item) else None)
        except TimeoutError as error:
            raise DeliveryUnknown(f"{row.channel} did not answer within {DELIVERY_SECONDS:.0f} s") from error
        if receipt is None:
            await self._database.write(lambda c: store.drop(c, row))
            return
        # What was found may show an earlier state than this one.
        await self._settle(row, receipt, _state_of(item) if found is None else None)

    async def _settle(self, row: OutboxRow, receipt: Receipt, shown: str | None) -> None:
        now = self._clock.now()

        def work(connection: sa.Connection) -> None:
            store.sent(connection, row, receipt.external_id, shown, now)
            # Decided, or ended, while the message was on its way: what it shows is stale already.
            if row.action_id is not None and row.kind != "notice":
                action = actions.get(connection, row.action_id)
                if action is not None and action.shown != shown:
                    store.repaint(connection, action.id, action.shown, now)
            if row.run_id is not None:
                run = runs.get(connection, row.run_id)
                if run is not None and run.state != shown:
                    store.repaint_status(connection, run.id, now)
            if row.digest_id is not None and row.kind == "digest":
                digest = digests.get(connection, row.digest_id)
                if digest is not None and digest.state != shown:
                    store.repaint_digest(connection, digest.id, digest.state, now)

        await self._database.write(work)

    async def _later(self, row: OutboxRow, error: DeliveryFailed) -> None:
        now = self._clock.now()
        due = next_try(row, error, now)
        if due is None:
            logger.error("%s to %s given up: %s", row.kind, row.channel, error)
            await self._keep(lambda c: store.failed(c, row, str(error)))
            return
        unknown = isinstance(error, DeliveryUnknown)
        await self._keep(lambda c: store.try_later(c, row, due, str(error), unknown=unknown))

    async def _keep(self, work: Callable[[sa.Connection], None]) -> None:
        """Write how a try ended: a full disk must not leave a row that nobody sends."""
        await write_until_stored(self._database, work, lambda: False)

    def _item(self, connection: sa.Connection, row: OutboxRow) -> OutboundItem | None:
        thread = threads.get(connection, row.thread_id)
        message = threads.message(connection, row.message_seq) if row.message_seq is not None else None
        action = actions.get(connection, row.action_id) if row.action_id is not None else None
        run = runs.get(connection, row.run_id) if row.run_id is not None else None
        digest = digests.get(connection, row.digest_id) if row.digest_id is not None else None
        if thread is None or (message is None and action is None and run is None and digest is None):
            return None
        return OutboundItem(
            key=row.key,
            channel=row.channel,
            address=row.address,
            kind=row.kind,
            thread_id=thread.id,
            thread_title=thread.title,
            text=message.text if message else "",
            queued_at=row.created_at,
            action=action,
            status=_status(connection, run) if run is not None else None,
            digest=digest,
            person=row.person,
            external_id=row.external_id,
            card=_card(connection, row),
            can_be_retried=message is not None and _can_be_retried(connection, message),
        )


def _attempt_of(connection: sa.Connection, row: OutboxRow) -> Ids | None:
    """The attempt of the run that an item tells of."""
    run_id = row.run_id
    if run_id is None and row.action_id is not None:
        action = actions.get(connection, row.action_id)
        run_id = action.run_id if action is not None else None
    if run_id is None and row.message_seq is not None:
        message = threads.message(connection, row.message_seq)
        run_id = message.run_id if message is not None else None
    run = runs.get(connection, run_id) if run_id is not None else None
    return attempt_ids(run.id, run.attempt) if run is not None else None


async def _left_by_an_earlier_try(row: OutboxRow, item: OutboundItem, channel: Channel) -> Receipt | None:
    """The copy of an item whose outcome is unknown.

    A repaint is simply repeated: looking would find the old copy and take it for the new one.
    """
    if row.state != "unknown" or item.external_id is not None:
        return None
    try:
        return await channel.find(item)
    except DeliveryFailed as error:
        # Not known any better: it must be looked for again, not said again.
        lost = DeliveryUnknown(str(error), retry_after=error.retry_after_seconds)
        lost.retryable = error.retryable
        raise lost from error


def _is_worth_saying(item: OutboundItem) -> bool:
    """Whether it still tells something.

    That a run is at work does not when it is not any more, nor that an action waits.
    """
    if item.external_id is not None:
        return True
    if item.kind == "reminder":
        return item.action is not None and item.action.is_open
    return item.status is None or item.status.state in ACTIVE_RUN_STATES


def _card(connection: sa.Connection, row: OutboxRow) -> str | None:
    """The card that a reminder is about."""
    if row.kind != "reminder" or row.action_id is None:
        return None
    return store.card_at(connection, row.action_id, row.channel, row.address)


def _can_be_retried(connection: sa.Connection, message: threads.Message) -> bool:
    """Whether a message says how the newest run of its thread ended, and that can go on from there.

    Other notices belong to runs, too, such as those about budgets. How a run ended is said in the moment in
    which it ended, and a run that was retried has not ended.
    """
    if message.role != "notice" or message.run_id is None:
        return False
    run = runs.newest(connection, message.thread_id)
    return (
        run is not None
        and run.id == message.run_id
        and run.state in RETRIABLE_RUN_STATES
        and run.ended_at == message.created_at
    )


def _state_of(item: OutboundItem) -> str | None:
    """The state that a copy shows, of what can change later."""
    if item.status is not None:
        return item.status.state
    if item.digest is not None and item.kind == "digest":
        return item.digest.state
    return item.action.shown if item.action is not None and item.kind != "notice" else None


def _status(connection: sa.Connection, run: Run) -> RunStatus:
    done = activity.of_runs(connection, run.thread_id, [run.id], each=_STEPS_SHOWN)
    steps = [
        Step(row["name"], row["worker"], row["outcome"], row["milliseconds"])
        for row in done
        if row["kind"] in ("tool", "worker")
    ]
    return RunStatus(run.id, run.state, run.started_at, run.ended_at, tuple(steps))


def next_try(row: OutboxRow, error: DeliveryFailed, now: datetime) -> datetime | None:
    """When to try again, or None to give up."""
    since = row.first_tried_at or now
    if not error.retryable or now - since >= GIVE_UP_AFTER:
        return None
    if error.retry_after_seconds is not None:
        # Whoever says when needs no guessing: doubling on top would keep people waiting for nothing.
        return now + timedelta(seconds=error.retry_after_seconds)
    return now + min(LONGEST_DELAY, FIRST_DELAY * (1 << min(row.tries, 20)))
