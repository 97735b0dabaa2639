"""Is each mail of the corpus understood rightly by the whole server, from the door to the decision?

Every case meets an action of its own, as its `setup` says; the corpus' own rules grade what the server did.
"""

from __future__ import annotations

import asyncio
import itertools
import smtplib
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from email.utils import parseaddr
from typing import Any

import pytest
import pytest_asyncio
from pizzabot.adapters.email.channel import EmailChannel

from pizzabot.database.connection import Database
from pizzabot.messages import Action, ActionState, Verdict
from tests.fakes.mail.smtp_sink import SmtpSink
from tests.fakes.model_server import ModelServer
from tests.fakes.patience import PATIENCE_SECONDS
from tests.fakes.rows import waits
from tests.fakes.runtime import Served, serving, write_home
from tests.unit.email.conftest import until
from tests.unit.email.mails import CASES, NAMES, PROPOSALS, grade, load

pytestmark = pytest.mark.asyncio(loop_scope="module")

AGENT, AUTHSERV = NAMES["AGENT_ADDR"], NAMES["AUTHSERV_ID"]
SCHEMAS: Mapping[str, Mapping[str, Any]] = {
    "pay_invoice": {
        "type": "object",
        "properties": {
            "vendor": {"type": "string"},
            "amount": {"type": "number"},
            "currency": {"type": "string", "enum": ["EUR", "USD", "GBP"]},
            "note": {"type": "string"},
        },
        "required": ["vendor", "amount", "currency"],
    },
    "send_email": {
        "type": "object",
        "properties": {"to": {"type": "string"}, "subject": {"type": "string"}, "body": {"type": "string"}},
        "required": ["to", "subject", "body"],
    },
    "scale_service": {
        "type": "object",
        "properties": {
            "service": {"type": "string"},
            "replicas": {"type": "integer", "minimum": 0},
            "notify": {"type": "boolean"},
        },
        "required": ["service", "replicas"],
    },
}


def approvers() -> list[str]:
    return sorted({case["setup"]["approver"].lower() for case in CASES})


@dataclass(slots=True)
class House:
    """A server that knows every approver of the corpus."""

    served: Served
    sink: SmtpSink
    channel: EmailChannel
    sequences: dict[str, tuple[Action, dict[str, str]]] = field(default_factory=dict)

    @property
    def database(self) -> Database:
        found: Database = self.served.doors._database
        return found

    async def asked(self, approver: str, proposal: str, state: str) -> tuple[Action, dict[str, str]]:
        """An action that the approver was asked by mail, and what stands for what in the cases."""
        person = self.served.doors.people.by_email(approver)
        assert person is not None
        clock = self.served.doors.clock
        endings = self.served.doors._engine.endings

        def work(connection: Any) -> Action:
            (action,) = waits(
                connection,
                clock,
                person=person.name,
                tool=f"mcp:ledger:{proposal}",
                args=dict(PROPOSALS[proposal]),
                args_schema=SCHEMAS[proposal],
                approvers=(person.name,),
                allowed_decisions=(Verdict.APPROVE, Verdict.EDIT, Verdict.REJECT),
            )
            endings.announce(connection, action)
            return action

        seen = len(self.sink.mails)
        action = await self.database.write(work)
        self.served.doors._delivery.wake()

        def question() -> Any:
            mails = self.sink.mails[seen:]
            return next((m for m in mails if approver in m.recipients and b"[Action]" in m.content), None)

        mail = await until(question, lambda: f"a question to {approver}")
        heads = _heads(mail.content)
        reply_to = parseaddr(heads["reply-to"])[1]
        names = {
            "REPLY_TO": reply_to,
            "REPLY_TO_UPPER": reply_to.upper(),
            "MSGID": heads["message-id"],
            "BOUNCE_ADDR": mail.sender,
        }
        if state == "rejected":
            await self.settle(action, person.name, "reject")
        return action, names

    async def settle(self, action: Action, person: str, decision: str) -> None:
        client = await self.served.as_person(person)
        await client.post(f"/api/actions/{action.id}/decision", json={"decision": decision})

    async def brings(self, raw: bytes, sender: str, recipients: list[str]) -> None:
        def work() -> None:
            with smtplib.SMTP("127.0.0.1", self.channel.port or 0, timeout=60) as client:
                client.sendmail(sender, recipients, raw)

        await asyncio.to_thread(work)


def _heads(raw: bytes) -> dict[str, str]:
    head = raw.replace(b"\r\n ", b" ").split(b"\r\n\r\n")[0].decode()
    return {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head.split("\r\n"))
    }


