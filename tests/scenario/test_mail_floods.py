"""Does a flood of mail keep anybody else from being answered, and is what was taken ever lost?

Real server, real door, real sink. People write through one mail server; the clock moves when a test says so.
"""

from __future__ import annotations

import asyncio
import io
import sys
import zipfile
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from pizzabot.cli.house import status_lines
from tests.fakes.clock import FakeClock
from tests.fakes.mail.smtp_sink import SmtpSink
from tests.fakes.mail.taken import body, parsed
from tests.fakes.model_server import ModelServer
from tests.fakes.runtime import serving, write_home
from tests.unit.email.conftest import (
    ADA,
    AGENT,
    AUTHSERV,
    BOB,
    EVE,
    PEOPLE,
    Post,
    comes,
    email_toml,
    expense,
    until,
)
from tests.unit.email.smtp.wire import Wire, connected

pytestmark = pytest.mark.asyncio(loop_scope="module")

PARALLEL = 4
MOST = 40  # mails of one person that are handed to the agent in an hour
FLOOD = 1000
CONNECTIONS = 10
MEGABYTE = 1024 * 1024


@pytest.fixture(scope="module")
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(scope="module")
def sink() -> Iterator[SmtpSink]:
    with SmtpSink() as server:
        yield server


@pytest.fixture(autouse=True)
def _another_hour(clock: FakeClock, sink: SmtpSink) -> None:
    """Each test finds room for its mails, and reads its own alone."""
    clock.advance(seconds=3601)
    sink.mails.clear()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def post(
    tmp_path_factory: pytest.TempPathFactory, model: ModelServer, sink: SmtpSink, clock: FakeClock
) -> AsyncIterator[Post]:
    caps = f"\n[email.caps]\naccepted_per_person_hour = {MOST}\n\n[limits]\nparallel_runs = {PARALLEL}\n"
    home = write_home(
        tmp_path_factory.mktemp("floods") / "home",
        model.url,
        people=PEOPLE,
        more_toml=email_toml(sink.port) + caps,
    )
    async with serving(home, clock=clock) as served:
        await served.runtime.working
        channel: Any = served.runtime.channels["email"]
        yield Post(served, sink, channel.port)


# -- who floods ------------------------------------------------------------------------------------------


def mail(author: str, name: str, text: str, *, verdict: str = "pass", **headers: str) -> bytes:
    """A mail as the server in front hands it over, with its verdict."""
    domain = author.rpartition("@")[2]
    lines = [
        f"Authentication-Results: {AUTHSERV}; dmarc={verdict} header.from={domain}",
        *(f"From: {author}", f"To: {AGENT}", f"Subject: {name}", f"Message-ID: <{name}@{domain}>"),
        *(f"{header.replace('_', '-')}: {value}" for header, value in headers.items()),
    ]
    return "\r\n".join([*lines, "", text, ""]).encode()


@dataclass(slots=True)
class Flood:
    """Mails that come in over several connections at once; what was answered to each, by its number."""

    port: int
    sender: str
    mails: Sequence[bytes]
    replies: dict[int, str] = field(default_factory=dict)

    async def comes(self) -> None:
        left = iter(range(len(self.mails)))
        await asyncio.gather(*(self._over_one_connection(left) for _ in range(CONNECTIONS)))

    async def _over_one_connection(self, left: Iterator[int]) -> None:
        async with connected(self.port) as wire:
            assert (await wire.say("EHLO front.example")).startswith("250")
            for number in left:
                assert (await wire.again(AGENT, sender=self.sender)).startswith("354")
                self.replies[number] = await wire.mail(self.mails[number])

    def numbers(self, reply: str) -> list[int]:
        return [number for number, said in self.replies.items() if said.startswith(reply)]


async def answered(post: Post, words: str, author: str = BOB) -> EmailMessage:
    """Somebody writes a mail and gets the answer to it."""
    await post.sends(author, f"[[say {words}]]")
    return await post.gets(author, words)


async def answered_meanwhile(post: Post, flood: Flood, words: str) -> None:
    """Bob is answered, and the web view too, before the flood is over."""
    coming = asyncio.create_task(flood.comes())
    await until(lambda: len(flood.replies) >= 50 or None, lambda: "the flood")
    await answered(post, words)
    assert (await post.served.http.get("/api/threads?view=unread")).status_code == 200
    assert (await post.served.http.get("/healthz")).json()["status"] == "ok"
    assert not coming.done(), "the flood was over before Bob was answered"
    await coming


