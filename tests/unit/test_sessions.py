"""Does a code let one person in, once, and does a session end when it should, on both databases?"""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
import sqlalchemy as sa

from pizzabot import audit
from pizzabot.database.connection import Database
from pizzabot.database.schema import audit as audit_lines
from pizzabot.database.schema import login_codes, metadata
from pizzabot.database.schema import sessions as rows
from pizzabot.errors import Forbidden, NotFound, Refused
from pizzabot.people import People, Person
from pizzabot.sessions import CODE_LIFE, IDLE_LIFE, LONGEST_LIFE, CodeNotValid, Sessions
from tests.fakes.clock import FakeClock

ADA, BOB, CAY = Person("Ada", "owner"), Person("Bob", "approver"), Person("Cay", "member")
EVA = Person("Eva", "owner")
PEOPLE = People([ADA, BOB, CAY, EVA])
INSTANT, HOUR = timedelta(microseconds=1), timedelta(hours=1)


@pytest.fixture
def sessions(database: Database, clock: FakeClock) -> Sessions:
    return Sessions(database, clock, PEOPLE)


async def entered(sessions: Sessions, name: str = "Ada") -> str:
    """The secret of a new session."""
    return await sessions.log_in((await sessions.issue_code(name, ADA, "terminal")).code, "web")


async def name_of(sessions: Sessions, secret: str) -> str | None:
    """Whose session it is, after its use was written down."""
    person = await sessions.person_of(secret)
    await asyncio.gather(*sessions._noting)
    return person.name if person is not None else None


async def told(database: Database) -> list[tuple[str, str, str, str]]:
    """The audit, oldest first: actor, via, event, subject."""
    lines = await database.read(lambda c: audit.page(c, limit=1000))
    return [(line.actor, line.via, line.event, line.subject) for line in reversed(lines)]


async def count(database: Database, table: sa.Table) -> int:
    query = sa.select(sa.func.count()).select_from(table)
    return int(await database.read(lambda c: c.execute(query).scalar_one()))


# -- codes -----------------------------------------------------------------------------------------------


async def test_a_code_opens_a_session_of_its_person(sessions: Sessions, clock: FakeClock) -> None:
    issued = await sessions.issue_code("Cay", ADA, "terminal")
    assert (issued.person, issued.expires_at) == ("Cay", clock.now() + timedelta(minutes=10))
    assert await sessions.person_of(await sessions.log_in(issued.code, "web")) == CAY


async def test_a_code_works_once(sessions: Sessions) -> None:
    issued = await sessions.issue_code("Ada", ADA, "terminal")
    await sessions.log_in(issued.code, "web")
    with pytest.raises(CodeNotValid):
        await sessions.log_in(issued.code, "web")


@pytest.mark.parametrize(
    ("age", "works"),
    [
        (timedelta(), True),
        (timedelta(minutes=10) - INSTANT, True),
        (timedelta(minutes=10), False),
        (timedelta(days=1), False),
    ],
    ids=str,
)
async def test_a_code_works_for_ten_minutes_exactly(
    sessions: Sessions, clock: FakeClock, age: timedelta, works: bool
) -> None:
    assert timedelta(minutes=10) == CODE_LIFE
    issued = await sessions.issue_code("Ada", ADA, "terminal")
    clock.advance(age)
    if works:
        assert await sessions.log_in(issued.code, "web")
        return
    with pytest.raises(CodeNotValid):
        await sessions.log_in(issued.code, "web")


async def test_wrong_used_and_old_codes_get_the_same_words(sessions: Sessions, clock: FakeClock) -> None:
    used, old = [(await sessions.issue_code("Ada", ADA, "terminal")).code for _ in range(2)]
    await sessions.log_in(used, "web")
    clock.advance(CODE_LIFE)
    fresh = (await sessions.issue_code("Ada", ADA, "terminal")).code
    refusals = set()
    wrong = [
        "",
        "x",
        "x" * 10_000,
        "\ud800",
        "\x00",
        "ü",
        fresh[:-1],
        fresh + "x",
        fresh.swapcase(),
        f" {fresh}",
    ]
    for code in [used, old, *wrong]:
        with pytest.raises(CodeNotValid) as refused:
            await sessions.log_in(code, "web")
        refusals.add((refused.value.status, refused.value.code, str(refused.value)))
    assert len(refusals) == 1
    assert await sessions.log_in(fresh, "web")


