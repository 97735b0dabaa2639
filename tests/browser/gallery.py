"""Every page of the web view in every state it can be in, reached as somebody reaches it: `GALLERY`.

made = await hang(web)                 once for a server: threads, actions, files
page = await GALLERY[name](web, made)  the page
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from playwright.async_api import Page, expect

from pizzabot.clock import SystemClock
from pizzabot.inbox import runs, threads
from pizzabot.messages import Action, ActionKind, Attachment, InboundMessage, RunState, Verdict
from tests.browser.corpus import ALL, CORPUS, ODD_ARGS, SCRIPT
from tests.browser.web import Json, Web, button, call
from tests.fakes import rows

WORD = "Donaudampfschifffahrtsgesellschaftskapitänsmütze" * 8
WIDE = f"""A report with everything that is wide.

## What was found

| {" | ".join(f"column {number}" for number in range(20))} |
|{"|".join("---:" for _ in range(20))}|
| {" | ".join(f"{number * 1000:,}" for number in range(20))} |
| {" | ".join(f"{number * 1_000_000:,}" for number in range(20))} |

```python
{"x" * 400} = "a line of code that nobody broke"
```

1. an `{"inline" * 40}` name
2. https://example.com/{"path/" * 60}

> {WORD}

- [ ] one
- two **bold** and *soft* ~~gone~~
"""
MISSING = "01a22968-afdf-7442-bd3e-eadb2bffc4ec"


@dataclass
class Made:
    """The ids of what hangs there."""

    threads: dict[str, str]
    actions: dict[str, str]
    triggers: dict[str, str]


async def hang(web: Web) -> Made:
    """Make everything that the pages show; side by side, as each takes a moment."""
    made = Made({}, {}, {})

    async def thread(name: str, text: str, state: str, title: str | None = None, person: str = "Ada") -> Json:
        found = await web.ask_until(text, state, title, person=person)
        made.threads[name] = found["id"]
        return found

    async def action(name: str, tool: str, decision: str = "", *, person: str = "Ada", **args: Any) -> None:
        more = args.pop("more", {})
        found = await web.waiting(tool, f"Gallery, {name}", person=person, **args)
        made.threads[name], made.actions[name] = found["thread_id"], found["id"]
        if decision:
            path = f"/actions/{found['id']}/decision"
            await web.api("POST", path, {"decision": decision, "digest": found["digest"], **more})
            await web.served.wait(found["thread_id"], "idle", "failed")

    async def trigger(key: str, *, fires: bool = False, **fields: Any) -> None:
        written = {"name": f"Gallery, {key}", "prompt": "[[say done]]"} | fields
        found = await web.api("POST", "/triggers", written)
        made.triggers[key] = found["id"]
        if fires:
            ran = await web.api("POST", f"/triggers/{found['id']}/run")
            await web.served.wait(ran["thread_id"], "idle")

    async def held() -> None:
        found = await web.waiting("submit_expense", "Gallery, held", amount=1, note="held")
        made.threads["held"] = found["thread_id"]
        await web.api("POST", f"/threads/{found['thread_id']}/messages", {"text": "and another thing"})

    async def archived() -> None:
        found = await thread("archived", "[[say away]]", "idle", "Gallery, archived")
        await web.api("PATCH", f"/threads/{found['id']}", {"archived": True})

    async def stopped() -> None:
        found = await thread("stopped", call("slow", seconds=300), "running", "Gallery, stopped")
        await web.api("POST", f"/threads/{found['id']}/stop")

    mail: Json = {"skill": "clerk", "to": "bob@example.com", "subject": "About the report"}
    long_body = "\n".join(f"{number}. {WORD[: number * 5]}" for number in range(80))
    note: Json = {
        "amount": 42.5,
        "note": "taxi to the airport",
        "tags": ["travel", "late"],
        "urgent": False,
    }
    await asyncio.gather(
        thread("answered", f"Gallery\n[[say {WIDE}]]", "idle", "Gallery, an answer with a table and code"),
        thread("word", f"{WORD}\n[[say {WORD}]]", "idle", WORD[:200]),
        thread("failed", "Gallery [[fail 400 9]]", "failed", "Gallery, failed"),
        thread("tool failed", call("fail", message=WIDE), "idle", "Gallery, a tool that failed"),
        thread("others", "[[say of Cay]]", "idle", "Gallery, of somebody else", "Cay"),
        thread("odd", f"{ALL}\n[[say {ALL}]]", "idle", SCRIPT),
        action("pending", "submit_expense", **note),
        action("edited", "submit_expense", "edit", **note, more={"args": {"amount": 40, "note": WORD}}),
        action("approved", "submit_expense", "approve", **note),
        action("rejected", "submit_expense", "reject", **note, more={"reason": f"too dear\n{WORD}"}),
        action("respondable", "send_email", **mail, body="Dear Bob"),
        action("responded", "send_email", "respond", **mail, body="Dear Bob", more={"response": ALL}),
        action("long", "send_email", **mail, body=long_body),
        action("not mine", "pay_invoice", person="Cay", vendor="Acme", amount=7, currency="EUR"),
        action("odd", "odd", skill="odd", **ODD_ARGS),
        action("odd edited", "odd", "edit", skill="odd", **ODD_ARGS, more={"args": ODD_ARGS | {"long": ALL}}),
        action("odd rejected", "odd", "reject", skill="odd", **ODD_ARGS, more={"reason": ALL}),
        trigger("a schedule", cron="30 7 29 2 *", fires=True),
        trigger("switched off", cron=f"{','.join(map(str, range(0, 60, 3)))} 3-5,9 * * *", enabled=False),
        trigger("a webhook", kind="webhook", signing="hmac", prompt=ALL.replace("{", "(")),
        trigger("odd", name=f"{SCRIPT}{WORD}"[:100], cron="@yearly", skills=["odd", "clerk"], prompt=ALL),
        held(),
        archived(),
        stopped(),
    )
    made.threads["files"] = await _files(web)
    made.threads["broken"] = await _broken(web)
    for name, kind, decisions in (
        ("uncertain", ActionKind.UNCERTAIN, (Verdict.RETRY, Verdict.DONE, Verdict.FAILED)),
        ("limit", ActionKind.LIMIT, (Verdict.APPROVE, Verdict.REJECT)),
    ):
        found = await _asked(web, kind=kind, title=f"Gallery, {name}?", allowed_decisions=decisions, why=WORD)
        made.threads[name], made.actions[name] = found.thread_id, found.id
    for number, text in enumerate(CORPUS):
        await web.api(
            "POST", "/threads", {"text": f"[[say {text}]]", "title": f"{text}"[:200] or str(number)}
        )
    return made


async def _files(web: Web) -> str:
    files = tuple(
        Attachment(name, "text/html", SCRIPT.encode())
        for name in (
            '<img src=x onerror="window.__xss=50">.html',
            '"><script>alert(1)</script>.svg',
            f"{WORD[:240]}.txt",
        )
    )
    accepted = await web.served.doors.accept(
        InboundMessage("web", "Ada", "Gallery, files\n[[say thanks]]", attachments=files)
    )
    await web.served.wait(accepted.thread_id, "idle")
    return accepted.thread_id


async def _broken(web: Web) -> str:
    """A thread whose run ended in words that a model's provider chose."""
    now = SystemClock().now()

    def work(connection: Any) -> str:
        thread_id = threads.create(
            connection,
            now,
            owner="Ada",
            channel="web",
            address=None,
            title="Gallery, odd error",
            title_source="user",
        )
        threads.add_message(connection, thread_id, now, role="user", author="Ada", text="x", channel="web")
        run_id = runs.create(connection, thread_id, now, person="Ada", model="openai:mock", allowance={})
        claimed = next(run for run in runs.claim(connection, 1000, now) if run.id == run_id)
        assert runs.finish(connection, claimed, RunState.FAILED, now, used={}, error=("odd", ALL))
        return thread_id

    return str(await web.served.doors._database.write(work))


