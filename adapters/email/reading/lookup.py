"""Which text does a name have in DNS? The one question that a DKIM check asks."""

from __future__ import annotations

import dns.exception
import dns.resolver

_SECONDS = 2.0  # so that a few silent name servers do not use up the time for reading a mail


def txt(name: bytes) -> bytes | None:
    """The one TXT record of `name` with its strings joined (RFC 6376 §3.6.2.2).

    None when there is none, when it is not the only one, and when nobody answered in time.
    """
    try:
        answer = dns.resolver.resolve(name.decode("ascii"), "TXT", lifetime=_SECONDS, search=False)
    except (dns.exception.DNSException, UnicodeError, OSError):
        return None
    records = [b"".join(record.strings) for record in answer]
    return records[0] if len(records) == 1 else None
