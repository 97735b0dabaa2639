"""What do mail programs do to a value on its way there and back? Pure.

    bob@example.com<mailto:bob@example.com>                 a link written out behind what it stands for
    https://eur01.safelinks.protection.outlook.com/?url=…   a link that leads through a gateway
    M?ller                                                  a letter that the charset of the answer lacks

None of it is anybody's word. What can be undone is undone; what only may be damage is in doubt.
"""

from __future__ import annotations

import re
import unicodedata
from urllib.parse import parse_qsl, unquote, urlsplit

_LINK = re.compile(r"https?://[^\s<>\"]{1,4000}", re.IGNORECASE)
_PLACE = r"(?:https?://|www\.)[^\s<>\[\]()]{1,500}|[^\s<>\[\]()@]{1,100}@[^\s<>\[\]()@]{1,200}"
_WRITTEN_OUT = re.compile(rf"({_PLACE})[ ]?<(?:mailto:)?([^\s<>]{{1,4000}})>", re.IGNORECASE)
_MARKED = re.compile(rf"\[({_PLACE})\]\((?:mailto:)?([^\s<>()]{{1,4000}})\)", re.IGNORECASE)
_NUMBER = re.compile(r"(?<=\d)[ ]?<tel:[-+\d().]{1,50}>", re.IGNORECASE)
_IN_BRACKETS = re.compile(r"<(https?://[^\s<>]{1,2000})>", re.IGNORECASE)
_PRINTED = str.maketrans(
    {**dict.fromkeys("‘’‚′", "'"), **dict.fromkeys("“”„″", '"'), **dict.fromkeys("–—‐‑−", "-")}
)
_URLDEFENSE_2 = re.compile(r"https?://urldefense\.proofpoint\.com/v2/url\?u=([^&\s]+)", re.IGNORECASE)
_URLDEFENSE_3 = re.compile(r"https?://urldefense\.com/v3/__(.+?)__;", re.IGNORECASE)
# Gateways that carry the link in their own; a link through any other host may be somebody's word.
_GATEWAYS = ("safelinks.protection.outlook.com", "linkprotect.cudasvc.com", "google.com", "proofpoint.com")
_LOST = "?\ufffd"


def undone(text: str) -> str:
    """`text` with links as they were before a program wrote them out or led them through a gateway.

    What a link leads to, other than to what is shown, stays: that is somebody's word.
    """
    for written_out in (_MARKED, _WRITTEN_OUT):
        text = written_out.sub(lambda link: link[1] if _leads_to(link[2], link[1]) else link[0], text)
    text = _IN_BRACKETS.sub(r"\1", _NUMBER.sub("", text))
    return _LINK.sub(lambda link: _target(link[0]), text)


def plain(text: str) -> str:
    """`text` without what print has and keyboards have not: curly quotes, long dashes, an ellipsis."""
    return text.translate(_PRINTED).replace("…", "...")


def _leads_to(link: str, shown: str) -> bool:
    return shown.rstrip(".,;:!?").casefold() in unquote(link).casefold()


def is_lossy(text: str, proposed: str) -> bool:
    """Whether `text` is `proposed` but for foreign letters that became question marks."""
    plain, letters, marks = _apart(proposed)
    plain_now, letters_now, marks_now = _apart(text)
    lost = len(letters) - len(letters_now)
    rest = iter(letters)
    # Each lost letter leaves a mark, or one for each byte.
    return (
        plain == plain_now
        and 0 < lost <= marks_now - marks <= 4 * lost
        and all(letter in rest for letter in letters_now)
    )


def is_doubtful(text: str, proposed: str) -> bool:
    """Whether a difference may be a program's: in accents alone, or in links alone, to other hosts."""
    if text == proposed:
        return False
    if not proposed.isascii() and _folded(text) == _folded(proposed):
        return True
    old, new = _hosts(proposed), _hosts(text)
    return bool(old) and old != new and _without_links(text) == _without_links(proposed)


def _target(link: str) -> str:
    """Where a link leads behind the gateway; the link itself when there is none."""
    if found := _URLDEFENSE_3.match(link):
        return found[1]
    if found := _URLDEFENSE_2.match(link):
        return unquote(found[1].replace("-", "%").replace("_", "/"))
    host = link.partition("://")[2].partition("/")[0].lower()
    if not any(host == known or host.endswith(f".{known}") for known in _GATEWAYS):
        return link
    try:
        inner = [value for _, value in parse_qsl(urlsplit(link).query) if _LINK.match(value)]
    except ValueError:
        return link
    return inner[0] if inner else link


def _apart(text: str) -> tuple[str, list[str], int]:
    """The ASCII of a text, its foreign letters, and how many marks of lost ones it holds."""
    letters = [letter for letter in text if not letter.isascii() and letter not in _LOST]
    plain = "".join(letter for letter in text if letter.isascii() and letter not in _LOST)
    return plain, letters, sum(text.count(mark) for mark in _LOST)


def _folded(text: str) -> str:
    """The ASCII that is left without accents and foreign letters."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return "".join(plain.replace("?", "").split())


def _hosts(text: str) -> list[str]:
    return [link.partition("://")[2].partition("/")[0].lower() for link in _LINK.findall(text)]


def _without_links(text: str) -> str:
    return " ".join(_LINK.sub("\0", undone(text)).split())
