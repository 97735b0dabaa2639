"""A scripted language model behind the OpenAI chat API, standard library only.

The newest user message that holds a directive rules; without one the answer repeats the message.

    [[say TEXT]]                               answer TEXT
    [[long N]]                                 answer N characters of Markdown
    [[cut]]                                    answer half a sentence, finish_reason length
    [[sleep SECONDS]]                          answer late
    [[fail STATUS N]]                          answer the first N requests of this message with STATUS
    [[call SKILL TOOL {args}]]                 have TOOL called, then answer with its result
    [[calls SKILL [["TOOL", {args}], …]]]      several calls in one turn of one worker
    [[workers [["SKILL", "TOOL", {args}], …]]] several workers side by side, one call each
    [[loop SKILL TOOL {args}]]                 call TOOL for ever

A tool that is not offered is reached by delegating: the same directive goes to the worker SKILL. A request
for a title ("Give a short title…") is answered "A short title".
"""

from __future__ import annotations

import itertools
import json
import re
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

Json = dict[str, Any]

TITLE = "A short title"
_DIRECTIVE = re.compile(r"\[\[(say|long|cut|sleep|fail|calls|call|workers|loop)\b\s*(.*?)\s*\]\](?!\])", re.S)
_CALL = re.compile(r"(\S+)\s+(\S+)\s*(\{.*\})?", re.S)


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model says: a text, or calls of (tool, arguments), or an HTTP status that is no success."""

    text: str = ""
    calls: Sequence[tuple[str, Json]] = ()
    finish: str = "stop"
    status: int = 200
    delay_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it arrived."""

    model: str
    messages: Sequence[Json]
    tools: Sequence[str]
    status: int


