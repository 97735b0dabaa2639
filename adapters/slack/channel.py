"""Slack as a channel: everything of this package put together, and how its connection is."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import SecretStr

from pizzabot.doors import Doors
from pizzabot.errors import DeliveryFailed, DeliveryUnknown
from pizzabot.messages import ChannelState, Event, OutboundItem, Receipt
from pizzabot.people import Person

from .client import Away, Denied, NotLetIn, Slack
from .identity import Identity
from .places import copy_named, place_at
from .workspace import VIA, Workspace

if TYPE_CHECKING:
    import aiohttp
    from slack_bolt.async_app import AsyncApp
    from starlette.routing import BaseRoute

    from .conversations import Conversations
    from .delivering import Delivering
    from .door import Door
    from .homes import Homes
    from .listeners import Listeners
    from .progress import Progress
    from .socket import Socket

logger = logging.getLogger(__name__)

State = Literal["ok", "connecting", "down", "unauthorized", "off"]
# One message a second and channel, fifty edits in any minute (docs.slack.dev/apis/web-api/rate-limits).
_POSTS_PER_SECOND, _POSTS_IN_A_BURST = 1.0, 5
_UPDATES_PER_SECOND, _UPDATES_IN_A_BURST = 25 / 60, 25
_SOON_SECONDS, _LATER_SECONDS, _SOON_TRIES = 0.7, 10.0, 90


def slack_channel(doors: Doors) -> SlackChannel | None:
    """The channel, when `[slack]` is on."""
    return SlackChannel(doors) if doors.settings.slack.enabled else None


class SlackChannel:
    """A `pizzabot.channel.Channel` over one Slack workspace."""

    name = "slack"
    repaints_silently = True

    def __init__(self, doors: Doors) -> None:
        self._doors, self._settings = doors, doors.settings.slack
        self._state: State = "off"
        self._problem: str | None = None
        self._session: aiohttp.ClientSession | None = None
        self._door: Door | None = None
        self._parts: _Parts | None = None
        self._missed = True  # something may not have been said since we were connected last
        self._tasks: list[asyncio.Task[None]] = []
        self._probe: asyncio.Task[None] | None = None

    # -- what the core asks ------------------------------------------------------------------------------

    def routes(self) -> Sequence[BaseRoute]:
        if self._settings.mode != "http":
            return ()
        from .door import Door

        if self._door is None:
            self._door = Door(secret(self._settings.signing_secret))
        return self._door.routes()

    def address_of(self, person: Person) -> str | None:
        return person.slack

    def is_with(self, person: Person, address: str) -> bool:
        return person.slack is not None and place_at(address).user == person.slack

    def state(self) -> ChannelState:
        heard_at = self._parts.listeners.heard_at if self._parts is not None else None
        return ChannelState(self._state, self._problem or self._remark(), heard_at)

    def _remark(self) -> str | None:
        """What is worth knowing while everything works."""
        if self._parts is None:
            return None
        said = []
        identity = self._parts.workspace.identity
        if identity is not None and identity.missing:
            said.append(f"missing scopes: {', '.join(identity.missing)}; add them and install the app again")
        if foreign := self._parts.listeners.foreign:
            said.append(f"refused requests of another app or workspace: {foreign}")
        if self._door is not None and self._door.refused:
            said.append(f"refused requests with a wrong signature: {self._door.refused}")
        return "; ".join(said) or None

    async def start(self) -> None:
        # Not at the top: commands load this module, and must not pay for Slack's libraries.
        await asyncio.to_thread(_import_libraries)
        import aiohttp

        self._state = "connecting"
        connector = aiohttp.TCPConnector(limit=100, limit_per_host=0)
        # The SDK takes the time limit of a session that it is given from nowhere else.
        self._session = aiohttp.ClientSession(connector=connector)
        self._parts = _Parts(self._doors, self._session, self._lost)
        self._tasks = [
            asyncio.create_task(self._begin(self._parts), name="slack start"),
            asyncio.create_task(self._watch(self._parts), name="slack events"),
        ]
        self._parts.homes.start()

    async def stop(self) -> None:
        tasks = [*self._tasks, *filter(None, [self._probe])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._parts is not None:
            await self._parts.stop()
        if self._session is not None:
            await self._session.close()
        self._state, self._parts, self._session = "off", None, None

    async def find(self, item: OutboundItem) -> Receipt | None:
        parts = self._ready()
        try:
            return await parts.delivering.find(item)
        except (Away, DeliveryUnknown, NotLetIn) as error:
            self._is_away(error)
            raise

    async def deliver(self, item: OutboundItem) -> Receipt:
        parts = self._ready()
        try:
            return await parts.delivering.deliver(item)
        except (Away, DeliveryUnknown, NotLetIn) as error:
            self._is_away(error)
            raise

    def _ready(self) -> _Parts:
        if self._parts is None or self._parts.workspace.identity is None:
            self._missed = True
            raise Away("not connected yet")
        return self._parts

    # -- connection --------------------------------------------------------------------------------------

    async def _begin(self, parts: _Parts) -> None:
        """Learn who we are, then listen; tried until it works."""
        while True:
            try:
                await self._listen(parts)
                return
            except Exception:  # not a refusal of Slack's: those are waited out below
                logger.exception("Slack could not be started and is tried again")
                self._becomes("down", "Slack could not be started; the log says why")
                await asyncio.sleep(_LATER_SECONDS)

    async def _listen(self, parts: _Parts) -> None:
        stopped = await self._doors.reports.stopped()
        parts.workspace.stopped_by = stopped["person"] if stopped is not None else None
        await self._identified(parts)
        identity = parts.workspace.identity
        assert identity is not None
        logger.info("Slack knows us as %s in %s", identity.bot_user, identity.team)
        if identity.missing:
            missing = ", ".join(identity.missing)
            logger.warning("Slack did not grant the scopes %s; `pizzabot doctor` says what to do", missing)
        parts.app = parts.listeners.app(parts.web)
        if self._settings.mode == "socket":
            parts.socket = self._socket(parts)
            parts.socket.start()
        else:
            assert self._door is not None
            self._door.app = parts.app
            self._becomes("ok")
        parts.workspace.later(parts.conversations.recover(), "what was staged before the start")

    async def _identified(self, parts: _Parts) -> int:
        """Ask Slack who we are until it says so; how often it did not."""
        failures = 0
        while True:
            try:
                parts.workspace.identity = await identify(parts.workspace.api)
                return failures
            except DeliveryFailed as error:
                self._becomes("unauthorized" if isinstance(error, NotLetIn) else "down", str(error))
                asked = 0.0 if isinstance(error, NotLetIn) else error.retry_after_seconds or 0.0
            failures += 1
            await asyncio.sleep(max(asked, _SOON_SECONDS if failures < _SOON_TRIES else _LATER_SECONDS))

    def _socket(self, parts: _Parts) -> Socket:
        from .socket import Socket

        token = secret(self._settings.app_token)

        async def ticket() -> str:
            return str((await parts.workspace.api.call("apps.connections.open", token=token))["url"])

        assert self._session is not None
        return Socket(self._session, ticket, self._answer, self._becomes)

    async def _answer(self, envelope: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """What bolt answers to an envelope; None when it is to come again."""
        from slack_bolt.request.async_request import AsyncBoltRequest

        assert self._parts is not None
        assert self._parts.app is not None
        request = AsyncBoltRequest(mode="socket_mode", body=envelope.get("payload") or {})
        response = await self._parts.app.async_dispatch(request)
        if response.status == 403:
            return {}  # not for us: it need not come again
        if response.status != 200:
            return None
        if not response.body:
            return {}
        kind = (response.headers.get("content-type") or [""])[0]
        body = json.loads(response.body) if kind.startswith("application/json") else {"text": response.body}
        return body if isinstance(body, dict) else {}

    def _becomes(self, state: State, problem: str | None = None) -> None:
        """The connection is otherwise now."""
        if (state, problem) == (self._state, self._problem):
            return
        if state in ("down", "unauthorized"):
            self._missed = True
            logger.warning("%s; everything that is to be said in Slack waits", problem)
        elif state == "ok":
            logger.info("connected to Slack")
            if self._missed and self._parts is not None:
                self._parts.homes.all_stale()
        self._state, self._problem = state, problem
        if state == "ok" and self._missed:
            self._missed = False
            self._tasks = [task for task in self._tasks if not task.done()]
            self._tasks.append(asyncio.create_task(self._doors.is_back(self.name), name="slack is back"))

    def _lost(self, why: str) -> None:
        self._is_away(NotLetIn("everything", why, None))

    def _is_away(self, error: DeliveryFailed) -> None:
        """Something did not get through: ask until it does, then let the outbox know."""
        if isinstance(error, NotLetIn) and error.needed is not None:
            return  # only this one thing is not allowed
        if self._probe is None or self._probe.done():
            logger.info("something did not get through: %s", error)
            self._probe = asyncio.create_task(self._until_back(), name="slack probe")

    async def _until_back(self) -> None:
        """Return when Slack answers; what waits is due then, unless Slack was never away."""
        parts = self._parts
        if parts is None or await self._identified(parts) == 0:
            return
        if parts.socket is None or parts.socket.is_open:
            self._becomes("ok")
        else:  # the socket says so itself; what is posted needs none
            await self._doors.is_back(self.name)

    # -- what happens in the core ------------------------------------------------------------------------

    async def _watch(self, parts: _Parts) -> None:
        with self._doors.events.subscribe() as happening:
            async for event in happening:
                try:
                    parts.hear(event)
                except Exception:
                    logger.exception("an event was not shown in Slack")


class _Parts:
    """Everything that lives as long as the channel runs."""

    def __init__(self, doors: Doors, session: aiohttp.ClientSession, lost: Callable[[str], None]) -> None:
        from slack_sdk.web.async_client import AsyncWebClient

        from .clicks import Clicks
        from .commands import Commands
        from .conversations import Conversations
        from .delivering import Delivering
        from .homes import Homes
        from .listeners import Listeners
        from .pacing import Pace
        from .progress import Progress

        settings = doors.settings.slack
        token = secret(settings.bot_token)
        self.web = AsyncWebClient(token=token, base_url=settings.api_url, session=session, retry_handlers=[])
        now = asyncio.get_running_loop().time
        posts = Pace(_POSTS_PER_SECOND, _POSTS_IN_A_BURST, now)
        self.workspace = Workspace(doors, Slack(self.web, session), token, posts)
        updates = Pace(_UPDATES_PER_SECOND, _UPDATES_IN_A_BURST, now)
        self.conversations: Conversations = Conversations(self.workspace, settings.allow_bots)
        self.progress: Progress = Progress(self.workspace, updates)
        self.delivering: Delivering = Delivering(self.workspace, self.progress, updates)
        self.homes: Homes = Homes(self.workspace)
        self.listeners: Listeners = Listeners(
            self.workspace,
            self.conversations,
            Clicks(self.workspace),
            Commands(self.workspace, self.conversations),
            self.homes,
            lost,
        )
        self.app: AsyncApp | None = None
        self.socket: Socket | None = None

    def hear(self, event: Event) -> None:
        """Something happened in the core."""
        self.progress.hear(event)
        if event.kind == "stopped":
            self.workspace.stopped_by = str(event.data["by"]) if event.data["stopped"] else None
        if event.kind in ("message", "thread", "run", "action", "stopped", "reset"):
            self.homes.changed()
        for channel, external_id in event.data.get("copies", ()):
            if channel == VIA:
                self.progress.gone(external_id)
                self.workspace.later(self.workspace.close(copy_named(external_id)), "a copy that is gone")
        if event.kind == "thread" and event.thread_id is not None and event.data.get("title"):
            self.workspace.later(self._title(event.thread_id, str(event.data["title"])), "a title")

    async def _title(self, thread_id: str, title: str) -> None:
        """A thread has a name now: its conversation in the agent's view gets it, too."""
        place = await self.workspace.place_of(thread_id)
        if place is not None and place.user is not None:
            await self.workspace.api.call(
                "assistant.threads.setTitle",
                channel_id=place.channel,
                thread_ts=place.thread_ts,
                title=title,
            )

    async def stop(self) -> None:
        if self.socket is not None:
            await self.socket.stop()
        await self.progress.stop()
        await self.homes.stop()
        await self.workspace.stop()


