"""What survives `kill -9` of what nobody is there to watch? Firings, deliveries, clocks, digests, budgets.

`python -m tests.lab.ticks` runs the long form; `tests/scenario/test_ticks_kill.py` a short one. It goes in
courses. In each, rows are made due while no server is there, others' programs deliver to webhooks until they
are acknowledged, a person answers the digest by mail, another decides whatever waits; and the server dies,
several times, at moments that have names (`MOMENTS`), at any commit, or at any time. Then it lives on, all
must come to rest, and:

* each firing is one occurrence, with one run, that ended as the run did; a digest's firing is one digest
* each call of a tool reached the tool server once, or once more after somebody said Retry
* an action expired, was told again and was shown to the substitutes once: in the audit and in the outbox
* each number of a reply to a digest was decided once, and the reply answered once
* what a run used is the sum of its calls; each word that allowed more allowed it once
* the trigger that failed three times was paused, asked about and let go on once
* everything was delivered, and the audit's chain holds
"""

from __future__ import annotations

import argparse
import hashlib
import hmac
import json
import random
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from email.message import EmailMessage
from functools import partial
from pathlib import Path
from sqlite3 import connect
from typing import Any

import httpx

from pizzabot.home import Home
from tests.fakes.mail.smtp_sink import SmtpSink
from tests.fakes.mail.taken import body
from tests.fakes.model_server import ModelServer
from tests.fakes.runtime import ledger_calls, write_home
from tests.lab.kill import Lab
from tests.lab.nursery import Doomed, Edge, Moment
from tests.scenario.mailing import Office, answer, email_toml, free_port, listen_toml

Json = dict[str, Any]
REST_SECONDS = 150.0
LIFE_SECONDS = 60.0  # the longest wait for a moment
_PAUSE_SECONDS = 0.2  # of everybody, between two tries
LIVES = 4  # of a course, before the one in which everything comes to rest
_SECRET = "correct-horse-battery-staple"
_YEARLY = "0 0 1 1 *"
_LISTS, _CONFIRMED = "Answer this mail with what you decide", "What you decided"
_DAY = 86_400.0

PEOPLE = f"""
[[people]]
name = "Ada"
role = "owner"
emails = ["ada@example.com"]
digest = "{_YEARLY}"

[[people]]
name = "Bob"
role = "approver"
emails = ["bob@example.com"]

[[people]]
name = "Cay"
role = "member"
emails = ["cay@example.com"]
day_usd = 3
"""
# Each model call reads a thousand tokens, and a thousand tokens cost a dollar.
_TOKENS = (1_000, 0)
_MORE = """
[email.caps]
automatic_per_thread = 1000000

[prices."openai:mock"]
input = 1000.0
output = 1000.0

[limits]
run_usd = 1000
day_usd = 1000000

[approvals]
reminder_after = "4h"
escalate_after = "1d"
escalate_to = ["Bob"]
expire_after = "7d"
on_expiry = "{on_expiry}"

[[approvals.rules]]
tool = "mcp:ledger:pay_invoice"
ask = false
"""


def _gated(note: str) -> str:
    return f'[[call bookkeeper submit_expense {{"amount": 1, "note": "{note}"}}]]'


def _free(note: str) -> str:
    args = f'{{"vendor": "v", "amount": 1, "currency": "EUR", "note": "{note}"}}'
    return f"[[call bookkeeper pay_invoice {args}]]"


