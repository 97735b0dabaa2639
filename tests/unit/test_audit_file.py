"""Can somebody without our server tell whether an exported audit is whole, and is every change found?"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from pizzabot import audit, audit_file
from pizzabot.agent.spending import DayBudget, Spending
from pizzabot.audit import GENESIS
from pizzabot.audit_file import NoAuditFile
from pizzabot.cli import main
from pizzabot.database.connection import Database
from pizzabot.database.schema import audit as table
from pizzabot.people import People
from pizzabot.reports import Reports
from tests.fakes.clock import FakeClock
from tests.fakes.rows import ADA

DOCS = Path(__file__).parents[2] / "docs" / "observability.md"
Rows = list[dict[str, Any]]


async def _write(database: Database, clock: FakeClock, number: int = 5) -> None:
    for n in range(number):
        now = clock.advance(timedelta(hours=1))
        await database.write(
            lambda c, n=n, now=now: audit.append(  # type: ignore[misc]
                c,
                now,
                actor="Ada ü",
                via="web",
                event="message.accepted",
                subject=f"t{n}",
                data={"🍕": '"\n'},
            )
        )


async def _export(database: Database, clock: FakeClock, **span: Any) -> str:
    reports = Reports(
        database=database,
        clock=clock,
        settings=None,  # type: ignore[arg-type]
        skills=None,  # type: ignore[arg-type]
        people=People([ADA]),
        channels={},
        context_of=lambda _: None,
        spending=Spending(DayBudget("UTC")),
    )
    return "".join([line async for line in await reports.audit_export(ADA, **span)])


def _rows(text: str) -> Rows:
    return [json.loads(line) for line in text.splitlines()]


def _text(rows: Rows) -> list[str]:
    return [json.dumps(row) for row in rows]


async def test_an_export_is_whole_and_ends_with_the_head(database: Database, clock: FakeClock) -> None:
    await _write(database, clock)
    text = await _export(database, clock)
    found = audit_file.verify(text.splitlines())
    whole = await database.read(audit.verify)
    assert (found.lines, found.broken_at, found.head) == (5, None, whole.head)
    assert _rows(text)[0]["begins_after"] == {"seq": 0, "hash": GENESIS}


async def test_an_empty_audit_is_a_whole_file(database: Database, clock: FakeClock) -> None:
    found = audit_file.verify((await _export(database, clock)).splitlines())
    assert (found.lines, found.broken_at, found.head) == (0, None, GENESIS)


async def test_a_part_begins_after_the_line_before_it(database: Database, clock: FakeClock) -> None:
    start = clock.now()
    await _write(database, clock)
    span = {"since": start + timedelta(hours=2), "until": start + timedelta(hours=4)}
    rows = _rows(await _export(database, clock, **span))
    assert [row["subject"] for row in rows[1:-1]] == ["t1", "t2"]
    assert rows[0]["begins_after"]["hash"] == rows[1]["previous_hash"] != GENESIS
    assert audit_file.verify(_text(rows)).broken_at is None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("at", "2026-03-02T10:00:00.000001+00:00"),
        ("microseconds", 1),
        ("actor", "Bob"),
        ("via", "slack"),
        ("event", "x"),
        ("subject", "t9"),
        ("data", "{}"),
        ("previous_hash", GENESIS),
        ("hash", "f" * 64),
        ("seq", 0),
    ],
)
async def test_a_changed_field_is_found(
    sqlite_database: Database, clock: FakeClock, field: str, value: object
) -> None:
    await _write(sqlite_database, clock)
    rows = _rows(await _export(sqlite_database, clock))
    rows[3][field] = value
    assert audit_file.verify(_text(rows)).broken_at == rows[3]["seq"]


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows.pop(),
        lambda rows: rows[-1].update(lines=4),
        lambda rows: rows[-1]["head"].update(hash="0" * 64),
        lambda rows: rows.append(rows[-1]),
        lambda rows: rows[0].update(pizzabot_audit=2),
        lambda rows: rows.pop(0),
        lambda rows: rows[2].pop("actor"),
        lambda rows: rows[2].update(seq="2"),
        lambda rows: rows.pop(-2),
    ],
)
async def test_a_file_that_is_not_whole_is_refused(
    sqlite_database: Database, clock: FakeClock, change: Callable[[Rows], object]
) -> None:
    await _write(sqlite_database, clock)
    rows = _rows(await _export(sqlite_database, clock))
    change(rows)
    with pytest.raises(NoAuditFile):
        audit_file.verify(_text(rows))


@pytest.mark.parametrize("text", ["", "{", "[]\n", "null", "{}\n", "[" * 100_000, '{"pizzabot_audit": 1}\n'])
def test_something_else_is_no_export(text: str) -> None:
    with pytest.raises(NoAuditFile):
        audit_file.verify(text.splitlines())


async def test_a_removed_line_is_found(sqlite_database: Database, clock: FakeClock) -> None:
    await _write(sqlite_database, clock)
    rows = _rows(await _export(sqlite_database, clock))
    behind = rows[3]["seq"]
    del rows[2]
    assert audit_file.verify(_text(rows)).broken_at == behind


async def test_an_export_of_a_broken_chain_says_that_it_is_not_whole(
    sqlite_database: Database, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pizzabot.reports._LINES_AT_ONCE", 2)
    await _write(sqlite_database, clock)
    third = sa.select(table.c.seq).order_by(table.c.seq).offset(2).limit(1).scalar_subquery()
    await sqlite_database.write(lambda c: c.execute(sa.delete(table).where(table.c.seq == third)))
    with pytest.raises(NoAuditFile, match="end of the file is missing"):
        audit_file.verify((await _export(sqlite_database, clock)).splitlines())


async def test_the_program_of_the_documentation_verifies_an_export(
    sqlite_database: Database, clock: FakeClock, tmp_path: Path
) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)
    await _write(sqlite_database, clock)
    text = await _export(sqlite_database, clock)
    good, changed = tmp_path / "good.jsonl", tmp_path / "changed.jsonl"
    good.write_text(text)
    changed.write_text(text.replace('"t3"', '"t4"', 1))
    ran = [
        await asyncio.to_thread(
            subprocess.run, [sys.executable, "-c", program, file], capture_output=True, text=True, check=False
        )
        for file in (good, changed)
    ]
    assert [done.returncode for done in ran] == [0, 1]
    assert ran[0].stdout.startswith("whole: ")
    assert "was changed" in ran[1].stderr


async def test_the_command_verifies_a_file_without_a_server(
    sqlite_database: Database, clock: FakeClock, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await _write(sqlite_database, clock)
    file = tmp_path / "audit.jsonl"
    text = await _export(sqlite_database, clock)
    file.write_text(text)
    assert main(["audit", "--verify", "--file", str(file)]) == 0
    assert capsys.readouterr().out.startswith("The audit is whole: 5 lines, head ")
    file.write_text(text.replace('"t3"', '"t4"', 1))
    assert main(["audit", "--verify", "--file", str(file)]) == 1
    assert "was changed: line" in capsys.readouterr().err
    file.write_text(text[:-3])
    assert main(["audit", "--verify", "--file", str(file)]) == 1
    assert "pizzabot: " in capsys.readouterr().err
    assert main(["audit", "--file", str(file)]) == 2
