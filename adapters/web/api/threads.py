"""Which requests concern conversations? `/api/threads…`: write, read, steer, fetch files."""

from __future__ import annotations

import asyncio

from starlette.responses import Response

from pizzabot.errors import Invalid, NotFound
from pizzabot.inbox.pages import MAX_PAGE, MAX_SEARCH, View
from pizzabot.messages import Accepted, InboundMessage
from pizzabot.reports import thread_row

from .. import forms
from ..body import FILES_BYTES
from ..keys import inbound_key
from ..render import answer, stored_file
from ..saying import say
from . import parse
from .call import Call
from .parse import Written

_VIEWS: tuple[View, ...] = ("all", "unread", "action", "archived")
_DEFAULT_PAGE = 50
_TRACED_RUNS, _MAX_TRACED_RUNS = 20, 100
_MAX_MESSAGES = 200


async def inbox(call: Call) -> Response:
    """`GET /api/threads?view=&q=&limit=&cursor=`."""
    query = call.request.query_params
    view = next((known for known in _VIEWS if known == query.get("view", "all")), None)
    if view is None:
        raise Invalid(f'"view" is not known; use one of {", ".join(_VIEWS)}.', code="invalid_query")
    words = query.get("q", "")
    if len(words) > MAX_SEARCH:
        raise Invalid(
            f'"q" is longer than {MAX_SEARCH} characters; search for fewer words.', code="invalid_query"
        )
    limit = call.number("limit", _DEFAULT_PAGE, most=MAX_PAGE)
    page = await call.doors.reports.inbox(
        call.person, view, limit=limit, cursor=query.get("cursor"), words=words
    )
    return answer(page)


async def create(call: Call) -> Response:
    """`POST /api/threads`: 201, also when the same Idempotency-Key comes again."""
    return _accepted(await _accept(call, None), 201)


async def add(call: Call) -> Response:
    """`POST /api/threads/{thread_id}/messages`: 202; what comes while a run is active is held."""
    thread_id = call.id("thread_id", "thread")
    await call.doors.thread(thread_id, call.person)  # before a large body is read for nothing
    accepted = await _accept(call, thread_id)
    if accepted.thread_id != thread_id:
        raise Invalid(
            "This Idempotency-Key was used for another thread; use a new one for a new message.",
            code="idempotency_key_reused",
        )
    return _accepted(accepted, 202)


async def _accept(call: Call, thread_id: str | None) -> Accepted:
    key = _key(call)
    written = await _written(call, titled=thread_id is None)
    return await say(
        call.doors,
        InboundMessage(
            channel=call.via,
            person=call.person.name,
            text=written.text,
            thread_id=thread_id,
            title=written.title,
            key=key,
            attachments=written.attachments,
        ),
    )


async def _written(call: Call, *, titled: bool) -> Written:
    if call.media_type == forms.MULTIPART:
        form = await forms.read(await call.raw(FILES_BYTES), call.request.headers)
        return parse.message_of_form(form, titled=titled)
    sent = await call.json(limit_bytes=FILES_BYTES)
    if isinstance(sent, dict) and "attachments" in sent:  # base64 of megabytes
        return await asyncio.to_thread(parse.message, sent, titled=titled)
    return parse.message(sent, titled=titled)


def _key(call: Call) -> str | None:
    sent = call.key()
    return inbound_key("api", call.person, sent) if sent is not None else None


def _accepted(accepted: Accepted, status: int) -> Response:
    body = {
        "thread_id": accepted.thread_id,
        "run_id": accepted.run_id,
        "message_id": accepted.message_id,
        "held": accepted.held,
    }
    return answer(body, status, {"Idempotent-Replayed": "true"} if accepted.duplicate else None)


async def show(call: Call) -> Response:
    """`GET /api/threads/{thread_id}?messages=&before=&after=`; without `messages`, all of them."""
    thread_id = call.id("thread_id", "thread")
    limit = call.number("messages", 0, most=_MAX_MESSAGES) or None
    before, after = (call.number(name, 0, most=2**62) or None for name in ("before", "after"))
    if limit is None and (before or after):
        limit = _MAX_MESSAGES
    found = await call.doors.reports.thread(call.person, thread_id, limit=limit, before=before, after=after)
    if found is None:
        raise NotFound("There is no such thread.")
    return answer(found)


async def trace(call: Call) -> Response:
    """`GET …/trace?runs=&before=`: its newest runs step by step, or those before a run."""
    found = await call.doors.reports.trace(
        call.person,
        call.id("thread_id", "thread"),
        limit=call.number("runs", _TRACED_RUNS, most=_MAX_TRACED_RUNS),
        before=call.id_query("before"),
    )
    if found is None:
        raise NotFound("There is no such thread.")
    return answer(found)


async def change(call: Call) -> Response:
    """`PATCH /api/threads/{thread_id}`: the thread's row as it is then."""
    thread_id = call.id("thread_id", "thread")
    await call.doors.thread(thread_id, call.person)
    wanted = parse.thread_change(await call.json())
    await call.doors.change_thread(
        thread_id, call.person, unread=wanted.unread, archived=wanted.archived, title=wanted.title
    )
    return answer(thread_row(await call.doors.thread(thread_id, call.person)))


async def delete(call: Call) -> Response:
    """`DELETE /api/threads/{thread_id}`: 204; rows, state and files are gone."""
    await call.doors.delete_thread(call.id("thread_id", "thread"), call.person, call.via)
    return Response(status_code=204)


async def stop(call: Call) -> Response:
    """`POST …/stop`: `stopped` is false when nothing was active."""
    thread_id = call.id("thread_id", "thread")
    parse.nothing(await call.json(empty={}))
    return answer({"stopped": await call.doors.stop_thread(thread_id, call.person, call.via)})


async def retry(call: Call) -> Response:
    """`POST …/retry`: 202, the run goes on from where it got."""
    thread_id = call.id("thread_id", "thread")
    parse.nothing(await call.json(empty={}))
    run_id = await call.doors.retry(thread_id, call.person, call.via)
    return answer({"thread_id": thread_id, "run_id": run_id}, 202)


async def fork(call: Call) -> Response:
    """`POST …/fork`: 201 and the new thread."""
    thread_id = call.id("thread_id", "thread")
    message_id = parse.fork(await call.json())
    made = await call.doors.fork_thread(thread_id, message_id, call.person, call.via)
    return answer({"thread_id": made}, 201)


async def attachment(call: Call) -> Response:
    """`GET …/attachments/{attachment_id}`: the bytes, to be stored and never shown in place."""
    thread_id, attachment_id = call.id("thread_id", "thread"), call.id("attachment_id", "attachment")
    file = await call.doors.attachment(thread_id, attachment_id, call.person)
    return stored_file(file)
