"""Is anybody told where a trigger says so? A place whose channel is off is kept, and hears nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

_CHANNELS = ("slack", "email")


def unheard(places: Sequence[str] | None, is_on: Callable[[str], bool]) -> list[str]:
    """One line for each of a trigger's `channels` whose channel is off."""
    named = [(place, place.partition(":")[0]) for place in places or ()]
    return [
        f"channels: names {place}, and {channel} is off; nobody is told there until it is on."
        for place, channel in named
        if channel in _CHANNELS and not is_on(channel)
    ]
