"""Are pages complete and without repeats, shown to those who may see them, and does search find?"""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import pytest
import sqlalchemy as sa

from pizzabot.database.connection import Database
from pizzabot.database.schema import threads as thread_table
from pizzabot.errors import Invalid
from pizzabot.ids import new_id
from pizzabot.inbox import pages, threads
from pizzabot.inbox.pages import Page, View
from pizzabot.messages import Beginning
from pizzabot.people import People, Person
from pizzabot.reports import Reports
from tests.fakes.clock import FakeClock
from tests.fakes.rows import ADA, BOB, CAY, DAN, arrives, waits

SOME_ID = "0190f7a0-0000-7000-8000-000000000000"


async def _page(
    database: Database,
    *,
    person: Person = ADA,
    view: View = "all",
    limit: int = 100,
    cursor: str | None = None,
    words: str = "",
) -> Page:
    return await database.read(lambda c: pages.page(c, person, view, limit=limit, cursor=cursor, words=words))


async def _all_ids(database: Database, **wanted: object) -> list[str]:
    cursor: str | None = None
    found: list[str] = []
    while True:
        page = await _page(database, cursor=cursor, **wanted)  # type: ignore[arg-type]
        found += [thread.id for thread in page.threads]
        if page.next_cursor is None:
            return found
        cursor = page.next_cursor


def _threads(connection: sa.Connection, clock: FakeClock, number: int) -> list[str]:
    """Many empty threads at once, oldest first; some share a moment."""
    rows = [
        {
            "id": new_id(),
            "title": "x",
            "title_source": "first",
            "owner": "Ada",
            "channel": "web",
            "address": "x",
            "state": "idle",
            "unread": False,
            "action_count": 0,
            "archived": False,
            "last_message": "",
            "last_activity_at": clock.advance(seconds=n % 3),
            "created_at": clock.now(),
        }
        for n in range(number)
    ]
    if rows:
        connection.execute(sa.insert(thread_table), rows)
    return [str(row["id"]) for row in rows]


@pytest.mark.parametrize("limit", [1, 7, 100])
async def test_pages_of_many_threads_hold_each_once_newest_first(
    database: Database, clock: FakeClock, limit: int
) -> None:
    made = await database.write(lambda c: _threads(c, clock, 230 if limit > 1 else 30))
    assert await _all_ids(database, limit=limit) == made[::-1]


@pytest.mark.parametrize("seed", range(3))
async def test_new_threads_that_arrive_while_paging_disturb_nothing(
    database: Database, clock: FakeClock, seed: int
) -> None:
    chance = random.Random(seed)
    made = await database.write(lambda c: _threads(c, clock, 60))
    clock.advance(seconds=1)
    found: list[str] = []
    cursor: str | None = None
    while True:
        page = await _page(database, limit=chance.randint(1, 9), cursor=cursor)
        found += [thread.id for thread in page.threads]
        cursor = page.next_cursor
        if cursor is None:
            break
        await database.write(lambda c: _threads(c, clock, chance.randint(0, 4)))
    assert found == made[::-1]


async def test_a_page_is_never_larger_than_the_largest(database: Database, clock: FakeClock) -> None:
    await database.write(lambda c: _threads(c, clock, 101))
    assert len((await _page(database, limit=10_000)).threads) == pages.MAX_PAGE
    assert len((await _page(database, limit=-5)).threads) == 1


@pytest.mark.parametrize(
    "cursor",
    [
        "x",
        "1",
        "1.2",
        "s5",
        f"{'9' * 20}.{SOME_ID}",
        f"{'9' * 18}.{SOME_ID}",
        f"-1.{SOME_ID}",
        f"1.{'g' * 36}",
        f"١.{SOME_ID}",
        "1.\x00" + "a" * 35,
    ],
    ids=repr,
)
async def test_a_foreign_cursor_is_refused(database: Database, cursor: str) -> None:
    with pytest.raises(Invalid) as caught:
        await _page(database, cursor=cursor)
    assert caught.value.code == "invalid_cursor"


@pytest.mark.parametrize("cursor", ["x", "s", "s1000000000000000000", "s-1", "s1 ", "5." + "a" * 36])
async def test_a_foreign_cursor_of_a_search_is_refused(database: Database, cursor: str) -> None:
    with pytest.raises(Invalid) as caught:
        await _page(database, cursor=cursor, words="x")
    assert caught.value.code == "invalid_cursor"


