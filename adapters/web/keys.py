"""Under which key is a request taken once? Pure."""

from __future__ import annotations

from pizzabot.people import Person


def inbound_key(door: str, person: Person, sent: str) -> str:
    """The key of an item that `person` named `sent`, apart from all other people's and doors' keys."""
    # A slash in a name must not let one person's key read like another's.
    name = person.name.replace("%", "%25").replace("/", "%2F")
    return f"{door}/{name}/{sent}"