def text_of(message: Mapping[str, Any]) -> str:
    """The text of a message, whose content may be a list of parts."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text", "")) for part in content)


def plan(messages: Sequence[Json], tools: Sequence[str], failed: dict[str, int]) -> Reply:
    """The answer to a conversation; `failed` counts the scripted failures so far."""
    said = [text_of(m) for m in messages if m["role"] == "user"]
    if said and said[-1].startswith("Give a short title"):
        return Reply(TITLE)
    place = next((i for i in reversed(range(len(messages))) if _directs(messages[i])), None)
    if place is None:
        return Reply(f"You said: {said[-1] if said else ''}")
    whole = text_of(messages[place])
    match = _DIRECTIVE.search(whole)
    assert match is not None
    word, rest = match.groups()
    results = [text_of(m) for m in messages[place + 1 :] if m["role"] == "tool"]
    if word in ("call", "calls", "workers", "loop"):
        return _act(word, rest, match.group(0), tools, results)
    return _speak(word, rest, whole, failed)


def _directs(message: Json) -> bool:
    return message["role"] == "user" and _DIRECTIVE.search(text_of(message)) is not None


def _speak(word: str, rest: str, whole: str, failed: dict[str, int]) -> Reply:
    if word == "say":
        return Reply(rest)
    if word == "long":
        return Reply(
            ("## A section\n\n- an item with **weight** and `code`\n\n" * (int(rest) // 40))[: int(rest)]
        )
    if word == "cut":
        return Reply("This sentence has no", finish="length")
    if word == "sleep":
        return Reply(f"slept {rest}", delay_seconds=float(rest))
    status, _, times = rest.partition(" ")
    failed[whole] = failed.get(whole, 0) + 1
    return Reply(status=int(status)) if failed[whole] <= int(times or 1) else Reply("recovered")


def _act(word: str, rest: str, directive: str, tools: Sequence[str], results: Sequence[str]) -> Reply:
    if results and word != "loop":
        return Reply("Result: " + " | ".join(results))
    if word == "workers":
        jobs = [
            (skill, f"[[call {skill} {tool} {json.dumps(args)}]]") for skill, tool, args in json.loads(rest)
        ]
        return _calling([("task", {"description": text, "subagent_type": skill}) for skill, text in jobs])
    skill, wanted = _wanted(word, rest)
    offered = [(name, args) for tool, args in wanted if (name := _find(tools, tool)) is not None]
    if offered:
        return _calling(offered)
    if "task" in tools:
        return _calling([("task", {"description": directive, "subagent_type": skill})])
    return Reply(f"There is no tool {wanted[0][0]}.")


def _wanted(word: str, rest: str) -> tuple[str, list[tuple[str, Json]]]:
    if word == "calls":
        skill, _, listed = rest.partition(" ")
        return skill, [(tool, args) for tool, args in json.loads(listed)]
    match = _CALL.fullmatch(rest)
    assert match is not None, f"not SKILL TOOL {{args}}: {rest}"
    return match[1], [(match[2], json.loads(match[3] or "{}"))]


def _find(tools: Sequence[str], wanted: str) -> str | None:
    return next((name for name in tools if name == wanted or name.endswith(f"_{wanted}")), None)


def _calling(calls: Sequence[tuple[str, Json]]) -> Reply:
    return Reply(calls=calls, finish="tool_calls")


class _Server(ThreadingHTTPServer):
    # The default of five makes the sixth caller of a moment wait a second for its connection.
    request_queue_size = 256


@dataclass(slots=True)
class ModelServer:
    """The server, in threads of its own; `with ModelServer() as model:` gives `model.url`."""

    asked: list[Asked] = field(default_factory=list)
    arrivals: list[tuple[float, str]] = field(default_factory=list)  # Unix time, the last message
    latency_seconds: float = 0.0
    tokens: tuple[int, int] | None = (
        None  # what each answer says that it read and wrote; None: about the truth
    )
    _failed: dict[str, int] = field(default_factory=dict)
    _ids: itertools.count[int] = field(default_factory=itertools.count)
    _closing: threading.Event = field(default_factory=threading.Event)
    _server: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        """The `base_url` of a client."""
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> ModelServer:
        model = self

        class Answer(_Answer):
            owner = model

        self._server = _Server(("127.0.0.1", 0), Answer)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()

    def reply(self, body: Json) -> tuple[int, Json]:
        """Status and body for a request."""
        self.arrivals.append((time.time(), text_of(body["messages"][-1])))
        tools = [tool["function"]["name"] for tool in body.get("tools") or [] if "function" in tool]
        said = plan(body["messages"], tools, self._failed)
        self.asked.append(Asked(body["model"], body["messages"], tools, said.status))
        self._closing.wait(said.delay_seconds + self.latency_seconds)
        if said.status != 200:
            return said.status, {"error": {"message": f"scripted {said.status}", "type": "scripted"}}
        return 200, self._completion(body, said)

    def _completion(self, body: Json, said: Reply) -> Json:
        message: Json = {"role": "assistant", "content": said.text or None}
        if said.calls:
            message["tool_calls"] = [self._call(name, args) for name, args in said.calls]
        sent, made = self.tokens or (
            len(json.dumps(body["messages"])) // 4,
            1 + len(json.dumps(message)) // 4,
        )
        return {
            "id": f"chatcmpl-{next(self._ids)}",
            "object": "chat.completion",
            "created": 1_700_000_000,
            "model": body["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": said.finish}],
            "usage": {"prompt_tokens": sent, "completion_tokens": made, "total_tokens": sent + made},
        }

    def _call(self, name: str, args: Json) -> Json:
        function = {"name": name, "arguments": json.dumps(args)}
        return {"id": f"call_{next(self._ids):06d}", "type": "function", "function": function}


class _Answer(BaseHTTPRequestHandler):
    owner: ModelServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else a kept connection waits for delayed acknowledgements
    wbufsize = 65536

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def handle(self) -> None:
        with suppress(ConnectionError):  # whoever asked was killed
            super().handle()

    def do_POST(self) -> None:
        sent = self.rfile.read(int(self.headers["Content-Length"]))
        if len(sent) < int(self.headers["Content-Length"]):  # whoever asks was killed
            self.close_connection = True
            return
        body = json.loads(sent)
        status, answer = self.owner.reply(body)
        if status == 200 and body.get("stream"):
            self._send(200, _streamed(answer), "text/event-stream")
        else:
            self._send(status, json.dumps(answer).encode(), "application/json")

    def _send(self, status: int, content: bytes, media_type: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(content)))
        if status == 429:
            self.send_header("Retry-After", "1")
        self.end_headers()
        self.wfile.write(content)


def _streamed(answer: Json) -> bytes:
    """The same answer as the chunks of a stream: everything, the end, the usage."""
    base = {key: answer[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    choice = answer["choices"][0]
    delta = dict(choice["message"])
    if "tool_calls" in delta:
        delta["tool_calls"] = [{"index": i, **call} for i, call in enumerate(delta["tool_calls"])]
    chunks = [
        {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]},
        {"choices": [], "usage": answer["usage"]},
    ]
    lines = [json.dumps(base | chunk) for chunk in chunks]
    return "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"]).encode()