async def test_a_newer_code_leaves_the_older_one_valid(sessions: Sessions) -> None:
    codes = [(await sessions.issue_code(name, ADA, "terminal")).code for name in ("Ada", "Ada", "Cay")]
    assert len(set(codes)) == 3
    names = [await name_of(sessions, await sessions.log_in(code, "web")) for code in codes]
    assert names == ["Ada", "Ada", "Cay"]


async def test_of_many_logins_at_once_with_one_code_one_wins(database: Database, clock: FakeClock) -> None:
    houses = [Sessions(database, clock, PEOPLE) for _ in range(2)]
    code = (await houses[0].issue_code("Ada", ADA, "terminal")).code
    tries = [houses[number % 2].log_in(code, "web") for number in range(8)]
    answers = await asyncio.gather(*tries, return_exceptions=True)
    (secret,) = [answer for answer in answers if isinstance(answer, str)]
    assert [type(answer) for answer in answers if answer != secret] == [CodeNotValid] * 7
    assert await count(database, rows) == 1
    assert await name_of(houses[1], secret) == "Ada"


async def test_only_hashes_of_codes_and_sessions_are_stored(database: Database, sessions: Sessions) -> None:
    secret = await entered(sessions)
    code = (await sessions.issue_code("Cay", ADA, "terminal")).code
    assert min(len(code), len(secret)) >= 43  # 256 bits in base 64

    def dump(connection: sa.Connection) -> str:
        tables = metadata.sorted_tables
        return repr([connection.execute(sa.select(table)).all() for table in tables])

    stored = await database.read(dump)
    assert code not in stored
    assert secret not in stored
    for table in (login_codes, rows):
        query = sa.select(table.c.hash)
        key = await database.read(lambda c, query=query: str(c.execute(query).scalar_one()))  # type: ignore[misc]
        assert len(key) == 64
        for word in (key, key.upper()):  # who read the database got no key to the door
            with pytest.raises(CodeNotValid):
                await sessions.log_in(word, "web")
            assert await sessions.person_of(word) is None


# -- for whom --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("by", "name", "outcome"),
    [
        (ADA, "Ada", "Ada"),
        (ADA, "Cay", "Cay"),
        (ADA, "Eva", "Eva"),
        (ADA, "cAY", "Cay"),
        (ADA, "Nobody", NotFound),
        (ADA, "", NotFound),
        (ADA, "\x1b[2J" * 100, NotFound),
        (BOB, "Bob", "Bob"),
        (BOB, "bob", "Bob"),
        (BOB, "Cay", Forbidden),
        (CAY, "Cay", "Cay"),
        (CAY, "Ada", Forbidden),
        (CAY, "Bob", Forbidden),
        (CAY, "Nobody", Forbidden),  # who is known is nobody else's business
    ],
    ids=lambda value: getattr(value, "name", None) or getattr(value, "__name__", None) or str(value)[:8],
)
async def test_owners_let_everybody_in_and_others_themselves(
    database: Database, sessions: Sessions, by: Person, name: str, outcome: str | type[Refused]
) -> None:
    if isinstance(outcome, str):
        assert (await sessions.issue_code(name, by, "terminal")).person == outcome
        assert await told(database) == [(by.name, "terminal", "login.offered", outcome)]
        return
    with pytest.raises(outcome) as refused:
        await sessions.issue_code(name, by, "terminal")
    assert len(str(refused.value)) < 500
    assert await count(database, login_codes) == 0
    assert await told(database) == []


