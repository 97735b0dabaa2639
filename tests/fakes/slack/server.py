"""The fake Slack itself: what people do and see, and the levers of a test."""

from __future__ import annotations

import asyncio
import copy
import inspect
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Self, TypeVar

from aiohttp import web

from tests.fakes.patience import PATIENCE_SECONDS
from tests.fakes.slack import blocks as kit
from tests.fakes.slack.api import WebApi
from tests.fakes.slack.blocks import CannotDo, Refusal
from tests.fakes.slack.wire import Wire
from tests.fakes.slack.workspace import Call, Delivery, Json, Message, Pointer, View, Workspace

_T = TypeVar("_T")


class FakeSlack(Workspace):
    """A workspace with a server; `deliveries` holds everything that was sent to the app, in order."""

    def __init__(
        self,
        people: Mapping[str, str] | None = None,
        mode: Literal["socket", "http"] = "socket",
        *,
        channels: Iterable[str] = ("C0GENERAL",),
        ack_seconds: float = 3.0,
    ) -> None:
        super().__init__({"U0ADA": "ada"} if people is None else people, channels)
        self.deliveries: list[Delivery] = []
        self._wire = Wire(self, mode, ack_seconds)
        self._api = WebApi(self, self._wire.new_link)
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=2**30)
        app.add_routes([*self._api.routes(), web.get("/link/", self._wire.serve)])
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/api/"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._runner is not None
        await self._wire.close()
        await self._runner.cleanup()

    # Levers.

    @property
    def ack_seconds(self) -> float:
        return self._wire.ack_seconds

    @ack_seconds.setter
    def ack_seconds(self, seconds: float) -> None:
        self._wire.ack_seconds = seconds

    @property
    def request_url(self) -> str:
        """Where the app takes signed requests."""
        return self._wire.request_url

    @request_url.setter
    def request_url(self, url: str) -> None:
        self._wire.request_url = url

    @property
    def sockets(self) -> int:
        return len(self._wire.links)

    @property
    def most_sockets(self) -> int:
        return self._wire.most_links

    def drop_socket(self) -> None:
        """Cut every socket of the app."""
        self._wire.drop()

    async def ask_refresh(self, grace_seconds: float = 0.2) -> None:
        """Ask the app to connect anew, as Slack does every few hours; the old sockets close after a while."""
        await self._wire.ask_refresh(grace_seconds)

    def go_away(self) -> None:
        """Be unreachable: calls are cut, sockets too."""
        self.away = True
        self._wire.drop()

    def come_back(self) -> None:
        self.away = False

    async def post_signed(
        self,
        body: str,
        content_type: str,
        *,
        timestamp: int | None = None,
        secret: str | None = None,
        signed: bool = True,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, str]:
        """Send the app a request of any kind; gives the status and the text of the answer."""
        return await self._wire.post(
            body, content_type, timestamp=timestamp, secret=secret, signed=signed, headers=headers
        )

    async def until(self, predicate: Callable[[], _T], what: str = "") -> _T:
        """Wait until `predicate` gives something true, and give that back."""
        end = time.monotonic() + PATIENCE_SECONDS
        while not (found := predicate()):
            if time.monotonic() > end:
                last = ", ".join(c.method for c in self.calls[-8:]) or "none"
                waited = f"not within {PATIENCE_SECONDS:g} s: {what or _source(predicate)}"
                raise AssertionError(f"{waited}\nlast calls: {last}\nrefused: {self.refused}")
            await asyncio.sleep(0.005)
        return found

    async def connected(self) -> None:
        await self.until(lambda: self.sockets, "the app has a socket")

    # Reading.

    def calls_of(self, method: str) -> list[Call]:
        return [c for c in self.calls if c.method == method]

    def messages(self, channel: str, thread_ts: str | None = None, *, deleted: bool = False) -> list[Message]:
        """The messages of a conversation or, with `thread_ts`, of a thread, the root first."""
        return [
            m
            for m in self.channels[channel].messages.values()
            if (thread_ts is None or m.root_ts == thread_ts) and (deleted or not m.deleted)
        ]

    def message(self, channel: str, ts: str) -> Message:
        return self.channels[channel].messages[ts]

    def words(self, shown: Message | Json) -> str:
        """What a person reads in a message or a view; blocks hide the text of a message, as in Slack."""
        names = {u["id"]: u["name"] for u in self.users.values()} | {
            c.id: c.name for c in self.channels.values()
        }
        found = kit.words(_blocks(shown), names)
        return found or (kit.plain(shown.text, names) if isinstance(shown, Message) else "")

    def buttons(self, shown: Message | Json) -> list[str]:
        return [kit.label(e) for _, e in kit.controls(_blocks(shown)) if e["type"] == "button"]

    def values(self, shown: Message | Json, wanted: str) -> list[str]:
        """What the buttons that read `wanted` carry."""
        return [str(e.get("value")) for _, e in kit.controls(_blocks(shown)) if kit.label(e) == wanted]

    def home(self, user: str) -> Json | None:
        return copy.deepcopy(self.homes[user].data) if user in self.homes else None

    def modal(self, user: str) -> Json | None:
        return copy.deepcopy(self.modals[user][-1].data) if self.modals[user] else None

    # People.

    async def says(
        self,
        user: str,
        text: str,
        channel: str | None = None,
        thread_ts: str | None = None,
        files: Sequence[tuple[str, bytes]] = (),
        **event_fields: Any,
    ) -> str:
        """Post as a person, to the DM with the app unless `channel` is given; gives the ts."""
        place = self.channels[channel or self.dm(user)]
        kept = [self.keep_file(self.new_id("F"), name, content, user).as_json() for name, content in files]
        extra: Json = ({"subtype": "file_share"} if kept else {}) | event_fields
        parent = place.find(thread_ts)
        root = parent.root_ts if parent else thread_ts
        message = self.post(place.id, user, text, thread_ts=root, files=kept, extra=extra)
        event = self.as_json(message) | {"channel": place.id, "event_ts": message.ts}
        if parent is not None:
            event["parent_user_id"] = parent.user
        sent = [self.event(event | {"channel_type": place.kind})] if place.has_app else []
        if place.kind != "im" and f"<@{self.bot_user}>" in text:
            sent.append(self.event(event | {"type": "app_mention"}))
        await asyncio.gather(*sent)
        return message.ts

    async def event(self, event: Json, **envelope: Any) -> Delivery:
        """Send an event; `envelope` replaces fields around it, such as `team_id` or `event_id`."""
        body: Json = {
            "type": "event_callback",
            "token": "unused",
            "team_id": self.team_id,
            "api_app_id": self.app_id,
            "event": {"event_ts": event.get("ts") or self.new_ts()} | event,
            "event_id": self.new_id("Ev"),
            "event_time": int(time.time()),
            "is_ext_shared_channel": False,
            "authorizations": [{"team_id": self.team_id, "user_id": self.bot_user, "is_bot": True}],
        }
        return await self._deliver("events_api", body | envelope)

    async def redeliver(self, delivery: Delivery) -> Delivery:
        """Send the same again in a new envelope."""
        return await self._deliver(delivery.kind, delivery.body, delivery.attempt + 1)

    async def opens_home(self, user: str, tab: str = "home") -> Delivery:
        event: Json = {"type": "app_home_opened", "user": user, "channel": self.dm(user), "tab": tab}
        if tab == "home" and user in self.homes:
            event["view"] = self._view_json(self.homes[user])
        return await self.event(event)

    async def click(
        self, user: str, where: Message | Json, wanted: str, value: str | None = None
    ) -> Delivery:
        """Use the control that reads `wanted`: a button (`value` tells those alike apart) or a menu (`value`
        is the text of the option). `where` is what the person has before them, be it stale."""
        block, element = kit.pick(_blocks(where), wanted, value)
        action = kit.action_of(block, element, wanted, value, self.new_ts())
        holder = where if isinstance(where, Message) else self.view(where["id"])
        values = {} if holder is None else holder.values
        if element["type"] != "button":
            chosen = {k: v for k, v in action.items() if k == "type" or k.startswith("selected")}
            values.setdefault(block["block_id"], {})[element["action_id"]] = chosen
        state = kit.state_of(_blocks(where), values)
        more: Json = {"actions": [action], "state": state}
        if isinstance(where, Message):
            more |= self._place(user, where)
            more["container"] = {
                "type": "message",
                "message_ts": where.ts,
                "channel_id": where.channel,
                "is_ephemeral": where.ephemeral_to is not None,
            } | ({"thread_ts": where.thread_ts} if where.thread_ts else {})
            if where.ephemeral_to is not None:
                del more["message"]
        else:
            more["view"] = copy.deepcopy(where) | {"state": state}
            more["container"] = {"type": "view", "view_id": where["id"]}
        return await self._interact("block_actions", user, more)

    def fill(self, user: str, values: Mapping[str, Any]) -> None:
        """Enter values into the open modal by label; options are named by their text, several in a list."""
        view = self._open_modal(user)
        for name, value in values.items():
            block, element = kit.field(view.data["blocks"], name)
            entered = kit.entered(element, value)
            view.values.setdefault(block["block_id"], {})[element["action_id"]] = entered

    async def submit(self, user: str, values: Mapping[str, Any] | None = None) -> Json:
        """Fill and submit the open modal; gives what the app answered, empty when the modal just closes."""
        self.fill(user, values or {})
        view = self._open_modal(user)
        shown = self._view_json(view)
        kit.check_filled(view.data["blocks"], shown["state"])
        body = {"view": shown, "response_urls": []}
        delivery = await self._interact(
            "view_submission", user, body, lambda ack: self._after_submit(view, ack)
        )
        return _answer_of(delivery)

    def closes_modal(self, user: str) -> None:
        """Cancel; no event is sent."""
        self.modals[user].pop()

    async def command(self, user: str, text: str, channel: str | None = None) -> Json:
        """Type a slash command, such as `/pizza list`; gives what the app answered in its acknowledgement."""
        name, _, rest = text.partition(" ")
        place = channel or self.dm(user)
        body = {
            "token": "unused",
            "command": name,
            "text": rest,
            "team_id": self.team_id,
            "team_domain": "team",
            "channel_id": place,
            "channel_name": self.channels[place].name,
            "user_id": user,
            "user_name": self.users[user]["name"],
            "api_app_id": self.app_id,
            "trigger_id": self.new_trigger(user),
            "response_url": self.new_response_url(user, place, None),
        }
        pointer = Pointer(user, time.monotonic(), place)
        delivery = await self._deliver(
            "slash_commands", body, on_ack=lambda ack: self._api.respond(pointer, ack) if ack else None
        )
        return _answer_of(delivery)

    async def shortcut(self, user: str, message: Message | None, callback_id: str) -> Delivery:
        """Use a shortcut of a message or, without one, of the whole app."""
        more: Json = {"callback_id": callback_id, "action_ts": self.new_ts()}
        if message is None:
            return await self._interact("shortcut", user, more)
        return await self._interact(
            "message_action", user, more | self._place(user, message) | {"message_ts": message.ts}
        )

    def _place(self, user: str, message: Message) -> Json:
        return {
            "channel": {"id": message.channel, "name": self.channels[message.channel].name},
            "message": self.as_json(message),
            "response_url": self.new_response_url(
                user, message.channel, self.message(message.channel, message.ts)
            ),
        }

    def _view_json(self, view: View) -> Json:
        return copy.deepcopy(view.data) | {"state": kit.state_of(view.data["blocks"], view.values)}

    def _open_modal(self, user: str) -> View:
        if not self.modals[user]:
            raise CannotDo(f"{user} has no modal open")
        return self.modals[user][-1]

    def _after_submit(self, view: View, answer: Json) -> None:
        action = answer.get("response_action", "")
        if action == "":
            if view in self.modals[view.user]:
                self.modals[view.user].remove(view)
        elif action == "clear":
            self.modals[view.user].clear()
        elif action == "errors":
            inputs = {b["block_id"] for b in view.data["blocks"] if b["type"] == "input"}
            if not answer.get("errors") or not inputs.issuperset(answer["errors"]):
                raise Refusal("invalid_errors", str(answer.get("errors")))
        elif action == "update":
            self.change_view(view, kit.check_view(answer.get("view"), "modal"))
        elif action == "push":
            self.modals[view.user].append(
                self.new_view(kit.check_view(answer.get("view"), "modal"), view.user)
            )
        else:
            raise Refusal("invalid_response_action", str(action))

    async def _interact(
        self, kind: str, user: str, more: Json, on_ack: Callable[[Json], None] | None = None
    ) -> Delivery:
        name = self.users[user]["name"]
        body: Json = {
            "type": kind,
            "token": "unused",
            "team": {"id": self.team_id, "domain": "team"},
            "user": {"id": user, "username": name, "name": name, "team_id": self.users[user]["team_id"]},
            "api_app_id": self.app_id,
            "trigger_id": self.new_trigger(user),
            "enterprise": None,
            "is_enterprise_install": False,
        }
        return await self._deliver("interactive", body | more, on_ack=on_ack)

    async def _deliver(
        self, kind: str, body: Json, attempt: int = 0, on_ack: Callable[[Json], None] | None = None
    ) -> Delivery:
        def acked(answer: Json) -> None:
            try:
                if on_ack is not None:
                    on_ack(answer)
            except Refusal as refusal:
                self._api.refuse(str(body.get("type", kind)), refusal)

        delivery = Delivery(kind, body, attempt)
        self.deliveries.append(delivery)
        await self._wire.send(delivery, acked)
        return delivery


def _blocks(shown: Message | Json) -> list[Json]:
    return shown.blocks if isinstance(shown, Message) else list(shown["blocks"])


def _answer_of(delivery: Delivery) -> Json:
    if not delivery.acked:
        raise CannotDo(f"the app did not acknowledge within {delivery.seconds:.2f} s")
    return delivery.payload


def _source(predicate: Callable[[], object]) -> str:
    try:
        return inspect.getsource(predicate).strip()
    except (OSError, TypeError):
        return repr(predicate)