_FIELD = "{{ payload.note }}"
_LOOKUP = f'[[call bookkeeper lookup {{"query": "{_FIELD}"}}]]'
TRIGGERS: Mapping[str, Json] = {
    "Yearly gated": {"cron": _YEARLY, "prompt": "[[say nothing]]"},
    "Yearly free": {"cron": _YEARLY, "prompt": "[[say nothing]]"},
    "By hand": {"cron": _YEARLY, "prompt": "[[say by hand]]", "overlap": "allow"},
    "Orders": {"kind": "webhook", "prompt": _free(_FIELD), "overlap": "allow"},
    "Signed": {"kind": "webhook", "prompt": _free(_FIELD), "overlap": "allow", "signing": "hmac"},
    "Bills": {"kind": "webhook", "prompt": _gated(_FIELD), "overlap": "queue"},
    "Broken": {"kind": "webhook", "prompt": "[[fail 401 1000000]]", "overlap": "queue"},
    "Dear": {"kind": "webhook", "prompt": _LOOKUP, "overlap": "allow", "budget_usd": 2},
    "Thrift": {"kind": "webhook", "prompt": _LOOKUP, "overlap": "allow", "owner": "Cay"},
}
SCHEDULED = ("Yearly gated", "Yearly free", "digest:Ada")
DELIVERIES = ("Orders", "Orders", "Bills", "Bills", "Broken", "Broken", "Broken", "Dear", "Thrift")
LISTED = ("listed-approve", "listed-reject", "listed-snooze")  # decided by the answer to the digest
LEFT_ALONE = (*LISTED, "lapse", "urge")
_REPLY = {
    "listed-approve": "approve {}",
    "listed-reject": "reject {}: too dear",
    "listed-snooze": "snooze {} to 3 days",
}

# What is written at each moment that matters; the death comes just before its commit, or just after it.
MOMENTS: Mapping[str, str] = {
    "a schedule's occurrence": r"INSERT INTO occurrences .*'cron/",
    "a firing's run": r"'trigger\.fired'",
    "the claim of a run": r"UPDATE runs SET .*attempt=\(runs",
    "the start of its workflow": r"INSERT INTO workflow_status",
    "the end of a run": r"'run\.done'",
    "the failure of a run": r"'run\.failed'",
    "the end of an occurrence": r"'occurrence\.succeeded'",
    "the failure of an occurrence": r"'occurrence\.failed'",
    "the third failure and its question": r"'trigger\.paused'",
    "the answer to that question": r"'trigger\.answered'",
    "a delivery": r"INSERT INTO occurrences .*'hook/",
    "a signed delivery": r"INSERT INTO occurrences .*'once/",
    "a run by hand": r"INSERT INTO occurrences .*'manual/",
    "an expiry": r"'action\.expired'",
    "an escalation": r"'action\.escalated'",
    "a reminder": r"'action\.reminded'",
    "a digest": r"'digest\.made'",
    "a copy that is sent": r"UPDATE outbox SET state='sent'",
    "what a digest's mail was called": r"INSERT INTO channel_notes .*'mail/",
    "a reply's mark": r"'deciding/",
    "a number that is approved": r"'email', 'action\.approved'",
    "a number that is rejected": r"'email', 'action\.rejected'",
    "a number that is put off": r"'action\.snoozed'",
    "the answer to a reply": r"'told/",
    "a reply that is taken": r"'taken/",
    "what a model call used": r"INSERT INTO usage",
    "more for a run": r"UPDATE runs SET allowance",
    "more for a day": r"'budget\.raised'",
    "what a step of the graph found": r"INTO writes",
    "a step of the graph": r"INTO checkpoints",
    "an effect's start": r"INSERT INTO effects",
    "an effect's end": r"UPDATE effects",
}


@dataclass(slots=True)
class Found:
    """What was done to the server, and what was wrong in the end."""

    kills: int = 0
    named: Counter[str] = field(default_factory=Counter)  # deaths at the moment that was asked for
    courses: int = 0
    retried: Counter[str] = field(default_factory=Counter)  # note -> times somebody said Retry
    faults: list[str] = field(default_factory=list)


