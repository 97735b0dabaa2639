"""When does work start by itself? Nothing here needs a running server."""

from __future__ import annotations

import os
from typing import Annotated
from zoneinfo import ZoneInfo

import typer

from pizzabot.clock import SystemClock, system_zone
from pizzabot.triggers.schedules import Schedule


def upcoming(
    expression: Annotated[
        str, typer.Argument(metavar="CRON", help='A cron expression in quotes: "0 8 * * mon-fri".')
    ],
    zone: Annotated[
        str | None, typer.Option("--zone", metavar="Z", help="An IANA time zone; else this machine's.")
    ] = None,
    count: Annotated[int, typer.Option("--count", min=1, max=1000, help="How many.")] = 5,
) -> None:
    """Print the next firings as ISO 8601 with the offset, one a line."""
    schedule = Schedule.parse(expression, zone if zone is not None else system_zone(os.environ))
    local = ZoneInfo(schedule.zone)
    for firing in schedule.upcoming(SystemClock().now(), count):
        print(firing.at.astimezone(local).isoformat())
