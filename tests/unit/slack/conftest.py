"""One running server, one fake Slack and one scripted model for all tests of this folder."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
import pytest_asyncio
from pizzabot.adapters.slack import channel as slack_channel

from tests.fakes.model_server import ModelServer
from tests.fakes.runtime import BOOKKEEPER, Served, serving, write_home
from tests.fakes.slack import Delivery, FakeSlack, Message

ADA, BOB, CAY, EVE, BOT = "U0ADA", "U0BOB", "U0CAY", "U0EVE", "U0ROBOT"
GENERAL = "C0GENERAL"

PEOPLE = f"""
[[people]]
name = "Ada"
role = "owner"
slack = "{ADA}"

[[people]]
name = "Bob"
role = "approver"
slack = "{BOB}"

[[people]]
name = "Cay"
role = "member"
slack = "{CAY}"
digest = "0 0 1 1 *"

[[people]]
name = "Robot"
role = "member"
slack = "{BOT}"
"""

RULES = """
[[approvals.rules]]
tool = "mcp:ledger:pay_invoice"
approvers = ["Bob"]

[[approvals.rules]]
tool = "mcp:ledger:scale_service"
approvers = ["Ada", "Bob"]
quorum = 2
"""

CLERK = """---
name: clerk
description: Writes letters, and asks before each.
tools: "mcp:ledger:send_email"
interruptOn:
  "mcp:ledger:send_email":
    allowedDecisions: [approve, edit, reject, respond]
---
Do what is asked with your tools.
"""


@dataclass(slots=True)
class Office:
    """People in Slack, and the server that answers them."""

    slack: FakeSlack
    served: Served
    gone: set[str] = field(default_factory=set)  # what somebody deleted: Slack may refuse what is said there

    async def asks(self, user: str, text: str, channel: str | None = None, **more: Any) -> str:
        """Somebody writes; the timestamp of the message."""
        return await self.slack.says(user, text, channel, **more)

    def told(self, ts: str, channel: str | None = None, user: str = ADA) -> list[Message]:
        """What the app said in the thread of a message, oldest first."""
        place = channel or self.slack.dm(user)
        return [m for m in self.slack.messages(place, ts) if m.user == self.slack.bot_user]

    async def hears(self, ts: str, words: str, channel: str | None = None, user: str = ADA) -> Message:
        """The first thing said in that thread that holds these words."""

        def found() -> list[Message]:
            return [m for m in self.told(ts, channel, user) if words in self.slack.words(m)]

        what = f"{words!r} in {ts}: {self._all(ts, channel, user)}"
        return (await self.slack.until(found, what))[0]

    def _all(self, ts: str, channel: str | None, user: str) -> list[str]:
        return [self.slack.words(m)[:60] for m in self.told(ts, channel, user)]

    async def card(self, ts: str, channel: str | None = None, user: str = ADA) -> Message:
        """The card that waits in a thread."""

        def waiting() -> list[Message]:
            return [m for m in self.told(ts, channel, user) if "Review" in self.slack.buttons(m)]

        return (await self.slack.until(waiting, f"a card in {ts}: {self._all(ts, channel, user)}"))[0]

    async def becomes(self, message: Message, words: str) -> None:
        """Return when a message of ours says that."""
        await self.slack.until(lambda: words in self.slack.words(message), f"{words!r} on a message")

    def whispers(self, user: str, channel: str | None = None) -> list[str]:
        """What only that person can see, oldest first."""
        place = channel or self.slack.dm(user)
        if place not in self.slack.channels:
            return []
        mine = [m for m in self.slack.channels[place].messages.values() if m.ephemeral_to == user]
        return [self.slack.words(m) for m in mine]

    async def whispered(self, user: str, words: str, channel: str | None = None) -> None:
        """Return when that person alone was told these words."""
        await self.slack.until(
            lambda: any(words in said for said in self.whispers(user, channel)),
            f"{words!r} told to {user}: {self.whispers(user, channel)}",
        )

    async def inbox(self) -> list[dict[str, Any]]:
        """All threads, newest first."""
        found: list[dict[str, Any]] = (await self.served.http.get("/api/threads")).json()["threads"]
        return found

    async def thread(self, title: str) -> dict[str, Any]:
        """The newest thread of that owner's words, with everything in it."""
        for row in await self.inbox():
            if title in row["title"] or title in row["last_message"]:
                found: dict[str, Any] = (await self.served.http.get(f"/api/threads/{row['id']}")).json()
                return found
        raise AssertionError(f"no thread {title!r}")

    async def event(self, event: Mapping[str, Any], **envelope: Any) -> Delivery:
        """Any event."""
        return await self.slack.event(dict(event), **envelope)


def expense(note: str, **args: Any) -> str:
    """Words that make the model file an expense, which asks first."""
    return f"[[call bookkeeper submit_expense {json.dumps({'amount': 12.5, 'note': note} | args)}]]"


def slack_toml(slack: FakeSlack, more: str = "") -> str:
    """The table for a fake Slack."""
    return (
        f'\n[slack]\nbot_token = "{slack.bot_token}"\napp_token = "{slack.app_token}"\n'
        f'api_url = "{slack.url}"\n{more}'
    )


@pytest.fixture(scope="package")
def model() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def office(tmp_path_factory: pytest.TempPathFactory, model: ModelServer) -> AsyncIterator[Office]:
    names = {ADA: "ada", BOB: "bob", CAY: "cay", EVE: "eve", BOT: "robot", "U0OTHER": "other"}
    # All tests write in the same few conversations; how fast that may be is tested with the pace itself.
    slack_channel._POSTS_PER_SECOND = slack_channel._UPDATES_PER_SECOND = 1000.0
    async with FakeSlack(names, channels=(GENERAL,)) as slack:
        home = write_home(
            tmp_path_factory.mktemp("slack") / "home",
            model.url,
            people=PEOPLE,
            more_toml=RULES + slack_toml(slack, f'allow_bots = ["{BOT}"]\n'),
            skills={"bookkeeper": BOOKKEEPER, "clerk": CLERK},
        )
        async with serving(home) as served:
            await slack.connected()
            await served.runtime.working
            office = Office(slack, served)
            yield office
            gone = {f"chat.postMessage: thread_not_found: {ts}" for ts in office.gone}
            assert [said for said in slack.refused if said not in gone] == []
