"""How is the house: server, channels, skills, MCP servers, costs, and what happened in it?"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer

from pizzabot.cli.client import Api, connected
from pizzabot.cli.failures import Failed
from pizzabot.cli.output import JsonOption, count, print_json, print_table
from pizzabot.cli.place import HomeOption
from pizzabot.cli.serve import place_of
from pizzabot.cli.text import at, parsed_time, shortened
from pizzabot.text import visible

_RECONNECT_SECONDS = 35.0
_WIDE = 100

SkillId = Annotated[str, typer.Argument(metavar="SKILL", help="The skill's id.")]
ServerName = Annotated[str, typer.Argument(metavar="SERVER", help="The name in .mcp.json.")]


def open_web(
    person: Annotated[
        str | None, typer.Argument(metavar="[PERSON]", help="Who is to log in; an owner may name anybody.")
    ] = None,
    browser: Annotated[bool, typer.Option("--browser", help="Open it in this machine's browser.")] = False,
    json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Print a link that logs one person in to the web view, once, within ten minutes."""
    with connected(home) as api:
        made = api.post("/api/login-links", {"person": person} if person is not None else {})
    if json:
        print_json(made)
        return
    print(made["url"])
    print(f"It logs {visible(str(made['person']))} in, once, within ten minutes.", file=sys.stderr)
    if browser:
        import webbrowser

        if not webbrowser.open(made["url"]):
            raise Failed("no browser could be opened here; open the link yourself")


def status(json: JsonOption = False, home: HomeOption = None) -> None:
    """Show channels, MCP servers, model, outbox, and whether everything is stopped."""
    with connected(home) as api:
        found = api.get("/api/status")
        if json:
            print_json(found)
            return
        print(f"server   {api.server.url} · version {visible(str(found.get('version', '?')))}")
        for line in status_lines(found):
            print(line)


def status_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """The status, one thing a line."""
    yield f"model    {visible(str(found['model'].get('label') or found['model'].get('name')))}"
    if found["stopped"]:
        who = visible(str((found.get("stopped_by") or {}).get("person", "somebody")))
        yield f"stopped  everything, by {who}; `pizzabot resume` undoes it"
    for name, channel in found["channels"].items():
        heard = channel.get("last_event_at")
        when = f", last event {visible(str(heard)[:19])} UTC" if heard else ""
        yield f"channel  {visible(name)}: {_state_and_why(channel, 'detail')}{when}"
    for name, server in found["mcp"].items():
        tools = count(int(server["tools"]), "tool")
        yield f"mcp      {visible(name)}: {_state_and_why(server, 'error')}, {tools}"
    outbox = found["outbox"]
    put_off = f", {outbox['put_off']} put off until quiet hours end" if outbox.get("put_off") else ""
    yield f"outbox   {outbox['pending']} pending, {outbox['unknown']} of unknown outcome{put_off}"
    for failed in outbox["failed"]:
        where = " ".join(visible(str(failed[part])) for part in ("channel", "to") if failed.get(part))
        yield f"failed   {where}: {visible(str(failed['error']))}"
    for row in found["broken"]:
        yield f"broken   {place_of(row)}: {visible(row['reason'])}"


def _state_and_why(row: Mapping[str, Any], key: str) -> str:
    return visible(str(row["state"])) + (f" ({visible(str(row[key]))})" if row.get(key) else "")


