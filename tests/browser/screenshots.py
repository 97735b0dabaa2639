"""Pictures of the web view for the docs: `python -m tests.browser.screenshots` writes docs/images/*.png.

A server of its own with made-up content: rows as the product would have written them, put there at once.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from playwright.async_api import Browser, Page

from pizzabot.agent import activity
from pizzabot.agent.activity import Activity, ActivityKind, Tokens
from pizzabot.approvals import store
from pizzabot.approvals.store import Question
from pizzabot.clock import SystemClock
from pizzabot.demo.expenses_book import Book
from pizzabot.demo.expenses_server import build_server
from pizzabot.ids import new_id
from pizzabot.inbox import runs, threads
from pizzabot.messages import ActionKind, RunState, Verdict
from tests.browser.chromium import chromium, installed
from tests.browser.web import PHONE, Web
from tests.fakes.model_server import ModelServer
from tests.fakes.runtime import PEOPLE, serving, write_home

IMAGES = Path(__file__).parents[2] / "docs" / "images"
MODEL = "openai:gpt-5-mini"
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)

INVOICES = """\
Four invoices are due by Friday, **EUR 3,184.50** in all. One of them is a reminder.

| Vendor | Invoice | Due | Amount |
|---|---|---|---:|
| Hetzner Online | R0029114 | Wed 2 Dec | EUR 214.20 |
| De Koffieboot | 2026-1187 | Thu 3 Dec | EUR 96.80 |
| Acme Office Supplies | INV-77310 | Fri 4 Dec | EUR 373.50 |
| Northwind Traders | 48-2209 | Fri 4 Dec | EUR 2,500.00 |

- **Northwind** asks for the second time; the first one came on 16 November and was not paid.
- De Koffieboot is EUR 31 more than last month: *two extra deliveries* in week 47.

