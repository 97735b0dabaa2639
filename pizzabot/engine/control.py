"""How does a person steer? Resume, retry, delete and fork, each one transaction; stops are endings."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

import sqlalchemy as sa

from pizzabot import audit
from pizzabot.errors import Conflict, NotFound
from pizzabot.inbox import runs, tallies, threads
from pizzabot.outbox import store as outbox


def resume_everything(connection: sa.Connection, now: datetime, *, person: str, via: str) -> bool:
    """Undo `stop_everything`; False when nothing was stopped."""
    if not runs.resume_everything(connection):
        return False
    audit.append(connection, now, actor=person, via=via, event="everything.resumed", subject="all")
    return True


def retry(connection: sa.Connection, thread_id: str, now: datetime, *, person: str, via: str) -> str:
    """Queue the thread's newest run again, from where it got; the run's id.

    Raises Conflict when it did not fail and was not stopped.
    """
    run = runs.newest(connection, thread_id)
    if run is None or not runs.retry(connection, run.id, now, person=person, via=via):
        state = run.state if run else "empty"
        raise Conflict(
            f"Only a failed or stopped thread can be retried; this one is {state}.", code="not_failed"
        )
    audit.append(
        connection,
        now,
        actor=person,
        via=via,
        event="run.retried",
        subject=run.id,
        data={"thread": thread_id},
    )
    return run.id


def delete_thread(
    connection: sa.Connection, thread_id: str, now: datetime, *, person: str, via: str
) -> tuple[list[str], list[outbox.Delivery]]:
    """Remove the thread's rows; the names of its attachment files, which the caller removes, and its copies
    with something to press, which channels close.
    """
    files = [row.id for row in threads.attachments_of(connection, thread_id)]
    copies = outbox.open_copies(connection, thread_id)
    if not threads.delete(connection, thread_id):
        raise NotFound("There is no such thread.")
    audit.append(connection, now, actor=person, via=via, event="thread.deleted", subject=thread_id)
    return files, copies


def last_answered(connection: sa.Connection, thread_id: str, message_seq: int) -> str | None:
    """The run whose answer is the last up to a message: its state is where a fork there goes on.

    Raises NotFound when the message is not in the thread.
    """
    kept = _up_to(connection, thread_id, message_seq)
    return next((m.run_id for m in reversed(kept) if m.role == "assistant"), None)


def _up_to(connection: sa.Connection, thread_id: str, message_seq: int) -> list[threads.Message]:
    kept = [m for m in threads.messages_of(connection, thread_id) if m.seq <= message_seq]
    if not kept or kept[-1].seq != message_seq:
        raise NotFound("There is no such message in this thread.")
    return kept


def fork(
    connection: sa.Connection,
    thread: threads.Thread,
    message_seq: int,
    now: datetime,
    *,
    person: str,
    via: str,
    target: str,
) -> None:
    """Make the thread `target` from a thread's messages up to and with one of them.

    The graph's state is copied before: what a crash in between leaves is swept. Files stay with the original.
    """
    kept = _up_to(connection, thread.id, message_seq)
    title = threads.one_line(f"{thread.title} (fork)", threads.TITLE_LENGTH)
    threads.create(
        connection,
        now,
        owner=person,
        channel=via,
        address=None,
        title=title,
        title_source="user",
        thread_id=target,
        skills=thread.skills,
    )
    answered = {m.run_id for m in kept if m.role == "assistant"}
    for message in kept:
        threads.add_message(
            connection,
            target,
            now,
            role=message.role,
            author=message.author,
            text=message.text,
            # What the copied state has not answered is held for the fork's first run.
            run_id=message.run_id if message.role != "user" or message.run_id in answered else None,
            channel=message.channel,
            created_at=message.created_at,
        )
    copied = Counter(m.channel for m in kept if m.role == "user" and m.channel is not None)
    tallies.note(connection, tallies.ARRIVED, {name: -count for name, count in copied.items()})  # once only
    threads.mark(connection, target, unread=False, archived=None)
    origin = {"from": thread.id, "message": message_seq}
    audit.append(connection, now, actor=person, via=via, event="thread.forked", subject=target, data=origin)
