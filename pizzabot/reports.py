"""What can be read? The shapes of the HTTP API, for web, terminal, cards and digests alike.

Times are ISO 8601 with offset, UTC. Nothing here changes a row.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

import sqlalchemy as sa

from pizzabot import __version__, audit, audit_file, traces
from pizzabot.agent import activity
from pizzabot.agent.activity import Sum
from pizzabot.agent.models import label
from pizzabot.agent.spending import Bound, Spending
from pizzabot.approvals import decide
from pizzabot.approvals import store as actions
from pizzabot.audit import Anchor
from pizzabot.channel import Channel
from pizzabot.clock import Clock, day_of, days_until
from pizzabot.database.connection import Database
from pizzabot.inbox import pages, runs, threads
from pizzabot.messages import Action, ActionState, ChannelState
from pizzabot.outbox import store as outbox
from pizzabot.people import People, Person, administer, may_administer
from pizzabot.text import counted, dollars
from pizzabot.triggers import store as triggers

if TYPE_CHECKING:
    from pizzabot.agent.context import RunContext
    from pizzabot.settings import Settings


_Rows = Sequence[Mapping[str, Any]]
_PENDING_SHOWN, _PENDING_OF_THREAD = 500, 5
_LINES_AT_ONCE = 1000
_STEPS_SHOWN = 200  # of one run, on a page of a thread


class Skills(Protocol):
    """What is known of skills and servers; the wiring knows how."""

    def skills(self) -> list[dict[str, Any]]: ...

    def servers(self) -> list[dict[str, Any]]: ...

    def broken(self) -> list[dict[str, Any]]: ...


def iso(moment: datetime | None) -> str | None:
    """ISO 8601 with offset, or None."""
    return moment.isoformat() if moment is not None else None


class Reports:
    """Read models; every method shows a person only what they may see."""

    def __init__(
        self,
        *,
        database: Database,
        clock: Clock,
        settings: Settings,
        skills: Skills,
        people: People,
        channels: Mapping[str, Channel],
        context_of: Callable[[str], RunContext | None],
        spending: Spending,
    ) -> None:
        self._database, self._clock, self._settings = database, clock, settings
        self._skills, self._people, self._channels = skills, people, channels
        self._context_of, self._spending = context_of, spending

    # -- inbox -------------------------------------------------------------------------------------------

    async def inbox(
        self, person: Person, view: pages.View, *, limit: int, cursor: str | None, words: str
    ) -> dict[str, Any]:
        """One page: `{"threads": […], "counts": {…}, "next_cursor"}`.

        In a search, threads have a `hit`; in the view Action, `pending`, the first actions that wait there.
        """

        now = self._clock.now()

        def read(
            connection: sa.Connection,
        ) -> tuple[pages.Page, dict[str, int], list[tuple[str, dict[str, Any]]]]:
            page = pages.page(connection, person, view, limit=limit, cursor=cursor, words=words)
            asked = [thread.id for thread in page.threads] if view == "action" else []
            pending = (
                actions.pending_in(connection, asked, person.name, now, limit=_PENDING_SHOWN) if asked else []
            )
            return page, pages.counts(connection, person), pending

        page, counts, pending = await self._database.read(read)
        shown = [thread_row(thread) for thread in page.threads]
        for row in shown:
            if view == "action":
                waiting = [
                    action | {"put_off_until": iso(action["put_off_until"])}
                    for thread, action in pending
                    if thread == row["id"]
                ]
                row["pending"] = waiting[:_PENDING_OF_THREAD]
            if hit := page.hits.get(row["id"]):
                # A title stands in the row already, and is no message of the thread.
                told = hit.role != "title"
                row["hit"] = {
                    "message_id": str(hit.seq) if told else None,
                    "excerpt": hit.text_excerpt if told else "",
                }
        return {"threads": shown, "counts": counts, "next_cursor": page.next_cursor}

    async def thread(
        self,
        person: Person,
        thread_id: str,
        *,
        limit: int | None = None,
        before: int | None = None,
        after: int | None = None,
    ) -> dict[str, Any] | None:
        """A thread with everything in it, or None when the person may not see it.

        With a `limit` only so many messages (the newest, or those next to the number of another one), and the
        runs, actions and activity that belong to them.
        """

        def read(connection: sa.Connection) -> dict[str, Any] | None:
            thread = pages.visible_thread(connection, thread_id, person)
            if thread is None:
                return None
            if limit is None:
                shown = threads.Window(tuple(threads.messages_of(connection, thread_id)))
            else:
                shown = threads.window(connection, thread_id, limit=limit, before=before, after=after)
            return thread_row(thread) | self._content(connection, thread, person, shown, whole=limit is None)

        found = await self._database.read(read)
        running = self._context_of(thread_id)
        if found is not None and running is not None and running.run.id in {r["id"] for r in found["runs"]}:
            found["activity"] += [
                live.to_json() | {"run_id": running.run.id, "at": None} for live in running.live
            ]
        return found

    async def trace(
        self, person: Person, thread_id: str, *, limit: int, before: str | None = None
    ) -> dict[str, Any] | None:
        """The newest runs of a thread step by step, or those before a run; None when it may not be seen.

        `{"id", "title", …, "runs": [{…, "steps": […]}], "has_older", "usage"}`
        """
        now = self._clock.now()

        def read(connection: sa.Connection) -> dict[str, Any] | None:
            thread = pages.visible_thread(connection, thread_id, person)
            if thread is None:
                return None
            records = traces.read(connection, thread_id, limit=limit + 1, before=before)
            shown = replace(records, runs=records.runs[-limit:])
            return thread_row(thread) | {
                "runs": _named(connection, traces.assembled(shown, now)),
                "has_older": len(records.runs) > limit,
                "usage": activity.usage_of_thread(connection, thread_id),
            }

        return await self._database.read(read)

    async def actions(
        self, person: Person, state: ActionState | None, *, limit: int = 100, before: str | None = None
    ) -> list[dict[str, Any]]:
        """Actions in threads that the person may see, newest first."""

        def read(connection: sa.Connection) -> list[dict[str, Any]]:
            visible = pages.visible_to(person)
            found = actions.page(connection, state=state, visible=visible, limit=limit, before=before)
            owners = {i: t.owner for i in {a.thread_id for a in found} if (t := threads.get(connection, i))}
            return [
                action_row(action, may_decide=self._decides(person, action, owners.get(action.thread_id, "")))
                for action in found
            ]

        return await self._database.read(read)

    async def action(self, person: Person, action_id: str) -> dict[str, Any]:
        """One action; raises NotFound when the person may not see it."""

        def read(connection: sa.Connection) -> dict[str, Any]:
            action, thread = decide.seen_action(connection, action_id, person)
            return action_row(action, may_decide=self._decides(person, action, thread.owner))

        return await self._database.read(read)

    def _content(
        self,
        connection: sa.Connection,
        thread: threads.Thread,
        person: Person,
        shown: threads.Window,
        *,
        whole: bool,
    ) -> dict[str, Any]:
        """What stands in a thread as far as it is shown: messages, and what was done for them."""
        run_ids = None if whole else _runs_shown(connection, thread.id, shown)
        done = (
            runs.of_thread(connection, thread.id) if run_ids is None else runs.with_ids(connection, run_ids)
        )
        files = _files(connection, thread.id, shown)
        spent = activity.usage_of_runs(connection, thread.id, run_ids)
        steps = activity.counts_of_runs(connection, thread.id, run_ids)
        acted = (
            activity.of_thread(connection, thread.id)
            if run_ids is None
            else activity.of_runs(connection, thread.id, run_ids, each=_STEPS_SHOWN)
        )
        return {
            "messages": [_message(m, files.get(m.seq, [])) for m in shown.messages],
            "has_older": shown.has_older,
            "has_newer": shown.has_newer,
            "actions": [
                action_row(action, may_decide=self._decides(person, action, thread.owner))
                for action in actions.of_thread(connection, thread.id, run_ids)
            ],
            "runs": [_run(run, spent.get(run.id)) | {"steps": steps.get(run.id, 0)} for run in done],
            "activity": [row | {"at": iso(row["at"])} for row in acted],
            "usage": activity.usage_of_thread(connection, thread.id),
        }

    def _decides(self, person: Person, action: Action, thread_owner: str) -> bool:
        return self._people.decides_action(person, action, thread_owner)

    # -- the house ---------------------------------------------------------------------------------------

    def skills(self, person: Person) -> list[dict[str, Any]]:
        """Every skill, ready or why not; where its file lies is for owners."""
        rows = self._skills.skills()
        if may_administer(person):
            return rows
        return [{key: value for key, value in row.items() if key != "file"} for row in rows]

    def servers(self) -> list[dict[str, Any]]:
        """Every MCP server, its state and its tools."""
        return self._skills.servers()

    async def status(self, person: Person) -> dict[str, Any]:
        """Health of channels, servers, model and outbox, and whether everything is stopped."""

        def read(connection: sa.Connection) -> tuple[dict[str, Any], Any]:
            return outbox.summary(connection), runs.stopped_by(connection)

        queue, stopped = await self._database.read(read)
        if not may_administer(person):
            # Addresses of other people are nobody else's business.
            queue["failed"] = [failed | {"to": ""} for failed in queue["failed"]]
        body: dict[str, Any] = {
            "version": __version__,
            "channels": {name: _channel(channel.state()) for name, channel in self._channels.items()},
            "mcp": {row["name"]: _server(row) for row in self._skills.servers()},
            "model": {"name": self._settings.model, "label": label(self._settings.model)},
            "outbox": queue,
            "stopped": stopped is not None,
            "broken": self._skills.broken() if may_administer(person) else [],
        }
        for name in ("slack", "email"):
            body["channels"].setdefault(name, {"state": "off"})
        if stopped is not None:
            body["stopped_by"] = _stopped(stopped)
        return body

    async def stopped(self) -> dict[str, Any] | None:
        """Who stopped everything, through which channel and when; None when nothing is stopped."""
        found = await self._database.read(runs.stopped_by)
        return _stopped(found) if found is not None else None

    async def usage(self, person: Person, days: int) -> dict[str, Any]:
        """Tokens and dollars of today and of the last `days` calendar days of the first owner's zone.

        `rows` and `today` are sums per person and model, `by_day` and `by_trigger` of the whole span; others'
        are for owners only. `budgets` are those of today. Where `cost_usd` is None the price of
        `unpriced_calls` is not known; `known_usd` is the rest.
        """
        now, zone = self._clock.now(), self._spending.budget.zone
        span = days_until(now, zone, days)
        whose = None if may_administer(person) else person.name

        def read(connection: sa.Connection) -> dict[str, Any]:
            since, midnight = span[-1].since, span[0].since
            return {
                "rows": _labelled(activity.usage_since(connection, since, whose)),
                "today": _labelled(activity.usage_since(connection, midnight, whose)),
                "by_day": activity.usage_by_day(connection, span, whose),
                "by_trigger": _named(connection, activity.usage_by_trigger(connection, since, whose)),
                "budgets": [_budget(bound) for bound in self._budgets(connection, person, now)],
            }

        found = await self._database.read(read)
        unpriced = sorted({row["model"] for row in found["rows"] if row["unpriced_calls"]})
        head = {"days": days, "since": iso(span[-1].since), "day": span[0].name, "zone": zone}
        return head | found | {"unpriced_models": unpriced}

    async def usage_summary(self, person: Person, since: datetime | None = None) -> dict[str, Any]:
        """What was used since a moment, or today, in sums and as `line`: "used $0.42 of $20.00 today".

        An owner's is about everybody, another's about the person's own runs. `budget_usd` is that of today.
        """
        now = self._clock.now()
        day = day_of(now, self._spending.budget.zone)
        owner = may_administer(person)

        def read(connection: sa.Connection) -> tuple[Sum, Bound | None]:
            sums = activity.sums(connection, since or day.since, None)
            used = Sum().plus(*sums.values()) if owner else sums.get(person.name, Sum())
            wanted = "day_usd" if owner else "person_day_usd"
            bounds = self._budgets(connection, person, now)
            mine = [b for b in bounds if b.name == wanted and b.person in (None, person.name)]
            return used, mine[0] if mine else None

        used, bound = await self._database.read(read)
        budget = bound.allowed if bound is not None and since is None else None
        return {
            "since": iso(since or day.since),
            "usd": round(used.usd, 6),
            "tokens": used.tokens,
            "model_calls": used.calls,
            "unpriced_calls": used.unpriced,
            "budget_usd": budget,
            "line": _usage_line(used, budget, " today" if since is None else ""),
        }

    def _budgets(self, connection: sa.Connection, person: Person, now: datetime) -> list[Bound]:
        """Today's budgets that a person may know of: all of them for an owner, else the person's own."""
        if not may_administer(person):
            own = self._spending.today(connection, now, person.name).bounds
            return [bound for bound in own if bound.person == person.name]
        names = [person.name, *(name for name in self._spending.budget.of_person if name != person.name)]
        found = {b.key: b for name in names for b in self._spending.today(connection, now, name).bounds}
        return list(found.values())

    async def audit(
        self,
        person: Person,
        *,
        limit: int,
        before: int | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> list[dict[str, Any]]:
        """Lines of the audit, newest first; for owners."""
        administer(person)
        lines = await self._database.read(
            lambda c: audit.page(c, limit=limit, before=before, since=since, until=until)
        )
        return [
            {
                "seq": line.seq,
                "at": iso(line.at),
                "actor": line.actor,
                "via": line.via,
                "event": line.event,
                "subject": line.subject,
                "data": line.data,
            }
            for line in lines
        ]

    async def verify_audit(self, person: Person) -> dict[str, Any]:
        """Walk the hash chain: `{"ok", "lines", "head", "broken_at"}`; for owners."""
        administer(person)
        result = await self._database.read(audit.verify)
        return {
            "ok": result.broken_at is None,
            "lines": result.lines,
            "head": result.head,
            "broken_at": result.broken_at,
            "pruned": result.pruned,
        }

    async def audit_export(
        self, person: Person, *, since: datetime | None = None, until: datetime | None = None
    ) -> AsyncIterator[str]:
        """The audit of a time as the lines of a file that can be verified without us; for owners."""
        administer(person)
        found = await self._database.read(lambda c: (audit.span(c, since, until), audit.anchor(c)))
        return self._exported(*found, since, until)

    async def _exported(
        self,
        span: tuple[int, int, Anchor] | None,
        anchor: Anchor,
        since: datetime | None,
        until: datetime | None,
    ) -> AsyncIterator[str]:
        begin = span[2] if span is not None else anchor
        yield audit_file.head(begin, since, until, self._clock.now())
        seq, last, lines = begin.seq, begin.hash, 0
        upto = span[1] if span is not None else 0
        while seq < upto:
            after = seq
            some = await self._database.read(
                lambda c, after=after: audit.links(c, after=after, upto=upto, limit=_LINES_AT_ONCE)  # type: ignore[misc]
            )
            if not some or some[0].previous_hash != last:
                return  # pruned meanwhile: without its end the file says that it is not whole
            for link in some:
                yield audit_file.line(link)
            seq, last, lines = some[-1].seq, some[-1].hash, lines + len(some)
        yield audit_file.foot(lines, seq, last)


def _named(connection: sa.Connection, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows with the names of the triggers in them; of one that was removed there is only its id."""
    if not any("trigger_id" in row for row in rows):
        return [dict(row) for row in rows]
    names = {trigger.id: trigger.name for trigger in triggers.everything(connection)}
    return [
        {**row, "trigger": names.get(row["trigger_id"], row["trigger_id"])}
        if "trigger_id" in row
        else dict(row)
        for row in rows
    ]


