"""Which mails does `doctor --send` send, and what does it read in those that come back? Pure.

The trial is an ordinary mail to ourselves. The forgery says that it comes from somebody else and brings a
verdict in our own server's name along: a server that is set up well removes that verdict. Both say of
themselves that a program wrote them, so a server of ours that runs meanwhile leaves them alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from .letters import Envelope, Mailbox, Ours
from .places import OwnAddress
from .reading.addresses import domain_of, sole_author
from .reading.headers import Headers, headers_of
from .reading.proof import prove, server_of, without_comments
from .reading.shape import halves
from .writing import compose
from .writing.headers import Heads

if TYPE_CHECKING:
    from .checks import Found

STRANGER = "doctor@example.com"  # a domain that belongs to nobody (RFC 2606 §3)
_RESULT = re.compile(r"(?:^|;)\s*(dmarc|spf|dkim)\s*=\s*([a-z]+)", re.IGNORECASE)
_FORGED_RESULTS = (
    "spf=pass smtp.mailfrom={domain}; dkim=pass header.d={domain}; dmarc=pass header.from={domain}"
)

_ELSE = "Without a verdict only mail that its sender's own domain signed with DKIM is heard"


@dataclass(frozen=True, slots=True)
class Verdicts:
    """One Authentication-Results (RFC 8601): which server wrote it, "" when it does not say, and what of."""

    server: str
    results: Mapping[str, str]

    @property
    def words(self) -> str:
        return " ".join(f"{method}={result}" for method, result in self.results.items()) or "nothing"


def trial(own: OwnAddress, name: str, to: str, token: str, date: datetime) -> bytes:
    """The mail that is to come back; `token` stands in its subject, `to` is where it goes."""
    return _mail(Mailbox(own.address, name), own, to, token, date)


def forgery(own: OwnAddress, servers: Sequence[str], token: str, date: datetime) -> bytes:
    """A mail of a stranger with a verdict in the name of each of `servers`."""
    results = _FORGED_RESULTS.format(domain=domain_of(STRANGER))
    forged = "".join(f"Authentication-Results: {server};\r\n {results}\r\n" for server in servers)
    return forged.encode() + _mail(Mailbox(STRANGER), own, own.address, token, date)


def _mail(sender: Mailbox, own: OwnAddress, to: str, token: str, date: datetime) -> bytes:
    heads = Heads(
        sender=sender,
        to=(Mailbox(to),),
        reply_to=own.address,
        message_id=f"<{token}@{domain_of(own.address)}>",
        subject=f"Pizza Bot tries out its mail: {token}",
        date=date,
        loop_mark=f"doctor-{token}",
    )
    return compose.notice(heads, "Pizza Bot tries out its mail", "You may delete this mail.")


def topmost(headers: Headers) -> Verdicts | None:
    """What the last server on the way says; None when it says nothing."""
    if "authentication-results" not in headers:
        return None
    value = headers.first("authentication-results")
    read = _RESULT.findall(without_comments(value))
    found = {method.lower(): result.lower() for method, result in reversed(read)}
    results = {method: found[method] for method in ("dmarc", "spf", "dkim") if method in found}
    return Verdicts(server_of(value), results)


def of_returned(header: bytes, trusted: Sequence[str]) -> list[Found]:
    """What the header of the trial says of the server that took it in."""
    verdicts = topmost(headers_of(halves(header)[0]))
    if verdicts is None:
        text = "the mail came back without Authentication-Results: its server does not judge what we send"
        return [
            ("warning", text, f"look at the source of a mail from elsewhere for its topmost one. {_ELSE}")
        ]
    if not verdicts.server:
        text = f"the server says {verdicts.words} and not who it is, as Microsoft 365 does"
        if trusted:
            return [
                ("error", text, "set email.trusted_authserv_ids = []: what names nobody cannot be believed")
            ]
        return [("ok", f"{text}. {_ELSE}", "")]
    said = f"{verdicts.server} says {verdicts.words}"
    if verdicts.server not in {server.lower() for server in trusted}:
        line = f"trusted_authserv_ids = {json.dumps([*trusted, verdicts.server])}"
        cure = f"when {verdicts.server} is your own mail server, write below [email]: {line}"
        return [("warning", f"{said}, and is not in trusted_authserv_ids", cure)]
    if "dmarc" not in verdicts.results:
        return [
            ("warning", f"{said} and nothing of DMARC, which alone proves From", f"switch DMARC on. {_ELSE}")
        ]
    return [("ok", f"{said}, and is believed", "")]


def of_forgery(header: bytes, own: OwnAddress, servers: Sequence[str]) -> Found:
    """Whether the forgery, as it came in, would have been believed."""
    headers = headers_of(halves(header)[0])
    author = sole_author(headers)
    if author is None or author.address != STRANGER:
        return ("ok", "the outgoing server writes our own address into From, so nothing could be forged", "")
    ours = Ours((own.address,), "", tuple(servers))
    proof = prove(author, headers, header, Envelope(believes_results=True), ours, resolve=None)
    if not proof.verified:
        return ("ok", f"a forged mail came in and would not be believed: {proof.words}", "")
    text = f"a forged mail came in and would be believed: {proof.words}, and we wrote that ourselves"
    cure = (
        "let the mail server remove Authentication-Results that name it from all mail that it takes in, also "
        "from its own users (docs/email.md). Until then set email.trusted_authserv_ids = []"
    )
    return ("error", text, cure)
