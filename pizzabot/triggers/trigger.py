"""What is a trigger, and what is one firing of it? Frozen values, and what a person may write of one.

fields (API, CLI, [[triggers]]) --made--> Trigger          Trigger --fields_of--> fields
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Literal

from pydantic import ValidationError

from pizzabot.errors import Invalid
from pizzabot.people import People, Person
from pizzabot.settings.findings import sentence
from pizzabot.settings.tables import TriggerTable
from pizzabot.settings.values import parse_duration
from pizzabot.triggers import prompts, webhooks
from pizzabot.triggers.schedules import Schedule, spoken_schedule

Kind = Literal["cron", "webhook", "digest"]
Overlap = Literal["skip", "queue", "allow"]
Misfire = Literal["latest", "skip", "all"]
Reason = Literal["cron", "catch_up", "manual", "webhook"]

MAX_PROMPT = 20_000
MAX_PENDING = 1_000  # of one trigger: what it has to do is longer than a person would ever read
_GRACE = timedelta(minutes=5)
_NEVER = 10**9  # seconds: a grace that does not end
_MISFIRES = 5
_MOST_MISFIRES = 100
_PLACES = ("slack", "email", "web")
_MOST_TOLD = 5
OF_DIGESTS = "digest:"  # how their names begin


class OccurrenceState(StrEnum):
    """How one firing stands. `dead`: it could not be started, or what it started is gone."""

    PENDING = "pending"
    RUNNING = "running"
    WAITING = "waiting"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    SKIPPED = "skipped"
    DEAD = "dead"


@dataclass(frozen=True, slots=True)
class Trigger:
    """A trigger's row. `secret` is what a webhook is checked against, see `webhooks`.

    `defaulted` names the fields that nobody wrote and whose value follows from others: it changes with those.
    `watched_until`: every firing up to then has its occurrence, or was skipped. `paused` says why nothing
    fires until a person says so, `paused_action` is the action that asks for that word.
    """

    id: str
    name: str
    kind: Kind
    prompt: str
    cron: str | None
    timezone: str
    signing: Literal["secret", "hmac"] | None
    secret: str | None
    owner: str
    channels: tuple[str, ...] | None
    skills: tuple[str, ...] | None
    model: str | None
    budget_usd: float | None
    overlap: Overlap
    misfire: Misfire
    misfire_max: int
    grace_seconds: int
    enabled: bool
    source: str
    created_at: datetime
    changed_at: datetime
    watched_until: datetime
    next_run_at: datetime | None = None
    last_run_at: datetime | None = None
    paused: str | None = None
    paused_action: str | None = None
    failures: int = 0
    defaulted: tuple[str, ...] = ()

    @property
    def fires(self) -> bool:
        """Whether its schedule, or a delivery, starts work now."""
        return self.enabled and self.paused is None

    def spoken(self) -> str:
        """When it fires, in words; also when its zone is not known any more."""
        if self.cron is None:
            return "when another program calls it"
        return spoken_schedule(self.cron, self.timezone)

    @property
    def grace(self) -> str:
        """How late is still on time, as it is written."""
        return _duration(self.grace_seconds)

    @property
    def schedule(self) -> Schedule | None:
        """When it is due; None for webhooks."""
        return Schedule.parse(self.cron, self.timezone) if self.cron is not None else None

    def watched(self, until: datetime) -> Trigger:
        """The same, with nothing left to do up to `until`: its next firing comes after that."""
        schedule = self.schedule if self.fires else None
        upcoming = schedule.upcoming(until, 1) if schedule is not None else []
        return replace(self, watched_until=until, next_run_at=upcoming[0].at if upcoming else None)


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One firing. `key` names it within its trigger; `missed` firings before it never ran."""

    id: str
    trigger_id: str
    key: str
    state: OccurrenceState
    reason: Reason
    scheduled_at: datetime
    created_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None
    late_seconds: int = 0
    missed: int = 0
    signature: str | None = None
    payload: str | None = None
    fields: Mapping[str, Any] | None = None
    thread_id: str | None = None
    run_id: str | None = None
    error: str | None = None


