"""What survives `kill -9`? A server that is killed at random moments while people post and decide.

`python -m tests.lab.kill` runs the long form; `tests/scenario/test_kill.py` a short one. One person
posts messages (each under a key of its own, again until it is acknowledged), one decides whatever waits, and
the server is killed and started again. In the end everything must have come to rest, and then:

* every acknowledged message is in its thread once, and has one answer
* no gated call reached the tool server more often than a person approved it
* the audit's chain holds
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.fakes.model_server import ModelServer
from tests.fakes.runtime import write_home

Json = dict[str, Any]
START_SECONDS = 60.0
REST_SECONDS = 120.0


@dataclass(slots=True)
class Outcome:
    """What was done to the server, and what it did."""

    kills: int = 0
    posted: dict[str, str] = field(default_factory=dict)  # key -> thread
    approved: Counter[str] = field(default_factory=Counter)  # note -> times a call was let through
    ran: Counter[str] = field(default_factory=Counter)  # note -> times a call reached the tool server
    uncertain: int = 0
    faults: list[str] = field(default_factory=list)


class Server:
    """A real server process on a home, which can be killed and started again on the same port."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.process: subprocess.Popen[bytes] | None = None
        self.log = home / "server.err"

    def start(self) -> None:
        environ = {"PATH": os.environ["PATH"], "PYTHONWARNINGS": "ignore"}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "pizzabot", "serve", "--home", str(self.home)],
                env=environ,
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
            )

    def kill(self) -> None:
        """Kill the server alone: its tool server goes on to the end of its call, as in a real crash."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        assert self.process is not None
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.kill()

    def client(self) -> httpx.Client | None:
        """A client of the running server, or None while it is not there."""
        try:
            token = (self.home / "token").read_text().strip()
            host, port = (self.home / ".address").read_text().split()
        except (OSError, ValueError):
            return None
        return httpx.Client(
            base_url=f"http://{host}:{port}",
            headers={"Authorization": f"Bearer {token}"},
            timeout=5,
            trust_env=False,
        )


class Lab:
    """The people around the server."""

    def __init__(self, server: Server, seed: int) -> None:
        self.server, self.outcome = server, Outcome()
        self._random = random.Random(seed)
        self._done = threading.Event()
        self._lock = threading.Lock()

    def request(self, method: str, path: str, **kwargs: Any) -> httpx.Response | None:
        """One try; None when the server is away or was killed meanwhile."""
        client = self.server.client()
        if client is None:
            return None
        with client:
            try:
                return client.request(method, path, **kwargs)
            except httpx.HTTPError:
                return None

    # -- posting -----------------------------------------------------------------------------------------

    def post(self, count: int) -> None:
        """Post messages until each is acknowledged; unacknowledged ones again under the same key."""
        for number in range(count):
            key = f"key-{number}"
            body = {"text": self._text(number), "title": f"number {number}"}
            while not self._done.is_set():
                response = self.request("POST", "/api/threads", json=body, headers={"Idempotency-Key": key})
                if response is not None and response.status_code == 201:
                    self.outcome.posted[key] = response.json()["thread_id"]
                    break
                time.sleep(0.05)
            time.sleep(self._random.uniform(0, 0.15))

    def _text(self, number: int) -> str:
        note = f"note-{number}"
        kind = number % 4
        if kind == 0:
            return f"[[say answer {number}]]"
        if kind == 1:
            return f'[[call bookkeeper lookup {{"query": "{note}"}}]]'
        if kind == 2:
            return f'[[call bookkeeper submit_expense {{"amount": {number}, "note": "{note}"}}]]'
        calls = [
            ["submit_expense", {"amount": number, "note": f"{note}a"}],
            ["submit_expense", {"amount": number, "note": f"{note}b"}],
        ]
        return f"[[calls bookkeeper {json.dumps(calls)}]]"

    # -- deciding ----------------------------------------------------------------------------------------

    def decide(self) -> None:
        """Answer whatever waits, until the lab is over."""
        while not self._done.is_set():
            if not self.decide_once():
                time.sleep(0.1)

    def decide_once(self) -> bool:
        """Answer every action that waits now; whether there was one."""
        response = self.request("GET", "/api/actions", params={"state": "pending"})
        if response is None or response.status_code != 200:
            return False
        waiting = response.json()["actions"]
        for action in waiting:
            self._answer(action)
        return bool(waiting)

    def _answer(self, action: Json) -> None:
        note = action["args"].get("note", "")
        if action["kind"] == "uncertain":
            self._settle(action, note)
        elif int(action["args"]["amount"]) % 5 == 2:
            self._say(action, {"decision": "reject", "reason": "no"}, None)
        else:
            self._say(action, {"decision": "approve", "digest": action["digest"]}, note)

    def _settle(self, action: Json, note: str) -> None:
        """A call whose end nobody saw: look whether it happened, as a person would."""
        time.sleep(0.5)  # the tool server may still be at it
        happened = any(
            row["args"].get("note") == note
            for row in ledger_calls_at(self.server.home)
            if row["event"] == "end"
        )
        self.outcome.uncertain += 1
        if happened:
            self._say(action, {"decision": "done"}, None)
        else:
            self._say(action, {"decision": "retry"}, note)

    def _say(self, action: Json, body: Json, lets_through: str | None) -> None:
        """Decide, until the server says that it is decided."""
        while not self._done.is_set():
            response = self.request("POST", f"/api/actions/{action['id']}/decision", json=body)
            if response is not None and response.status_code in (200, 409):
                # 409: an earlier try was stored although its answer was lost. Either way it counts once.
                if lets_through is not None:
                    self.outcome.approved[lets_through] += 1
                return
            if response is not None and response.status_code not in (401, 503):
                self.outcome.faults.append(f"decision answered {response.status_code}: {response.text[:200]}")
                return
            time.sleep(0.05)

    # -- the course --------------------------------------------------------------------------------------

    def run(self, rounds: int, posts: int) -> Outcome:
        """Kill the server `rounds` times, then let everything come to rest and look."""
        self.server.start()
        people = [
            threading.Thread(target=self.post, args=(posts,), daemon=True),
            threading.Thread(target=self.decide, daemon=True),
        ]
        for person in people:
            person.start()
        for _ in range(rounds):
            self._await_health()
            time.sleep(self._random.uniform(0.05, 2.5))
            self.server.kill()
            self.outcome.kills += 1
            self.server.start()
        self._await_health()
        people[0].join(REST_SECONDS)
        self._await_rest()
        self._done.set()
        people[1].join(20)
        self._check()
        return self.outcome

    def _await_health(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            response = self.request("GET", "/healthz")
            if response is not None and response.status_code == 200:
                return
            time.sleep(0.05)
        self.outcome.faults.append("the server did not come back: " + self.server.log.read_text()[-500:])

    def _await_rest(self) -> None:
        deadline = time.monotonic() + REST_SECONDS
        while time.monotonic() < deadline:
            states = Counter(row["state"] for row in self._threads())
            if states and set(states) <= {"idle"} and len(self._threads()) >= len(self.outcome.posted):
                return
            time.sleep(0.3)
        self.outcome.faults.append(f"not at rest: {Counter(row['state'] for row in self._threads())}")

    def _threads(self) -> list[Json]:
        rows: list[Json] = []
        cursor: str | None = None
        while True:
            params = {"limit": "100"} | ({"cursor": cursor} if cursor else {})
            response = self.request("GET", "/api/threads", params=params)
            if response is None:
                return rows
            body = response.json()
            rows += body["threads"]
            cursor = body["next_cursor"]
            if cursor is None:
                return rows

    def _check(self) -> None:
        for key, thread_id in self.outcome.posted.items():
            response = self.request("GET", f"/api/threads/{thread_id}")
            if response is None or response.status_code != 200:
                self.outcome.faults.append(f"{key}: accepted, and gone")
                continue
            self._check_thread(key, response.json())
        threads = [row["id"] for row in self._threads()]
        if sorted(threads) != sorted(self.outcome.posted.values()):
            self.outcome.faults.append(f"{len(threads)} threads for {len(self.outcome.posted)} messages")
        self.outcome.ran = Counter(
            row["args"]["note"]
            for row in ledger_calls_at(self.server.home)
            if row["event"] == "start" and row["tool"] == "submit_expense"
        )
        for note, times in self.outcome.ran.items():
            if times > self.outcome.approved[note]:
                self.outcome.faults.append(
                    f"{note}: ran {times} times, approved {self.outcome.approved[note]} times"
                )
        verified = self.request("GET", "/api/audit/verify")
        if verified is None or not verified.json()["ok"]:
            self.outcome.faults.append("the audit's chain is broken")

    def _check_thread(self, key: str, thread: Json) -> None:
        roles = Counter(message["role"] for message in thread["messages"])
        if roles != Counter(user=1, assistant=1):
            self.outcome.faults.append(f"{key}: {dict(roles)}")
        if any("empty answer" in message["text"] for message in thread["messages"]):
            self.outcome.faults.append(f"{key}: ended before its end")


def ledger_calls_at(home: Path) -> list[Json]:
    """Every line the tool server wrote."""
    path = home / "ledger.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def run(
    home: Path, *, rounds: int, posts: int, seed: int, process: Callable[[Path], Server] = Server
) -> Outcome:
    """The whole lab in a folder; `process` makes the server on it."""
    with ModelServer() as model:
        made = write_home(home, model.url, ledger_env={"LEDGER_DELAY": "0.1"})
        server = process(made.path)
        try:
            return Lab(server, seed).run(rounds, posts)
        finally:
            server.stop()


def main() -> int:
    """Run the long form and print what happened; exit code 1 when a promise was broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--posts", type=int, default=0, help="messages; four times the rounds when 0")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        outcome = run(
            Path(folder) / "home",
            rounds=options.rounds,
            posts=options.posts or options.rounds * 4,
            seed=options.seed,
        )
    print(
        f"seed {options.seed}: {outcome.kills} kills, {len(outcome.posted)} messages, "
        f"{sum(outcome.approved.values())} approvals, {sum(outcome.ran.values())} calls, "
        f"{outcome.uncertain} asked what became of them, {len(outcome.faults)} faults"
    )
    for fault in outcome.faults:
        print(" ", fault)
    return 1 if outcome.faults else 0


if __name__ == "__main__":
    sys.exit(main())
