"""Whose addresses stand in a header? Strict where it decides, tolerant where it only informs.

One scanner reads address lists (RFC 5322 §3.4). Nothing is decoded before the borders of an address are
known, so that neither an encoded word nor a quoted name nor a comment can pose as an address. Obsolete forms
(routes, spaces within an address) are refused: no mail program writes them any more, forgers do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..letters import Envelope, Mailbox
from .headers import Headers, decoded

MAX_RECIPIENTS = 500

_SPACE = re.compile(r"\s+")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ATOM = re.compile(r'[^\s()<>@,;:"]+')
_LOCAL = re.compile(r"[^\s()<>@,;:\"\\\[\]\x00-\x1f\x7f]+")
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_LONGEST_AUTHOR = 4_096  # characters of a From with its name
_LONGEST_LIST = 65_536  # characters of a list that are looked at: more than `MAX_RECIPIENTS` need
_LONGEST_ADDRESS = 320  # RFC 3696 with its erratum: 64 + 1 + 255
# Where servers write down whom a mail was delivered to, the most particular first.
_DELIVERED = (
    "delivered-to",
    "x-original-to",
    "envelope-to",
    "x-envelope-to",
    "x-forwarded-to",
    "x-delivered-to",
)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str  # "atom" | "quoted" | "comment" | one of < > @ , ; :
    text: str


def sole_author(headers: Headers) -> Mailbox | None:
    """The one address of the one From (RFC 5322 §3.6.2); None for any other number, or when it is unclear."""
    written = headers.all("from")
    if len(written) != 1 or len(written[0]) > _LONGEST_AUTHOR:
        return None
    found = list(_items(written[0]))
    return found[0] if len(found) == 1 else None


def mailboxes(headers: Headers, name: str) -> tuple[Mailbox, ...]:
    """The readable addresses of all fields `name`, at most `MAX_RECIPIENTS`; members of groups count."""
    found: list[Mailbox] = []
    for value in headers.all(name):
        for mailbox in _items(value[:_LONGEST_LIST]):
            if mailbox is not None:
                found.append(mailbox)
            if len(found) == MAX_RECIPIENTS:
                return tuple(found)
    return tuple(found)


def recipients(envelope: Envelope, headers: Headers, shown: Iterable[Mailbox]) -> tuple[str, ...]:
    """Everybody it was sent or delivered to, in lower case: envelope, delivery headers, then `shown`."""
    given = [mailbox.address for value in envelope.recipients for mailbox in _items(value) if mailbox]
    delivered = [mailbox.address for name in _DELIVERED for mailbox in mailboxes(headers, name)]
    every = dict.fromkeys((*given, *delivered, *(mailbox.address for mailbox in shown)))
    return tuple(every)[:MAX_RECIPIENTS]


def domain_of(address: str) -> str:
    """The domain, in its ASCII form when it comes from here."""
    return address.rpartition("@")[2]


def without_token(address: str) -> str:
    """The address without what follows a plus sign: all of ours lead to the same mailbox."""
    local, _, domain = address.rpartition("@")
    return f"{local.partition('+')[0]}@{domain}"


def ascii_domain(domain: str) -> str | None:
    """A domain in lower-case ASCII (RFC 5890), None when it is none.

    A name that changes on the way there and back, as full-width letters do, is refused: two different
    spellings would name one domain.
    """
    is_foreign = not domain.isascii()
    domain = domain.lower()
    if is_foreign:
        if domain.isascii():  # as with the sign for Kelvin
            return None
        try:
            encoded = domain.encode("idna").decode("ascii").lower()
            if encoded.encode("ascii").decode("idna") != domain:
                return None
        except UnicodeError:
            return None
        domain = encoded
    labels = domain.split(".")
    return domain if len(domain) <= 253 and all(map(_LABEL.fullmatch, labels)) else None


def _items(value: str) -> Iterator[Mailbox | None]:
    """The items of an address list; None for each that is not clearly one address."""
    item: list[_Token] = []
    in_brackets = in_group = False
    for token in _tokens(value):
        if token.kind in ("<", ">"):
            in_brackets = token.kind == "<"
            item.append(token)
        elif token.kind == ":" and not in_brackets and not in_group:
            item, in_group = [], True  # the name of a group (RFC 5322 §3.4)
            yield None
        elif token.kind in (",", ";") and not in_brackets:
            if any(part.kind != "comment" for part in item):
                yield _mailbox(item)
            item, in_group = [], in_group and token.kind == ","
        else:
            item.append(token)
    if any(part.kind != "comment" for part in item):
        yield _mailbox(item)


def _mailbox(item: list[_Token]) -> Mailbox | None:
    """`name <address>` or `address (name)`."""
    comments = [token.text for token in item if token.kind == "comment"]
    tokens = [token for token in item if token.kind != "comment"]
    kinds = [token.kind for token in tokens]
    if "<" not in kinds:
        address = _address(tokens)
        return Mailbox(address, decoded(comments[-1]) if comments else "") if address else None
    opening = kinds.index("<")
    if kinds.count("<") != 1 or kinds.count(">") != 1 or kinds[-1] != ">":
        return None
    address, name = _address(tokens[opening + 1 : -1]), tokens[:opening]
    if address is None:
        return None
    # An unquoted address as the name is common and harmless as long as it is the same.
    if any(token.kind == "@" for token in name):
        return Mailbox(address) if _address(name) == address else None
    return Mailbox(address, decoded(" ".join(token.text for token in name)))


def _address(tokens: list[_Token]) -> str | None:
    """An addr-spec (RFC 5322 §3.4.1) in lower case; the quotes of a local part stay where they are needed.

    Only ASCII is lowered: some foreign letters become ASCII ones, and another person's address would result.
    """
    if [token.kind for token in tokens] not in (["atom", "@", "atom"], ["quoted", "@", "atom"]):
        return None
    local, domain = tokens[0].text, ascii_domain(tokens[2].text)
    local = local.lower() if local.isascii() else local
    if tokens[0].kind == "quoted" and not _LOCAL.fullmatch(local):
        if not local or not local.isprintable() or "\\" in local or '"' in local:
            return None
        local = f'"{local}"'
    elif not _LOCAL.fullmatch(local) or local.startswith(".") or local.endswith(".") or ".." in local:
        return None
    address = f"{local}@{domain}"
    return address if domain and len(address) <= _LONGEST_ADDRESS else None


def _tokens(value: str) -> Iterator[_Token]:
    at, can_quote = 0, True
    while at < len(value):
        if space := _SPACE.match(value, at):
            at = space.end()
        elif value[at] == "(":
            end = _comment_end(value, at)
            yield _Token("comment", value[at + 1 : end - 1])
            at = end
        elif can_quote and value[at] == '"' and (quoted := _QUOTED.match(value, at)):
            yield _Token("quoted", re.sub(r"\\(.)", r"\1", quoted[1], flags=re.DOTALL))
            at = quoted.end()
        elif atom := _ATOM.match(value, at):
            yield _Token("atom", atom[0])
            at = atom.end()
        else:
            can_quote = can_quote and value[at] != '"'  # an open quote is looked for once, not at every sign
            yield _Token(value[at], value[at])
            at += 1


def _comment_end(value: str, at: int) -> int:
    """Where the comment that opens at `at` ends; comments nest and escape (RFC 5322 §3.2.2)."""
    depth = 0
    while at < len(value):
        if value[at] == "\\":
            at += 1
        elif value[at] == "(":
            depth += 1
        elif value[at] == ")":
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    return len(value)