async def comes_to_rest(post: Post, *, still_queued: int = 0) -> None:
    """Wait until nothing is to be sent and nothing at work, apart from so many that may not start."""

    async def busy() -> int:
        rows = await post.threads()  # first what is at work: its end is what puts something into the outbox
        found = (await post.served.http.get("/api/status")).json()["outbox"]
        at_work = sum(row["state"] in ("queued", "running") for row in rows)
        return at_work + int(found["pending"]) + int(found["unknown"])

    await comes(busy, lambda count: count == still_queued)


def answers(post: Post, to: str) -> Counter[str]:
    """The first lines of what somebody got."""
    return Counter(body(got).splitlines()[0] for got in post.mails(to))


async def status(post: Post) -> str:
    """What `pizzabot status` says of mail."""
    found = (await post.served.http.get("/api/status")).json()
    return next(line for line in status_lines(found) if line.startswith("channel  email"))


# -- many mails ------------------------------------------------------------------------------------------


async def test_a_thousand_mails_of_one_person_put_off_themselves_and_nobody_else(
    post: Post, clock: FakeClock
) -> None:
    flood = Flood(post.door_port, ADA, [mail(ADA, f"flood-{n}", f"[[say wave {n}.]]") for n in range(FLOOD)])
    await answered_meanwhile(post, flood, "Bob in the flood")
    taken, put_off = flood.numbers("250"), flood.numbers("451 4.7.1")
    assert (len(taken), len(put_off)) == (MOST, FLOOD - MOST)
    remarks = await post.remarks("as many mails in an hour as are taken in: from Ada; more wait")
    assert f"refused at the door for its rate: {FLOOD - MOST}" in remarks
    assert remarks in await status(post)
    wanted = Counter(f"wave {n}." for n in taken)
    await comes_to_rest(post)
    assert answers(post, ADA) == wanted
    clock.advance(seconds=3601)
    late = put_off[:5]
    again = Flood(post.door_port, ADA, [flood.mails[n] for n in (*late, *taken[:5])])
    await again.comes()
    assert len(again.numbers("250")) == 10
    await comes_to_rest(post)
    assert answers(post, ADA) == wanted + Counter(f"wave {n}." for n in late)


async def test_whoever_sent_too_many_still_decides(post: Post) -> None:
    await post.sends(ADA, expense("over the cap"), subject="Over the cap")
    card = await post.asked(ADA, "over the cap")
    flood = Flood(post.door_port, ADA, [mail(ADA, f"full-{n}", f"[[say full {n}.]]") for n in range(MOST)])
    await flood.comes()
    assert len(flood.numbers("451 4.7.1")) == 1
    await post.answers(ADA, card, "Approve")
    await post.decided((await post.thread("Over the cap"))["id"], "approved")
    await comes_to_rest(post)


async def test_an_owner_who_sent_too_many_still_stops_everything(post: Post) -> None:
    """What floods may be a loop of their own: exactly then somebody says stop."""
    flood = Flood(post.door_port, ADA, [mail(ADA, f"loop-{n}", f"[[say loop {n}.]]") for n in range(MOST)])
    await flood.comes()
    try:
        await post.sends(ADA, "Stop everything", subject="Stop")
        assert (await post.served.http.get("/api/status")).json()["stopped"]
    finally:
        await post.served.http.post("/api/resume")
        await comes_to_rest(post)


async def test_work_of_others_goes_past_a_queue_of_one_persons(post: Post) -> None:
    await post.served.http.post("/api/stop")  # so that all of it is queued before any of it starts
    flood = Flood(post.door_port, ADA, [mail(ADA, f"q-{n}", f"[[say turn {n}.]]") for n in range(MOST)])
    await flood.comes()
    assert len(flood.numbers("250")) == MOST
    await post.sends(BOB, "[[say turn of Bob.]]")
    await comes_to_rest(post, still_queued=MOST + 1)
    told = len(post.sink.mails)
    await post.served.http.post("/api/resume")
    await comes_to_rest(post)
    lines = [body(parsed(sent.content)).splitlines()[0] for sent in post.sink.mails[told:]]
    assert Counter(lines) == Counter(["turn of Bob.", *(f"turn {n}." for n in range(MOST))])
    assert lines.index("turn of Bob.") < 2 * PARALLEL


