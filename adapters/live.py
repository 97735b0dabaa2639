"""What do channels share whose people look at the inbox itself? Delivery is an event for those who watch.

The message or action is in the inbox already when its row of the outbox is delivered, so showing it twice
shows it once: the row is what names the copy for a repaint, and what proves that somebody could see it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from pizzabot.doors import Doors
from pizzabot.messages import ChannelState, Event, OutboundItem, Receipt
from pizzabot.people import Person

if TYPE_CHECKING:
    from starlette.routing import BaseRoute


_REMEMBERED = timedelta(days=30)  # no request comes again after so long


class LiveChannel:
    """A channel whose copies are the inbox's own pages."""

    name = "live"
    repaints_silently = True

    def __init__(self, doors: Doors) -> None:
        self._doors = doors
        self._running = False

    def routes(self) -> Sequence[BaseRoute]:
        return ()

    def address_of(self, person: Person) -> str | None:  # noqa: ARG002 - nobody is told here unasked
        return None

    def is_with(self, person: Person, address: str) -> bool:  # noqa: ARG002 - who looks is not known here
        return False

    async def start(self) -> None:
        await self._doors.forget(self.name, "deciding/", before=self._doors.clock.now() - _REMEMBERED)
        self._running = True

    async def stop(self) -> None:
        self._running = False

    async def deliver(self, item: OutboundItem) -> Receipt:
        receipt = Receipt(item.external_id or item.key)
        data = {
            "channel": self.name,
            "kind": item.kind,
            "external_id": receipt.external_id,
            "action_id": item.action.id if item.action else None,
            "state": str(item.action.state) if item.action else None,
        }
        self._doors.events.publish(Event("delivered", item.thread_id, data))
        return receipt

    async def find(self, item: OutboundItem) -> Receipt | None:  # noqa: ARG002 - telling again tells nothing new
        return None

    def state(self) -> ChannelState:
        return ChannelState("ok" if self._running else "off")