def _labelled(rows: _Rows) -> list[dict[str, Any]]:
    return [dict(row) | {"model_label": label(row["model"])} for row in rows]


def _budget(bound: Bound) -> dict[str, Any]:
    """A day's budget as the API shows it; `allowed` is what the settings give and people allowed since."""
    return {
        "name": bound.name,
        "day": bound.day,
        "person": bound.person,
        "used": round(bound.used, 6),
        "allowed": bound.allowed,
        "given": bound.base,
        "unpriced_calls": bound.unpriced,
        "text": f"{bound.spoken(bound.used)} of {bound.spoken(bound.allowed)}",
    }


def _usage_line(used: Sum, budget: float | None, when: str) -> str:
    """A line for a person, without a capital and a full stop."""
    if used.calls and used.unpriced == used.calls:
        return f"used {used.tokens:,} tokens{when}, whose price is not known"
    of = f" of {dollars(budget)}" if budget is not None else ""
    besides = (
        f", besides {counted(used.unpriced, 'model call')} whose price is not known" if used.unpriced else ""
    )
    return f"used {dollars(used.usd)}{of}{when}{besides}"


def _runs_shown(connection: sa.Connection, thread_id: str, shown: threads.Window) -> set[str]:
    """The runs of some messages; with the newest ones also the newest run, which may say nothing yet."""
    found = {message.run_id for message in shown.messages if message.run_id is not None}
    newest = runs.newest(connection, thread_id) if not shown.has_newer else None
    return found | ({newest.id} if newest is not None else set())