class Ticks(Lab):
    """The people and programs around the server."""

    def __init__(self, office: Office, server: Doomed, model: ModelServer, seed: int, *, parks: bool) -> None:
        super().__init__(server, seed)
        self._office, self._doomed, self._model, self._parks = office, server, model, parks
        self.found = Found()
        self._chance = random.Random(seed)
        self._triggers: dict[str, str] = {}  # name -> id
        self._http = httpx.Client(verify=False, timeout=5, trust_env=False)  # one: making it is what costs
        self._read: tuple[int, list[EmailMessage]] = (-1, [])
        self._decider = threading.Thread(target=self.decide, daemon=True)
        self._taken: defaultdict[str, set[str]] = defaultdict(set)  # key of a delivery -> occurrences named
        self._expected: set[str] = set()  # notes of which exactly one call has to be made

    # -- the course --------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Make the triggers, and let the one who decides begin."""
        self._doomed.start()
        self._await_health()
        for name, fields in TRIGGERS.items():
            secret = {"secret": _SECRET} if fields.get("kind") == "webhook" else {}
            made = self._asked("POST", "/api/triggers", json={"name": name, **fields, **secret})
            self._triggers[name] = made["id"]
        self._decider.start()

    def course(self, moments: Sequence[Moment | None]) -> list[Moment | None]:
        """Die at each of these moments, None being any, then come to rest; what is wrong then is a fault.

        Returns the moments that did not come.
        """
        number = self.found.courses
        self.found.courses += 1
        if number:
            self._tidy_up(number - 1)
        listed = self._post([f"{kind}-{number}" for kind in LEFT_ALONE])
        self._doomed.kill()
        self._make_due(number, listed)
        deeds: list[Callable[[], None]] = [
            *(partial(self._deliver, name, f"{name}-{number}-{n}") for n, name in enumerate(DELIVERIES)),
            partial(self._deliver_signed, f"Signed-{number}"),
            partial(self._run_by_hand, f"by-hand-{number}"),
            partial(self._reply, number),
        ]
        people = [threading.Thread(target=deed, daemon=True) for deed in deeds]
        for person in people:
            person.start()
        missed = [moment for moment in moments if not self._dies_at(moment, number, people)]
        self._doomed.start()
        self._rest(number, people)
        self._look(number)
        return missed

    def _dies_at(self, moment: Moment | None, number: int, people: Sequence[threading.Thread]) -> bool:
        """Live until the moment, or be killed when it does not come any more; whether it came."""
        self._doomed.start(moment)
        if moment is None:
            died = self._doomed.dies(self._chance.uniform(0.2, 6.0))
        else:
            end = time.monotonic() + LIFE_SECONDS
            while not (died := self._doomed.dies(1.0)) and time.monotonic() < end:
                if not self._missing(number, people):
                    break
        if died and moment is not None:
            self.found.named[str(moment)] += 1
        elif died:
            self.found.faults.append("the server ended by itself: " + self._doomed.log.read_text()[-500:])
        self._doomed.kill()
        self.found.kills += 1
        return died or moment is None

    def over(self) -> None:
        """Nobody does anything any more."""
        self._done.set()
        if self._decider.is_alive():
            self._decider.join(LIFE_SECONDS)
        self._http.close()

    # -- asking ------------------------------------------------------------------------------------------

    def request(self, method: str, path: str, **kwargs: Any) -> httpx.Response | None:
        if not self._doomed.is_alive:
            return None
        try:
            token = (self._doomed.home / "token").read_text().strip()
            host, port = (self._doomed.home / ".address").read_text().split()
            headers = {"Authorization": f"Bearer {token}", **kwargs.pop("headers", {})}
            return self._http.request(method, f"http://{host}:{port}{path}", headers=headers, **kwargs)
        except (OSError, ValueError, httpx.HTTPError):
            return None

    def _asked(self, method: str, path: str, **kwargs: Any) -> Json:
        """What the server says, once it says yes."""
        return self._until_yes(lambda: self.request(method, path, **kwargs), f"{method} {path}")

    def _until_yes(self, ask: Callable[[], Any], what: str) -> Json:
        while not self._done.is_set():
            response = ask()
            if response is not None and response.status_code in (200, 201, 202):
                said: Json = response.json()
                return said
            # Without a secret that was known, 401: the webhook's; else the token's of a server that is gone.
            if response is not None and response.status_code not in (401, 429, 503):
                self.found.faults.append(f"{what}: {response.status_code} {response.text[:200]}")
                return {}
            time.sleep(_PAUSE_SECONDS)
        return {}

    def _post(self, notes: Sequence[str]) -> Json:
        """Have each of these calls asked about; the actions by note."""
        for note in notes:
            body = {"text": _gated(note), "title": note}
            self._asked("POST", "/api/threads", json=body, headers={"Idempotency-Key": note})
        end = time.monotonic() + REST_SECONDS
        while time.monotonic() < end:
            waiting = self._asked("GET", "/api/actions?state=pending&limit=100")["actions"]
            by_note = {_note(action): action for action in waiting}
            if all(note in by_note for note in notes):
                return by_note
            time.sleep(0.1)
        raise AssertionError(f"nobody asks about {notes}")

    def _deliver(self, name: str, key: str) -> None:
        """Bring a delivery to a webhook until it is acknowledged, and once more."""
        sent = {"X-Trigger-Secret": _SECRET, "Idempotency-Key": key, "Content-Type": "application/json"}
        if name in ("Orders", "Bills"):
            self._expected.add(key)
        self._bring(name, key, sent, json.dumps({"note": key}).encode())

    def _deliver_signed(self, key: str) -> None:
        """The same under a signature alone, which is what makes it one."""
        content, stamp = json.dumps({"note": key}).encode(), str(int(time.time()))
        signed = hmac.new(_SECRET.encode(), stamp.encode() + b"." + content, hashlib.sha256).hexdigest()
        sent = {"X-Signature": f"sha256={signed}", "X-Timestamp": stamp, "Content-Type": "application/json"}
        self._expected.add(key)
        self._bring("Signed", key, sent, content)

    def _bring(self, name: str, key: str, sent: Mapping[str, str], content: bytes) -> None:
        path = f"/hooks/{self._triggers[name]}"
        for _ in range(2):
            said = self._until_yes(
                lambda: self.request("POST", path, headers=dict(sent), content=content), f"deliver {key}"
            )
            self._taken[key].add(said.get("occurrence_id", ""))

    def _run_by_hand(self, key: str) -> None:
        path = f"/api/triggers/{self._triggers['By hand']}/run"
        for _ in range(2):
            said = self._asked("POST", path, headers={"Idempotency-Key": key})
            self._taken[key].add(said.get("id", ""))

    def _reply(self, number: int) -> None:
        """Answer the course's digest, once it came by mail."""
        while len(mails := self._mails(_LISTS)) <= number:
            if self._done.is_set():
                return
            time.sleep(_PAUSE_SECONDS)
        newest = self._rows(
            "SELECT i.number, a.args FROM digest_items i JOIN actions a ON a.id = i.action_id "
            "WHERE i.digest_id = (SELECT max(id) FROM digests)"
        )
        numbers = {json.loads(args).get("note"): n for n, args in newest}
        said = [words.format(numbers[f"{kind}-{number}"]) for kind, words in _REPLY.items()]
        self._office.sends(answer(mails[-1], "; ".join(said)))

    def _mails(self, words: str) -> list[EmailMessage]:
        """The mails with these words that came, each once."""
        if self._read[0] != (count := len(self._office.sink.mails)):
            self._read = (count, self._office.copies(""))
        return list({str(m["Message-ID"]): m for m in self._read[1] if words in body(m)}.values())

    # -- deciding ----------------------------------------------------------------------------------------

    def _answer(self, action: Json) -> None:
        note = _note(action)
        if note.startswith(LEFT_ALONE) and action["kind"] == "tool":
            return
        if action["kind"] == "uncertain":
            self._settle_call(action, note)
        else:
            self._say(action, {"decision": "approve", "digest": action["digest"]}, None)

    def _settle_call(self, action: Json, note: str) -> None:
        """A call whose end nobody saw: look whether it happened, as a person would."""
        time.sleep(0.5)  # the tool server may still be at it
        happened = any(row["args"].get("note") == note for row in ledger_calls(Home(self._doomed.home)))
        self._say(action, {"decision": "done" if happened else "retry"}, None)
        self.found.retried[note] += not happened

    # -- rows --------------------------------------------------------------------------------------------

    def _rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with closing(connect(self._doomed.home / "app.sqlite", timeout=30)) as database:
            return database.execute(query, values).fetchall()

    def _one(self, query: str, *values: Any) -> Any:
        return self._rows(query, *values)[0][0]

    def _change(self, changes: Sequence[tuple[str, tuple[Any, ...]]]) -> None:
        with closing(connect(self._doomed.home / "app.sqlite", timeout=30)) as database:
            for statement, values in changes:
                assert database.execute(statement, values).rowcount > 0, statement
            database.commit()

    def _make_due(self, number: int, listed: Json) -> None:
        """Let the schedules' moments have passed, and the time of two actions be over."""
        now = int(time.time() * 1_000_000)
        due, a_year_ago = now - 1_000_000, now - int(370 * _DAY * 1_000_000)
        prompts = {
            "Yearly gated": _gated(f"gated-{number}"),
            "Yearly free": _free(f"free-{number}"),
            "digest:Ada": "",
        }
        self._expected |= {f"gated-{number}", f"free-{number}", f"listed-approve-{number}"}
        lapse, urge = listed[f"lapse-{number}"]["id"], listed[f"urge-{number}"]["id"]
        moved = "UPDATE triggers SET watched_until = ?, next_run_at = ?, prompt = ? WHERE name = ?"
        self._change(
            [
                *((moved, (a_year_ago, due, prompts[name], name)) for name in SCHEDULED),
                ("UPDATE actions SET expires_at = ? WHERE id = ?", (due, lapse)),
                ("UPDATE actions SET escalates_at = ? WHERE id = ?", (due, urge)),
                ("UPDATE reminders SET due_at = ? WHERE action_id = ? AND person = 'Ada'", (due, urge)),
            ]
        )

    # -- coming to rest ----------------------------------------------------------------------------------

    def _rest(self, number: int, people: Sequence[threading.Thread]) -> None:
        end = time.monotonic() + REST_SECONDS
        while time.monotonic() < end:
            if not (missing := self._missing(number, people)):
                return
            time.sleep(0.2)
        self.found.faults.append(f"course {number} is not at rest: {missing}")

    def _missing(self, number: int, people: Sequence[threading.Thread]) -> list[str]:
        return [person.name for person in people if person.is_alive()] or self._unfinished(number)

    def _unfinished(self, number: int) -> list[str]:
        """What is still to come."""
        awaited = {
            "outbox": "SELECT count(*) FROM outbox WHERE state IN ('pending', 'sending', 'unknown')",
            "firings": "SELECT count(*) FROM occurrences WHERE state IN ('pending', 'running', 'waiting')",
            "runs": "SELECT count(*) FROM runs WHERE state IN ('queued', 'running')",
            "due": "SELECT count(*) FROM triggers WHERE next_run_at < strftime('%s') * 1000000",
            "paused": "SELECT count(*) FROM triggers WHERE paused IS NOT NULL",
            "asked": "SELECT count(*) FROM actions WHERE state = 'pending' AND kind <> 'tool'",
        }
        missing = [name for name, query in awaited.items() if self._one(query)]
        if len(self._mails(_CONFIRMED)) <= number:
            missing.append("the answer to the reply")
        return missing

    # -- looking -----------------------------------------------------------------------------------------

    def _look(self, number: int) -> None:
        """Everything must be so that nobody can tell that the server died."""
        for look in (
            self._occurrences,
            self._calls,
            self._clocks,
            self._digests,
            self._budgets,
            self._failures,
        ):
            for fault in look(number):
                self.found.faults.append(f"course {number}: {fault}")
        for state, error, key in self._rows("SELECT state, error, key FROM outbox WHERE state <> 'sent'"):
            # Of a mail whose answer was lost nobody knows, and it is said so.
            if state != "failed" or "probably arrived" not in (error or ""):
                self.found.faults.append(f"course {number}: {key} is {state}: {error}")
        if not self._asked("GET", "/api/audit/verify").get("ok"):
            self.found.faults.append(f"course {number}: the audit's chain is broken")

    def _audited(self, event: str, subject: str | None = None) -> int:
        which = "event = ?" if subject is None else "event = ? AND subject = ?"
        values = (event,) if subject is None else (event, subject)
        return int(self._one(f"SELECT count(*) FROM audit WHERE {which}", *values))

    def _occurrences(self, number: int) -> Iterator[str]:
        """Each firing once, with one run that ended as it did."""
        for name in SCHEDULED:
            fired = self._rows(
                "SELECT o.state FROM occurrences o JOIN triggers t ON t.id = o.trigger_id "
                "WHERE t.name = ? AND o.key LIKE 'cron/%' AND o.key NOT LIKE '%#%'",
                name,
            )
            if fired != [("succeeded",)]:
                yield f"{name} fired as {fired}"
        for key, named in self._taken.items():
            if len(named) != 1:
                yield f"{key} was acknowledged as {named}"
        others = "SELECT id FROM occurrences WHERE key NOT LIKE 'cron/%'"
        if (made := {row[0] for row in self._rows(others)}) != (told := set().union(*self._taken.values())):
            yield f"{len(made)} firings of {len(told)} deliveries"
        lost = "SELECT key, state FROM occurrences WHERE state IN ('dead', 'skipped')"
        yield from (f"{key} is {state}" for key, state in self._rows(lost))
        apart = (
            "SELECT o.key, o.state, r.state FROM occurrences o LEFT JOIN runs r ON r.id = o.run_id "
            "JOIN triggers t ON t.id = o.trigger_id WHERE t.kind <> 'digest' AND (r.state IS NULL OR "
            "(r.state, o.state) NOT IN (VALUES ('done', 'succeeded'), ('failed', 'failed')))"
        )
        yield from (f"{key} is {state}, its run {run}" for key, state, run in self._rows(apart))
        twice = (
            "SELECT trigger_id, count(*) FROM runs r WHERE trigger_id IS NOT NULL AND NOT EXISTS "
            "(SELECT 1 FROM occurrences o WHERE o.run_id = r.id) GROUP BY trigger_id"
        )
        yield from (f"{count} runs of {trigger} are of no firing" for trigger, count in self._rows(twice))
        spoken = (
            "SELECT t.title, m.role, count(*) FROM messages m JOIN threads t ON t.id = m.thread_id "
            "JOIN runs r ON r.thread_id = t.id WHERE r.trigger_id IS NOT NULL "
            "AND m.role IN ('user', 'assistant') GROUP BY t.id, m.role HAVING count(*) > 1"
        )
        yield from (f"{title} has {count} of {role}" for title, role, count in self._rows(spoken))

    def _calls(self, number: int) -> Iterator[str]:
        """Each call once; what nobody let through, never."""
        calls = ledger_calls(Home(self._doomed.home), "start")
        ran = Counter(row["args"]["note"] for row in calls if "note" in row["args"])
        for note in self._expected | set(ran):
            times = 1 + self.found.retried[note] if note in self._expected else 0
            if not (ran[note] == times or (note in self._expected and 1 <= ran[note] <= times)):
                yield f"{note} ran {ran[note]} times instead of {times}"

    def _clocks(self, number: int) -> Iterator[str]:
        """An action expired, was told again and shown to others, each once."""
        ((lapse, thread, state),) = self._rows(
            "SELECT id, thread_id, state FROM actions WHERE args ->> 'note' = ?", f"lapse-{number}"
        )
        said = self._one(
            "SELECT count(*) FROM messages WHERE thread_id = ? AND text LIKE 'Nobody decided in time%'",
            thread,
        )
        ((urge, substitutes),) = self._rows(
            "SELECT id, escalated_to FROM actions WHERE args ->> 'note' = ?", f"urge-{number}"
        )
        counted = {
            "state": (state, "expired"),
            "lines about the expiry": (self._audited("action.expired", lapse), 1),
            "notices about the expiry": (said, 1 if self._parks else 0),
            "lines about the reminder": (self._audited("action.reminded", urge), 1),
            "reminders": (self._queued(f"reminder/{urge}/%/email/ada@%"), 1),
            "lines about the escalation": (self._audited("action.escalated", urge), 1),
            "substitutes": (json.loads(substitutes), ["Bob"]),
            "cards of the substitute": (self._queued(f"action/{urge}/email/bob@%"), 1),
        }
        yield from (f"{what}: {has}, not {want}" for what, (has, want) in counted.items() if has != want)

    def _queued(self, like: str) -> int:
        return int(self._one("SELECT count(*) FROM outbox WHERE key LIKE ?", like))

    def _digests(self, number: int) -> Iterator[str]:
        """One digest for the firing; each number of the answer decided once."""
        counted = {
            "digests": self._one("SELECT count(*) FROM digests"),
            "lines about digests": self._audited("digest.made"),
            "copies of digests": self._one(
                "SELECT count(*) FROM outbox WHERE kind = 'digest' AND external_id IS NULL"
            ),
            "copies that are marked": self._one(
                "SELECT count(DISTINCT digest_id) FROM deliveries WHERE digest_id IS NOT NULL "
                "AND shown_state IS NOT NULL"
            ),
            "mails with digests": len(self._mails(_LISTS)),
            "answers to replies": len(self._mails(_CONFIRMED)),
        }
        yield from (f"{what}: {has}" for what, has in counted.items() if has != number + 1)
        for kind, event in zip(LISTED, ("approved", "rejected", "snoozed"), strict=True):
            lines = self._rows(
                "SELECT u.event, u.via FROM audit u JOIN actions a ON a.id = u.subject "
                "WHERE a.args ->> 'note' = ? AND a.kind = 'tool' AND u.event <> 'action.asked'",
                f"{kind}-{number}",
            )
            if lines != [(f"action.{event}", "email")]:
                yield f"{kind} was decided as {lines}"

    def _budgets(self, number: int) -> Iterator[str]:
        """What was used is the sum of the calls, and what was allowed that of the words that allowed it."""
        runs = self._rows(
            "SELECT r.id, r.used, r.allowance, coalesce(sum(u.cost_usd), 0), "
            "coalesce(sum(u.input_tokens + u.output_tokens), 0) "
            "FROM runs r LEFT JOIN usage u ON u.run_id = r.id GROUP BY r.id"
        )
        for run_id, used_text, allowance_text, usd, tokens in runs:
            used, allowance = json.loads(used_text), json.loads(allowance_text)
            if (used.get("usd", 0), used.get("tokens", 0)) != (usd, tokens):
                yield f"{run_id} used {used}, its calls {usd} dollars and {tokens} tokens"
            words = self._one(
                "SELECT count(*) FROM actions WHERE run_id = ? AND tool = 'limit:usd' AND state = 'approved'",
                run_id,
            )
            if allowance["usd"] != allowance.get("given", allowance).get("usd", allowance["usd"]) * (
                1 + words
            ):
                yield f"{run_id} was allowed more {words} times and has {allowance}"
        answered = sum(asked.status == 200 for asked in list(self._model.asked))
        if (rows := self._one("SELECT count(*) FROM usage")) > answered:
            yield f"{rows} calls are counted, {answered} were answered"
        raised, lines = self._one("SELECT count(*) FROM day_raises"), self._audited("budget.raised")
        words = self._one(
            "SELECT count(*) FROM actions WHERE tool = 'limit:person_day_usd' AND state = 'approved' "
            "AND reason IS NULL"
        )
        if not raised == lines == words or not raised:
            yield f"{words} words raised a day, {raised} rows and {lines} lines say so"

    def _failures(self, number: int) -> Iterator[str]:
        """Three failures in a row: paused once, asked once, answered once."""
        stands = self._rows("SELECT failures, paused, paused_action FROM triggers WHERE name = 'Broken'")
        asked = self._one("SELECT count(*) FROM actions WHERE tool = 'limit:failures'")
        counted = (asked, self._audited("trigger.paused"), self._audited("trigger.answered"))
        if stands != [(0, None, None)] or counted != (number + 1,) * 3:
            yield f"the broken trigger stands at {stands}; asked, paused, answered: {counted}"

    # -- for the next course -----------------------------------------------------------------------------

    def _tidy_up(self, number: int) -> None:
        """Answer what is left, and let the schedules' moments be able to come again."""
        left = [f"{kind}-{number}" for kind in ("listed-snooze", "lapse", "urge")]
        for note in left:
            rows = self._rows("SELECT id, state FROM actions WHERE args ->> 'note' = ?", note)
            for action_id, state in rows:
                if state == "expired" and self._parks:
                    self._asked("POST", f"/api/actions/{action_id}/reopen")
                if state == "pending" or self._parks:
                    self._asked("POST", f"/api/actions/{action_id}/decision", json={"decision": "reject"})
        end = time.monotonic() + REST_SECONDS
        while time.monotonic() < end and self._one(
            "SELECT count(*) FROM runs WHERE state IN ('queued', 'running', 'waiting')"
        ):
            time.sleep(0.1)
        self._change(
            [
                (
                    "UPDATE occurrences SET key = key || ? WHERE key LIKE 'cron/%' AND key NOT LIKE '%#%'",
                    (f"#{number}",),
                )
            ]
        )


