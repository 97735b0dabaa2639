"""What did a thread's runs do, step by step, and where did the time go?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from starlette.responses import Response

from pizzabot.errors import NotFound

from ..ids import is_id
from .html import page
from .visit import Visit

RUNS = 10
BAR = 1000  # how many parts a bar is wide
_NARROWEST = 6


class Bar(NamedTuple):
    """Where a step lies in its run, in parts of `BAR`."""

    start: int
    width: int


async def show(visit: Visit) -> Response:
    """`GET /threads/{thread_id}/trace?before=`."""
    before = visit.request.query_params.get("before")
    found = await visit.doors.reports.trace(
        visit.person,
        visit.id("thread_id", "thread"),
        limit=RUNS,
        before=before if before is not None and is_id(before) else None,
    )
    if found is None:
        raise NotFound("There is no such thread.")
    now = visit.doors.clock.now()
    older = f"?before={found['runs'][0]['id']}" if found["has_older"] else None
    shown = [{"run": run, "steps": list(drawn(run, now))} for run in found["runs"]]
    return await page(visit, "trace", thread=found, shown=shown, older=older, bar=BAR)


def drawn(run: Mapping[str, Any], now: datetime) -> Iterator[dict[str, Any]]:
    """Each step with when it began after the run was asked for, in milliseconds, and its bar. Pure."""
    begin = datetime.fromisoformat(run["created_at"])
    ends = [until for step in run["steps"] if (until := _time(step["until"])) is not None]
    whole = max([_time(run["ended_at"]) or now, *ends]) - begin
    for step in run["steps"]:
        at = datetime.fromisoformat(step["at"])
        until = _time(step["until"]) or begin + whole
        yield {
            "step": step,
            "after": max(0, round((at - begin) / timedelta(milliseconds=1))),
            "bar": bar(at - begin, until - begin, whole),
        }


def bar(start: timedelta, end: timedelta, whole: timedelta) -> Bar:
    """Never nothing, and never outside."""
    if whole <= timedelta():
        return Bar(0, BAR)
    first = min(max(0, round(BAR * (start / whole))), BAR - _NARROWEST)
    width = round(BAR * ((end - start) / whole))
    return Bar(first, min(max(_NARROWEST, width), BAR - first))


def _time(iso: str | None) -> datetime | None:
    return datetime.fromisoformat(iso) if iso is not None else None
