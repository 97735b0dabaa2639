"""How does something that arrived become work? `accept` commits it, then returns; only then may a channel
acknowledge (promises 1 to 3).

    text arrives -> key known? -> the same answer as the first time
                 -> thread: by id, by address, else a new one
                 -> message stored; thread idle? -> a queued run takes it; else it is held for the next run
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from pizzabot import audit
from pizzabot.database.dialects import hold
from pizzabot.database.schema import ACTION_PENDING, actions, inbound, messages
from pizzabot.errors import Invalid, NotFound
from pizzabot.ids import new_id
from pizzabot.inbox import runs, threads
from pizzabot.messages import Accepted, ActionKind, Attachment, InboundMessage
from pizzabot.text import is_storable

MAX_TEXT = 1_048_576  # characters: what no person types and no model reads
MAX_TITLE = 200
MAX_ATTACHMENTS = 20
MAX_ATTACHMENT_BYTES = 25 * 1024 * 1024
MAX_KEY = 512
MAX_ADDRESS = 2_000

_MEDIA_TYPE = re.compile(r"[a-zA-Z0-9!#$&^_.+-]{1,64}/[a-zA-Z0-9!#$&^_.+-]{1,64}")


@dataclass(frozen=True, slots=True)
class Unattended:
    """How work begins that nobody wrote: which trigger began it, which skills the runs of its thread may
    use (None: all), and whom its results are told (None: its owner).
    """

    trigger_id: str
    skills: Sequence[str] | None = None
    tells: Sequence[str] | None = None


def check(message: InboundMessage) -> None:
    """Refuse what cannot be stored or answered, before anything is changed.

    Raises:
        Invalid: with a message that names the field and the cure.
    """
    check_text(message.text, "text", MAX_TEXT)
    if not message.text.strip() and not message.attachments:
        raise Invalid("The message is empty; write what should be done.", code="empty_message")
    if message.title is not None:
        check_text(message.title, "title", MAX_TITLE)
    if message.key is not None and not (0 < len(message.key) <= MAX_KEY and is_storable(message.key)):
        raise Invalid(
            f"An Idempotency-Key has 1 to {MAX_KEY} characters, none of them NUL.", code="invalid_key"
        )
    if message.address is not None:
        check_text(message.address, "address", MAX_ADDRESS)
    if len(message.attachments) > MAX_ATTACHMENTS:
        raise Invalid(f"At most {MAX_ATTACHMENTS} files come with one message.", code="too_many_attachments")
    for attachment in message.attachments:
        _check_attachment(attachment)


def check_text(text: str, field: str, limit: int) -> None:
    """Refuse text that a database cannot hold or that is longer than `limit` characters."""
    if len(text) > limit:
        raise Invalid(
            f"{field} has {len(text):,} characters; at most {limit:,} are taken. Attach a file instead.",
            code="text_too_long",
        )
    if not is_storable(text):
        raise Invalid(
            f"{field} holds a NUL character or half a surrogate pair; remove it.", code="invalid_text"
        )


def _check_attachment(attachment: Attachment) -> None:
    check_text(attachment.filename, "attachment filename", 255)
    if not attachment.filename.strip():
        raise Invalid("An attachment needs a filename.", code="invalid_attachment")
    if not _MEDIA_TYPE.fullmatch(attachment.media_type):
        raise Invalid(
            f"The media type {attachment.media_type[:60]!r} of {attachment.filename!r} is not one; "
            "use the form image/png.",
            code="invalid_attachment",
        )
    if len(attachment.data) > MAX_ATTACHMENT_BYTES:
        raise Invalid(
            f"{attachment.filename!r} is larger than {MAX_ATTACHMENT_BYTES // 2**20} MiB.",
            code="attachment_too_large",
        )


def store_files(folder: Path, attachments: Sequence[Attachment]) -> list[tuple[str, Attachment]]:
    """Put the bytes on disk, under names of ours, before the commit that refers to them.

    A crash in between leaves files that no row names; they are swept at the next start.
    """
    stored = []
    for attachment in attachments:
        name = new_id()
        path = folder / name
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(attachment.data)
            file.flush()
            os.fsync(file.fileno())
        stored.append((name, attachment))
    return stored


def accept(
    connection: sa.Connection,
    message: InboundMessage,
    files: Sequence[tuple[str, Attachment]],
    now: datetime,
    *,
    model: str,
    allowance: Mapping[str, Any],
    unattended: Unattended | None = None,
) -> Accepted:
    """Store a checked message and, when its thread is idle, the run that takes it."""
    _one_at_a_time(connection, message)
    if message.key is not None and (taken := known(connection, message.key)) is not None:
        return taken
    known_id = _thread_for(connection, message)
    if known_id is not None and threads.lock(connection, known_id) is None:
        raise NotFound("There is no such thread; it may have been deleted.")
    thread_id = known_id or _new_thread(connection, message, now, unattended)
    held = known_id is not None and runs.active(connection, thread_id) is not None
    aside_to = message.aside_to if held and _waits(connection, message.aside_to) else None
    seq = threads.add_message(
        connection,
        thread_id,
        now,
        role="user",
        author=message.person,
        text=message.text,
        channel=message.channel,
        aside_to=aside_to,
    )
    for name, attachment in files:
        threads.add_attachment(
            connection,
            id=name,
            thread_id=thread_id,
            message_seq=seq,
            filename=attachment.filename,
            media_type=attachment.media_type,
            size_bytes=len(attachment.data),
            sha256=hashlib.sha256(attachment.data).hexdigest(),
        )
    _remember(connection, message.key, thread_id, seq, now)
    run_id = None
    if not held:
        run_id = runs.create(
            connection,
            thread_id,
            now,
            person=message.person,
            model=model,
            allowance=allowance,
            trigger_id=unattended.trigger_id if unattended is not None else None,
        )
    audit.append(
        connection,
        now,
        actor=message.person,
        via=message.channel,
        event="message.accepted",
        subject=thread_id,
        data={"message": seq, "run": run_id, "held": held, "key": message.key}
        | ({"aside_to": aside_to} if aside_to is not None else {}),
    )
    return Accepted(thread_id, run_id, str(seq), held)


def answer(connection: sa.Connection, message: InboundMessage, text: str, now: datetime) -> Accepted:
    """Answer a message of a thread with a notice, in place of handing it to the agent; once per key."""
    assert message.thread_id is not None
    _one_at_a_time(connection, message)
    if message.key is not None and (taken := known(connection, message.key)) is not None:
        return taken
    thread = threads.lock(connection, message.thread_id)
    if thread is None:
        raise NotFound("There is no such thread; it may have been deleted.")
    seq = threads.add_message(connection, thread.id, now, role="notice", author=threads.AGENT_NAME, text=text)
    # Whoever wrote sees it at once.
    threads.mark(connection, thread.id, unread=thread.unread, archived=None)
    _remember(connection, message.key, thread.id, seq, now)
    return Accepted(thread.id, None, str(seq), held=False)


def _waits(connection: sa.Connection, action_id: str | None) -> bool:
    """Whether a call waits for a decision, which on PostgreSQL then comes after this transaction."""
    if action_id is None:
        return False
    # Only the result of a call can carry words to the agent.
    of_call = actions.c.kind.in_((ActionKind.TOOL, ActionKind.UNCERTAIN))
    query = sa.select(actions.c.id).where(actions.c.id == action_id, ACTION_PENDING, of_call)
    return connection.execute(query.with_for_update()).first() is not None


def _one_at_a_time(connection: sa.Connection, message: InboundMessage) -> None:
    """A second copy, or a second message to a new place, waits for the first one's commit."""
    names = [f"key/{message.key}"] if message.key is not None else []
    if message.address is not None:
        names.append(f"address/{message.channel}/{message.address}")
    for name in names:
        hold(connection, int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], signed=True))