async def test_who_asks_for_nobody_is_told_who_is_known_only_as_an_owner(sessions: Sessions) -> None:
    with pytest.raises(NotFound, match="known are Ada, Bob, Cay, Eva"):
        await sessions.issue_code("Nobody", ADA, "terminal")
    with pytest.raises(Forbidden) as refused:
        await sessions.issue_code("Nobody", CAY, "terminal")
    assert "Ada" not in str(refused.value)


# -- sessions --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("uses", "alive"),
    [
        ([], True),
        ([IDLE_LIFE - INSTANT], True),
        ([IDLE_LIFE], False),
        ([timedelta(days=13)] * 2, True),
        ([timedelta(days=13)] * 6, True),
        ([timedelta(days=13)] * 6 + [timedelta(days=12) - INSTANT], True),
        ([timedelta(days=13)] * 6 + [timedelta(days=12)], False),  # 90 days in all
        ([timedelta(days=10), IDLE_LIFE], False),
        ([IDLE_LIFE, timedelta()], False),  # a session that ended is not brought back by being asked for
    ],
    ids=lambda value: "+".join(str(use.days) for use in value) if isinstance(value, list) else str(value),
)
async def test_a_session_ends_after_14_days_unused_and_after_90_in_all(
    sessions: Sessions, clock: FakeClock, uses: list[timedelta], alive: bool
) -> None:
    assert (IDLE_LIFE.days, LONGEST_LIFE.days) == (14, 90)
    secret = await entered(sessions)
    name = await name_of(sessions, secret)
    for pause in uses:
        clock.advance(pause)
        name = await name_of(sessions, secret)
    assert name == ("Ada" if alive else None)


@pytest.mark.parametrize(("after", "written"), [(HOUR - INSTANT, False), (HOUR, True)], ids=str)
async def test_its_use_is_written_down_once_an_hour(
    database: Database, sessions: Sessions, clock: FakeClock, after: timedelta, written: bool
) -> None:
    secret = await entered(sessions)
    began = clock.now()
    clock.advance(after)
    await name_of(sessions, secret)
    seen = await database.read(lambda c: c.execute(sa.select(rows.c.seen_at)).scalar_one())
    assert seen == (clock.now() if written else began)


async def test_logging_out_ends_this_session_and_no_other(sessions: Sessions) -> None:
    mine, other, cays = await entered(sessions), await entered(sessions), await entered(sessions, "Cay")
    await sessions.log_out(mine, "web")
    await sessions.log_out(mine, "web")
    await sessions.log_out("never a secret", "web")
    assert [await name_of(sessions, secret) for secret in (mine, other, cays)] == [None, "Ada", "Cay"]


async def test_logging_out_everywhere_ends_all_sessions_of_one_person(sessions: Sessions) -> None:
    mine, other, cays = await entered(sessions), await entered(sessions), await entered(sessions, "Cay")
    await sessions.log_out_everywhere(ADA, "web")
    assert [await name_of(sessions, secret) for secret in (mine, other, cays)] == [None, None, "Cay"]


async def test_logging_out_everywhere_ends_sessions_from_before_a_name_was_spelt_anew(
    database: Database, sessions: Sessions, clock: FakeClock
) -> None:
    before = await entered(sessions)
    spelt = Person("ADA", "owner")
    anew = Sessions(database, clock, People([spelt]))
    assert await anew.person_of(before) == spelt  # names are the same whatever their case
    await anew.log_out_everywhere(spelt, "web")
    assert await anew.person_of(before) is None


async def test_logging_out_everywhere_voids_the_links_of_this_person(sessions: Sessions) -> None:
    mine, cays = [(await sessions.issue_code(name, ADA, "terminal")).code for name in ("Ada", "Cay")]
    await sessions.log_out_everywhere(ADA, "web")
    with pytest.raises(CodeNotValid):
        await sessions.log_in(mine, "web")
    assert await name_of(sessions, await sessions.log_in(cays, "web")) == "Cay"


