"""What stands on a person's Home tab? The inbox: Action with buttons, Unread, All, and what steers. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pizzabot.messages import Action
from pizzabot.text import visible

from .blocks import (
    Block,
    actions,
    button,
    confirm,
    context,
    divider,
    header,
    input_block,
    mrkdwn,
    plain_text,
    section,
    shortened,
)
from .cards import card
from .rows import row
from .text import escaped

MARK_READ, MARK_ALL_READ = "pizza_mark_read", "pizza_mark_all_read"
STOP_ALL, RESUME_ALL = "pizza_stop_all", "pizza_resume_all"
SEARCH, CLEAR = "pizza_search", "pizza_clear"
SEARCH_BLOCK = "search"

ACTIONS, UNREAD, ALL = 6, 10, 15  # how many of each are asked for and shown
_VIEW_CHARACTERS = 240_000
_WORDS = 200


@dataclass(frozen=True, slots=True)
class Inbox:
    """What the Home tab shows. Threads are as `rows.row` takes them."""

    person: str
    is_owner: bool
    url: str
    actions: Sequence[tuple[Action, str]] = ()  # each with its thread's title
    unread: Sequence[Mapping[str, Any]] = ()
    threads: Sequence[Mapping[str, Any]] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    usage_today: str = ""
    stopped: Mapping[str, Any] | None = None
    words: str = ""  # of a search


def home(inbox: Inbox) -> Mapping[str, Any]:
    """The view; never more than Slack takes."""
    for most in (ACTIONS, 2, 0):  # cards are all that can be long
        waiting = _waiting(inbox, most)
        blocks = [*_steering(inbox), *waiting, *_unread(inbox), *_all(inbox), *_footer(inbox)]
        if len(json.dumps(blocks)) <= _VIEW_CHARACTERS:
            break
    return {"type": "home", "blocks": blocks}


def _steering(inbox: Inbox) -> list[Block]:
    blocks: list[Block] = []
    if inbox.stopped is not None:
        by = escaped(visible(str(inbox.stopped["person"])))
        blocks.append(section(mrkdwn(f"*Everything is stopped* by {by}. What arrives is kept and waits.")))
    if not inbox.is_owner:
        return blocks
    if inbox.stopped is not None:
        return [*blocks, actions("steering", [button("Resume", RESUME_ALL, style="primary")])]
    sure = confirm(
        "Stop everything?",
        "All runs of all people stop before their next step, and none starts until you resume.",
        "Stop everything",
        "Leave it running",
    )
    return [actions("steering", [button("Stop everything", STOP_ALL, style="danger", confirm=sure)])]


def _waiting(inbox: Inbox, most: int) -> list[Block]:
    count = inbox.counts.get("action", len(inbox.actions))
    blocks = [header(f"Action ({count})" if count else "Action")]
    if not inbox.actions:
        return [*blocks, context(plain_text("Nothing waits for you."))]
    for action, title in inbox.actions[:most]:
        _, shown = card(action, title=title, page=f"{inbox.url}/actions/{action.id}")
        blocks += [*shown, divider()]
    return [*blocks, *_more(count - min(most, len(inbox.actions)), inbox)]


def _unread(inbox: Inbox) -> list[Block]:
    count = inbox.counts.get("unread", len(inbox.unread))
    blocks = [header(f"Unread ({count})" if count else "Unread")]
    if not inbox.unread:
        return [*blocks, context(plain_text("You have seen everything."))]
    if any(thread["owner"] == inbox.person for thread in inbox.unread):
        blocks.append(actions("unread", [button("Mark all of mine read", MARK_ALL_READ)]))
    for thread in inbox.unread[:UNREAD]:
        read = button("Mark read", f"{MARK_READ}.{thread['id']}", value=str(thread["id"]))
        blocks += [row(thread, person=inbox.person), actions(f"read {thread['id']}", [read])]
    return [*blocks, *_more(count - min(UNREAD, len(inbox.unread)), inbox)]


def _all(inbox: Inbox) -> list[Block]:
    element: Block = {
        "type": "plain_text_input",
        "action_id": SEARCH,
        "placeholder": plain_text("Words to look for", 150),
        "dispatch_action_config": {"trigger_actions_on": ["on_enter_pressed"]},
        "max_length": _WORDS,
    }
    if inbox.words:
        element["initial_value"] = inbox.words[:_WORDS]
    blocks = [header("All"), input_block(SEARCH_BLOCK, "Search", element, optional=True, dispatch=True)]
    if inbox.words:
        said = f"Threads with {shortened(visible(inbox.words), 100)}:"
        blocks.append(section(plain_text(said), button("Show all", CLEAR)))
    if not inbox.threads:
        nothing = "No thread has these words." if inbox.words else "Write me a message to begin."
        return [*blocks, context(plain_text(nothing))]
    blocks += [row(thread, person=inbox.person) for thread in inbox.threads[:ALL]]
    rest = 0 if inbox.words else inbox.counts.get("all", 0) - min(ALL, len(inbox.threads))
    return [*blocks, *_more(rest, inbox)]


def _more(count: int, inbox: Inbox) -> list[Block]:
    if count <= 0:
        return []
    return [context(mrkdwn(f"{count} more in <{inbox.url}/|the web view>."))]


def _footer(inbox: Inbox) -> list[Block]:
    return [divider(), context(plain_text(inbox.usage_today or "Nothing was used today."))]
