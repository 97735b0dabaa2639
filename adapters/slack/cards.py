"""What does a decision look like in a message and on the Home tab? Pure.

Everything is shown, or Approve and Edit are not offered and Review leads to the page that shows it. A button
carries the action and the digest of what is shown, so that a click can only ever mean this.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pizzabot.approvals.forms import Field, fields
from pizzabot.approvals.showing import Shown, shown
from pizzabot.messages import Action, ActionKind, ActionState, Verdict
from pizzabot.text import visible

from . import words
from .blocks import (
    INPUT_TEXT,
    VIEW_BLOCKS,
    Block,
    actions,
    button,
    context,
    leaf,
    mrkdwn,
    plain_text,
    preformatted,
    rich_section,
    rich_text,
    section,
    shortened,
)
from .text import escaped

# What one looks through before pressing a button; with more, the card only leads to the page.
_SHOWN_CHARACTERS = 4_000
_SHOWN_ARGUMENTS = 30
_DECIDE = "pizza_decide_"
_STYLES: Mapping[Verdict, Literal["primary", "danger"]] = {
    Verdict.APPROVE: "primary",
    Verdict.REJECT: "danger",
}
_REASON_SHOWN = 1_000
_WHY_SHOWN = 600


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


def is_shown(given: list[Shown]) -> bool:
    """Whether all arguments fit on a card."""
    length = sum(len(arg.name) + len(arg.text) for arg in given)
    return length <= _SHOWN_CHARACTERS and len(given) <= _SHOWN_ARGUMENTS


def is_editable(proposed: tuple[Field, ...]) -> bool:
    """Whether a modal holds all of it: each value in an input, and all inputs in a view."""
    return len(proposed) < VIEW_BLOCKS - 5 and all(len(field.text) <= INPUT_TEXT for field in proposed)


def card(action: Action, *, title: str, page: str) -> tuple[str, list[Block]]:
    """An action's card, and its text for notifications.

    `title` is the thread's, `page` the address of the action's page.
    """
    title = shortened(visible(title), 150)
    if action.state is not ActionState.PENDING:
        said = words.outcome(action)
        text = f"{said}: {words.tool_name(action.tool)} ({title})"
        return escaped(text), [*_question(action, title), *_arguments(action), *_ended(action)]
    text = f"Decision needed: {visible(action.title)} ({title})"
    return escaped(text), [*_question(action, title), *_arguments(action), *_buttons(action, page)]


def _question(action: Action, title: str) -> list[Block]:
    heading = rich_section(leaf(shortened(visible(action.title), 300), "bold"))
    facts = [title]
    if (server := words.server_name(action.tool)) is not None:
        facts.append(f"{words.tool_name(action.tool)} of {server}")
    if action.skill is not None:
        facts.append(f"skill {action.skill}")
    if action.requested_by is not None:
        facts.append(f"asked by {action.requested_by}")
    blocks = [rich_text(heading), context(plain_text(visible(" · ".join(facts))))]
    if action.why:
        blocks.append(section(plain_text(shortened(visible(action.why, body=True), _WHY_SHOWN))))
    return blocks


def _given(action: Action) -> list[Shown]:
    return [shown(field) for field in fields(action.args_schema, action.args) if field.given]


def _arguments(action: Action) -> list[Block]:
    if action.kind is ActionKind.LIMIT:
        return []  # the question says it
    given = _given(action)
    if not given:
        return [context(plain_text("It takes no arguments."))]
    if not is_shown(given):
        length = sum(len(arg.text) for arg in given)
        said = f"The arguments are too long to be shown here ({length:,} characters). Review shows them all."
        return [section(plain_text(said))]
    shown_all = rich_text(*(part for arg in given for part in _argument(arg)))
    return [shown_all, *(section(plain_text(f"{n} became {text}")) for n, text in _changed(action).items())]


def _changed(action: Action) -> dict[str, str]:
    """The arguments that an edit changed, as they ran; short ones only, the page shows the rest."""
    if action.final_args is None or action.state is not ActionState.EDITED:
        return {}
    before = {arg.name: arg.text for arg in _given(action)}
    after = {f.name: shown(f).text for f in fields(action.args_schema, action.final_args) if f.given}
    found = {n: t for n, t in after.items() if before.get(n) != t} | {
        name: "left out" for name in before if name not in after
    }
    return {name: shortened(text, 300) for name, text in list(found.items())[:10]}


def _argument(arg: Shown) -> list[Block]:
    # The name is a label of ours and the value is in code: neither is read for marks by Slack.
    if arg.is_long:
        return [rich_section(leaf(f"{visible(arg.name)}:", "bold")), preformatted(arg.text or " ")]
    return [rich_section(leaf(f"{visible(arg.name)}: ", "bold"), leaf(arg.text or '""', "code"), leaf("\n"))]


def _buttons(action: Action, page: str) -> list[Block]:
    fits = is_shown(_given(action))
    editable = fits and is_editable(fields(action.args_schema, action.args))
    value = f"{action.id} {action.digest}"
    elements = []
    for verdict in action.allowed_decisions:
        if verdict in (Verdict.APPROVE, Verdict.RETRY) and not fits:
            continue
        if verdict is Verdict.EDIT and not editable:
            continue
        style = _STYLES.get(verdict)
        elements.append(
            button(words.LABELS[verdict], action_id_of(verdict, action.id), value=value, style=style)
        )
    elements.append(button("Review", "pizza_review", url=page))
    waits_for = " or ".join(action.approvers)
    blocks = [actions(f"decide {action.id}", elements)]
    if waits_for:
        blocks.append(context(plain_text(f"Waits for {visible(waits_for)}.")))
    return blocks


def _ended(action: Action) -> list[Block]:
    blocks = [section(mrkdwn(f"*{escaped(visible(words.outcome(action)))}*"))]
    for label, text in (("Reason", action.reason), ("Response", action.response)):
        if text:
            blocks.append(
                context(plain_text(f"{label}: {shortened(visible(text, body=True), _REASON_SHOWN)}"))
            )
    return blocks
