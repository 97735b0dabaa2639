"""Hand over a piece of work from the terminal: progress goes to stderr, the answer alone to stdout."""

from __future__ import annotations

import base64
import mimetypes
import sys
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from pizzabot.cli import ids
from pizzabot.cli.client import Api, connected
from pizzabot.cli.decisions import ways_to_decide
from pizzabot.cli.failures import INTERRUPTED, Failed, tell
from pizzabot.cli.following import Outcome, Posted, follow
from pizzabot.cli.place import HomeOption
from pizzabot.cli.text import says_itself, short, shown_question
from pizzabot.text import visible


def ask(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What should be done; - reads it from stdin.")],
    thread: Annotated[
        str | None, typer.Option("--thread", metavar="ID", help="Go on in this thread.")
    ] = None,
    wait: Annotated[
        float | None, typer.Option("--wait", metavar="SECONDS", min=0, help="Wait at most so long.")
    ] = None,
    attach: Annotated[
        list[Path] | None,
        typer.Option("--attach", metavar="FILE", help="Send a file along; may be repeated."),
    ] = None,
    home: HomeOption = None,
) -> int:
    """Post a message and follow the work until it ends or waits for a decision."""
    body = {"text": sys.stdin.read() if text == "-" else text}
    files = [attachment(path) for path in attach or ()]
    with connected(home) as api:
        posted = _post(api, body | ({"attachments": files} if files else {}), thread)
        held = ", held until the present run ends" if posted.held else ""
        try:
            tell(f"thread {short(posted.thread_id)}{held}")
            return _end(api, posted, follow(api, posted, wait, tell))
        except KeyboardInterrupt:
            tell(f"\nThe run goes on. {_look_later(api, posted)}")
            return INTERRUPTED


def attachment(path: Path) -> dict[str, str]:
    """A file as the API takes it.

    Raises:
        Failed: it cannot be read.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise Failed(f"{visible(str(path))} cannot be read: {error.strerror}") from error
    media_type = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return {"filename": path.name, "media_type": media_type, "data": base64.b64encode(data).decode()}


def _post(api: Api, body: Mapping[str, Any], thread: str | None) -> Posted:
    path = f"/api/threads/{ids.thread_id(api, thread)}/messages" if thread else "/api/threads"
    answer = api.post(path, body, **{"Idempotency-Key": str(uuid.uuid4())})
    thread_id = answer.get("thread_id") or path.split("/")[3]
    return Posted(thread_id, answer.get("run_id"), answer.get("message_id"), bool(answer.get("held")))


def _end(api: Api, posted: Posted, outcome: Outcome) -> int:
    match outcome.ending:
        case "answered":
            print(visible(outcome.text, body=True))
        case "waiting":
            _tell_waiting(api, posted, outcome)
        case "failed":
            raise Failed(visible(outcome.text), f"try again: {api.command('retry', short(posted.thread_id))}")
        case "stopped":
            raise Failed("the run was stopped", f"go on: {api.command('retry', short(posted.thread_id))}")
        case "paused":
            tell(f"Everything is stopped; the message is kept and runs after: {api.command('resume')}")
        case "going":
            tell(f"The run goes on. {_look_later(api, posted)}")
    return 0


def _look_later(api: Api, posted: Posted) -> str:
    return f"See it with: {api.command('show', short(posted.thread_id))}  (thread {posted.thread_id})"


def _tell_waiting(api: Api, posted: Posted, outcome: Outcome) -> None:
    for action in outcome.actions:
        about = "" if says_itself(action) else f"{visible(action['tool'])} "
        title = visible(action["title"])
        tell(f"waiting for approval: {f'{about}({title})' if about else title}")
        for line in shown_question(action):
            tell(line)
        if action.get("may_decide", True):
            for way in ways_to_decide(api, action):
                tell(f"    {way}")
    if posted.held:
        tell("The message is held until then.")
    tell(f"The answer will be in: {api.command('show', short(posted.thread_id))}")
