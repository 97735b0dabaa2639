"""What is asked, exactly, and how is it answered? The approval form, also where links of cards lead.

    arguments -> typed fields -> what was typed -> arguments of the tool's types, or an error at the field

Approve decides on what was proposed, so it is refused when a field was changed; Approve edited is refused
when none was. The digest of what was shown goes along.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from pizzabot.approvals.arguments import by_argument, problems
from pizzabot.approvals.forms import Field, FieldKind, Filled, fields, fill
from pizzabot.approvals.showing import Shown, shown
from pizzabot.errors import Conflict, Invalid, Refused, Unavailable
from pizzabot.messages import ActionKind, ActionState, Decision, Verdict
from pizzabot.text import with_newlines

from ..forms import Form
from .html import page, see_other
from .visit import VIA, Visit, local_path

# A card in a thread shows so much of arguments; with more of them it only leads to the form.
_CARD_CHARACTERS = 2000
_CARD_LINES = 30
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
    if action.get("kind") == ActionKind.LIMIT and action.get("why"):  # says what the numbers mean
        return {**action, "shown": [], "is_short": True}
    args = [shown(field) for field in fields(action["args_schema"], action["args"]) if field.given]
    length = sum(len(arg.name) + len(arg.text) for arg in args)
    lines = sum(1 + arg.text.count("\n") for arg in args)
    return {**action, "shown": args, "is_short": length <= _CARD_CHARACTERS and lines <= _CARD_LINES}


async def show(visit: Visit) -> Response:
    """`GET /actions/{action_id}`."""
    return await _form(visit, await _action(visit))


async def _action(visit: Visit) -> dict[str, Any]:
    return await visit.doors.reports.action(visit.person, visit.id("action_id", "action"))


async def _form(
    visit: Visit,
    action: Mapping[str, Any],
    status: int = 200,
    problem: str | None = None,
    *,
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
        shown=[shown(field) for field in proposed if field.given],
        ran=_what_ran(proposed, action),
        allowed=[Verdict(word) for word in action["allowed_decisions"]],
        labels=_LABELS,
        is_checkbox=is_checkbox,
        problem=problem,
        errors=filled.errors if filled else {},
        typed=typed or {},
        said=said or {},
    )


def _what_ran(
    proposed: tuple[Field, ...], action: Mapping[str, Any]
) -> list[tuple[Shown | None, Shown | None]]:
    """Each argument as it was proposed and as it ran; None where it was not given."""
    before = {field.name: shown(field) for field in proposed if field.given}
    final = action.get("final_args")
    if final is None:
        return [(argument, argument) for argument in before.values()]
    after = {field.name: shown(field) for field in fields(action["args_schema"], final) if field.given}
    return [(before.get(name), after.get(name)) for name in dict.fromkeys((*before, *after))]


async def decide(visit: Visit, form: Form) -> Response:
    """`POST /actions/{action_id}` `decision`, `digest`, `arg.N`, `reason?`, `response?`."""
    action = await _action(visit)
    said = form.texts
    proposed = fields(action["args_schema"], action["args"])
    typed = _typed(proposed, said)
    filled = fill(proposed, typed)
    if filled.errors:
        filled = _with_what_else_is_wrong(filled, action)
    word = said.get("decision", "")
    verdict = Verdict(word) if word in list(Verdict) else None
    problem = _contradiction(verdict, filled, _touched(proposed, typed), action)
    # A late word, or one that does not count, learns that first, whatever else is wrong with it.
    if problem is not None and action["state"] == ActionState.PENDING and action["may_decide"]:
        return await _form(visit, action, 422, problem=problem, filled=filled, typed=typed, said=said)
    if verdict is None:
        return await _form(visit, action, *_unheard(action))
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
    except (Invalid, Unavailable) as error:
        at_fields = by_argument(error.details.get("errors", ()), [field.name for field in proposed])
        wrong = Filled(filled.args, filled.changed, at_fields)
        return await _form(
            visit, action, error.status, _problem(error, at_fields), filled=wrong, typed=typed, said=said
        )
    return see_other(local_path(said["back"]) if "back" in said else f"/actions/{action['id']}")


def _typed(proposed: tuple[Field, ...], said: Mapping[str, str]) -> dict[str, str]:
    """What stands in the form's fields. A card in a thread sends none: then everything is as proposed."""
    if "fields" not in said:
        return {}
    sent = {field.name: said.get(f"arg.{number}") for number, field in enumerate(proposed)}
    # A checkbox that is not ticked is not sent.
    boxes = {field.name: "false" for field in proposed if is_checkbox(field)}
    return boxes | {n: with_newlines(t) for n, t in sent.items() if t is not None}


def is_checkbox(field: Field) -> bool:
    """Whether yes and no are all there is to say: then a checkbox says it. What was not given is neither."""
    return field.kind is FieldKind.BOOLEAN and not field.nullable and field.given


def _touched(proposed: tuple[Field, ...], typed: Mapping[str, str]) -> bool:
    """Whether somebody typed something, however it reads."""
    return any(typed.get(field.name) not in (None, with_newlines(field.text)) for field in proposed)


def _contradiction(
    verdict: Verdict | None, filled: Filled, touched: bool, action: Mapping[str, Any]
) -> str | None:
    """What is said twice and differently, or not at all."""
    if verdict is None:
        return "Press one of the buttons."
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


def _unheard(action: Mapping[str, Any]) -> tuple[int, str]:
    """The status and the words for somebody whose word no longer counts, or never did."""
    if action["state"] == ActionState.PENDING:
        return 403, "This is not yours to decide."
    if action["state"] == ActionState.EXPIRED:
        return 409, "Too late: it expired because nobody decided in time."
    by = f" by {action['decided_by']} in {action['decided_via']}" if action.get("decided_by") else ""
    return 409, f"Already {action['state']}{by}."


def _problem(error: Refused, at_fields: Mapping[str, str]) -> str:
    """What to say above the form; where the fields say it themselves, only that they do."""
    return "Some values cannot be used; see below." if at_fields else str(error)


def _text(sent: str | None) -> str | None:
    return with_newlines(sent or "").strip() or None


def _with_what_else_is_wrong(filled: Filled, action: Mapping[str, Any]) -> Filled:
    """Every error at once: also those of the values that could be read."""
    others = by_argument(problems(filled.args, action["args_schema"]), filled.args.keys())
    return Filled(filled.args, filled.changed, others | dict(filled.errors))


async def reopen(visit: Visit, form: Form) -> Response:  # noqa: ARG001
    """`POST /actions/{action_id}/reopen`: an expired action waits again."""
    action_id = visit.id("action_id", "action")
    await visit.doors.reopen(action_id, visit.person, VIA)
    return see_other(f"/actions/{action_id}")


async def snooze(visit: Visit, form: Form) -> Response:
    """`POST /actions/{action_id}/snooze` `until`: not before then, for the person who asks."""
    action = await _action(visit)
    try:
        await visit.doors.snooze(action["id"], visit.person, form.texts.get("until", ""), VIA)
    except (Conflict, Invalid, Unavailable) as error:
        return await _form(visit, await _action(visit), error.status, str(error), said=form.texts)
    return see_other(f"/actions/{action['id']}")
