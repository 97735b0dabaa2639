"""No secret reaches a log: not in the message, not in an argument, not in a traceback, in no form."""

from __future__ import annotations

import asyncio
import json
import logging
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pizzabot import logs
from pizzabot.logs import Redaction

SECRET = 'p"ss wörd/+\\1'
MULTILINE = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\n-----END KEY-----"


@pytest.fixture(autouse=True)
def root() -> Iterator[logging.Logger]:
    """The root logger, without our handlers afterwards; those of pytest come and go by themselves."""
    found, dbos = logging.getLogger(), logging.getLogger("dbos")
    level, of_dbos, propagates = found.level, dbos.handlers, dbos.propagate
    yield found
    for handler in {*found.handlers, *dbos.handlers}:
        if any(isinstance(each, logs.Redaction) for each in handler.filters):
            found.removeHandler(handler)
            if isinstance(handler, logging.FileHandler):
                handler.close()
    found.setLevel(level)
    dbos.handlers, dbos.propagate = of_dbos, propagates
    logging.captureWarnings(False)


def configured(folder: Path) -> Path:
    """Logs from now on go there. In the test itself: in a fixture stderr is another one."""
    logs.configure(folder, "debug", [SECRET, MULTILINE, "hunter22", "hunter22-long"])
    return folder


def lines(folder: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in (folder / logs.FILE_NAME).read_text().splitlines()]


def assert_clean(folder: Path, capsys: pytest.CaptureFixture[str], *secrets: str) -> None:
    written = (folder / logs.FILE_NAME).read_text() + capsys.readouterr().err
    for line in lines(folder):
        written += "".join(line.values())
    for secret in secrets:
        assert secret not in written


def test_a_secret_in_message_and_arguments_is_blotted_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = configured(tmp_path)
    log = logging.getLogger("pizzabot.test")
    log.info(f"plain {SECRET}")
    log.info("argument %s and %r", SECRET, {"key": SECRET})
    log.info("mapping %(key)s", {"key": "hunter22"})
    log.info("json %s", json.dumps(SECRET))
    assert_clean(folder, capsys, SECRET, json.dumps(SECRET)[1:-1], repr(SECRET)[1:-1], "hunter22")
    assert lines(folder)[0]["message"] == "plain ***"


def test_a_secret_in_an_exception_is_blotted_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = configured(tmp_path)
    try:
        try:
            raise ValueError(SECRET)
        except ValueError as error:
            raise RuntimeError(f"https://host/?key={SECRET} {MULTILINE}") from error
    except RuntimeError:
        logging.getLogger("pizzabot.test").exception("failed", stack_info=True)
    assert_clean(folder, capsys, SECRET, "MIIEvQIBADANBgkqhkiG9w0B")
    assert "RuntimeError: https://host/?key=***" in lines(folder)[0]["error"]
    assert "ValueError: ***" in lines(folder)[0]["error"]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Authorization: Bearer abcdef0123456789", "Authorization: Bearer ***"),
        ("{'authorization': 'bearer abcdef0123456789'}", "{'authorization': 'bearer ***'}"),
        ("Basic dXNlcjpwYXNzd29yZA==", "Basic ***"),
        ("pzb_0123456789abcdefghij", "***"),
        ("xoxb-123456789012-abc and xapp-1-A-234567890", "*** and ***"),
        ("postgresql://pizza:hidden@host/db", "postgresql://pizza:***@host/db"),
        ("sk-proj-0123456789abcdefgh", "***"),
        ("hunter22-long", "***"),
        ("p%22ss%20w%C3%B6rd%2F%2B%5C1", "***"),
        (
            "nothing secret: bearer of news, http://host:80/path",
            "nothing secret: bearer of news, http://host:80/path",
        ),
    ],
)
def test_what_looks_like_a_credential_is_one(tmp_path: Path, text: str, left: str) -> None:
    folder = configured(tmp_path)
    logging.getLogger("pizzabot.test").info("%s", text)
    assert lines(folder)[0]["message"] == left


def test_a_line_is_json_whatever_stands_in_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = configured(tmp_path)
    logging.getLogger("pizzabot.test").warning("two\nlines \x1b[2J \ud83c %s")
    logging.getLogger("pizzabot.test").warning("%d", "no number")
    first, second = lines(folder)
    assert first["message"] == "two\nlines \x1b[2J \ud83c %s"
    assert (first["level"], first["logger"]) == ("warning", "pizzabot.test")
    assert first["time"].endswith("+00:00")
    assert "no number" in second["message"]
    console = capsys.readouterr().err
    assert len(console.splitlines()) == 2
    assert "\x1b" not in console


def test_the_console_shows_one_line_of_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    configured(tmp_path)
    try:
        raise RuntimeError("the reason")
    except RuntimeError:
        logging.getLogger("pizzabot.test").error("it failed", exc_info=True)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("error: it failed (RuntimeError: the reason)")


