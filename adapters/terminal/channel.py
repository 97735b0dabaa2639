"""The terminal as a channel: what was asked there is answered there, to whoever is watching."""

from __future__ import annotations

from ..live import LiveChannel


class TerminalChannel(LiveChannel):
    """Conversations that began with `pizzabot ask`."""

    name = "terminal"
