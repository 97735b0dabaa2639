"""How is a digest made? One transaction: what there is to tell, its message, and its rows of the outbox.

the person's rows -> a digest -> empty? nothing is sent
                              -> a message in their thread "Digest" -> each place where they are told
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from pizzabot import audit
from pizzabot.agent import activity
from pizzabot.approvals import store as actions
from pizzabot.digests import showing, store
from pizzabot.ids import new_id
from pizzabot.inbox import pages, threads
from pizzabot.messages import DayUsage, Digest, DigestItem, UnreadThread
from pizzabot.outbox import recipients
from pizzabot.outbox import store as outbox
from pizzabot.people import People, Person, may_administer

TITLE = "Digest"
MOST_ITEMS, MOST_UNREAD, MOST_FAILED, MOST_COMING = 20, 10, 10, 5
_FIRST, _LONGEST = timedelta(days=1), timedelta(days=7)  # how far back failures are told


def make(
    connection: sa.Connection,
    person: Person,
    people: People,
    channels: Mapping[str, recipients.Reaches],
    url: str,
    now: datetime,
) -> Digest | None:
    """Tell the person what there is to tell; None when there is nothing, and then nothing is stored."""
    digest = gathered(connection, person, people, now)
    if digest.is_empty:
        return None
    thread = threads.get(connection, digest.thread_id)
    text = showing.message(digest, url)
    seq = threads.add_message(
        connection, digest.thread_id, now, role="notice", author=threads.AGENT_NAME, text=text
    )
    store.put(connection, digest, seq)
    places = places_of(person, channels)
    if places and thread is not None:
        # They are told elsewhere: the inbox need not call it unread work besides.
        threads.mark(connection, thread.id, unread=thread.unread, archived=None)
    for place in places:
        outbox.enqueue(
            connection,
            now,
            key=f"digest/{digest.id}/{place.channel}/{place.address}",
            channel=place.channel,
            address=place.address,
            kind="digest",
            thread_id=digest.thread_id,
            person=person.name,
            message_seq=seq,
            digest_id=digest.id,
        )
    audit.append(
        connection,
        now,
        actor=threads.AGENT_NAME,
        via=threads.UNATTENDED,
        event="digest.made",
        subject=digest.id,
        data={
            "person": person.name,
            "thread": digest.thread_id,
            "actions": [i.action.id for i in digest.items],
        },
    )
    return digest


def places_of(person: Person, channels: Mapping[str, recipients.Reaches]) -> list[recipients.Place]:
    """Where the person's digests go: where `notify.digest` says, else where results do, else the first place
    that reaches them."""
    wanted = person.notify.digest
    if wanted is None:
        wanted = person.notify.unread or None
    return recipients.places_of(person, wanted, channels)


def gathered(connection: sa.Connection, person: Person, people: People, now: datetime) -> Digest:
    """What there is to tell the person now. Their thread is there afterwards, when there is something."""
    before = store.newest_of(connection, person.name)
    since = max(before.made_at, now - _LONGEST) if before is not None else now - _FIRST
    items, more_items, put_off = _items(connection, person, people, now)
    unread, more_unread = store.unread_of(connection, person.name, MOST_UNREAD, before)
    failed = store.failed_since(connection, person.name, since)
    told = {failure.thread_id for failure in failed[:MOST_FAILED]}
    digest = Digest(
        id=new_id(),
        person=person.name,
        thread_id="",
        made_at=now,
        since=since,
        zone=person.timezone,
        items=items,
        more_items=more_items,
        put_off=put_off,
        # What failed is unread as well; it is told once.
        unread=tuple(
            UnreadThread(t.id, t.title, t.last_message, t.last_activity_at)
            for t in unread
            if t.id not in told
        ),
        more_unread=more_unread,
        failed=tuple(failed[:MOST_FAILED]),
        more_failed=max(0, len(failed) - MOST_FAILED),
        usage=_usage(connection, person, now),
        coming=tuple(store.coming_for(connection, person.name, MOST_COMING)),
    )
    return digest if digest.is_empty else replace(digest, thread_id=_thread(connection, person, now))


def _items(
    connection: sa.Connection, person: Person, people: People, now: datetime
) -> tuple[tuple[DigestItem, ...], int, int]:
    """What the person is to decide, the longest waiting first, how much more there is, and what they put off.

    What they approved already waits for others, not for them.
    """
    waiting = [
        one
        for one in actions.waiting(connection, pages.visible_to(person), person.name, now)
        if people.decides(person, one.approvers, one.owner, one.quorum) and not one.is_approved
    ]
    theirs = [one for one in waiting if not one.is_put_off]
    found: list[DigestItem] = []
    for one in theirs[:MOST_ITEMS]:
        action = actions.get(connection, one.action_id)
        thread = threads.get(connection, action.thread_id) if action is not None else None
        if action is not None and thread is not None:
            found.append(DigestItem(len(found) + 1, action, thread.title, action.digest))
    return tuple(found), len(theirs) - len(found), len(waiting) - len(theirs)


def _usage(connection: sa.Connection, person: Person, now: datetime) -> DayUsage | None:
    """Since midnight where the person is; of everybody for those who administer."""
    midnight = now.astimezone(ZoneInfo(person.timezone)).replace(hour=0, minute=0, second=0, microsecond=0)
    everybody = may_administer(person)
    rows = [
        row for row in activity.usage_since(connection, midnight) if everybody or row["person"] == person.name
    ]
    if not rows:
        return None
    costs = [row["cost_usd"] for row in rows]
    return DayUsage(
        tokens=sum(row["input_tokens"] + row["output_tokens"] for row in rows),
        cost_usd=None if None in costs else sum(costs),
        of_everybody=everybody,
    )


def _thread(connection: sa.Connection, person: Person, now: datetime) -> str:
    """The thread of the person's digests."""
    address = f"digest/{person.name.casefold()}"
    known = threads.at_address(connection, threads.UNATTENDED, address)
    return known or threads.create(
        connection,
        now,
        owner=person.name,
        channel=threads.UNATTENDED,
        address=address,
        title=TITLE,
        title_source="user",
    )