def _files(
    connection: sa.Connection, thread_id: str, shown: threads.Window
) -> dict[int, list[dict[str, Any]]]:
    found: dict[int, list[dict[str, Any]]] = {}
    if shown.messages:
        first, last = shown.messages[0].seq, shown.messages[-1].seq
        for row in threads.attachments_within(connection, thread_id, first, last):
            found.setdefault(row.message_seq, []).append(_attachment(row))
    return found


def thread_row(thread: threads.Thread) -> dict[str, Any]:
    """A thread as lists show it."""
    return {
        "id": thread.id,
        "title": thread.title,
        "owner": thread.owner,
        "unread": thread.unread,
        "action_count": thread.action_count,
        "state": str(thread.state),
        "archived": thread.archived,
        "channel": thread.channel,
        "last_message": thread.last_message,
        "last_activity_at": iso(thread.last_activity_at),
        "created_at": iso(thread.created_at),
    }


def action_row(action: Action, *, may_decide: bool) -> dict[str, Any]:
    """An action as the API shows it; `may_decide` is about the person who asks."""
    row: dict[str, Any] = {
        "id": action.id,
        "thread_id": action.thread_id,
        "run_id": action.run_id,
        "kind": str(action.kind),
        "tool": action.tool,
        "title": action.title,
        "skill": action.skill,
        "why": action.why,
        "requested_by": action.requested_by,
        "args": action.args,
        "args_schema": action.args_schema,
        "allowed_decisions": [str(verdict) for verdict in action.allowed_decisions],
        "approvers": list(action.approvers),
        "may_decide": may_decide,
        "digest": action.digest,
        "state": str(action.state),
        "created_at": iso(action.created_at),
        "waiting_since": iso(action.waiting_since or action.created_at),
        "expires_at": iso(action.expires_at),
        "escalated_to": list(action.escalated_to),
        "snoozed": [{"person": s.person, "until": iso(s.until)} for s in action.snoozes],
        "quorum": action.quorum,
        "approvals": [{"person": v.person, "via": v.via, "at": iso(v.at)} for v in action.votes],
        "shown": action.shown,
    }
    if action.asked_args is not None:
        row |= {"asked_args": action.asked_args, "edited_by": action.edited_by}
    if action.decision is not None:
        row |= {
            "decision": str(action.decision),
            "decided_by": action.decided_by,
            "decided_at": iso(action.decided_at),
            "decided_via": action.decided_via,
        }
    for name in ("reason", "response", "final_args"):
        if getattr(action, name) is not None:
            row[name] = getattr(action, name)
    return row