async def identify(api: Slack) -> Identity:
    """Who the bot's token says we are; raises DeliveryFailed."""
    who = await api.call("auth.test")
    if not who.get("bot_id"):
        raise Denied("auth.test", "no_bot_token", "; slack.bot_token must be the one that begins with xoxb-")
    headers = {str(name).lower(): str(value) for name, value in who["_headers"].items()}
    scopes = frozenset(filter(None, (s.strip() for s in headers.get("x-oauth-scopes", "").split(","))))
    app_id: str | None = None
    try:
        bot = (await api.call("bots.info", bot=who["bot_id"]))["bot"]
        app_id = str(bot["app_id"]) if bot.get("app_id") else None
    except NotLetIn:
        pass  # without users:read it is not to be had
    return Identity(
        team_id=str(who["team_id"]),
        bot_user=str(who["user_id"]),
        bot_id=str(who["bot_id"]),
        app_id=app_id,
        team=str(who.get("team") or who["team_id"]),
        url=str(who.get("url") or "https://slack.com/"),
        scopes=scopes,
    )


def secret(value: SecretStr | None) -> str:
    """The value of a setting that must not be shown; empty when there is none."""
    return value.get_secret_value() if value is not None else ""


def _import_libraries() -> None:
    from importlib import import_module

    for name in ("aiohttp", "slack_bolt.async_app", "slack_sdk.web.async_client", "slack_sdk.signature"):
        import_module(name)
