"""What is asked, exactly, and how is it answered? The approval form, also where links of cards lead.

    arguments -> typed fields -> what was typed -> arguments of the tool's types, or an error at the field

Approve decides on what was proposed, so it is refused when a field was changed; Approve edited is refused
when none was. The digest of what was shown goes along.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from pizzabot.approvals.forms import Field, FieldKind, Filled, fields, fill
from pizzabot.errors import Conflict, Invalid
from pizzabot.messages import Decision, Verdict

from ..forms import Form
from .html import page, see_other
from .visit import VIA, Visit, local_path

# A card in a thread shows so many characters of arguments; on more of them it only leads to the form.
_CARD_CHARACTERS = 2000
_LABELS = {
    Verdict.APPROVE: "Approve",
    Verdict.EDIT: "Approve edited",
    Verdict.REJECT: "Reject",
    Verdict.RESPOND: "Respond",
    Verdict.RETRY: "Retry",
    Verdict.DONE: "It was done",
    Verdict.FAILED: "It failed",
}


def card(action: Mapping[str, Any]) -> dict[str, Any]:
    """An action as a thread shows it, and whether it is short enough to be decided there."""
    shown = fields(action["args_schema"], action["args"])
    length = sum(len(field.name) + len(field.text) for field in shown)
    return {**action, "fields": [f for f in shown if f.given], "is_short": length <= _CARD_CHARACTERS}


async def show(visit: Visit) -> Response:
    """`GET /actions/{action_id}`."""
    return await _form(visit, await _action(visit))


async def _action(visit: Visit) -> dict[str, Any]:
    return await visit.doors.reports.action(visit.person, visit.id("action_id", "action"))


async def _form(
    visit: Visit,
    action: Mapping[str, Any],
    status: int = 200,
    *,
    problem: str | None = None,
    filled: Filled | None = None,
    typed: Mapping[str, str] | None = None,
    said: Mapping[str, str] | None = None,
) -> Response:
    proposed = fields(action["args_schema"], action["args"])
    thread = await visit.doors.thread(action["thread_id"], visit.person)
    return await page(
        visit,
        "action",
        status,
        action=action,
        thread=thread,
        fields=proposed,
        ran=_what_ran(proposed, action),
        allowed=[Verdict(word) for word in action["allowed_decisions"]],
        labels=_LABELS,
        is_checkbox=is_checkbox,
        problem=problem,
        errors=filled.errors if filled else {},
        changed=filled.changed if filled else (),
        typed=typed or {},
        said=said or {},
    )


def _what_ran(proposed: tuple[Field, ...], action: Mapping[str, Any]) -> list[tuple[Field, Field | None]]:
    """Each argument as it was proposed, and beside it as it ran when that is something else."""
    final = action.get("final_args")
    if final is None:
        return [(field, None) for field in proposed if field.given]
    ran = {field.name: field for field in fields(action["args_schema"], final)}
    pairs = [(field, ran.get(field.name)) for field in proposed]
    known = {field.name for field in proposed}
    pairs += [(field, field) for name, field in ran.items() if name not in known]
    return [
        (before, after if after is not None and _differs(before, after) else None)
        for before, after in pairs
        if before.given or (after is not None and after.given)
    ]


def _differs(before: Field, after: Field) -> bool:
    shown, ran = ((field.kind, field.text, field.given) for field in (before, after))
    return before is after or shown != ran


async def decide(visit: Visit, form: Form) -> Response:
    """`POST /actions/{action_id}` `decision`, `digest`, `arg.N`, `reason?`, `response?`."""
    action = await _action(visit)
    said = form.texts
    proposed = fields(action["args_schema"], action["args"])
    typed = _typed(proposed, said)
    filled = fill(proposed, typed)
    try:
        verdict = Verdict(said.get("decision", ""))
    except ValueError:
        return await _form(visit, action, 422, problem="Press one of the buttons.", typed=typed, said=said)
    problem = _contradiction(verdict, filled, _touched(proposed, typed), action)
    if problem is not None:
        return await _form(visit, action, 422, problem=problem, filled=filled, typed=typed, said=said)
    try:
        await visit.doors.decide(
            Decision(
                action_id=action["id"],
                person=visit.person.name,
                via=VIA,
                verdict=verdict,
                args=filled.args if verdict is Verdict.EDIT else None,
                reason=_text(said.get("reason")),
                response=_text(said.get("response")) if verdict is Verdict.RESPOND else None,
                digest=said.get("digest", ""),
            )
        )
    except Conflict as error:
        # What was typed is for something that is no more; what is now is shown.
        return await _form(visit, await _action(visit), error.status, problem=str(error))
    except Invalid as error:
        wrong = Filled(filled.args, filled.changed, _by_field(error, proposed))
        return await _form(
            visit, action, error.status, problem=str(error), filled=wrong, typed=typed, said=said
        )
    return see_other(local_path(said["back"]) if "back" in said else f"/actions/{action['id']}")


def _typed(proposed: tuple[Field, ...], said: Mapping[str, str]) -> dict[str, str]:
    """What stands in the form's fields. A card in a thread sends none: then everything is as proposed."""
    if "fields" not in said:
        return {}
    sent = {field.name: said.get(f"arg.{number}") for number, field in enumerate(proposed)}
    # A checkbox that is not ticked is not sent.
    boxes = {field.name: "false" for field in proposed if is_checkbox(field)}
    return boxes | {name: text for name, text in sent.items() if text is not None}


def is_checkbox(field: Field) -> bool:
    """Whether yes and no are all there is to say: then a checkbox says it. What was not given is neither."""
    return field.kind is FieldKind.BOOLEAN and not field.nullable and field.given


def _touched(proposed: tuple[Field, ...], typed: Mapping[str, str]) -> bool:
    """Whether somebody typed something, however it reads; browsers send line breaks in their own way."""

    def plain(text: str) -> str:
        return text.replace("\r\n", "\n").replace("\r", "\n")

    return any(plain(typed.get(field.name, field.text)) != plain(field.text) for field in proposed)


def _contradiction(verdict: Verdict, filled: Filled, touched: bool, action: Mapping[str, Any]) -> str | None:
    """What is said twice and differently."""
    if verdict is Verdict.APPROVE and touched:
        return (
            "Some values were changed. Press Approve edited to use them, "
            "or put them back to approve what was asked."
        )
    if verdict is Verdict.EDIT and filled.errors:
        return "Some values cannot be used; see below."
    if verdict is Verdict.EDIT and not touched and Verdict.APPROVE in action["allowed_decisions"]:
        return "No value was changed. Press Approve to approve what was asked."
    return None


def _text(sent: str | None) -> str | None:
    return (sent or "").replace("\r\n", "\n").strip() or None


def _by_field(error: Invalid, proposed: tuple[Field, ...]) -> dict[str, str]:
    """The problems of a refusal, each at the argument that its JSON pointer begins with."""
    known = {field.name for field in proposed}
    found: dict[str, str] = {}
    for problem in error.details.get("errors", ()):
        name = problem["path"].split("/")[1] if problem["path"] else ""
        name = name.replace("~1", "/").replace("~0", "~")
        if name in known:
            found.setdefault(name, problem["message"])
    return found


async def reopen(visit: Visit, form: Form) -> Response:  # noqa: ARG001
    """`POST /actions/{action_id}/reopen`: an expired action waits again."""
    action_id = visit.id("action_id", "action")
    await visit.doors.reopen(action_id, visit.person, VIA)
    return see_other(f"/actions/{action_id}")