def _message(message: threads.Message, files: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": str(message.seq),
        "role": message.role,
        "text": message.text,
        "author": message.author,
        "created_at": iso(message.created_at),
        "run_id": message.run_id,
        "held": message.held,
        "attachments": files,
    }


def _attachment(row: Any) -> dict[str, Any]:
    return {
        "id": row.id,
        "filename": row.filename,
        "media_type": row.media_type,
        "size_bytes": row.size_bytes,
        "sha256": row.sha256,
    }


def _run(run: runs.Run, spent: Mapping[str, Any] | None) -> dict[str, Any]:
    row: dict[str, Any] = {
        "id": run.id,
        "state": str(run.state),
        "model": run.model,
        "model_label": label(run.model),
        "created_at": iso(run.created_at),
        "started_at": iso(run.started_at),
        "ended_at": iso(run.ended_at),
        "used": run.used,
        "allowance": run.allowance,
        "usage": dict(spent or activity.NO_USAGE),
    }
    if run.error_code is not None:
        row["error"] = {"code": run.error_code, "message": run.error_message}
    return row


def _channel(state: ChannelState) -> dict[str, Any]:
    row: dict[str, Any] = {"state": state.state}
    if state.detail is not None:
        row["detail"] = state.detail
    if state.last_event_at is not None:
        row["last_event_at"] = iso(state.last_event_at)
    return row


def _stopped(found: tuple[str, str, datetime]) -> dict[str, Any]:
    who, via, at = found
    return {"person": who, "via": via, "at": iso(at)}


def _server(row: Mapping[str, Any]) -> dict[str, Any]:
    shown = {"state": row["state"], "tools": len(row["tools"])}
    return shown | {"error": row["error"]} if row.get("error") else shown
