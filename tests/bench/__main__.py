"""`make bench`: what does it cost? Every figure beside what it is measured against, in one run.

Real processes: `pizzabot serve` in one, a scripted model in another, the requests from this one.
"""

from __future__ import annotations

import asyncio
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from pizzabot.home import Home
from tests.bench import checkpoints, email, history, slack
from tests.fakes.model_server import ModelServer
from tests.fakes.runtime import ledger_file, write_home
from tests.lab.kill import Server

PARALLEL = 20
MODEL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Row:
    """One figure, what it stands beside, and the aim."""

    what: str
    value: str
    beside: str
    ratio: str
    aim: str = ""


def table(title: str, rows: list[Row]) -> str:
    """A Markdown table."""
    lines = [f"\n{title}\n", "| what | value | beside | ratio | aim |", "|---|---|---|---|---|"]
    lines += [f"| {r.what} | {r.value} | {r.beside} | {r.ratio} | {r.aim} |" for r in rows]
    return "\n".join(lines)


def timed(command: list[str], times: int = 7, **environ: str) -> float:
    """The median seconds of a command."""
    took = []
    for _ in range(times):
        began = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=os.environ | environ)
        took.append(time.perf_counter() - began)
    return statistics.median(took)


@contextmanager
def served(home: Path) -> Iterator[tuple[Server, httpx.Client, float]]:
    """A server on a home, a client of it, and the seconds until it answered."""
    server = Server(home)
    began = time.perf_counter()
    server.start()
    try:
        while True:
            client = server.client()
            if client is not None:
                try:
                    if client.get("/healthz").status_code == 200:
                        break
                except httpx.HTTPError:
                    client.close()
            time.sleep(0.01)
        ready = time.perf_counter() - began
        client.timeout = httpx.Timeout(60)
        try:
            yield server, client, ready
        finally:
            client.close()
    finally:
        server.stop()


