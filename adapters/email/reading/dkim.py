"""Did From's own domain sign this mail? Our own check of its DKIM signatures (RFC 6376).

Stricter than the RFC: `d=` is exactly From's domain. To accept a parent domain, too, one needs the list of
public suffixes, which changes every week; a domain that signs with its parent's name has DMARC, and its
verdict comes from the receiving server. A signature over only a part of the body (`l=`) proves nothing of the
rest, and SHA-1 proves nothing at all (RFC 8301 §3.1). Whoever signs with the newer Ed25519 signs with RSA,
too (RFC 8463 §6).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from .headers import Headers

# The TXT record of a name, its strings joined; None when there is none or it could not be asked for.
Resolve = Callable[[bytes], bytes | None]

MAX_SIGNATURES = 4
# Spaces and tabs in a row: the library's time grows with the square of their number.
MAX_BLANKS = 128

_TAG = re.compile(r"\s*([a-z][a-z0-9_]*)\s*=\s*(.*?)\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Signed:
    """Whether a signature of the domain holds, and which one, or why none does."""

    verified: bool
    words: str


def signed_by(domain: str, raw: bytes, headers: Headers, resolve: Resolve) -> Signed:
    """Whether one of the topmost `MAX_SIGNATURES` signatures of `raw` is by `domain` and holds now."""
    written = headers.all("dkim-signature")[:MAX_SIGNATURES]
    if not written:
        return Signed(False, "it has no DKIM signature")
    if b" " * (MAX_BLANKS + 1) in raw.replace(b"\t", b" "):
        return Signed(False, "a DKIM signature over very long blanks is not checked")
    whys = []
    for index, value in enumerate(written):
        tags = _tags(value)
        why = _refused(tags, domain) or _broken(raw, index, domain, resolve)
        if why is None:
            return Signed(True, f"DKIM signature of {domain} with the selector {tags['s'][:64]} holds")
        whys.append(why)
    return Signed(False, "; ".join(dict.fromkeys(whys)))


def addressed(domain: str, headers: Headers) -> tuple[str, ...]:
    """Which of To and Cc are the author's: those that stand once, and are signed where their domain signs To.

    Whoever has a signed mail can send it on to anybody, and write fields into it that are not signed
    (RFC 6376 §8.6). Some domains sign neither; then they are believed as they stand. Whether a signature
    holds is not asked here: whoever replays a mail has to leave in it the one that does.
    """
    written = tuple(name for name in ("to", "cc") if len(headers.all(name)) == 1)
    signed = [
        {name.strip().lower() for name in tags.get("h", "").split(":")}
        for tags in map(_tags, headers.all("dkim-signature"))
        if _is_related(tags.get("d", "").lower(), domain)
    ]
    if not any("to" in names for names in signed):
        return written
    return tuple(name for name in written if all(name in names for names in signed))


def _is_related(one: str, other: str) -> bool:
    """Whether DMARC may count one domain for the other (RFC 7489 §3.1), as far as names alone tell."""
    return bool(one) and (one == other or one.endswith(f".{other}") or other.endswith(f".{one}"))


def _tags(value: str) -> dict[str, str]:
    """The tag list of a signature (§3.2); empty when a tag stands twice."""
    found = [match for part in value.split(";") if (match := _TAG.fullmatch(part))]
    tags = {match[1]: match[2] for match in found}
    return tags if len(tags) == len(found) else {}


def _refused(tags: dict[str, str], domain: str) -> str | None:
    """Why a signature is not even looked at."""
    if tags.get("d", "").lower() != domain:
        return f"a DKIM signature is not of From's domain {domain}"
    if "l" in tags:
        return "a DKIM signature covers only a part of the body (l=)"
    if tags.get("a", "").lower() != "rsa-sha256":
        return "a DKIM signature uses another algorithm than rsa-sha256"
    if "from" not in [name.strip().lower() for name in tags.get("h", "").split(":")]:
        return "a DKIM signature does not cover From"
    return None if tags.get("s") else "a DKIM signature names no key"


def _broken(raw: bytes, index: int, domain: str, resolve: Resolve) -> str | None:
    """Why the signature does not hold: body, header, key, or time (§6.1).

    The tags are looked at again as the library read them, so that no difference in reading can hide one.
    """
    # Brings a resolver and two libraries of cryptography; most mails never need them.
    import dkim

    try:
        verifier = dkim.DKIM(raw, minkey=1024)
        holds = verifier.verify(index, lambda name, **_: resolve(name))
    except (dkim.DKIMException, ValueError, LookupError, TypeError, AttributeError) as error:
        return f"a DKIM signature does not hold: {' '.join(str(error).split())[:120]}"
    if not holds:
        return "a DKIM signature does not hold"
    read = verifier.signature_fields.items()
    return _refused({tag.decode("latin-1"): value.decode("latin-1") for tag, value in read}, domain)