def _note(action: Json) -> str:
    return str(action["args"].get("note", ""))


def run(folder: Path, *, seed: int, deaths: Sequence[Moment | None], parks: bool = True) -> Found:
    """The whole lab in a folder, with all these deaths; a moment that does not come gets another course."""
    with ModelServer(tokens=_TOKENS) as model, SmtpSink() as sink:
        door = free_port()
        more = email_toml(sink.port, listen_toml(door)) + _MORE.format(
            on_expiry="park" if parks else "reject"
        )
        home = write_home(
            folder / "home", model.url, people=PEOPLE, more_toml=more, ledger_env={"LEDGER_DELAY": "0.1"}
        )
        server = Doomed(home.path)
        lab = Ticks(Office(server, sink, door), server, model, seed, parks=parks)
        try:
            lab.prepare()
            left, missed = [*deaths], set[Moment | None]()
            while left:
                late = lab.course(left[:LIVES])
                left = [moment for moment in late if moment not in missed] + left[LIVES:]
                missed |= {*late}
        finally:
            lab.over()
            server.stop()
        return lab.found


def drawn(rounds: int, seed: int) -> list[Moment | None]:
    """So many deaths: before and after every named moment, then at later ones, any commit and any time."""
    chance = random.Random(seed)
    edges: tuple[Edge, ...] = ("before", "after")
    named: list[Moment | None] = [Moment(edge, words) for words in MOMENTS.values() for edge in edges]
    while len(named) < rounds:
        edge, words = chance.choice(edges), chance.choice([*MOMENTS.values()])
        later = Moment(edge, words, chance.randrange(2, 9))
        named.append(chance.choice([None, Moment(edge, "", chance.randrange(1, 250)), later]))
    chance.shuffle(named)
    return named[:rounds]


def main() -> int:
    """Run the long form and print what happened; exit code 1 when a promise was broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=100, help="how often the server dies")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        deaths = drawn(options.rounds, options.seed)
        found = run(Path(folder), seed=options.seed, deaths=deaths, parks=options.seed % 2 == 0)
    at_named = sum(found.named.values())
    print(
        f"seed {options.seed}: {found.kills} kills, {at_named} at their moment, in {found.courses} courses, "
        f"{sum(found.retried.values())} calls again, {len(found.faults)} faults"
    )
    for fault in found.faults:
        print(" ", fault)
    return 1 if found.faults else 0


if __name__ == "__main__":
    sys.exit(main())