async def test_a_thousand_mails_of_a_stranger_cost_nobody_an_answer(post: Post) -> None:
    before = {row["id"] for row in await post.threads()}
    forged = [mail(EVE, f"forged-{n}", "[[say never]]", verdict="fail") for n in range(FLOOD)]
    flood = Flood(post.door_port, EVE, forged)
    await answered_meanwhile(post, flood, "Bob among strangers")
    assert len(flood.numbers("250")) == FLOOD
    words = f"mail that has a sender that is not verified: {FLOOD}"
    assert words in await post.remarks(words)
    assert words in await status(post)
    (new,) = [row for row in await post.threads() if row["id"] not in before]
    assert new["last_message"] == "Bob among strangers"
    assert post.mails(EVE) == []


# -- bombs -----------------------------------------------------------------------------------------------


def nested(depth: int) -> str:
    """That many parts, each within the one before."""
    opened = (f"--b{n}\r\nContent-Type: multipart/mixed; boundary=b{n + 1}\r\n\r\n" for n in range(depth))
    return "".join(opened)


async def unreadable(post: Post) -> int:
    """How many mails were left alone as they could not be read."""
    parts = (str((await post.state()).get("detail") or "")).split("; ")
    found = [part for part in parts if part.startswith("mail that could not be read: ")]
    return int(found[0].rpartition(" ")[2]) if found else 0


@pytest.mark.parametrize(
    ("headers", "text"),
    [
        ({"Content_Type": "multipart/mixed; boundary=b0"}, nested(1000)),
        ({"X_Long": "x" * 5 * MEGABYTE}, "Hello"),
        ({"X_Many": "\r\n".join(["x", *(f"X-{n}: y" for n in range(100_000))])}, "Hello"),
        ({"Content_Type": "multipart/mixed; boundary=b"}, "--b\r\n\r\n\r\n" * 100_000),
    ],
    ids=["1,000 nested parts", "a header of 5 MB", "100,000 fields", "100,000 parts"],
)
async def test_a_mail_bomb_is_left_alone_and_its_neighbours_are_read(
    post: Post, headers: dict[str, str], text: str, request: pytest.FixtureRequest
) -> None:
    before, name = await unreadable(post), request.node.callspec.id.replace(" ", "-").replace(",", "")
    bombs = [mail(ADA, f"{name}-{n}", text, **headers) for n in range(3)]
    flood = Flood(post.door_port, ADA, bombs)
    _, got = await asyncio.gather(flood.comes(), answered(post, f"Bob beside {name}"))
    assert len(flood.numbers("250")) == 3
    assert await unreadable(post) == before + 3
    assert got["Auto-Submitted"] == "auto-replied"


async def test_a_file_that_unpacks_to_much_more_is_handed_on_as_it_came(post: Post) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(50 * MEGABYTE))
    outer = io.BytesIO()
    with zipfile.ZipFile(outer, "w", zipfile.ZIP_DEFLATED) as archive:
        for n in range(20):
            archive.writestr(f"{n}.zip", packed.getvalue())
    bomb = outer.getvalue()
    kept = folder_bytes(post.served.home.attachments)
    await asyncio.gather(
        post.sends(ADA, "[[say unopened]]", subject="a bomb", files=[("bomb.zip", bomb)]),
        answered(post, "Bob beside a zip"),
    )
    await post.gets(ADA, "unopened")
    thread = await post.thread("a bomb")
    (file,) = thread["messages"][0]["attachments"]
    raw = await post.served.http.get(f"/api/threads/{thread['id']}/attachments/{file['id']}")
    assert raw.content == bomb
    assert folder_bytes(post.served.home.attachments) - kept == len(bomb)


def folder_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


async def test_a_hundred_thousand_quoted_lines_are_no_words_of_the_author(post: Post) -> None:
    first = await answered(post, "Ada begins.", ADA)
    quoted = "\n".join(f"> {n}" for n in range(100_000))
    text = f"[[say short]]\n\nOn Mon, Mar 2, 2026 at 9:14 AM Pizza Bot <{AGENT}> wrote:\n\n{quoted}\n"
    await asyncio.gather(
        post.sends(ADA, text, to=str(first["Reply-To"]), answers=first),
        answered(post, "Bob beside quotes"),
    )
    await post.gets(ADA, "short")
    thread = await post.thread("short")
    heard = [message["text"] for message in thread["messages"] if message["role"] == "user"]
    assert heard == ["[[say Ada begins.]]", "[[say short]]"]


# -- what the door alone stops ---------------------------------------------------------------------------