def process(pid: int) -> tuple[float, float]:
    """CPU seconds used so far, and resident memory in MiB (proc(5))."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    ticks = os.sysconf("SC_CLK_TCK")
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return (int(fields[11]) + int(fields[12])) / ticks, pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def ask(client: httpx.Client, text: str, **more: Any) -> str:
    """A new thread; its id."""
    response = client.post("/api/threads", json={"text": text, "title": "bench", **more})
    response.raise_for_status()
    return str(response.json()["thread_id"])


def until_idle(client: httpx.Client, thread_id: str, *states: str) -> dict[str, Any]:
    """The thread, at rest."""
    while True:
        thread: dict[str, Any] = client.get(f"/api/threads/{thread_id}").json()
        if thread["state"] in (states or ("idle", "failed")):
            return thread
        time.sleep(0.005)


def starting() -> list[Row]:
    """Help, and the first answer of `serve`, beside a bare interpreter."""
    bare = timed([sys.executable, "-c", "pass"])
    shown = timed([sys.executable, "-m", "pizzabot", "--help"])
    script = Path(sys.executable).with_name("pizzabot")
    shown = min(shown, timed([str(script), "--help"])) if script.exists() else shown
    with tempfile.TemporaryDirectory() as folder, ModelServer() as model:
        home = write_home(Path(folder) / "home", model.url)
        with served(home.path) as (_, _, _first):
            pass
        with served(home.path) as (_, client, ready):
            began = time.perf_counter()
            until_idle(client, ask(client, "[[say hello]]"))
            first = time.perf_counter() - began
    return [
        Row("`pizzabot --help`", ms(shown), f"`python -c pass` {ms(bare)}", times(shown, bare), "<= 4x"),
        Row("`serve` until it answers", ms(ready), f"`python -c pass` {ms(bare)}", times(ready, bare)),
        Row("first answer right after that (imports)", ms(first), "", ""),
    ]


def latency(client: httpx.Client, model: ModelServer) -> list[Row]:
    """From the POST until the model server has the first request of the run."""
    waits = []
    for number in range(30):
        word = f"latency {number}"
        began = time.time()
        thread_id = ask(client, f"[[say ok]] {word}")
        until_idle(client, thread_id)
        arrived = next(at for at, text in model.arrivals if word in text)
        waits.append(arrived - began)
    waits.sort()
    return [
        Row("POST to first model request, p50", ms(waits[len(waits) // 2]), "", "", "<= 30 ms"),
        Row("POST to first model request, p95", ms(waits[int(len(waits) * 0.95)]), "", ""),
    ]


async def _throughput(url: str, token: str, count: int) -> float:
    """Seconds for `count` runs, `PARALLEL` people who each ask again when they were answered."""
    headers = {"Authorization": f"Bearer {token}"}
    limits = httpx.Limits(max_connections=100)
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=120, limits=limits) as client:
        ids: list[str] = []

        async def post(number: int) -> None:
            body = {"text": f"[[say done {number}]]", "title": "bench"}
            response = await client.post("/api/threads", json=body)
            ids.append(response.json()["thread_id"])

        began = time.perf_counter()
        for start in range(0, count, 50):
            await asyncio.gather(*(post(n) for n in range(start, min(start + 50, count))))
        while True:
            status = (await client.get("/api/threads", params={"view": "unread", "limit": 1})).json()
            if status["counts"]["unread"] >= count:
                return time.perf_counter() - began
            await asyncio.sleep(0.02)


def throughput(home: Path) -> list[Row]:
    """Runs per second with a slow model, beside a model that is all there is to wait for."""
    count = 300
    with served(home) as (server, client, _):
        until_idle(client, ask(client, "[[say warm]]"))
        client.patch(
            f"/api/threads/{client.get('/api/threads').json()['threads'][0]['id']}", json={"unread": False}
        )
        assert server.process is not None
        before, _ = process(server.process.pid)
        url, token = str(client.base_url), client.headers["Authorization"].removeprefix("Bearer ")
        took = asyncio.run(_throughput(url, token, count))
        after, _ = process(server.process.pid)
    rate, ideal = count / took, PARALLEL / MODEL_SECONDS
    cores = (after - before) / took
    return [
        Row(
            f"runs/s, {PARALLEL} at once, model {ms(MODEL_SECONDS)}",
            f"{rate:.1f}",
            f"ideal {ideal:.0f}",
            f"{rate / ideal:.0%}",
            ">= 60 %",
        ),
        Row("processor time of a run", ms((after - before) / count), f"{cores:.2f} cores busy", ""),
    ]


def standing_still(home: Path) -> list[Row]:
    """Memory and processor of a server that has nothing to do."""
    with served(home) as (server, client, _):
        until_idle(client, ask(client, "[[say warm]]"))
        time.sleep(3)
        assert server.process is not None
        before, _ = process(server.process.pid)
        began = time.perf_counter()
        time.sleep(10)
        after, memory = process(server.process.pid)
        took = time.perf_counter() - began
    bare = subprocess.run(
        [sys.executable, "-c", "print(int(open('/proc/self/statm').read().split()[1]) * 4096 / 2**20)"],
        check=True,
        capture_output=True,
        text=True,
    )
    empty = float(bare.stdout)
    return [
        Row("memory at rest", f"{memory:.0f} MiB", f"bare interpreter {empty:.0f} MiB", times(memory, empty)),
        Row("processor at rest", f"{(after - before) / took:.2%} of a core", "", "", "<= 2 %"),
    ]


def waiting(home: Path, count: int = 1000) -> list[Row]:
    """A thousand approvals that wait: memory, disk, and what a restart costs."""
    with served(home) as (server, client, _):
        until_idle(client, ask(client, "[[say warm]]"))
        assert server.process is not None
        _, memory_before = process(server.process.pid)
        disk_before = size(home)
        words = '[[call bookkeeper submit_expense {"amount": 1, "note": "wait"}]]'
        for _ in range(count):
            ask(client, words)
        while client.get("/api/threads", params={"limit": 1}).json()["counts"]["action"] < count:
            time.sleep(0.1)
        time.sleep(2)
        before, _ = process(server.process.pid)
        time.sleep(5)
        after, memory_after = process(server.process.pid)
        disk_after = size(home)
    with served(home) as (_, client, ready):
        one = client.get("/api/actions", params={"state": "pending", "limit": 1}).json()["actions"][0]
        began = time.perf_counter()
        client.post(f"/api/actions/{one['id']}/decision", json={"decision": "approve"}).raise_for_status()
        until_idle(client, one["thread_id"])
        resumed = time.perf_counter() - began
    return [
        Row(f"{count} waiting approvals: memory", f"{memory_after - memory_before:+.0f} MiB", "", ""),
        Row(
            f"{count} waiting approvals: disk",
            f"{(disk_after - disk_before) / count / 1024:.0f} KiB each",
            "",
            "",
        ),
        Row(f"{count} waiting approvals: processor", f"{(after - before) / 5:.2%} of a core", "", "<= 2 %"),
        Row(f"`serve` with {count} waiting, until it answers", ms(ready), "", ""),
        Row("approve one after that, until it is done", ms(resumed), "", ""),
    ]


def growth(home: Path) -> list[Row]:
    """Bytes of checkpoints per turn of one long thread: level when growth is linear."""
    rows = []
    text = "x" * 1000
    with served(home) as (_, client, _):
        thread_id = ask(client, f"[[say {text}]]")
        until_idle(client, thread_id)
        done, last_size, first_rate = 1, size(home), 0.0
        for turns in (50, 100, 200):
            while done < turns:
                client.post(f"/api/threads/{thread_id}/messages", json={"text": f"[[say {text}]] {done}"})
                until_idle(client, thread_id)
                done += 1
            now = size(home)
            rate = (now - last_size) / (turns - (50 if turns == 100 else 100 if turns == 200 else 1))
            first_rate = first_rate or rate
            beside = f"the first 50: {first_rate / 1024:.0f} KiB"
            rows.append(
                Row(
                    f"disk per turn up to turn {turns}",
                    f"{rate / 1024:.0f} KiB",
                    beside,
                    times(rate, first_rate),
                    "level",
                )
            )
            last_size = now
    return rows


def pages(home: Home) -> list[Row]:
    """What a browser waits for, as one person among a hundred thousand threads."""
    thread_id = history.fill(home, 100_000, 2_000)
    wanted = {
        "inbox of 100,000 threads": "/",
        "inbox, unread": "/?view=unread",
        "inbox, Action": "/?view=action",
        "inbox, search for two words": "/?q=budget+number",
        "inbox, deep in the past": f"/?cursor={1_770_000_000_000_000}.{thread_id}",
        "thread with 2,000 messages": f"/threads/{thread_id}",
        "thread with 2,000 messages, earlier ones": f"/threads/{thread_id}?before=301000",
    }
    rows = []
    with served(home.path) as (_, api, _):
        until_idle(api, ask(api, "[[say warm]]"))
        for person in ("Ada", "Cay"):
            browser = logged_in(api, person)
            for what, path in wanted.items():
                if person == "Ada" or path.startswith("/?") or path == "/":
                    took, bytes_ = page_time(browser, path)
                    rows.append(Row(f"{what} ({person})", ms(took), f"{bytes_ / 1000:.0f} KB", "", "< 50 ms"))
            if person == "Ada":
                rows.append(whole_size(browser))
            browser.close()
    return rows


def logged_in(api: httpx.Client, person: str) -> httpx.Client:
    """A browser with that person's session."""
    url = api.post("/api/login-links", json={"person": person}).json()["url"]
    browser = httpx.Client(base_url=api.base_url, timeout=60, trust_env=False)
    code, form = url.partition("code=")[2], browser.get(url).text
    csrf = re.search(r'name="csrf" value="([0-9a-f]+)"', form)
    assert csrf is not None
    entered = browser.post("/login", data={"code": code, "csrf": csrf[1]})
    assert entered.status_code == 303, entered.text
    return browser


