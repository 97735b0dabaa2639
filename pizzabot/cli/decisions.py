"""How does a person decide from the terminal? Show what will run, and send the digest of what was shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from pizzabot.cli import ids
from pizzabot.cli.arguments import edited, full_set
from pizzabot.cli.client import Api, connected
from pizzabot.cli.failures import Failed
from pizzabot.cli.place import HomeOption
from pizzabot.cli.text import approvals_line, at, parsed_time, says_itself, short, shown_question
from pizzabot.text import visible

ActionId = Annotated[str, typer.Argument(metavar="ACTION", help="The action's id, or the end of it.")]
Reason = Annotated[str | None, typer.Option("--reason", help="Why; the agent is told.")]

_DONE = {
    "approved": "Approved.",
    "edited": "Approved with these arguments.",
    "rejected": "Rejected.",
    "responded": "Answered.",
    "resolved": "Resolved.",
    "pending": "It waits for a decision again.",
}


def approve(action: ActionId, reason: Reason = None, home: HomeOption = None) -> None:
    """Show what will run and approve just that."""
    with connected(home) as api:
        row = ids.action(api, action)
        _show(row, row["args"])
        _decide(api, row, {"decision": "approve", "reason": reason})


def reject(action: ActionId, reason: Reason = None, home: HomeOption = None) -> None:
    """Reject; the agent goes on without it."""
    with connected(home) as api:
        row = ids.action(api, action)
        _show(row, row["args"])
        _decide(api, row, {"decision": "reject", "reason": reason})


def edit(
    action: ActionId,
    changes: Annotated[list[str] | None, typer.Argument(metavar="KEY=VALUE", help="What to change.")] = None,
    json_text: Annotated[
        str | None, typer.Option("--json", metavar="OBJECT", help="All arguments, as one JSON object.")
    ] = None,
    reason: Reason = None,
    home: HomeOption = None,
) -> None:
    """Change arguments and approve the result."""
    if bool(changes) == (json_text is not None):
        raise typer.BadParameter("give either KEY=VALUE… or --json")
    with connected(home) as api:
        row = ids.action(api, action)
        args = (
            full_set(json_text)
            if json_text is not None
            else edited(row["args"], row["args_schema"], changes or [])
        )
        _show(row, args)
        _decide(api, row, {"decision": "edit", "args": args, "reason": reason})


def respond(
    action: ActionId,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What the agent is told in place of a result.")],
    home: HomeOption = None,
) -> None:
    """Answer in place of the tool."""
    with connected(home) as api:
        row = ids.action(api, action)
        _show(row, row["args"])
        _decide(api, row, {"decision": "respond", "response": text})


def resolve(
    action: ActionId,
    outcome: Annotated[str, typer.Argument(metavar="retry|done|failed", help="What became of the call.")],
    home: HomeOption = None,
) -> None:
    """Say what became of a call: send it again, it was done, or it failed."""
    if outcome not in ("retry", "done", "failed"):
        raise typer.BadParameter("write retry, done or failed")
    with connected(home) as api:
        row = ids.action(api, action)
        _show(row, row["args"])
        _decide(api, row, {"decision": outcome})


def reopen(action: ActionId, home: HomeOption = None) -> None:
    """Make an expired action pending again."""
    with connected(home) as api:
        row = ids.action(api, action)
        _show(row, row["args"])
        opened = api.post(f"/api/actions/{row['id']}/reopen")
        _say_done(api, opened)


def snooze(
    action: ActionId,
    when: Annotated[
        str, typer.Argument(metavar="WHEN", help='"2h", "tomorrow 9:00", "Mon", or an ISO date-time.')
    ],
    home: HomeOption = None,
) -> None:
    """Put an action off: you are told of it again then, and not before."""
    with connected(home) as api:
        row = ids.action(api, action)
        snoozed = api.post(f"/api/actions/{row['id']}/snooze", {"until": when})
        until = {s["person"]: s["until"] for s in snoozed["snoozed"]}.get(api.get("/api/me")["name"])
        print(f"{visible(snoozed['title'])} You are told again {at(parsed_time(until), api.zone)}.")


def _show(row: Mapping[str, Any], args: Mapping[str, Any]) -> None:
    if says_itself(row):
        print(visible(" ".join(str(row["title"]).split())))
    else:
        print(visible(str(row["tool"])))
    for line in shown_question({**row, "args": args}):
        print(line)


def _decide(api: Api, row: Mapping[str, Any], decision: Mapping[str, Any]) -> None:
    body = {name: value for name, value in decision.items() if value is not None}
    decided = api.post(f"/api/actions/{row['id']}/decision", body | {"digest": row["digest"]})
    if isinstance(decided, dict) and decided.get("state") == "pending":
        print(f"Your approval counts: {approvals_line(decided)}. It runs when enough have approved.")
        return
    _say_done(api, decided)


def _say_done(api: Api, row: Any) -> None:
    if not isinstance(row, dict) or "state" not in row:
        raise Failed("the server did not say what became of it; look with `pizzabot show`")
    print(_DONE.get(row["state"], visible(str(row["state"]))))
    print(f"The thread: {api.command('show', short(str(row['thread_id'])))}")


def ways_to_decide(api: Api, row: Mapping[str, Any]) -> list[str]:
    """The commands that answer this action, ready to be typed."""
    key = short(str(row["id"]))
    forms = {
        "approve": f"approve {key}",
        "edit": f"edit {key} {_example(row)}",
        "reject": f'reject {key} --reason "…"',
        "respond": f'respond {key} "…"',
        "retry": f"resolve {key} retry",
        "done": f"resolve {key} done",
        "failed": f"resolve {key} failed",
    }
    return [api.command(forms[word]) for word in row["allowed_decisions"] if word in forms]


def _example(row: Mapping[str, Any]) -> str:
    name = next((name for name in row["args"] if name.isidentifier() and name.isascii()), "key")
    return f"{name}=…"
