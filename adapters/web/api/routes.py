"""Which path leads where? The table of the HTTP API, and what every request of it goes through.

token -> person -> endpoint(call) -> JSON; a conflict also shows the action as it is now
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pizzabot.doors import Doors
from pizzabot.errors import NotFound, Refused
from pizzabot.messages import Action
from pizzabot.metrics import CONTENT_TYPE
from pizzabot.people import Person, administer

from ..refusals import TooLarge, TooSlow, Unauthorized
from ..render import answer, error_body
from . import actions, auth, events, house, threads, triggers
from .call import Call

Endpoint = Callable[[Call], Awaitable[Response]]

TABLE: Mapping[str, Mapping[str, Endpoint]] = {
    "/api/threads": {"GET": threads.inbox, "POST": threads.create},
    "/api/threads/{thread_id}": {"GET": threads.show, "PATCH": threads.change, "DELETE": threads.delete},
    "/api/threads/{thread_id}/messages": {"POST": threads.add},
    "/api/threads/{thread_id}/trace": {"GET": threads.trace},
    "/api/threads/{thread_id}/stop": {"POST": threads.stop},
    "/api/threads/{thread_id}/retry": {"POST": threads.retry},
    "/api/threads/{thread_id}/fork": {"POST": threads.fork},
    "/api/threads/{thread_id}/attachments/{attachment_id}": {"GET": threads.attachment},
    "/api/actions": {"GET": actions.index},
    "/api/actions/{action_id}": {"GET": actions.show},
    "/api/actions/{action_id}/decision": {"POST": actions.decide},
    "/api/actions/{action_id}/reopen": {"POST": actions.reopen},
    "/api/actions/{action_id}/snooze": {"POST": actions.snooze},
    "/api/triggers": {"GET": triggers.index, "POST": triggers.create},
    "/api/triggers/{trigger_id}": {
        "GET": triggers.show,
        "PATCH": triggers.change,
        "DELETE": triggers.delete,
    },
    "/api/triggers/{trigger_id}/run": {"POST": triggers.run},
    "/api/triggers/{trigger_id}/occurrences": {"GET": triggers.occurrences},
    "/api/skills": {"GET": house.skills},
    "/api/skills/{skill_id}": {"PATCH": house.switch_skill},
    "/api/mcp": {"GET": house.servers},
    "/api/mcp/{name}/reconnect": {"POST": house.reconnect},
    "/api/status": {"GET": house.status},
    "/api/usage": {"GET": house.usage},
    "/api/audit": {"GET": house.audit},
    "/api/audit/verify": {"GET": house.verify_audit},
    "/api/audit/export": {"GET": house.export_audit},
    "/api/retention": {"GET": house.old, "POST": house.remove_old},
    "/api/stop": {"POST": house.stop_everything},
    "/api/resume": {"POST": house.resume_everything},
    "/api/events": {"GET": events.events},
    "/api/me": {"GET": house.me},
    "/api/login-links": {"POST": house.login_link},
}


def routes(doors: Doors) -> list[Route]:
    """The API's routes; one per path, so that a wrong method is answered with all that are right."""
    made = [Route(path, _serve(doors, methods), methods=list(methods)) for path, methods in TABLE.items()]
    known = [Route("/healthz", house.health), Route("/metrics", _metrics(doors)), triggers.hook(doors)]
    return [*known, *made]


def _metrics(doors: Doors) -> Callable[[Request], Awaitable[Response]]:
    async def metrics(request: Request) -> Response:
        try:
            token = auth.bearer_token(request.headers)
            if not doors.metrics.is_scraper(token):
                administer(auth.person_with(token, doors))
        except Refused as error:
            return await _refusal(error, doors, None)
        return Response(await doors.metrics.exposition(), media_type=CONTENT_TYPE)

    return metrics


def _serve(doors: Doors, methods: Mapping[str, Endpoint]) -> Callable[[Request], Awaitable[Response]]:
    async def serve(request: Request) -> Response:
        person: Person | None = None
        try:
            person = auth.person_with(auth.bearer_token(request.headers), doors)
            called = "GET" if request.method == "HEAD" else request.method
            return await methods[called](Call(request, doors, person, _via(request)))
        except (TooLarge, TooSlow):
            raise  # the body is still on its way, which the guard knows how to end
        except Refused as error:
            return await _refusal(error, doors, person)

    return serve


def _via(request: Request) -> str:
    return "terminal" if request.headers.get("x-pizzabot-client") == "terminal" else "api"


async def _refusal(error: Refused, doors: Doors, person: Person | None) -> Response:
    headers = {"WWW-Authenticate": 'Bearer realm="Pizza Bot"'} if isinstance(error, Unauthorized) else None
    action = await _present(error.details.get("action"), doors, person)
    return answer(error_body(error, action), error.status, headers)


async def _present(action: Any, doors: Doors, person: Person | None) -> Mapping[str, Any] | None:
    if not isinstance(action, Action) or person is None:
        return None
    try:
        return await doors.reports.action(person, action.id)
    except NotFound:  # deleted since
        return None