def page_time(browser: httpx.Client, path: str) -> tuple[float, int]:
    """The median seconds of a page, and its bytes."""
    took = []
    for _ in range(15):
        began = time.perf_counter()
        answer = browser.get(path)
        took.append(time.perf_counter() - began)
        assert answer.status_code == 200, (path, answer.status_code)
    return statistics.median(took), len(answer.content)


def whole_size(browser: httpx.Client) -> Row:
    """The inbox with everything that it loads, not compressed."""
    page = browser.get("/").text
    found = {"html": len(page.encode())}
    for name in re.findall(r'"(/static/[^"]+)"', page):
        found[name.partition("?")[0].rpartition(".")[2]] = len(browser.get(name).content)
    parts = ", ".join(f"{kind} {count / 1000:.0f}" for kind, count in found.items())
    return Row("inbox: HTML, CSS, JS and icon", f"{sum(found.values()) / 1000:.0f} KB", parts, "", "< 60 KB")


def in_slack(folder: Path) -> list[Row]:
    """Events and answers, beside a bare bolt app that asks the same model and keeps nothing."""
    found = asyncio.run(slack.measured(folder))
    ours, bare = found["product"], found["bare"]

    def row(what: str, name: str, aim: str = "") -> Row:
        return Row(what, ms(ours[name]), f"bare bolt {ms(bare[name])}", times(ours[name], bare[name]), aim)

    rate, bare_rate = ours["per second"], bare["per second"]
    count = len(slack.USERS) * slack.ASKED_EACH
    many = f"{count} messages in {len(slack.USERS)} threads, model {ms(MODEL_SECONDS)}: answers/s"
    return [
        row("event to acknowledgement, p50", "ack"),
        row("event to acknowledgement while 20 runs are active, p99", "busy ack", "< 300 ms"),
        row("event to answer, model 0 ms, p50", "answer", "<= 25 ms"),
        row("event to answer, model 0 ms, p95", "slow answer"),
        Row(many, f"{rate:.0f}", f"bare bolt {bare_rate:.0f}", f"{rate / bare_rate:.0%}", ">= 60"),
    ]


