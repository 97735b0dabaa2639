"""What runs in the process that reads mails? A loop: a request comes in on stdin, a letter goes out on
stdout.

    request: length, pickled (Envelope, Ours, whether to check signatures); length, the raw mail
    answer:  length, pickled Letter                                      (lengths: 8 bytes, big-endian)

Only this code, started by the same user, stands on both ends; a mail itself is never unpickled. The process
ends when its stdin does.
"""

from __future__ import annotations

import os
import pickle
import signal
import struct
import sys
from collections.abc import Callable
from typing import BinaryIO

from ..letters import Envelope, Letter, Ours
from .pipeline import read

LENGTH = struct.Struct(">Q")
Read = Callable[[bytes, Envelope, Ours, bool], Letter]


def serve(read_one: Read, *, memory: int, seconds: int) -> None:
    """Answer requests until stdin ends.

    `memory` bounds the address space, in bytes. `seconds` end a reading that nobody waits for any more,
    because the server died; the server itself is stricter.
    """
    _bound(memory)
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a stray print of a library must not look like an answer
    while (request := _frame(requests)) is not None:
        envelope, ours, checks_signatures = pickle.loads(request)
        raw = _frame(requests)
        if raw is None:
            return
        _alarm(seconds)
        answer = pickle.dumps(read_one(raw, envelope, ours, checks_signatures), protocol=5)
        _alarm(0)
        answers.write(LENGTH.pack(len(answer)))
        answers.write(answer)
        answers.flush()


def _frame(stream: BinaryIO) -> bytes | None:
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    data = stream.read(length)
    return data if len(data) == length else None


def _bound(memory: int) -> None:
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def _alarm(seconds: int) -> None:
    """The kernel ends the process after that time, even within one long search of a regular expression."""
    if sys.platform != "win32":
        signal.alarm(seconds)


def _read(raw: bytes, envelope: Envelope, ours: Ours, checks_signatures: bool) -> Letter:
    if not checks_signatures:
        return read(raw, envelope, ours)
    # Brings the resolver, which a mailbox with verdicts of its server never needs.
    from .lookup import txt

    return read(raw, envelope, ours, txt)


if __name__ == "__main__":
    serve(_read, memory=int(sys.argv[1]), seconds=int(sys.argv[2]))
