"""What is old enough to go, and how does its place on the disk become free?"""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer

from pizzabot.cli.client import connected
from pizzabot.cli.output import JsonOption, print_json, print_table
from pizzabot.cli.place import HomeOption, home_of
from pizzabot.text import visible

_WHAT = {
    "messages": "threads at rest, with everything in them",
    "checkpoints": "states of threads at rest",
    "attachments": "files of threads at rest",
    "outbox": "items that were sent or given up, and their copies",
    "activity": "steps of runs that are over",
    "audit": "lines, from the beginning",
}


def retention(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count what would go.")] = False,
    json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Remove what [retention] says is old enough; the server does the same once a day."""
    with connected(home) as api:
        if dry_run:
            found = api.get("/api/retention")
            if json:
                print_json(found)
            else:
                print_table(
                    ("WHAT", "AFTER", "COUNT", "ABOUT", ""), [_row(row) for row in found["kinds"]], wide=4
                )
            return
        removed: Counter[str] = Counter()
        while True:
            part = api.post("/api/retention")
            removed.update({str(kind): int(count) for kind, count in part["removed"].items()})
            if part["finished"]:
                break
        if json:
            print_json({"removed": removed})
            return
        for kind, count in removed.items():
            print(f"removed {count:,} of {visible(kind)}: {_WHAT.get(kind, '')}")
        if not removed:
            print("Nothing is old enough.")


def _row(row: Mapping[str, Any]) -> tuple[str, ...]:
    kind, age = str(row["kind"]), row["age_seconds"]
    after = "never" if age is None else f"{age / 86400:g} d"
    return visible(kind), after, f"{row['count']:,}", size(int(row["bytes"])), _WHAT.get(kind, "")


def size(count: int) -> str:
    """`812 B`, `4.1 KB`, `3.0 MB`, `1.2 GB`."""
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("KB", 1000)):
        if count >= factor:
            return f"{count / factor:.1f} {unit}"
    return f"{count} B"


def compact(home: HomeOption = None) -> None:
    """Write the databases of a home anew, without what was deleted; no server may run on it."""
    found = home_of(home)
    os.umask(0o077)
    found.prepare()
    with found.lock():
        for path in (found.app_database, found.checkpoints, found.workflows):
            if path.is_file():
                before, after = _compacted(path)
                print(f"{path.name}: {size(before)}, now {size(after)}")


def _compacted(path: Path) -> tuple[int, int]:
    """Its size before and after. From now on it gives back by itself what is deleted."""
    with closing(sqlite3.connect(path, timeout=30)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        before = path.stat().st_size
        database.execute("PRAGMA auto_vacuum = INCREMENTAL")
        database.execute("VACUUM")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return before, path.stat().st_size