def made(
    written: Mapping[str, Any],
    *,
    id: str,
    owner: Person,
    people: People,
    now: datetime,
    source: str,
    known: Trigger | None = None,
    has_skill: Callable[[str], bool] | None = None,
) -> Trigger:
    """A trigger as it is written; with `known`, that one with what is written changed.

    `None` in `written` sets a field back to its default. The secret is not part of it. Without `has_skill`
    nobody asks whether the skills are there: those that were known once may be away for a while. A trigger
    whose schedule changed, or that was switched on, begins anew: it never fires for the time before `now`.

    Raises:
        Invalid: every field that is wrong, each with the first that is wrong with it and the cure;
            `invalid_cron` or `invalid_template` when that is all, else `invalid_trigger`.
    """
    before = {k: v for k, v in fields_of(known).items() if k not in known.defaulted} if known else {}
    fields = {k: v for k, v in (before | dict(written)).items() if v is not None}
    fields.pop("secret", None)
    readable = {name: value for name, value in fields.items() if name in TriggerTable.model_fields}
    unknown = sorted(written.keys() - TriggerTable.model_fields.keys())
    problems = {
        name: wrong(name[:60], "is not a field of triggers; remove it") for name in unknown[:_MOST_TOLD]
    }
    table, unreadable = _read(readable)
    problems |= unreadable
    kind = table.kind or ("cron" if "cron" in fields and "kind" not in problems else None)
    person = people.by_name(table.owner) if table.owner is not None else owner
    for problem in _at_odds(table, kind, person or owner, people, has_skill):
        problems.setdefault(_field(problem), problem)
    if person is None:
        named = _quoted([each.name for each in people])
        problems.setdefault(
            "owner", wrong("owner", f"names nobody of [[people]]: {table.owner}; write one of {named}")
        )
    if problems or kind is None or person is None:
        raise _together(list(problems.values()))
    prompt, zone = table.prompt or "", table.timezone or person.timezone
    grace = parse_duration(table.grace) if table.grace is not None else _GRACE
    trigger = Trigger(
        id=id,
        name=table.name,
        kind=kind,
        prompt=prompt,
        cron=table.cron,
        timezone=zone,
        signing=(table.signing or "secret") if kind == "webhook" else None,
        secret=known.secret if known else None,
        owner=person.name,
        channels=table.channels,
        skills=table.skills,
        model=table.model,
        budget_usd=table.budget_usd,
        # A schedule comes again; a delivery does not, nor what is to be caught up, so these wait their turn.
        overlap=table.overlap or ("queue" if kind == "webhook" or table.misfire == "all" else "skip"),
        misfire=table.misfire or "latest",
        misfire_max=table.misfire_max or _MISFIRES,
        grace_seconds=int(grace.total_seconds()) if grace is not None else _NEVER,
        enabled=table.enabled if table.enabled is not None else True,
        source=known.source if known else source,
        created_at=known.created_at if known else now,
        changed_at=now,
        watched_until=known.watched_until if known else now,
        next_run_at=known.next_run_at if known else None,
        last_run_at=known.last_run_at if known else None,
        paused=known.paused if known else None,
        paused_action=known.paused_action if known else None,
        failures=known.failures if known else 0,
        defaulted=tuple(name for name in _FOLLOWING if name not in fields),
    )
    if "enabled" in written:  # a person's word ends a pause, too
        trigger = replace(trigger, paused=None, paused_action=None, failures=0)
    goes_on = (
        known is not None
        and known.fires == trigger.fires
        and (known.cron, known.timezone) == (trigger.cron, trigger.timezone)
    )
    return trigger if goes_on else trigger.watched(now)


def made_from_table(
    table: Mapping[str, Any],
    *,
    id: str,
    people: People,
    now: datetime,
    known: Trigger | None = None,
) -> Trigger:
    """A trigger as a table of `[[triggers]]` has it: what the file does not say goes back to its default, but
    for what a person switched off. A pause that the file knows nothing about stays.

    Raises Invalid as `made` does, naming the table.
    """
    written = dict(table)
    if known is not None:
        blank = dict.fromkeys(_WRITABLE)
        if table.get("enabled", known.enabled) == known.enabled:
            del blank["enabled"]
            written.pop("enabled", None)
        written = blank | written
    try:
        trigger = made(written, id=id, owner=people.owner, people=people, now=now, source="file", known=known)
        if trigger.kind == "webhook" and table.get("secret") is None:
            raise wrong("secret", 'is missing; write one of at least 16 characters, such as "${HOOK_SECRET}"')
        if table.get("secret") is not None:
            webhooks.check_secret(table["secret"])
    except Invalid as error:
        raise Invalid(f'[[triggers]] "{table["name"]}": {error}', code=error.code) from error
    return replace(trigger, source="file")


_WRITABLE = (
    *("kind", "prompt", "cron", "timezone", "signing", "owner", "channels", "skills", "model", "budget_usd"),
    *("overlap", "misfire", "misfire_max", "grace", "enabled"),
)


# Without a word of their own they follow from other fields: the zone is the owner's, `overlap` see `made`.
_FOLLOWING = ("timezone", "overlap")


def in_zone_of(trigger: Trigger, owner: Person, now: datetime) -> Trigger:
    """The same, in the zone of its owner, when nobody wrote another; in a new one it begins anew."""
    if "timezone" not in trigger.defaulted or trigger.timezone == owner.timezone:
        return trigger
    return replace(trigger, timezone=owner.timezone, changed_at=now).watched(now)


def fields_of(trigger: Trigger) -> dict[str, Any]:
    """What may be written of it, without the secret, and what holds where nothing is written."""
    return {
        "name": trigger.name,
        "kind": trigger.kind,
        "prompt": trigger.prompt or None,
        "cron": trigger.cron,
        "timezone": trigger.timezone,
        "signing": trigger.signing,
        "owner": trigger.owner,
        "channels": list(trigger.channels) if trigger.channels is not None else None,
        "skills": list(trigger.skills) if trigger.skills is not None else None,
        "model": trigger.model,
        "budget_usd": trigger.budget_usd,
        "overlap": trigger.overlap,
        "misfire": trigger.misfire,
        "misfire_max": trigger.misfire_max,
        "grace": trigger.grace,
        "enabled": trigger.enabled,
    }