Shall I prepare the payments? Each will wait for your approval.
"""
MINUTES = """\
Three things were decided: the pilot starts on 11 January, Northwind sends the data by Christmas, and \
prices stay as offered. Open: who hosts the staging system.
"""


@dataclass(frozen=True)
class Talk:
    """A thread as it stands: who asked what when, and what came of it."""

    title: str
    asked: str
    ago: timedelta
    answer: str = ""
    channel: str = "web"
    state: RunState = RunState.DONE
    unread: bool = False
    error: str = ""
    steps: Sequence[Activity] = ()
    tokens: tuple[int, int] = (1840, 212)
    question: dict[str, Any] = field(default_factory=dict)


def step(kind: ActivityKind, name: str, milliseconds: int, worker: str | None = None) -> Activity:
    return Activity(kind, name, "ok", worker, None, milliseconds)


async def talks(folder: Path) -> list[Talk]:
    tools = {tool.name: tool for tool in await build_server(Book(folder / "book.csv")).list_tools()}
    expense = {
        "kind": ActionKind.TOOL,
        "tool": "mcp:expenses:add_expense",
        "title": "Run add_expense?",
        "skill": "expenses",
        "args": {
            "amount": 42.5,
            "note": "Taxi to Schiphol, customer visit at Northwind",
            "currency": "EUR",
            "date": "2026-11-27",
            "tags": ["travel", "northwind"],
        },
        "args_schema": tools["add_expense"].input_schema,
        "why": tools["add_expense"].description,
    }
    toner = expense | {
        "tool": "mcp:shop:place_order",
        "title": "Run place_order?",
        "skill": "office",
        "args": {"article": "Toner TN-2410", "count": 2},
        "args_schema": {},
        "why": "Place an order with the office shop.",
        "approvers": ("Bob",),
    }
    asking = (
        step("model", MODEL, 1310),
        step("model", MODEL, 1874, "expenses"),
        step("tool", "mcp:expenses:list_expenses", 41, "expenses"),
        step("model", MODEL, 1502, "expenses"),
    )
    reading = (
        step("model", MODEL, 1490),
        step("model", MODEL, 2210, "invoices"),
        step("tool", "mcp:invoices:list_due", 380, "invoices"),
        step("model", MODEL, 3120, "invoices"),
        step("worker", "invoices", 5770),
        step("model", MODEL, 2605),
    )
    return [
        Talk(
            "Team day in March",
            "Find three dates in March on which everybody is free.",
            6 * DAY,
            "10, 17 and 24 March.",
        ),
        Talk(
            "Minutes of the call with Northwind",
            "Summarise the attached notes in five lines.",
            2 * DAY,
            MINUTES,
            "terminal",
        ),
        Talk(
            "Failed backups of last night",
            "Which backups failed last night, and why?",
            9 * HOUR,
            channel="api",
            state=RunState.FAILED,
            unread=True,
            error="The model answered 429 (too many requests) six times. Retry goes on from where it got.",
        ),
        Talk(
            "Release notes in German",
            "Translate the release notes of 2.4 into German; keep the headings.",
            3 * HOUR,
            "Done: 34 paragraphs. Two terms are worth a look, “Freigabe” and “Posteingang”.",
        ),
        Talk(
            "Toner for the printer on floor 2",
            "Order toner for the Brother on floor 2, two of them.",
            90 * MINUTE,
            state=RunState.WAITING,
            unread=True,
            question=toner,
        ),
        Talk(
            "Invoices that are due this week",
            "Which invoices have to be paid this week? Tell me what looks odd.",
            25 * MINUTE,
            INVOICES,
            unread=True,
            steps=reading,
            tokens=(11_920, 1_344),
        ),
        Talk(
            "Taxi to Schiphol",
            "File the taxi to Schiphol on Friday, 42.50, for the visit at Northwind.",
            4 * MINUTE,
            state=RunState.WAITING,
            unread=True,
            steps=asking,
            tokens=(5_310, 402),
            question=expense,
        ),
    ]


def put(connection: sa.Connection, talk: Talk, now: datetime) -> tuple[str, str]:
    """The rows of a thread; its id and its action's. All at once, so that nothing of it is worked on."""
    begun, ended = now - talk.ago, now - talk.ago + timedelta(seconds=16)
    thread_id = threads.create(
        connection,
        begun,
        owner="Ada",
        channel=talk.channel,
        address=None,
        title=talk.title,
        title_source="user",
    )
    threads.add_message(
        connection, thread_id, begun, role="user", author="Ada", text=talk.asked, channel=talk.channel
    )
    run_id = runs.create(connection, thread_id, begun, person="Ada", model=MODEL, allowance={})
    (run,) = (run for run in runs.claim(connection, 100, begun) if run.id == run_id)
    for done in talk.steps:
        activity.record(connection, done, ended, thread_id=thread_id, run_id=run_id)
    spent = Tokens(*talk.tokens, cost_usd=talk.tokens[0] * 0.25e-6 + talk.tokens[1] * 2e-6)
    activity.spend(connection, spent, ended, thread_id=thread_id, run_id=run_id, person="Ada", model=MODEL)
    action_id = ""
    if talk.question:
        asked = {"allowed_decisions": (Verdict.APPROVE, Verdict.EDIT, Verdict.REJECT), "approvers": ()}
        question = Question(id=new_id(), **(asked | talk.question))
        action, _ = store.ask(
            connection, question, ended, thread_id=thread_id, run_id=run_id, requested_by="Ada"
        )
        action_id = action.id
        runs.pause(connection, run, ended, used={}, decided=False)
    else:
        error = ("model_unavailable", talk.error) if talk.error else None
        runs.finish(connection, run, talk.state, ended, used={}, error=error)
    if talk.answer:
        author = f"{threads.AGENT_NAME} · {MODEL}"
        threads.add_message(
            connection, thread_id, ended, role="assistant", author=author, text=talk.answer, run_id=run_id
        )
    threads.mark(connection, thread_id, unread=talk.unread, archived=None)
    return thread_id, action_id


async def shoot(browser: Browser) -> None:
    """Serve the made-up threads, and take the pictures."""
    with ModelServer() as model, tempfile.TemporaryDirectory() as folder:
        home = write_home(Path(folder) / "home", model.url, people=PEOPLE)
        async with serving(home) as served:
            made = {}
            now = SystemClock().now()
            for talk in await talks(Path(folder)):
                made[talk.title] = await served.doors._database.write(partial(put, talk=talk, now=now))
            invoices, _ = made["Invoices that are due this week"]
            taxi, approval = made["Taxi to Schiphol"]
            web = Web(served, browser, {})
            await save(await web.open("/"), "inbox")
            await save(await web.open(f"/actions/{approval}"), "approval")
            await save(await web.open(f"/threads/{taxi}", color_scheme="dark"), "dark")
            await save(await web.open("/", viewport=PHONE), "phone")
            await save(await web.open(f"/threads/{invoices}"), "thread")
            await web.close()
            assert web.problems == []


async def save(page: Page, name: str) -> None:
    await page.evaluate("document.activeElement.blur()")
    await page.screenshot(path=IMAGES / f"{name}.png", animations="disabled", caret="hide")


async def main() -> None:
    program = installed()
    if program is None:
        sys.exit("No Chromium is installed (Debian: apt-get install chromium).")
    IMAGES.mkdir(exist_ok=True)
    async with chromium(program) as browser:
        await shoot(browser)
    for path in sorted(IMAGES.glob("*.png")):
        sys.stdout.write(f"{path} {path.stat().st_size / 1000:.0f} KB\n")


if __name__ == "__main__":
    asyncio.run(main())
