"""Which requests are about triggers? Their list, each one, its firings; and the door for others' programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pizzabot.doors import Doors
from pizzabot.errors import Invalid, Refused
from pizzabot.triggers.trigger import Occurrence, Trigger, fields_of
from pizzabot.triggers.triggers import MAX_BODY_BYTES, Made

from .. import body
from ..refusals import TooLarge, TooSlow
from ..render import answer, error_body
from .call import Call

_MAX_OCCURRENCES = 200


async def index(call: Call) -> Response:
    """`GET /api/triggers`: those that the person may see, by name."""
    return answer({"triggers": [trigger_row(t) for t in await call.doors.triggers.all(call.person)]})


async def create(call: Call) -> Response:
    """`POST /api/triggers`: 201, the trigger; a secret that was made here is in it this once."""
    written = _object(await call.json())
    made = await call.doors.triggers.create(written, call.person, call.via)
    return answer(_made(call, made), 201)


async def show(call: Call) -> Response:
    """`GET /api/triggers/{trigger_id}`; the name is as good as the id."""
    return answer(trigger_row(await call.doors.triggers.get(_name(call), call.person)))


async def change(call: Call) -> Response:
    """`PATCH /api/triggers/{trigger_id}`: what is written changes, null sets a field back to its default."""
    written = _object(await call.json())
    made = await call.doors.triggers.change(_name(call), written, call.person, call.via)
    return answer(_made(call, made))


async def delete(call: Call) -> Response:
    """`DELETE /api/triggers/{trigger_id}`: 204; the threads it began stay."""
    await call.doors.triggers.remove(_name(call), call.person, call.via)
    return Response(status_code=204)


async def run(call: Call) -> Response:
    """`POST /api/triggers/{trigger_id}/run`: 202, the occurrence."""
    if _object(await call.json(empty={})):
        raise Invalid("A trigger is run without a body.", code="invalid_body")
    key = call.key()
    occurrence = await call.doors.triggers.run_now(_name(call), call.person, call.via, key)
    return answer(occurrence_row(occurrence), 202)


async def occurrences(call: Call) -> Response:
    """`GET /api/triggers/{trigger_id}/occurrences?limit=&before=`, newest first."""
    limit = call.number("limit", 50, most=_MAX_OCCURRENCES)
    found = await call.doors.triggers.occurrences(
        _name(call), call.person, limit=limit, before=call.id_query("before")
    )
    return answer(
        {
            "occurrences": [occurrence_row(one) for one in found],
            "next_before": found[-1].id if len(found) == limit else None,
        }
    )


def hook(doors: Doors) -> Route:
    """`POST /hooks/{trigger_id}`: 202 `{"occurrence_id", "thread_id"}`; the sender proves who it is."""

    async def serve(request: Request) -> Response:
        async def raw() -> bytes:
            return await body.read_body(request.receive, request.headers, MAX_BODY_BYTES)

        try:
            taken = await doors.triggers.receive(str(request.path_params["trigger_id"]), request.headers, raw)
        except (TooLarge, TooSlow):
            raise  # the body is still on its way, which the guard knows how to end
        except Refused as error:
            wait = {"Retry-After": "60"} if error.status == 429 else None
            return answer(error_body(error, None), error.status, wait)
        return answer({"occurrence_id": taken.id, "thread_id": taken.thread_id}, 202)

    return Route("/hooks/{trigger_id}", serve, methods=["POST"])


def trigger_row(trigger: Trigger) -> dict[str, Any]:
    """A trigger as the API shows it: what can be written, and how it stands."""
    return {
        "id": trigger.id,
        **fields_of(trigger),
        "paused": trigger.paused,
        "source": trigger.source,
        "created_at": trigger.created_at.isoformat(),
        "next_run_at": trigger.next_run_at.isoformat() if trigger.next_run_at else None,
        "last_run_at": trigger.last_run_at.isoformat() if trigger.last_run_at else None,
    }


def occurrence_row(occurrence: Occurrence) -> dict[str, Any]:
    """A firing as the API shows it."""
    row: dict[str, Any] = {
        "id": occurrence.id,
        "state": str(occurrence.state),
        "scheduled_at": occurrence.scheduled_at.isoformat(),
        "reason": occurrence.reason,
        "thread_id": occurrence.thread_id,
        "started_at": occurrence.started_at.isoformat() if occurrence.started_at else None,
        "ended_at": occurrence.ended_at.isoformat() if occurrence.ended_at else None,
    }
    if occurrence.late_seconds:
        row["late_seconds"] = occurrence.late_seconds
    if occurrence.missed:
        row["missed"] = occurrence.missed
    if occurrence.error is not None:
        row["error"] = occurrence.error
    return row


def _made(call: Call, made: Made) -> dict[str, Any]:
    row = trigger_row(made.trigger)
    if made.secret is not None:
        row["secret"] = made.secret
    if warnings := call.doors.triggers.warnings(made.trigger):
        row["warnings"] = warnings
    return row


def _name(call: Call) -> str:
    return str(call.request.path_params["trigger_id"])


def _object(written: Any) -> Mapping[str, Any]:
    if not isinstance(written, dict):
        raise Invalid("Send a JSON object with the fields of the trigger.", code="invalid_body")
    return written
