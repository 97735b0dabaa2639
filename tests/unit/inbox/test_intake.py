"""Is what arrives taken once, in order, as one run per thread, and is what cannot be stored refused?"""

from __future__ import annotations

import asyncio
import stat
from functools import partial
from pathlib import Path

import pytest
import sqlalchemy as sa

from pizzabot.approvals import store
from pizzabot.database.connection import Database, SqliteDatabase
from pizzabot.database.schema import audit, inbound, messages, runs, threads
from pizzabot.errors import Invalid, NotFound
from pizzabot.inbox import intake
from pizzabot.inbox import runs as run_rows
from pizzabot.inbox import threads as thread_rows
from pizzabot.messages import Accepted, Action, ActionKind, ActionState, Attachment, InboundMessage, RunState
from tests.fakes.clock import FakeClock
from tests.fakes.rows import answers, arrives, waits


async def _count(database: Database, table: sa.Table) -> int:
    query = sa.select(sa.func.count()).select_from(table)
    return int(await database.read(lambda c: c.execute(query).scalar_one()))


async def test_a_new_message_is_a_thread_a_message_and_a_queued_run(
    database: Database, clock: FakeClock
) -> None:
    accepted = await database.write(lambda c: arrives(c, clock, "Book a\n table  for four", address="42.1"))
    thread = await database.read(lambda c: thread_rows.get(c, accepted.thread_id))
    assert thread is not None
    assert (thread.title, thread.title_source, thread.owner) == ("Book a table for four", "first", "Ada")
    assert (thread.channel, thread.address, thread.state) == ("web", "42.1", "queued")
    assert not thread.unread
    (message,) = await database.read(lambda c: thread_rows.messages_of(c, accepted.thread_id))
    assert (message.text, message.run_id) == ("Book a\n table  for four", accepted.run_id)
    assert await _count(database, audit) == 1


async def test_the_same_key_is_taken_once(database: Database, clock: FakeClock) -> None:
    first = await database.write(lambda c: arrives(c, clock, key="T1/C1/170.1"))
    again = await database.write(lambda c: arrives(c, clock, "other words", key="T1/C1/170.1"))
    assert again.duplicate
    assert (again.thread_id, again.run_id, again.message_id) == (
        first.thread_id,
        first.run_id,
        first.message_id,
    )
    assert await _count(database, runs) == 1


async def test_the_same_key_is_taken_once_when_copies_arrive_together(
    database: Database, clock: FakeClock
) -> None:
    for key in ("a", "b", "c"):
        taken = await asyncio.gather(
            *(database.write(partial(arrives, clock=clock, key=key)) for _ in range(8))
        )
        assert sum(not accepted.duplicate for accepted in taken) == 1
        assert len({accepted.thread_id for accepted in taken}) == 1
    assert await _count(database, runs) == await _count(database, inbound) == 3


async def test_the_same_key_is_taken_once_across_a_restart(sqlite_path: Path, clock: FakeClock) -> None:
    taken: list[Accepted] = []
    for _ in range(2):
        database = SqliteDatabase(sqlite_path)
        taken.append(await database.write(lambda c: arrives(c, clock, key="once")))
        database.close()
    assert [accepted.duplicate for accepted in taken] == [False, True]
    assert taken[0].thread_id == taken[1].thread_id


async def test_a_known_address_continues_its_thread(database: Database, clock: FakeClock) -> None:
    first = await database.write(lambda c: arrives(c, clock, address="C1/170.1"))
    second = await database.write(lambda c: arrives(c, clock, address="C1/170.1"))
    elsewhere = await database.write(lambda c: arrives(c, clock, address="C1/170.1", channel="email"))
    assert first.thread_id == second.thread_id != elsewhere.thread_id


async def test_first_messages_to_one_new_address_make_one_thread(
    database: Database, clock: FakeClock
) -> None:
    taken = await asyncio.gather(
        *(database.write(lambda c: arrives(c, clock, address="C9/1.1")) for _ in range(8))
    )
    assert len({accepted.thread_id for accepted in taken}) == 1
    assert sum(not accepted.held for accepted in taken) == 1


async def test_two_that_write_at_once_start_one_run(database: Database, clock: FakeClock) -> None:
    first = await database.write(lambda c: arrives(c, clock))
    await database.write(lambda c: answers(c, clock))
    taken = await asyncio.gather(
        *(database.write(lambda c: arrives(c, clock, thread_id=first.thread_id)) for _ in range(8))
    )
    assert sum(not accepted.held for accepted in taken) == 1
    assert len(await database.read(lambda c: run_rows.of_thread(c, first.thread_id))) == 2