# Built once: building a statement costs four times as much as running it.
_INSERT_KEY = sa.insert(inbound)
_KNOWN = (
    sa.select(inbound.c.thread_id, inbound.c.message_seq, messages.c.role, messages.c.run_id)
    .outerjoin(messages, messages.c.seq == inbound.c.message_seq)
    .where(inbound.c.key == sa.bindparam("key"))
)


def _remember(connection: sa.Connection, key: str | None, thread_id: str, seq: int, now: datetime) -> None:
    """What became of the item with this key, if it has one."""
    if key is not None:
        row = {"key": key, "thread_id": thread_id, "message_seq": seq, "received_at": now}
        connection.execute(_INSERT_KEY, row)


def known(connection: sa.Connection, key: str) -> Accepted | None:
    """What became of the item with this key; None when it was never taken."""
    row = connection.execute(_KNOWN, {"key": key}).first()
    if row is None:
        return None
    held = row.role == "user" and row.run_id is None  # without a message the thread was deleted
    return Accepted(row.thread_id, row.run_id, str(row.message_seq), held, duplicate=True)


def _thread_for(connection: sa.Connection, message: InboundMessage) -> str | None:
    """The thread that the message says it belongs to; None when it opens a new one."""
    if message.thread_id is None and message.address is not None:
        return threads.at_address(connection, message.channel, message.address)
    return message.thread_id


def _new_thread(
    connection: sa.Connection, message: InboundMessage, now: datetime, unattended: Unattended | None
) -> str:
    first_words = message.text.strip() or message.attachments[0].filename
    title = message.title.strip() if message.title else ""
    return threads.create(
        connection,
        now,
        owner=message.person,
        channel=message.channel,
        address=message.address,
        title=threads.one_line(title or first_words, threads.TITLE_LENGTH),
        title_source="user" if title else "first",
        tells=unattended.tells if unattended is not None else None,
        skills=unattended.skills if unattended is not None else None,
    )
