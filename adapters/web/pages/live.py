"""How does an open page learn that something changed? `GET /events`, for the script of our pages."""

from __future__ import annotations

from starlette.responses import Response

from ..watching import EventStream, Sight
from .visit import Visit


async def events(visit: Visit) -> Response:
    """A hint for each change that the person may see; it ends with the session."""

    async def still_known() -> bool:
        return await visit.doors.sessions.person_of(visit.secret) is not None

    sight = Sight(visit.doors, visit.person, None)
    return EventStream(sight, still_known, visit.request.app.state.closing)