async def test_held_messages_go_to_the_next_run_together_and_in_order(
    database: Database, clock: FakeClock
) -> None:
    first = await database.write(lambda c: arrives(c, clock, "one"))
    for text in ("two", "three"):
        accepted = await database.write(partial(arrives, clock=clock, text=text, thread_id=first.thread_id))
        assert accepted.held
        assert accepted.run_id is None
    assert await database.read(lambda c: run_rows.held_from(c, first.thread_id) is not None)
    await database.write(lambda c: answers(c, clock))
    fourth = await database.write(lambda c: arrives(c, clock, "four", thread_id=first.thread_id))
    run_id = fourth.run_id
    assert run_id is not None
    taken = await database.read(lambda c: thread_rows.messages_of_run(c, run_id, first.thread_id))
    assert [message.text for message in taken] == ["two", "three", "four"]
    assert not await database.read(lambda c: run_rows.held_from(c, first.thread_id) is not None)


async def test_a_message_that_is_held_leaves_the_waiting_run_alone(
    database: Database, clock: FakeClock
) -> None:
    def work(connection: sa.Connection) -> tuple[Accepted, run_rows.Run | None]:
        accepted = arrives(connection, clock)
        (run,) = run_rows.claim(connection, 1, clock.now())
        run_rows.pause(connection, run, clock.now(), used={}, decided=False)
        return arrives(connection, clock, "yes!", thread_id=accepted.thread_id), run_rows.get(
            connection, run.id
        )

    accepted, run = await database.write(work)
    assert accepted.held
    assert run is not None
    assert run.state is RunState.WAITING


async def _waiting(database: Database, clock: FakeClock) -> Action:
    """An action that waits for a decision."""
    (action,) = await database.write(lambda c: waits(c, clock))
    return action


async def _aside(
    database: Database, clock: FakeClock, action: Action, text: str = "Rather less?"
) -> Accepted:
    return await database.write(
        lambda c: arrives(c, clock, text, thread_id=action.thread_id, aside_to=action.id)
    )


async def test_an_aside_is_held_begins_no_run_and_goes_along_with_the_next_one(
    database: Database, clock: FakeClock
) -> None:
    action = await _waiting(database, clock)
    assert (await _aside(database, clock, action)).held
    assert await database.read(lambda c: run_rows.held_from(c, action.thread_id)) is None
    assert await database.read(lambda c: run_rows.any_held(c, action.thread_id))
    await database.write(lambda c: run_rows.requeue(c, action.run_id, clock.now()))
    await database.write(lambda c: answers(c, clock))
    after = await database.write(lambda c: arrives(c, clock, "And now?", thread_id=action.thread_id))
    assert after.run_id is not None
    run_id = after.run_id
    asked = await database.read(lambda c: thread_rows.messages_of_run(c, run_id, action.thread_id))
    assert [m.text for m in asked] == ["Rather less?", "And now?"]


async def test_a_message_beside_an_aside_begins_its_run(database: Database, clock: FakeClock) -> None:
    action = await _waiting(database, clock)
    await _aside(database, clock, action)
    await database.write(
        lambda c: arrives(c, clock, "Another task.", thread_id=action.thread_id, person="Bob")
    )
    assert await database.read(lambda c: run_rows.held_from(c, action.thread_id)) == "Bob"


async def test_an_aside_that_comes_after_the_decision_is_a_message(
    database: Database, clock: FakeClock
) -> None:
    action = await _waiting(database, clock)
    await database.write(
        lambda c: store.settle(c, action.id, [ActionState.PENDING], state=ActionState.APPROVED)
    )
    assert (await _aside(database, clock, action)).held
    assert await database.read(lambda c: run_rows.held_from(c, action.thread_id)) == "Ada"


async def test_words_beside_a_limit_are_a_message_because_no_call_can_carry_them(
    database: Database, clock: FakeClock
) -> None:
    (action,) = await database.write(lambda c: waits(c, clock, kind=ActionKind.LIMIT, tool="limit:usd"))
    assert (await _aside(database, clock, action)).held
    assert await database.read(lambda c: run_rows.held_from(c, action.thread_id)) == "Ada"


async def test_an_aside_where_nothing_is_at_work_begins_a_run(database: Database, clock: FakeClock) -> None:
    action = await _waiting(database, clock)
    await database.write(lambda c: run_rows.stop(c, action.run_id, clock.now()))
    assert (await _aside(database, clock, action)).run_id is not None


async def test_an_unknown_thread_is_refused_and_nothing_stored(database: Database, clock: FakeClock) -> None:
    with pytest.raises(NotFound):
        await database.write(lambda c: arrives(c, clock, thread_id="0" * 36))
    assert await _count(database, messages) == await _count(database, audit) == 0


async def test_a_person_who_writes_brings_the_thread_back_from_the_archive(
    database: Database, clock: FakeClock
) -> None:
    accepted = await database.write(lambda c: arrives(c, clock))
    await database.write(lambda c: thread_rows.mark(c, accepted.thread_id, unread=None, archived=True))
    await database.write(lambda c: arrives(c, clock, thread_id=accepted.thread_id))
    thread = await database.read(lambda c: thread_rows.get(c, accepted.thread_id))
    assert thread is not None
    assert not thread.archived