async def test_a_mail_over_the_limit_is_refused_and_others_pass_it_on_the_way(post: Post) -> None:
    async with connected(post.door_port) as wire:
        assert (await wire.say("EHLO front.example")).startswith("250")
        assert (await wire.say(f"MAIL FROM:<{ADA}> SIZE={30 * MEGABYTE}")).startswith("552 5.3.4")
        assert (await wire.again(AGENT, sender=ADA)).startswith("354")
        half = (b"x" * 1022 + b"\r\n") * (15 * 1024)
        wire.send(mail(ADA, "large", "Large") + half)
        await wire.flushed()
        await answered(post, "Bob passes a large mail")
        assert (await wire.mail(half)).startswith("552 5.3.4")
    assert "refused at the door for its size: 2" in await post.remarks("for its size")
    assert "refused at the door for its size: 2" in await status(post)


async def test_ten_thousand_recipients_are_a_hundred_and_one_mail(post: Post) -> None:
    before = {row["id"] for row in await post.threads()}
    async with connected(post.door_port) as wire:
        assert (await wire.say("EHLO front.example")).startswith("250")
        assert (await wire.say(f"MAIL FROM:<{ADA}>")).startswith("250")
        replies: Counter[str] = Counter()
        local, _, domain = AGENT.partition("@")
        for start in range(0, 10_000, 500):
            numbers = range(start, start + 500)
            wire.send("".join(f"RCPT TO:<{local}+{n}@{domain}>\r\n" for n in numbers))
            replies += Counter([(await wire.reply())[:9] for _ in numbers])
            if start == 5000:
                await answered(post, "Bob among recipients")
        assert replies == {"250 2.1.5": 100, "452 4.5.3": 9900}
        assert (await wire.say("DATA")).startswith("354")
        assert (await wire.mail(mail(ADA, "to-many", "[[say once]]"))).startswith("250")
    await post.gets(ADA, "once")
    assert "refused at the door for its recipients: 9900" in await post.remarks("for its recipients")
    new = [row["title"] for row in await post.threads() if row["id"] not in before]
    assert sorted(new) == ["A task", "to-many"]


@pytest.mark.skipif(sys.platform != "linux", reason="another address of this machine is needed, as Linux has")
async def test_slow_senders_take_their_own_places_alone_and_lose_nothing(post: Post) -> None:
    async with slow(post.door_port, 20) as wires:
        for n, wire in enumerate(wires):
            await wire.begin(AGENT, sender=ADA)
            wire.send(mail(ADA, f"slow-{n}", f"[[say at last {n}.]]"))
        async with slow(post.door_port, 1) as (one_more,):
            assert await one_more.is_closed()
        await answered(post, "Bob passes the slow ones")
        assert "refused at the door for its connections: 1" in await post.remarks("for its connections")
        for wire in wires:
            assert (await wire.say(".")).startswith("250")
    await comes_to_rest(post)
    wanted = Counter(f"at last {n}." for n in range(20))
    assert {line: count for line, count in answers(post, ADA).items() if line in wanted} == wanted


@asynccontextmanager
async def slow(port: int, count: int) -> AsyncIterator[list[Wire]]:
    """Connections of another machine."""
    opened = [
        await asyncio.open_connection("127.0.0.1", port, local_addr=("127.0.0.2", 0)) for _ in range(count)
    ]
    wires = [Wire(reader, writer) for reader, writer in opened]
    for wire in wires:
        assert (await wire.reply())[:3] in ("220", "421")
    try:
        yield wires
    finally:
        for wire in wires:
            await wire.close()


# -- the way out -----------------------------------------------------------------------------------------


async def test_a_mailbox_that_takes_nothing_now_keeps_no_answer_from_others(
    post: Post, sink: SmtpSink, clock: FakeClock
) -> None:
    sink.refusals[ADA] = "451 4.2.1 greylisted"
    try:
        for n in range(30):
            await post.sends(ADA, f"[[say greylisted {n}.]]")
        await answered(post, "Bob past the greylisted")
        assert not [line for line in answers(post, ADA) if line.startswith("greylisted")]
    finally:
        sink.refusals.clear()
    clock.advance(seconds=3601)
    await post.served.doors.is_back("email")
    await comes_to_rest(post)
    got = {line: count for line, count in answers(post, ADA).items() if line.startswith("greylisted")}
    assert got == Counter(f"greylisted {n}." for n in range(30))
