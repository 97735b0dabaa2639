"""Which requests concern decisions? `/api/actions…`: what waits, and what a person says to it."""

from __future__ import annotations

from starlette.responses import Response

from pizzabot.errors import Invalid
from pizzabot.inbox.pages import MAX_PAGE
from pizzabot.messages import ActionState, Decision

from ..render import answer
from . import parse
from .call import Call


async def index(call: Call) -> Response:
    """`GET /api/actions?state=&limit=&before=`, newest first; `next_before` goes on from there."""
    word = call.request.query_params.get("state")
    if word is not None and word not in list(ActionState):
        raise Invalid(f'"state" is not known; use one of {", ".join(ActionState)}.', code="invalid_query")
    limit, before = call.number("limit", MAX_PAGE, most=MAX_PAGE), call.id_query("before")
    state = ActionState(word) if word is not None else None
    found = await call.doors.reports.actions(call.person, state, limit=limit, before=before)
    return answer({"actions": found, "next_before": found[-1]["id"] if len(found) == limit else None})


async def show(call: Call) -> Response:
    """`GET /api/actions/{action_id}`."""
    return answer(await call.doors.reports.action(call.person, call.id("action_id", "action")))


async def decide(call: Call) -> Response:
    """`POST /api/actions/{action_id}/decision`: the action as it is then."""
    action_id = call.id("action_id", "action")
    await call.doors.reports.action(call.person, action_id)  # who may not see it learns nothing from its body
    said = parse.said(await call.json())
    await call.doors.decide(
        Decision(
            action_id=action_id,
            person=call.person.name,
            via=call.via,
            verdict=said.verdict,
            args=said.args,
            reason=said.reason,
            response=said.response,
            digest=said.digest,
        )
    )
    return answer(await call.doors.reports.action(call.person, action_id))


async def reopen(call: Call) -> Response:
    """`POST /api/actions/{action_id}/reopen`: an expired action waits again."""
    action_id = call.id("action_id", "action")
    parse.nothing(await call.json(empty={}))
    await call.doors.reopen(action_id, call.person, call.via)
    return answer(await call.doors.reports.action(call.person, action_id))


async def snooze(call: Call) -> Response:
    """`POST /api/actions/{action_id}/snooze`: not before then, for the person who asks."""
    action_id = call.id("action_id", "action")
    await call.doors.reports.action(call.person, action_id)
    await call.doors.snooze(action_id, call.person, parse.snooze(await call.json()), call.via)
    return answer(await call.doors.reports.action(call.person, action_id))
