"""Which skills are there right now? The catalogue, read again when a SKILL.md changed or came."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence

from pizzabot.skills.catalogue import SkillCatalogue, SkillRoot, discover

LOOK_AGAIN_SECONDS = 1.0

_Signature = tuple[tuple[str, int, int], ...]


class LiveSkills:
    """The catalogue of some roots. Looking is cheap and happens at most once a second."""

    def __init__(
        self,
        roots: Sequence[SkillRoot],
        disabled: Collection[str] = (),
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._roots, self._disabled, self._monotonic = tuple(roots), frozenset(disabled), monotonic
        self._looked_at = monotonic()
        self._signature = signature(roots)
        self._catalogue = discover(roots, self._disabled)

    def __call__(self) -> SkillCatalogue:
        """The catalogue as it is now."""
        now = self._monotonic()
        if now - self._looked_at >= LOOK_AGAIN_SECONDS:
            self._looked_at = now
            if (found := signature(self._roots)) != self._signature:
                self._signature = found
                self._catalogue = discover(self._roots, self._disabled)
        return self._catalogue

    def disable(self, disabled: Collection[str]) -> None:
        """Set which skills are switched off."""
        self._disabled = frozenset(disabled)
        self._catalogue = discover(self._roots, self._disabled)


def signature(roots: Sequence[SkillRoot]) -> _Signature:
    """What changes when a skill comes, goes or is edited: each folder's SKILL.md, its time and size."""
    return tuple(sorted(line for root in roots for line in _files(root)))


def _files(root: SkillRoot) -> Iterator[tuple[str, int, int]]:
    try:
        folders = list(os.scandir(root.path))
    except OSError:
        return
    for folder in folders:
        path = os.path.join(folder.path, "SKILL.md")
        try:
            status = os.stat(path)
        except OSError:
            yield folder.path, 0, 0
        else:
            yield path, status.st_mtime_ns, status.st_size