async def _asked(web: Web, **question: Any) -> Action:
    """A question that a run asks only when something went wrong."""
    clock = SystemClock()
    (asked,) = await web.served.doors._database.write(lambda c: rows.waits(c, clock, **question))
    return asked


# -- the stations ----------------------------------------------------------------------------------------


@dataclass
class Tour:
    """A way through the pages, always in the same window of a person: a window takes longer than a page."""

    web: Web
    made: Made
    options: Json
    _windows: dict[str | None, Page] = field(default_factory=dict)

    async def go(self, path: str, person: str | None = "Ada") -> Page:
        if person not in self._windows:
            self._windows[person] = await self.web.open(None, person, **self.options)
        page = self._windows[person]
        await page.unroute_all()
        await page.goto(path)
        return page


Station = Callable[[Tour], Awaitable[Page]]


def at(path: str, person: str | None = "Ada") -> Station:
    return lambda tour: tour.go(path, person)


def thread(name: str, more: str = "", person: str = "Ada") -> Station:
    return lambda tour: tour.go(f"/threads/{tour.made.threads[name]}{more}", person)


def action(name: str) -> Station:
    return lambda tour: tour.go(f"/actions/{tour.made.actions[name]}")


def trigger(name: str) -> Station:
    return lambda tour: tour.go(f"/triggers/{tour.made.triggers[name]}")


async def wrong_schedule(tour: Tour) -> Page:
    page = await tour.go("/triggers")
    await page.get_by_label("Name").fill(SCRIPT)
    await page.get_by_label("When", exact=True).fill(WORD[:100])
    tour.web.expect_refused("/triggers#new")
    await button(page, "Create").click()
    await expect(page.get_by_role("alert")).to_be_visible()
    return page


