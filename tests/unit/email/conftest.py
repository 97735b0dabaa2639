"""One running server with a door for mail, one server that takes its mail, and one scripted model."""

from __future__ import annotations

import asyncio
import itertools
import json
import smtplib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from email import policy
from email.message import EmailMessage
from email.utils import getaddresses
from typing import Any, TypeVar

import pytest
import pytest_asyncio

from tests.fakes.mail.smtp_sink import SmtpSink
from tests.fakes.mail.taken import body, parsed, subject
from tests.fakes.model_server import ModelServer
from tests.fakes.patience import PATIENCE_SECONDS
from tests.fakes.runtime import BOOKKEEPER, Served, serving, write_home

_T = TypeVar("_T")

AGENT, AUTHSERV = "pizza@bot.example", "mx.bot.example"
ADA, BOB, CAY, EVE = "ada@example.com", "bob@example.com", "cay@example.com", "eve@elsewhere.example"

PEOPLE = f"""
[[people]]
name = "Ada"
role = "owner"
emails = ["{ADA}", "ada@home.example"]
timezone = "Europe/Amsterdam"

[[people]]
name = "Bob"
role = "approver"
emails = ["{BOB}"]

[[people]]
name = "Cay"
role = "member"
emails = ["{CAY}"]
digest = "0 0 1 1 *"

[[people]]
name = "Dan"
role = "member"
emails = ["dan@example.com"]
digest = "0 0 1 1 *"
"""

RULES = """
[[approvals.rules]]
tool = "mcp:ledger:pay_invoice"
approvers = ["Bob"]

[[approvals.rules]]
tool = "mcp:ledger:scale_service"
approvers = ["Ada", "Bob"]
quorum = 2
"""


@dataclass(slots=True)
class Post:
    """People with mail programs, and the server that answers them."""

    served: Served
    sink: SmtpSink
    door_port: int
    read: set[int] = field(default_factory=set)
    _number: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    async def sends(
        self,
        author: str,
        text: str,
        *,
        to: str = AGENT,
        subject: str = "A task",
        answers: EmailMessage | None = None,
        cc: Sequence[str] = (),
        results: str | None = "dmarc=pass",
        message_id: str | None = None,
        headers: Sequence[tuple[str, str]] = (),
        files: Sequence[tuple[str, bytes]] = (),
    ) -> str:
        """Somebody sends a mail through a server that writes what it found out about its sender."""
        mail = EmailMessage(policy=policy.SMTP)
        domain = author.rpartition("@")[2]
        if results is not None:
            mail["Authentication-Results"] = f"{AUTHSERV}; {results} header.from={domain}"
        mail["From"] = author
        mail["To"] = to
        if cc:
            mail["Cc"] = ", ".join(cc)
        mail["Subject"] = f"Re: {answers['Subject']}" if answers is not None else subject
        mail["Message-ID"] = message_id or f"<{next(self._number)}.{time.monotonic_ns()}@{domain}>"
        if answers is not None:
            mail["In-Reply-To"] = answers["Message-ID"]
            mail["References"] = f"{answers['References'] or ''} {answers['Message-ID']}".strip()
        for name, value in headers:
            mail[name] = value
        mail.set_content(text)
        for name, content in files:
            mail.add_attachment(content, maintype="application", subtype="octet-stream", filename=name)
        await self.brings(mail.as_bytes(), author, [to, *cc])
        return str(mail["Message-ID"])

    async def brings(self, raw: bytes, sender: str, recipients: Sequence[str]) -> None:
        """Hand a mail to the door, as the server in front of it does."""

        def work() -> None:
            ours = [address for address in recipients if address.lower().endswith("@bot.example")]
            with smtplib.SMTP("127.0.0.1", self.door_port, timeout=20) as client:
                client.sendmail(sender, ours, raw)

        await asyncio.to_thread(work)

    async def answers(self, author: str, mail: EmailMessage, text: str, **more: Any) -> str:
        """Somebody answers a mail of ours, with what it said quoted below."""
        quoted = "\n".join(f"> {line}" for line in body(mail).splitlines())
        whole = f"{text}\n\nOn Mon, Mar 2, 2026 at 9:14 AM Pizza Bot <{AGENT}> wrote:\n\n{quoted}\n"
        return await self.sends(author, whole, to=str(mail["Reply-To"]), answers=mail, **more)

    def mails(self, to: str) -> list[EmailMessage]:
        """What was sent to somebody, oldest first."""
        sent = list(self.sink.mails)
        return [parsed(mail.content) for mail in sent if to in mail.recipients]

    async def gets(self, to: str, words: str) -> EmailMessage:
        """The newest mail to somebody with these words in its subject or text."""

        def found() -> EmailMessage | None:
            hits = (m for m in reversed(self.mails(to)) if words in body(m) or words in subject(m))
            return next(hits, None)

        return await self._arrives(found, f"{words!r}", to)

    async def asked(self, to: str, words: str) -> EmailMessage:
        """The mail that asks somebody for a decision about something."""

        def found() -> EmailMessage | None:
            hits = (m for m in self.mails(to) if subject(m).startswith("[Action]") and words in body(m))
            return next(hits, None)

        return await self._arrives(found, f"a question about {words!r}", to)

    async def _arrives(self, look: Callable[[], EmailMessage | None], what: str, to: str) -> EmailMessage:
        """Look again whenever another mail was sent."""
        seen = -1

        def found() -> EmailMessage | None:
            nonlocal seen
            if len(self.sink.mails) == seen:
                return None
            seen = len(self.sink.mails)
            return look()

        return await until(found, lambda: f"{what} to {to}: {[subject(m) for m in self.mails(to)]}")

    async def thread(self, words: str) -> dict[str, Any]:
        """The newest thread with these words in its title or last message, with everything in it."""
        rows = (await self.served.http.get("/api/threads?limit=100")).json()["threads"]
        for row in rows:
            if words in row["title"] or words in row["last_message"]:
                found: dict[str, Any] = (await self.served.http.get(f"/api/threads/{row['id']}")).json()
                return found
        raise AssertionError(f"no thread {words!r} in {[row['title'] for row in rows]}")

    async def threads(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await self.served.http.get("/api/threads?limit=100")).json()["threads"]
        return found

    async def action(self, thread_id: str) -> dict[str, Any]:
        """The only action of a thread."""
        (found,) = (await self.served.http.get(f"/api/threads/{thread_id}")).json()["actions"]
        return dict(found)

    async def decided(self, thread_id: str, state: str) -> dict[str, Any]:
        """The action of a thread once it is in that state."""
        await comes(lambda: self.action(thread_id), lambda action: action["state"] == state)
        return await self.action(thread_id)

    async def state(self) -> dict[str, Any]:
        found: dict[str, Any] = (await self.served.http.get("/api/status")).json()["channels"]["email"]
        return found

    async def remarks(self, words: str) -> str:
        """What status says of mail, once it holds these words."""
        await comes(self.state, lambda state: words in (state.get("detail") or ""))
        return str((await self.state())["detail"])


