"""What happens when somebody presses a button or sends a modal? Checked on the server, and answered.

A click that decides is committed before it is acknowledged; everything that needs Slack comes after, because
its permission to open a modal and its patience both last three seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from pizzabot.approvals.arguments import by_argument, problems
from pizzabot.approvals.forms import fields, fill
from pizzabot.errors import Conflict, Invalid, NotFound, Refused
from pizzabot.messages import Action, ActionState, Decision, Verdict
from pizzabot.people import Person

from . import modals, words
from .cards import Pressed, card, pressed
from .modals import About
from .status import STOP
from .text import escaped
from .workspace import VIA, Workspace

RETRY = "pizza_retry"
REVIEW = "pizza_review"
_UNKNOWN = "I do not know you, so this had no effect. Ask the owner to add your member id to my settings."
_NOT_YOURS = "This is not yours to decide, or it is gone."
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
            self._workspace.answer(payload, _UNKNOWN)
            return
        try:
            if action_id == STOP:
                await self._stop(payload, person, value)
            elif action_id == RETRY:
                await self._workspace.doors.retry(value, person, VIA)
            elif (said := pressed(action_id, value)) is not None:
                await self._decide(payload, person, said)
        except Conflict as error:
            self._late(payload, error)
        except NotFound:
            # The card was in front of them, so "there is no such thing" would be no answer.
            self._workspace.answer(payload, _NOT_YOURS)
        except Refused as error:
            self._workspace.answer(payload, escaped(str(error)))

    async def _stop(self, payload: Payload, person: Person, thread_id: str) -> None:
        if not await self._workspace.doors.stop_thread(thread_id, person, VIA):
            self._workspace.answer(payload, "There is nothing to stop: this work has ended already.")

    async def _decide(self, payload: Payload, person: Person, said: Pressed) -> None:
        if said.verdict in _MODAL_VERDICTS:
            work = self._open(payload, person, said)
            self._workspace.later(work, "a modal")
            return
        await self._workspace.doors.decide(
            Decision(said.action_id, person.name, VIA, said.verdict, digest=said.digest)
        )

    def _late(self, payload: Payload, error: Conflict) -> None:
        """Somebody was first, or it changed: say so, and bring the pressed card up to date."""
        action = error.details.get("action")
        if not isinstance(action, Action):
            self._workspace.answer(payload, escaped(str(error)))
            return
        self._workspace.answer(payload, escaped(_already(action, error)))
        container = payload.get("container") or {}
        if container.get("type") == "message" and not container.get("is_ephemeral"):
            copy = (str(container.get("channel_id")), str(container.get("message_ts")))
            self._workspace.later(self._repaint(action, *copy), "a stale card")

    async def _repaint(self, action: Action, channel: str, ts: str) -> None:
        doors = self._workspace.doors
        thread = await doors.thread(action.thread_id, doors.people.owner)
        text, blocks = card(action, title=thread.title, page=page_of(self._workspace, action.id))
        await self._workspace.api.call("chat.update", channel=channel, ts=ts, text=text, blocks=blocks)

    # -- modals ------------------------------------------------------------------------------------------

    async def _open(self, payload: Payload, person: Person, said: Pressed) -> None:
        """A light modal at once, then what belongs into it."""
        title = words.LABELS[said.verdict]
        api = self._workspace.api
        opening = asyncio.create_task(
            api.call("views.open", trigger_id=str(payload.get("trigger_id")), view=modals.loading(title))
        )
        try:
            view = await self._form(person, said)
        except NotFound:
            view = modals.told(title, _NOT_YOURS)
        except Refused as error:
            view = modals.told(title, str(error))
        opened = (await opening)["view"]
        await api.call("views.update", view_id=opened["id"], hash=opened.get("hash"), view=view)

    async def _form(self, person: Person, said: Pressed) -> modals.View:
        """The form for a decision that needs more than a click; raises Refused when it is not theirs."""
        action = await self._workspace.doors.asked(said.action_id, person)
        if action.state is not ActionState.PENDING:
            return modals.told(words.LABELS[said.verdict], words.outcome(action))
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
            return _instead("Pizza Bot", _UNKNOWN if person is None else "This form is out of date.")
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
