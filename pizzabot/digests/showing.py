"""How does a digest read? Pure: what every channel's template is filled with, and the message of its thread.

An item offers Approve only where all that would run stands beside its number; whatever is longer, or has
changed since it was listed, leads to its page.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from pizzabot.approvals.forms import fields
from pizzabot.approvals.showing import Shown, server_name, shown, tool_name
from pizzabot.clock import spoken_seconds
from pizzabot.inbox import threads
from pizzabot.messages import Action, ActionKind, ActionState, DayUsage, Digest, DigestItem, Verdict
from pizzabot.rendering import render_text
from pizzabot.text import visible

_MOST_CHARACTERS, _MOST_LINES, _MOST_ARGUMENTS = 400, 10, 8
_TITLE, _WHY, _EXCERPT = 120, 200, 120
_NEEDS_TO_BE_SEEN = (Verdict.APPROVE, Verdict.RETRY)
_BY_NUMBER = (Verdict.APPROVE, Verdict.REJECT, Verdict.RETRY, Verdict.DONE, Verdict.FAILED)
# Marks of Markdown inside of a line, which others' words must not make.
_MARKS = re.compile(r"[\\`*\[\]<>~|&]|(?<!\w)_|_(?!\w)")


@dataclass(frozen=True, slots=True)
class Line:
    """An item as it is shown. `arguments` are all of them, or None where they are not shown here."""

    number: int
    action: Action
    title: str
    facts: tuple[str, ...]
    arguments: tuple[Shown, ...] | None
    offered: tuple[Verdict, ...]

    @property
    def is_open(self) -> bool:
        return self.action.state is ActionState.PENDING


def brief(action: Action) -> tuple[Shown, ...] | None:
    """All arguments of an action, when they are few and short enough for a list; else None."""
    if action.kind is ActionKind.LIMIT:
        # Its arguments are numbers of ours; what Approve does stands in the sentence beside the question.
        return (Shown("About", one_line(action.why, _MOST_CHARACTERS)),) if action.why else ()
    given = tuple(shown(field) for field in fields(action.args_schema, action.args) if field.given)
    characters = sum(len(visible(arg.name)) + len(arg.text) for arg in given)
    lines = sum(1 + arg.text.count("\n") for arg in given)
    fits = characters <= _MOST_CHARACTERS and lines <= _MOST_LINES and len(given) <= _MOST_ARGUMENTS
    return given if fits else None


def offered(item: DigestItem) -> tuple[Verdict, ...]:
    """What may be decided about an item by its number, or by a button beside it."""
    action = item.action
    if action.state is not ActionState.PENDING or action.digest != item.bound_to:
        return ()
    is_seen = brief(action) is not None
    return tuple(
        verdict
        for verdict in action.allowed_decisions
        if verdict in _BY_NUMBER and (is_seen or verdict not in _NEEDS_TO_BE_SEEN)
    )


def lines(digest: Digest) -> list[Line]:
    """The items of a digest, by number."""
    return [_line(item, digest.made_at) for item in digest.items]


def _line(item: DigestItem, now: datetime) -> Line:
    action, facts = item.action, []
    if action.kind is not ActionKind.LIMIT:
        server = server_name(action.tool)
        facts.append(f"{tool_name(action.tool)} of {server}" if server else tool_name(action.tool))
    if action.requested_by is not None:
        facts.append(f"asked by {visible(action.requested_by)}")
    facts.append(f"{age(now - action.created_at)} ago")
    arguments = brief(action) if action.digest == item.bound_to else None
    return Line(item.number, action, one_line(action.title, _TITLE), tuple(facts), arguments, offered(item))


def age(passed: timedelta) -> str:
    """How long ago, in the largest unit."""
    return spoken_seconds(max(1, int(passed.total_seconds())))


def moment(at: datetime, zone: str) -> str:
    """A time in the person's zone: `Tue 3 Mar, 08:00`."""
    local = at.astimezone(ZoneInfo(zone))
    return f"{local:%a} {local.day} {local:%b, %H:%M}"


def one_line(text: str, longest: int) -> str:
    """Others' words on one line, all of them visible, the cut marked."""
    return threads.one_line(visible(" ".join(text.split())), longest)


def spent(usage: DayUsage) -> str:
    """What was used today."""
    money = f"${usage.cost_usd:,.2f}" if usage.cost_usd is not None else "price not known"
    everybody = " by everybody" if usage.of_everybody else ""
    return f"{usage.tokens:,} token{'' if usage.tokens == 1 else 's'}, {money}{everybody}"


def summary(digest: Digest) -> str:
    """A digest in one line: "3 to decide, 1 failed, 2 unread"."""
    counted = (
        (len(digest.items) + digest.more_items, "to decide"),
        (len(digest.failed) + digest.more_failed, "failed"),
        (len(digest.unread) + digest.more_unread, "unread"),
    )
    return ", ".join(f"{count} {what}" for count, what in counted if count) or "nothing new"


def data(digest: Digest, url: str) -> Mapping[str, Any]:
    """What every template of a digest is filled with, apart from its items; `url` is that of the web view."""
    return {
        "summary": summary(digest),
        "person": one_line(digest.person, _TITLE),
        "at": moment(digest.made_at, digest.zone),
        "items_count": len(digest.items) + digest.more_items,
        "more_items": digest.more_items,
        "put_off": f"{digest.put_off} put off until later." if digest.put_off else "",
        "unread": [
            {
                "title": one_line(thread.title, _TITLE) or "(no title)",
                "said": one_line(thread.last_message, _EXCERPT),
                "age": f"{age(digest.made_at - thread.at)} ago",
                "page": f"{url}/threads/{thread.thread_id}",
            }
            for thread in digest.unread
        ],
        "unread_count": len(digest.unread) + digest.more_unread,
        "more_unread": digest.more_unread,
        "failed": [
            {
                "title": one_line(failure.title, _TITLE) or "(no title)",
                "why": one_line(failure.why, _WHY),
                "age": f"{age(digest.made_at - failure.at)} ago",
                "page": f"{url}/threads/{failure.thread_id}" if failure.thread_id else f"{url}/triggers",
            }
            for failure in digest.failed
        ],
        "failed_count": len(digest.failed) + digest.more_failed,
        "more_failed": digest.more_failed,
        "used": spent(digest.usage) if digest.usage is not None else "",
        "coming": [
            {"name": one_line(trigger.name, _TITLE), "at": moment(trigger.at, digest.zone)}
            for trigger in digest.coming
        ],
        "inbox": url,
    }


def message(digest: Digest, url: str) -> str:
    """A digest as the message of its thread, in Markdown with links into the web view."""
    items = [
        {
            "number": line.number,
            "title": line.title,
            "thread": one_line(item.thread_title, _TITLE) or "(no title)",
            "facts": line.facts,
            "arguments": line.arguments,
            "page": f"{url}/actions/{line.action.id}",
        }
        for item, line in zip(digest.items, lines(digest), strict=True)
    ]
    return render_text(
        "digest/digest.md.j2", **data(digest, url), items=items, literal=literal, code=code
    ).strip()


def literal(text: str) -> str:
    """Others' words within a line of Markdown, as they are."""
    return _MARKS.sub(r"\\\g<0>", text)


def code(text: str) -> str:
    """An argument as code within a line."""
    line = visible(text)
    longest = max((len(run) for run in re.findall("`+", line)), default=0)
    if not longest:
        return f"`{line}`" if line.strip() else '`""`'
    fence = "`" * (longest + 1)
    return f"{fence} {line} {fence}"
