"""Who is found under which name or address, and what does each role allow?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from pizzabot.people import People, Person, is_quiet, may_administer, may_decide, may_see, quiet_until

ADA = Person("Ada", "owner", emails=("ada@example.com", "a.l@example.org"), slack="U0ADA")
BOB = Person("Bob", "approver", emails=("bob@example.com",))
CY = Person("Cy", "member", slack="U0CY", timezone="Europe/Amsterdam", quiet_hours="20:00-07:00")
DEE = Person("Dee", "owner")
EVERYBODY = People([BOB, ADA, CY, DEE])
NOBODY: frozenset[str] = frozenset()


@pytest.mark.parametrize("name", ["Ada", "ada", "ADA"])
def test_a_name_is_found_in_any_case(name: str) -> None:
    assert EVERYBODY.by_name(name) is ADA


@pytest.mark.parametrize("address", ["a.l@example.org", "A.L@Example.ORG"])
def test_every_address_of_a_person_is_found_in_any_case(address: str) -> None:
    assert EVERYBODY.by_email(address) is ADA


@pytest.mark.parametrize(
    "address",
    [
        "",
        " ada@example.com",
        "ada+x@example.com",
        "Ada <ada@example.com>",
        "ada@example.com.evil",
        "аda@example.com",
        "ſda@example.com",
    ],
)
def test_an_address_that_is_not_exactly_the_configured_one_is_nobody(address: str) -> None:
    assert EVERYBODY.by_email(address) is None


def test_a_letter_that_becomes_ascii_when_lowered_finds_nobody() -> None:
    everybody = People([Person("Kay", "owner", emails=("kay@example.com",))])
    assert everybody.by_email("KAY@example.com") is not None
    assert everybody.by_email("\u212aay@example.com") is None


def test_a_slack_id_is_found_exactly() -> None:
    assert EVERYBODY.by_slack("U0CY") is CY
    assert EVERYBODY.by_slack("u0cy") is None
    assert EVERYBODY.by_slack("") is None


def test_the_owner_is_the_first_of_the_owners() -> None:
    assert EVERYBODY.owner is ADA
    assert EVERYBODY.owners == (ADA, DEE)


def test_people_keep_the_order_of_the_file() -> None:
    assert [person.name for person in EVERYBODY] == ["Bob", "Ada", "Cy", "Dee"]
    assert len(EVERYBODY) == 4


@pytest.mark.parametrize(
    ("person", "thread_owner", "may_decide_here", "sees"),
    [
        (ADA, "Cy", False, True),
        (BOB, "bob", False, True),
        (BOB, "Cy", True, True),
        (BOB, "Cy", False, False),
        (CY, "CY", False, True),
        (CY, "Ada", False, False),
        (CY, "Ada", True, False),
    ],
)
def test_who_sees_a_thread(person: Person, thread_owner: str, may_decide_here: bool, sees: bool) -> None:
    assert may_see(person, thread_owner, may_decide_here) is sees


@pytest.mark.parametrize(
    ("person", "approvers", "thread_owner", "decides"),
    [
        (BOB, frozenset({"bob"}), "Cy", True),
        (ADA, frozenset({"Bob"}), "Ada", False),  # named approvers shut out even the owner
        (CY, frozenset({"Bob"}), "Cy", False),
        (CY, NOBODY, "cy", True),
        (ADA, NOBODY, "Cy", True),
        (BOB, NOBODY, "Cy", False),  # the role alone decides nothing
    ],
)
def test_who_decides_an_action(
    person: Person, approvers: frozenset[str], thread_owner: str, decides: bool
) -> None:
    assert may_decide(person, approvers, thread_owner) is decides


def test_only_owners_administer() -> None:
    assert [may_administer(person) for person in (ADA, BOB, CY)] == [True, False, False]


@pytest.mark.parametrize(
    ("hour_utc", "quiet"),
    [
        (18, False),
        (19, True),
        (23, True),
        (5, True),
        (6, False),
        (12, False),
    ],  # Amsterdam is UTC+1 in January
)
def test_quiet_hours_span_midnight_in_the_zone_of_the_person(hour_utc: int, quiet: bool) -> None:
    assert is_quiet(CY, datetime(2026, 1, 15, hour_utc, 0, tzinfo=UTC)) is quiet


def test_nobody_is_quiet_without_quiet_hours() -> None:
    assert not is_quiet(ADA, datetime(2026, 1, 15, 3, 0, tzinfo=UTC))


@pytest.mark.parametrize(
    ("moment", "ends"),
    [
        (datetime(2026, 1, 15, 19, 0, tzinfo=UTC), datetime(2026, 1, 16, 6, 0, tzinfo=UTC)),
        (datetime(2026, 1, 16, 5, 59, tzinfo=UTC), datetime(2026, 1, 16, 6, 0, tzinfo=UTC)),
        (datetime(2026, 1, 16, 6, 0, tzinfo=UTC), None),
        (datetime(2026, 3, 28, 20, 0, tzinfo=UTC), datetime(2026, 3, 29, 5, 0, tzinfo=UTC)),  # into summer
        (datetime(2026, 10, 24, 20, 0, tzinfo=UTC), datetime(2026, 10, 25, 6, 0, tzinfo=UTC)),  # and out
    ],
)
def test_quiet_hours_end_where_the_clock_of_the_person_says(moment: datetime, ends: datetime | None) -> None:
    assert quiet_until(CY, moment) == ends


@pytest.mark.parametrize("minutes", [10, 70])
def test_an_end_that_the_clock_shows_twice_is_the_next_one(minutes: int) -> None:
    """In New York 01:30 comes twice in that night: at 05:30 and at 06:30 UTC."""
    person = Person("Eve", "member", timezone="America/New_York", quiet_hours="22:00-01:30")
    moment = datetime(2026, 11, 1, 5, 0, tzinfo=UTC) + timedelta(minutes=minutes)
    assert is_quiet(person, moment)
    assert quiet_until(person, moment) == moment + timedelta(minutes=20)


def test_quiet_hours_within_one_day_end_when_they_say() -> None:
    person = Person("Eve", "member", quiet_hours="12:00-13:00")
    assert is_quiet(person, datetime(2026, 1, 15, 12, 59, tzinfo=UTC))
    assert not is_quiet(person, datetime(2026, 1, 15, 13, 0, tzinfo=UTC))
