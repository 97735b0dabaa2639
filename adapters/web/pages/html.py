"""How does a page leave? A template filled in, with the headers that keep it what it is."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from functools import cache
from typing import Any

from jinja2 import Environment
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from pizzabot.errors import NotFound
from pizzabot.markdown import markup, plain
from pizzabot.rendering import html_templates, read_file
from pizzabot.text import exact, visible

from . import times
from .visit import Visit

# Nothing from elsewhere, nothing inline, in no frame, and forms that only we receive.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
_STATIC: Mapping[str, str] = {
    "app.css": "text/css; charset=utf-8",
    "app.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}


@cache
def _templates() -> Environment:
    environment = html_templates(
        {
            "markup": markup,
            "plain": plain,
            "visible": visible,
            "exact": exact,
            "took": times.took,
            "size": times.size,
            "money": times.money,
            "bar": times.bar,
        }
    )
    environment.globals["asset"] = asset
    return environment


@cache
def asset(name: str) -> str:
    """The URL of a file of ours; it changes with the file, so browsers may keep it."""
    return f"/static/{name}?v={hashlib.sha256(read_file(f'web/static/{name}')).hexdigest()[:12]}"


async def static(request: Request) -> Response:
    """`GET /static/{name}`: styles, script and icon, for whoever asks."""
    name = str(request.path_params["name"])
    if name not in _STATIC:
        raise NotFound("There is no such file.")
    lasting = "public, max-age=31536000, immutable" if request.query_params.get("v") else "no-cache"
    return Response(read_file(f"web/static/{name}"), 200, {"Cache-Control": lasting}, _STATIC[name])


def bare(template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """A page for somebody who is not logged in."""
    text = _templates().get_template(f"web/{template}.html.j2").render(visit=None, **values)
    return HTMLResponse(text, status, {"Content-Security-Policy": POLICY})


async def page(visit: Visit, template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """A page of the house, for the person who visits it."""
    stopped = await visit.doors.reports.stopped()
    render = _templates().get_template(f"web/{template}.html.j2").render
    # In a thread: a page of long reports takes long, and nobody else is to wait for it.
    text = await asyncio.to_thread(render, visit=visit, times=visit.times, stopped=stopped, **values)
    return HTMLResponse(text, status, {"Content-Security-Policy": POLICY})


def see_other(path: str) -> Response:
    """After a change: look there (303), so that loading again does not change again."""
    return RedirectResponse(path, 303)
