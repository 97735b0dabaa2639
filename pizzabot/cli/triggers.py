"""How are triggers looked after from the terminal? See, make, change, remove and run them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from pizzabot.cli.client import Api, Refusal, connected
from pizzabot.cli.failures import Failed, tell
from pizzabot.cli.output import JsonOption, print_json, print_table
from pizzabot.cli.place import HomeOption
from pizzabot.cli.text import at, parsed_time, short, shortened
from pizzabot.text import visible
from pizzabot.triggers.schedules import spoken_schedule

_WIDE = 60

Name = Annotated[str, typer.Argument(metavar="NAME", help="The trigger's name or id.")]
Cron = Annotated[str | None, typer.Option("--cron", metavar="CRON", help='When: "0 8 * * mon-fri".')]
Zone = Annotated[str | None, typer.Option("--zone", metavar="Z", help="An IANA time zone; else the owner's.")]
Owner = Annotated[str | None, typer.Option("--owner", metavar="PERSON", help="Whose inbox it ends in.")]
Channels = Annotated[
    list[str] | None,
    typer.Option("--channel", metavar="PLACE", help="slack, email, web, slack:C0ID or a name; repeatable."),
]
Skills = Annotated[
    list[str] | None, typer.Option("--skill", metavar="SKILL", help="Use only this one; repeatable.")
]
Model = Annotated[str | None, typer.Option("--model", metavar="MODEL", help="provider:model.")]
Budget = Annotated[float | None, typer.Option("--budget", metavar="USD", help="Dollars for one run.")]
Overlap = Annotated[
    str | None, typer.Option("--overlap", help="skip, queue or allow, while an earlier one is at work.")
]
Misfire = Annotated[
    str | None, typer.Option("--misfire", help="latest, skip or all, of what a downtime missed.")
]
MisfireMax = Annotated[
    int | None, typer.Option("--misfire-max", metavar="N", help="With --misfire all: at most so many.")
]
Grace = Annotated[str | None, typer.Option("--grace", metavar="TIME", help="This late is still on time.")]
Signing = Annotated[str | None, typer.Option("--signing", help="secret or hmac, of a webhook.")]


def listing(json: JsonOption = False, home: HomeOption = None) -> None:
    """List the triggers and when each is due."""
    with connected(home) as api:
        found = api.get("/api/triggers")
        if json:
            print_json(found)
            return
        rows = [
            (
                visible(row["name"]),
                _when(row),
                _next(api, row),
                at(parsed_time(row["last_run_at"]), api.zone) if row["last_run_at"] else "-",
                visible(row["owner"]),
            )
            for row in found["triggers"]
        ]
        if not rows:
            print(f"No triggers yet; {api.command('triggers add NAME --cron CRON --prompt TEXT')} makes one.")
            return
        print_table(("NAME", "WHEN", "NEXT", "LAST", "OWNER"), rows, wide=1)


def show(name: Name, limit: int = 10, json: JsonOption = False, home: HomeOption = None) -> None:
    """Show a trigger and what became of its newest firings."""
    with connected(home) as api:
        path = _path(_wanted(api, name))
        trigger = api.get(path)
        found = api.get(f"{path}/occurrences", limit=limit)["occurrences"]
        if json:
            print_json(trigger | {"occurrences": found})
            return
        time = ("signing",) if trigger["kind"] == "webhook" else ("cron", "timezone")
        for field in ("name", "id", "kind", "owner", *time, "channels", "skills", "model"):
            if trigger[field] is not None:
                value = trigger[field]
                _row(field, visible(", ".join(value) if isinstance(value, list) else str(value)))
        _row("next", _next(api, trigger))
        if trigger["kind"] == "webhook":
            _row("url", _url(api, trigger))
        if trigger["prompt"] is not None:  # a digest has none
            _row("prompt", shortened(trigger["prompt"], 1000))
        if found:
            print()
            print_table(
                ("DUE", "STATE", "WHY", "THREAD", "ERROR"),
                [_occurrence(api, row) for row in found],
                wide=4,
            )


def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What it is called.")],
    prompt: Annotated[str, typer.Option("--prompt", metavar="TEXT", help="What is to be done.")],
    cron: Cron = None,
    webhook: Annotated[bool, typer.Option("--webhook", help="Started by another program.")] = False,
    zone: Zone = None,
    owner: Owner = None,
    channel: Channels = None,
    skill: Skills = None,
    model: Model = None,
    budget: Budget = None,
    overlap: Overlap = None,
    misfire: Misfire = None,
    misfire_max: MisfireMax = None,
    grace: Grace = None,
    signing: Signing = None,
    json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Make a trigger; it fires from its next time on, never now."""
    if (cron is None) != webhook:
        raise typer.BadParameter("give either --cron or --webhook")
    written = _written(zone, owner, channel, skill, model, budget, overlap, misfire, misfire_max, grace)
    kind = "webhook" if webhook else "cron"
    written |= {"name": name, "kind": kind, "prompt": prompt, "cron": cron, "signing": signing}
    with connected(home) as api:
        made = api.post("/api/triggers", {k: v for k, v in written.items() if v is not None})
        _warn(made)
        if json:
            print_json(made)
            return
        _tell(api, made)


