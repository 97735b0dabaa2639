"""What waits, what is new, what is there? The inbox, and what can be done to its rows."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, urlencode

from starlette.responses import Response

from pizzabot.approvals.forms import fields
from pizzabot.approvals.showing import shown
from pizzabot.errors import Invalid, NotFound
from pizzabot.inbox.excerpts import marked
from pizzabot.inbox.pages import MAX_SEARCH, View, search_words
from pizzabot.inbox.threads import one_line
from pizzabot.messages import ActionKind
from pizzabot.text import visible

from ..forms import Form
from .html import page, see_other
from .visit import Visit

ROWS = 30
_VIEWS: dict[View, str] = {"action": "Action", "unread": "Unread", "all": "All", "archived": "Archived"}
_SUMMARY = 100
# Bold, code and headings; the bars of a table, and the line under its head.
_LAYOUT = re.compile(r"\*\*|__|`+|(?<!\S)#{1,6}(?= )|\|(?:[ :]*-+[ :|-]*)?")
_CHANGES: dict[str, dict[str, bool]] = {
    "archive": {"archived": True},
    "unarchive": {"archived": False},
    "read": {"unread": False},
    "unread": {"unread": True},
}


async def show(visit: Visit) -> Response:
    """`GET /?view=&q=&cursor=`."""
    return await form(visit)


async def form(visit: Visit, status: int = 200, *, draft: str = "", problem: str | None = None) -> Response:
    """The inbox, also when what was written there could not be taken."""
    query = visit.request.query_params
    view: View = next((known for known in _VIEWS if known == query.get("view")), "all")
    words = query.get("q", "").strip()[:MAX_SEARCH]
    found = await visit.doors.reports.inbox(
        visit.person, view, limit=ROWS, cursor=query.get("cursor"), words=words
    )
    return await page(
        visit,
        "inbox",
        status,
        draft=draft,
        problem=problem,
        rows=[_row(row, search_words(words)) for row in found["threads"]],
        views=[
            (name, title, found["counts"].get(name), _link(name, words)) for name, title in _VIEWS.items()
        ],
        view=view,
        words=words,
        here=_link(view, words, query.get("cursor")),
        first=_link(view, words) if query.get("cursor") else None,
        older=_link(view, words, found["next_cursor"]) if found["next_cursor"] else None,
        done=await _done(visit),
        key=secrets.token_urlsafe(12),
    )


def _link(view: str, words: str, cursor: str | None = None) -> str:
    said = {"view": view if view != "all" else "", "q": words, "cursor": cursor or ""}
    wanted = urlencode({name: value for name, value in said.items() if value})
    return f"/?{wanted}" if wanted else "/"


def _row(row: dict[str, Any], words: list[str]) -> dict[str, Any]:
    """A thread as a row: its title and text in pieces, those that were searched for marked."""
    hit = row.get("hit") or {}
    link = f"/threads/{row['id']}"
    if hit.get("message_id"):
        link += f"?before={int(hit['message_id']) + 1}#m{hit['message_id']}"
    return row | {
        "link": link,
        "title_pieces": marked(row["title"], words),
        "pending": [action | {"summary": summary(action)} for action in row.get("pending", ())],
        "text_pieces": marked(hit.get("excerpt") or unmarked(row["last_message"]), words),
    }


def summary(action: Mapping[str, Any]) -> str:
    """Arguments on one short line, to tell what waits apart; the form has them in full. Of a limit, what
    Approve does."""
    if action["kind"] == ActionKind.LIMIT and action["why"]:
        return one_line(visible(action["why"]), _SUMMARY)
    read = (shown(field) for field in fields({}, action["args"]))
    line = ", ".join(f"{visible(argument.name)} {visible(argument.text)}" for argument in read)
    return one_line(line, _SUMMARY)


def unmarked(text: str) -> str:
    """The beginning of a Markdown text as a line to be skimmed: without the signs that only lay it out."""
    return re.sub(r"\s+", " ", _LAYOUT.sub(" ", text)).strip()


async def _done(visit: Visit) -> dict[str, Any] | None:
    """What the last form changed, to be told with a way back."""
    query = visit.request.query_params
    word, thread_id = query.get("done"), query.get("thread", "")
    if word == "delete":
        return {"word": word}
    if word not in _CHANGES:
        return None
    try:
        thread = await visit.doors.thread(thread_id, visit.person)
    except NotFound:
        return None
    return {"word": word, "thread": thread}


async def change(visit: Visit, sent: Form) -> Response:
    """`POST /inbox`: archive, unarchive, read or unread names a thread; `back` the page it was sent from."""
    asked = [name for name in _CHANGES if name in sent.texts]
    if len(asked) != 1:
        raise Invalid("The form says nothing that can be done; go back and press a button there.")
    word = asked[0]
    thread_id = sent.texts[word]
    changed = _CHANGES[word]
    await visit.doors.change_thread(
        thread_id, visit.person, archived=changed.get("archived"), unread=changed.get("unread")
    )
    return see_other(back_to(sent.texts.get("back", ""), done=word, thread=thread_id))


def back_to(sent_from: str, **told: str) -> str:
    """A page of the inbox again, with what was done; anything else that is named leads to the first page."""
    path, _, query = sent_from.partition("?")
    if path != "/":
        query = ""
    kept = {name: values[0] for name, values in parse_qs(query).items() if name in ("view", "q", "cursor")}
    return "/?" + urlencode(kept | told)