async def test_a_look_at_whom_a_code_is_for_uses_nothing_up(sessions: Sessions, clock: FakeClock) -> None:
    code = (await sessions.issue_code("Cay", ADA, "terminal")).code
    assert [await sessions.person_for(code) for _ in range(2)] == [CAY, CAY]
    for wrong in ("", "x", code[:-1], "\ud800"):
        assert await sessions.person_for(wrong) is None
    clock.advance(CODE_LIFE - INSTANT)
    assert await sessions.person_for(code) == CAY
    clock.advance(INSTANT)
    assert await sessions.person_for(code) is None


async def test_who_watches_is_told_when_a_session_ended(database: Database, clock: FakeClock) -> None:
    ended: list[int] = []
    sessions = Sessions(database, clock, PEOPLE, lambda: ended.append(1))
    secret = await entered(sessions)
    assert ended == []
    await sessions.log_out(secret, "web")
    await sessions.log_out_everywhere(ADA, "web")
    assert ended == [1, 1]


async def test_sessions_and_codes_survive_a_restart(
    database: Database, sessions: Sessions, clock: FakeClock
) -> None:
    secret = await entered(sessions)
    code = (await sessions.issue_code("Cay", ADA, "terminal")).code
    restarted = Sessions(database, clock, PEOPLE)
    assert await name_of(restarted, secret) == "Ada"
    assert await name_of(restarted, await restarted.log_in(code, "web")) == "Cay"


async def test_who_is_gone_from_the_settings_is_out_and_stays_out(
    database: Database, sessions: Sessions, clock: FakeClock
) -> None:
    mine, cays = await entered(sessions), await entered(sessions, "Cay")
    code = (await sessions.issue_code("Cay", ADA, "terminal")).code
    without = Sessions(database, clock, People([ADA]))
    assert [await name_of(without, secret) for secret in (mine, cays)] == ["Ada", None]
    with pytest.raises(CodeNotValid):
        await without.log_in(code, "web")


async def test_a_role_that_changed_counts_at_once(
    database: Database, sessions: Sessions, clock: FakeClock
) -> None:
    secret = await entered(sessions)
    lower = Person("Ada", "member")
    assert await Sessions(database, clock, People([lower])).person_of(secret) == lower


@pytest.mark.parametrize("secret", ["", "x", "\ud800", "\x00", "x" * 100_000])
async def test_what_never_was_a_secret_is_nobody(sessions: Sessions, secret: str) -> None:
    await entered(sessions)
    assert await sessions.person_of(secret) is None


# -- what stays ------------------------------------------------------------------------------------------


async def test_every_way_in_and_out_is_in_the_audit(database: Database, sessions: Sessions) -> None:
    secret = await entered(sessions, "Cay")
    for code in ("wrong", ""):
        with pytest.raises(CodeNotValid):
            await sessions.log_in(code, "web")
    await sessions.log_out("wrong", "web")
    await sessions.log_out(secret, "web")
    for _ in range(2):
        await entered(sessions, "Cay")
    await sessions.log_out_everywhere(CAY, "web")
    into = [("Ada", "terminal", "login.offered", "Cay"), ("Cay", "web", "login", "Cay")]
    out = ("Cay", "web", "logout", "Cay")
    assert await told(database) == [*into, out, *into, *into, out, out]
    assert (await database.read(audit.verify)).broken_at is None
    words = await database.read(lambda c: repr(c.execute(sa.select(audit_lines)).all()))
    assert secret not in words


async def test_what_is_too_old_is_swept_when_a_code_is_made(
    database: Database, sessions: Sessions, clock: FakeClock
) -> None:
    secret = await entered(sessions)
    await sessions.issue_code("Cay", ADA, "terminal")
    clock.advance(IDLE_LIFE - timedelta(days=1))
    await name_of(sessions, secret)
    await sessions.issue_code("Cay", ADA, "terminal")
    assert (await count(database, login_codes), await count(database, rows)) == (1, 1)
    clock.advance(IDLE_LIFE)
    await sessions.issue_code("Cay", ADA, "terminal")
    assert (await count(database, login_codes), await count(database, rows)) == (1, 0)
