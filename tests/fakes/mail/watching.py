"""A mailbox that is watched, as a test sees it: what was taken in, and what the door said."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from email import message_from_bytes
from email.policy import default

from adapters.email.imap.door import ImapDoor, State, Timing
from adapters.email.letters import Envelope
from pizzabot.settings.tables import ImapTable
from tests.fakes.patience import PATIENCE_SECONDS

QUICK = Timing(first_wait=0.05, longest_wait=0.2, refused_wait=0.1, lasting=0.5, silence=5.0)


def letter(subject: str, *, body: str = "Hello\n", headers: str = "") -> bytes:
    return f"{headers}From: ada@example.com\nSubject: {subject}\n\n{body}".encode()


class Notes(dict[str, str]):
    """A `KeyValue` that outlives the doors of a test."""

    async def get(self, key: str) -> str | None:  # type: ignore[override]
        return super().get(key)

    async def put(self, key: str, value: str) -> None:
        self[key] = value


class Watched:
    """A door with what came through it. `refuse` is called with each subject, and may raise."""

    def __init__(self, settings: ImapTable, notes: Notes | None = None, timing: Timing = QUICK) -> None:
        self.notes = Notes() if notes is None else notes
        self.mails: list[tuple[bytes, Envelope]] = []
        self.states: list[tuple[State, str | None]] = []
        self.refuse: Callable[[str], Awaitable[None] | None] = lambda subject: None
        self._changed = asyncio.Event()
        self.door = ImapDoor(settings, self._take, self.notes, self._becomes, timing=timing)

    async def _take(self, raw: bytes, envelope: Envelope) -> None:
        waiting = self.refuse(subject_of(raw))
        if waiting is not None:
            await waiting
        self.mails.append((raw, envelope))
        self._changed.set()

    def _becomes(self, state: State, detail: str | None) -> None:
        self.states.append((state, detail))
        self._changed.set()

    @property
    def subjects(self) -> list[str]:
        return [subject_of(raw) for raw, _ in self.mails]

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait for something that a mail, a state or somebody else brings about."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not holds():
                self._changed.clear()
                try:
                    await asyncio.wait_for(self._changed.wait(), 0.05)
                except TimeoutError:
                    continue

    async def until_taken(self, *subjects: str) -> None:
        """Wait for these mails and see that no other came, and that they came in this order."""
        try:
            await self.until(lambda: len(self.mails) >= len(subjects))
        finally:
            assert self.subjects == list(subjects), self.states

    async def until_state(self, state: State) -> str | None:
        """Wait until the door says so last; returns its detail."""
        await self.until(lambda: bool(self.states) and self.states[-1][0] == state)
        return self.states[-1][1]

    async def __aenter__(self) -> Watched:
        self.door.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.door.stop()


def subject_of(raw: bytes) -> str:
    return str(message_from_bytes(raw, policy=default)["subject"])
