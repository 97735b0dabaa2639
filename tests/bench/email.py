"""What does mail cost: to read one, to take one in at the door or from a mailbox, to answer it, and to hold a
large one?

A server in a process of its own, beside the standard library's parser, an aiosmtpd that writes each mail into
a file and asks the same model, and an imapclient that does nothing but wait.
"""

from __future__ import annotations

import asyncio
import base64
import os
import random
import smtplib
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from email import message_from_bytes
from email.policy import default
from pathlib import Path

import httpx
import pytest
from imapclient import IMAPClient
from pizzabot.adapters.email.reading.pipeline import read
from pizzabot.adapters.email.reading.reader import Reader

from tests.fakes.mail.certificate import make_certificate
from tests.fakes.mail.dovecot import PASSWORD, USER, Dovecot, dovecot_binary, dovecot_server
from tests.fakes.mail.smtp_sink import Mail, SmtpSink
from tests.fakes.model_server import ModelServer
from tests.fakes.runtime import write_home
from tests.lab.kill import Server
from tests.unit.email.mails import OURS, STORED, TRUSTED, load

AGENT, AUTHSERV, ADA = "pizza@bot.example", "mx.bot.example", "ada@example.com"
ROUNDS = 3
ASKED = 40
WOKEN = 15
LARGE = 25 * 2**20
_PATIENCE_SECONDS = 60.0

PEOPLE = f"""
[[people]]
name = "Ada"
role = "owner"
emails = ["{ADA}"]
"""

BARE = """
import asyncio, os, smtplib, sys
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import SMTP as policy
import httpx
from aiosmtpd.smtp import SMTP

model, port, sink, folder = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]

class Handler:
    async def handle_DATA(self, server, session, envelope):
        await asyncio.to_thread(keep, envelope.content)
        asyncio.get_running_loop().create_task(answer(envelope.content))
        return "250 ok"

def keep(content):
    with open(os.path.join(folder, f"{hash(content)}.eml"), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())

async def answer(content):
    mail = message_from_bytes(content, policy=policy)
    body = {"model": "mock", "messages": [{"role": "user", "content": mail.get_content()}]}
    said = (await http.post("/chat/completions", json=body)).json()["choices"][0]["message"]["content"]
    reply = EmailMessage(policy=policy)
    reply["From"], reply["To"], reply["Subject"] = mail["To"], mail["From"], "Re: " + mail["Subject"]
    reply.set_content(said)
    await asyncio.to_thread(send, reply)

def send(reply):
    client.send_message(reply)

async def main():
    global http, client
    http = httpx.AsyncClient(base_url=model, timeout=60, trust_env=False)
    client = smtplib.SMTP("127.0.0.1", sink)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: SMTP(Handler(), loop=loop), "127.0.0.1", port)
    await server.serve_forever()

asyncio.run(main())
"""


# -- reading ---------------------------------------------------------------------------------------------


def reading() -> dict[str, float]:
    """Mails per second over the stored corpus: ours, ours in its process apart, the standard library's."""
    mails = [load(case["file"]) for case in STORED]
    return {
        "here": _rate(lambda: [read(raw, TRUSTED, OURS) for raw in mails], len(mails)),
        "apart": asyncio.run(_apart(mails)),
        "library": _rate(lambda: [_with_the_library(raw) for raw in mails], len(mails)),
        "mails": len(mails),
    }


def _rate(work: Callable[[], object], count: int) -> float:
    work()
    began = time.perf_counter()
    for _ in range(ROUNDS):
        work()
    return ROUNDS * count / (time.perf_counter() - began)


async def _apart(mails: list[bytes]) -> float:
    reader = Reader(checks_signatures=False)
    try:
        for raw in mails:
            await reader.read(raw, TRUSTED, OURS)
        began = time.perf_counter()
        for _ in range(ROUNDS):
            for raw in mails:
                await reader.read(raw, TRUSTED, OURS)
        return ROUNDS * len(mails) / (time.perf_counter() - began)
    finally:
        await reader.stop()


def _with_the_library(raw: bytes) -> int:
    """Headers and bodies decoded, and nothing understood."""
    mail = message_from_bytes(raw, policy=default)
    size = 0
    for part in mail.walk():
        size += sum(len(str(value)) for value in part.values())
        if not part.is_multipart():
            size += len(part.get_payload(decode=True) or b"")
    return size


# -- a server --------------------------------------------------------------------------------------------