def test_the_file_is_private_and_turns_over(tmp_path: Path, root: logging.Logger) -> None:
    logs.configure(tmp_path, "info", [], file_bytes=500, old_files=3)
    for number in range(40):
        logging.getLogger("pizzabot.test").info("line %d", number)
    files = sorted(tmp_path.iterdir())
    assert len(files) == 4
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in files)


def test_the_level_is_kept_and_libraries_are_quiet(tmp_path: Path, root: logging.Logger) -> None:
    folder = configured(tmp_path)
    logs.configure(folder, "warning", [])
    logging.getLogger("pizzabot.test").info("no")
    logging.getLogger("httpx").info("no")
    logging.getLogger("pizzabot.test").warning("yes")
    assert [line["message"] for line in lines(folder)] == ["yes"]


def test_dbos_writes_through_the_redaction_too(tmp_path: Path) -> None:
    folder = configured(tmp_path)
    logging.getLogger("dbos").warning("at %s", SECRET)
    assert lines(folder)[0]["message"] == "at ***"
    assert not logging.getLogger("dbos").propagate


def test_without_secrets_nothing_is_changed() -> None:
    assert logs.Redaction([""]).redacted("a text") == "a text"


def test_what_is_logged_within_a_run_says_which(tmp_path: Path) -> None:
    folder, log = configured(tmp_path), logging.getLogger("pizzabot.test")
    with logs.within(thread="t1"), logs.within(run="r1"):
        log.info("inside")
    log.info("outside")
    inside, outside = lines(folder)
    assert (inside["thread"], inside["run"]) == ("t1", "r1")
    assert "run" not in outside


async def test_a_task_carries_the_fields_of_where_it_began(tmp_path: Path) -> None:
    folder = configured(tmp_path)

    async def work(name: str) -> None:
        with logs.within(run=name):
            both.release()
            await asyncio.wait_for(ready.wait(), 10)
            logging.getLogger("pizzabot.test").info("at work")

    both, ready = asyncio.Semaphore(0), asyncio.Event()
    tasks = [asyncio.create_task(work(name)) for name in ("r1", "r2")]
    for _ in tasks:
        await both.acquire()
    ready.set()
    await asyncio.gather(*tasks)
    assert sorted(line["run"] for line in lines(folder)) == ["r1", "r2"]


def test_a_secret_in_a_field_is_blotted_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = configured(tmp_path)
    with logs.within(channel="Bearer abcdef0123456789"):
        logging.getLogger("pizzabot.test").info("x", extra={"header": SECRET, "time": "hunter22"})
    assert_clean(folder, capsys, SECRET, "hunter22", "abcdef0123456789")
    (line,) = lines(folder)
    assert (line["channel"], line["header"], line["time_"]) == ("Bearer ***", "***", "***")
    assert line["time"].endswith("+00:00")


def test_the_terminal_can_be_json_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure(tmp_path, "info", [SECRET], console_format="json")
    with logs.within(run="r1"):
        logging.getLogger("pizzabot.test").info("at %s", SECRET)
    assert json.loads(capsys.readouterr().err) == lines(tmp_path)[0]
    assert lines(tmp_path)[0]["run"] == "r1"


class _Odd:
    """Nothing can be said of it."""

    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


def test_a_value_that_cannot_be_written_down_stops_no_work() -> None:
    record = logging.LogRecord("here", logging.INFO, "x.py", 1, "found %s", (_Odd(),), None)
    record.what = _Odd()
    assert Redaction([]).filter(record)
    assert "found" in record.getMessage()
    assert "cannot be written down" in record.getMessage()


@pytest.mark.parametrize(
    "text",
    [
        "GET https://example.com/hook?token=abcdef0123456789abcdef",
        "GET https://example.com/x?b=1&api_key=abcdef0123456789abcdef&c=2",
        "x-trigger-secret: abcdef0123456789abcdef",
        "{'X-Trigger-Secret': 'abcdef0123456789abcdef'}",
        "https://hooks.slack.com/services/T0AAAA/B0BBBB/abcdef0123456789abcdef",
        "AIzaSyA1234567890abcdef0123456789abcdef",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abcdef0123456789abcdef",
    ],
)
def test_a_credential_that_no_setting_names_is_blotted_out(text: str) -> None:
    assert "abcdef0123" not in Redaction([]).redacted(text)


@pytest.mark.parametrize("form", ["s3cret%2fwith%2bsigns", "s3cret/with%2Bsigns", "czNjcmV0L3dpdGgrc2lnbnM="])
def test_a_named_secret_is_blotted_out_in_any_form(form: str) -> None:
    assert form.rstrip("=") not in Redaction(["s3cret/with+signs"]).redacted(f"https://x.example/?q={form}")


@pytest.mark.parametrize("piece", ["a-", "x-", "?", "a.", "?key", "eyJ", "://"])
def test_no_line_takes_long_to_redact(piece: str) -> None:
    began = time.thread_time()
    Redaction(["s3cret"]).redacted(piece * (200_000 // len(piece)))
    assert time.thread_time() - began < 2  # on an idle machine a tenth of that
