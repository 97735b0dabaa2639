"""`pizzabot triggers next`: which moments it prints, without a server, and what it refuses."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime

import pytest

from pizzabot.cli import main, upcoming
from tests.fakes.clock import FakeClock


@pytest.fixture
def _in_spring(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock(datetime(2026, 3, 27, 12, tzinfo=UTC))
    monkeypatch.setattr(upcoming, "SystemClock", lambda: clock)


@pytest.mark.usefixtures("_in_spring")
def test_next_prints_five_moments_with_their_offsets(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["triggers", "next", "30 2 * * *", "--zone", "Europe/Amsterdam"]) == 0
    said = capsys.readouterr()
    assert said.out.splitlines() == [
        "2026-03-28T02:30:00+01:00",
        "2026-03-29T03:00:00+02:00",
        "2026-03-30T02:30:00+02:00",
        "2026-03-31T02:30:00+02:00",
        "2026-04-01T02:30:00+02:00",
    ]
    assert said.err == ""


@pytest.mark.usefixtures("_in_spring")
def test_next_prints_as_many_as_are_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["triggers", "next", "@daily", "--zone", "UTC", "--count", "2"]) == 0
    assert capsys.readouterr().out == "2026-03-28T00:00:00+00:00\n2026-03-29T00:00:00+00:00\n"


@pytest.mark.usefixtures("_in_spring")
def test_next_without_a_zone_takes_that_of_the_machine(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    assert main(["triggers", "next", "@daily", "--count", "1"]) == 0
    assert capsys.readouterr().out == "2026-03-28T00:00:00+05:30\n"


@pytest.mark.parametrize(
    ("words", "code", "line"),
    [
        (["0 8 * *"], 1, 'pizzabot: "0 8 * *" is no schedule: it has 4 fields; write five'),
        (["@daily", "--zone", "Mars"], 1, 'pizzabot: "Mars" is not a time zone; write a name such as'),
        (["@daily", "--count", "0"], 2, "pizzabot: Invalid value for '--count'"),
        ([], 2, "pizzabot: Missing argument 'NAME|CRON'"),
    ],
)
def test_what_next_refuses(
    words: list[str], code: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["triggers", "next", *words]) == code
    said = capsys.readouterr()
    assert said.out == ""
    assert line in said.err


def test_next_loads_neither_settings_nor_sql_nor_the_agent() -> None:
    program = (
        "import sys; from pizzabot.cli import main;"
        "code = main(['triggers', 'next', '@daily', '--zone', 'UTC', '--count', '1']);"
        "print(*sys.modules, file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(done.stderr.split())
    assert "pizzabot.triggers.schedules" in loaded
    assert loaded.isdisjoint({"pizzabot.settings", "sqlalchemy", "langchain", "apscheduler"})