class Watched(SmtpSink):
    """A server for outgoing mail that knows when each mail came."""

    def __init__(self) -> None:
        super().__init__(deliver=self._came)
        self._awaited: dict[bytes, threading.Event] = {}
        self._at: dict[bytes, float] = {}

    def _came(self, mail: Mail) -> None:
        now = time.perf_counter()
        for words in [words for words in self._awaited if words in mail.content]:
            self._at[words] = now
            self._awaited.pop(words).set()

    def expect(self, words: str) -> Callable[[], float]:
        """Wait with what is returned for a mail with these words, and learn when it came."""
        key, came = words.encode(), threading.Event()
        self._awaited[key] = came

        def when() -> float:
            assert came.wait(_PATIENCE_SECONDS), f"no mail with {words!r}"
            return self._at[key]

        return when


@dataclass(frozen=True, slots=True)
class House:
    """A server with a door and, where there is a Dovecot, a mailbox."""

    server: Server
    sink: Watched
    model: ModelServer
    port: int
    dovecot: Dovecot | None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def _mailbox(folder: Path) -> Iterator[Dovecot | str]:
    """A Dovecot, or why there is none."""
    try:
        dovecot_binary()
    except pytest.skip.Exception as error:
        yield str(error)
        return
    with dovecot_server(make_certificate(folder)) as server:
        yield server


@contextmanager
def _house(folder: Path, model: ModelServer, dovecot: Dovecot | None) -> Iterator[House]:
    port = _free_port()
    imap = f"""
[email.imap]
host = "127.0.0.1"
port = {dovecot.port if dovecot else 0}
security = "none"
username = "{USER}"
password = "{PASSWORD}"
"""
    with Watched() as sink:
        email = f"""
[email]
address = "{AGENT}"
trusted_authserv_ids = ["{AUTHSERV}"]
[email.listen]
port = {port}
[email.smtp]
host = "127.0.0.1"
port = {sink.port}
security = "none"
{imap if dovecot else ""}"""
        server = Server(write_home(folder / "email", model.url, people=PEOPLE, more_toml=email).path)
        server.start()
        try:
            _until(lambda: _is_ready(server))
            yield House(server, sink, model, port, dovecot)
        finally:
            server.stop()


def _is_ready(server: Server) -> bool:
    client = server.client()
    if client is None:
        return False
    with client, suppress(httpx.HTTPError, KeyError, ValueError):
        state: str = client.get("/api/status").json()["channels"]["email"]["state"]
        return state == "ok"
    return False


def _until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + _PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


def mail(words: str, more: bytes = b"") -> bytes:
    """A verified mail of Ada that makes the model say these words; `more` is a file in Base64."""
    head = (
        f"Authentication-Results: {AUTHSERV}; dmarc=pass header.from=example.com\r\n"
        f"From: Ada <{ADA}>\r\nTo: {AGENT}\r\nSubject: A task\r\nMIME-Version: 1.0\r\n"
        f"Message-ID: <{words.replace(' ', '.')}@example.com>\r\n"
    )
    if not more:
        return f"{head}\r\n[[say {words}]]\r\n".encode()
    return (
        (
            f"{head}Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\n[[say {words}]]\r\n--b\r\n"
            "Content-Type: application/octet-stream\r\nContent-Transfer-Encoding: base64\r\n"
            'Content-Disposition: attachment; filename="large.bin"\r\n\r\n'
        ).encode()
        + more
        + b"\r\n--b--\r\n"
    )


# -- the door --------------------------------------------------------------------------------------------


def _brings(client: smtplib.SMTP, raw: bytes) -> tuple[float, float]:
    """Hand over one mail: seconds from its end to the 250, and when that came."""
    client.mail(ADA)
    client.rcpt(AGENT)
    code, _ = client.docmd("DATA")
    assert code == 354
    client.send(raw + b".\r\n")
    began = time.perf_counter()
    code, said = client.getreply()
    came = time.perf_counter()
    assert code == 250, said
    return came - began, came


def _asked(port: int, sink: Watched, name: str) -> dict[str, float]:
    """Mails one after the other, each answered before the next: to the 250, and from there to the answer."""
    accepted, answered = [], []
    with smtplib.SMTP("127.0.0.1", port, timeout=_PATIENCE_SECONDS) as client:
        client.ehlo("bench.example")
        for number in range(ASKED + 5):
            words = f"{name} {number} done"
            answer = sink.expect(words)
            took, came = _brings(client, mail(words))
            accepted.append(took)
            answered.append(max(0.0, answer() - came))
    return {
        "accept": statistics.median(accepted[5:]),
        "slow accept": _slow(accepted[5:]),
        "answer": statistics.median(answered[5:]),
        "slow answer": _slow(answered[5:]),
    }


