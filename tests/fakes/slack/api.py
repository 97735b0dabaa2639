"""The Web API, the upload and download of files, and response URLs."""

from __future__ import annotations

import asyncio
import copy
import json
import time
from collections.abc import Callable
from typing import Any

from aiohttp import web

from tests.fakes.slack.blocks import Refusal, check_blocks, check_view
from tests.fakes.slack.workspace import Call, Channel, Fault, Json, Message, Pointer, View, Workspace

POST_CHARACTERS, UPDATE_CHARACTERS, METADATA_BYTES = 40_000, 4_000, 8_000
RESPONSE_URL_USES = 5
_AS_JSON = ("blocks", "view", "metadata", "files", "prompts", "attachments", "loading_messages")
_SIGN_IN = "<!DOCTYPE html><html><head><title>Sign in to Slack</title></head></html>"

_METHODS: dict[str, Callable[[WebApi, Json], Json]] = {}


def _method(
    name: str,
) -> Callable[[Callable[[WebApi, Json], Json]], Callable[[WebApi, Json], Json]]:
    def keep(function: Callable[[WebApi, Json], Json]) -> Callable[[WebApi, Json], Json]:
        _METHODS[name] = function
        return function

    return keep


class WebApi:
    """Answers an app; `new_link` gives out the address of a socket."""

    def __init__(self, workspace: Workspace, new_link: Callable[[], str]) -> None:
        self._slack = workspace
        self._new_link = new_link

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/api/{method}", self._serve),
            web.get("/api/{method}", self._serve),
            web.post("/upload/{id}", self._serve_upload),
            web.get("/files/{id}/{name}", self._serve_file),
            web.post("/response/{key}", self._serve_response_url),
        ]

    async def _serve(self, request: web.Request) -> web.Response:
        slack, name = self._slack, request.match_info["method"]
        args = await _arguments(request)
        token = request.headers.get("Authorization", "").removeprefix("Bearer ") or args.pop("token", "")
        args.pop("token", None)
        fault, answered = await self._arrived(request, Call(name, args, time.monotonic()))
        if answered is not None:
            return answered
        try:
            answer: Json = {"ok": True, **self._run(name, token, args)}
        except Refusal as refusal:
            self.refuse(name, refusal)
            answer = {"ok": False, "error": refusal.error}
            answer["response_metadata"] = {"messages": list(refusal.details)}
        if fault.cut:
            return _cut(request)
        if fault.garbage:
            kind = "text/html" if fault.garbage.startswith("<") else "application/json"
            return web.Response(text=fault.garbage, content_type=kind)
        return web.json_response(answer, headers={"x-oauth-scopes": ",".join(slack.scopes)})

    async def _arrived(self, request: web.Request, call: Call) -> tuple[Fault, web.Response | None]:
        """Record a call; what is to go wrong with it, and the answer if that settles it."""
        slack = self._slack
        slack.calls.append(call)
        if slack.away:
            return Fault(), _cut(request)
        common = slack.faults if request.path.startswith("/api/") else []
        fault = next((s.pop(0) for s in (slack.faults_on.get(call.method, []), common) if s), Fault())
        if slack.latency_seconds:
            await asyncio.sleep(slack.latency_seconds)
        return fault, None if fault.cut else _scripted(fault)

    def _run(self, name: str, token: str, args: Json) -> Json:
        if name not in _METHODS:
            raise Refusal("unknown_method")
        if not token:
            raise Refusal("not_authed")
        if token != (self._slack.app_token if name == "apps.connections.open" else self._slack.bot_token):
            raise Refusal("invalid_auth")
        try:
            return _METHODS[name](self, args)
        except KeyError as error:
            raise Refusal("invalid_arguments", f"missing required field: {error.args[0]}") from error

    def refuse(self, name: str, refusal: Refusal) -> None:
        self._slack.refused.append(": ".join((name, refusal.error, *refusal.details)))

    # The app, people, conversations.

    @_method("auth.test")
    def _auth_test(self, args: Json) -> Json:
        slack = self._slack
        who = {"user": slack.users[slack.bot_user]["name"], "user_id": slack.bot_user, "bot_id": slack.bot_id}
        return who | {"url": "https://team.slack.com/", "team": "Team", "team_id": slack.team_id}

    @_method("bots.info")
    def _bots_info(self, args: Json) -> Json:
        slack = self._slack
        if args.get("bot", slack.bot_id) != slack.bot_id:
            raise Refusal("bot_not_found")
        ids = {"id": slack.bot_id, "app_id": slack.app_id, "user_id": slack.bot_user}
        return {"bot": ids | {"name": slack.users[slack.bot_user]["name"], "deleted": False}}

    @_method("apps.connections.open")
    def _connections_open(self, args: Json) -> Json:
        return {"url": self._new_link()}

    @_method("users.info")
    def _users_info(self, args: Json) -> Json:
        return {"user": copy.deepcopy(self._person(args["user"]))}

    @_method("conversations.open")
    def _conversations_open(self, args: Json) -> Json:
        self._person(args["users"])
        return {"channel": {"id": self._slack.dm(args["users"])}}

    @_method("conversations.info")
    def _conversations_info(self, args: Json) -> Json:
        channel = self._channel(args["channel"], inside=False)
        shown: Json = {"id": channel.id, "is_im": channel.kind == "im", "is_archived": False}
        if channel.kind == "im":
            return {"channel": shown | {"user": channel.user}}
        shown |= {"is_channel": True, "is_private": False, "is_member": channel.has_app}
        return {"channel": shown | {"name": channel.name}}

    @_method("conversations.history")
    def _history(self, args: Json) -> Json:
        found = [
            m
            for m in reversed(self._channel(args["channel"]).messages.values())
            if m.thread_ts is None and not m.deleted and m.ephemeral_to is None
        ]
        return self._page(found, args, 100)

    @_method("conversations.replies")
    def _replies(self, args: Json) -> Json:
        channel = self._channel(args["channel"])
        found = channel.find(args["ts"])
        root = found and channel.find(found.root_ts)
        if root is None:
            raise Refusal("thread_not_found", str(args["ts"]))
        return self._page(self._slack.replies(root), args, 1000)

    def _page(self, messages: list[Message], args: Json, default: int) -> Json:
        inclusive = _true(args.get("inclusive"))
        for key, sign in (("oldest", 1), ("latest", -1)):
            if edge := float(args.get(key) or 0):
                away = [(sign * (float(m.ts) - edge), m) for m in messages]
                messages = [m for distance, m in away if distance > 0 or (inclusive and distance == 0)]
        start, limit = int(str(args.get("cursor") or "next:0")[5:]), int(args.get("limit") or default)
        if not 1 <= limit <= 1000:
            raise Refusal("invalid_limit")
        more = len(messages) > start + limit
        metadata = _true(args.get("include_all_metadata"))
        return {
            "messages": [self._slack.as_json(m, metadata=metadata) for m in messages[start : start + limit]],
            "has_more": more,
            "response_metadata": {"next_cursor": f"next:{start + limit}" if more else ""},
        }

    def _person(self, user: str) -> Json:
        if user not in self._slack.users:
            raise Refusal("user_not_found", str(user))
        return self._slack.users[user]

    def _channel(self, channel: str, *, inside: bool = True) -> Channel:
        slack = self._slack
        if channel in slack.users:  # a message to a person goes to their DM
            channel = slack.dm(channel)
        if channel not in slack.channels:
            raise Refusal("channel_not_found", str(channel))
        if inside and not slack.channels[channel].has_app:
            raise Refusal("not_in_channel", channel)
        return slack.channels[channel]

    # Messages.

    @_method("chat.postMessage")
    def _post_message(self, args: Json) -> Json:
        channel = self._channel(args["channel"])
        content = _content(args, POST_CHARACTERS)
        content["thread_ts"] = _root(channel, args.get("thread_ts"))
        message = self._slack.post(channel.id, self._slack.bot_user, **content)
        return {"channel": channel.id, "ts": message.ts, "message": self._slack.as_json(message)}

    @_method("chat.postEphemeral")
    def _post_ephemeral(self, args: Json) -> Json:
        channel = self._channel(args["channel"])
        self._person(args["user"])
        content = _content(args, POST_CHARACTERS) | {"thread_ts": _root(channel, args.get("thread_ts"))}
        message = self._slack.post(channel.id, self._slack.bot_user, ephemeral_to=args["user"], **content)
        return {"message_ts": message.ts}

    @_method("chat.update")
    def _update(self, args: Json) -> Json:
        message = self._own(args)
        self._edit(message, _content(args, UPDATE_CHARACTERS))
        shown = self._slack.as_json(message)
        return {"channel": message.channel, "ts": message.ts, "text": message.text, "message": shown}

    @_method("chat.delete")
    def _delete(self, args: Json) -> Json:
        message = self._own(args)
        message.deleted = True
        return {"channel": message.channel, "ts": message.ts}

    @_method("chat.getPermalink")
    def _permalink(self, args: Json) -> Json:
        channel = self._channel(args["channel"], inside=False)
        if channel.find(args["message_ts"]) is None:
            raise Refusal("message_not_found", args["message_ts"])
        name = args["message_ts"].replace(".", "")
        return {"permalink": f"https://team.slack.com/archives/{channel.id}/p{name}", "channel": channel.id}

    def _own(self, args: Json) -> Message:
        message = self._channel(args["channel"], inside=False).find(args["ts"])
        if message is None or message.ephemeral_to is not None or message.user != self._slack.bot_user:
            raise Refusal("message_not_found", args["ts"])
        return message

    def _edit(self, message: Message, content: Json) -> None:
        """Text without blocks takes the blocks away; blocks without text leave the text alone."""
        if "text" in content or "blocks" in content:
            message.blocks = self._slack.named(content.get("blocks", []))
        message.text = content.get("text", message.text)
        message.metadata = content.get("metadata", message.metadata)
        message.edits += 1

    # Views.

    @_method("views.open")
    def _views_open(self, args: Json) -> Json:
        raw = check_view(args["view"], "modal")
        trigger = self._slack.triggers.get(args["trigger_id"])
        if trigger is None:
            raise Refusal("invalid_trigger_id")
        if trigger.uses:
            raise Refusal("exchanged_trigger_id")
        if time.monotonic() - trigger.at > self._slack.trigger_seconds:
            raise Refusal("expired_trigger_id")
        trigger.uses += 1
        self._slack.modals[trigger.user] = [self._slack.new_view(raw, trigger.user)]
        return {"view": _shown(self._slack.modals[trigger.user][0])}

    @_method("views.update")
    def _views_update(self, args: Json) -> Json:
        view = self._slack.view(args["view_id"])
        if view is None:
            raise Refusal("not_found", args["view_id"])
        return self._change(view, args)

    @_method("views.publish")
    def _views_publish(self, args: Json) -> Json:
        user = self._person(args["user_id"])["id"]
        raw = check_view(args["view"], "home")
        if user in self._slack.homes:
            return self._change(self._slack.homes[user], args)
        self._slack.homes[user] = self._slack.new_view(raw, user)
        return {"view": _shown(self._slack.homes[user])}

    def _change(self, view: View, args: Json) -> Json:
        raw = check_view(args["view"], view.data["type"])
        if args.get("hash") and args["hash"] != view.data["hash"]:
            raise Refusal("hash_conflict")
        self._slack.change_view(view, raw)
        return {"view": _shown(view)}

    # Assistant threads.

    @_method("assistant.threads.setStatus")
    def _set_status(self, args: Json) -> Json:
        self._slack.statuses[self._thread(args)].append(args["status"])
        return {}

    @_method("assistant.threads.setTitle")
    def _set_title(self, args: Json) -> Json:
        self._slack.titles[self._thread(args)] = args["title"]
        return {}

    @_method("assistant.threads.setSuggestedPrompts")
    def _set_prompts(self, args: Json) -> Json:
        prompts = args["prompts"]
        if not 1 <= len(prompts) <= 4 or not all(p.get("title") and p.get("message") for p in prompts):
            raise Refusal("invalid_arguments", "one to four prompts, each with a title and a message")
        key = self._thread(args) if args.get("thread_ts") else (self._channel(args["channel_id"]).id, "")
        self._slack.prompts[key] = prompts
        return {}

    def _thread(self, args: Json) -> tuple[str, str]:
        channel = self._channel(args["channel_id"])
        if channel.find(args["thread_ts"]) is None:
            raise Refusal("invalid_thread_ts", args["thread_ts"])
        return channel.id, args["thread_ts"]

    # Files.

    @_method("files.info")
    def _files_info(self, args: Json) -> Json:
        if args["file"] not in self._slack.files:
            raise Refusal("file_not_found", args["file"])
        return {"file": self._slack.files[args["file"]].as_json()}

    @_method("files.getUploadURLExternal")
    def _upload_url(self, args: Json) -> Json:
        if int(args["length"]) < 1 or not args["filename"]:
            raise Refusal("missing_argument")
        file_id = self._slack.new_id("F")
        self._slack.uploads[file_id] = {"name": args["filename"], "length": int(args["length"])}
        return {"upload_url": f"{self._slack.base}/upload/{file_id}", "file_id": file_id}

    @_method("files.completeUploadExternal")
    def _complete_upload(self, args: Json) -> Json:
        slack = self._slack
        if not args["files"] or any("content" not in slack.uploads.get(f["id"], {}) for f in args["files"]):
            raise Refusal("file_not_found")
        channel = self._channel(args["channel_id"]) if args.get("channel_id") else None
        thread_ts = _root(channel, args.get("thread_ts")) if channel else None
        files = []
        for asked in args["files"]:
            upload = slack.uploads.pop(asked["id"])
            title = asked.get("title") or ""
            kept = slack.keep_file(asked["id"], upload["name"], upload["content"], slack.bot_user, title)
            files.append(kept.as_json())
        if channel is not None:
            more: Json = {"files": files, "thread_ts": thread_ts, "extra": {"subtype": "file_share"}}
            slack.post(channel.id, slack.bot_user, args.get("initial_comment") or "", **more)
        return {"files": copy.deepcopy(files)}

    async def _serve_upload(self, request: web.Request) -> web.Response:
        file_id = request.match_info["id"]
        if request.content_type == "multipart/form-data":
            parts = [p for p in (await request.post()).values() if isinstance(p, web.FileField)]
            content = parts[0].file.read() if parts else b""
        else:
            content = await request.read()
        called = Call("upload", {"id": file_id, "length": len(content)}, time.monotonic())
        fault, answered = await self._arrived(request, called)
        if answered is not None:
            return answered
        upload = self._slack.uploads.get(file_id, {"length": None})
        if len(content) != upload["length"]:
            self.refuse("upload", Refusal("wrong_length", f"{len(content)}, not {upload['length']}"))
            return web.Response(status=400)
        upload["content"] = content
        return _cut(request) if fault.cut else web.Response(text=f"OK - {len(content)}")

    async def _serve_file(self, request: web.Request) -> web.Response:
        file_id = request.match_info["id"]
        fault, answered = await self._arrived(request, Call("download", {"id": file_id}, time.monotonic()))
        if answered is not None or fault.cut:
            return answered or _cut(request)
        if request.headers.get("Authorization") != f"Bearer {self._slack.bot_token}":
            self.refuse("download", Refusal("invalid_auth", file_id))
            return web.Response(text=_SIGN_IN, content_type="text/html")
        if file_id not in self._slack.files:
            return web.Response(status=404)
        file = self._slack.files[file_id]
        return web.Response(body=file.content, content_type=file.as_json()["mimetype"])

    # Response URLs.

    async def _serve_response_url(self, request: web.Request) -> web.Response:
        args = await request.json()
        fault, answered = await self._arrived(request, Call("response_url", args, time.monotonic()))
        if answered is not None:
            return answered
        pointer = self._slack.response_urls.get(request.match_info["key"])
        try:
            if pointer is None or pointer.uses >= RESPONSE_URL_USES:
                raise Refusal("used_url")
            pointer.uses += 1
            self.respond(pointer, args)
        except Refusal as refusal:
            self.refuse("response_url", refusal)
            return web.json_response({"ok": False, "error": refusal.error}, status=404)
        return _cut(request) if fault.cut else web.Response(text="ok")

    def respond(self, pointer: Pointer, args: Json) -> None:
        """What an app answers to a command or a click: a message of its own, or in place of the old one."""
        original = pointer.message
        replaces = _true(args.get("replace_original")) or _true(args.get("delete_original"))
        if replaces and (original is None or original.deleted):
            raise Refusal("message_not_found")
        if original is not None and _true(args.get("delete_original")):
            original.deleted = True
            return
        content = _content(args, POST_CHARACTERS)
        if original is not None and replaces:
            self._edit(original, content)
            return
        to = None if args.get("response_type") == "in_channel" else pointer.user
        content["thread_ts"] = args.get("thread_ts") or (original.thread_ts if original else None)
        self._slack.post(pointer.channel, self._slack.bot_user, ephemeral_to=to, **content)


