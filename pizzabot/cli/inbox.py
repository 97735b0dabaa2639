"""What is in the inbox, and what is in a thread?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import typer

from pizzabot.cli import ids
from pizzabot.cli.client import Api, connected
from pizzabot.cli.decisions import ways_to_decide
from pizzabot.cli.output import JsonOption, count, print_json, print_table
from pizzabot.cli.place import HomeOption
from pizzabot.cli.progress import activity_line
from pizzabot.cli.text import (
    ago,
    approvals_line,
    at,
    parsed_time,
    says_itself,
    short,
    shortened,
    shown_args,
    shown_value,
)
from pizzabot.cli.traces import trace_lines
from pizzabot.text import visible

VIEWS = ("all", "unread", "action", "archived")
_TITLE = 60
_VALUE = 40

ThreadId = Annotated[str, typer.Argument(metavar="THREAD", help="The thread's id, or the end of it.")]


def inbox(
    view: Annotated[str, typer.Argument(metavar="all|unread|action|archived", help="Which threads.")] = "all",
    search: Annotated[str, typer.Option("--search", metavar="WORDS", help="Only with these words.")] = "",
    limit: Annotated[int, typer.Option("--limit", min=1, max=100, help="How many at most.")] = 20,
    json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """List threads, the newest first."""
    if view not in VIEWS:
        raise typer.BadParameter(f"write one of {', '.join(VIEWS)}")
    with connected(home) as api:
        page = api.get("/api/threads", view=view, q=search or None, limit=limit)
        if json:
            print_json(page)
            return
        counts = page["counts"]
        print(f"All {counts['all']:,} · Unread {counts['unread']:,} · Action {counts['action']:,}")
        if page["threads"]:
            print()
            _print_threads(api, page["threads"])
        if page.get("next_cursor"):
            print("There are more; --limit shows up to 100, --search finds words.")
        if view == "action":
            put_off = {a["id"]: a.get("put_off_until") for row in page["threads"] for a in row["pending"]}
            _print_waiting(api, [row["id"] for row in page["threads"]], put_off)


def _print_threads(api: Api, threads: Sequence[Mapping[str, Any]]) -> None:
    rows = [
        (
            "●" if thread["unread"] else " ",
            short(thread["id"]),
            _state_in_list(thread),
            shortened(thread["title"], _TITLE),
            ago(parsed_time(thread["last_activity_at"]), api.now, api.zone),
            visible(thread["channel"]),
        )
        for thread in threads
    ]
    print_table(("", "ID", "STATE", "TITLE", "LAST", "FROM"), rows, wide=3)


def _state(thread: Mapping[str, Any]) -> str:
    waiting = int(thread["action_count"])
    return f"{waiting} to decide" if waiting else visible(thread["state"])


def _state_in_list(thread: Mapping[str, Any]) -> str:
    put_off = [action for action in thread.get("pending", ()) if action.get("put_off_until")]
    return "put off" if put_off and len(put_off) == int(thread["action_count"]) else _state(thread)


def _print_waiting(api: Api, shown: Sequence[str], put_off: Mapping[str, str | None]) -> None:
    waiting = [
        row for row in api.get("/api/actions", state="pending")["actions"] if row["thread_id"] in shown
    ]
    if not waiting:
        return
    print()
    rows = [
        (
            short(row["id"]),
            short(row["thread_id"]),
            shortened(row["tool"], _TITLE),
            _until(api, put_off.get(row["id"])) + _in_short(row),
        )
        for row in waiting
    ]
    print_table(("ACTION", "THREAD", "TOOL", "ARGUMENTS"), rows, wide=3)
    key = short(waiting[0]["id"])
    print(f"\nLook first: {api.command('show', short(waiting[0]['thread_id']))}")
    print(f"Then:       {api.command('approve', key)}")


def _until(api: Api, moment: str | None) -> str:
    return f"put off until {at(parsed_time(moment), api.zone)} · " if moment else ""


def _in_short(row: Mapping[str, Any]) -> str:
    if says_itself(row):
        return shortened(row["why"], 200)
    shown = (f"{name}={shortened(shown_value(value), _VALUE)}" for name, value in row["args"].items())
    return shortened(", ".join(shown), 200)


def show(
    thread: ThreadId,
    trace: Annotated[
        bool, typer.Option("--trace", help="Step by step, with times, costs and who decided.")
    ] = False,
    json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Show a thread with its messages, what waits for a decision, and what was done."""
    with connected(home) as api:
        path = f"/api/threads/{ids.thread_id(api, thread)}"
        found = api.get(f"{path}/trace" if trace else path)
        if json:
            print_json(found)
            return
        for line in trace_lines(found, api.zone) if trace else thread_lines(api, found):
            print(line)


def thread_lines(api: Api, thread: Mapping[str, Any]) -> Iterator[str]:
    """A thread as it is read from top to bottom."""
    yield visible(thread["title"])
    since = at(parsed_time(thread.get("created_at")), api.zone)
    yield f"{visible(thread['id'])} · {_state(thread)} · {visible(thread['channel'])} · {since}"
    for message in thread["messages"]:
        yield ""
        yield _message_head(message, api)
        yield visible(message["text"], body=True)
        for file in message.get("attachments") or ():
            yield f"  + {visible(file['filename'])} ({count(int(file['size_bytes']), 'byte')})"
    yield from _doings(thread)
    for run in thread["runs"]:
        if error := run.get("error"):
            again = api.command("retry", short(thread["id"]))
            yield f"\nFailed: {visible(error['message'])} Try again: {again}"
    for action in thread["actions"]:
        if action["state"] == "pending" or (action["state"] == "expired" and "decision" not in action):
            yield ""
            yield from action_lines(api, action)


def _message_head(message: Mapping[str, Any], api: Api) -> str:
    held = " · held for the next run" if message.get("held") else ""
    time = at(parsed_time(message["created_at"]), api.zone)
    author = visible(message["author"] or message["role"])
    return f"── {author} · {time} · message {visible(message['id'])}{held}"


def _doings(thread: Mapping[str, Any]) -> Iterator[str]:
    lines = [line for row in thread["activity"] if (line := activity_line(row)) is not None]
    if lines:
        yield "\n── what was done"
        yield from lines


def action_lines(api: Api, action: Mapping[str, Any]) -> Iterator[str]:
    """What waits for a decision: everything about it, and the commands that decide."""
    who = " or ".join(visible(name) for name in action.get("approvers") or ())
    yield f"── waits for {who or 'a decision'}: {visible(action['title'])}"
    yield f"action {visible(action['id'])} · {visible(action['tool'])}" + (
        f" · skill {visible(action['skill'])}" if action.get("skill") else ""
    )
    if action.get("why"):
        yield visible(" ".join(action["why"].split()))
    if not says_itself(action):
        yield from shown_args(action["args"])
    if (standing := approvals_line(action)) is not None:
        yield standing
    for snooze in action.get("snoozed") or ():
        yield f"put off by {visible(snooze['person'])} until {at(parsed_time(snooze['until']), api.zone)}"
    if action.get("escalated_to"):
        yield f"escalated to {visible(' and '.join(action['escalated_to']))}"
    if action.get("edited_by"):
        yield f"edited by {visible(action['edited_by'])}; whoever approved before has to approve this, too"
    if action["state"] == "pending" and action.get("expires_at"):
        yield f"expires {at(parsed_time(action['expires_at']), api.zone)}"
    if action["state"] == "expired":
        yield f"expired; {api.command('reopen', short(action['id']))}"
    elif action.get("may_decide", True):
        yield from (f"  {way}" for way in ways_to_decide(api, action))