async def until(found: Callable[[], _T | None], what: Callable[[], str]) -> _T:
    """Wait until there is something, and give it back."""
    end = time.monotonic() + PATIENCE_SECONDS
    while (it := found()) is None:
        assert time.monotonic() < end, f"not within {PATIENCE_SECONDS:g} s: {what()}"
        await asyncio.sleep(0.01)
    return it


async def comes(look: Callable[[], Awaitable[_T]], is_so: Callable[[_T], bool]) -> None:
    """Look until it is so."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not is_so(seen := await look()):
        assert time.monotonic() < end, f"not within {PATIENCE_SECONDS:g} s; the last look: {seen}"
        await asyncio.sleep(0.02)


def addresses(mail: EmailMessage, header: str) -> list[str]:
    return [address for _, address in getaddresses([str(mail[header] or "")])]


def expense(note: str, amount: float = 12.5) -> str:
    """Words that make the model file an expense, which asks first."""
    return f'[[call bookkeeper submit_expense {{"amount": {amount}, "note": "{note}"}}]]'


def invoice(note: str) -> str:
    """Words that make the model pay an invoice, which Bob decides."""
    args = {"vendor": "V", "amount": 5, "currency": "EUR", "note": note}
    return f"[[call bookkeeper pay_invoice {json.dumps(args)}]]"


@pytest.fixture(scope="package")
def model() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture(scope="package")
def sink() -> Iterator[SmtpSink]:
    with SmtpSink() as server:
        yield server


def email_toml(sink_port: int, more: str = "") -> str:
    """The tables for a door on a free port and a sink."""
    return f"""
[email]
address = "{AGENT}"
trusted_authserv_ids = ["{AUTHSERV}"]
{more}
[email.listen]
port = 0
[email.smtp]
host = "127.0.0.1"
port = {sink_port}
security = "none"
"""


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def post(
    tmp_path_factory: pytest.TempPathFactory, model: ModelServer, sink: SmtpSink
) -> AsyncIterator[Post]:
    home = write_home(
        tmp_path_factory.mktemp("email") / "home",
        model.url,
        people=PEOPLE,
        more_toml=RULES + email_toml(sink.port),
        skills={"bookkeeper": BOOKKEEPER},
    )
    async with serving(home) as served:
        await served.runtime.working
        channel: Any = served.runtime.channels["email"]
        yield Post(served, sink, channel.port)
