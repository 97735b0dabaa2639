"""Is a changed, removed or inserted line found, and does a line hash the same for ever?"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from pizzabot import audit
from pizzabot.audit import GENESIS, canonical_json, line_hash
from pizzabot.database.connection import Database
from pizzabot.database.schema import audit as lines
from pizzabot.database.schema import audit_anchors
from tests.fakes.clock import FakeClock

AT = datetime(2026, 3, 2, 9, 0, 0, 123456, tzinfo=UTC)


def _append(n: int, clock: FakeClock) -> Callable[[sa.Connection], None]:
    now, data = clock.advance(seconds=1), {"n": n, "ü": "🍕"}
    return lambda c: audit.append(
        c, now, actor="Ada", via="web", event="message.accepted", subject=f"t{n}", data=data
    )


async def _write(database: Database, clock: FakeClock, number: int = 6) -> list[int]:
    for n in range(number):
        await database.write(_append(n, clock))
    numbers = sa.select(lines.c.seq).order_by(lines.c.seq)
    return list(await database.read(lambda c: c.execute(numbers).scalars().all()))


async def test_an_untouched_log_is_whole(database: Database, clock: FakeClock) -> None:
    empty = await database.read(audit.verify)
    assert (empty.lines, empty.head, empty.broken_at) == (0, GENESIS, None)
    await _write(database, clock)
    whole = await database.read(audit.verify)
    assert (whole.lines, whole.broken_at) == (6, None)
    assert len(whole.head) == 64


@pytest.mark.parametrize(
    "change",
    [
        {"at": AT},
        {"actor": "Bob"},
        {"via": "slack"},
        {"event": "message.accepted "},
        {"subject": "t99"},
        {"data": '{"n":3, "ü":"🍕"}'},
        {"previous_hash": GENESIS},
        {"hash": "f" * 64},
    ],
    ids=lambda change: next(iter(change)),
)
async def test_a_changed_field_breaks_the_chain_there(
    database: Database, clock: FakeClock, change: dict[str, object]
) -> None:
    seqs = await _write(database, clock)
    await database.write(lambda c: c.execute(sa.update(lines).where(lines.c.seq == seqs[3]).values(**change)))
    broken = await database.read(audit.verify)
    assert (broken.lines, broken.broken_at) == (3, seqs[3])


@pytest.mark.parametrize("removed", [0, 3])
async def test_a_removed_line_breaks_the_chain_behind_it(
    database: Database, clock: FakeClock, removed: int
) -> None:
    seqs = await _write(database, clock)
    await database.write(lambda c: c.execute(sa.delete(lines).where(lines.c.seq == seqs[removed])))
    assert (await database.read(audit.verify)).broken_at == seqs[removed + 1]


async def test_lines_cut_off_the_end_change_the_head(database: Database, clock: FakeClock) -> None:
    """A chain alone cannot tell: whoever noted the head can."""
    seqs = await _write(database, clock)
    before = await database.read(audit.verify)
    await database.write(lambda c: c.execute(sa.delete(lines).where(lines.c.seq == seqs[-1])))
    after = await database.read(audit.verify)
    assert after.broken_at is None
    assert (after.lines, after.head) != (before.lines, before.head)


def _forged(previous: str, seq: int) -> dict[str, object]:
    forged = line_hash(previous, AT, "Ada", "web", "e", "s", "{}")
    return {
        "seq": seq,
        "at": AT,
        "actor": "Ada",
        "via": "web",
        "event": "e",
        "subject": "s",
        "data": "{}",
        "previous_hash": previous,
        "hash": forged,
    }


async def test_an_inserted_line_breaks_the_chain_even_with_a_right_hash(
    database: Database, clock: FakeClock
) -> None:
    seqs = await _write(database, clock)

    def insert(connection: sa.Connection) -> None:
        connection.execute(sa.delete(lines).where(lines.c.seq == seqs[3]))
        previous = connection.execute(sa.select(lines.c.hash).where(lines.c.seq == seqs[2])).scalar_one()
        connection.execute(sa.insert(lines).values(**_forged(previous, seqs[3])))

    await database.write(insert)
    assert (await database.read(audit.verify)).broken_at == seqs[4]


async def test_two_lines_that_changed_places_are_found(database: Database, clock: FakeClock) -> None:
    seqs = await _write(database, clock)

    def swap(connection: sa.Connection) -> None:
        for old, new in ((seqs[2], -1), (seqs[3], seqs[2]), (-1, seqs[3])):
            connection.execute(sa.update(lines).where(lines.c.seq == old).values(seq=new))

    await database.write(swap)
    assert (await database.read(audit.verify)).broken_at == seqs[2]


async def test_lines_that_are_written_together_make_one_chain(database: Database, clock: FakeClock) -> None:
    await asyncio.gather(*(database.write(_append(n, clock)) for n in range(40)))
    whole = await database.read(audit.verify)
    assert (whole.lines, whole.broken_at) == (40, None)


async def test_a_line_that_is_undone_leaves_no_gap(database: Database, clock: FakeClock) -> None:
    def fails(connection: sa.Connection) -> None:
        audit.append(connection, clock.now(), actor="Ada", via="web", event="e", subject="s")
        raise LookupError

    await _write(database, clock, 2)
    with pytest.raises(LookupError):
        await database.write(fails)
    await _write(database, clock, 2)
    whole = await database.read(audit.verify)
    assert (whole.lines, whole.broken_at) == (4, None)


async def test_pages_go_from_the_newest_line_to_the_first(database: Database, clock: FakeClock) -> None:
    await _write(database, clock, 5)
    first = await database.read(lambda c: audit.page(c, limit=3))
    rest = await database.read(lambda c: audit.page(c, limit=3, before=first[-1].seq))
    assert [line.subject for line in [*first, *rest]] == ["t4", "t3", "t2", "t1", "t0"]
    assert first[0].at - first[1].at == timedelta(seconds=1)
    assert first[0].data == {"n": 4, "ü": "🍕"}


def test_a_line_hashes_the_same_for_ever() -> None:
    data = canonical_json({"ü": [1, 1.5, None, True], "a": "🍕"})
    assert data == '{"a":"🍕","ü":[1,1.5,null,true]}'
    assert line_hash(GENESIS, AT, "Ada", "web", "action.approved", "a1", data) == (
        "22a5e9c45e261e07bce1f0a864f9279506f876b7cf86d0a6bf9dd49638db9308"
    )


def test_fields_cannot_flow_into_each_other() -> None:
    assert line_hash(GENESIS, AT, "ab", "c", "e", "s", "{}") != line_hash(
        GENESIS, AT, "a", "bc", "e", "s", "{}"
    )


def test_what_is_no_json_is_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json({"x": float("nan")})


async def _prune(database: Database, clock: FakeClock, kept: timedelta, limit: int = 100) -> int:
    now = clock.now()
    return await database.write(lambda c: audit.prune(c, now - kept, now, limit=limit))


async def test_a_pruned_log_is_whole_from_its_anchor_on(database: Database, clock: FakeClock) -> None:
    await _write(database, clock, 6)
    before = await database.read(audit.verify)
    assert await _prune(database, clock, timedelta(seconds=2.5)) == 3
    whole = await database.read(audit.verify)
    assert (whole.lines, whole.broken_at, whole.pruned) == (4, None, 3)  # three, and what says so
    await _write(database, clock, 2)
    assert await _prune(database, clock, timedelta(seconds=0.5), limit=2) == 2
    whole = await database.read(audit.verify)
    assert (whole.broken_at, whole.pruned) == (None, 5)
    assert whole.head != before.head


async def test_a_log_that_is_pruned_to_the_end_keeps_the_line_that_says_so(
    database: Database, clock: FakeClock
) -> None:
    await _write(database, clock, 3)
    clock.advance(seconds=100)
    assert await _prune(database, clock, timedelta(seconds=1)) == 3
    assert await _prune(database, clock, timedelta(seconds=1)) == 0
    whole = await database.read(audit.verify)
    assert (whole.lines, whole.broken_at, whole.pruned) == (1, None, 3)
    (line,) = await database.read(lambda c: audit.page(c, limit=9))
    assert (line.event, line.via, line.data["lines"]) == ("audit.pruned", "retention", 3)


async def test_what_would_be_pruned_is_what_is_pruned(database: Database, clock: FakeClock) -> None:
    await _write(database, clock, 6)
    before = clock.now() - timedelta(seconds=2.5)
    lines, size = await database.read(lambda c: audit.prunable(c, before))
    assert lines == 3
    assert size > 3 * 150
    assert await _prune(database, clock, timedelta(seconds=2.5)) == lines
    assert await database.read(lambda c: audit.prunable(c, before)) == (0, 0)


async def test_lines_removed_from_the_beginning_without_a_trace_are_found(
    database: Database, clock: FakeClock
) -> None:
    seqs = await _write(database, clock, 6)
    await _prune(database, clock, timedelta(seconds=3.5))
    await database.write(lambda c: c.execute(sa.delete(lines).where(lines.c.seq == seqs[2])))
    assert (await database.read(audit.verify)).broken_at == seqs[3]


async def test_an_anchor_that_no_line_attests_is_found(database: Database, clock: FakeClock) -> None:
    seqs = await _write(database, clock, 6)

    def forge(connection: sa.Connection) -> None:
        last = connection.execute(sa.select(lines.c.hash).where(lines.c.seq == seqs[2])).scalar_one()
        connection.execute(sa.delete(lines).where(lines.c.seq <= seqs[2]))
        connection.execute(sa.insert(audit_anchors).values(seq=seqs[2], hash=last, lines=3, at=AT))

    await database.write(forge)
    assert (await database.read(audit.verify)).broken_at == seqs[3]


@pytest.mark.parametrize("change", [{"seq": 1}, {"hash": GENESIS}, {"lines": 2}], ids=str)
async def test_a_changed_anchor_is_found(
    database: Database, clock: FakeClock, change: dict[str, object]
) -> None:
    await _write(database, clock, 6)
    await _prune(database, clock, timedelta(seconds=2.5))
    await database.write(lambda c: c.execute(sa.update(audit_anchors).values(**change)))
    assert (await database.read(audit.verify)).broken_at is not None


async def test_pages_can_be_of_a_time(database: Database, clock: FakeClock) -> None:
    start = clock.now()
    await _write(database, clock, 5)
    span: dict[str, Any] = {"since": start + timedelta(seconds=2), "until": start + timedelta(seconds=4)}
    found = await database.read(lambda c: audit.page(c, limit=9, **span))
    assert [line.subject for line in found] == ["t2", "t1"]
