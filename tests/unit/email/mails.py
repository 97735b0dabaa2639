"""Which mails do the tests of the reading send? Small ones, written out."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pizzabot.adapters.email.letters import Envelope, Letter, Ours
from pizzabot.adapters.email.reading.dkim import Resolve
from pizzabot.adapters.email.reading.pipeline import read

CORPUS = Path(__file__).parents[2] / "corpus" / "email"
SERVER = "mx.approvals.example.net"
OURS = Ours(("ledger@approvals.example.net",), "instance-1", (SERVER,))
TRUSTED = Envelope(believes_results=True)
PASS = f"Authentication-Results: {SERVER}; dmarc=pass header.from=example.com"
MARIA = "From: Maria Keller <maria.keller@example.com>"


def _corpus(name: str) -> Any:
    """A module of the corpus' own; they import each other by their bare names."""
    if str(CORPUS) not in sys.path:
        sys.path.append(str(CORPUS))
    with _files_left_open():
        return importlib.import_module(name)


@contextmanager
def _files_left_open() -> Iterator[None]:
    """The corpus' module leaves the closing of its files to the interpreter."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        yield


_RENDER = _corpus("render")
grade: Any = _corpus("grade")
STORED: list[dict[str, Any]] = _RENDER.cases(generated=False)
GENERATED: list[dict[str, Any]] = _RENDER.cases(generated=True)


CASES = [*STORED, *GENERATED]
NAMES: dict[str, str] = _RENDER.DEFAULTS
PROPOSALS: dict[str, dict[str, Any]] = _RENDER.EXPECTED["proposals"]


def load(name: str, names: Mapping[str, str] | None = None) -> bytes:
    """A mail of the corpus, stored or generated, with its placeholders filled."""
    with _files_left_open():
        raw: bytes = _RENDER.load(name, dict(names or {}))
    return raw


def mail(*headers: str, body: str | bytes = "Hello", author: str = MARIA) -> bytes:
    """A mail of one author, of `headers` from top to bottom, and of `body`."""
    lines = [*headers, *([author] if author else [])]
    given = {line.partition(":")[0].lower() for line in lines}
    for name, value in (("To", "ledger@approvals.example.net"), ("Subject", "Question")):
        if name.lower() not in given:
            lines.append(f"{name}: {value}")
    head = "\r\n".join(lines).encode()
    text = body.replace("\n", "\r\n").encode() if isinstance(body, str) else body
    return head + b"\r\n\r\n" + text


def letter(
    *headers: str,
    body: str | bytes = "Hello",
    author: str = MARIA,
    envelope: Envelope = TRUSTED,
    resolve: Resolve | None = None,
) -> Letter:
    """What is read of such a mail."""
    return read(mail(*headers, body=body, author=author), envelope, OURS, resolve)
