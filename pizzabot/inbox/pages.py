"""What does the inbox show? Views, counts, keyset pages and search over threads.

A page is `limit` threads and a cursor; the cursor names the last row shown, so a page costs the same at the
start and after a hundred thousand threads.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import sqlalchemy as sa

from pizzabot.database.schema import (
    ACTION_PENDING,
    IN_INBOX,
    UNREAD,
    WITH_ACTION,
    action_approvers,
    actions,
    from_microseconds,
    messages,
    reminders,
    threads,
    to_microseconds,
    triggers,
)
from pizzabot.errors import Invalid
from pizzabot.inbox import runs
from pizzabot.inbox.excerpts import excerpt
from pizzabot.inbox.threads import Thread, batched, messages_of_run, thread_of
from pizzabot.messages import Beginning
from pizzabot.people import Person
from pizzabot.text import is_storable

View = Literal["all", "unread", "action", "archived"]
MAX_PAGE = 100
MAX_SEARCH = 1000  # characters
_MAX_WORDS = 16
_SUNK = "z"  # before a cursor: it goes on among those that were put off
_LARGEST_BATCH = 20_000
_SEARCHED_TEXT = 200_000  # what PostgreSQL indexes of a message; no excerpt needs more


@dataclass(frozen=True, slots=True)
class Hit:
    """The newest message of a thread that a search found; with role `title` it is the thread's title."""

    seq: int
    role: str
    text_excerpt: str


@dataclass(frozen=True, slots=True)
class Page:
    """Some threads, newest first, and where to go on; `next_cursor` is None at the end.

    In a search `hits` says by the thread's id what was found of each.
    """

    threads: tuple[Thread, ...]
    next_cursor: str | None
    hits: Mapping[str, Hit] = field(default_factory=dict)


def visible_to(person: Person) -> sa.ColumnElement[bool]:
    """Owners see all; others their own threads; approvers also those where they may decide something."""
    if person.role == "owner":
        return sa.true()
    own = threads.c.owner == person.name
    if person.role != "approver":
        return own
    named = sa.select(action_approvers.c.thread_id).where(action_approvers.c.person == person.name)
    return sa.or_(own, threads.c.id.in_(named))


def visible_thread(connection: sa.Connection, thread_id: str, person: Person) -> Thread | None:
    """The thread, when it exists and the person may see it."""
    if not is_storable(thread_id):
        return None
    row = connection.execute(sa.select(threads).where(threads.c.id == thread_id, visible_to(person))).first()
    return thread_of(row) if row else None


def beginning_of(connection: sa.Connection, run_id: str, person: Person) -> Beginning | None:
    """What a run began with; None when it is gone, and for somebody who may not read its thread."""
    run = runs.get(connection, run_id)
    if run is None or visible_thread(connection, run.thread_id, person) is None:
        return None
    if run.trigger_id is not None:
        name = sa.select(triggers.c.name).where(triggers.c.id == run.trigger_id)
        return Beginning(trigger=connection.execute(name).scalar())
    written = messages_of_run(connection, run.id, run.thread_id)
    return Beginning(words=tuple((message.author, message.text) for message in written))


def _in_view(view: View) -> sa.ColumnElement[bool]:
    if view == "archived":
        return threads.c.archived == sa.true()
    if view == "unread":
        return UNREAD
    if view == "action":
        return WITH_ACTION
    return IN_INBOX


_COUNTED: tuple[View, ...] = ("all", "unread", "action")
_LENGTHS = {view: sa.select(sa.func.count()).select_from(threads).where(_in_view(view)) for view in _COUNTED}
_SUMS = sa.select(*(sa.func.count().filter(_in_view(view)).label(view) for view in _COUNTED)).select_from(
    threads
)


def counts(connection: sa.Connection, person: Person) -> dict[str, int]:
    """How many threads each view holds.

    An owner's are the lengths of the views' own indexes; other people's are counted in one walk over the
    threads that they see.
    """
    if person.role == "owner":
        return {view: connection.execute(query).scalar_one() for view, query in _LENGTHS.items()}
    return dict(connection.execute(_SUMS.where(visible_to(person))).one()._mapping)


