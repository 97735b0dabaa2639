"""Up to where was a mailbox read? Pure decisions on UIDs; reading and storing happen elsewhere.

    no cursor yet              -> begin at now: nothing that lies there is taken in
    same UIDVALIDITY           -> go on after the last UID
    another UIDVALIDITY, or    -> the old UIDs say nothing any more (RFC 3501 §2.3.1.1): look back over what
    UIDNEXT went back             was delivered since the mailbox was last read to its end

Looking back finds mails again that were taken already. Whoever takes them in knows them by Message-ID and
digest, so that costs a second reading and nothing else; a mail that came meanwhile is not lost.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta

MARGIN = timedelta(hours=1)  # how far the server's clock may be behind ours
REFRESH = timedelta(minutes=15)  # how old `caught_up_at` may become on disk while nothing arrives
_ONE_DAY = timedelta(days=1)  # SINCE disregards time and zone (RFC 3501 §6.4.4)


@dataclass(frozen=True, slots=True)
class LookBack:
    """Below `until_uid`, only mails that were delivered at `since` or later are wanted."""

    since: datetime
    until_uid: int


@dataclass(frozen=True, slots=True)
class Found:
    """One mail as the server lists it: size in bytes (RFC822.SIZE), time of delivery (INTERNALDATE)."""

    uid: int
    size: int
    delivered_at: datetime | None


@dataclass(frozen=True, slots=True)
class Cursor:
    """Up to where one folder was read. Times are aware.

    Mails up to `last_uid` are settled. `began_at` is the first start of all: what was there before is never
    wanted. At `caught_up_at` nothing was left to take. `unmarked` were taken in and perhaps not yet marked.
    `waiting` were put off and are taken in later; all of them are below `last_uid`.
    """

    uidvalidity: int
    last_uid: int
    began_at: datetime
    caught_up_at: datetime
    look_back: LookBack | None = None
    unmarked: tuple[int, ...] = ()
    waiting: tuple[int, ...] = ()

    def taken(self, uid: int) -> Cursor:
        """`uid` was taken in, and is to be marked."""
        return replace(self.dropped(uid), unmarked=(*self.unmarked, uid))

    def passed(self, uid: int) -> Cursor:
        """Nothing up to `uid` is new any more."""
        return replace(self, last_uid=max(self.last_uid, uid))

    def dropped(self, uid: int) -> Cursor:
        """`uid` is settled without having been taken in: it is gone, or could not be read."""
        waiting = self.waiting
        if uid in waiting:
            waiting = tuple(other for other in waiting if other != uid)
        return replace(self.passed(uid), waiting=waiting)

    def put_off(self, uid: int) -> Cursor:
        """`uid` waits, and what came after it is taken in before."""
        if uid in self.waiting:
            return self
        return replace(self.passed(uid), waiting=(*self.waiting, uid))

    def marked(self) -> Cursor:
        """Everything that was taken in is marked."""
        return replace(self, unmarked=())

    def caught_up(self, at: datetime) -> Cursor:
        """Nothing new was left to take when the server was asked at `at`.

        While mails wait the time stays: should all UIDs be new, they are found again by when they came.
        """
        return replace(self, caught_up_at=self.caught_up_at if self.waiting else at, look_back=None)

    def is_worth_storing(self, stored: Cursor) -> bool:
        """Whether this differs from what is on disk by more than a few minutes of nothing."""
        old = self.caught_up_at - stored.caught_up_at >= REFRESH
        return old or replace(self, caught_up_at=stored.caught_up_at) != stored


def opened(stored: Cursor | None, uidvalidity: int, uidnext: int, now: datetime) -> Cursor:
    """The cursor to go on with in a folder that says `uidvalidity` and `uidnext` when it is selected."""
    if stored is None:
        return Cursor(uidvalidity, uidnext - 1, began_at=now, caught_up_at=now)
    if stored.uidvalidity == uidvalidity and stored.last_uid < uidnext:
        return stored
    since = max(stored.began_at, stored.caught_up_at - MARGIN).replace(microsecond=0)  # as INTERNALDATE
    return replace(
        stored,
        uidvalidity=uidvalidity,
        last_uid=0,
        look_back=LookBack(since, uidnext),
        unmarked=(),
        waiting=(),
    )


def criteria(cursor: Cursor) -> list[str | date]:
    """The SEARCH (RFC 3501 §6.4.4) that finds all wanted mails, and few others."""
    after: list[str | date] = ["UID", f"{cursor.last_uid + 1}:*"]
    back = cursor.look_back
    if back is None:
        return after
    return [*after, "OR", "SINCE", (back.since - _ONE_DAY).date(), "UID", f"{back.until_uid}:*"]


def new_uids(cursor: Cursor, answer: Iterable[int]) -> list[int]:
    """The UIDs of a SEARCH that are not settled, in the order of their arrival.

    `n:*` also names the last mail when its UID is below n (RFC 3501 §6.4.8).
    """
    return sorted({uid for uid in answer if uid > cursor.last_uid})


def is_wanted(cursor: Cursor, found: Found) -> bool:
    """Whether a mail above the cursor is to be taken in; one without a known time of delivery rather is."""
    back = cursor.look_back
    if back is None or found.uid >= back.until_uid or found.delivered_at is None:
        return True
    return found.delivered_at >= back.since


def batches(uids: Sequence[int], size: int) -> list[Sequence[int]]:
    """`uids` in pieces of at most `size`."""
    return [uids[start : start + size] for start in range(0, len(uids), size)]


def to_text(cursor: Cursor) -> str:
    """The cursor as it is stored."""
    back = cursor.look_back
    return json.dumps(
        {
            "uidvalidity": cursor.uidvalidity,
            "last_uid": cursor.last_uid,
            "began_at": cursor.began_at.isoformat(),
            "caught_up_at": cursor.caught_up_at.isoformat(),
            "look_back": [back.since.isoformat(), back.until_uid] if back else None,
            "unmarked": cursor.unmarked,
            "waiting": cursor.waiting,
        }
    )


def from_text(text: str) -> Cursor:
    """What `to_text` wrote; raises ValueError, KeyError or TypeError for anything else."""
    said = json.loads(text)
    back = said["look_back"]
    return Cursor(
        uidvalidity=int(said["uidvalidity"]),
        last_uid=int(said["last_uid"]),
        began_at=datetime.fromisoformat(said["began_at"]),
        caught_up_at=datetime.fromisoformat(said["caught_up_at"]),
        look_back=LookBack(datetime.fromisoformat(back[0]), int(back[1])) if back else None,
        unmarked=tuple(map(int, said["unmarked"])),
        waiting=tuple(map(int, said.get("waiting", ()))),
    )