async def test_views_and_counts_tell_the_same(database: Database, clock: FakeClock) -> None:
    def work(connection: sa.Connection) -> list[str]:
        made = _threads(connection, clock, 6)
        threads.mark(connection, made[0], unread=True, archived=None)
        threads.mark(connection, made[1], unread=True, archived=True)
        threads.mark(connection, made[2], unread=None, archived=True)
        made.append(waits(connection, clock)[0].thread_id)
        archived = waits(connection, clock)[0].thread_id
        threads.mark(connection, archived, unread=None, archived=True)
        return [*made, archived]

    made = await database.write(work)
    assert set(await _all_ids(database, view="all")) == {made[0], *made[3:7]}
    assert await _all_ids(database, view="unread") == [made[0]]
    assert await _all_ids(database, view="action") == [made[6]]
    assert set(await _all_ids(database, view="archived")) == {made[1], made[2], made[7]}
    assert await database.read(lambda c: pages.counts(c, ADA)) == {"all": 5, "unread": 1, "action": 1}


async def test_each_person_sees_what_they_may_see(database: Database, clock: FakeClock) -> None:
    def work(connection: sa.Connection) -> dict[str, str]:
        return {
            "Ada's": arrives(connection, clock, "cheese", person="Ada").thread_id,
            "Cay's": arrives(connection, clock, "cheese", person="Cay").thread_id,
            "for Bob": waits(connection, clock, person="Dan", approvers=("Bob",))[0].thread_id,
            "for Cay": waits(connection, clock, person="Dan", approvers=("Cay",))[0].thread_id,
        }

    made = await database.write(work)
    expected = {
        ADA: set(made),
        BOB: {"for Bob"},
        CAY: {"Cay's"},  # a member decides nothing, whoever is named
        DAN: {"for Bob", "for Cay"},
    }
    for person, names in expected.items():
        seen = {made[name] for name in names}
        assert set(await _all_ids(database, person=person)) == seen
        counts = await database.read(partial(pages.counts, person=person))
        assert counts["all"] == len(seen)
        for thread_id in made.values():
            thread = await database.read(partial(pages.visible_thread, thread_id=thread_id, person=person))
            assert (thread is not None) == (thread_id in seen)
    assert await _all_ids(database, person=CAY, words="cheese") == [made["Cay's"]]


@pytest.mark.parametrize("thread_id", ["", "a\x00b", "\ud800", "x" * 100_000, "' OR 1=1 --"])
async def test_no_thread_has_a_strange_id(database: Database, thread_id: str) -> None:
    assert await database.read(lambda c: pages.visible_thread(c, thread_id, ADA)) is None


# -- search ----------------------------------------------------------------------------------------------

STORED = {
    "plain": "The quick brown fox pays invoice INV-42 of 3.14 EUR",
    "german": "Überweisung für Käse, bitte. Straße",
    "mail": "Write to ada@example.com about https://example.org/menu?day=monday",
    "snake": "Set order_total to zero",
    "quoted": 'He said "NOT NEAR AND OR" (really) *now*',
    "emoji": "🍕pizza🍕 for 👩‍👩‍👧",
    "cyrillic": "Привет мир",
    "japanese": "請求書 を 払う",
}


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("fox quick", {"plain"}),
        ("quick fox zebra", set()),
        ("qui fo", {"plain"}),
        ("INV-42", {"plain"}),
        ("42", {"plain"}),
        ("3.14", {"plain"}),
        ("14", {"plain"}),
        ("FOX", {"plain"}),
        ("käse", {"german"}),
        ("kaäse", set()),
        ("U\u0308berweisung", {"german"}),
        ("STRASSE", set()),
        ("ada@example.com", {"mail"}),
        ("example", {"mail"}),
        ("menu monday", {"mail"}),
        ("order_total", {"snake"}),
        ("total", {"snake"}),
        ("NOT NEAR", {"quoted"}),
        ('"AND" OR', {"quoted"}),
        ("really*", {"quoted"}),
        ("NEAR(said)", {"quoted"}),
        ("text: said", set()),
        ("'said' & (now | !x) <->", set()),
        ("said' now:*", {"quoted"}),
        ("^said", {"quoted"}),
        ("pizza 🍕", {"emoji"}),
        ("🍕", set()),
        ("***", set()),
        ("_", set()),
        ("pizza _", {"emoji"}),
        ("привет", {"cyrillic"}),
        ("請求書", {"japanese"}),
        ("fox\x00quick", {"plain"}),
        ("fox \ud800", {"plain"}),
        ("fox " * 500, {"plain"}),
        ("z" * 5000, set()),
    ],
)
async def test_all_words_must_match_and_no_word_is_syntax(
    database: Database, clock: FakeClock, words: str, found: set[str]
) -> None:
    def work(connection: sa.Connection) -> dict[str, str]:
        # A title of its own, so that only the message is found.
        return {arrives(connection, clock, text, title="-").thread_id: name for name, text in STORED.items()}

    names = await database.write(work)
    assert {names[thread_id] for thread_id in await _all_ids(database, words=words)} == found


