"""What was said and done in a thread, and what can be done about it?"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import Response

from pizzabot.errors import Invalid, NotFound
from pizzabot.messages import Attachment, InboundMessage

from ..forms import Form
from ..keys import inbound_key
from ..render import stored_file
from .actions import card
from .html import page, see_other
from .inbox import back_to
from .visit import VIA, Visit

MESSAGES = 50
_ACTIVE = ("queued", "running", "waiting")


async def show(visit: Visit) -> Response:
    """`GET /threads/{thread_id}?before=&after=`: the newest messages, or those next to another one."""
    before, after = visit.number("before", 2**62), visit.number("after", 2**62)
    thread = await visit.doors.reports.thread(
        visit.person, visit.id("thread_id", "thread"), limit=MESSAGES, before=before, after=after
    )
    if thread is None:
        raise NotFound("There is no such thread.")
    messages = thread["messages"]
    return await page(
        visit,
        "thread",
        thread=thread,
        timeline=timeline(messages, thread["runs"], thread["actions"], thread["activity"]),
        older=f"?before={messages[0]['id']}" if thread["has_older"] and messages else None,
        newer=f"?after={messages[-1]['id']}" if thread["has_newer"] and messages else None,
        active=thread["state"] in _ACTIVE,
        writes=visit.writes_in(thread["owner"]),
        owns=visit.owns(thread["owner"]),
        key=secrets.token_urlsafe(12),
    )


def timeline(
    messages: Sequence[Mapping[str, Any]],
    runs: Sequence[Mapping[str, Any]],
    actions: Sequence[Mapping[str, Any]],
    activity: Sequence[Mapping[str, Any]],
) -> list[dict[str, Any]]:
    """Messages in their order, and before the first word that a run said, the run: what it did and asked.

    `[{"message": …} | {"run": …, "activity": […], "actions": […]}]`. A run that said nothing yet comes last,
    and so do actions whose run is on an older page but which still wait.
    """
    blocks = {
        run["id"]: {
            "run": run,
            "activity": [row for row in activity if row["run_id"] == run["id"]],
            "actions": [card(action) for action in actions if action["run_id"] == run["id"]],
        }
        for run in runs
    }
    orphans = [card(action) for action in actions if action["run_id"] not in blocks]
    found: list[dict[str, Any]] = []
    for message in messages:
        block = blocks.pop(message["run_id"], None) if message["role"] != "user" else None
        found += [block] if block is not None else []
        found.append({"message": message})
    found += blocks.values()
    return found + ([{"run": None, "activity": [], "actions": orphans}] if orphans else [])


async def create(visit: Visit, form: Form) -> Response:
    """`POST /threads`: hand over a piece of work."""
    return see_other(f"/threads/{await _accept(visit, form, None)}")


async def add(visit: Visit, form: Form) -> Response:
    """`POST /threads/{thread_id}/messages`: go on in a thread."""
    thread_id = await _accept(visit, form, visit.id("thread_id", "thread"))
    return see_other(f"/threads/{thread_id}#end")


async def _accept(visit: Visit, form: Form, thread_id: str | None) -> str:
    # The page's own key: a form that is sent twice is taken once.
    key = form.texts.get("key", "")
    accepted = await visit.doors.accept(
        InboundMessage(
            channel=VIA,
            person=visit.person.name,
            text=form.texts.get("text", "").replace("\r\n", "\n"),
            thread_id=thread_id,
            key=inbound_key(VIA, visit.person, key[:64]) if key else None,
            attachments=tuple(_named(file) for name, file in form.files if name == "files"),
        )
    )
    return accepted.thread_id


def _named(file: Attachment) -> Attachment:
    """Some browsers send no type for files they do not know."""
    return Attachment(file.filename, file.media_type or "application/octet-stream", file.data)


async def stop(visit: Visit, form: Form) -> Response:  # noqa: ARG001 - every change takes the form
    """`POST …/stop`."""
    thread_id = visit.id("thread_id", "thread")
    await visit.doors.stop_thread(thread_id, visit.person, VIA)
    return see_other(f"/threads/{thread_id}")


async def retry(visit: Visit, form: Form) -> Response:  # noqa: ARG001
    """`POST …/retry`."""
    thread_id = visit.id("thread_id", "thread")
    await visit.doors.retry(thread_id, visit.person, VIA)
    return see_other(f"/threads/{thread_id}")


async def rename(visit: Visit, form: Form) -> Response:
    """`POST …/title` `title`."""
    thread_id = visit.id("thread_id", "thread")
    await visit.doors.change_thread(thread_id, visit.person, title=form.texts.get("title", ""))
    return see_other(f"/threads/{thread_id}")


async def mark_read(visit: Visit, form: Form) -> Response:
    """`POST …/read` `unread?`."""
    thread_id = visit.id("thread_id", "thread")
    await visit.doors.change_thread(thread_id, visit.person, unread=bool(form.texts.get("unread")))
    return see_other(f"/threads/{thread_id}")


async def archive(visit: Visit, form: Form) -> Response:
    """`POST …/archive` `undo?`: back to the inbox, which offers to undo it."""
    thread_id, undo = visit.id("thread_id", "thread"), bool(form.texts.get("undo"))
    await visit.doors.change_thread(thread_id, visit.person, archived=not undo)
    if undo:
        return see_other(f"/threads/{thread_id}")
    return see_other(back_to("/", done="archive", thread=thread_id))


async def fork(visit: Visit, form: Form) -> Response:
    """`POST …/fork` `message_id`: to the new thread."""
    thread_id = visit.id("thread_id", "thread")
    message_id = form.texts.get("message_id")
    if message_id is None:
        raise Invalid("The form names no message; go back and press a button there.")
    made = await visit.doors.fork_thread(thread_id, message_id, visit.person, VIA)
    return see_other(f"/threads/{made}")


async def confirm_delete(visit: Visit) -> Response:
    """`GET …/delete`: what would be gone, and a button."""
    thread = await visit.doors.thread(visit.id("thread_id", "thread"), visit.person)
    return await page(visit, "delete", thread=thread, writes=visit.writes_in(thread.owner))


async def delete(visit: Visit, form: Form) -> Response:  # noqa: ARG001
    """`POST …/delete`."""
    await visit.doors.delete_thread(visit.id("thread_id", "thread"), visit.person, VIA)
    return see_other(back_to("/", done="delete"))


async def attachment(visit: Visit) -> Response:
    """`GET …/attachments/{attachment_id}`: to be stored, never shown in place."""
    thread_id, attachment_id = visit.id("thread_id", "thread"), visit.id("attachment_id", "attachment")
    return stored_file(await visit.doors.attachment(thread_id, attachment_id, visit.person))
