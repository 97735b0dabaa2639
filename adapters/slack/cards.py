"""What does a decision look like in a message and on the Home tab? Pure.

Everything is shown, or Approve and Edit are not offered and Review leads to the page that shows it. A button
carries the action and the digest of what is shown, so that a click can only ever mean this.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from pizzabot.approvals.forms import fields
from pizzabot.approvals.showing import Shown, server_name, shown, tool_name
from pizzabot.messages import Action, ActionKind, ActionState, Verdict
from pizzabot.text import exact, visible

from . import modals, words
from .blocks import (
    Block,
    actions,
    button,
    context,
    leaf,
    mrkdwn,
    option,
    plain_text,
    preformatted,
    rich_section,
    rich_text,
    section,
    select,
    shortened,
    size_of,
)
from .text import escaped

# What one looks through before pressing a button; with more, the card only leads to the page.
_SHOWN_CHARACTERS = 4_000
_SHOWN_LINES = 200
_SHOWN_ARGUMENTS = 30
WEIGHT = 12_500  # of JSON, of which a message takes little more
_DECIDE = "pizza_decide_"
_SNOOZE = "pizza_snooze."
# What is understood by `approvals.when`, in the zone of whoever chooses it.
_LATER: Mapping[str, str] = {
    "In an hour": "1h",
    "This evening": "today evening",
    "Tomorrow morning": "tomorrow morning",
    "Next Monday": "next monday",
}
REVIEW, GO_TO_CARD = "pizza_review", "pizza_review.card"
STYLES: Mapping[Verdict, Literal["primary", "danger"]] = {
    Verdict.APPROVE: "primary",
    Verdict.REJECT: "danger",
}
_REASON_SHOWN = 1_000
_SNOOZES_SHOWN = 5  # of at most ten elements that a context has
_WHY_SHOWN = 600
_FACT_SHOWN, _WAS_SHOWN = 200, 100
_NOTIFIED = 600  # a message takes 4,000 characters of text, of which five may stand for one


@dataclass(frozen=True, slots=True)
class Pressed:
    """What a button on a card says."""

    verdict: Verdict
    action_id: str
    digest: str


def action_id_of(verdict: Verdict, action: str) -> str:
    """The name of a verdict's button; no other one in a view has it."""
    return f"{_DECIDE}{verdict}.{action}"


def pressed(action_id: str, value: str) -> Pressed | None:
    """What a pressed button says; None when it is none of ours."""
    word, (action, _, digest) = action_id.removeprefix(_DECIDE).partition(".")[0], value.partition(" ")
    if not action_id.startswith(_DECIDE) or word not in list(Verdict) or not action:
        return None
    return Pressed(Verdict(word), action, digest)


@dataclass(frozen=True, slots=True)
class PutOff:
    """What somebody chose in the menu Snooze of a card; `when` is in words."""

    action_id: str
    when: str


def put_off(action_id: str, value: str) -> PutOff | None:
    """What was chosen in a menu; None when no card offers it."""
    action = action_id.removeprefix(_SNOOZE).partition(".")[0]
    if not action_id.startswith(_SNOOZE) or not action or value not in _LATER.values():
        return None
    return PutOff(action, value)


def _snooze(action: Action) -> Block:
    # Under a new name after each change: Slack keeps what was chosen, and it could not be chosen anew.
    name = f"{_SNOOZE}{action.id}.{action.revision}"
    return select(name, "Snooze", [option(text, when) for text, when in _LATER.items()])


def is_shown(given: list[Shown]) -> bool:
    """Whether all arguments fit on a card."""
    length = sum(len(visible(arg.name)) + len(arg.text) for arg in given)
    lines = sum(1 + arg.text.count("\n") for arg in given)
    return length <= _SHOWN_CHARACTERS and lines <= _SHOWN_LINES and len(given) <= _SHOWN_ARGUMENTS


def shows_all(action: Action) -> bool:
    """Whether a card shows all of an action's arguments, so that it can be approved here."""
    return is_shown(_given(action))


def card(action: Action, *, title: str, page: str, link: str | None = None) -> tuple[str, list[Block]]:
    """An action's card, and its text for notifications.

    `title` is the thread's, `page` the address of the action's page, `link` that of its conversation, for a
    card that stands elsewhere.
    """
    title = shortened(visible(title), 150)
    text = f"{words.outcome(action)}: {tool_name(action.tool)} ({title})"
    if action.state is ActionState.PENDING:
        text = f"Decision needed: {visible(action.title)} ({title})"
    blocks = _card(action, title, page, fits=is_shown(_given(action)))
    if size_of(blocks) > WEIGHT:
        blocks = _card(action, title, page, fits=False)
    if link is not None:
        blocks.append(context(mrkdwn(f"<{link}|The conversation>")))
    return escaped(shortened(text, _NOTIFIED)), blocks


def reminder(
    action: Action, now: datetime, *, title: str, page: str, link: str | None = None
) -> tuple[str, list[Block]]:
    """A short word that an action still waits, or that it does no more; `link` is that of its card."""
    title, asked = shortened(visible(title), 150), shortened(visible(action.title), 300)
    if action.state is ActionState.PENDING:
        since = words.spoken(now - (action.waiting_since or action.created_at))
        said, mark = f"Still waiting for a decision, for {since} now", ":hourglass_flowing_sand:"
    else:
        said, mark = words.outcome(action), ":white_check_mark:"
        if action.state is ActionState.EXPIRED:
            mark = ":hourglass:"
    head = f"{mark} *{escaped(visible(said))}*: {escaped(asked)}"
    standing = words.standing(action) if action.state is ActionState.PENDING else []
    facts = [plain_text(title), *(plain_text(shortened(fact, 500)) for fact in standing)]
    facts += [mrkdwn(fact) for fact in _times(action)]
    blocks: list[Block] = [section(mrkdwn(head)), context(*facts)]
    if action.is_open:
        elements = [button("Review", REVIEW, url=page)]
        if link is not None:
            elements.insert(0, button("Go to the card", GO_TO_CARD, url=link))
        blocks.append(actions(f"reminder {action.id}", elements))
    return escaped(shortened(f"{said}: {asked} ({title})", _NOTIFIED)), blocks