async def test_accents_need_not_be_typed_on_sqlite(sqlite_database: Database, clock: FakeClock) -> None:
    accepted = await sqlite_database.write(lambda c: arrives(c, clock, "Crème brûlée"))
    assert await _all_ids(sqlite_database, words="creme brulee") == [accepted.thread_id]


async def test_words_of_different_messages_do_not_add_up(database: Database, clock: FakeClock) -> None:
    accepted = await database.write(lambda c: arrives(c, clock, "cheese"))
    await database.write(lambda c: arrives(c, clock, "tomato", thread_id=accepted.thread_id))
    assert await _all_ids(database, words="cheese tomato") == []


async def test_what_a_run_began_with_is_for_those_who_may_read_its_thread(
    database: Database, clock: FakeClock
) -> None:
    (action,) = await database.write(lambda c: waits(c, clock, person="Dan", approvers=("Bob", "Cay")))

    async def seen(person: Person) -> object:
        return await database.read(lambda c: pages.beginning_of(c, action.run_id, person))

    for reader in (ADA, BOB, DAN):
        assert await seen(reader) == Beginning(words=(("Dan", "Please look at this."),))
    assert await seen(CAY) is None  # a member sees only what is their own
    assert await database.read(lambda c: pages.beginning_of(c, "gone", ADA)) is None


async def test_a_deleted_thread_is_not_found(database: Database, clock: FakeClock) -> None:
    accepted = await database.write(lambda c: arrives(c, clock, "cheese"))
    assert await _all_ids(database, words="cheese") == [accepted.thread_id]
    await database.write(lambda c: threads.delete(c, accepted.thread_id))
    assert await _all_ids(database, words="cheese") == []


async def test_deleting_keeps_the_full_text_index_whole(sqlite_database: Database, clock: FakeClock) -> None:
    made = await sqlite_database.write(
        lambda c: [arrives(c, clock, f"cheese {n}").thread_id for n in range(20)]
    )
    await sqlite_database.write(lambda c: [threads.delete(c, i) for i in made[::2]])
    await sqlite_database.write(
        lambda c: c.exec_driver_sql(
            "INSERT INTO messages_fts(messages_fts, rank) VALUES ('integrity-check', 1)"
        )
    )


async def test_a_renamed_title_is_found_and_the_old_one_is_not(database: Database, clock: FakeClock) -> None:
    accepted = await database.write(lambda c: arrives(c, clock, "hello", title="Groceries"))
    other = await database.write(lambda c: arrives(c, clock, "something else"))
    assert await _all_ids(database, words="groceries") == [accepted.thread_id]
    await database.write(lambda c: threads.rename(c, accepted.thread_id, "Dinner party", source="user"))
    assert await _all_ids(database, words="groceries") == []
    assert await _all_ids(database, words="dinner") == [accepted.thread_id]
    assert not await database.write(lambda c: threads.rename(c, accepted.thread_id, "Food", source="model"))
    assert await database.write(lambda c: threads.rename(c, other.thread_id, "Food", source="model"))
    assert await _all_ids(database, words="food") == [other.thread_id]


async def test_a_search_stays_inside_its_view(database: Database, clock: FakeClock) -> None:
    made = await database.write(lambda c: [arrives(c, clock, "cheese").thread_id for _ in range(3)])
    await database.write(lambda c: threads.mark(c, made[1], unread=True, archived=None))
    await database.write(lambda c: threads.mark(c, made[2], unread=None, archived=True))
    assert await _all_ids(database, words="cheese") == [made[1], made[0]]
    assert await _all_ids(database, words="cheese", view="unread") == [made[1]]
    assert await _all_ids(database, words="cheese", view="archived") == [made[2]]


@pytest.mark.parametrize("seed", range(3))
async def test_pages_of_a_search_hold_each_thread_once_by_its_newest_hit(
    database: Database, clock: FakeClock, seed: int
) -> None:
    chance = random.Random(seed)

    def work(connection: sa.Connection) -> list[str]:
        made = [arrives(connection, clock, "dough", title="t").thread_id for _ in range(25)]
        newest: dict[str, None] = dict.fromkeys(made)
        for _ in range(90):
            thread_id = chance.choice(made)
            text = chance.choice(["cheese please", "nothing"])
            arrives(connection, clock, text, thread_id=thread_id)
            if text != "nothing":
                newest.pop(thread_id)
                newest[thread_id] = None
        hits = connection.execute(sa.text("SELECT thread_id FROM messages WHERE text LIKE 'cheese%'"))
        hit = set(hits.scalars())
        return [thread_id for thread_id in reversed(newest) if thread_id in hit]

    expected = await database.write(work)
    assert await _all_ids(database, words="chee", limit=chance.randint(1, 9)) == expected


