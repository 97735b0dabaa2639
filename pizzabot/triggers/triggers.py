"""What may people do with triggers? See, make, change, remove and run them, and let others' programs in.

Everybody has triggers of their own; owners see and change all. Every door writes in one transaction.
"""

from __future__ import annotations

import asyncio
import logging
import secrets as random
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar

import sqlalchemy as sa

from pizzabot import audit
from pizzabot.clock import Clock
from pizzabot.database.connection import Database, write_now
from pizzabot.errors import ConfigError, Conflict, Forbidden, Invalid, NotFound, Refused
from pizzabot.ids import new_id
from pizzabot.inbox import runs
from pizzabot.messages import ACTIVE_RUN_STATES, Event, RunState
from pizzabot.people import People, Person, may_administer, owns
from pizzabot.text import is_storable
from pizzabot.triggers import firing, prompts, store, webhooks
from pizzabot.triggers.places import unheard
from pizzabot.triggers.ticker import Ticker
from pizzabot.triggers.trigger import (
    MAX_PENDING,
    Occurrence,
    OccurrenceState,
    Trigger,
    in_zone_of,
    made,
    made_from_table,
    wrong,
)
from pizzabot.triggers.webhooks import Proof, Seal

logger = logging.getLogger(__name__)
T = TypeVar("T")

MAX_BODY_BYTES = 1024 * 1024
DELIVERIES_PER_MINUTE = 60  # of one trigger
_LOOKED_AT = 20  # of the newest firings, for the one that is at work
_NOT_PROVEN = "This webhook is not there, or the secret is not its own."
_MINUTE = 60.0


class NotProven(Refused):
    """A webhook that is not there, not on, or whose secret was not known: the same words for all."""

    code = "unauthorized"
    status = 401


class TooMany(Refused):
    """More than is taken in a while."""

    code = "too_many"
    status = 429


@dataclass(frozen=True, slots=True)
class Made:
    """A new trigger; `secret` is told this once, and only when it was made here."""

    trigger: Trigger
    secret: str | None


