"""When does work start by itself? For an expression this needs no running server."""

from __future__ import annotations

import os
from typing import Annotated
from zoneinfo import ZoneInfo

import typer

from pizzabot.cli.failures import Failed
from pizzabot.cli.place import HomeOption
from pizzabot.cli.text import shortened
from pizzabot.clock import SystemClock, system_zone
from pizzabot.text import visible
from pizzabot.triggers.schedules import Schedule


def upcoming(
    expression: Annotated[
        str, typer.Argument(metavar="NAME|CRON", help='A trigger, or an expression: "0 8 * * mon-fri".')
    ],
    zone: Annotated[
        str | None, typer.Option("--zone", metavar="Z", help="An IANA time zone; else this machine's.")
    ] = None,
    count: Annotated[int, typer.Option("--count", min=1, max=1000, help="How many.")] = 5,
    home: HomeOption = None,
) -> None:
    """Print the next firings as ISO 8601 with the offset, one a line."""
    if not _is_expression(expression):
        expression, own = _of_trigger(expression, home)
        zone = zone or own
    schedule = Schedule.parse(expression, zone if zone is not None else system_zone(os.environ))
    local = ZoneInfo(schedule.zone)
    for firing in schedule.upcoming(SystemClock().now(), count):
        print(firing.at.astimezone(local).isoformat())


def _is_expression(text: str) -> bool:
    """Whether it is meant as one; a name may hold spaces, too."""
    return text.strip().startswith("@") or len(text.split()) >= 4


def _of_trigger(name: str, home: str | None) -> tuple[str, str]:
    """The schedule and the zone of a trigger, which the server knows."""
    # Only here: an expression needs nobody.
    from pizzabot.cli.client import connected
    from pizzabot.cli.triggers import found

    with connected(home) as api:
        trigger = found(api, name)
    if trigger is None:
        said = f'"{shortened(name, 60)}" is neither a trigger nor a schedule'
        raise Failed(f'{said}; write a trigger\'s name, or five fields such as "0 8 * * mon-fri"')
    if trigger["cron"] is None:
        raise typer.BadParameter(f"{visible(name)} has no schedule: another program starts it")
    return trigger["cron"], trigger["timezone"]
