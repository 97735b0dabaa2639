"""Which requests of Slack go where? The table of a bolt app: each is handled, then acknowledged.

`process_before_response` makes bolt answer only when a listener is done, and with 500 when it raised: so what
was not committed is not acknowledged, and Slack delivers it again.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pizzabot.errors import Refused

from . import home
from .cards import REVIEW
from .clicks import Clicks
from .commands import SHORTCUT, Commands
from .conversations import Conversations
from .homes import Homes
from .identity import Identity, is_ours
from .modals import told
from .workspace import Workspace

if TYPE_CHECKING:
    from slack_bolt.async_app import AsyncApp
    from slack_sdk.web.async_client import AsyncWebClient

logger = logging.getLogger(__name__)

_ANY = re.compile(".*", re.DOTALL)
_HOME = (home.MARK_READ, home.MARK_ALL_READ, home.STOP_ALL, home.RESUME_ALL, home.SEARCH, home.CLEAR)
_PROMPTS = (
    ("What can you do?", "What can you do for me? Which skills are ready?"),
    ("Make a checklist", "Make a checklist for what I describe in my next message."),
    ("Sum up a text", "Sum up the text that I send you next in five sentences."),
    ("Draft a reply", "Draft a friendly reply to the message that I send you next."),
)
_PATIENCE_SECONDS = 2.2  # of the three that Slack has
_SLOW = "This takes longer than usual. It is carried out as soon as possible; the card shows when it was."
Body = Mapping[str, Any]


class Listeners:
    """What a request leads to."""

    def __init__(
        self,
        workspace: Workspace,
        conversations: Conversations,
        clicks: Clicks,
        commands: Commands,
        homes: Homes,
        lost: Callable[[str], None],
    ) -> None:
        """`lost` hears that the app was removed or its token revoked."""
        self._workspace, self._conversations = workspace, conversations
        self._clicks, self._commands, self._homes, self._lost = clicks, commands, homes, lost
        self.foreign = 0  # requests of another app or workspace
        self.heard_at: datetime | None = None

    def app(self, web: AsyncWebClient) -> AsyncApp:
        """The bolt app; requests reach it already verified."""
        from slack_bolt.async_app import AsyncApp
        from slack_bolt.authorization import AuthorizeResult

        async def authorize(**_: Any) -> AuthorizeResult:
            ours = self._identity()
            return AuthorizeResult(
                enterprise_id=None, team_id=ours.team_id, bot_user_id=ours.bot_user, bot_id=ours.bot_id
            )

        app = AsyncApp(
            client=web,
            authorize=authorize,
            process_before_response=True,
            request_verification_enabled=False,  # the HTTP door verifies; a socket is authentic by itself
            ignoring_self_events_enabled=False,  # `parse.said` knows our own messages
            attaching_conversation_kwargs_enabled=False,
            logger=_quiet(),
        )
        app.use(self._only_ours)
        for name in ("message", "app_mention"):
            app.event(name)(self._message)
        app.event("app_home_opened")(self._opened)
        app.event("assistant_thread_started")(self._assistant)
        for name in ("tokens_revoked", "app_uninstalled"):
            app.event(name)(self._removed)
        app.event(_ANY)(_nothing)
        app.action(_ANY)(self._action)
        app.view(_ANY)(self._view)
        app.view_closed(_ANY)(_acknowledged)
        app.command(_ANY)(self._command)
        app.shortcut(SHORTCUT)(self._shortcut)
        app.shortcut(_ANY)(_acknowledged)
        return app

    def _identity(self) -> Identity:
        if self._workspace.identity is None:
            raise RuntimeError("Slack has not told yet who we are")
        return self._workspace.identity

    async def _only_ours(self, body: Body, next: Callable[[], Awaitable[Any]]) -> Any:
        from slack_bolt.response import BoltResponse

        if is_ours(body, self._identity()):
            self.heard_at = self._workspace.doors.clock.now()
            return await next()
        self.foreign += 1
        if self.foreign.bit_count() == 1:  # the first, the second, the fourth…: nobody fills the log
            logger.warning("requests of another app or workspace were refused: %d", self.foreign)
        return BoltResponse(status=403, body="", headers={"x-slack-no-retry": "1"})

    # -- events ------------------------------------------------------------------------------------------

    async def _message(self, event: Body) -> None:
        await self._conversations.hear(event, self._identity())

    async def _opened(self, event: Body) -> None:
        if event.get("tab") == "home":
            self._homes.opened(str(event["user"]))
        elif event.get("tab") == "messages" and self._workspace.person(str(event["user"])) is not None:
            self._prompts(str(event["channel"]), None)

    async def _assistant(self, event: Body) -> None:
        thread = event.get("assistant_thread") or {}
        if self._workspace.person(str(thread.get("user_id"))) is not None:
            self._prompts(str(thread["channel_id"]), str(thread["thread_ts"]))

    def _prompts(self, channel: str, thread_ts: str | None) -> None:
        async def work() -> None:
            await self._workspace.api.call(
                "assistant.threads.setSuggestedPrompts",
                channel_id=channel,
                thread_ts=thread_ts,
                title="What shall I do?",
                prompts=[{"title": title, "message": message} for title, message in _PROMPTS],
            )

        self._workspace.later(work(), "suggested prompts")

    async def _removed(self, event: Body) -> None:
        self._lost(str(event.get("type")))

    # -- interactions ------------------------------------------------------------------------------------

    async def _action(self, ack: Any, body: Body) -> None:
        for action in body.get("actions") or ():
            pressing = asyncio.create_task(self._press(body, action), name="a click")
            if not await self._in_time(pressing):
                self._workspace.answer(body, _SLOW)
        await ack()

    async def _press(self, body: Body, action: Body) -> None:
        name = str(action.get("action_id") or "")
        kind = name.partition(".")[0]
        if kind == REVIEW:
            return  # a link; its page does the rest
        if kind not in _HOME:
            chosen = action.get("selected_option") or action
            await self._clicks.press(body, name, str(chosen.get("value") or ""))
            return
        try:
            await self._homes.press(body, action)
        except Refused as error:
            self._workspace.answer(body, str(error))

    async def _view(self, ack: Any, body: Body) -> None:
        sending = asyncio.create_task(self._clicks.submit(body), name="a form")
        if not await self._in_time(sending):
            await ack(response_action="update", view=told("One moment", _SLOW))
            return
        answer = sending.result()
        await (ack(**answer) if answer is not None else ack())

    async def _in_time(self, task: asyncio.Task[Any]) -> bool:
        """Whether it is done before Slack loses its patience; if not, it goes on all the same."""
        await asyncio.wait({task}, timeout=_PATIENCE_SECONDS)
        if task.done():
            task.result()
            return True
        self._workspace.later(task, "what took long")
        return False

    async def _command(self, ack: Any, body: Body) -> None:
        running = asyncio.create_task(self._commands.run(body), name="a command")
        told: Mapping[str, Any] = {"text": "This takes longer than usual; it goes on."}
        if await self._in_time(running):
            told = running.result()
        await ack(**told, response_type="ephemeral")

    async def _shortcut(self, ack: Any, body: Body) -> None:
        running = asyncio.create_task(self._commands.shortcut(body), name="a shortcut")
        if not await self._in_time(running):
            self._workspace.answer(body, _SLOW)
        await ack()


def _quiet() -> logging.Logger:
    """bolt warns of settings that are meant as they are."""
    quiet = logging.getLogger("pizzabot.slack.bolt")
    quiet.setLevel(logging.ERROR)
    return quiet


async def _nothing() -> None:
    """An event that is of no concern; acknowledged, so that it does not come again."""


async def _acknowledged(ack: Any) -> None:
    await ack()