def page(
    connection: sa.Connection, person: Person, view: View, *, limit: int, cursor: str | None, words: str
) -> Page:
    """One page of a view, or of the search in it when `words` is not empty."""
    limit = max(1, min(limit, MAX_PAGE))
    wanted = search_words(words)
    if wanted:
        return _search(connection, person, view, wanted, limit, cursor)
    if words.strip():
        return Page((), None)  # only signs: nothing is stored that could be found by them
    sunk = _sunk(connection, person) if view == "action" else frozenset[str]()
    among_sunk = (cursor or "").startswith(_SUNK)
    after = (cursor or "").removeprefix(_SUNK)
    rows: list[Any] = []
    if not among_sunk:
        others = threads.c.id.not_in(sunk) if sunk else sa.true()
        rows += _rows(connection, person, view, others, limit + 1, after)
    if sunk and len(rows) <= limit:
        left = limit + 1 - len(rows)
        rows += _rows(connection, person, view, threads.c.id.in_(sunk), left, after if among_sunk else "")
    shown = tuple(thread_of(row) for row in rows[:limit])
    if len(rows) <= limit:
        return Page(shown, None)
    last = shown[-1]
    mark = _SUNK if last.id in sunk else ""
    return Page(shown, f"{mark}{to_microseconds(last.last_activity_at)}.{last.id}")


def _rows(
    connection: sa.Connection,
    person: Person,
    view: View,
    among: sa.ColumnElement[bool],
    limit: int,
    after: str,
) -> list[Any]:
    """Rows of a view, newest first, behind the one that the cursor `after` names."""
    query = (
        sa.select(threads)
        .where(_in_view(view), visible_to(person), among)
        .order_by(threads.c.last_activity_at.desc(), threads.c.id.desc())
        .limit(limit)
    )
    if after:
        at, last_id = _parse_cursor(after)
        query = query.where(
            sa.or_(
                threads.c.last_activity_at < at,
                sa.and_(threads.c.last_activity_at == at, threads.c.id < last_id),
            )
        )
    return list(connection.execute(query))


def _sunk(connection: sa.Connection, person: Person) -> frozenset[str]:
    """Threads in which the person put off all that waits: they stand below the others."""
    snoozed = sa.and_(
        reminders.c.action_id == actions.c.id,
        reminders.c.person == person.name,
        reminders.c.snoozed_until.is_not(None),
    )
    found = set(connection.execute(sa.select(actions.c.thread_id).join(reminders, snoozed)).scalars())
    if not found:
        return frozenset()
    others = sa.select(actions.c.thread_id).where(
        ACTION_PENDING, actions.c.thread_id.in_(found), ~sa.exists().where(snoozed)
    )
    return frozenset(found - set(connection.execute(others).scalars()))


def _parse_cursor(cursor: str) -> tuple[Any, str]:
    match = re.fullmatch(r"([0-9]{1,17})\.([0-9a-f-]{36})", cursor)  # 17 digits: the year 5138
    if match is None:
        raise Invalid("This cursor is not one of ours; start from the first page.", code="invalid_cursor")
    return from_microseconds(int(match[1])), match[2]


def search_words(text: str) -> list[str]:
    """The words of a search: letters and digits only, so that no query syntax can slip in."""
    folded = unicodedata.normalize("NFKC", text).replace("\x00", " ")
    return re.findall(r"[^\W_]+", folded)[:_MAX_WORDS]