def usage(
    days: Annotated[int, typer.Option("--days", min=1, max=366, help="Over how many days.")] = 30,
    json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Show the budgets of today, and tokens and dollars today and over some days."""
    with connected(home) as api:
        found = api.get("/api/usage", days=days)
        if json:
            print_json(found)
            return
        for line in usage_lines(found):
            print(line)
        spans = ((f"Today, {found['day']} ({found['zone']})", "today"), (f"Last {days} days", "rows"))
        for title, key in spans:
            print(title)
            _print_usage(found[key], ("PERSON", "MODEL"), ("person", "model_label"))
            print()
        print("By day")
        _print_usage(found["by_day"], ("DAY",), ("day",))
        if found["by_trigger"]:
            print("\nBy trigger")
            _print_usage(found["by_trigger"], ("TRIGGER",), ("trigger",))


def usage_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """Today's budgets, and which prices are not known, one thing a line."""
    for budget in found["budgets"]:
        whose = f"{visible(budget['person'])}'s budget" if budget["person"] else "everybody's budget"
        raised = ", which was raised today" if budget["allowed"] > budget["given"] else ""
        besides = budget["unpriced_calls"]
        unknown = f"; not counted: {count(int(besides), 'call')}, price unknown" if besides else ""
        yield f"budget   {budget['text']} of {whose}{raised}{unknown}"
    for model in found["unpriced_models"]:
        name = visible(model)
        yield f'price    unknown of {name}; write it under [prices."{name}"] in pizzabot.toml'
    if found["budgets"] or found["unpriced_models"]:
        yield ""


def _print_usage(rows: Sequence[Mapping[str, Any]], headings: tuple[str, ...], keys: tuple[str, ...]) -> None:
    if not rows:
        print("  nothing")
        return
    lines = [
        (
            *(visible(row[key]) for key in keys),
            f"{row['model_calls']:,}",
            f"{row['input_tokens']:,}",
            f"{row['output_tokens']:,}",
            _usd(row),
        )
        for row in rows
    ]
    print_table((*headings, "CALLS", "TOKENS IN", "TOKENS OUT", "USD"), lines, wide=len(headings) - 1)


def _usd(row: Mapping[str, Any]) -> str:
    """Dollars; what is not known is said beside what is."""
    if row["cost_usd"] is not None:
        return f"{row['cost_usd']:.4f}"
    return f"{row['known_usd']:.4f} + unknown" if row["known_usd"] else "unknown"


def audit(
    verify: Annotated[
        bool, typer.Option("--verify", help="Walk the hash chain; exit 1 when it is broken.")
    ] = False,
    file: Annotated[
        Path | None,
        typer.Option("--file", metavar="FILE", help="With --verify: this exported file; needs no server."),
    ] = None,
    export: Annotated[
        Path | None, typer.Option("--export", metavar="FILE", help="Write it into a new file, as JSON lines.")
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="From this date or time on.")
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="TIME", help="Before this date or time.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="How many lines at most.")] = 50,
    json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Show what happened, the newest last, or verify that nothing of it was changed."""
    if (file is not None and not verify) or (verify and (export or since or until)):
        raise typer.BadParameter(
            "--file goes with --verify, which takes neither --export nor --since nor --until"
        )
    if file is not None:
        _tell_verified(_verified_file(file), json)
        return
    with connected(home) as api:
        if verify:
            _tell_verified(api.get("/api/audit/verify"), json)
            return
        span = {"since": moment(since, api, "--since"), "until": moment(until, api, "--until")}
        if export is not None:
            _export(api, export, span, json)
            return
        found = api.get("/api/audit", limit=limit, **span)
        if json:
            print_json(found)
            return
        rows = [
            (
                str(line["seq"]),
                at(parsed_time(line["at"]), api.zone),
                visible(line["actor"]),
                visible(line["via"]),
                visible(line["event"]),
                shortened(_about(line), _WIDE),
            )
            for line in reversed(found["lines"])
        ]
        print_table(("NO", "AT", "WHO", "VIA", "WHAT", "ABOUT"), rows, wide=5)


def moment(text: str | None, api: Api, option: str) -> str | None:
    """A time of the command line as the API takes it; without an offset it is one of the person's zone."""
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(
            f'{option}: write a date or a time, "2026-03-02" or "2026-03-02T09:00"'
        ) from None
    return (found if found.tzinfo is not None else found.replace(tzinfo=api.zone)).isoformat()


def _export(api: Api, path: Path, span: Mapping[str, Any], json: bool) -> None:
    """Into a file that is not there yet, and away again when it did not become whole."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    try:
        descriptor = os.open(path, flags, 0o600)
    except FileExistsError:
        raise Failed(f"{visible(str(path))} exists already; an export never overwrites anything") from None
    try:
        with open(descriptor, "wb") as file:
            api.save("/api/audit/export", file, **span)
        found = _verified_file(path)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    if not json:
        print(f"Wrote {visible(str(path))}.")
    _tell_verified(found, json)


def _verified_file(path: Path) -> dict[str, Any]:
    from pizzabot import audit_file

    with path.open(encoding="utf-8", errors="replace") as file:
        found = audit_file.verify(file)
    return {
        "ok": found.broken_at is None,
        "lines": found.lines,
        "head": found.head,
        "broken_at": found.broken_at,
    }


def _about(line: Mapping[str, Any]) -> str:
    data = line.get("data") or {}
    told = [f"{key}={data[key]}" for key in ("tool", "decision", "why", "reason") if data.get(key)]
    return " ".join([str(line["subject"]), *told])


def _tell_verified(found: Mapping[str, Any], json: bool) -> None:
    if json:
        print_json(found)
    if not found["ok"]:
        raise Failed(
            f"the audit was changed: line {found['broken_at']} does not follow from the one before it"
        )
    if not json:
        pruned = f", {found['pruned']:,} older ones were pruned" if found.get("pruned") else ""
        lines, head = count(int(found["lines"]), "line"), visible(str(found["head"]))
        print(f"The audit is whole: {lines}{pruned}, head {head}")


def skills_list(json: JsonOption = False, home: HomeOption = None) -> None:
    """List the skills."""
    with connected(home) as api:
        found = api.get("/api/skills")
        if json:
            print_json(found)
            return
        rows = [
            (
                visible(row["id"]),
                visible(row["state"]),
                visible(row["source"]),
                shortened(row.get("reason") or row["description"], _WIDE),
            )
            for row in found["skills"]
        ]
        print_table(("SKILL", "STATE", "FROM", "WHAT IT IS FOR, OR WHY IT IS NOT READY"), rows, wide=3)


def skills_show(skill: SkillId, json: JsonOption = False, home: HomeOption = None) -> None:
    """Show one skill."""
    with connected(home) as api:
        row = _named(api.get("/api/skills")["skills"], "id", skill, "skill")
        if json:
            print_json(row)
            return
        print(f"{visible(row['name'])} ({visible(row['id'])}) is {visible(row['state'])}")
        if row.get("reason"):
            print(visible(row["reason"]))
        print(f"file   {place_of(row)}")
        for tool in row["tools"]:
            print(f"tool   {visible(tool)}")
        print(f"\n{visible(row['description'], body=True)}")


def skills_enable(skill: SkillId, home: HomeOption = None) -> None:
    """Switch a skill on."""
    _switch(skill, enabled=True, home=home)


def skills_disable(skill: SkillId, home: HomeOption = None) -> None:
    """Switch a skill off."""
    _switch(skill, enabled=False, home=home)


def _switch(skill: str, *, enabled: bool, home: str | None) -> None:
    with connected(home) as api:
        row = _named(api.get("/api/skills")["skills"], "id", skill, "skill")
        path = f"/api/skills/{quote(row['id'], safe='')}"
        row = api.send("PATCH", path, body={"enabled": enabled})
        why = f": {visible(row['reason'])}" if row.get("reason") else ""
        print(f"{visible(row['id'])} is {visible(row['state'])}{why}")


def mcp_list(json: JsonOption = False, home: HomeOption = None) -> None:
    """List the MCP servers."""
    with connected(home) as api:
        found = api.get("/api/mcp")
        if json:
            print_json(found)
            return
        rows = [
            (
                visible(row["name"]),
                visible(row["state"]),
                visible(row["transport"]),
                str(len(row["tools"])),
                shortened(row.get("error") or _unused(row), _WIDE),
            )
            for row in found["servers"]
        ]
        print_table(("SERVER", "STATE", "BY", "TOOLS", "NOTE"), rows, wide=4)


def _unused(row: Mapping[str, Any]) -> str:
    return f"no skill names its tools; a skill needs: tools: mcp:{row['name']}:*" if row.get("unused") else ""


def mcp_tools(
    server: Annotated[str | None, typer.Argument(metavar="SERVER", help="Only of this server.")] = None,
    json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """List the tools, as skills name them."""
    with connected(home) as api:
        servers = api.get("/api/mcp")["servers"]
        chosen = [_named(servers, "name", server, "MCP server")] if server is not None else servers
        if json:
            print_json({"servers": chosen})
            return
        for row in chosen:
            for tool in row["tools"]:
                asks = "reads only" if tool["read_only"] else "may change something"
                print(visible(f"mcp:{row['name']}:{tool['name']}") + f"\t{asks}")


def mcp_reconnect(server: ServerName, home: HomeOption = None) -> None:
    """Connect to an MCP server anew and say how that went."""
    with connected(home) as api:
        row = _named(api.get("/api/mcp")["servers"], "name", server, "MCP server")
        api.post(f"/api/mcp/{row['name']}/reconnect")
        deadline = time.monotonic() + _RECONNECT_SECONDS
        while True:
            time.sleep(0.2)
            row = _named(api.get("/api/mcp")["servers"], "name", server, "MCP server")
            if row["state"] != "connecting" or time.monotonic() > deadline:
                break
        if row["state"] != "connected":
            why = visible(row.get("error") or "no answer yet")
            raise Failed(f"{visible(server)} is {visible(row['state'])}: {why}")
        print(f"{visible(server)} is connected with {count(len(row['tools']), 'tool')}.")


def _named(rows: Sequence[Mapping[str, Any]], key: str, name: str, what: str) -> Mapping[str, Any]:
    for row in rows:
        if row[key] == name:
            return row
    known = ", ".join(visible(str(row[key])) for row in rows) or "none"
    raise Failed(f"there is no {what} {visible(name[:60])}; there are: {known}")
