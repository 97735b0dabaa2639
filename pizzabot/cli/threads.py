"""How is a thread marked, renamed, forked or deleted from the terminal?"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from pizzabot.cli import ids
from pizzabot.cli.client import connected
from pizzabot.cli.failures import Failed
from pizzabot.cli.inbox import ThreadId
from pizzabot.cli.place import HomeOption
from pizzabot.cli.text import short
from pizzabot.text import visible


def read(thread: ThreadId, home: HomeOption = None) -> None:
    """Mark a thread as read."""
    with connected(home) as api:
        found = ids.thread_id(api, thread)
        api.send("PATCH", f"/api/threads/{found}", body={"unread": False})
        print(f"{short(found)} is read.")


def archive(thread: ThreadId, home: HomeOption = None) -> None:
    """Take a thread out of the inbox; a new message brings it back."""
    with connected(home) as api:
        found = ids.thread_id(api, thread)
        api.send("PATCH", f"/api/threads/{found}", body={"archived": True})
        print(f"{short(found)} is archived.")


def rename(
    thread: ThreadId,
    title: Annotated[str, typer.Argument(metavar="TITLE", help="The new title.")],
    home: HomeOption = None,
) -> None:
    """Give a thread another title."""
    with connected(home) as api:
        found = ids.thread_id(api, thread)
        api.send("PATCH", f"/api/threads/{found}", body={"title": title})
        print(f"{short(found)} is now {visible(title)}")


def fork(
    thread: ThreadId,
    message: Annotated[
        str, typer.Argument(metavar="MESSAGE", help="The last message to keep, as show names it.")
    ],
    home: HomeOption = None,
) -> None:
    """Go on from an earlier message in a new thread; prints the new thread's id."""
    with connected(home) as api:
        found = ids.thread_id(api, thread)
        made = api.post(f"/api/threads/{found}/fork", {"message_id": message})
        print(visible(str(made["thread_id"])))


def delete(
    thread: ThreadId,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    home: HomeOption = None,
) -> None:
    """Delete a thread with its messages, files and state; asks first."""
    with connected(home) as api:
        found = ids.thread_id(api, thread)
        if not yes:
            title = api.get(f"/api/threads/{found}")["title"]
            _confirm(f"Delete {short(found)}, {visible(title)}, for good?")
        api.send("DELETE", f"/api/threads/{found}")
        print(f"{short(found)} is deleted.")


def _confirm(question: str) -> None:
    if not sys.stdin.isatty():
        raise Failed("deleting is for good; say --yes when nobody can be asked")
    if input(f"{question} [y/N] ").strip().lower() not in ("y", "yes"):
        raise Failed("nothing was deleted")
