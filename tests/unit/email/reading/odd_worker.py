"""A process that reads mails and does what the mail tells it: hang, die, eat memory, or read."""

from __future__ import annotations

import os
import sys
import time

from pizzabot.adapters.email.letters import Envelope, Letter, Ours
from pizzabot.adapters.email.reading.pipeline import read
from pizzabot.adapters.email.reading.worker import serve


def _obey(raw: bytes, envelope: Envelope, ours: Ours, checks_signatures: bool) -> Letter:
    if raw.startswith(b"hang"):
        time.sleep(60)
    if raw.startswith(b"die once") and not os.path.exists(raw.split()[-1]):
        open(raw.split()[-1], "w").close()
        os._exit(3)
    if raw.startswith(b"die always"):
        os._exit(3)
    if raw.startswith(b"eat"):
        len(b"x" * 2**31)
    if raw.startswith(b"print"):
        print("a stray line")  # noqa: T201
    if raw.startswith(b"pid"):
        raw = b"From: a@b.example\r\nSubject: %d\r\n\r\nx" % os.getpid()
    return read(raw, envelope, ours)


if __name__ == "__main__":
    serve(_obey, memory=int(sys.argv[1]), seconds=int(sys.argv[2]))
