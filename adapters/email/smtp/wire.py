"""Where does a command end, and where does a mail? At CRLF and at CRLF.CRLF alone (RFC 5321 §2.3.8).

A server that also ends them elsewhere, and one that does not, see different mails in the same bytes: whoever
sends can hide commands from one of them (CVE-2023-51764). So what is not plain is refused, never mended.
"""

from __future__ import annotations

import asyncio
from typing import Any

END = b"\r\n.\r\n"


class BadLine(Exception):
    """A command that does not end with CRLF, or holds a CR or a NUL."""


class Lines(asyncio.StreamReader):
    """What a client sends; a command is a line that ends with CRLF."""

    async def readuntil(self, separator: Any = b"\n") -> bytes:
        line = await super().readuntil(separator)
        if separator == b"\n" and (line[-2:] != b"\r\n" or b"\r" in line[:-2] or b"\0" in line):
            raise BadLine
        return line

    def is_empty(self) -> bool:
        """Whether everything that arrived was read."""
        return not self._buffer  # type: ignore[attr-defined]

    def begin_mail(self) -> None:
        """Put a line end before the first line, so that a dot there ends the mail as it does elsewhere."""
        self.feed_data(b"\r\n")


def plain(received: bytearray) -> bytes:
    """What a client meant to send: without the dots of transparency (RFC 5321 §4.5.2).

    `received` begins with a CRLF that is not the mail's and ends with the final dot.
    """
    return bytes(received[: -len(END) + 2].replace(b"\r\n.", b"\r\n")[2:])


def has_bare_line_end(content: bytes) -> bool:
    """Whether a CR or LF stands alone."""
    pairs = content.count(b"\r\n")
    return content.count(b"\n") != pairs or content.count(b"\r") != pairs