@pytest.fixture(scope="module")
def sink() -> Iterator[SmtpSink]:
    with SmtpSink() as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def house(
    tmp_path_factory: pytest.TempPathFactory, model: ModelServer, sink: SmtpSink
) -> AsyncIterator[House]:
    people = ['[[people]]\nname = "Owner"\nrole = "owner"\n'] + [
        f'[[people]]\nname = "P{number}"\nrole = "approver"\nemails = ["{mailbox}"]\n'
        for number, mailbox in enumerate(approvers())
    ]
    email = f"""
[email]
address = "{AGENT}"
trusted_authserv_ids = ["{AUTHSERV}"]
[email.listen]
port = 0
[email.smtp]
host = "127.0.0.1"
port = {sink.port}
security = "none"
[email.caps]
per_verified_person_hour = 100000
questions_per_action = 1000
"""
    home = write_home(
        tmp_path_factory.mktemp("corpus") / "home", model.url, people="".join(people), more_toml=email
    )
    async with serving(home) as served:
        await served.runtime.working
        channel: Any = served.runtime.channels["email"]
        yield House(served, sink, channel)


async def result(house: House, case: Mapping[str, Any]) -> dict[str, Any]:
    """What the server did with a case."""
    setup, sequence = case["setup"], case.get("sequence")
    await house.channel.mailboxes.is_alive(setup["approver"])
    if sequence is not None and sequence in house.sequences:
        action, names = house.sequences[sequence]
    else:
        state = "rejected" if setup["action"] == "A3" else "pending"
        action, names = await house.asked(setup["approver"].lower(), setup["proposal"], state)
        if setup["action"] == "A3":
            names |= {"REPLY_TO_DECIDED": names["REPLY_TO"], "MSGID_DECIDED": names["MSGID"]}
        if sequence is not None:
            house.sequences[sequence] = action, names
    if setup["action"] is None:
        names = {}
    await _quiet(house, action)  # of the case before, in the same conversation
    before = await _action(house, action)
    threads = await _count(house)
    seen = len(house.sink.mails)
    raw = load(case["file"], names)
    envelope = [names.get("REPLY_TO", AGENT)]
    sender = _heads(raw).get("return-path", "").strip("<>")
    await house.brings(raw, sender, envelope)
    await _quiet(house, action)
    after = await _action(house, action)
    replies = [m for m in house.sink.mails[seen:] if b"[Action]" not in m.content and b"Re: " in m.content]
    notes = [m for m in replies if not _is_answer(m.content)]
    return {
        "decision": _decision(before, after, asked_back=bool(notes), began=await _count(house) > threads),
        "answered": bool(replies),
        "answer_to": replies[0].recipients[0] if replies else None,
    }


def _is_answer(content: bytes) -> bool:
    return b"auto-replied" not in content


async def _action(house: House, action: Action) -> dict[str, Any]:
    found: dict[str, Any] = (await house.served.http.get(f"/api/threads/{action.thread_id}")).json()
    return dict(found["actions"][0]) | {"messages": len(found["messages"])}


async def _count(house: House) -> int:
    body = (await house.served.http.get("/api/threads")).json()
    return int(body["counts"]["all"])


async def _quiet(house: House, action: Action) -> None:
    """Return when nothing is at work in the conversation, and nothing waits to be sent any more."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        for _ in itertools.count():
            thread = (await house.served.http.get(f"/api/threads/{action.thread_id}")).json()
            outbox = (await house.served.http.get("/api/status")).json()["outbox"]
            is_at_rest = thread["state"] not in ("queued", "running")
            if is_at_rest and outbox["pending"] == outbox["unknown"] == 0:
                return
            await asyncio.sleep(0.02)


def _decision(
    before: Mapping[str, Any], after: Mapping[str, Any], *, asked_back: bool, began: bool
) -> dict[str, Any]:
    if after["state"] == before["state"]:
        if began or (after["messages"] > before["messages"] and not asked_back):
            return {"kind": "message"}
        return {"kind": "clarify" if asked_back else "none"}
    match after["state"]:
        case ActionState.APPROVED:
            return {"kind": "approve"}
        case ActionState.EDITED:
            args, final = after["args"], after["final_args"]
            changes = {name: value for name, value in final.items() if args.get(name) != value}
            return {"kind": "edit", "changes": changes}
        case ActionState.REJECTED:
            return {"kind": "reject", "reason": after.get("reason") or ""}
    return {"kind": after["state"]}


REFUSED = "gen_attachment_30mb.eml"  # already at the door


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if case["file"] != REFUSED],
    ids=lambda case: case["file"].removesuffix(".eml"),
)
async def test_a_mail_of_the_corpus_is_understood(house: House, case: dict[str, Any]) -> None:
    found = await result(house, case)
    graded = grade.grade({case["file"]: found})
    assert graded["unsafe"] == []
    assert graded["total"]["accepted"] == 1, (case["decision"], case["accept_also"], found)
