"""What is written down about a server's life, and how do secrets stay out of it?

JSON lines go to `logs/pizzabot.log`, which is rotated by size; plain lines, or the same JSON, go to stderr.
Every secret is blotted out of message, arguments, fields and tracebacks before either is written. What is
written `within` something, a run for example, says so in fields of its own.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Literal
from urllib.parse import quote, quote_plus

FILE_NAME = "pizzabot.log"
BLOT = "***"
FILE_BYTES = 10_000_000
OLD_FILES = 5
_PRIVATE_FILE = 0o600

# What looks like a credential is one, also when no setting names it.
_TOKEN = re.compile(
    r"(?i:(?P<kept>\b(?:bearer|basic)\s+))[A-Za-z0-9._~+/=-]{8,}"
    r"|\bpzb_[A-Za-z0-9_-]{16,}"
    r"|\bx(?:ox[a-z]|app)-[A-Za-z0-9-]{10,}"
    r"|\bsk-[A-Za-z0-9_-]{16,}"
    r"|\bAIza[A-Za-z0-9_-]{30,}"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"
    r"|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"
    r"|(?P<hook>\bhooks\.slack(?:-gov)?\.com/[a-z]{1,20}/)[A-Za-z0-9/_-]+"
    r"|(?i:(?P<named>[?&](?:token|access_token|api_?key|key|password|secret|signature)=))[^\s&#\"']+"
    r"|(?i:(?P<header>\bx-[a-z-]{0,20}(?:secret|token|key|signature)[\"']?\s?:\s?[\"']?))[^\s,\"']+"
    r"|(?P<url>\b[a-z][a-z0-9+.-]{0,30}://[^\s/:@]{0,300}:)[^\s/@]+(?=@)"
)

_ESCAPE = re.compile("%[0-9A-F]{2}")  # of a URL; some write it in small letters

_TALKATIVE = (
    "httpx",
    "httpx2",  # the model clients' own; a line for each request would be formatted and written
    "httpcore",
    "httpcore2",
    "openai",
    "alembic",
    "dbos",
    "mcp",
    "uvicorn",
    "asyncio",
    "langchain",
    "langgraph",
    "mail.log",  # aiosmtpd's own: every command with its addresses
)

# What every record has by itself; everything else in it is a field that somebody gave it.
_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_FIELDS = "pizzabot_fields"
_TAKEN = frozenset({"time", "level", "logger", "message", "error", "stack"})

Format = Literal["text", "json"]
_within: ContextVar[Mapping[str, str]] = ContextVar("log_fields", default={})  # noqa: B039 - never changed


@contextmanager
def within(**fields: str) -> Iterator[None]:
    """What is logged in this block, and in tasks that begin in it, carries these fields: `run`, `thread`…"""
    token = _within.set({**_within.get(), **fields})
    try:
        yield
    finally:
        _within.reset(token)


class Redaction(logging.Filter):
    """Blots secrets out of a record, in the form it is written in."""

    def __init__(self, secrets: Iterable[str]) -> None:
        super().__init__()
        forms = {form for secret in secrets if secret for form in _forms(secret)}
        longest_first = sorted(forms, key=lambda form: (-len(form), form))
        self._secrets = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def filter(self, record: logging.LogRecord) -> bool:
        """Replace the record's texts; every handler may see it again, which changes nothing more."""
        record.msg, record.args = self.redacted(_message(record)), None
        if record.exc_info and not record.exc_text:
            record.exc_text = logging.Formatter().formatException(record.exc_info)
        if record.exc_text:
            record.exc_text = self.redacted(record.exc_text)
        if record.stack_info:
            record.stack_info = self.redacted(record.stack_info)
        given = {key: value for key, value in vars(record).items() if key not in _OWN and key != _FIELDS}
        if given or not hasattr(record, _FIELDS):
            for key in given:
                delattr(record, key)
            known: Mapping[str, str] = getattr(record, _FIELDS, _within.get())
            fields = {**known, **given}
            setattr(record, _FIELDS, {key: self.redacted(_text(value)) for key, value in fields.items()})
        return True

    def redacted(self, text: str) -> str:
        """`text` without any secret."""
        if self._secrets is not None:
            text = self._secrets.sub(BLOT, text)
        return _TOKEN.sub(_blotted, text)