def _times(action: Action) -> list[str]:
    """What the clock has in store for an action, in the reader's own zone."""
    if action.state is not ActionState.PENDING:
        return []
    times = [
        f"Put off by {escaped(shortened(visible(s.person), 100))} until {words.moment(s.until)}"
        for s in action.snoozes[:_SNOOZES_SHOWN]
    ]
    return [*times, f"Expires {words.moment(action.expires_at)}"] if action.expires_at is not None else times


def _card(action: Action, title: str, page: str, *, fits: bool) -> list[Block]:
    is_open = action.state is ActionState.PENDING
    ending = _buttons(action, page, fits=fits) if is_open else _ended(action)
    return [*_question(action, title), *_arguments(action, fits=fits), *ending]


def _question(action: Action, title: str) -> list[Block]:
    heading = rich_section(leaf(shortened(visible(action.title), 300), "bold"))
    facts = [title]
    if (server := server_name(action.tool)) is not None:
        facts.append(f"{tool_name(action.tool)} of {server}")
    if action.skill not in (None, server):
        facts.append(f"skill {visible(str(action.skill))}")
    if action.requested_by is not None:
        facts.append(f"asked by {visible(action.requested_by)}")
    told = " · ".join(shortened(fact, _FACT_SHOWN) for fact in facts)
    blocks = [rich_text(heading), context(plain_text(told))]
    if action.why:
        blocks.append(section(plain_text(shortened(visible(action.why, body=True), _WHY_SHOWN))))
    return blocks


def _given(action: Action) -> list[Shown]:
    return [shown(field) for field in fields(action.args_schema, action.args) if field.given]


def _arguments(action: Action, *, fits: bool) -> list[Block]:
    if action.kind is ActionKind.LIMIT:
        return []  # the question says it
    given = _given(action)
    if not given:
        return [context(plain_text("It takes no arguments."))]
    if not fits:
        return [_too_long(action)]
    return [rich_text(*(part for arg, was in _as_it_ran(action) for part in argument(arg, was)))]


def _too_long(action: Action) -> Block:
    length = sum(len(arg.text) for arg in _given(action))
    said = f"The arguments are too long to be shown here ({length:,} characters)."
    if action.state is ActionState.PENDING:
        said += " Review shows them all."
    return section(plain_text(said))


def _as_it_ran(action: Action) -> list[tuple[Shown, str | None]]:
    """The arguments, and where an edit changed one what it was before."""
    before = {arg.name: arg for arg in _given(action)}
    if action.final_args is None or action.state is not ActionState.EDITED:
        return [(arg, None) for arg in before.values()]
    ran = {f.name: shown(f) for f in fields(action.args_schema, action.final_args) if f.given}
    found = []
    for name in dict.fromkeys((*before, *ran)):
        was = before[name].text if name in before else "not given"
        now = ran.get(name, Shown(name, "left out"))
        found.append((now, was if now.text != was else None))
    return found


def argument(arg: Shown, was: str | None = None) -> list[Block]:
    """An argument with its value, and what that was before an edit."""
    # The name is a label of ours and the value is in code: neither is read for marks by Slack.
    name = exact(arg.name)
    changed = [leaf(f" (was {shortened(was, _WAS_SHOWN)})")] if was is not None else []
    if arg.is_long:
        return [rich_section(leaf(f"{name}:", "bold"), *changed), preformatted(arg.text or " ")]
    return [rich_section(leaf(f"{name}: ", "bold"), leaf(arg.text or '""', "code"), *changed, leaf("\n"))]


def _buttons(action: Action, page: str, *, fits: bool) -> list[Block]:
    editable = fits and modals.is_editable(fields(action.args_schema, action.args))
    value = f"{action.id} {action.digest}"
    elements = []
    for verdict in action.allowed_decisions:
        if verdict in (Verdict.APPROVE, Verdict.RETRY) and not fits:
            continue
        if verdict is Verdict.EDIT and not editable:
            continue
        style = STYLES.get(verdict)
        elements.append(
            button(words.LABELS[verdict], action_id_of(verdict, action.id), value=value, style=style)
        )
    elements += [button("Review", REVIEW, url=page), _snooze(action)]
    waits_for = " or ".join(action.approvers)
    blocks = [actions(f"decide {action.id}", elements)]
    if waits_for:
        blocks.append(context(plain_text(f"Waits for {shortened(visible(waits_for), 300)}.")))
    for said in words.standing(action):
        blocks.append(context(plain_text(shortened(said, 500))))
    if times := _times(action):
        blocks.append(context(*map(mrkdwn, times)))
    return blocks


def _ended(action: Action) -> list[Block]:
    blocks = [section(mrkdwn(f"*{escaped(visible(words.outcome(action)))}*"))]
    for label, text in (("Reason", action.reason), ("Response", action.response)):
        if text:
            blocks.append(
                context(plain_text(f"{label}: {shortened(visible(text, body=True), _REASON_SHOWN)}"))
            )
    return blocks