def _duration(seconds: int) -> str:
    """A number of seconds as `parse_duration` reads it, in the largest unit that fits."""
    if seconds >= _NEVER:
        return "never"
    size, unit = next(
        (s, u) for s, u in ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")) if not seconds % s
    )
    return f"{seconds // size}{unit}" if seconds else "0s"


def _read(fields: Mapping[str, Any]) -> tuple[TriggerTable, dict[str, Invalid]]:
    """The fields that can be read as what they are, and by field what is wrong with the others."""
    problems: dict[str, Invalid] = {}
    try:
        return TriggerTable.model_validate(fields), problems
    except ValidationError as error:
        for each in error.errors(include_url=False):
            place = ".".join(str(part) for part in each["loc"])
            path = ("triggers", 0, *each["loc"])
            said = "is missing; write one" if each["type"] == "missing" else sentence(path, each)
            problems.setdefault(str(each["loc"][0]), wrong(place, said))
    readable = {name: value for name, value in fields.items() if name not in problems}
    # What was refused is left out to see what else is wrong; without a name there is no table to see it in.
    return TriggerTable.model_validate({"name": "unnamed"} | readable), problems


def _at_odds(
    table: TriggerTable,
    kind: Kind | None,
    owner: Person,
    people: People,
    has_skill: Callable[[str], bool] | None,
) -> Iterator[Invalid]:
    """What is wrong with fields that can be read, by themselves or beside each other."""
    prompt = table.prompt or ""
    if kind != "digest" and table.name.casefold().startswith(OF_DIGESTS):
        yield wrong("name", f'begins with "{OF_DIGESTS}", which is for digests; write another')
    if kind is None:
        yield wrong("kind", 'is missing; write "cron" with a `cron`, or "webhook"')
    if kind != "digest" and not prompt.strip():
        yield wrong("prompt", "is missing; write what is to be done")
    if len(prompt) > MAX_PROMPT:
        yield wrong("prompt", f"has more than {MAX_PROMPT:,} characters; attach less, or make it a skill")
    elif kind == "webhook":
        yield from _refused("prompt", lambda: prompts.check(prompt))
    if kind == "webhook" and table.cron is not None:
        yield wrong("cron", "is not for webhooks; leave it out")
    if kind in ("cron", "digest") and table.cron is None:
        yield wrong("cron", 'is missing; write when it fires, such as "0 8 * * 1-5"')
    if kind in ("cron", "digest") and table.signing is not None:
        yield wrong("signing", "is for webhooks only; leave it out")
    if (cron := table.cron) is not None:
        yield from _refused("cron", lambda: Schedule.parse(cron, table.timezone or owner.timezone))
    if unheard := [place for place in table.channels or () if not _is_place(place, people)]:
        yield wrong(
            "channels",
            f'does not know {_quoted(unheard)}; write "slack", "email", "web", "slack:" and the id of a '
            "channel, or a name of [[people]]",
        )
    if has_skill and (unskilled := [skill for skill in table.skills or () if not has_skill(skill)]):
        yield wrong(
            "skills",
            f"names what cannot be used: {_quoted(unskilled)}; `pizzabot skills list` shows which can",
        )
    if (table.misfire_max or 0) > _MOST_MISFIRES:
        yield wrong("misfire_max", f"is at most {_MOST_MISFIRES}")


def _refused(field: str, check: Callable[[], object]) -> Iterator[Invalid]:
    try:
        check()
    except Invalid as error:
        yield Invalid(f"{field}: {error}", code=error.code, details=_details(field, str(error)))


def _is_place(place: str, people: People) -> bool:
    kind, _, target = place.partition(":")
    is_channel = kind == "slack" and target[:1] in ("C", "G") and target.isalnum()
    return place in _PLACES or is_channel or people.by_name(place) is not None


def _quoted(texts: Sequence[str]) -> str:
    """The first few, as they can be told."""
    shown = ", ".join(f'"{text[:60]}"' for text in texts[:_MOST_TOLD])
    return shown if len(texts) <= _MOST_TOLD else f"{shown} and {len(texts) - _MOST_TOLD} more"


def wrong(field: str, problem: str) -> Invalid:
    """A field that cannot be as it is written, and the cure."""
    said = f"{problem}." if not problem.endswith(".") else problem
    return Invalid(f"{field}: {said}", code="invalid_trigger", details=_details(field, said))


def _details(field: str, said: str) -> dict[str, Any]:
    return {"errors": [{"path": f"/{field}", "message": said}]}


def _field(problem: Invalid) -> str:
    return str(problem.details["errors"][0]["path"]).strip("/")


def _together(problems: Sequence[Invalid]) -> Invalid:
    """All of them as one refusal."""
    if len(problems) == 1:
        return problems[0]
    errors = [error for problem in problems for error in problem.details["errors"]]
    said = " ".join(str(problem) for problem in problems)
    return Invalid(said, code="invalid_trigger", details={"errors": errors})