async def _arguments(request: web.Request) -> Json:
    args: Json = dict(request.query)
    if request.content_type == "application/json":
        args |= await request.json()
    elif request.method == "POST":
        args |= await request.post()
    for key in args.keys() & set(_AS_JSON):
        if isinstance(args[key], str):
            args[key] = json.loads(args[key])
    return {k: v for k, v in args.items() if v is not None}


def _scripted(fault: Fault) -> web.Response | None:
    error = fault.error or ("ratelimited" if fault.status == 429 else "")
    headers = {}
    if fault.status == 429:
        headers["Retry-After"] = str(1 if fault.retry_after is None else fault.retry_after)
    if error:
        return web.json_response({"ok": False, "error": error}, status=fault.status or 200, headers=headers)
    return (
        web.Response(status=fault.status, text="<html></html>", content_type="text/html")
        if fault.status
        else None
    )


def _cut(request: web.Request) -> web.Response:
    """Close the connection; the answer goes nowhere."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


def _content(args: Json, most: int) -> Json:
    """The fields of a message that are given."""
    content: Json = {}
    if args.get("text") is not None:
        if len(args["text"]) > most:
            raise Refusal("msg_too_long", f"{len(args['text'])} characters")
        content["text"] = args["text"]
    if args.get("blocks") is not None:
        content["blocks"] = check_blocks(args["blocks"])
    if (metadata := args.get("metadata")) is not None:
        if not isinstance(metadata.get("event_type"), str) or not isinstance(metadata["event_payload"], dict):
            raise Refusal("invalid_metadata_format")
        if len(json.dumps(metadata, ensure_ascii=False).encode()) > METADATA_BYTES:
            raise Refusal("metadata_too_large")
        content["metadata"] = metadata
    if not content.get("text", "").strip() and not content.get("blocks"):
        raise Refusal("no_text")
    return content


def _root(channel: Channel, ts: str | None) -> str | None:
    if not ts:
        return None
    message = channel.find(ts)
    if message is None:
        raise Refusal("thread_not_found", ts)
    return message.root_ts


def _shown(view: View) -> Json:
    return copy.deepcopy(view.data)


def _true(value: Any) -> bool:
    return value in (True, 1, "1", "true", "True")
