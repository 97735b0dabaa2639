"""A server process that lives by mail, and the people and mail servers around it.

Everything is synchronous: the server is a process, the model and the mail servers have threads of their own.
"""

from __future__ import annotations

import itertools
import smtplib
import socket
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from email import policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any, TypeVar

import httpx

from tests.fakes.mail.smtp_sink import SmtpSink
from tests.fakes.mail.taken import body, parsed, subject
from tests.fakes.patience import PATIENCE_SECONDS
from tests.lab.kill import Server

T = TypeVar("T")
Json = dict[str, Any]

AGENT, AUTHSERV = "pizza@bot.example", "mx.bot.example"
ADA = "ada@example.com"
PEOPLE = f"""
[[people]]
name = "Ada"
role = "owner"
emails = ["{ADA}"]
"""
_NUMBERS = itertools.count(1)


def email_toml(sink_port: int, door: str, address: str = AGENT) -> str:
    """The tables of mail; `door` is the table by which it comes in."""
    return f"""
[email]
address = "{address}"
trusted_authserv_ids = ["{AUTHSERV}"]
{door}
[email.smtp]
host = "127.0.0.1"
port = {sink_port}
security = "none"
"""


def listen_toml(port: int) -> str:
    return f"[email.listen]\nport = {port}\n"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def until(found: Callable[[], T | None], what: str, seconds: float = PATIENCE_SECONDS) -> T:
    """Wait until there is something that is not false, and give it back."""
    end = time.monotonic() + seconds
    while not (it := found()):
        assert time.monotonic() < end, f"not within {seconds:g} s: {what}"
        time.sleep(0.03)
    return it


def mail(
    text: str, *, author: str = ADA, to: str = AGENT, answers: EmailMessage | None = None
) -> EmailMessage:
    """What somebody writes, as a mail server passes it on: with what it found out about its sender."""
    written, domain = EmailMessage(policy=policy.SMTP), author.rpartition("@")[2]
    written["Authentication-Results"] = f"{AUTHSERV}; dmarc=pass header.from={domain}"
    written["From"], written["To"] = author, to
    written["Subject"] = f"Re: {answers['Subject']}" if answers is not None else text
    written["Message-ID"] = f"<{next(_NUMBERS)}.{time.monotonic_ns()}@{domain}>"
    if answers is not None:
        written["In-Reply-To"] = answers["Message-ID"]
        written["References"] = f"{answers['References'] or ''} {answers['Message-ID']}".strip()
    written.set_content(text)
    return written


def answer(question: EmailMessage, text: str) -> EmailMessage:
    return mail(text, to=str(question["Reply-To"]), answers=question)


@dataclass(slots=True)
class Office:
    """The server, its door for mail, and the server that takes its mail; `door` is 0 without one."""

    server: Server
    sink: SmtpSink
    door: int = 0

    @property
    def home(self) -> Path:
        return self.server.home

    def again(self) -> None:
        """Kill the server and start it again."""
        self.server.kill()
        self.server.start()

    # -- mail --------------------------------------------------------------------------------------------

    def sends(self, written: EmailMessage) -> None:
        """Bring a mail as a mail server does: again and again, until it is taken."""
        until(lambda: self._brings(written) == 250, "somebody takes a mail")

    def answers(self, written: EmailMessage) -> int:
        """Bring a mail until the door answers anything; its code."""
        return until(lambda: self._brings(written), "the door answers")

    def _brings(self, written: EmailMessage) -> int | None:
        try:
            with smtplib.SMTP("127.0.0.1", self.door, timeout=20) as client:
                client.sendmail(str(written["From"]), [str(written["To"])], written.as_bytes())
        except smtplib.SMTPResponseException as error:
            return error.smtp_code
        except (smtplib.SMTPServerDisconnected, OSError):
            return None
        return 250

    def copies(self, words: str) -> list[EmailMessage]:
        """The mails that the outgoing server took with these words in subject or text, oldest first."""
        taken = [parsed(sent.content) for sent in list(self.sink.mails)]
        return [m for m in taken if words in body(m) or words in subject(m)]

    def gets(self, words: str) -> EmailMessage:
        """The newest mail with these words."""
        return until(lambda: self.copies(words), f"a mail with {words!r}")[-1]

    # -- what the server knows ---------------------------------------------------------------------------

    def get(self, path: str) -> Json:
        """What the API says there, as soon as the server answers."""
        return until(lambda: self._get(path), f"the server says nothing of {path}")

    def _get(self, path: str) -> Json | None:
        client = self.server.client()
        if client is None:
            return None
        with client:
            try:
                response = client.get(path)
            except httpx.HTTPError:
                return None
        if response.status_code != 200:
            return None
        said: Json = response.json()
        return said

    def has_sent_all(self) -> None:
        """Wait until nothing is left in the outbox."""
        until(lambda: not self.rows("SELECT 1 FROM outbox WHERE state NOT IN ('sent', 'failed')"), "sent")

    def threads(self, words: str) -> list[Json]:
        """The threads that mails with these words began, as the inbox lists them."""
        rows = self.get("/api/threads?limit=100")["threads"]
        return [row for row in rows if words in row["title"]]

    def thread(self, words: str, *states: str) -> Json:
        """The only thread of these words, once it is in one of the states."""

        def found() -> Json | None:
            begun = self.threads(words)
            assert len(begun) <= 1, f"{len(begun)} threads of {words!r}"
            return begun[0] if begun and begun[0]["state"] in states else None

        return until(found, f"{words!r} becomes {states}")

    def email_state(self) -> Json:
        found: Json = self.get("/api/status")["channels"]["email"]
        return found

    def remarks(self, words: str) -> str:
        """What status says of mail, once it holds these words."""
        return until(lambda: _holding(words, self.email_state().get("detail")), f"status says {words!r}")

    # -- its database ------------------------------------------------------------------------------------

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """What stands in the server's database."""
        with closing(sqlite3.connect(self.home / "app.sqlite", timeout=30)) as database:
            return database.execute(query).fetchall()

    @contextmanager
    def refusing(self, *rows: tuple[str, str]) -> Iterator[None]:
        """Let the server's database refuse some rows: the server comes no further than just before them.

        Each of `rows` is a statement as in "INSERT ON inbound", and a condition on NEW.
        """
        for number, (statement, condition) in enumerate(rows):
            self._change(
                f"CREATE TRIGGER refused_{number} BEFORE {statement} WHEN {condition} "
                "BEGIN SELECT RAISE(ABORT, 'refused'); END"
            )
        try:
            yield
        finally:
            for number in range(len(rows)):
                self._change(f"DROP TRIGGER refused_{number}")

    def _change(self, statement: str) -> None:
        with closing(sqlite3.connect(self.home / "app.sqlite", timeout=30)) as database:
            database.execute(statement)
            database.commit()


def ids(mails: Sequence[EmailMessage]) -> list[str]:
    """Their Message-IDs."""
    return [str(m["Message-ID"]) for m in mails]


def _holding(words: str, said: str | None) -> str | None:
    return said if said is not None and words in said else None
