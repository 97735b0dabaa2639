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
from pizzabot.people import Person, may_administer, owns

from . import home
from .blocks import plain_text, section
from .client import Denied, Limited
from .workspace import VIA, Workspace

logger = logging.getLogger(__name__)

_FRESH_SECONDS = 1800.0  # so long after it was opened a Home tab is kept up to date
_PAUSE_SECONDS = 2.0
_AT_ONCE = 10
_MARKED_AT_ONCE = 100
_PAGE, _PAGES_LOOKED_THROUGH = 50, 10


class Homes:
    """The Home tabs of this workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._open: dict[str, float] = {}  # by user: when it was opened last
        self._published: dict[str, tuple[Mapping[str, Any], str | None]] = {}  # what, and Slack's hash
        self._searched: dict[str, str] = {}
        self._stale: dict[str, None] = {}  # in the order in which they became so
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
        self._workspace.later(self._open_anew(user), "a Home tab")

    async def _open_anew(self, user: str) -> None:
        try:
            await self._publish(user, anew=True)
        except DeliveryFailed as error:
            if error.retryable:  # with the others, when it is their turn
                self._stale[user] = None
                self._due.set()
            raise

    def all_stale(self) -> None:
        """We were not there for a while: what people have open may show what is no more."""
        known = [person.slack for person in self._workspace.doors.people if person.slack is not None]
        self._stale |= dict.fromkeys(known)
        self._due.set()

    def changed(self) -> None:
        """Something happened that a Home tab may show."""
        now = time.monotonic()
        for user in [user for user, at in self._open.items() if now - at >= _FRESH_SECONDS]:
            for kept in (self._open, self._published, self._searched):
                kept.pop(user, None)
        self._stale |= dict.fromkeys(self._open.keys() - self._stale.keys())
        if self._stale:
            self._due.set()

    async def press(self, payload: Mapping[str, Any], action: Mapping[str, Any]) -> None:
        """A control of the Home tab; raises Refused when it is not theirs."""
        user = str(payload["user"]["id"])
        person, doors = self._workspace.person(user), self._workspace.doors
        if person is None:
            self._workspace.answer(payload, self._workspace.stranger(user))
            self.opened(user)
            return
        match str(action.get("action_id")).partition(".")[0]:
            case home.MARK_READ:
                await doors.change_thread(str(action.get("value")), person, unread=False)
            case home.MARK_ALL_READ:
                await self._mark_all_read(person)
            case home.STOP_ALL:
                await doors.stop_everything(person, VIA)
            case home.RESUME_ALL:
                await doors.resume_everything(person, VIA)
            case home.SEARCH:
                self._searched[user] = str(action.get("value") or "").strip()[:200]
            case home.CLEAR:
                self._searched.pop(user, None)
        self.opened(user)

    async def _mark_all_read(self, person: Person) -> None:
        """What is the person's own: whether others have seen theirs is not for an owner to say."""
        doors = self._workspace.doors
        found = await doors.reports.inbox(person, "unread", limit=_MARKED_AT_ONCE, cursor=None, words="")
        for thread in found["threads"]:
            if owns(person, thread["owner"]):
                await doors.change_thread(thread["id"], person, unread=False)

    # -- publishing --------------------------------------------------------------------------------------

    async def _refresh(self) -> None:
        while True:
            await self._due.wait()
            await asyncio.sleep(_PAUSE_SECONDS)
            for user in list(self._stale)[:_AT_ONCE]:
                del self._stale[user]
                try:
                    await self._publish(user)
                except Limited as error:
                    self._stale[user] = None
                    await asyncio.sleep(error.retry_after_seconds or 1.0)
                except DeliveryFailed as error:
                    logger.info("a Home tab was not refreshed: %s", error)
                    if error.retryable:
                        self._stale[user] = None
                except Exception:
                    logger.exception("a Home tab was not refreshed")
            if not self._stale:
                self._due.clear()

    async def _publish(self, user: str, *, anew: bool = False) -> None:
        # One at a time, or an older view could arrive behind a newer one.
        async with self._one_by_one.setdefault(user, asyncio.Lock()):
            person = self._workspace.person(user)
            view = await self._view(person, self._searched.get(user, "")) if person else self._refusal(user)
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

    def _refusal(self, user: str) -> Mapping[str, Any]:
        return {"type": "home", "blocks": [section(plain_text(self._workspace.stranger(user)))]}

    async def _theirs(self, person: Person) -> list[str]:
        """The newest actions that are the person's to decide, among those that they see."""
        found: list[str] = []
        before: str | None = None
        for _ in range(_PAGES_LOOKED_THROUGH):
            rows = await self._workspace.doors.reports.actions(
                person, ActionState.PENDING, limit=_PAGE, before=before
            )
            found += [row["id"] for row in rows if row["may_decide"]]
            if len(found) >= home.ACTIONS or len(rows) < _PAGE:
                break
            before = rows[-1]["id"]
        return found[: home.ACTIONS]

    async def _view(self, person: Person, words: str) -> Mapping[str, Any]:
        doors = self._workspace.doors
        reports = doors.reports
        try:
            threads = await reports.inbox(person, "all", limit=home.ALL, cursor=None, words=words)
        except Refused:  # words that cannot be looked for find nothing
            threads = {"threads": [], "counts": {}}
        unread = await reports.inbox(person, "unread", limit=home.UNREAD, cursor=None, words="")
        asked = []
        for action_id in await self._theirs(person):
            action = await doors.asked(action_id, person)
            asked.append((action, (await doors.thread(action.thread_id, person)).title))
        return home.home(
            home.Inbox(
                person=person.name,
                is_owner=may_administer(person),
                url=doors.url().rstrip("/"),
                actions=asked,
                unread=await self._workspace.linked(unread["threads"]),
                threads=await self._workspace.linked(threads["threads"]),
                counts=unread["counts"],
                usage_today=_usage(await reports.usage_summary(person)),
                stopped=await reports.stopped(),
                words=words,
            )
        )


def _usage(found: Mapping[str, Any]) -> str:
    line = str(found["line"])
    return f"{line[:1].upper()}{line[1:]} ({found['tokens']:,} tokens)." if found["model_calls"] else ""
