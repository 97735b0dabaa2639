"""How is a mail read without a danger to the server? In a process apart, with a limit on time and on memory.

One process reads all mails, one after the other. It starts with the first mail and does not share the
server's memory, as a fork would. When a mail takes too long or the process dies, it is replaced, and that
mail is malformed; the next one is read by a new process.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import pickle
import sys
from asyncio.subprocess import PIPE, Process

from pizzabot.errors import Unavailable

from ..letters import Envelope, Letter, LetterKind, Ours
from .worker import LENGTH

log = logging.getLogger(__name__)

SECONDS = 10.0
MEMORY = 1024**3  # of address space; a mail of 25 MiB needs a fifth of it


class Reader:
    """Reads mails in a process of its own. `worker` is the module that runs there."""

    def __init__(
        self,
        *,
        seconds: float = SECONDS,
        memory: int = MEMORY,
        checks_signatures: bool = True,
        worker: str = f"{__package__}.worker",
    ) -> None:
        self._seconds = seconds
        self._memory = memory
        self._checks_signatures = checks_signatures
        self._worker = worker
        self._process: Process | None = None
        self._one_at_a_time = asyncio.Lock()

    async def read(self, raw: bytes, envelope: Envelope, ours: Ours) -> Letter:
        """`raw` as a letter, malformed when it took longer than `seconds` or killed the process that read it.

        Raises:
            Unavailable: no process can be started now; the mail is as good as before.
        """
        async with self._one_at_a_time:
            # A process may have died of something else, such as a lack of memory: the mail gets a second one.
            for _ in range(2):
                process = await self._running()
                try:
                    async with asyncio.timeout(self._seconds):
                        return await self._ask(process, raw, envelope, ours)
                except TimeoutError:
                    await self._end()
                    log.warning("A mail took longer than %g s to read.", self._seconds)
                    return _malformed(raw, "it took too long to read")
                except (asyncio.IncompleteReadError, ConnectionError):
                    await self._end()
                    log.warning("The process that reads mails ended with %s.", process.returncode)
                except BaseException:  # cancelled: its answer would be taken for that of the next mail
                    await self._end()
                    raise
            return _malformed(raw, "the process that read it died")

    async def stop(self) -> None:
        """End the process; the next `read` would start another."""
        async with self._one_at_a_time:
            await self._end()

    async def _running(self) -> Process:
        if self._process is not None and self._process.returncode is not None:
            await self._end()
        if self._process is None:
            # -P: a module in the current folder must not stand in for ours. A session of its own: Ctrl-C in a
            # terminal ends the server in order, and not this process first.
            limits = str(self._memory), str(int(self._seconds) * 2 + 1)
            try:
                self._process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-P", "-m", self._worker, *limits),
                    stdin=PIPE,
                    stdout=PIPE,
                    start_new_session=True,
                )
            except OSError as error:
                why = error.strerror or type(error).__name__
                raise Unavailable(f"No process can be started to read mail ({why}).") from error
        return self._process

    async def _ask(self, process: Process, raw: bytes, envelope: Envelope, ours: Ours) -> Letter:
        assert process.stdin is not None
        assert process.stdout is not None
        request = pickle.dumps((envelope, ours, self._checks_signatures), protocol=5)
        process.stdin.write(LENGTH.pack(len(request)) + request + LENGTH.pack(len(raw)))
        process.stdin.write(raw)
        await process.stdin.drain()
        (length,) = LENGTH.unpack(await process.stdout.readexactly(LENGTH.size))
        letter = pickle.loads(await process.stdout.readexactly(length))
        assert isinstance(letter, Letter)
        return letter

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        if process.stdin is not None:
            process.stdin.close()
        await process.wait()


def _malformed(raw: bytes, why: str) -> Letter:
    return Letter(LetterKind.MALFORMED, why, hashlib.sha256(raw).hexdigest())