class Triggers:
    """The doors of triggers. `changed` is called when something may be due earlier than was known."""

    def __init__(
        self,
        *,
        database: Database,
        clock: Clock,
        people: People,
        seal: Seal,
        ticker: Ticker,
        has_skill: Callable[[str], bool],
        has_channel: Callable[[str], bool],
        publish: Callable[[Event], None],
        changed: Callable[[], None],
    ) -> None:
        self._database, self._clock, self._people, self._seal = database, clock, people, seal
        self._ticker, self._publish, self._changed = ticker, publish, changed
        self._has_skill, self._has_channel = has_skill, has_channel
        self._refused: dict[str, datetime] = {}  # by trigger: when that was said last
        self._delivered: defaultdict[str, deque[datetime]] = defaultdict(deque)

    # -- seeing ------------------------------------------------------------------------------------------

    async def all(self, person: Person) -> list[Trigger]:
        """The triggers that the person may see, by name."""
        found = await self._database.read(store.everything)
        return [trigger for trigger in found if _may(person, trigger)]

    async def get(self, id_or_name: str, person: Person) -> Trigger:
        """A trigger by its id or its name; NotFound for whoever may not see it."""
        found = await self._database.read(lambda c: _wanted(c, id_or_name))
        if found is None or not _may(person, found):
            raise _gone()
        return found

    async def occurrences(
        self, trigger_id: str, person: Person, *, limit: int, before: str | None = None
    ) -> list[Occurrence]:
        """What became of a trigger's firings, newest first."""
        trigger = await self.get(trigger_id, person)
        return await self._database.read(
            lambda c: store.of_trigger(c, trigger.id, limit=limit, before=before)
        )

    def warnings(self, trigger: Trigger) -> list[str]:
        """What a trigger says that has no effect here now, one line each."""
        return unheard(trigger.channels, self._has_channel)

    # -- changing ----------------------------------------------------------------------------------------

    async def create(self, written: Mapping[str, Any], person: Person, via: str) -> Made:
        """A new trigger; it fires from its next time on, never now.

        Raises Invalid (see `trigger.made`), Conflict `name_taken`, Forbidden.
        """
        now = self._clock.now()
        if written.get("kind") == "digest":
            raise wrong("kind", "a digest is written in [[people]] of pizzabot.toml, as `digest`")
        trigger = made(
            written,
            id=new_id(),
            owner=person,
            people=self._people,
            now=now,
            source=via,
            has_skill=self._has_skill,
        )
        self._own(trigger, person)
        secret, told = self._secret(trigger, written)
        trigger = replace(trigger, secret=secret)

        def work(connection: sa.Connection) -> None:
            _put(connection, trigger, new=True)
            _audit(connection, now, person.name, via, "trigger.created", trigger)

        await self._write(work)
        self._tell()
        return Made(trigger, told)

    async def change(self, trigger_id: str, written: Mapping[str, Any], person: Person, via: str) -> Made:
        """Change what is written; null sets a field back to its default.

        Raises as `create` does, and NotFound.
        """
        wanted, now = (await self.get(trigger_id, person)).id, self._clock.now()

        def work(connection: sa.Connection) -> Made:
            known = store.lock(connection, wanted)  # as it is now: it may have fired, or been paused
            if known is None or not _may(person, known):
                raise _gone()
            made = self._changed_by(known, written, person, now)
            if known.paused_action is not None and made.trigger.paused_action is None:
                firing.withdraw_question(connection, known, now)
            _put(connection, made.trigger, new=False)
            _audit(connection, now, person.name, via, "trigger.changed", made.trigger)
            return made

        changed = await self._write(work)
        self._tell()
        return changed

    def _changed_by(self, known: Trigger, written: Mapping[str, Any], person: Person, now: datetime) -> Made:
        if known.kind == "digest" and written.keys() - {"enabled"}:
            raise Invalid(
                "A digest is written in [[people]] of pizzabot.toml; only `enabled` can be changed here.",
                code="invalid_trigger",
            )
        if written.get("kind", known.kind) != known.kind:
            raise wrong("kind", "cannot change; make a new trigger")
        trigger = made(
            written,
            id=known.id,
            owner=person,
            people=self._people,
            now=now,
            source=known.source,
            known=known,
            has_skill=self._has_skill if "skills" in written else None,
        )
        self._own(trigger, person)
        told = None
        if "secret" in written or trigger.signing != known.signing:
            secret, told = self._secret(trigger, written)
            trigger = replace(trigger, secret=secret)
        return Made(trigger, told)

    async def remove(self, trigger_id: str, person: Person, via: str) -> None:
        """Remove a trigger; the threads it began stay, what is at work goes on."""
        wanted, now = await self.get(trigger_id, person), self._clock.now()
        if wanted.kind == "digest":
            raise Invalid("Take `digest` out of [[people]] to end it.", code="invalid_trigger")

        def work(connection: sa.Connection) -> None:
            known = store.lock(connection, wanted.id)
            if known is None:
                raise _gone()
            firing.withdraw_question(connection, known, now)
            store.remove(connection, known.id)
            _audit(connection, now, person.name, via, "trigger.removed", known)

        await self._write(work)
        self._tell()

    async def run_now(self, trigger_id: str, person: Person, via: str, key: str | None = None) -> Occurrence:
        """Let it fire once, now, whatever its schedule and also while it is off.

        The same `key` again is the same firing. Raises Conflict `at_work` when an earlier firing has not
        ended and the trigger does not overlap, with the `thread_id` of that one in its details;
        `stopped` while everything is stopped.
        """
        wanted, now = await self.get(trigger_id, person), self._clock.now()

        def work(connection: sa.Connection) -> Occurrence:
            trigger = store.lock(connection, wanted.id)
            if trigger is None:
                raise _gone()
            if key is not None:
                known = store.with_key(connection, trigger.id, f"manual/{key}", None)
                if known is not None:
                    return known
            if runs.stopped_by(connection) is not None:
                raise Conflict(
                    "Everything is stopped, so nothing can run. An owner can resume: with Resume in the web "
                    "view, or `pizzabot resume`.",
                    code="stopped",
                )
            if trigger.overlap == "skip" and store.is_at_work(connection, trigger.id):
                raise _at_work(connection, trigger.id)
            occurrence = Occurrence(
                id=new_id(),
                trigger_id=trigger.id,
                key=f"manual/{key}" if key is not None else f"once/{new_id()}",
                state=OccurrenceState.PENDING,
                reason="manual",
                scheduled_at=now,
                created_at=now,
            )
            store.add(connection, occurrence)
            _audit(connection, now, person.name, via, "trigger.run", trigger)
            return occurrence

        return await self._begun(await self._write(work), now)

    async def receive(
        self, trigger_id: str, headers: Mapping[str, str], body: Callable[[], Awaitable[bytes]]
    ) -> Occurrence:
        """Take a delivery of a webhook: committed when this returns. `body` reads the raw body.

        While everything is stopped it stays pending.

        Raises:
            NotProven: whatever the reason, in the same words.
            TooMany: more deliveries than are taken in a minute, or too many wait.
            Invalid: the Idempotency-Key is none.
        """
        raw = await body()  # it may take a while: who may send is looked up when it is here
        now = self._clock.now()
        trigger = (
            await self._database.read(lambda c: store.get(c, trigger_id)) if is_storable(trigger_id) else None
        )
        proof = await asyncio.to_thread(self._proof, trigger, headers, raw, now)
        if trigger is None or proof is None or not trigger.enabled or trigger.kind != "webhook":
            if trigger is not None:
                self._note_refused(trigger, now)
            raise NotProven(_NOT_PROVEN)
        key = headers.get("idempotency-key")
        if key is not None and not (0 < len(key) <= 255 and is_storable(key)):
            raise Invalid("An Idempotency-Key has 1 to 255 characters.", code="invalid_key")
        name = f"hook/{key}" if key is not None else _own_key(proof)
        known = await self._database.read(lambda c: store.with_key(c, trigger.id, name, proof.signature))
        if known is not None:
            return known
        self._count(trigger, now)
        shown, fields = await asyncio.to_thread(prompts.received, raw, headers.get("content-type", ""))
        occurrence = Occurrence(
            id=new_id(),
            trigger_id=trigger.id,
            key=name,
            state=OccurrenceState.PENDING,
            reason="webhook",
            scheduled_at=now,
            created_at=now,
            signature=proof.signature,
            payload=shown,
            fields=fields,
        )

        def work(connection: sa.Connection) -> Occurrence:
            if store.get(connection, trigger.id) is None:
                raise NotProven(_NOT_PROVEN)
            if store.pending_of(connection, trigger.id) >= MAX_PENDING:
                raise TooMany(f"{MAX_PENDING:,} deliveries wait for this trigger already.")
            if store.add(connection, occurrence):
                return occurrence
            found = store.with_key(connection, trigger.id, name, proof.signature)
            assert found is not None
            return found

        return await self._begun(await self._write(work), now)

    def _proof(
        self, trigger: Trigger | None, headers: Mapping[str, str], body: bytes, now: datetime
    ) -> Proof | None:
        """Whether the sender knows the secret. The work is the same for a trigger that is not there."""
        if trigger is None or trigger.secret is None:
            webhooks.proof_by_secret(webhooks.hashed(""), headers)
            webhooks.proof_by_signature(b"none", headers, body, now)
            return None
        if trigger.signing == "hmac":
            try:
                key = self._seal.opened(trigger.secret)
            except ConfigError as error:
                logger.error("deliveries to the trigger %s are refused: %s", trigger.name, error)
                return None
            return webhooks.proof_by_signature(key, headers, body, now)
        return webhooks.proof_by_secret(trigger.secret, headers)

    def _note_refused(self, trigger: Trigger, now: datetime) -> None:
        """Say in the log what its sender is not told; of each trigger once a minute, whoever knocks."""
        last = self._refused.get(trigger.id)
        if last is not None and abs((now - last).total_seconds()) < _MINUTE:
            return
        self._refused[trigger.id] = now
        is_open = trigger.enabled and trigger.kind == "webhook"
        why = "it did not prove itself" if is_open else "the trigger is off, or no webhook"
        logger.warning("a delivery to the trigger %s was refused: %s", trigger.name, why)

    def _count(self, trigger: Trigger, now: datetime) -> None:
        taken = self._delivered[trigger.id]
        # What came later than now came before the clock was set back.
        while taken and not 0 <= (now - taken[0]).total_seconds() < _MINUTE:
            taken.popleft()
        if len(taken) >= DELIVERIES_PER_MINUTE:
            raise TooMany(
                f"At most {DELIVERIES_PER_MINUTE} deliveries a minute are taken; send it again later."
            )
        taken.append(now)

    # -- the file ----------------------------------------------------------------------------------------

    async def keep_in_step(self, tables: Sequence[Mapping[str, Any]]) -> None:
        """Make the triggers of `[[triggers]]` what the file says, and remove those it no longer names.

        A trigger of that name that was made elsewhere becomes the file's. Those without a zone of their own
        move to their owner's, who may have a new one.
        """
        now = self._clock.now()

        def work(connection: sa.Connection) -> None:
            wanted = {str(table["name"]).casefold(): table for table in tables}
            for known in store.everything(connection):
                if known.source == "file" and known.name.casefold() not in wanted:
                    self._drop(connection, known, now)
            for table in tables:
                self._keep(connection, table, now)
            for known in store.everything(connection):
                self._follow_owner(connection, known, now)

        await self._write(work)

    def _follow_owner(self, connection: sa.Connection, known: Trigger, now: datetime) -> None:
        """Whoever moved to another zone takes the triggers along that have none of their own."""
        owner = self._people.by_name(known.owner)
        moved = in_zone_of(known, owner, now) if owner is not None else known
        if moved != known:
            store.put(connection, moved, new=False)
            _audit(connection, now, "pizzabot.toml", "file", "trigger.changed", moved)

    def _drop(self, connection: sa.Connection, known: Trigger, now: datetime) -> None:
        firing.withdraw_question(connection, known, now)
        store.remove(connection, known.id)
        _audit(connection, now, "pizzabot.toml", "file", "trigger.removed", known)

    def _keep(self, connection: sa.Connection, table: Mapping[str, Any], now: datetime) -> None:
        known = store.named(connection, str(table["name"]))
        id = known.id if known is not None else new_id()
        trigger = made_from_table(table, id=id, people=self._people, now=now, known=known)
        if known is not None and trigger.kind != known.kind:  # another one that only has the same name
            self._drop(connection, known, now)
            trigger, known = made_from_table(table, id=new_id(), people=self._people, now=now), None
        if known is None or not self._is_same_secret(known, trigger, str(table.get("secret"))):
            kept, _ = self._secret(trigger, table)
            trigger = replace(trigger, secret=kept)
        if known is not None and replace(trigger, changed_at=known.changed_at) == known:
            return
        if known is not None and trigger.paused_action is None:
            firing.withdraw_question(connection, known, now)
        store.put(connection, trigger, new=known is None)
        event = "trigger.changed" if known is not None else "trigger.created"
        _audit(connection, now, "pizzabot.toml", "file", event, trigger)

    def _is_same_secret(self, known: Trigger, trigger: Trigger, secret: str) -> bool:
        if known.secret is None or known.signing != trigger.signing:
            return False
        if known.signing == "hmac":
            try:
                return self._seal.opened(known.secret) == secret.encode()
            except ConfigError:
                return False
        return known.secret == webhooks.hashed(secret)

    # -- inside ------------------------------------------------------------------------------------------

    def _secret(self, trigger: Trigger, written: Mapping[str, Any]) -> tuple[str | None, str | None]:
        """What is kept of a webhook's secret, and the secret when it was made here."""
        if trigger.kind != "webhook":
            if written.get("secret") is not None:
                raise wrong("secret", "is for webhooks only; leave it out")
            return None, None
        given = written.get("secret")
        if given is not None:
            webhooks.check_secret(given)
        secret = given if given is not None else random.token_urlsafe(32)
        kept = self._seal.sealed(secret) if trigger.signing == "hmac" else webhooks.hashed(secret)
        return kept, secret if given is None else None

    async def _begun(self, occurrence: Occurrence, now: datetime) -> Occurrence:
        """Start it at once, so that the answer names its thread; what cannot start yet stays pending."""
        if occurrence.state is OccurrenceState.PENDING:
            await self._ticker.begin(occurrence.id, now)
        found = await self._database.read(lambda c: store.occurrence(c, occurrence.id))
        return found or occurrence

    def _own(self, trigger: Trigger, person: Person) -> None:
        if not _may(person, trigger):
            raise Forbidden(
                f"Only an owner may make a trigger that belongs to {trigger.owner}.", code="not_an_owner"
            )

    def _tell(self) -> None:
        self._changed()
        self._publish(Event("triggers"))

    async def _write(self, work: Callable[[sa.Connection], T]) -> T:
        return await write_now(self._database, work)


