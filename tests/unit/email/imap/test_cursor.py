"""Which mails of a mailbox are new is decided by UIDs alone, and after new UIDs by when they came."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from adapters.email.imap.cursor import (
    MARGIN,
    REFRESH,
    Cursor,
    Found,
    LookBack,
    batches,
    criteria,
    from_text,
    is_wanted,
    new_uids,
    opened,
    to_text,
)

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
LONG_AGO = NOW - timedelta(days=30)
WEEK = timedelta(days=7)
UIDS = st.integers(1, 2**32 - 1)
TIMES = st.integers(0, 2**32).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))
CURSORS = st.builds(
    Cursor,
    uidvalidity=UIDS,
    last_uid=UIDS,
    began_at=TIMES,
    caught_up_at=TIMES,
    look_back=st.none() | st.builds(LookBack, TIMES, UIDS),
    unmarked=st.lists(UIDS, max_size=5).map(tuple),
    waiting=st.lists(UIDS, max_size=5, unique=True).map(tuple),
)


def cursor(last_uid: int = 41, look_back: LookBack | None = None) -> Cursor:
    return Cursor(1, last_uid, began_at=LONG_AGO, caught_up_at=NOW - WEEK, look_back=look_back)


@given(CURSORS)
def test_a_cursor_comes_back_from_disk_as_it_was(stored: Cursor) -> None:
    assert from_text(to_text(stored)) == stored


def test_the_first_start_begins_after_the_last_mail() -> None:
    first = opened(None, uidvalidity=7, uidnext=2001, now=NOW)
    assert new_uids(first, range(1, 2001)) == []
    assert new_uids(first, [2001]) == [2001]


def test_a_known_mailbox_goes_on_after_the_last_uid() -> None:
    assert opened(cursor(), uidvalidity=1, uidnext=42, now=NOW) == cursor()
    assert criteria(cursor()) == ["UID", "42:*"]


def test_new_uids_are_looked_through_since_the_mailbox_was_last_read() -> None:
    again = opened(cursor(), uidvalidity=2, uidnext=10, now=NOW)
    assert again.look_back == LookBack(NOW - WEEK - MARGIN, 10)
    assert criteria(again) == ["UID", "1:*", "OR", "SINCE", date(2026, 2, 22), "UID", "10:*"]


def test_uids_that_went_back_are_new_uids() -> None:
    assert opened(cursor(last_uid=41), uidvalidity=1, uidnext=41, now=NOW).look_back is not None


def test_looking_back_never_reaches_what_lay_there_at_the_first_start() -> None:
    first = opened(None, uidvalidity=7, uidnext=2001, now=NOW)
    again = opened(first, uidvalidity=8, uidnext=2001, now=NOW + timedelta(minutes=1))
    assert again.look_back == LookBack(NOW, 2001)


def test_a_look_back_that_was_cut_off_reaches_as_far_the_next_time() -> None:
    cut = opened(cursor(), uidvalidity=2, uidnext=10, now=NOW).taken(4)
    again = opened(cut, uidvalidity=3, uidnext=12, now=NOW + WEEK)
    assert again.look_back == LookBack(NOW - WEEK - MARGIN, 12)
    assert again.unmarked == ()


@given(st.lists(UIDS), UIDS)
def test_what_is_new_is_above_the_cursor_each_once_and_in_order(answer: list[int], last_uid: int) -> None:
    new = new_uids(cursor(last_uid), [*answer, *answer])
    assert new == sorted(set(new))
    assert set(new) == {uid for uid in answer if uid > last_uid}


def test_in_a_look_back_old_mails_are_passed_over() -> None:
    looking = cursor(last_uid=0, look_back=LookBack(NOW, 10))
    before, after = NOW - timedelta(seconds=1), NOW
    assert not is_wanted(looking, Found(9, 100, before))
    assert is_wanted(looking, Found(9, 100, after))
    assert is_wanted(looking, Found(9, 100, None))
    assert is_wanted(looking, Found(10, 100, before))  # came after the look back began, whatever its date


def test_nothing_is_looked_back_for_once_all_was_taken() -> None:
    looking = cursor(last_uid=0, look_back=LookBack(NOW, 10))
    assert looking.taken(9).caught_up(NOW).look_back is None


def test_quiet_minutes_are_not_worth_a_write() -> None:
    stored = cursor()
    assert not stored.caught_up(stored.caught_up_at + REFRESH / 2).is_worth_storing(stored)
    assert stored.caught_up(stored.caught_up_at + REFRESH).is_worth_storing(stored)
    assert stored.passed(42).is_worth_storing(stored)


@given(st.lists(UIDS), st.integers(1, 7))
def test_batches_are_the_whole_in_pieces(uids: list[int], size: int) -> None:
    pieces = batches(uids, size)
    assert [uid for piece in pieces for uid in piece] == uids
    assert all(0 < len(piece) <= size for piece in pieces)


# -- mails that wait -----------------------------------------------------------------------------------------


def test_a_mail_that_was_put_off_waits_while_others_are_taken_in() -> None:
    after = cursor().put_off(42).taken(43).passed(44)
    assert (after.last_uid, after.waiting, after.unmarked) == (44, (42,), (43,))
    assert criteria(after) == ["UID", "45:*"]


def test_a_mail_that_waits_is_taken_in_without_going_back() -> None:
    after = cursor().put_off(42).put_off(43).taken(44).taken(42)
    assert (after.last_uid, after.waiting, after.unmarked) == (44, (43,), (44, 42))


def test_a_mail_that_is_put_off_again_keeps_its_place() -> None:
    assert cursor().put_off(42).put_off(43).put_off(42).waiting == (42, 43)


def test_a_mail_that_is_gone_waits_no_more() -> None:
    assert cursor().put_off(42).dropped(42).waiting == ()


def test_what_waits_is_stored() -> None:
    assert cursor().put_off(42).is_worth_storing(cursor().passed(42))


def test_what_waits_is_found_again_by_when_it_came_when_all_uids_are_new() -> None:
    waits = cursor().put_off(42).caught_up(NOW)
    anew = opened(waits, uidvalidity=2, uidnext=90, now=NOW)
    assert anew.waiting == ()
    assert anew.look_back is not None
    assert anew.look_back.since <= NOW - WEEK
    assert waits.dropped(42).caught_up(NOW).caught_up_at == NOW


def test_a_cursor_of_before_mails_could_wait_is_understood() -> None:
    stored = json.loads(to_text(cursor()))
    del stored["waiting"]
    assert from_text(json.dumps(stored)) == cursor()
