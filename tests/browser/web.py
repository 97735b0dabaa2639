"""Who sits before the browser, and what may no page of ours do there? `Web` opens pages, and watches them.

In every test a page may ask only our server for something, may hold no script but ours, opens no dialog of
the browser, breaks no policy and writes no error into the console.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

import httpx
from playwright.async_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Locator,
    Page,
    Request,
    Response,
    StorageState,
    ViewportSize,
    WebError,
    expect,
)

from tests.fakes.runtime import Served

Json = dict[str, Any]
PATIENCE_MS = 20_000
expect.set_options(timeout=PATIENCE_MS)

DESK: ViewportSize = {"width": 1280, "height": 800}
PHONE: ViewportSize = {"width": 390, "height": 844}

_TELL = """
addEventListener("securitypolicyviolation", (event) =>
  __told(`${event.violatedDirective} forbids ${event.blockedURI} ${event.sample}`));
"""


@dataclass
class Web:
    """A browser before a running server; `problems` is what its pages did and may not do."""

    served: Served
    browser: Browser
    states: dict[str, StorageState]  # of people who are logged in, kept from test to test
    problems: list[str] = field(default_factory=list)
    _contexts: list[BrowserContext] = field(default_factory=list)
    _refused: set[str] = field(default_factory=set)

    # -- pages -----------------------------------------------------------------------------------------------

    async def open(self, path: str | None = "/", person: str | None = "Ada", **options: Any) -> Page:
        """A page in a browser of its own, of somebody who is logged in (or of nobody)."""
        state = await self._logged_in(person) if person is not None else None
        page = await self.window(storage_state=state, **options)
        if path is not None:
            await page.goto(self.served.url + path)
        return page

    async def window(self, **options: Any) -> Page:
        """An empty page, watched from now on."""
        options.setdefault("viewport", DESK)
        context = await self.browser.new_context(base_url=self.served.url, **options)
        self._contexts.append(context)
        context.set_default_timeout(PATIENCE_MS)
        await self._watch(context)
        return await context.new_page()

    async def tab(self, page: Page, path: str) -> Page:
        """One more page of the same browser."""
        other = await page.context.new_page()
        await other.goto(self.served.url + path)
        return other

    async def link(self, person: str) -> str:
        """A fresh login link."""
        people, sessions = self.served.doors.people, self.served.doors.sessions
        code = await sessions.issue_code(person, people.owner, "terminal")
        return f"{self.served.url}/login?code={code.code}"

    async def log_in(self, page: Page, person: str) -> None:
        """Log in as one does."""
        await page.goto(await self.link(person))
        await page.get_by_role("button", name="Log in").click()
        await expect(page.get_by_role("button", name="Log out")).to_be_visible()

    async def _logged_in(self, person: str) -> StorageState:
        if person not in self.states:
            page = await self.window()
            await self.log_in(page, person)
            self.states[person] = await page.context.storage_state()
        return self.states[person]

    async def close(self) -> None:
        """Close what was opened."""
        for context in self._contexts:
            await context.close()
        self._contexts.clear()

    # -- watching --------------------------------------------------------------------------------------------

    async def _watch(self, context: BrowserContext) -> None:
        context.on("console", self._console)
        context.on("weberror", self._error)
        context.on("request", self._request)
        context.on("response", self._response)
        context.on("dialog", self._dialog)
        await context.expose_binding("__told", lambda _source, text: self.problems.append(text))
        await context.add_init_script(_TELL)

    def _console(self, message: ConsoleMessage) -> None:
        # Chromium writes down every answer that is no success; a page that says so is one.
        refused = message.text.startswith("Failed to load") and message.location["url"] in self._refused
        if message.type in ("error", "warning") and not refused:
            self.problems.append(f"console: {message.text} ({message.location['url']})")

    def _error(self, error: WebError) -> None:
        self.problems.append(f"script: {error.error}")

    def _request(self, request: Request) -> None:
        if not request.url.startswith(f"{self.served.url}/"):
            self.problems.append(f"asked for {request.url[:200]}")

    def _response(self, response: Response) -> None:
        if response.status >= 400 and response.request.is_navigation_request():
            self._refused.add(response.url)

    def expect_refused(self, path: str) -> None:
        """A page that is open will ask for this in vain."""
        self._refused.add(self.served.url + path)

    async def _dialog(self, dialog: Dialog) -> None:
        self.problems.append(f"dialog: {dialog.message}")
        await dialog.dismiss()

    async def _client(self, person: str) -> httpx.AsyncClient:
        # A second token of the owner would make the first one void.
        owner = self.served.doors.people.owner.name
        return self.served.http if person == owner else await self.served.as_person(person)

    # -- what others do meanwhile ----------------------------------------------------------------------------

    async def ask(self, text: str, title: str | None = None, *, person: str = "Ada") -> str:
        """A new thread of somebody; its id."""
        client = await self._client(person)
        body = {"text": text} | ({"title": title} if title is not None else {})
        response = await client.post("/api/threads", json=body)
        assert response.status_code == 201, response.text
        return str(response.json()["thread_id"])

    async def ask_until(
        self, text: str, state: str, title: str | None = None, *, person: str = "Ada"
    ) -> Json:
        """A new thread, as soon as it is in a state."""
        return await self.served.wait(await self.ask(text, title, person=person), state)

    async def waiting(self, tool: str, title: str, *, person: str = "Ada", **args: Any) -> Json:
        """The action of a new thread that waits for a decision."""
        skill = args.pop("skill", "bookkeeper")
        thread = await self.ask_until(call(tool, skill, **args), "waiting", title, person=person)
        (action,) = thread["actions"]
        return dict(action)

    async def action(self, action_id: str) -> Json:
        """The action as it is now."""
        return dict((await self.served.http.get(f"/api/actions/{action_id}")).json())

    async def api(self, method: str, path: str, body: Json | None = None, *, person: str = "Ada") -> Json:
        """Something that is done elsewhere."""
        client = await self._client(person)
        response = await client.request(method, f"/api{path}", json=body)
        assert response.is_success, response.text
        return dict(response.json()) if response.content else {}


def call(tool: str, skill: str = "bookkeeper", **args: Any) -> str:
    """The words that make the model call one tool of a skill."""
    return f"[[call {skill} {tool} {json.dumps(args)}]]"


def button(page: Page | Locator, name: str) -> Locator:
    """The button with exactly this name."""
    return page.get_by_role("button", name=name, exact=True)


def row(page: Page, title: str) -> Locator:
    """The row of the inbox with this title."""
    return page.get_by_role("listitem").filter(has_text=title)


def said(page: Page, author: str = "Pizza Bot") -> Locator:
    """What somebody said in a thread; behind the agent's name stands its model's."""
    return page.get_by_role("article", name=re.compile(rf"^{author}\b"))


def to_thread(page: Page, title: str) -> Locator:
    """The link of a row that leads to its thread."""
    return row(page, title).get_by_role("link", name=title)


def view(page: Page, name: str) -> Locator:
    """The tab of a view, with or without a count."""
    return page.get_by_role("navigation", name="Views").get_by_role("link", name=re.compile(rf"^{name}\b"))