def edit(
    name: Name,
    new_name: Annotated[str | None, typer.Option("--name", metavar="NAME", help="Another name.")] = None,
    prompt: Annotated[
        str | None, typer.Option("--prompt", metavar="TEXT", help="What is to be done.")
    ] = None,
    cron: Cron = None,
    zone: Zone = None,
    owner: Owner = None,
    channel: Channels = None,
    skill: Skills = None,
    model: Model = None,
    budget: Budget = None,
    overlap: Overlap = None,
    misfire: Misfire = None,
    misfire_max: MisfireMax = None,
    grace: Grace = None,
    on: Annotated[
        bool | None, typer.Option("--on/--off", help="Switch it on (also after a pause) or off.")
    ] = None,
    new_secret: Annotated[bool, typer.Option("--new-secret", help="Make another secret.")] = False,
    json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Change what is given of a trigger."""
    written = _written(zone, owner, channel, skill, model, budget, overlap, misfire, misfire_max, grace)
    written |= {"name": new_name, "prompt": prompt, "cron": cron, "enabled": on}
    changes = {k: v for k, v in written.items() if v is not None} | ({"secret": None} if new_secret else {})
    if not changes:
        raise typer.BadParameter("nothing is to be changed; see --help")
    with connected(home) as api:
        known = _wanted(api, name)
        if new_secret and known["kind"] != "webhook":
            raise Failed(f"{visible(known['name'])} is no webhook and has no secret; nothing was changed")
        made = api.send("PATCH", _path(known), body=changes)
        _warn(made)
        # What a person switched off stays off: the file has no say in that.
        if made["source"] == "file" and changes.keys() != {"enabled"}:
            tell("It is written in pizzabot.toml: what is changed here is changed back at the next start.")
        if json:
            print_json(made)
            return
        _tell(api, made)


def remove(name: Name, home: HomeOption = None) -> None:
    """Remove a trigger; the threads it began stay."""
    with connected(home) as api:
        known = _wanted(api, name)
        api.send("DELETE", _path(known))
    print("Removed.")
    if known["source"] == "file":
        tell("It is written in pizzabot.toml: what is removed here is back at the next start.")


def run(name: Name, json: JsonOption = False, home: HomeOption = None) -> None:
    """Let a trigger fire once, now."""
    with connected(home) as api:
        try:
            fired = api.post(f"{_path(_wanted(api, name))}/run")
        except Refusal as refusal:
            if (thread := refusal.body.get("error", {}).get("thread_id")) is not None:
                refusal.more += (f"it is in {api.command('show', short(str(thread)))}",)
            raise
        if json:
            print_json(fired)
            return
        thread = fired["thread_id"]
        where = f"; {api.command('show', short(thread))}" if thread else ""
        why = f": {shortened(fired['error'], _WIDE)}" if fired.get("error") else ""
        print(f"{visible(fired['state']).capitalize()}{why}{where}")


def _written(
    zone: str | None,
    owner: str | None,
    channels: list[str] | None,
    skills: list[str] | None,
    model: str | None,
    budget: float | None,
    overlap: str | None,
    misfire: str | None,
    misfire_max: int | None,
    grace: str | None,
) -> dict[str, Any]:
    return {
        "timezone": zone,
        "owner": owner,
        "channels": channels or None,
        "skills": skills or None,
        "model": model,
        "budget_usd": budget,
        "overlap": overlap,
        "misfire": misfire,
        "misfire_max": misfire_max,
        "grace": grace,
    }


def _warn(made: Mapping[str, Any]) -> None:
    for warning in made.get("warnings", ()):
        tell(visible(warning))


def _tell(api: Api, made: Mapping[str, Any]) -> None:
    print(f"{visible(made['name'])}: next {_next(api, made)}")
    if made["kind"] == "webhook":
        _row("url", _url(api, made))
        _row("signing", visible(made["signing"]))
    if "secret" in made:
        _row("secret", made["secret"])
        tell("The secret is shown this once.")


def _row(field: str, value: str) -> None:
    print(f"{field:<9} {value}")


def _url(api: Api, trigger: Mapping[str, Any]) -> str:
    return f"{api.server.url}/hooks/{trigger['id']}"


def _when(row: Mapping[str, Any]) -> str:
    if row["kind"] == "webhook":
        return "webhook"
    return visible(spoken_schedule(row["cron"], row["timezone"]))


def _next(api: Api, row: Mapping[str, Any]) -> str:
    if row["paused"] is not None:
        return shortened(f"paused: {row['paused']}", _WIDE)
    if not row["enabled"]:
        return "off"
    due = parsed_time(row["next_run_at"])
    return at(due, api.zone) if due is not None else "when it is called"


def _occurrence(api: Api, row: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        at(parsed_time(row["scheduled_at"]), api.zone),
        visible(row["state"]),
        visible(row["reason"]),
        short(row["thread_id"]) if row["thread_id"] else "-",
        shortened(row.get("error") or "", _WIDE),
    )


def found(api: Api, name: str) -> Mapping[str, Any] | None:
    """The trigger, or None; it is looked up by its name here, for a name may hold what a path cannot."""
    for row in api.get("/api/triggers")["triggers"]:
        if name == row["id"] or name.casefold() == row["name"].casefold():
            known: Mapping[str, Any] = row
            return known
    return None


def _wanted(api: Api, name: str) -> Mapping[str, Any]:
    known = found(api, name)
    if known is None:
        raise Failed(f'There is no trigger "{shortened(name, _WIDE)}"; `triggers list` shows them.')
    return known


def _path(trigger: Mapping[str, Any]) -> str:
    return f"/api/triggers/{trigger['id']}"