async def new_secret(tour: Tour) -> Page:
    page = await trigger("a webhook")(tour)
    await button(page, "New secret").click()
    await expect(page.get_by_text("This secret is shown this once")).to_be_visible()
    return page


def wrong(name: str, field: str, text: str) -> Station:
    async def visit(tour: Tour) -> Page:
        page = await action(name)(tour)
        await page.get_by_label(field).fill(text)
        await button(page, "Approve edited").click()
        await expect(page.get_by_role("alert")).to_be_visible()
        return page

    return visit


async def used_link(tour: Tour) -> Page:
    page = await tour.go(f"/login?code={quote(ALL[:190])}", None)
    await button(page, "Log in").click()
    await expect(page.get_by_role("alert")).to_be_visible()
    return page


async def archived(tour: Tour) -> Page:
    return await tour.go(f"/?view=archived&done=archive&thread={tour.made.threads['odd']}")


async def keys(tour: Tour) -> Page:
    page = await tour.go("/?view=archived")
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog")).to_be_visible()
    return page


async def renaming(tour: Tour) -> Page:
    page = await thread("odd")(tour)
    await page.get_by_text("Rename", exact=True).first.click()
    await expect(page.get_by_label("Title")).to_be_visible()
    return page


async def stopped(tour: Tour) -> Page:
    await tour.web.api("POST", "/stop")
    try:
        page = await tour.go("/?view=unread", "Dan")
        await expect(page.get_by_text("Everything is stopped, by Ada")).to_be_visible()
        # It stays as it is, whatever it hears of later.
        tour.web.expect_refused("/?view=unread")
        await page.route("**/?view=unread", lambda route: route.fulfill(status=503))
    finally:
        await tour.web.api("POST", "/resume")
    return page


GALLERY: dict[str, dict[str, Station]] = {
    "login": {
        "login": at("/login", None),
        "by a link": at("/login?code=abc", None),
        "with a used code": used_link,
    },
    "inbox": {
        "all": at("/"),
        "action": at("/?view=action"),
        "unread": at("/?view=unread"),
        "archived": at("/?view=archived"),
        "found": at("/?q=gallery"),
        "found oddities": at("/?q=script"),
        "nothing found": at(f"/?q=xyzzy{quote(ALL[:900])}"),
        "odd address": at(f"/?cursor={quote(SCRIPT)}&view={quote(SCRIPT)}&done={quote(SCRIPT)}"),
        "something was done": archived,
        "empty": at("/", "Dan"),
        "everything stopped": stopped,
        "keys": keys,
    },
    "thread": {
        "answered": thread("answered"),
        "a long word": thread("word"),
        "waiting": thread("pending"),
        "waiting, long": thread("long"),
        "waiting for somebody else": thread("not mine"),
        "uncertain": thread("uncertain"),
        "limit": thread("limit"),
        "held": thread("held"),
        "failed": thread("failed"),
        "a tool failed": thread("tool failed"),
        "stopped": thread("stopped"),
        "archived": thread("archived"),
        "files": thread("files"),
        "of somebody else": thread("not mine", person="Bob"),
        "odd": renaming,
        "odd action": thread("odd edited"),
        "odd rejection": thread("odd rejected"),
        "odd error": thread("broken"),
        "to delete": thread("odd", "/delete"),
    },
    "action": {
        "pending": action("pending"),
        "with errors": wrong("pending", "amount", f"much {WORD}"),
        "to respond": action("respondable"),
        "long": action("long"),
        "uncertain": action("uncertain"),
        "limit": action("limit"),
        "approved": action("approved"),
        "edited": action("edited"),
        "rejected": action("rejected"),
        "responded": action("responded"),
        "not mine": action("not mine"),
        "odd": action("odd"),
        "odd, with errors": wrong("odd", "json", f"{{{SCRIPT}"),
        "odd, edited": action("odd edited"),
    },
    "triggers": {
        "all": at("/triggers"),
        "none": at("/triggers", "Cay"),
        "a schedule that fired": trigger("a schedule"),
        "switched off": trigger("switched off"),
        "a webhook": trigger("a webhook"),
        "odd": trigger("odd"),
        "with an error": wrong_schedule,
        "with its secret": new_secret,
    },
    "house": {
        "skills": at("/skills"),
        "skills of a member": at("/skills", "Cay"),
        "servers": at("/mcp"),
        "usage": at("/usage?days=7"),
        "audit": at("/audit?before=40"),
        "audit, verified": at("/audit?verify=1&before=20"),
        "status": at("/status"),
        "memory": at("/memory"),
        "refused": at("/audit", "Cay"),
        "no such thread": at(f"/threads/{MISSING}"),
        "no such page": at(f"/nothing/{quote(SCRIPT)}"),
    },
}
