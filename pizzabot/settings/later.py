"""What is configured that this version does not act on yet? Said at start and by `doctor`, never silent."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from pizzabot.settings.tables import Settings


def not_acted_on(settings: Settings, channels: Collection[str]) -> list[str]:
    """One line for each configured thing that has no effect; `channels` are the loaded ones."""
    return list(_lines(settings, channels))


def _lines(settings: Settings, channels: Collection[str]) -> Iterator[str]:
    for name in ("slack", "email"):
        if getattr(settings, name).enabled and name not in channels:
            yield f"[{name}]: this version has no {name} channel yet; the table is checked and not used"
    if settings.email.enabled and settings.email.caps.per_unverified_address_day:
        yield "email.caps.per_unverified_address_day: not acted on yet; nobody unverified gets a mail"
