"""How does a mail read that the sink took? Each is read once, however often a test looks for it."""

from __future__ import annotations

from email import message_from_bytes, policy
from email.message import EmailMessage
from functools import lru_cache


@lru_cache(maxsize=2_000)
def parsed(raw: bytes) -> EmailMessage:
    """The mail; it is shared, so nobody changes it."""
    return message_from_bytes(raw, policy=policy.default)


@lru_cache(maxsize=2_000)
def body(mail: EmailMessage) -> str:
    """The text part, its lines ended by newlines."""
    part = mail.get_body(("plain",))
    assert part is not None
    return "\n".join(str(part.get_content()).splitlines())


@lru_cache(maxsize=2_000)
def subject(mail: EmailMessage) -> str:
    """The subject as people read it."""
    return str(mail["Subject"])