HOSTILE = {
    "emoji and joiners": "👩‍👩‍👧‍👦 🏳️‍🌈 \U0001f9d1\U0001f3ff‍\U0001f680",
    "right to left": "\u202eevil\u202c שלום مرحبا",
    "control": "bell\x07 escape\x1b[31m delete\x7f vertical\x0b",
    "separators": "a\u2028b\u2029c\x85d",
    "sql": "'; DROP TABLE messages; -- %s :name ? {} $1 \\",
    "zalgo": "Z\u0351\u036b\u0343\u036a\u0302" * 500,
    "many different words": " ".join(chr(0x20000 + n) for n in range(42_000)),
    "the longest": "ä" * intake.MAX_TEXT,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
async def test_hostile_text_is_stored_as_it_came(database: Database, clock: FakeClock, text: str) -> None:
    accepted = await database.write(lambda c: arrives(c, clock, text, key=text[:400], address=text[:400]))
    (message,) = await database.read(lambda c: thread_rows.messages_of(c, accepted.thread_id))
    assert message.text == text
    again = await database.write(lambda c: arrives(c, clock, text, key=text[:400]))
    assert again.duplicate


def _message(text: str = "hello", **parts: object) -> InboundMessage:
    return InboundMessage("web", "Ada", text, **parts)  # type: ignore[arg-type]


def _file(filename: str = "a.txt", media_type: str = "text/plain", data: bytes = b"x") -> Attachment:
    return Attachment(filename, media_type, data)


REFUSED = {
    "NUL": (_message("a\x00b"), "invalid_text"),
    "half a surrogate pair": (_message("a\ud83db"), "invalid_text"),
    "too long": (_message("x" * (intake.MAX_TEXT + 1)), "text_too_long"),
    "empty": (_message(""), "empty_message"),
    "blank": (_message(" \n\t "), "empty_message"),
    "title with NUL": (_message(title="a\x00"), "invalid_text"),
    "long title": (_message(title="x" * 201), "text_too_long"),
    "empty key": (_message(key=""), "invalid_key"),
    "long key": (_message(key="k" * 513), "invalid_key"),
    "key with NUL": (_message(key="a\x00"), "invalid_key"),
    "key with half a pair": (_message(key="\udc80"), "invalid_key"),
    "address with NUL": (_message(address="a\x00"), "invalid_text"),
    "21 files": (_message(attachments=[_file()] * 21), "too_many_attachments"),
    "file without a name": (_message(attachments=[_file(" ")]), "invalid_attachment"),
    "file name with NUL": (_message(attachments=[_file("a\x00.txt")]), "invalid_text"),
    "long file name": (_message(attachments=[_file("a" * 256)]), "text_too_long"),
    "media type with a header": (
        _message(attachments=[_file(media_type="text/plain\r\nSet-Cookie: a")]),
        "invalid_attachment",
    ),
    "large file": (
        _message(attachments=[_file(data=bytes(intake.MAX_ATTACHMENT_BYTES + 1))]),
        "attachment_too_large",
    ),
}


@pytest.mark.parametrize(("message", "code"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_stored_is_refused(message: InboundMessage, code: str) -> None:
    with pytest.raises(Invalid) as caught:
        intake.check(message)
    assert caught.value.code == code


def test_a_file_alone_is_a_message() -> None:
    intake.check(_message("", attachments=[_file()]))


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "/etc/passwd", "..", "a\nb", "CON", "x" * 255, "💣.exe", "-rf"]
)
async def test_a_hostile_file_name_is_text_and_never_a_path(
    database: Database, clock: FakeClock, tmp_path: Path, name: str
) -> None:
    folder = tmp_path / "attachments"
    folder.mkdir()
    stored = intake.store_files(folder, [_file(name, data=b"secret")])
    (path,) = folder.iterdir()
    assert path.name == stored[0][0] != name
    assert path.read_bytes() == b"secret"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    accepted = await database.write(lambda c: arrives(c, clock, "", files=stored))
    (row,) = await database.read(lambda c: thread_rows.attachments_of(c, accepted.thread_id))
    assert (row.id, row.filename, row.size_bytes) == (path.name, name, 6)


async def test_deleting_a_thread_leaves_no_row_of_it(database: Database, clock: FakeClock) -> None:
    accepted = await database.write(lambda c: arrives(c, clock, key="k", files=[("f", _file())]))
    assert await database.write(lambda c: thread_rows.delete(c, accepted.thread_id))
    for table in (threads, messages, runs):
        assert await _count(database, table) == 0


async def test_what_was_taken_stays_taken_after_its_thread_was_deleted(
    database: Database, clock: FakeClock
) -> None:
    first = await database.write(lambda c: arrives(c, clock, key="k"))
    await database.write(lambda c: thread_rows.delete(c, first.thread_id))
    again = await database.write(lambda c: arrives(c, clock, key="k"))
    assert (again.duplicate, again.thread_id, again.run_id) == (True, first.thread_id, None)
    for table in (threads, messages, runs):
        assert await _count(database, table) == 0
    assert await _count(database, inbound) == 1
