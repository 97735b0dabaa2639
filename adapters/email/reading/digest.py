"""Is this the same mail once more? A digest of what the author sent, without the traces of its way."""

from __future__ import annotations

import hashlib

from .headers import Headers

# All that says who wrote what, and how the body is to be read. Received, Delivered-To, Return-Path,
# signatures and verdicts are added on the way, differently on each (RFC 5321 §4.4, RFC 8601).
_AUTHORED = ("from", "subject", "date", "message-id", "content-type", "content-transfer-encoding")


def digest(headers: Headers, body: bytes) -> str:
    """SHA-256, in hex, that is equal for copies of one mail that came by different ways."""
    sum_ = hashlib.sha256()
    for name in _AUTHORED:
        for value in headers.all(name):
            sum_.update(f"{name}:{' '.join(value.split())}\n".encode("utf-8", "replace"))
    sum_.update(b"\n")
    sum_.update(body.replace(b"\r\n", b"\n").rstrip())
    return sum_.hexdigest()
