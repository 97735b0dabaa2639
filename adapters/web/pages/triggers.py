"""Which pages show what starts work by itself? The list, one trigger with its firings, and their forms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from pizzabot.errors import Invalid, NotFound, Refused
from pizzabot.text import with_newlines
from pizzabot.triggers.trigger import Trigger

from ..forms import Form
from .html import page, see_other
from .visit import VIA, Visit

_FIRINGS = 50
_SHOWN = 5
_TEXTS = (
    "name",
    "prompt",
    "cron",
    "timezone",
    "overlap",
    "misfire",
    "grace",
    "model",
    "budget_usd",
    "signing",
)
_LISTS = ("channels", "skills")


async def index(visit: Visit) -> Response:
    """`GET /triggers`."""
    found = await visit.doors.triggers.all(visit.person)
    return await page(visit, "triggers", triggers=found, form=None, **_marks(None, None))


async def create(visit: Visit, form: Form) -> Response:
    """`POST /triggers`: a new one; a form that cannot be taken comes back with what was typed."""
    try:
        made = await visit.doors.triggers.create(_new(form), visit.person, VIA)
    except Refused as error:
        found = await visit.doors.triggers.all(visit.person)
        marks = _marks(error, form.texts)
        return await page(visit, "triggers", error.status, triggers=found, form=form.texts, **marks)
    if made.secret is None:
        return see_other(f"/triggers/{made.trigger.id}")
    return await _shown(visit, made.trigger, secret=made.secret)


async def show(visit: Visit) -> Response:
    """`GET /triggers/{trigger_id}`."""
    return await _shown(visit, await _trigger(visit))


async def change(visit: Visit, form: Form) -> Response:
    """`POST /triggers/{trigger_id}`: what the pressed button says."""
    known, doors = await _trigger(visit), visit.doors.triggers
    pressed = form.texts.get("do", "")
    match pressed:
        case "run":
            fired = await doors.run_now(known.id, visit.person, VIA)
            return see_other(f"/threads/{fired.thread_id}" if fired.thread_id else f"/triggers/{known.id}")
        case "on" | "off":
            await doors.change(known.id, {"enabled": pressed == "on"}, visit.person, VIA)
        case "remove":
            await doors.remove(known.id, visit.person, VIA)
            return see_other("/triggers")
        case "secret":
            made = await doors.change(known.id, {"secret": None}, visit.person, VIA)
            return await _shown(visit, made.trigger, secret=made.secret)
        case "save":
            try:
                await doors.change(known.id, _written(form), visit.person, VIA)
            except Refused as error:
                return await _shown(visit, known, form=form.texts, problem=error)
        case _:
            raise Invalid("The form says nothing that can be done; go back and press a button there.")
    return see_other(f"/triggers/{known.id}")


async def _shown(
    visit: Visit,
    trigger: Trigger,
    *,
    secret: str | None = None,
    form: Mapping[str, str] | None = None,
    problem: Refused | None = None,
) -> Response:
    firings = await visit.doors.triggers.occurrences(trigger.id, visit.person, limit=_FIRINGS)
    schedule = trigger.schedule if trigger.fires else None
    upcoming = [f.at for f in schedule.upcoming(visit.doors.clock.now(), _SHOWN)] if schedule else []
    return await page(
        visit,
        "trigger",
        problem.status if problem is not None else 200,
        trigger=trigger,
        warnings=visit.doors.triggers.warnings(trigger),
        firings=firings,
        upcoming=upcoming,
        hook=f"{visit.doors.url()}/hooks/{trigger.id}",
        secret=secret,
        form=form,
        **_marks(problem, form),
    )


def _marks(error: Refused | None, form: Mapping[str, str] | None) -> dict[str, Any]:
    """What a page says of a form that was not taken: `wrong`, by field, and `problem`, above it."""
    if error is None or form is None:
        return {"wrong": {}, "problem": None}
    told = {
        str(e["path"]).strip("/").split(".")[0]: str(e["message"]) for e in error.details.get("errors", ())
    }
    if error.code == "name_taken":
        told = {"name": str(error)}
    # Most say what the field is, or lacks: "is missing; …"
    wrong = {
        name: f"It {said}" if said[:1].islower() else said
        for name, said in told.items()
        if name in form and name in (*_TEXTS, *_LISTS)
    }
    is_all_marked = bool(told) and wrong.keys() == told.keys()
    return {
        "wrong": wrong,
        "problem": "Nothing was saved: see what is marked." if is_all_marked else str(error),
    }


async def _trigger(visit: Visit) -> Trigger:
    try:
        return await visit.doors.triggers.get(str(visit.request.path_params["trigger_id"]), visit.person)
    except NotFound as error:
        raise NotFound("There is no such trigger; it may have been removed.") from error


def _new(form: Form) -> dict[str, Any]:
    """The fields of a new trigger: without what is not for its kind."""
    kind = form.texts.get("kind", "cron")
    left_out = ("cron", "timezone", "misfire", "grace") if kind == "webhook" else ("signing",)
    return {name: value for name, value in _written(form).items() if name not in left_out} | {"kind": kind}


def _written(form: Form) -> dict[str, Any]:
    """The fields of the form: an empty one goes back to its default."""
    written: dict[str, Any] = {
        name: with_newlines(form.texts[name]).strip() or None for name in _TEXTS if name in form.texts
    }
    for name in _LISTS:
        if name in form.texts:
            items = [item.strip() for item in form.texts[name].replace(",", "\n").splitlines()]
            written[name] = [item for item in items if item] or None
    return written
