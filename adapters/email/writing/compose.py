"""What do our mails say? Pure: values in, the bytes of a mail out.

Five mails: an answer of the agent, a notice, a request for a decision, the confirmation of one, a digest.
Each says the same as text and as HTML. Everything from outside is text: unseen characters are written out,
and our marker lines cannot be imitated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pizzabot.digests import showing
from pizzabot.messages import Action, ActionKind, ActionState, Attachment, Beginning, Digest, Verdict
from pizzabot.rendering import render_text
from pizzabot.text import storable

from ..letters import BEGIN_VALUES, END_VALUES, REPLY_ABOVE
from . import actions, body_html
from .assembling import assembled
from .body_text import columns, readable, wrapped
from .headers import Heads, one_line
from .imitations import body, harmless, line

# Gmail shows 102 KB of a mail's HTML and hides the rest behind a link.
_LONGEST = 95_000  # bytes of HTML
_BEGINNING = 4_000
_WHOLE_ANSWER = "answer.md"
_TONES: Mapping[ActionState, str] = {
    ActionState.APPROVED: "good",
    ActionState.EDITED: "good",
    ActionState.RESPONDED: "good",
    ActionState.REJECTED: "bad",
}


# How a reply to a list says each verdict. Behind words of ours: quoted back by mistake, they decide nothing.
_EXAMPLES: Mapping[Verdict, str] = {
    Verdict.APPROVE: "approve {}",
    Verdict.REJECT: "reject {}: your reason",
    Verdict.RETRY: "retry {}",
    Verdict.DONE: "done {}",
    Verdict.FAILED: "failed {}",
}


@dataclass(frozen=True, slots=True)
class Request:
    """A mail that asks for decisions. Only what is `offered` may be answered to it by mail: nothing when the
    arguments are too long to be shown, or when the reader may not decide.
    """

    data: bytes
    offered: tuple[Verdict, ...]


@dataclass(frozen=True, slots=True)
class _Said:
    text: str
    html: str

    @property
    def fits(self) -> bool:
        return len(self.html.encode()) <= _LONGEST


def answer(
    heads: Heads, markdown: str, *, page: str | None = None, attachments: Sequence[Attachment] = ()
) -> bytes:
    """What the agent answers; `page` is the URL of the conversation.

    An answer that clients would cut goes along as a file, and the mail shows where it begins.
    """
    whole = harmless(markdown).strip() or "(There is no text in this answer.)"
    said = _answer(heads, whole, page, note="")
    if not said.fits:
        note = f"This is only the beginning. All {len(whole):,} characters are in the file {_WHOLE_ANSWER}."
        said = _answer(heads, _beginning(whole), page, note)
        file = Attachment(_WHOLE_ANSWER, "text/markdown", storable(markdown).encode())
        attachments = (file, *attachments)
    return assembled(heads, said.text, said.html, attachments)


def notice(heads: Heads, headline: str, text: str, *, quoted: str = "", page: str | None = None) -> bytes:
    """A note of ours: a headline, paragraphs with blank lines between them, and the words it is about."""
    paragraphs = [body(part) for part in text.split("\n\n")]
    said = _said("notice", heads, page, headline=line(headline), paragraphs=paragraphs, quoted=body(quoted))
    return assembled(heads, said.text, said.html)


def request(
    heads: Heads,
    action: Action,
    *,
    title: str,
    may_decide: bool,
    page: str | None = None,
    thread_page: str | None = None,
    began: Beginning | None = None,
    deadline: datetime | None = None,
    since: datetime | None = None,
) -> Request:
    """Asks for a decision, or says that it waits for others.

    `title` is the conversation's and `thread_page` its URL, `page` the one where the action is shown and
    decided, `began` what its work began with, as far as the reader may know and does not. `deadline` is the
    moment at which it expires, `since` the one since which it waits, when it is asked again.
    """
    asked_with, is_cut = actions.asked_with(action, began)
    told = {
        "headline": line(action.title),
        "facts": actions.facts(action, title, began.trigger if began is not None else None),
        "asked_with": asked_with,
        "is_cut": is_cut,
        "thread_page": thread_page,
        # What a tool does its server says; what else is asked we say ourselves.
        "why": "" if action.kind is ActionKind.TOOL else body(action.why or ""),
        "kind": str(action.kind),
        "since": _moment(since, heads.date) if since is not None else "",
        "deadline": _moment(deadline, heads.date) if deadline is not None else "",
        "standing": [line(said) for said in actions.standing(action)],
        "waits_for": "" if may_decide else line(" or ".join(action.approvers) or "its approvers"),
    }
    written, come_back = actions.lines(action)
    allowed = action.allowed_decisions if may_decide else ()
    offered = tuple(verdict for verdict in allowed if come_back or verdict is not Verdict.EDIT)
    said = _said(
        "request",
        heads,
        page,
        **told,
        arguments=actions.proposed(action),
        lines=written,
        unseen=actions.unseen(written),
        phrases=actions.phrases(offered),
        can_edit=Verdict.EDIT in offered,
        too_long=0,
    )
    if said.fits:
        return Request(assembled(heads, said.text, said.html), offered)
    nothing: dict[str, Any] = {"arguments": [], "lines": [], "unseen": [], "phrases": [], "can_edit": False}
    said = _said("request", heads, page, **told, **nothing, too_long=actions.length(action))
    return Request(assembled(heads, said.text, said.html), ())


def confirmation(
    heads: Heads, action: Action, *, title: str, page: str | None = None, headline: str = ""
) -> bytes:
    """Repeats what was understood and done, or how else an action ended.

    `headline` says to whoever decided what was understood; for everybody else how it ended stands first.
    """
    is_waiting = action.state is ActionState.PENDING
    outcome = " · ".join(actions.standing(action)) if is_waiting else actions.outcome(action)
    told = {
        "headline": line(headline or actions.about(action)),
        "is_own": bool(headline),
        "facts": [("Question", line(action.title)), *actions.facts(action, title)],
        "outcome": harmless(outcome),
        "follows": actions.what_follows(action),
        "tone": _TONES.get(action.state, "wait"),
        "words": [
            (label, body(words))
            for label, words in (("Reason", action.reason), ("Response", action.response))
            if words
        ],
    }
    said = _said("confirmation", heads, page, **told, arguments=actions.as_it_ran(action), too_long=0)
    if not said.fits:
        said = _said("confirmation", heads, page, **told, arguments=[], too_long=actions.length(action))
    return assembled(heads, said.text, said.html)


def digest(heads: Heads, listed: Digest, *, url: str) -> Request:
    """What a person is told at regular times; `url` is that of the web view.

    `offered` is what may be said of any of its numbers: nothing when the mail could not show its arguments.
    """
    items = list(_items(listed, url))
    offered = tuple(dict.fromkeys(verdict for item in items for verdict in item["offered"]))
    told = {**showing.data(listed, url), "phrase": _by_number(items), "can_decide": bool(offered)}
    said = _said("digest", heads, url, **_harmless(told), items=items)
    if said.fits:
        return Request(assembled(heads, said.text, said.html), offered)
    bare = [item | {"arguments": None, "offered": ()} for item in items]
    said = _said("digest", heads, url, **_harmless(told | {"phrase": "", "can_decide": False}), items=bare)
    return Request(assembled(heads, said.text, said.html), ())


def _items(listed: Digest, url: str) -> Iterator[dict[str, Any]]:
    for item, shown in zip(listed.items, showing.lines(listed), strict=True):
        arguments = shown.arguments
        yield {
            "number": shown.number,
            "title": line(shown.title),
            "facts": line(", ".join(shown.facts)),
            "thread": line(showing.one_line(item.thread_title, 120)),
            "arguments": [actions.argument(arg) for arg in arguments] if arguments is not None else None,
            "offered": shown.offered,
            "outcome": "" if shown.is_open else harmless(actions.outcome(shown.action)),
            "tone": _TONES.get(shown.action.state, "wait"),
            "page": f"{url}/actions/{shown.action.id}",
        }


def _by_number(items: Sequence[Mapping[str, Any]]) -> str:
    """An example that fits the list, such as "approve 1; reject 2: your reason"."""
    parts: list[str] = []
    taken: set[int] = set()
    for verdict, form in _EXAMPLES.items():
        number = next(
            (i["number"] for i in items if verdict in i["offered"] and i["number"] not in taken), None
        )
        if number is not None:
            taken.add(number)
            parts.append(form.format(number))
    return "; ".join(parts)


def _harmless(told: Any) -> Any:
    """The same with every text of others made harmless."""
    if isinstance(told, str):
        return harmless(told)
    if isinstance(told, Mapping):
        return {name: _harmless(value) for name, value in told.items()}
    return [_harmless(value) for value in told] if isinstance(told, list) else told


def _answer(heads: Heads, markdown: str, page: str | None, note: str) -> _Said:
    # What stood between the letters of a marker is gone by now.
    text = harmless(readable(markdown))
    return _said("answer", heads, page, markdown=markdown, text=text, note=note)


def _beginning(markdown: str) -> str:
    """The beginning, up to the last end of a paragraph, line or word."""
    short = markdown[:_BEGINNING]
    ends = (at for end in ("\n\n", "\n", " ") if (at := short.rfind(end)) > _BEGINNING // 2)
    return short[: next(ends, _BEGINNING)] + "\n\n…"


def _said(template: str, heads: Heads, page: str | None, **told: Any) -> _Said:
    told |= {
        "page": page,
        "subject": one_line(heads.subject, 200),
        "reply_above": REPLY_ABOVE,
        "begin_values": BEGIN_VALUES,
        "end_values": END_VALUES,
    }
    text = render_text(f"email/{template}.txt.j2", **told, wrapped=wrapped, columns=columns)
    return _Said(f"{text.strip()}\n", body_html.page(template, **told))


def _moment(moment: datetime, of: datetime) -> str:
    """`Mon 30 Nov 2026, 02:04 CET`, in the zone of the mail's date."""
    local = moment.astimezone(of.tzinfo)
    return f"{local:%a} {local.day} {local:%b %Y, %H:%M %Z}"