def _forms(secret: str) -> Iterator[str]:
    """A secret as it may stand in a log: plain, in a URL, in JSON, in a repr, in base64, line by line."""
    yield from (secret, json.dumps(secret)[1:-1], repr(secret)[1:-1])
    for escaped in (quote(secret, safe=""), quote(secret), quote_plus(secret)):
        yield from (escaped, _ESCAPE.sub(lambda found: found[0].lower(), escaped))
    raw = secret.encode()
    for encoded in (b64encode(raw).decode(), urlsafe_b64encode(raw).decode()):
        yield encoded.rstrip("=")
    lines = secret.split("\n")
    if len(lines) > 1:
        yield from (line for line in lines if len(line) >= 12)


def _blotted(match: re.Match[str]) -> str:
    kept = (match[name] for name in ("kept", "hook", "named", "header", "url"))
    return f"{next(filter(None, kept), '')}{BLOT}"


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception:  # noqa: BLE001 - a log line with a mistake in it is still worth having, and stops no work
        return f"{_text(record.msg)} {_text(record.args)}"


def _text(value: object) -> str:
    """A value in words, also when its class fails at that."""
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - whatever it is, it must not break the work that logs
        return f"({type(value).__name__} that cannot be written down)"


class JsonLines(logging.Formatter):
    """One JSON object a line: time, level, logger, message, fields, and the error when there is one."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_text:
            line["error"] = record.exc_text
        if record.stack_info:
            line["stack"] = record.stack_info
        fields: Mapping[str, str] = getattr(record, _FIELDS, {})
        line |= {f"{key}_" if key in _TAKEN else key: value for key, value in fields.items()}
        return json.dumps(line)


class PlainLines(logging.Formatter):
    """For the person in front of the server: time, level when it matters, message, an error's last line."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created).astimezone()
        level = "" if record.levelno <= logging.INFO else f"{record.levelname.lower()}: "
        cause = f" ({record.exc_text.strip().splitlines()[-1]})" if record.exc_text else ""
        text = f"{moment:%H:%M:%S} {level}{record.getMessage()}{cause}"
        return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class _PrivateFile(RotatingFileHandler):
    """A log file that only its owner reads, also after rotation and whatever the umask."""

    def _open(self):  # type: ignore[no-untyped-def]
        os.close(os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, _PRIVATE_FILE))
        return super()._open()


def configure(
    folder: Path,
    level: str,
    secrets: Iterable[str],
    *,
    console_format: Format = "text",
    file_bytes: int = FILE_BYTES,
    old_files: int = OLD_FILES,
) -> None:
    """Write logs from now on: JSON lines into `folder`, and to stderr plain lines or the same JSON.

    A file that would grow beyond `file_bytes` is put aside; of those `old_files` are kept.

    Raises:
        OSError: the file cannot be opened.
    """
    redaction = Redaction(secrets)
    file = _PrivateFile(folder / FILE_NAME, maxBytes=file_bytes, backupCount=old_files, encoding="utf-8")
    file.setFormatter(JsonLines())
    console = logging.StreamHandler(sys.stderr)
    console.setFormatter(JsonLines() if console_format == "json" else PlainLines())
    root = logging.getLogger()
    for handler in list(root.handlers):
        root.removeHandler(handler)
        if isinstance(handler, _PrivateFile):
            handler.close()
    for each in (file, console):
        each.addFilter(redaction)
        root.addHandler(each)
    root.setLevel(level.upper())
    logging.captureWarnings(True)
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))
    # With a handler of its own already there, DBOS adds none that would write past the redaction.
    dbos = logging.getLogger("dbos")
    dbos.handlers = [file, console]
    dbos.propagate = False
