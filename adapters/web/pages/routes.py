"""Which page is where? The table of the web view, and what every request of it goes through.

cookie -> session -> person;  none? to the login, and back afterwards
GET  -> page(visit)                       changes nothing, whatever is asked for
POST -> form -> its token is ours? -> change(visit, form) -> 303 to the page that shows it
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pizzabot.doors import Doors
from pizzabot.errors import Forbidden, Refused

from ..body import FILES_BYTES
from ..forms import Form
from ..refusals import TooLarge, TooMany, TooSlow
from . import actions, house, inbox, live, login, threads, traces, triggers
from .html import bare, page, static
from .visit import Visit, is_ours, read_form

Show = Callable[[Visit], Awaitable[Response]]
Change = Callable[[Visit, Form], Awaitable[Response]]


class Page(NamedTuple):
    """What a path shows, and what a form sent to it changes."""

    show: Show | None = None
    change: Change | None = None


TABLE: Mapping[str, Page] = {
    "/": Page(inbox.show),
    "/inbox": Page(change=inbox.change),
    "/threads": Page(change=threads.create),
    "/threads/{thread_id}": Page(threads.show),
    "/threads/{thread_id}/messages": Page(change=threads.add),
    "/threads/{thread_id}/messages/{message_id}": Page(threads.whole_message),
    "/threads/{thread_id}/trace": Page(traces.show),
    "/threads/{thread_id}/stop": Page(change=threads.stop),
    "/threads/{thread_id}/retry": Page(change=threads.retry),
    "/threads/{thread_id}/title": Page(change=threads.rename),
    "/threads/{thread_id}/read": Page(change=threads.mark_read),
    "/threads/{thread_id}/archive": Page(change=threads.archive),
    "/threads/{thread_id}/fork": Page(change=threads.fork),
    "/threads/{thread_id}/delete": Page(threads.confirm_delete, threads.delete),
    "/threads/{thread_id}/attachments/{attachment_id}": Page(threads.attachment),
    "/actions/{action_id}": Page(actions.show, actions.decide),
    "/actions/{action_id}/reopen": Page(change=actions.reopen),
    "/actions/{action_id}/snooze": Page(change=actions.snooze),
    "/skills": Page(house.skills, house.switch_skill),
    "/mcp": Page(house.servers, house.reconnect),
    "/triggers": Page(triggers.index, triggers.create),
    "/triggers/{trigger_id}": Page(triggers.show, triggers.change),
    "/memory": Page(house.memory),
    "/usage": Page(house.usage),
    "/audit": Page(house.audit),
    "/audit/export": Page(house.export_audit),
    "/status": Page(house.status),
    "/stop": Page(change=house.stop_everything),
    "/resume": Page(change=house.resume_everything),
    "/logout": Page(change=login.log_out),
    "/events": Page(live.events),
}


def routes(doors: Doors) -> list[Route]:
    """The routes of the web view; one per path."""
    attempts = login.Attempts()

    async def log_in(request: Request) -> Response:
        try:
            if request.method == "POST":
                return await login.log_in(request, doors, attempts)
            return await login.show(request, doors)
        except (TooLarge, TooSlow):
            raise
        except Refused as error:
            return _refused(error)

    return [
        Route("/login", log_in, methods=["GET", "POST"]),
        Route("/static/{name}", _static, methods=["GET"]),
        *(Route(path, _serve(doors, served), methods=_methods(served)) for path, served in TABLE.items()),
    ]


def _methods(served: Page) -> list[str]:
    return [*(["GET"] if served.show else []), *(["POST"] if served.change else [])]


def _serve(doors: Doors, served: Page) -> Callable[[Request], Awaitable[Response]]:
    async def serve(request: Request) -> Response:
        secret = request.cookies.get(login.SESSION, "")
        person = await doors.sessions.person_of(secret) if secret else None
        if person is None:
            return _stranger(request)
        visit = Visit(request, doors, person, secret)
        try:
            if request.method == "POST" and served.change is not None:
                return await served.change(visit, await _own_form(request, secret))
            assert served.show is not None
            return await served.show(visit)
        except (TooLarge, TooSlow):
            raise  # the body is still on its way, which the guard knows how to end
        except Refused as error:
            return await page(visit, "refused", error.status, error=error)

    return serve


async def _own_form(request: Request, secret: str) -> Form:
    form = await read_form(request, FILES_BYTES)
    if not is_ours(form, secret):
        raise Forbidden(
            "This form is too old or was not made here, and nothing was changed. "
            "Go back, load the page again and send it from there.",
            code="bad_csrf",
        )
    return form


def _stranger(request: Request) -> Response:
    """Nobody we know; or a browser that another site sent here and that kept its cookie back."""
    if request.method not in ("GET", "HEAD"):
        return bare(
            "refused", 403, error=Forbidden("You are not logged in; nothing was changed. Log in again.")
        )
    if request.url.path == "/events":
        return Response(status_code=403)
    if request.headers.get("sec-fetch-site") == "cross-site":
        # A link in a mail or in Slack. A page of ours that leads on is this site itself, and gets the cookie.
        return bare("onward")
    return login.to_login(request)


def _refused(error: Refused) -> Response:
    response = bare("refused", error.status, error=error)
    if isinstance(error, TooMany):
        response.headers["Retry-After"] = "60"
    return response


async def _static(request: Request) -> Response:
    try:
        return await static(request)
    except Refused as error:
        return _refused(error)
