"""Where does mail go that is to reach nobody? Into a folder, one file each, from a server on this machine."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email import message_from_bytes
from email.policy import default
from pathlib import Path

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session

HOST = "127.0.0.1"
_LONGEST_NAME = 60

# Hears the recipients, the subject and the file of each mail.
Heard = Callable[[str, str, Path], None]


@contextmanager
def mailbox(folder: Path, port: int, heard: Heard) -> Iterator[None]:
    """Take mail on `port` of this machine and write it into `folder`, in a thread beside everything else.

    Raises OSError when the port is taken.
    """
    must_be_free(port)  # the library waits some seconds before it says so
    folder.mkdir(mode=0o700, exist_ok=True)
    controller = Controller(_Files(folder, heard), hostname=HOST, port=port, ident="demo")
    controller.start()
    try:
        yield
    finally:
        controller.stop()


def must_be_free(port: int) -> None:
    """Raises OSError when somebody listens on `port` of this machine."""
    with socket.create_server((HOST, port)):
        pass


def file_name(number: int, subject: str) -> str:
    """`0001-Re-Show-my-expenses.eml`: in order, and typed without quotes."""
    words = "-".join(re.findall(r"\w+", subject, re.ASCII))
    return f"{number:04}-{words[:_LONGEST_NAME].strip('-') or 'mail'}.eml"


@dataclass(frozen=True, slots=True)
class _Files:
    """The hook that aiosmtpd calls."""

    folder: Path
    heard: Heard

    async def handle_DATA(self, _server: SMTP, _session: Session, envelope: Envelope) -> str:
        content = envelope.content
        assert isinstance(content, bytes)
        subject = str(message_from_bytes(content, policy=default)["Subject"] or "")
        self.heard(", ".join(envelope.rcpt_tos), subject, self._write(content, subject))
        return "250 2.0.0 written"

    def _write(self, content: bytes, subject: str) -> Path:
        newest = max(map(_number, self.folder.glob("*.eml")), default=0)
        file = self.folder / file_name(newest + 1, subject)
        file.write_bytes(content)
        file.chmod(0o600)
        return file


def _number(file: Path) -> int:
    begins = file.name.partition("-")[0]
    return int(begins) if begins.isdecimal() else 0
