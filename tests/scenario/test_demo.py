"""The demo as somebody tries it: a server and commands as real processes, on a home of its own."""

from __future__ import annotations

import functools
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from email import message_from_bytes
from email.policy import default
from pathlib import Path
from typing import Any

import pytest

START_SECONDS = 60.0
WORK_SECONDS = 60.0
CLOSE_SECONDS = 40.0
FILE_TAXI = "Please file an expense of 42.50 EUR for a taxi to the airport, tagged travel"

PROGRAM = (sys.executable, "-m", "pizzabot")


def environment(home: Path) -> dict[str, str]:
    """This process's, without anything that steers another home, and with ports for mail that are its own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PIZZABOT_")}
    return kept | {"PYTHONUNBUFFERED": "1"} | mail_ports(home)


@functools.cache
def mail_ports(home: Path) -> dict[str, str]:
    """The settings of two ports that are free now."""
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        ports = [str(probe.getsockname()[1]) for probe in (one, other)]
    return {"PIZZABOT_EMAIL__LISTEN__PORT": ports[0], "PIZZABOT_EMAIL__SMTP__PORT": ports[1]}


def start(home: Path, *words: str, **environ: str) -> tuple[subprocess.Popen[str], str]:
    """A server that said that it is ready, and that line."""
    process = subprocess.Popen(
        [*PROGRAM, *words, "--home", str(home), "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(home) | environ,
        start_new_session=True,
    )
    assert process.stdout is not None
    ready = process.stdout.readline()
    if "ready" not in ready:
        process.kill()
        raise AssertionError(f"not ready: {ready}{process.communicate()[1]}")
    return process, ready


def close(process: subprocess.Popen[str], number: int = signal.SIGTERM) -> tuple[int, str, str]:
    """End the server with a signal; its code and what it said."""
    process.send_signal(number)
    try:
        out, err = process.communicate(timeout=CLOSE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    return process.returncode, out, err


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Demo:
    """A running demo, and commands for it."""

    home: Path

    def __call__(self, *words: str, before: tuple[str, ...] = ()) -> Done:
        command = [*PROGRAM, *(before or ("--home", str(self.home))), *words]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            env=environment(self.home),
            timeout=WORK_SECONDS,
            check=False,
        )
        assert "Traceback" not in done.stderr
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", done.stdout + done.stderr)
        return Done(done.returncode, done.stdout, done.stderr)

    @property
    def book(self) -> list[str]:
        return (self.home / "expenses.csv").read_text().splitlines()

    def gated(self) -> tuple[str, str]:
        """Ask for something that waits; the short ids of its thread and its action."""
        asked = self("ask", FILE_TAXI)
        assert (asked.code, asked.out) == (0, ""), asked.err
        thread = re.search(r"^thread (\w{6})$", asked.err, re.MULTILINE)
        action = re.search(r" approve (\w{6})$", asked.err, re.MULTILINE)
        assert thread is not None
        assert action is not None
        assert "waiting for approval: mcp:expenses:add_expense" in asked.err
        return thread[1], action[1]

    def mails(self, *words: str) -> Done:
        """Send a mail as the person of the demo."""
        command = [sys.executable, "-m", "pizzabot.demo.send", "--home", str(self.home), *words]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            env=environment(self.home),
            timeout=WORK_SECONDS,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def mail(self, words: str, name: str = "") -> Path:
        """The newest mail that the demo sent with these words in its text, and that in its file's name."""
        deadline = time.monotonic() + WORK_SECONDS
        while True:
            files = sorted((self.home / "mail").glob("*.eml"), reverse=True)
            found = next((file for file in files if name in file.name and words in plain(file)), None)
            if found is not None:
                return found
            assert time.monotonic() < deadline, [file.name for file in files]
            time.sleep(0.1)

    def thread(self, thread: str) -> dict[str, Any]:
        """The thread as the API shows it."""
        views = (self.get(f"/api/threads?limit=100&view={view}")["threads"] for view in ("all", "archived"))
        thread_id = next(row["id"] for rows in views for row in rows if row["id"].endswith(thread))
        found: dict[str, Any] = self.get(f"/api/threads/{thread_id}")
        return found

    def get(self, path: str) -> Any:
        host, port = (self.home / ".address").read_text().split()
        connection = http.client.HTTPConnection(host, int(port), timeout=WORK_SECONDS)
        token = (self.home / "token").read_text().strip()
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
            response = connection.getresponse()
            body = response.read()
        finally:
            connection.close()
        assert response.status == 200, body
        return json.loads(body)

    def until(self, thread: str, reached: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The thread as soon as it is as wished."""
        deadline = time.monotonic() + WORK_SECONDS
        while not reached(found := self.thread(thread)):
            assert time.monotonic() < deadline, found
            time.sleep(0.2)
        return found

    def answer(self, thread: str) -> str:
        found = self.until(thread, lambda t: t["state"] in ("idle", "failed"))
        said = [message["text"] for message in found["messages"] if message["role"] == "assistant"]
        return "\n".join(said)


def plain(file: Path) -> str:
    part = message_from_bytes(file.read_bytes(), policy=default).get_body(("plain",))
    assert part is not None
    return str(part.get_content())


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    home = tmp_path_factory.mktemp("demo") / "home"
    process, ready = start(home, "demo")
    try:
        assert re.fullmatch(
            r"Pizza Bot is ready at http://127\.0\.0\.1:\d+ with demo \(offline, not a .*\n", ready
        )
        yield Demo(home)
    finally:
        code, out, err = close(process)
    assert code == 0, err
    assert "inbox action" in out
    assert re.search(r"-m pizzabot\.demo\.send --home \S+ 'Please file", out)
    assert re.search(
        r"^mail to you@demo\.example: \[Action\] add_expense: .* -> .*/mail/\d{4}-\S+\.eml$", out, re.M
    )
    assert str(home / "expenses.csv") in out
    assert not (home / ".address").exists()


def test_an_expense_is_filed_only_after_approval(demo: Demo) -> None:
    before = demo.book
    thread, action = demo.gated()
    assert demo.book == before
    waiting = demo("inbox", "action")
    assert f"{action}  {thread}  mcp:expenses:add_expense" in waiting.out
    approved = demo("approve", action)
    assert approved.code == 0
    assert "  amount    42.5\n" in approved.out
    assert '  tags      ["travel"]\n' in approved.out
    assert "Filed as expense" in demo.answer(thread)
    assert len(demo.book) == len(before) + 1
    assert ",42.50,EUR,taxi to the airport,travel," in demo.book[-1]
    late = demo("reject", action)
    assert (late.code, late.err) == (1, "pizzabot: Already approved by Ada in terminal.\n")


def test_a_rejected_expense_leaves_the_book_alone(demo: Demo) -> None:
    before = demo.book
    thread, action = demo.gated()
    assert demo("reject", action, "--reason", "too dear").code == 0
    demo.answer(thread)
    assert demo.book == before
    assert demo.thread(thread)["actions"][0]["reason"] == "too dear"


def test_an_edited_expense_is_filed_as_edited(demo: Demo) -> None:
    before = demo.book
    thread, action = demo.gated()
    wrong = demo("edit", action, "amount=much")
    assert (wrong.code, wrong.err) == (1, "pizzabot: amount: 'much' is not a number\n")
    refused = demo("edit", action, "amount=-1")
    assert refused.code == 1
    assert "/amount" in refused.err
    assert demo("edit", action, "amount=40", "currency=USD", 'tags=["a", "b"]').code == 0
    demo.answer(thread)
    assert len(demo.book) == len(before) + 1
    assert ",40.00,USD,taxi to the airport,a b," in demo.book[-1]
    row = demo.thread(thread)["actions"][0]
    assert row["args"]["amount"] == 42.5
    assert row["final_args"]["amount"] == 40


def test_an_answer_goes_to_stdout_once_and_nothing_else(demo: Demo) -> None:
    asked = demo("ask", "Show my expenses")
    assert asked.code == 0
    assert asked.out.count("lunch with the team") == 1
    assert "mcp:expenses:list_expenses" in asked.err
    assert "mcp:" not in asked.out


def test_a_conversation_goes_on_in_its_thread(demo: Demo) -> None:
    thread = re.search(r"^thread (\w{6})", demo("ask", "Show my expenses").err)
    assert thread is not None
    again = demo("ask", "--thread", thread[1], "How much did I spend?")
    assert "Total:" in again.out
    assert "1. " not in again.out  # the first answer is not shown again
    assert demo("rename", thread[1], "My \x1b[31mmoney").code == 0
    assert r"My \x1b[31mmoney" in demo("show", thread[1]).out
    message = demo.thread(thread[1])["messages"][1]["id"]
    fork = demo("fork", thread[1], message).out.strip()
    assert len(demo.thread(fork)["messages"]) == 2
    assert demo("read", thread[1]).code == 0
    assert demo("archive", thread[1]).code == 0
    assert thread[1] not in demo("inbox").out
    assert thread[1] in demo("inbox", "archived").out
    kept = demo("delete", thread[1])
    assert kept.code == 1
    assert "--yes" in kept.err
    assert demo("delete", thread[1], "--yes").code == 0
    assert demo("show", thread[1]).code == 1


def test_a_message_to_a_waiting_thread_is_held(demo: Demo) -> None:
    thread, action = demo.gated()
    second = demo("ask", "--thread", thread, "Show my expenses")
    assert second.code == 0
    assert f" approve {action}" in second.err
    assert "held" in second.err
    assert demo("reject", action).code == 0
    demo.until(
        thread, lambda t: t["state"] == "idle" and sum(m["role"] == "assistant" for m in t["messages"]) == 2
    )


def test_stop_all_keeps_messages_until_resume(demo: Demo) -> None:
    assert demo("stop", "--all").code == 0
    asked = demo("ask", "Show my expenses")
    assert (asked.code, asked.out) == (0, "")
    assert "resume" in asked.err
    thread = asked.err.split()[1]
    assert "stopped  everything, by Ada" in demo("status").out
    assert demo("resume").code == 0
    assert "lunch with the team" in demo.answer(thread)
    assert demo("resume").out == "Nothing was stopped.\n"


def test_a_stopped_thread_withdraws_its_actions_and_can_be_retried(demo: Demo) -> None:
    thread, action = demo.gated()
    assert demo("stop", thread).code == 0
    stopped = demo.until(thread, lambda t: t["state"] == "stopped")
    assert stopped["actions"][0]["state"] == "withdrawn"
    assert demo("approve", action).code == 1
    assert demo("stop", thread).out.endswith("nothing was running.\n")
    assert demo("retry", thread).code == 0
    demo.until(thread, lambda t: t["state"] == "waiting")
    assert demo("stop", thread).code == 0


def test_waiting_no_longer_than_said(demo: Demo) -> None:
    asked = demo("ask", FILE_TAXI, "--wait", "0")
    assert (asked.code, asked.out) == (0, "")
    assert "The run goes on." in asked.err
    thread = asked.err.split()[1]
    found = demo.until(thread, lambda t: t["state"] == "waiting")
    assert demo("stop", found["id"]).code == 0


def test_ctrl_c_leaves_the_run_going(demo: Demo) -> None:
    command = [*PROGRAM, "--home", str(demo.home), "ask", FILE_TAXI + " and show my expenses"]
    asking = subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment(demo.home)
    )
    assert asking.stderr is not None
    thread = asking.stderr.readline().split()[1]
    asking.send_signal(signal.SIGINT)
    _, err = asking.communicate(timeout=WORK_SECONDS)
    assert "Traceback" not in err
    if asking.returncode == 130:  # else the question was there already
        assert "The run goes on." in err
    assert thread in err
    demo.until(thread, lambda t: t["state"] == "waiting")
    assert demo("stop", thread).code == 0


def test_files_and_stdin_are_sent_along(demo: Demo, tmp_path: Path) -> None:
    file = tmp_path / "receipt ü.txt"
    file.write_text("taxi 42.50")
    asked = demo("ask", "Show my expenses", "--attach", str(file))
    assert asked.code == 0
    thread = asked.err.split()[1]
    assert "+ receipt ü.txt (10 bytes)" in demo("show", thread).out


def test_an_expense_is_filed_and_changed_by_mail(demo: Demo) -> None:
    sent = demo.mails("--subject", "Taxi by mail", FILE_TAXI.replace("airport", "harbour"))
    assert sent.code == 0, sent.err
    asked = demo.mail("taxi to the harbour", "-Action-add_expense-Taxi-by-mail")
    wrong = demo.mails("--answer", str(asked), "--set", "colour=red")
    assert (wrong.code, wrong.err) == (1, "not sent: the mail has no line that begins with colour:\n")
    assert demo.mails("--answer", str(asked), "--set", "amount=41.25").code == 0
    assert "amount: 41.25\r\n    was: " in plain(demo.mail("Approved with your changes"))
    demo.mail("Filed as expense", "-Re-Taxi-by-mail")
    assert ",41.25,EUR,taxi to the harbour,travel," in demo.book[-1]


def test_a_demo_whose_port_is_taken_runs_without_mail(demo: Demo, tmp_path: Path) -> None:
    other = Demo(tmp_path / "home")
    process, _ = start(other.home, "demo", **mail_ports(demo.home))
    try:
        assert "email: off" in other("status").out
    finally:
        code, out, err = close(process)
    assert code == 0, err
    port = mail_ports(demo.home)["PIZZABOT_EMAIL__LISTEN__PORT"]
    assert f"This time without mail: port {port} cannot be used (Address already in use" in out
    assert "demo.send" not in out


def test_a_mail_that_nobody_takes_is_told_in_one_line(demo: Demo, tmp_path: Path) -> None:
    sent = demo.mails("--port", mail_ports(tmp_path)["PIZZABOT_EMAIL__LISTEN__PORT"], "Hello")
    assert sent.code == 1
    assert sent.err.startswith("not sent: the door for mail does not answer; is the demo on?")
    assert len(sent.err.splitlines()) == 1


def test_the_house_shows_itself(demo: Demo) -> None:
    assert "expenses: connected, 4 tools" in demo("status").out
    assert "expenses  ready" in demo("skills", "list").out
    assert "mcp:expenses:add_expense\tmay change something" in demo("mcp", "tools").out
    assert demo("mcp", "reconnect", "expenses").out == "expenses is connected with 4 tools.\n"
    assert demo("mcp", "reconnect", "nobody").code == 1
    assert demo("audit", "--verify").out.startswith("The audit is whole: ")
    assert "demo (offline, not a real model)" in demo("usage").out
    assert json.loads(demo("status", "--json").out)["stopped"] is False
    checked = demo("doctor")
    assert checked.code == 0, checked.out
    assert "takes mail for pizza@demo.example" in checked.out
    assert demo("inbox", before=("--home", "/nowhere")).code == 3


def test_a_second_server_names_the_first(demo: Demo) -> None:
    pid = (demo.home / ".lock").read_text().strip()
    second = demo("serve", "--port", "0")
    assert second.code == 1
    assert f"process {pid} is running on this home" in second.err
    assert len(second.err.splitlines()) == 1
    assert demo("status").code == 0  # the first one still answers


def test_a_token_is_void_once_another_was_issued(demo: Demo) -> None:
    issued = demo("token", "Ada")
    assert issued.out == (demo.home / "token").read_text()
    assert demo("status").code == 0


def test_what_waits_survives_a_restart_and_a_kill(tmp_path: Path) -> None:
    demo = Demo(tmp_path / "home")
    process, _ = start(demo.home, "demo")
    try:
        thread, action = demo.gated()
    finally:
        process.kill()
        process.communicate()
    assert demo("inbox").code == 3
    process, _ = start(demo.home, "serve")
    try:
        assert demo("approve", action).code == 0
        assert "Filed as expense" in demo.answer(thread)
        assert len(demo.book) == 5
        saved = demo("backup", str(tmp_path / "saved.zip"))
        assert saved.code == 0, saved.err
    finally:
        code, out, _ = close(process, signal.SIGINT)
    assert code == 0
    assert "Closing" in out
    restored = Demo(tmp_path / "other")
    assert restored("restore", str(tmp_path / "saved.zip")).code == 0
    assert restored("migrate").code == 0
    assert restored("inbox").code == 3
    log = (demo.home / "logs" / "pizzabot.log").read_text()
    assert all(json.loads(line)["level"] != "error" for line in log.splitlines())
