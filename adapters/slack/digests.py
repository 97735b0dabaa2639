"""What does a digest look like in Slack? Pure.

Each item shows all of its arguments and has the buttons that its number offers, or it only leads to its page.
A message takes fifty blocks and so much text: what does not fit is counted, and its numbers decide nothing
here. Which ones fit is settled when it is sent: what becomes shorter later makes room for no others.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pizzabot.digests import showing
from pizzabot.digests.showing import Line
from pizzabot.messages import ActionState, Digest, DigestItem
from pizzabot.text import visible

from . import words
from .blocks import (
    MESSAGE_BLOCKS,
    Block,
    actions,
    button,
    context,
    header,
    leaf,
    mrkdwn,
    plain_text,
    rich_section,
    rich_text,
    section,
    shortened,
    size_of,
)
from .cards import REVIEW, STYLES, WEIGHT, action_id_of, argument
from .text import escaped

_THREAD = 120
_ANY_URL = f"https://{'x' * 60}.example"  # longer than most, so that what fits does not depend on it


def digest(listed: Digest, url: str, numbers: Collection[int]) -> tuple[str, list[Block]]:
    """A digest as blocks with the items of these numbers, and its text for notifications.

    `url` is that of the web view.
    """
    blocks = _blocks(only(listed, numbers), url, len(listed.items))
    return escaped(f"Digest: {showing.summary(listed)}"), blocks


def only(listed: Digest, numbers: Collection[int]) -> Digest:
    """The digest with the items of these numbers alone."""
    return replace(listed, items=tuple(item for item in listed.items if item.number in numbers))


def numbers_key(digest_id: str) -> str:
    """The key of the note that says which numbers a digest's message holds."""
    return f"listed/{digest_id}"


def noted(numbers: Collection[int]) -> str:
    """Numbers as that note has them."""
    return json.dumps(sorted(numbers))


def numbers_of(note: str | None) -> frozenset[int]:
    """The numbers that such a note holds; without one, none."""
    return frozenset(json.loads(note or "[]"))


def fitting(listed: Digest) -> frozenset[int]:
    """The numbers of the items that a message holds, whatever is decided about them meanwhile."""
    waiting = tuple(
        replace(item, action=replace(item.action, state=ActionState.PENDING)) for item in listed.items
    )
    around = _blocks(replace(listed, items=()), _ANY_URL, len(waiting))
    blocks, weight, count = len(around), size_of(around), 0
    for item, line in zip(waiting, showing.lines(replace(listed, items=waiting)), strict=True):
        found = _item(item, line, f"{_ANY_URL}/actions/{line.action.id}")
        blocks, weight = blocks + len(found), weight + size_of(found)
        if blocks > MESSAGE_BLOCKS or weight > WEIGHT:
            break
        count += 1
    return frozenset(item.number for item in listed.items[:count])


def _blocks(listed: Digest, url: str, all_items: int) -> list[Block]:
    told = showing.data(listed, url)
    summary = showing.summary(replace(listed, more_items=listed.more_items + all_items - len(listed.items)))
    blocks = [header(summary[0].upper() + summary[1:]), context(plain_text(told["at"]))]
    for item, line in zip(listed.items, showing.lines(listed), strict=True):
        blocks += _item(item, line, f"{url}/actions/{line.action.id}")
    more = listed.more_items + all_items - len(listed.items)
    if more:
        blocks.append(context(mrkdwn(f"And {more} more to decide in <{url}/?view=action|the web view>.")))
    if told["put_off"]:
        blocks.append(context(plain_text(told["put_off"])))
    blocks += _section("Failed", told["failed"], "why", told["more_failed"], f"{url}/")
    blocks += _section("Unread", told["unread"], "said", told["more_unread"], f"{url}/?view=unread")
    footer = [f"Used today: {told['used']}."] if told["used"] else []
    footer += (
        ["Next: " + " · ".join(f"{c['name']}, {c['at']}" for c in told["coming"])] if told["coming"] else []
    )
    return blocks + ([context(*map(plain_text, footer))] if footer else [])


def _item(item: DigestItem, line: Line, page: str) -> list[Block]:
    facts = " · ".join((*line.facts, showing.one_line(item.thread_title, _THREAD)))
    head = rich_section(leaf(f"{line.number}. {line.title}", "bold"), leaf(f"\n{facts}"))
    if not line.is_open:
        outcome = escaped(visible(words.outcome(line.action)))
        return [rich_text(head), context(mrkdwn(f"*{outcome}*"))]
    value = f"{line.action.id} {item.bound_to}"
    buttons = [
        button(
            words.LABELS[verdict],
            action_id_of(verdict, line.action.id),
            value=value,
            style=STYLES.get(verdict),
        )
        for verdict in line.offered
    ]
    review = button("Review", f"{REVIEW}.{line.action.id}", url=page)
    return [
        rich_text(head, *_arguments(line)),
        actions(f"decide {line.action.id}", [*buttons, review]),
    ]


def _arguments(line: Line) -> list[Block]:
    if line.arguments is None:
        return [rich_section(leaf("All arguments are on its page.", "italic"))]
    return [block for arg in line.arguments for block in argument(arg)]


def _section(title: str, rows: Sequence[Mapping[str, Any]], said: str, more: int, page: str) -> list[Block]:
    if not rows:
        return []
    items = [
        rich_section(
            {"type": "link", "url": row["page"], "text": row["title"]},
            leaf(f", {row['age']}" + (f": {shortened(row[said], 100)}" if row[said] else "")),
        )
        for row in rows
    ]
    listed = {"type": "rich_text_list", "style": "bullet", "elements": items}
    blocks = [section(mrkdwn(f"*{title} ({len(rows) + more})*")), rich_text(listed)]
    if more:
        blocks.append(context(mrkdwn(f"And {more} more in <{page}|the web view>.")))
    return blocks
