"""What was said and done in a thread, and what can be done about it?"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from starlette.responses import PlainTextResponse, Response

from pizzabot.errors import Invalid, NotFound, Refused, Unavailable
from pizzabot.messages import ACTIVE_RUN_STATES, InboundMessage

from ..forms import Form
from ..ids import positive
from ..keys import form_key
from ..render import content_disposition, stored_file
from ..saying import say
from .actions import card
from .html import page, see_other
from .inbox import back_to
from .inbox import form as inbox
from .visit import VIA, Visit

MESSAGES = 50
# So much of a page is shown as Markdown; taking more apart would keep everybody waiting.
_MARKDOWN_CHARACTERS = 200_000
# And so much is shown at all; of longer messages the beginning, and a link to the whole.
_SHOWN_CHARACTERS = 600_000


async def show(visit: Visit) -> Response:
    """`GET /threads/{thread_id}?before=&after=`: the newest messages, or those next to another one."""
    return await _page(visit)


async def _page(visit: Visit, status: int = 200, *, draft: str = "", problem: str | None = None) -> Response:
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
        status,
        thread=thread,
        timeline=timeline(messages, thread["runs"], thread["actions"], thread["activity"]),
        plain=_beyond(messages, _MARKDOWN_CHARACTERS),
        beyond=_beyond(messages, _SHOWN_CHARACTERS),
        older=f"?before={messages[0]['id']}" if thread["has_older"] and messages else None,
        newer=f"?after={messages[-1]['id']}" if thread["has_newer"] and messages else None,
        active=thread["state"] in ACTIVE_RUN_STATES,
        writes=visit.writes_in(thread["owner"]),
        owns=visit.owns(thread["owner"]),
        key=secrets.token_urlsafe(12),
        draft=draft,
        problem=problem,
    )


def _beyond(messages: Sequence[Mapping[str, Any]], budget: int) -> set[str]:
    """The ids of the messages that do not fit into so many characters, counted from the newest."""
    found: set[str] = set()
    for message in reversed(messages):
        budget -= len(message["text"])
        if budget < 0:
            found.add(message["id"])
    return found


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
    blocks: dict[str, dict[str, Any]] = {
        run["id"]: {"run": run, "activity": [], "actions": []} for run in runs
    }
    orphans: list[dict[str, Any]] = []
    for step in activity:
        if step["run_id"] in blocks:
            blocks[step["run_id"]]["activity"].append(step)
    for action in actions:
        block = blocks.get(action["run_id"])
        (block["actions"] if block is not None else orphans).append(card(action))
    found: list[dict[str, Any]] = []
    for message in messages:
        block = blocks.pop(message["run_id"], None) if message["role"] != "user" else None
        found += [block] if block is not None else []
        found.append({"message": message})
    found += blocks.values()
    return found + ([{"run": None, "activity": [], "actions": orphans}] if orphans else [])


async def create(visit: Visit, form: Form) -> Response:
    """`POST /threads`: hand over a piece of work."""
    try:
        thread_id = await _accept(visit, form, None)
    except (Invalid, Unavailable) as error:
        return await inbox(visit, error.status, draft=form.texts.get("text", ""), problem=_told(error, form))
    return see_other(_sent(thread_id, form))


async def add(visit: Visit, form: Form) -> Response:
    """`POST /threads/{thread_id}/messages`: go on in a thread."""
    thread_id = visit.id("thread_id", "thread")
    try:
        await _accept(visit, form, thread_id)
    except (Invalid, Unavailable) as error:
        return await _page(visit, error.status, draft=form.texts.get("text", ""), problem=_told(error, form))
    return see_other(_sent(thread_id, form) + "#end")


def _told(error: Refused, form: Form) -> str:
    return f"{error} Choose the files again, too." if form.files else str(error)


def _sent(thread_id: str, form: Form) -> str:
    # Names the form that was taken: only now may the page's script forget the draft.
    return f"/threads/{thread_id}?{urlencode({'sent': form.texts.get('key', '')[:64]})}"


async def _accept(visit: Visit, form: Form, thread_id: str | None) -> str:
    text = form.texts.get("text", "").replace("\r\n", "\n")
    files = [file for name, file in form.files if name == "files"]
    key = form.texts.get("key", "")
    message = InboundMessage(
        channel=VIA,
        person=visit.person.name,
        text=text,
        thread_id=thread_id,
        key=form_key(visit.person, f"{thread_id or 'new'}/{key[:64]}", text, files) if key else None,
        attachments=files,
    )
    accepted = await say(visit.doors, message, seen=positive(form.texts.get("seen")))
    return accepted.thread_id


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
    thread_id, unread = visit.id("thread_id", "thread"), bool(form.texts.get("unread"))
    await visit.doors.change_thread(thread_id, visit.person, unread=unread)
    # Who marks it unread is done with it for now; a page that stays in front of them would be read again.
    return see_other(back_to("/", done="unread", thread=thread_id) if unread else f"/threads/{thread_id}")


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


async def whole_message(visit: Visit) -> Response:
    """`GET …/messages/{message_id}`: a message as a text file, when it is too long for the page."""
    thread_id, number = visit.id("thread_id", "thread"), positive(visit.request.path_params["message_id"])
    found = await visit.doors.reports.thread(
        visit.person, thread_id, limit=1, before=min((number or 0) + 1, 2**62)
    )
    if found is None or not found["messages"] or found["messages"][0]["id"] != str(number):
        raise NotFound("There is no such message in this thread.")
    headers = {"Content-Disposition": content_disposition(f"message-{number}.txt")}
    return PlainTextResponse(found["messages"][0]["text"], headers=headers)


async def attachment(visit: Visit) -> Response:
    """`GET …/attachments/{attachment_id}`: to be stored, never shown in place."""
    thread_id, attachment_id = visit.id("thread_id", "thread"), visit.id("attachment_id", "attachment")
    return stored_file(await visit.doors.attachment(thread_id, attachment_id, visit.person))