def by_mail(folder: Path, model: ModelServer) -> list[Row]:
    """Reading, taking in, answering and holding mail, each beside something that does less."""
    found = email.measured(folder, model)
    parsed, door, bare = found.reading, found.door, found.bare
    library = f"stdlib `email`, decoded {parsed['library']:.0f}"
    rows = [
        Row(
            f"mails read per second, {parsed['mails']:.0f} of the corpus, {where}",
            f"{parsed[name]:.0f}",
            library,
            times(parsed[name], parsed["library"]),
        )
        for name, where in (("here", "in this process"), ("apart", "in the process apart"))
    ]

    def row(what: str, name: str) -> Row:
        return Row(
            what, ms(door[name]), f"aiosmtpd and a file {ms(bare[name])}", times(door[name], bare[name])
        )

    rows += [
        row("door: end of the mail to 250 (committed), p50", "accept"),
        row("door: end of the mail to 250 (committed), p95", "slow accept"),
        row("door: 250 to the answer in the sink, model 0 ms, p50", "answer"),
        row("door: 250 to the answer in the sink, model 0 ms, p95", "slow answer"),
    ]
    return [*rows, *_from_the_mailbox(found.woken), *_large_mail(found.memory)]


def _from_the_mailbox(woken: dict[str, float] | str) -> list[Row]:
    if isinstance(woken, str):
        return [Row("mailbox: delivery to run start", "skipped", woken, "")]
    told, started = woken["told"], woken["started"]
    beside = f"imapclient is told {ms(told)}"
    return [
        Row("mailbox: delivery to first model request, p50", ms(started), beside, times(started, told)),
        Row("mailbox: IDLE wake-up to first model request", ms(started - told), "", ""),
    ]


def _large_mail(memory: dict[str, float] | str) -> list[Row]:
    if isinstance(memory, str):
        return [Row("memory with a mail of 25 MiB", "skipped", memory, "")]
    rows = []
    for name, who in (("server", "the server"), ("reader", "the process that reads mails")):
        before, peak, after = (memory[f"{name} {when}"] for when in ("before", "peak", "after"))
        beside = f"before {before:.0f}, after {after:.0f} MiB"
        more = times(peak - before, email.LARGE / 2**20) + " the mail"
        rows.append(Row(f"a mail of 25 MiB: peak of {who}", f"{peak:.0f} MiB", beside, more))
    return [*rows, Row("a mail of 25 MiB: its end to 250", ms(memory["seconds"]), "", "")]


def size(home: Path) -> int:
    """Bytes of the databases, the log files of SQLite included."""
    return sum(path.stat().st_size for path in home.glob("*.sqlite*"))


def ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 10 else f"{seconds:.1f} s"


def times(value: float, base: float) -> str:
    return f"{value / base:.1f}x"


def main() -> None:
    """Run everything and print the tables."""
    os.environ["PYTHONWARNINGS"] = "ignore"
    print(table("Starting", starting()))
    with tempfile.TemporaryDirectory() as folder, ModelServer() as model:
        root = Path(folder)
        home = write_home(root / "latency", model.url)
        with served(home.path) as (_, client, _):
            until_idle(client, ask(client, "[[say warm]]"))
            print(table("Latency, model of 0 ms", latency(client, model)))
        model.latency_seconds = MODEL_SECONDS
        print(table("Throughput", throughput(write_home(root / "throughput", model.url).path)))
        model.latency_seconds = 0.0
        print(table("At rest", standing_still(write_home(root / "rest", model.url).path)))
        patient = write_home(root / "waiting", model.url)
        print(table("Waiting", waiting(patient.path)))
        ledger_file(patient).unlink(missing_ok=True)
        print(
            table("One long thread, 2 x 1 KB per turn", growth(write_home(root / "growth", model.url).path))
        )
        print(table("Pages, over HTTP", pages(write_home(root / "pages", model.url))))
        print(table("Slack", in_slack(root)))
        print(table("Mail", by_mail(root, model)))
    print("\nCheckpoints\n")
    print(checkpoints.table(asyncio.run(checkpoints.rows())))


if __name__ == "__main__":
    main()
