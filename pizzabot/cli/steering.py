"""How is work stopped and gone on with from the terminal?"""

from __future__ import annotations

from typing import Annotated

import typer

from pizzabot.cli import ids
from pizzabot.cli.client import connected
from pizzabot.cli.inbox import ThreadId
from pizzabot.cli.place import HomeOption
from pizzabot.cli.text import short


def stop(
    thread: Annotated[
        str | None, typer.Argument(metavar="THREAD", help="The thread's id, or the end of it.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Stop all runs, and start none until resume.")
    ] = False,
    home: HomeOption = None,
) -> None:
    """Stop before the next model or tool call."""
    if (thread is None) != everything:
        raise typer.BadParameter("give a thread, or --all")
    with connected(home) as api:
        if thread is None:
            api.post("/api/stop")
            print(f"Everything is stopped. Messages are kept; they run after: {api.command('resume')}")
            return
        found = ids.thread_id(api, thread)
        if not api.post(f"/api/threads/{found}/stop").get("stopped", True):
            print(f"{short(found)}: nothing was running.")
            return
        print(f"{short(found)} is stopped. Go on: {api.command('retry', short(found))}")


def resume(home: HomeOption = None) -> None:
    """Undo `stop --all`: what was kept runs now."""
    with connected(home) as api:
        resumed = api.post("/api/resume").get("resumed", True)
        print("Work goes on." if resumed else "Nothing was stopped.")


def retry(thread: ThreadId, home: HomeOption = None) -> None:
    """Go on with a failed or stopped run from where it got."""
    with connected(home) as api:
        found = ids.thread_id(api, thread)
        api.post(f"/api/threads/{found}/retry")
        print(f"{short(found)} goes on. See it: {api.command('show', short(found))}")
