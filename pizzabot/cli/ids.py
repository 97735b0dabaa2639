"""Which thread or action does the end of an id mean?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pizzabot.cli.client import Api
from pizzabot.cli.failures import Failed
from pizzabot.cli.text import shortened
from pizzabot.text import visible

SHORTEST = 4
_FULL = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_ENDING = re.compile(r"[0-9a-f-]{1,36}")
_PAGE = 100
_MOST_PAGES = 100


def thread_id(api: Api, given: str) -> str:
    """The thread that an id or its ending names."""
    return str(_found(given, "thread", _threads(api), "title")["id"]) if not is_full(given) else _clean(given)


def action(api: Api, given: str) -> Mapping[str, Any]:
    """The action that an id or its ending names, as it is now; those that wait are looked at first."""
    if is_full(given):
        found: Mapping[str, Any] = api.get(f"/api/actions/{_clean(given)}")
        return found
    waiting = [row for row in _actions(api, "pending") if str(row["id"]).endswith(_clean(given))]
    return _found(given, "action", waiting or _actions(api, None), "title")


def is_full(given: str) -> bool:
    """Whether this is a whole id, which needs no looking up."""
    return _FULL.fullmatch(_clean(given)) is not None


def _clean(given: str) -> str:
    return given.strip().removeprefix("…").lower()


def _found(given: str, what: str, rows: Iterable[Mapping[str, Any]], label: str) -> Mapping[str, Any]:
    """The one row whose id ends so.

    Raises:
        Failed: it is too short, no id ends so, or several do; these are named.
    """
    ending = _clean(given)
    if not _ENDING.fullmatch(ending):
        raise Failed(f"{visible(given[:60])} is not the id of a thread or action; lists show the ends of ids")
    if len(ending) < SHORTEST:
        raise Failed(
            f"{ending} is too short; give at least the last {SHORTEST} characters of the {what}'s id"
        )
    matches = list({str(row["id"]): row for row in rows if str(row["id"]).endswith(ending)}.values())
    if not matches:
        raise Failed(f"there is no {what} whose id ends in {ending}")
    if len(matches) > 1:
        named = (f"  {visible(str(row['id']))}  {shortened(str(row.get(label, '')), 50)}" for row in matches)
        raise Failed(f"{ending} is the end of {len(matches)} {what} ids; give more of it", *named)
    return matches[0]


def _threads(api: Api) -> Iterator[Mapping[str, Any]]:
    for view in ("all", "archived"):
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            page = api.get("/api/threads", view=view, limit=_PAGE, cursor=cursor)
            yield from page["threads"]
            cursor = page.get("next_cursor")
            if not cursor:
                break


def _actions(api: Api, state: str | None) -> list[Mapping[str, Any]]:
    rows: list[Mapping[str, Any]] = api.get("/api/actions", state=state, limit=_PAGE)["actions"]
    return rows
