"""What does a browser do, and what does it see?

And the application in this process that it talks to, with a clock and people of the test's own.
"""

from __future__ import annotations

import asyncio
import copy
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import httpx
from pizzabot.adapters.web.app import build_app
from pizzabot.adapters.web.pages import routes as pages
from pizzabot.adapters.web.pages.html import POLICY
from pizzabot.adapters.web.pages.visit import csrf_of

from pizzabot.clock import Clock, SystemClock
from pizzabot.people import People
from pizzabot.sessions import Sessions
from tests.fakes.rows import ADA
from tests.fakes.runtime import Served
from tests.unit.web.asked import store_of

PORT = 8642
HERE = f"http://127.0.0.1:{PORT}"
UNKNOWN = "01a22968-afdf-7442-bd3e-eadb2bffc4ec"
SESSION = "pizzabot_session"
HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
OWN_TOKEN = re.compile(r'name="csrf" value="([0-9a-f]{32})"')

App = Callable[..., Any]


class Browser:
    """Cookies, and what a browser says of where a request comes from; it follows no redirect by itself."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self.http = http

    async def get(self, path: str, **headers: str) -> httpx.Response:
        return await self.http.get(path, headers=HTML | headers)

    async def send(self, path: str, fields: Mapping[str, str], **headers: str) -> httpx.Response:
        """A form with exactly these fields."""
        typed = {"Content-Type": "application/x-www-form-urlencoded", "Origin": str(self.http.base_url)}
        return await self.http.post(path, content=urlencode(fields), headers=HTML | typed | headers)

    async def post(self, path: str, fields: Mapping[str, str] | None = None) -> httpx.Response:
        """A form of this session's own pages."""
        return await self.send(path, {"csrf": csrf_of(self.secret)} | dict(fields or {}))

    @property
    def secret(self) -> str:
        """The session's cookie; empty when there is none."""
        return str(self.http.cookies.get(SESSION) or "")

    async def log_in(self, code: str, **fields: str) -> httpx.Response:
        """Open a login link and press its button."""
        found = OWN_TOKEN.search((await self.get(f"/login?code={quote(code)}")).text)
        assert found is not None
        return await self.send("/login", {"csrf": found[1], "code": code} | fields)


@asynccontextmanager
async def browsing(
    app: App, *, secret: str = "", url: str = HERE, address: str = "127.0.0.1"
) -> AsyncIterator[Browser]:
    """A browser at an application of this process, from an address, in a session when one is named."""
    transport = httpx.ASGITransport(app, client=(address, 40_000))
    async with httpx.AsyncClient(transport=transport, base_url=url) as http:
        browser = Browser(http)
        if secret:
            # As the server sets it, or a logout would not find it.
            http.cookies.set(SESSION, secret, domain=http.base_url.host, path="/")
        yield browser


def house(
    served: Served,
    *,
    clock: Clock | None = None,
    people: People | None = None,
    public_url: str = "",
    written: Callable[[Any], None] = lambda doors: None,
) -> App:
    """The application on the server's rooms, with a clock, people and a public URL of its own."""
    doors = copy.copy(served.doors)
    doors.clock, doors.people = clock or doors.clock, people or doors.people
    doors.sessions = Sessions(store_of(served), doors.clock, doors.people)
    web = doors.settings.web.model_copy(update={"port": PORT, "public_url": public_url or HERE})
    doors.settings = doors.settings.model_copy(update={"web": web})
    doors.routes = lambda: pages.routes(doors)
    written(doors)
    app: App = build_app(doors, PORT, asyncio.Event())
    return app


async def code_of(served: Served, name: str = "Ada", clock: Clock | None = None) -> str:
    """A fresh login code."""
    made = Sessions(store_of(served), clock or SystemClock(), served.doors.people)
    return (await made.issue_code(name, ADA, "terminal")).code


async def session_of(served: Served, name: str = "Ada") -> str:
    """The secret of a new session."""
    return await served.doors.sessions.log_in(await code_of(served, name), "web")


@asynccontextmanager
async def at_home(served: Served, name: str = "Ada", app: App | None = None) -> AsyncIterator[Browser]:
    """The browser of somebody who is logged in."""
    async with browsing(app or house(served), secret=await session_of(served, name)) as browser:
        yield browser


def places(
    method: str,
    thread_id: str = UNKNOWN,
    action_id: str = UNKNOWN,
    file_id: str = UNKNOWN,
    trigger_id: str = UNKNOWN,
) -> list[str]:
    """The paths of all pages that are shown (GET) or that a form is sent to (POST)."""
    return [
        path.format(
            thread_id=thread_id,
            action_id=action_id,
            attachment_id=file_id,
            trigger_id=trigger_id,
            message_id=1,
        )
        for path, page in pages.TABLE.items()
        if (page.show if method == "GET" else page.change) is not None
    ]


def check_page(response: httpx.Response, status: int) -> None:
    """A whole page of ours with everything that protects it."""
    assert response.status_code == status, response.text[:500]
    headers = response.headers
    assert headers["content-type"] == "text/html; charset=utf-8"
    assert headers.get_list("content-security-policy") == [POLICY]
    assert headers["cache-control"] == "no-store"
    assert headers["x-frame-options"] == "DENY"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert response.text.startswith("<!doctype html>")
    assert (response.text.count("<h1"), response.text.count("<main ")) == (1, 1)


def path_of(response: httpx.Response) -> str:
    """Where an answer leads, without what it tells the page there."""
    assert response.status_code == 303, response.text
    return urlsplit(response.headers["location"]).path
