"""Under which key is a request taken once? Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from pizzabot.messages import Attachment
from pizzabot.people import Person


def inbound_key(door: str, person: Person, sent: str) -> str:
    """The key of an item that `person` named `sent`, apart from all other people's and doors' keys."""
    # A slash in a name must not let one person's key read like another's.
    name = person.name.replace("%", "%25").replace("/", "%2F")
    return f"{door}/{name}/{sent}"


def form_key(person: Person, page: str, text: str, files: Sequence[Attachment]) -> str:
    """The key of a form of a page: sent again it is the same item, sent again with other content another."""
    content = hashlib.sha256(text.encode("utf-8", "surrogatepass"))
    for file in files:
        content.update(file.filename.encode("utf-8", "surrogatepass") + b"\0" + file.data)
    return inbound_key("web", person, f"{page[:64]}/{content.hexdigest()[:32]}")
