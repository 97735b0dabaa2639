"""How do the headers of our mails read, byte for byte? Pure.

The lines are written here, not by the library: it encodes a Message-ID that is longer than a line, and then
no client finds the thread. A header is a row of atoms that are never split, folded before 78 columns
(RFC 5322, 2.1.1). Text from outside becomes one line before it becomes an atom, so it cannot end a header.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from email.header import Header
from email.utils import format_datetime, quote
from typing import Literal

from pizzabot.approvals.showing import subject_of
from pizzabot.messages import Action
from pizzabot.text import visible

from ..letters import Mailbox

_LINE = 78
_ENCODED_WORD = 66  # a line that holds one takes 76 columns (RFC 2047, 2), the name of the header among them
_LONGEST_NAME, _LONGEST_SUBJECT, _LONGEST_ID = 100, 200, 250
_NEWEST_REFERENCES = 20
_ADDRESS = re.compile(r"[\w.!#$%&'*+/=?^`{|}~-]{1,64}@(?:[a-z0-9-]{1,63}\.)*[a-z0-9-]{1,63}", re.I | re.A)
_MESSAGE_ID = re.compile(r"<[!-;=?-~]+>")
_TOKEN = re.compile(r"[!-~]{1,200}")
_SPECIAL = re.compile(r'[()<>\[\]:;@\\,."]')  # RFC 5322, 3.2.3
# "Re:" as the clients of other languages write it, also counted: "AW:", "SV:", "RE[2]:", "回复：".
_REPLIES = re.compile(
    r"(?:\s*(?:re|aw|antw|antwort|sv|vs|odp|ynt|res|rif|r|bls|atb|vá|απ|σχετ|отв|ответ|رد|תגובה|回复|回覆|答复|返信)"
    r"\s*(?:\[\d{1,3}\]|\(\d{1,3}\)|\^\d{1,3})?\s*[:：])+",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Heads:
    """What the channel decides about a mail.

    Addresses are ASCII but for the domain. `reply_to` is an address, `message_id` has its angle brackets and
    was fixed before sending. `references` name the mails of the conversation, oldest first; the mail answers
    the last one. `date` is aware, in the zone in which moments are told to the reader. `loop_mark` names this
    installation. `automatic` is "auto-replied" to what somebody wrote, else "auto-generated" (RFC 3834, 5).
    """

    sender: Mailbox
    to: tuple[Mailbox, ...]
    reply_to: str
    message_id: str
    subject: str
    date: datetime
    loop_mark: str
    references: tuple[str, ...] = ()
    cc: tuple[Mailbox, ...] = ()
    automatic: Literal["auto-replied", "auto-generated"] = "auto-generated"


def reply_subject(subject: str) -> str:
    """The subject of an answer: one "Re:", whichever ones stand before it."""
    bare = " ".join(subject.split())
    begun = _REPLIES.match(bare)
    return f"Re: {bare[begun.end() if begun else 0 :].strip() or '(no subject)'}"


def request_subject(action: Action, title: str) -> str:
    """The subject of a mail that asks for a decision."""
    return f"[Action] {subject_of(action)}: {title}"


def header_lines(heads: Heads) -> bytes:
    """All headers but those of MIME, each with its CR LF.

    Raises ValueError for an address, Message-ID or mark that cannot stand in a header, and without receivers.
    """
    answered = _references(heads.references)
    lines = [
        _folded("From", _addresses([heads.sender])),
        _folded("To", _addresses(heads.to)),
        *([_folded("Cc", _addresses(heads.cc))] if heads.cc else []),
        _folded("Reply-To", [_address(heads.reply_to)]),
        _folded("Subject", _unstructured(heads.subject)),
        _folded("Date", format_datetime(heads.date).split()),
        _folded("Message-ID", [_matching(_MESSAGE_ID, heads.message_id)]),
        *([_folded("In-Reply-To", answered[-1:]), _folded("References", answered)] if answered else []),
        _folded("Auto-Submitted", [heads.automatic]),
        _folded("X-Auto-Response-Suppress", ["All"]),
        _folded("X-Pizzabot-Loop", [_matching(_TOKEN, heads.loop_mark)]),
    ]
    return "".join(lines).encode("ascii")


def one_line(text: str, longest: int) -> str:
    """`text` as one line of characters that are seen; what is longer ends with an ellipsis."""
    line = " ".join(visible(" ".join(text.split())).split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def _folded(name: str, atoms: Iterable[str]) -> str:
    lines = [f"{name}:"]
    for atom in atoms:
        # The first atom stays on the line of the name: a line of a bare name confuses some servers.
        if len(lines[-1]) + 1 + len(atom) <= _LINE or lines == [f"{name}:"]:
            lines[-1] += f" {atom}"
        else:
            lines.append(f" {atom}")
    return "".join(f"{line}\r\n" for line in lines)


def _references(ids: Sequence[str]) -> list[str]:
    """The first and the newest of a conversation; others' that no header can hold are left out."""
    kept = [i for i in dict.fromkeys(ids) if len(i) <= _LONGEST_ID and _MESSAGE_ID.fullmatch(i)]
    return kept if len(kept) <= _NEWEST_REFERENCES else [kept[0], *kept[-_NEWEST_REFERENCES:]]


def _addresses(boxes: Sequence[Mailbox]) -> list[str]:
    if not boxes:
        raise ValueError("a mail needs somebody to go to")
    atoms: list[str] = []
    for box in boxes:
        address, name = _address(box.address), _phrase(box.name)
        atoms += [*name, f"<{address}>,"] if name else [f"{address},"]
    return [*atoms[:-1], atoms[-1].removesuffix(",")]


def _address(address: str) -> str:
    local, _, domain = address.rpartition("@")
    try:
        domain = domain.encode("idna").decode("ascii")
    except UnicodeError:
        domain = ""
    return _matching(_ADDRESS, f"{local}@{domain}")


def _phrase(name: str) -> list[str]:
    """A name beside an address (RFC 5322, 3.2.5)."""
    line = one_line(name, _LONGEST_NAME)
    if not _is_plain(line):
        return _encoded(line)
    return [f'"{quote(line)}"'] if _SPECIAL.search(line) else line.split()


def _unstructured(text: str) -> list[str]:
    line = one_line(text, _LONGEST_SUBJECT)
    return line.split() if _is_plain(line) else _encoded(line)


def _is_plain(line: str) -> bool:
    # What looks like an encoded word would be read as one.
    return line.isascii() and "=?" not in line


def _encoded(line: str) -> list[str]:
    """Encoded words (RFC 2047), which never end within a character."""
    return Header(line, "utf-8", maxlinelen=_ENCODED_WORD).encode().split()


def _matching(form: re.Pattern[str], value: str) -> str:
    if form.fullmatch(value) is None or len(value) > _LONGEST_ID + _LINE:
        raise ValueError(f"{value[:100]!r} cannot stand in a header")
    return value
