"""How does a program watch? `GET /api/events`."""

from __future__ import annotations

from starlette.responses import Response

from pizzabot.errors import Refused

from ..watching import EventStream, Sight
from .auth import bearer_token, person_with
from .call import Call


async def events(call: Call) -> Response:
    """`GET /api/events?thread=`."""
    only = call.id_query("thread")
    if only is not None:
        await call.doors.thread(only, call.person)
    token = bearer_token(call.request.headers)

    async def still_known() -> bool:
        try:
            return person_with(token, call.doors) is not None
        except Refused:
            return False

    return EventStream(Sight(call.doors, call.person, only), still_known, call.request.app.state.closing)