def _search(
    connection: sa.Connection, person: Person, view: View, words: list[str], limit: int, cursor: str | None
) -> Page:
    """Threads with a message (or title) that holds all the words, by newest such message.

    The full-text index is walked from the newest row; a thread is shown at its first hit only.
    """
    start = below = _parse_search_cursor(cursor)
    found: dict[str, int] = {}
    earlier: set[str] = set()  # a newer hit than the cursor's: on an earlier page already
    batch = limit * 4
    while len(found) <= limit:
        hits = _hits(connection, words, below, batch)
        if not hits:
            break
        # Each look at the full-text index starts anew: few looks also when most hits are not to be shown.
        batch = min(batch * 4, _LARGEST_BATCH)
        below = hits[-1].seq
        fresh = _shown(connection, person, view, {h.thread_id for h in hits} - found.keys() - earlier)
        if start is not None:
            earlier |= {i for i in fresh if _newer_hit(connection, words, i, start)}
        for hit in hits:
            if hit.thread_id in fresh - earlier:
                found.setdefault(hit.thread_id, hit.seq)
    chosen = dict(list(found.items())[:limit])
    rows = {t.id: t for t in _load(connection, list(chosen))}
    last = list(chosen.values())[-1] if len(found) > limit else None
    return Page(
        tuple(rows[i] for i in chosen if i in rows),
        f"s{last}" if last is not None else None,
        _load_hits(connection, list(chosen.values()), words),
    )


def _parse_search_cursor(cursor: str | None) -> int | None:
    if not cursor:
        return None
    match = re.fullmatch(r"s([0-9]{1,18})", cursor)
    if match is None:
        raise Invalid(
            "This cursor does not belong to this search; start from the first page.", code="invalid_cursor"
        )
    return int(match[1])


def _match(connection: sa.Connection, words: list[str]) -> tuple[str, str]:
    if connection.dialect.name == "postgresql":
        return "words @@ to_tsquery('simple', :query)", " & ".join(f"'{word}':*" for word in words)
    return (
        "seq IN (SELECT rowid FROM messages_fts WHERE messages_fts MATCH :query)",
        " ".join(f'"{word}"*' for word in words),
    )


def _hits(connection: sa.Connection, words: list[str], below: int | None, limit: int) -> list[Any]:
    condition, query = _match(connection, words)
    if connection.dialect.name == "sqlite":
        sql = (
            "SELECT m.seq AS seq, m.thread_id AS thread_id "
            "FROM messages_fts f JOIN messages m ON m.seq = f.rowid "
            "WHERE messages_fts MATCH :query AND f.rowid < :below ORDER BY f.rowid DESC LIMIT :limit"
        )
    else:
        sql = (
            f"SELECT seq, thread_id FROM messages WHERE {condition} AND seq < :below "
            "ORDER BY seq DESC LIMIT :limit"
        )
    values = {"query": query, "below": below if below is not None else 2**62, "limit": limit}
    return list(connection.execute(sa.text(sql), values))


def _newer_hit(connection: sa.Connection, words: list[str], thread_id: str, from_seq: int) -> bool:
    condition, query = _match(connection, words)
    sql = f"SELECT 1 FROM messages WHERE thread_id = :thread AND seq >= :seq AND {condition} LIMIT 1"
    return (
        connection.execute(sa.text(sql), {"thread": thread_id, "seq": from_seq, "query": query}).first()
        is not None
    )


def _shown(connection: sa.Connection, person: Person, view: View, thread_ids: set[str]) -> set[str]:
    shown: set[str] = set()
    for some in batched(sorted(thread_ids)):
        query = sa.select(threads.c.id).where(threads.c.id.in_(some), _in_view(view), visible_to(person))
        shown.update(connection.execute(query).scalars())
    return shown


def _load(connection: sa.Connection, thread_ids: list[str]) -> list[Thread]:
    rows = connection.execute(sa.select(threads).where(threads.c.id.in_(thread_ids)))
    return [thread_of(row) for row in rows]


def _load_hits(connection: sa.Connection, seqs: Sequence[int], words: Sequence[str]) -> dict[str, Hit]:
    text = sa.func.substr(messages.c.text, 1, _SEARCHED_TEXT).label("text")
    query = sa.select(messages.c.thread_id, messages.c.seq, messages.c.role, text).where(
        messages.c.seq.in_(seqs)
    )
    return {
        row.thread_id: Hit(row.seq, row.role, excerpt(row.text, words)) for row in connection.execute(query)
    }
