"""Which Home tabs are open, and how do they stay fresh? Rebuilt when opened and after changes.

A view is published with the hash of the one it replaces; when somebody else was faster, once more without.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import Any

from pizzabot.errors import DeliveryFailed, Refused
from pizzabot.messages import ActionState
from pizzabot.people import Person, may_administer

from . import home
from .client import Denied
from .workspace import VIA, Workspace

logger = logging.getLogger(__name__)

_FRESH_SECONDS = 1800.0  # so long after it was opened a Home tab is kept up to date
_PAUSE_SECONDS = 2.0
_AT_ONCE = 10


class Homes:
    """The Home tabs of this workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._open: dict[str, float] = {}  # by user: when it was opened last
        self._published: dict[str, tuple[Mapping[str, Any], str | None]] = {}  # what, and Slack's hash
        self._searched: dict[str, str] = {}
        self._stale: set[str] = set()
        self._due = asyncio.Event()
        self._one_by_one: dict[str, asyncio.Lock] = {}
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._refresh(), name="slack home")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    # -- what people do ----------------------------------------------------------------------------------

    def opened(self, user: str) -> None:
        """Somebody looks at their Home tab."""
        self._open[user] = time.monotonic()
        self._workspace.later(self._publish(user, anew=True), "a Home tab")

    def changed(self) -> None:
        """Something happened that a Home tab may show."""
        now = time.monotonic()
        self._open = {user: at for user, at in self._open.items() if now - at < _FRESH_SECONDS}
        self._stale |= self._open.keys()
        self._due.set()

    async def press(self, payload: Mapping[str, Any], action: Mapping[str, Any]) -> None:
        """A control of the Home tab; raises Refused when it is not theirs."""
        user = str(payload["user"]["id"])
        person, doors = self._workspace.person(user), self._workspace.doors
        if person is None:
            return
        match str(action.get("action_id")).partition(".")[0]:
            case home.MARK_READ:
                await doors.change_thread(str(action.get("value")), person, unread=False)
            case home.STOP_ALL:
                await doors.stop_everything(person, VIA)
            case home.RESUME_ALL:
                await doors.resume_everything(person, VIA)
            case home.SEARCH:
                self._searched[user] = str(action.get("value") or "").strip()[:200]
            case home.CLEAR:
                self._searched.pop(user, None)
        self.opened(user)

    # -- publishing --------------------------------------------------------------------------------------

    async def _refresh(self) -> None:
        while True:
            await self._due.wait()
            await asyncio.sleep(_PAUSE_SECONDS)
            some = sorted(self._stale)[:_AT_ONCE]
            self._stale.difference_update(some)
            if not self._stale:
                self._due.clear()
            for user in some:
                try:
                    await self._publish(user)
                except DeliveryFailed as error:
                    logger.info("a Home tab was not refreshed: %s", error)
                    if error.retryable:
                        self._stale.add(user)
                        self._due.set()
                except Exception:
                    logger.exception("a Home tab was not refreshed")

    async def _publish(self, user: str, *, anew: bool = False) -> None:
        # One at a time, or an older view could arrive behind a newer one.
        async with self._one_by_one.setdefault(user, asyncio.Lock()):
            person = self._workspace.person(user)
            view = await self._view(person, self._searched.get(user, "")) if person else _stranger()
            before, known = self._published.get(user, (None, None))
            if not anew and view == before:
                return
            answer = await self._replace(user, view, known)
            self._published[user] = (view, answer["view"].get("hash"))

    async def _replace(self, user: str, view: Mapping[str, Any], known: str | None) -> Mapping[str, Any]:
        api = self._workspace.api
        try:
            return await api.call("views.publish", user_id=user, view=view, hash=known)
        except Denied as error:
            if error.error != "hash_conflict":
                raise
            return await api.call("views.publish", user_id=user, view=view)

    async def _view(self, person: Person, words: str) -> Mapping[str, Any]:
        doors = self._workspace.doors
        reports = doors.reports
        try:
            threads = await reports.inbox(person, "all", limit=home.ALL, cursor=None, words=words)
        except Refused:  # words that cannot be looked for find nothing
            threads = {"threads": [], "counts": {}}
        unread = await reports.inbox(person, "unread", limit=home.UNREAD, cursor=None, words="")
        rows = await reports.actions(person, ActionState.PENDING, limit=home.ACTIONS * 3)
        asked = []
        for row in [row for row in rows if row["may_decide"]][: home.ACTIONS]:
            action = await doors.asked(row["id"], person)
            asked.append((action, (await doors.thread(action.thread_id, person)).title))
        return home.home(
            home.Inbox(
                person=person.name,
                is_owner=may_administer(person),
                url=doors.url().rstrip("/"),
                actions=asked,
                unread=unread["threads"],
                threads=threads["threads"],
                counts=unread["counts"],
                usage_today=_usage((await reports.usage(person, 1))["today"]),
                stopped=await reports.stopped(),
                words=words,
            )
        )


def _usage(rows: list[Mapping[str, Any]]) -> str:
    if not rows:
        return ""
    tokens = sum(row["input_tokens"] + row["output_tokens"] for row in rows)
    costs = [row["cost_usd"] for row in rows]
    money = "price not known" if None in costs else f"${sum(costs):.2f}"
    return f"Used today: {tokens:,} tokens, {money}."


def _stranger() -> Mapping[str, Any]:
    from .blocks import plain_text, section

    said = "I only work for people I was told about. Ask the owner to add your member id to my settings."
    return {"type": "home", "blocks": [section(plain_text(said))]}
