"""How does a person steer? Stop, resume, retry, delete and fork, each one transaction (promise 14)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from pizzabot import audit
from pizzabot.approvals import store as actions
from pizzabot.errors import Conflict, NotFound
from pizzabot.ids import new_id
from pizzabot.inbox import runs, threads
from pizzabot.messages import RunState
from pizzabot.outbox import store as outbox


def stop_thread(connection: sa.Connection, thread_id: str, now: datetime, *, person: str, via: str) -> bool:
    """Stop the thread's active run and withdraw what it asked; False when nothing was active.

    Held messages stay held: they go with the next message that a person sends.
    """
    run = runs.active(connection, thread_id)
    if run is None or not runs.stop(connection, run.id, now):
        return False
    for action in actions.withdraw(connection, thread_id):
        outbox.repaint(connection, action.id, action.state, now)
    threads.add_message(
        connection,
        thread_id,
        now,
        role="notice",
        author=threads.AGENT_NAME,
        text=f"Stopped by {person}. Retry goes on from here; a new message starts anew.",
        run_id=run.id,
    )
    threads.mark(connection, thread_id, unread=False, archived=None)
    audit.append(
        connection,
        now,
        actor=person,
        via=via,
        event="run.stopped",
        subject=run.id,
        data={"thread": thread_id},
    )
    return True


def stop_everything(connection: sa.Connection, now: datetime, *, person: str, via: str) -> list[str]:
    """Stop what runs, and start nothing until `resume_everything`; the threads whose runs were stopped.

    What is queued stays queued, what waits for a decision keeps waiting: neither does anything meanwhile.
    """
    runs.stop_everything(connection, now, person=person, via=via)
    audit.append(connection, now, actor=person, via=via, event="everything.stopped", subject="all")
    busy = [run.thread_id for run in runs.running(connection)]
    for thread_id in busy:
        stop_thread(connection, thread_id, now, person=person, via=via)
    return busy


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
    failed = (RunState.FAILED, RunState.STOPPED)
    if run is None or not runs.requeue(connection, run.id, now, from_states=failed):
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
) -> list[str]:
    """Remove the thread's rows; the names of its attachment files, which the caller removes."""
    files = [row.id for row in threads.attachments_of(connection, thread_id)]
    if not threads.delete(connection, thread_id):
        raise NotFound("There is no such thread.")
    audit.append(connection, now, actor=person, via=via, event="thread.deleted", subject=thread_id)
    return files


@dataclass(frozen=True, slots=True)
class Fork:
    """A new thread with the beginning of another; `run_id` is the last run whose state it takes over."""

    thread_id: str
    run_id: str | None


def fork(
    connection: sa.Connection,
    thread: threads.Thread,
    message_seq: int,
    now: datetime,
    *,
    person: str,
    via: str,
) -> Fork:
    """Copy a thread's messages up to and with one of them. Its files stay with the original.

    Raises NotFound when the message is not in the thread.
    """
    kept = [m for m in threads.messages_of(connection, thread.id) if m.seq <= message_seq]
    if not kept or kept[-1].seq != message_seq:
        raise NotFound("There is no such message in this thread.")
    target = new_id()
    threads.create(
        connection,
        now,
        owner=person,
        channel=thread.channel if thread.address == thread.id else via,
        address=None,
        title=threads.one_line(f"{thread.title} (fork)", threads.TITLE_LENGTH),
        title_source="user",
        thread_id=target,
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
    threads.mark(connection, target, unread=False, archived=None)
    audit.append(
        connection,
        now,
        actor=person,
        via=via,
        event="thread.forked",
        subject=target,
        data=_origin(thread, message_seq),
    )
    last = next((m.run_id for m in reversed(kept) if m.role == "assistant"), None)
    return Fork(target, last)


def _origin(thread: threads.Thread, message_seq: int) -> dict[str, Any]:
    return {"from": thread.id, "message": message_seq}
