"""What does this mail say, and may it be believed? From bytes to a `Letter`, whatever arrives.

    bytes -> shape -> texts and files -> kind -> the one author -> its proof -> own text
               │              │            │            │
               └ over a limit ┘            └ a program  └ none, or two
                 malformed                   left alone   malformed

The order is the safety: words are only looked for in a mail that is small enough, was written by a person,
and names one author.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace

from ..letters import Envelope, Letter, LetterKind, Mailbox, Ours
from .addresses import domain_of, mailboxes, recipients, sole_author
from .dkim import Resolve, addressed
from .headers import Headers, decoded, headers_of
from .html_cut import seen
from .identity import digest, message_id, references
from .kinds import kind_of
from .mime import Content, content, gist
from .own import own_text
from .proof import is_ours, prove
from .shape import OverLimit, Part, halves, tree

_LONGEST_SUBJECT = 998  # RFC 5322 §2.1.1: one line


def read(raw: bytes, envelope: Envelope, ours: Ours, resolve: Resolve | None = None) -> Letter:
    """`raw` as a letter. Never raises: what cannot be read is `MALFORMED`, with the broken rule as `why`.

    `resolve` looks up keys of DKIM signatures; without it only verdicts of our own servers are believed.
    """
    try:
        header, body = halves(raw)
        letter = _named(headers_of(header), body, envelope, ours)
    except Exception as error:  # noqa: BLE001 — whatever a stranger sends, the next mail is still read
        return Letter(LetterKind.MALFORMED, _unreadable(error), hashlib.sha256(raw).hexdigest())
    try:
        mail = tree(raw)
        return _judged(letter, mail, content(mail), raw, envelope, ours, resolve)
    except OverLimit as error:
        return replace(letter, kind=LetterKind.MALFORMED, why=str(error))
    except Exception as error:  # noqa: BLE001 — as above
        return replace(letter, kind=LetterKind.MALFORMED, why=_unreadable(error))


def _named(headers: Headers, body: bytes, envelope: Envelope, ours: Ours) -> Letter:
    """What its header alone says. It stays malformed until more is known."""
    to, cc = mailboxes(headers, "to"), mailboxes(headers, "cc")
    author = sole_author(headers)
    return Letter(
        kind=LetterKind.MALFORMED,
        why="not read yet",
        digest=digest(headers, body),
        message_id=message_id(headers),
        author=author,
        recipients=recipients(envelope, headers, (*to, *cc)),
        to=to,
        cc=cc,
        references=references(headers),
        subject=decoded(headers.first("subject"))[:_LONGEST_SUBJECT],
        is_ours=_carries_our_mark(headers, ours) or (author is not None and is_ours(author, ours)),
        is_too_large=envelope.header_only,
    )


def _judged(
    letter: Letter,
    mail: Part,
    held: Content,
    raw: bytes,
    envelope: Envelope,
    ours: Ours,
    resolve: Resolve | None,
) -> Letter:
    """The letter with its kind; only that of a person is read further."""
    verdict = kind_of(mail, gist(held), envelope)
    letter = replace(letter, kind=verdict.kind, why=verdict.why, bounce=verdict.bounce)
    if verdict.kind is not LetterKind.HUMAN:
        return letter
    if letter.author is None:
        return replace(letter, kind=LetterKind.MALFORMED, why=_authors_wrong(mail.headers))
    proof = prove(letter.author, mail.headers, raw, envelope, ours, resolve)
    letter = replace(
        letter,
        verified=proof.verified,
        verification=proof.words,
        meant_for=_meant_for(letter.author, mail.headers),
        attachments=held.files,
        left_out=held.left_out,
    )
    if not mail.has_body:
        return replace(letter, kind=LetterKind.MALFORMED, why="it has no body")
    if not mail.is_closed:
        return replace(letter, kind=LetterKind.MALFORMED, why="it was cut off: its parts do not end")
    own = own_text(held.texts, held.html, ours)
    return replace(letter, own=own, text=_everything(held))


def _meant_for(author: Mailbox, headers: Headers) -> tuple[str, ...]:
    fields = addressed(domain_of(author.address), headers)
    return tuple(mailbox.address for name in fields for mailbox in mailboxes(headers, name))


def _everything(held: Content) -> str:
    """All that the mail says, quotes and all: its texts, or what is seen of its HTML."""
    shown = (line for html in held.html for line, _ in seen(html).lines)
    return "\n\n".join(held.texts).strip() or "\n".join(shown).strip()


def _carries_our_mark(headers: Headers, ours: Ours) -> bool:
    return any(value.strip() == ours.loop_mark for value in headers.all("x-pizzabot-loop"))


def _authors_wrong(headers: Headers) -> str:
    count = len(headers.all("from"))
    if count != 1:
        return "it has no From" if count == 0 else f"it has {count} From fields"
    return "its From is not exactly one address"


def _unreadable(error: Exception) -> str:
    return f"it could not be read ({type(error).__name__})"
