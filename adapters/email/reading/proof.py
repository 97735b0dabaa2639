"""Is From proven, and by whom? Either our own receiving server says so, or we check a signature ourselves.

A verdict is believed of the topmost Authentication-Results (RFC 8601) that names one of our servers, and only
where no stranger can put one on top (`Envelope.believes_results`). Whatever stands below may be forged, our
server's name included. A verdict is final: a signature is only checked where our server gave none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import authres
import authres.dmarc

from ..letters import Envelope, Mailbox, Ours
from .addresses import ascii_domain, domain_of, without_token
from .dkim import Resolve, signed_by
from .headers import Headers

_LONGEST_RESULTS = 8_192
_SERVER = re.compile(r'\s*"?([^\s";()=]++)"?(?!\s*=)')  # RFC 8601 §2.2; Microsoft begins with a result
_COMMENT = re.compile(r"\([^()]*\)")
_FEATURES = authres.FeatureContext(authres.dmarc)


@dataclass(frozen=True, slots=True)
class Proof:
    """Whether From is proven, and how or why not, in words for the operator."""

    verified: bool
    words: str


def prove(
    author: Mailbox, headers: Headers, raw: bytes, envelope: Envelope, ours: Ours, resolve: Resolve | None
) -> Proof:
    """Whether `author` is who the mail says."""
    domain = domain_of(author.address)
    if is_ours(author, ours):
        return Proof(False, "it says that it comes from our own address, which never writes to us")
    verdict = _verdict(domain, headers, envelope, ours)
    if isinstance(verdict, Proof) or resolve is None:
        return verdict if isinstance(verdict, Proof) else Proof(False, verdict)
    signer = signed_by(domain, raw, headers, resolve)
    return Proof(signer.verified, f"{verdict}; {signer.words}")


def is_ours(author: Mailbox, ours: Ours) -> bool:
    """Whether the address is one that our own mails come from, whatever token it carries."""
    return without_token(author.address) in {without_token(address.lower()) for address in ours.addresses}


def _verdict(domain: str, headers: Headers, envelope: Envelope, ours: Ours) -> Proof | str:
    """What our receiving server says of From's domain; a plain text says why there is no verdict."""
    if not envelope.believes_results:
        return "Authentication-Results are not believed on this way"
    servers = {server.lower() for server in ours.authserv_ids}
    written = headers.all("authentication-results")
    topmost = next((value for value in written if server_of(value) in servers), None)
    if topmost is None:
        return "no Authentication-Results of our server"
    results = _dmarc_results(topmost)
    if results is None:
        return Proof(False, "the Authentication-Results of our server cannot be read")
    if not results:
        return "our server says nothing of DMARC"
    if len(results) > 1:
        return Proof(False, "our server gives more than one result of DMARC")
    [(result, domains)] = results
    if result in ("none", "temperror"):
        return f"our server says dmarc={result}"
    if result != "pass":
        return Proof(False, f"our server says dmarc={result}")
    if [ascii_domain(found) for found in domains] != [domain]:
        return Proof(False, f"our server's dmarc=pass is not for the domain {domain} of From alone")
    return Proof(True, f"dmarc=pass for {domain}, says our server {server_of(topmost)}")


def server_of(value: str) -> str:
    """The authserv-id that Authentication-Results name, "" when they name none."""
    found = _SERVER.match(without_comments(value))
    return found[1].lower() if found else ""


def without_comments(value: str) -> str:
    """Authentication-Results, as much of them as is read, without the comments, which nest."""
    value = value[:_LONGEST_RESULTS]
    while (shorter := _COMMENT.sub(" ", value)) != value:
        value = shorter
    return value


def _dmarc_results(value: str) -> Sequence[tuple[str, Sequence[str]]] | None:
    """Each result of DMARC with the header.from domains it is for; None when the header is not well-formed.

    Comments are text of strangers. The parser steps over what it does not understand, in a comment as well,
    so only a header of plain printable characters is given to it.
    """
    if len(value) > _LONGEST_RESULTS or not (value.isascii() and value.replace("\t", " ").isprintable()):
        return None
    try:
        parsed = _FEATURES.parse_value(value.rstrip("; \t"))  # Yahoo ends with an empty result
    except (authres.AuthResError, RecursionError, ValueError):
        return None
    return [
        (
            result.result,
            [
                found.value or ""
                for found in result.properties
                if (found.type, found.name) == ("header", "from")
            ],
        )
        for result in parsed.results
        if isinstance(result, authres.AuthenticationResult) and result.method == "dmarc"
    ]