async def test_a_search_says_which_message_was_hit(database: Database, clock: FakeClock) -> None:
    def work(connection: sa.Connection) -> dict[str, str]:
        titled = arrives(connection, clock, "hello", title="All about cheese").thread_id
        told = arrives(connection, clock, "old cheese", title="Cheese").thread_id
        arrives(connection, clock, "nothing", thread_id=told)
        long = "flour " * 100 + "and\n\nsome CHEESE" + " water" * 100
        threads.add_message(connection, told, clock.now(), role="assistant", author="", text=long)
        arrives(connection, clock, "nothing", thread_id=told)
        return {"titled": titled, "told": told}

    made = await database.write(work)
    page = await _page(database, words="chee")
    assert page.hits.keys() == set(made.values())
    hit = page.hits[made["told"]]
    message = await database.read(lambda c: threads.message(c, hit.seq))
    assert message is not None
    assert (message.thread_id, message.role, hit.role) == (made["told"], "assistant", "assistant")
    assert "flour and some CHEESE water" in hit.text_excerpt
    assert hit.text_excerpt.startswith("…")
    assert hit.text_excerpt.endswith("…")
    title = page.hits[made["titled"]]
    assert (title.role, title.text_excerpt) == ("title", "All about cheese")


async def test_hits_are_those_of_the_shown_rows_in_one_query(database: Database, clock: FakeClock) -> None:
    made = await database.write(lambda c: [arrives(c, clock, f"cheese {n}").thread_id for n in range(9)])
    statements: list[str] = []

    def count(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        statements.append(statement)

    sa.event.listen(sa.Engine, "before_cursor_execute", count)
    try:
        page = await _page(database, words="cheese", limit=4)
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", count)
    assert [page.hits[i].text_excerpt for i in made[:4:-1]] == [f"cheese {n}" for n in range(8, 4, -1)]
    assert len(page.hits) == 4
    assert sum("substr" in statement for statement in statements) == 1
    following = await _page(database, words="cheese", limit=4, cursor=page.next_cursor)
    assert following.hits.keys() == set(made[1:5])


async def test_the_rows_of_a_search_tell_their_hits(database: Database, clock: FakeClock) -> None:
    nobody: Any = None
    reports = Reports(
        database=database,
        clock=clock,
        settings=nobody,
        skills=nobody,
        people=People([ADA]),
        channels={},
        context_of=lambda _: None,
        spending=nobody,
    )

    async def rows(words: str) -> list[dict[str, Any]]:
        found = await reports.inbox(ADA, "all", limit=10, cursor=None, words=words)
        return list(found["threads"])

    accepted = await database.write(lambda c: arrives(c, clock, "some cheese", title="Groceries"))
    (row,) = await rows("chee")
    assert row["hit"] == {"message_id": accepted.message_id, "excerpt": "some cheese"}
    (row,) = await rows("groceries")
    assert row["hit"] == {"message_id": None, "excerpt": ""}
    (row,) = await rows("")
    assert "hit" not in row


async def test_a_view_without_a_search_has_no_hits(database: Database, clock: FakeClock) -> None:
    await database.write(lambda c: arrives(c, clock, "cheese"))
    assert (await _page(database)).hits == {}
    assert (await _page(database, words="***")).hits == {}


async def test_one_long_thread_costs_a_search_no_more_queries(database: Database, clock: FakeClock) -> None:
    def work(connection: sa.Connection) -> str:
        first = arrives(connection, clock, "cheese").thread_id
        rows = [{"thread_id": first, "text": f"cheese {n}"} for n in range(5_000)]
        connection.execute(
            sa.text(
                "INSERT INTO messages (thread_id, role, author, text, created_at)"
                " VALUES (:thread_id, 'assistant', '', :text, 0)"
            ),
            rows,
        )
        arrives(connection, clock, "cheese", thread_id=arrives(connection, clock, "salt").thread_id)
        return first

    long = await database.write(work)
    statements: list[str] = []

    def count(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        statements.append(statement)

    sa.event.listen(sa.Engine, "before_cursor_execute", count)
    try:
        assert (await _all_ids(database, words="cheese", limit=1))[1:] == [long]
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", count)
    assert len(statements) < 100


async def test_the_snippet_and_the_title_are_one_line(database: Database, clock: FakeClock) -> None:
    await database.write(lambda c: arrives(c, clock, "line one\n\n" + "word " * 200))
    row = await database.read(lambda c: c.execute(sa.select(thread_table)).one())
    assert len(row.title) <= threads.TITLE_LENGTH
    assert row.title.endswith("…")
    assert "\n" not in row.last_message
