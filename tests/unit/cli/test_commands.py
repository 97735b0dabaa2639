"""What commands say and how they end: without a server, with wrong words, with hostile text, into a pipe."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pizzabot.cli import main
from pizzabot.cli.client import Api
from pizzabot.cli.demo import mail_lines, try_lines
from pizzabot.cli.house import status_lines
from pizzabot.cli.inbox import _print_waiting, _state_in_list, thread_lines
from pizzabot.cli.output import column_widths, print_table
from pizzabot.cli.serve import is_offer, serving_environment, unready_lines
from pizzabot.cli.setup import filled
from pizzabot.demo.home import write_demo_home
from pizzabot.settings import default_toml, load_settings
from tests.unit.cli.conftest import Answers, action_row, thread_row

Serving = Callable[[Answers], Api]
THREAD = thread_row(1)["id"]

NEED_A_SERVER = [
    ["ask", "x"],
    ["inbox"],
    ["show", THREAD],
    ["read", THREAD],
    ["archive", THREAD],
    ["rename", THREAD, "t"],
    ["fork", THREAD, "1"],
    ["delete", THREAD, "--yes"],
    ["approve", THREAD],
    ["edit", THREAD, "a=1"],
    ["reject", THREAD],
    ["respond", THREAD, "x"],
    ["resolve", THREAD, "done"],
    ["reopen", THREAD],
    ["snooze", THREAD, "2h"],
    ["stop", "--all"],
    ["resume"],
    ["retry", THREAD],
    ["status"],
    ["usage"],
    ["audit"],
    ["retention"],
    ["skills", "list"],
    ["skills", "show", "x"],
    ["mcp", "list"],
    ["mcp", "tools"],
    ["mcp", "reconnect", "x"],
]


@pytest.fixture(autouse=True)
def _no_other_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("PIZZABOT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIZZABOT_HOME", str(tmp_path / "home"))


@pytest.mark.parametrize("words", NEED_A_SERVER, ids=lambda words: " ".join(words[:2]))
def test_without_a_server_the_code_is_3(
    words: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(words) == 3
    said = capsys.readouterr()
    assert said.out == ""
    home = tmp_path / "home"
    start = f"start it with `pizzabot serve --home {home}`"
    assert said.err == f"pizzabot: the server is not running on {home}; {start}\n"


@pytest.mark.parametrize(
    "words",
    [
        ["frob"],
        ["--frob"],
        ["ask"],
        ["ask", "a", "b"],
        ["ask", "x", "--wait", "-1"],
        ["ask", "x", "--wait", "soon"],
        ["inbox", "everything"],
        ["inbox", "--limit", "0"],
        ["stop"],
        ["stop", THREAD, "--all"],
        ["edit", THREAD],
        ["edit", THREAD, "a=1", "--json", "{}"],
        ["resolve", THREAD, "maybe"],
        ["mcp"],
        ["mcp", "frob"],
        ["--home"],
        ["serve", "--port", "99999"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_code_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "Traceback" not in said.err
    assert said.err


def test_a_missing_attachment_is_told_before_anything_is_sent(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ask", "x", "--attach", "/no/such/file"]) == 1
    assert capsys.readouterr().err == "pizzabot: /no/such/file cannot be read: No such file or directory\n"


def test_init_writes_once_and_asks_nobody_without_a_terminal(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["init"]) == 0
    file = tmp_path / "home" / "pizzabot.toml"
    assert file.read_text() == default_toml()
    assert file.stat().st_mode & 0o777 == 0o600
    file.write_text("# mine\n")
    assert main(["init"]) == 0
    assert file.read_text() == "# mine\n"
    assert "nothing was changed" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["Ada", 'A "B" \\1', "Zoë"])
def test_what_init_was_told_is_in_the_file(name: str, tmp_path: Path) -> None:
    text = filled(default_toml(), name, "demo:offline")
    parsed = tomllib.loads(text)
    assert parsed == {"model": "demo:offline", "people": [{"name": name, "role": "owner"}]}
    assert filled(default_toml(), "", "demo:offline").count("\n[[people]]") == 0


def test_token_prints_the_token_and_nothing_else(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    write_demo_home(tmp_path / "home", sys.executable)
    assert main(["token", "Ada"]) == 0
    said = capsys.readouterr()
    assert said.out == (tmp_path / "home" / "token").read_text()
    assert said.err == ""


def test_a_token_for_nobody_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["token", "Ada"]) == 1
    write_demo_home(tmp_path / "home", sys.executable)
    assert main(["token", "Eve\x1b"]) == 1
    err = capsys.readouterr().err
    assert "known are Ada" in err
    assert "\x1b" not in err


def test_a_wrong_setting_is_told_with_its_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "pizzabot.toml").write_text('modle = "demo:x"\n[web]\nport = "x"\n')
    assert main(["serve"]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert all(line.startswith(f"pizzabot: {home / 'pizzabot.toml'}:") for line in lines)


def test_a_host_that_others_reach_is_checked_like_the_setting(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["serve", "--host", "0.0.0.0", "--port", "0"]) == 1
    assert "allowed_origins" in capsys.readouterr().err


def test_options_of_serve_are_settings(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "pizzabot.toml").write_text("[web]\nport = 1\n")
    web = load_settings(home, serving_environment(home, {}, "::1", 4711)).web
    assert (web.host, web.port) == ("::1", 4711)
    assert load_settings(home, serving_environment(home, {}, None, None)).web.port == 1


def test_skills_check_says_what_is_wrong_where(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder = tmp_path / "books"
    folder.mkdir()
    file = folder / "SKILL.md"
    header = 'name: books\ndescription: Keeps books.\ntools: "mcp:ledger:*"\n'
    file.write_text(f"---\n{header}interruptOn:\n  mcp:ledger:pay: true\n---\nDo it.\n")
    assert main(["skills", "check", str(folder)]) == 0
    assert "mcp:ledger:pay asks (approve" in capsys.readouterr().out
    file.write_text("---\nname: books\n---\n")
    assert main(["skills", "check", str(file)]) == 1
    assert str(file) in capsys.readouterr().err
    assert main(["skills", "check", str(tmp_path / "nowhere")]) == 1


def test_doctor_on_a_new_home(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIZZABOT_EMAIL__ENABLED", "false")  # its outgoing server runs with the demo alone
    assert main(["doctor"]) == 1
    assert "pizzabot init" in capsys.readouterr().out
    write_demo_home(tmp_path / "home", sys.executable)
    assert main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    told = {(check["what"], check["level"]): check["text"] for check in found["checks"]}
    assert found["ok"] is True
    assert told["model", "ok"] == "demo (offline, not a real model)"
    assert told["mcp", "ok"] == "expenses is connected, 4 tools"
    assert ("server", "warning") in told


def test_doctor_names_what_does_not_work(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIZZABOT_EMAIL__ENABLED", "false")
    home = tmp_path / "home"
    write_demo_home(home, "/no/such/python")
    home.chmod(0o755)
    (home / "app.sqlite").write_bytes(b"no database at all, just some text that is long enough")
    (home / "skills" / "broken").mkdir(parents=True)
    (home / "skills" / "broken" / "SKILL.md").write_text("no header")
    assert main(["doctor"]) == 1
    lines = capsys.readouterr().out.splitlines()
    errors = [line.split()[1] for line in lines if line.startswith("error")]
    assert errors == ["database", "mcp", "skills", "skills"]
    assert any(line.startswith("warning  home") for line in lines)
    assert all(" -> " in line for line in lines if not line.startswith("ok"))


def _doctor_on_a_trigger(
    home: Path, line: str, capsys: pytest.CaptureFixture[str], *, code: int
) -> list[dict[str, str]]:
    """What doctor finds where a trigger of the file has this line."""
    write_demo_home(home, sys.executable)
    with (home / "pizzabot.toml").open("a") as file:
        file.write(f'[[triggers]]\nname = "Books"\ncron = "@daily"\nprompt = "Look."\n{line}\n')
    assert main(["doctor", "--json", "--offline"]) == code
    found: list[dict[str, str]] = json.loads(capsys.readouterr().out)["checks"]
    return found


def test_doctor_names_skills_that_a_trigger_cannot_have(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIZZABOT_EMAIL__ENABLED", "false")
    found = _doctor_on_a_trigger(tmp_path / "home", 'skills = ["Expenses", "cellar"]', capsys, code=1)
    (wrong,) = [check for check in found if check["what"] == "triggers"]
    assert wrong["text"] == '[[triggers]] "Books": there is no skill cellar that can be used'


def test_doctor_warns_of_places_whose_channel_is_off(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIZZABOT_EMAIL__ENABLED", "false")
    line = 'channels = ["web", "slack:C0123", "email"]'
    found = _doctor_on_a_trigger(tmp_path / "home", line, capsys, code=0)
    warned = [c["text"] for c in found if (c["what"], c["level"]) == ("triggers", "warning")]
    start = '[[triggers]] "Books": channels: names'
    assert warned == [
        f"{start} slack:C0123, and slack is off; nobody is told there until it is on",
        f"{start} email, and email is off; nobody is told there until it is on",
    ]


def test_doctor_tries_out_sending_when_it_is_told_to(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "home").mkdir(mode=0o700)
    (tmp_path / "home" / "pizzabot.toml").write_text('model = "demo:offline"')
    assert main(["doctor", "--send"]) == 0
    assert "no channel that is on can send to itself" in capsys.readouterr().out
    assert main(["doctor", "--send", "--offline"]) == 2
    assert "--offline or --send" in capsys.readouterr().err


def test_doctor_keeps_the_password_of_a_database_to_itself(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    pytest.importorskip("psycopg")
    write_demo_home(tmp_path / "home", sys.executable)
    with (tmp_path / "home" / "pizzabot.toml").open("a") as file:
        file.write('[database]\nurl = "postgresql://pizza:hidden-word@127.0.0.1:1/x"\n')
    assert main(["doctor", "--offline"]) == 1
    out = capsys.readouterr().out
    assert "PostgreSQL does not answer" in out
    assert "hidden-word" not in out


def test_a_thread_cannot_rewrite_the_terminal(serving: Serving) -> None:
    hostile = "\x1b[2J\u202e\r"
    message = {
        "id": "1",
        "role": "user",
        "author": hostile,
        "text": f"{hostile}\nline",
        "created_at": hostile,
    }
    thread = thread_row(1, title=hostile, channel=hostile) | {
        "messages": [message],
        "actions": [
            action_row(1, title=hostile, tool=hostile, why=hostile, args={hostile: hostile}, skill=hostile)
        ],
        "runs": [{"id": "r", "error": {"code": "x", "message": hostile}}],
        "activity": [
            {"kind": "tool", "name": hostile, "outcome": "error", "worker": hostile, "detail": hostile}
        ],
    }
    lines = list(thread_lines(serving(lambda _: {"timezone": "UTC"}), thread))
    assert not any(character in line for line in lines for character in "\x1b\u202e\r")
    assert sum(r"\x1b[2J" in line for line in lines) >= 8


def test_a_table_holds_wide_text_and_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(
        ("ID", "TITLE", "LAST"), [("1", "你好" * 3, "now"), ("2", "[red]x[/] :pizza:", "now")], wide=1
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines[2] == "2   [red]x[/] :pizza:  now"
    # six characters, twelve cells
    assert lines[1] == "1   你好你好你好       now"


@pytest.mark.parametrize("room", [20, 60, 200])
def test_on_a_narrow_terminal_ids_are_never_cut(room: int, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [["abcdef", "to decide", "你" * 40, "2 min ago"]]
    widths = column_widths([["ID", "STATE", "TITLE", "LAST"], *rows], 2, room)
    assert (widths[0], widths[1], widths[3]) == (6, 9, 9)
    assert widths[2] == {20: 12, 60: 60 - 24 - 8, 200: 80}[room]


def test_the_status_says_what_is_wrong() -> None:
    status = {
        "model": {"name": "m", "label": "m"},
        "stopped": True,
        "stopped_by": {"person": "Ada"},
        "channels": {"slack": {"state": "down", "detail": "no\x1b"}},
        "mcp": {"a": {"state": "down", "tools": 0, "error": "gone"}},
        "outbox": {
            "pending": 1,
            "put_off": 3,
            "unknown": 2,
            "failed": [{"channel": "email", "to": "x@y", "error": "550"}],
        },
        "broken": [{"file": "f", "line": 3, "reason": "r"}],
    }
    assert list(status_lines(status)) == [
        "model    m",
        "stopped  everything, by Ada; `pizzabot resume` undoes it",
        r"channel  slack: down (no\x1b)",
        "mcp      a: down (gone), 0 tools",
        "outbox   1 pending, 2 of unknown outcome, 3 put off until quiet hours end",
        "failed   email x@y: 550",
        "broken   f:3: r",
    ]


def test_what_is_not_ready_is_told_and_offers_are_not() -> None:
    servers = [
        {"name": "a", "state": "down", "error": "gone"},
        {"name": "b", "state": "connected"},
        {"name": "c", "state": "disabled"},
    ]
    skills: list[dict[str, Any]] = [
        {"id": "one", "state": "unavailable", "reason": "no", "source": "home", "tools": ["mcp:x:*"]},
        {"id": "two", "state": "unavailable", "reason": "no", "source": "builtin", "tools": ["mcp:x:*"]},
        {"id": "three", "state": "ready", "source": "builtin", "tools": []},
    ]
    assert unready_lines(servers, skills) == [
        "not ready: MCP server a is down: gone",
        "not ready: skill one: no",
    ]
    assert not is_offer(skills[1], ["x"])


def test_the_demo_names_commands_for_its_home() -> None:
    lines = try_lines("my demo", Path("/x"), "http://127.0.0.1:1/login?code=once")
    assert any(line.startswith("  ") and "--home 'my demo' ask " in line for line in lines)
    assert any("/x/expenses.csv" in line for line in lines)
    assert any(line.endswith("http://127.0.0.1:1/login?code=once") for line in lines)
    assert any(
        "demo.send --home 'my demo' --port 25 " in line for line in mail_lines("my demo", Path("/x"), 25)
    )
    assert not any("--port" in line for line in mail_lines("my demo", Path("/x"), None))


def test_a_closed_pipe_is_no_traceback(tmp_path: Path) -> None:
    environ = os.environ | {"PIZZABOT_HOME": str(tmp_path)}
    command = f"{sys.executable} -m pizzabot --help | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=environ, check=False)
    assert done.stderr == ""


@pytest.mark.parametrize(
    "raised", [RuntimeError("inner\x1b"), OSError(28, "No space left"), KeyboardInterrupt()]
)
def test_nothing_ends_in_a_traceback(
    raised: BaseException, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> int:
        raise raised

    monkeypatch.setattr("pizzabot.cli.app._call", fail)
    assert main(["inbox"]) == (130 if isinstance(raised, KeyboardInterrupt) else 1)
    err = capsys.readouterr().err
    assert len(err.splitlines()) == 1
    assert "\x1b" not in err


def test_the_list_of_what_waits_says_what_was_put_off_and_until_when(
    serving: Callable[[Answers], Api], capsys: pytest.CaptureFixture[str]
) -> None:
    row = action_row(1)
    api = serving(lambda request: {"name": "Ada", "timezone": "UTC", "actions": [row]})
    _print_waiting(api, [row["thread_id"]], {row["id"]: "2026-03-10T08:00:00+00:00"})
    assert "put off until 2026-03-10 08:00 · amount=3" in capsys.readouterr().out
    thread = thread_row(1, action_count=1, pending=[{"put_off_until": "2026-03-10T08:00:00+00:00"}])
    assert _state_in_list(thread) == "put off"
    assert _state_in_list(thread | {"action_count": 2}) == "2 to decide"
