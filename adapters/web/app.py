"""What does the server serve? The API and every other channel's routes; errors in the reader's form."""

from __future__ import annotations

import asyncio

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response

from pizzabot.doors import Doors
from pizzabot.errors import Refused
from pizzabot.settings.tables import WebTable

from .api import routes as api
from .guards import Guard, own_names
from .refusals import MethodNotAllowed, NoSuchPath
from .refused import refused


def build_app(doors: Doors, port: int, closing: asyncio.Event) -> Starlette:
    """The application of a server on `port`; `closing` ends what would stay open."""
    web = doors.settings.web
    names = own_names(port, (web.public_url, *web.allowed_origins))
    app = Starlette(
        routes=[*api.routes(doors), *doors.routes()],
        middleware=[Middleware(Guard, names=names, answered=doors.metrics.answered)],
        exception_handlers={HTTPException: _no_route},
    )
    app.router.redirect_slashes = False  # a redirect would turn a POST of a mistyped path into something else
    app.state.closing = closing
    app.state.public_url = public_url(web, port)
    app.state.names = names
    return app


def public_url(web: WebTable, port: int) -> str:
    """Where people reach the server; port 0 became one that the settings do not know."""
    return web.public_url if web.port != 0 else f"{web.public_url.removesuffix(':0')}:{port}"


async def _no_route(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    refusal: Refused
    if error.status_code == 404:
        refusal = NoSuchPath(f"There is nothing at {request.url.path[:200]}.")
    elif error.status_code == 405:
        allowed = ", ".join(sorted(headers.pop("Allow", "").split(", ")))
        headers["Allow"] = allowed
        refusal = MethodNotAllowed(f"{request.method} is not possible here; possible: {allowed}.")
    else:
        refusal = Refused(str(error.detail))
    response = refused(request.url.path, request.headers, refusal)
    response.status_code = error.status_code
    response.headers.update(headers)
    return response