def _slow(seconds: list[float]) -> float:
    return sorted(seconds)[int(len(seconds) * 0.95)]


def _bare(folder: Path, model: ModelServer, sink: Watched) -> dict[str, float]:
    script, port = folder / "bare_mail.py", _free_port()
    script.write_text(BARE)
    process = subprocess.Popen(
        [sys.executable, str(script), model.url, str(port), str(sink.port), str(folder)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _until(lambda: _listens(port))
        return _asked(port, sink, "bare")
    finally:
        process.kill()
        process.wait()


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


# -- the mailbox -----------------------------------------------------------------------------------------


def _woken(house: House, dovecot: Dovecot) -> dict[str, float]:
    """From a mail's delivery until a bare imapclient is told, and until the model hears of the run."""
    told, started = [], []
    with dovecot.other() as client:
        for number in range(WOKEN):
            words = f"woken {number} done"
            answer = house.sink.expect(words)
            client.idle()
            delivered, began = time.time(), time.perf_counter()
            dovecot.deliver(mail(words))
            told.append(_notice(client, began))
            client.idle_done()
            answer()
            started.append(next(at for at, text in house.model.arrivals if words in text) - delivered)
    return {"told": statistics.median(told[2:]), "started": statistics.median(started[2:])}


def _notice(client: IMAPClient, began: float) -> float:
    """Seconds until the server says that there is one more."""
    while True:
        said = client.idle_check(timeout=_PATIENCE_SECONDS)
        now = time.perf_counter()
        assert said, "nothing was told"
        if any(b"EXISTS" in row for row in said):
            return now - began


# -- memory ----------------------------------------------------------------------------------------------


def _memory(house: House) -> dict[str, float]:
    """MiB of the server and of the process that reads mails, around a mail of 25 MiB."""
    assert house.server.process is not None
    server = house.server.process.pid
    reader = _reader_of(server)
    found = {f"{name} before": _resident(pid, "VmRSS") for name, pid in _named(server, reader)}
    for _, pid in _named(server, reader):
        Path(f"/proc/{pid}/clear_refs").write_text("5")  # the peak begins anew (proc(5))
    line = base64.b64encode(random.Random(1).randbytes(57)) + b"\r\n"
    raw = mail("large done", line * ((LARGE - 2000) // len(line)))
    answer = house.sink.expect("large done")
    with smtplib.SMTP("127.0.0.1", house.port, timeout=_PATIENCE_SECONDS) as client:
        client.ehlo("bench.example")
        found["seconds"], _ = _brings(client, raw)
    answer()
    found |= {f"{name} peak": _resident(pid, "VmHWM") for name, pid in _named(server, reader)}
    time.sleep(1)
    found |= {f"{name} after": _resident(pid, "VmRSS") for name, pid in _named(server, reader)}
    return found


def _named(server: int, reader: int) -> list[tuple[str, int]]:
    return [("server", server), ("reader", reader)]


def _reader_of(server: int) -> int:
    """The server's child that reads mails."""
    for task in Path(f"/proc/{server}/task").iterdir():
        for child in (task / "children").read_text().split():
            if b"reading.worker" in Path(f"/proc/{child}/cmdline").read_bytes():
                return int(child)
    raise AssertionError("no process reads mails")


def _resident(pid: int, what: str) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(what):
            return int(line.split()[1]) / 1024
    raise AssertionError(what)


# -- all of it -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Figures:
    """Seconds, mails per second, MiB. `woken` and `memory` say why when they could not be measured."""

    reading: dict[str, float]
    door: dict[str, float]
    bare: dict[str, float]
    woken: dict[str, float] | str
    memory: dict[str, float] | str


def measured(folder: Path, model: ModelServer) -> Figures:
    """Everything, in less than a minute."""
    parsed = reading()
    with _mailbox(folder) as mailbox:
        dovecot = mailbox if isinstance(mailbox, Dovecot) else None
        with _house(folder, model, dovecot) as house:
            door = _asked(house.port, house.sink, "ours")
            bare = _bare(folder, model, house.sink)
            woken = _woken(house, dovecot) if dovecot is not None else str(mailbox)
            has_proc = os.access("/proc/self/clear_refs", os.W_OK)
            memory = _memory(house) if has_proc else "it is read from /proc, as Linux has it"
    return Figures(parsed, door, bare, woken, memory)
