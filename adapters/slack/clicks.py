"""What happens when somebody presses a button or sends a modal? Checked on the server, and answered.

A click that decides is committed before it is acknowledged; everything that needs Slack comes after, because
its permission to open a modal and its patience both last three seconds.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from pizzabot.approvals.arguments import by_argument, problems
from pizzabot.approvals.forms import fields, fill
from pizzabot.clock import spoken
from pizzabot.errors import Conflict, DeliveryFailed, Invalid, NotFound, Refused
from pizzabot.messages import Action, ActionState, Decision, Verdict
from pizzabot.people import Person
from pizzabot.text import visible

from . import modals, words
from .blocks import context, plain_text
from .cards import Pressed, PutOff, pressed, put_off
from .client import Denied
from .modals import About
from .status import STOP
from .workspace import VIA, Workspace

logger = logging.getLogger(__name__)

RETRY = "pizza_retry"
_NOT_YOURS = "This is not yours to decide, or it is gone."
_FORM_TRIES = 4
_MODAL_VERDICTS = (Verdict.EDIT, Verdict.REJECT, Verdict.RESPOND)
Payload = Mapping[str, Any]


def clicked_by(payload: Payload) -> str:
    """The user who pressed."""
    return str((payload.get("user") or {}).get("id") or "")


class Clicks:
    """Answers buttons of cards and status messages, and the modals that they open."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    # -- buttons -----------------------------------------------------------------------------------------

    async def press(self, payload: Payload, action_id: str, value: str) -> None:
        """A button of a message or of the Home tab."""
        person = self._workspace.person(clicked_by(payload))
        if person is None:
            self._workspace.answer(payload, self._workspace.stranger(clicked_by(payload)))
            return
        try:
            if action_id == STOP:
                await self._stop(payload, person, value)
            elif action_id == RETRY:
                await self._workspace.doors.retry(value, person, VIA)
                self._workspace.later(self._without_buttons(payload, person), "a pressed button")
            elif (said := pressed(action_id, value)) is not None:
                await self._decide(payload, person, said)
            elif (chosen := put_off(action_id, value)) is not None:
                await self._put_off(payload, person, chosen)
            else:
                self._workspace.answer(payload, "This button is out of date and does nothing any more.")
        except Conflict as error:
            self._late(payload, person, error)
        except NotFound:
            # The card was in front of them, so "there is no such thing" would be no answer.
            self._workspace.answer(payload, _NOT_YOURS)
        except Refused as error:
            self._workspace.answer(payload, str(error))

    async def _stop(self, payload: Payload, person: Person, thread_id: str) -> None:
        if not await self._workspace.doors.stop_thread(thread_id, person, VIA):
            self._workspace.answer(payload, "There is nothing to stop: this work has ended already.")

    async def _put_off(self, payload: Payload, person: Person, chosen: PutOff) -> None:
        """Snooze for whoever chose it, and tell them alone until when; the card tells everybody."""
        try:
            action = await self._workspace.doors.snooze(chosen.action_id, person, chosen.when, VIA)
        except Invalid as error:
            if error.code != "invalid_time":
                raise
            self._workspace.answer(payload, "That time is over already. Nothing was put off; choose another.")
            return
        until = next((s.until for s in action.snoozes if s.person == person.name), None)
        if until is not None:
            said = f"Put off until {spoken(until, person.timezone)}: you are not told of it before."
            self._workspace.answer(payload, said)

    async def _decide(self, payload: Payload, person: Person, said: Pressed) -> None:
        if said.verdict in _MODAL_VERDICTS:
            work = self._open(payload, person, said)
            self._workspace.later(work, "a modal")
            return
        await self._workspace.doors.decide(
            Decision(said.action_id, person.name, VIA, said.verdict, digest=said.digest)
        )

    def _late(self, payload: Payload, person: Person, error: Conflict) -> None:
        """Somebody was first, or it changed: say so; the outbox brings the card up to date."""
        action = error.details.get("action")
        said = pressed(*_pressed_in(payload))
        wanted = (person.name, said.verdict if said is not None else None)
        if isinstance(action, Action) and (action.decided_by, action.decision) == wanted:
            # Pressed twice, or delivered twice: it is as they want it.
            self._workspace.answer(payload, f"That is settled: {words.outcome(action)}")
            return
        if not isinstance(action, Action):
            self._workspace.answer(payload, str(error))
            return
        self._workspace.answer(payload, _already(action, error))

    async def _without_buttons(self, payload: Payload, person: Person) -> None:
        """What was pressed and cannot be pressed again says who did."""
        message, container = payload.get("message") or {}, payload.get("container") or {}
        kept = [block for block in message.get("blocks") or () if block.get("type") != "actions"]
        await self._workspace.api.call(
            "chat.update",
            channel=container.get("channel_id"),
            ts=container.get("message_ts"),
            text=str(message.get("text") or "Retried"),
            blocks=[*kept, context(plain_text(f"Retried by {visible(person.name)}"))],
        )

    # -- modals ------------------------------------------------------------------------------------------

    async def _open(self, payload: Payload, person: Person, said: Pressed) -> None:
        """A light modal at once, then what belongs into it."""
        title = words.LABELS[said.verdict]
        api = self._workspace.api
        opening = asyncio.create_task(
            api.call("views.open", trigger_id=str(payload.get("trigger_id")), view=modals.loading(title))
        )
        view = await self._form(person, said)
        try:
            opened = (await opening)["view"]
        except DeliveryFailed as error:
            logger.info("a modal did not open: %s", error)
            self._workspace.answer(payload, "Slack did not open the form. Press the button again.")
            return
        for tries in range(1, _FORM_TRIES + 1):
            try:
                await api.call("views.update", view_id=opened["id"], hash=opened.get("hash"), view=view)
                return
            except Denied as error:
                if error.error in ("not_found", "hash_conflict"):
                    return  # closed, or it is there already
                logger.error("Slack did not take a form (%s)", error)
                view = modals.told(title, "This form cannot be shown in Slack; Review leads to it.")
            except DeliveryFailed as error:
                logger.info("a form was not shown: %s", error)
                if tries == _FORM_TRIES:
                    self._workspace.answer(payload, "Slack did not show the form. Press the button again.")
                    return
                await asyncio.sleep(min(error.retry_after_seconds or 0.5, 5.0))

    async def _form(self, person: Person, said: Pressed) -> modals.View:
        """The form for a decision that needs more than a click, or why there is none."""
        title, doors = words.LABELS[said.verdict], self._workspace.doors
        try:
            action = await doors.asked(said.action_id, person)
            thread = await doors.thread(action.thread_id, person)
        except NotFound:
            return modals.told(title, _NOT_YOURS)
        except Refused as error:
            return modals.told(title, str(error))
        if action.state is not ActionState.PENDING:
            return modals.told(title, words.outcome(action))
        if not doors.people.decides_action(person, action, thread.owner):
            return modals.told(title, _NOT_YOURS)
        subject = About(action.id, said.digest)
        match said.verdict:
            case Verdict.EDIT:
                return modals.edit(action.tool, subject, fields(action.args_schema, action.args))
            case Verdict.REJECT:
                return modals.reject(action.tool, subject)
        return modals.respond(action.tool, subject)

    async def submit(self, payload: Payload) -> Mapping[str, Any] | None:
        """A modal that was sent; the answer that Slack takes: None closes it, errors stand at the fields."""
        view = payload.get("view") or {}
        subject, kind = modals.about(str(view.get("private_metadata") or "")), str(view.get("callback_id"))
        person = self._workspace.person(clicked_by(payload))
        if person is None or subject is None:
            stranger = self._workspace.stranger(clicked_by(payload))
            return _instead("Pizza Bot", stranger if person is None else "This form is out of date.")
        values = (view.get("state") or {}).get("values") or {}
        try:
            if kind == modals.EDIT:
                return await self._save(person, subject, values)
            await self._workspace.doors.decide(_decision(kind, person, subject, values))
        except Conflict as error:
            return _instead("Too late", _already(error.details.get("action"), error))
        except NotFound:
            return _instead("Not done", _NOT_YOURS)
        except Refused as error:
            return _instead("Not done", str(error))
        return None

    async def _save(
        self, person: Person, subject: About, values: Mapping[str, Any]
    ) -> Mapping[str, Any] | None:
        action = await self._workspace.doors.asked(subject.action_id, person)
        proposed = fields(action.args_schema, action.args)
        filled = fill(proposed, modals.typed(values, proposed))
        errors = dict(filled.errors)
        if action.state is ActionState.PENDING:
            wrong = by_argument(problems(filled.args, action.args_schema), filled.args.keys())
            errors = wrong | errors
            if not errors and not filled.changed and proposed and Verdict.APPROVE in action.allowed_decisions:
                errors = {proposed[0].name: "and the rest are as proposed: close this and press Approve"}
            if errors:
                return {"response_action": "errors", "errors": modals.errors_at(errors, proposed)}
        try:
            await self._workspace.doors.decide(
                Decision(action.id, person.name, VIA, Verdict.EDIT, args=filled.args, digest=subject.digest)
            )
        except Invalid as error:
            at_fields = by_argument(error.details.get("errors", ()), [field.name for field in proposed])
            if not at_fields:
                raise
            return {"response_action": "errors", "errors": modals.errors_at(at_fields, proposed)}
        return None


def _pressed_in(payload: Payload) -> tuple[str, str]:
    action: Payload = next(iter(payload.get("actions") or ()), {})
    return str(action.get("action_id") or ""), str(action.get("value") or "")


def _decision(kind: str, person: Person, subject: About, values: Mapping[str, Any]) -> Decision:
    if kind == modals.RESPOND:
        response = modals.said(values, modals.RESPONSE)
        return Decision(
            subject.action_id, person.name, VIA, Verdict.RESPOND, response=response, digest=subject.digest
        )
    reason = modals.said(values, modals.REASON)
    return Decision(subject.action_id, person.name, VIA, Verdict.REJECT, reason=reason, digest=subject.digest)


def _instead(title: str, text: str) -> Mapping[str, Any]:
    return {"response_action": "update", "view": modals.told(title, text)}


def _already(action: Any, error: Refused) -> str:
    if isinstance(action, Action) and action.state is not ActionState.PENDING:
        return f"Too late: {words.outcome(action)}"
    return str(error)


def page_of(workspace: Workspace, action_id: str) -> str:
    """Where an action's page is."""
    return f"{workspace.doors.url().rstrip('/')}/actions/{action_id}"