def _put(connection: sa.Connection, trigger: Trigger, *, new: bool) -> None:
    other = store.named(connection, trigger.name)
    if other is not None and other.id != trigger.id:
        raise Conflict(f"Another trigger is named {other.name}; choose another name.", code="name_taken")
    store.put(connection, trigger, new=new)


def _own_key(proof: Proof) -> str:
    """The key of a delivery that brought none. Retention removes those that cannot come again."""
    if proof.signature is None or proof.is_timed:
        return f"once/{proof.signature or new_id()}"
    return f"signed/{proof.signature}"


def _gone() -> NotFound:
    return NotFound("There is no such trigger.")


def _at_work(connection: sa.Connection, trigger_id: str) -> Conflict:
    """Why it cannot be run now; `thread_id` of the details is where the one before stands."""
    firings = store.of_trigger(connection, trigger_id, limit=_LOOKED_AT)
    found = [runs.get(connection, one.run_id) for one in firings if one.run_id is not None]
    before = next((run for run in found if run is not None and run.state in ACTIVE_RUN_STATES), None)
    waits = before is not None and before.state is RunState.WAITING
    return Conflict(
        "The one before waits for a decision; decide it first."
        if waits
        else "The one before is still at work; stop it, or wait.",
        code="at_work",
        details={"thread_id": before.thread_id} if before is not None else {},
    )


def _wanted(connection: sa.Connection, id_or_name: str) -> Trigger | None:
    if not is_storable(id_or_name):
        return None
    return store.get(connection, id_or_name) or store.named(connection, id_or_name)


def _may(person: Person, trigger: Trigger) -> bool:
    return may_administer(person) or owns(person, trigger.owner)


def _audit(
    connection: sa.Connection, now: datetime, actor: str, via: str, event: str, trigger: Trigger
) -> None:
    data: dict[str, Any] = {"name": trigger.name, "kind": trigger.kind, "cron": trigger.cron}
    data |= {"owner": trigger.owner, "enabled": trigger.enabled}
    audit.append(connection, now, actor=actor, via=via, event=event, subject=trigger.id, data=data)
