"""What must a channel be able to do? One protocol, and the doors it is handed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from pizzabot.messages import ChannelState, OutboundItem, Receipt
from pizzabot.people import Person

if TYPE_CHECKING:
    from starlette.routing import BaseRoute


class Channel(Protocol):
    """A place where people write and are told: Slack, email, web, terminal.

    It is made by its entry point in the group `pizzabot.channels`, called with `pizzabot.doors.Doors`.
    """

    name: str

    @property
    def repaints_silently(self) -> bool:
        """Whether a repaint changes a copy without a word; otherwise it is another message to the person."""
        ...

    def routes(self) -> Sequence[BaseRoute]:
        """HTTP doors that the web server mounts for this channel; empty when it needs none."""
        ...

    def address_of(self, person: Person) -> str | None:
        """The private place where this channel reaches the person; None when it cannot."""
        ...

    def is_with(self, person: Person, address: str) -> bool:
        """Whether a conversation at `address` is the person's own: what is said there reaches them."""
        ...

    async def start(self) -> None:
        """Begin to listen; returns at once and keeps trying by itself when the other side is away."""
        ...

    async def stop(self) -> None:
        """Close every connection; nothing is taken in afterwards."""
        ...

    async def deliver(self, item: OutboundItem) -> Receipt:
        """Show `item` at its address, or repaint the copy that `item.external_id` names.

        Raises:
            DeliveryFailed: not shown; `retryable` says whether a later try can help.
            DeliveryUnknown: the connection broke after sending.
        """
        ...

    async def find(self, item: OutboundItem) -> Receipt | None:
        """Look for the copy of `item` that an unknown outcome may have left; None when it is not there.

        Never asked for a repaint, which is repeated instead.

        Raises DeliveryFailed when the question could not be answered now.
        """
        ...

    def state(self) -> ChannelState:
        """How the channel is, for status and doctor."""
        ...
