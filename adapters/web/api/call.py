"""What does an endpoint know of its request? Who calls, and through what."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime

from starlette.requests import Request

from pizzabot.doors import Doors
from pizzabot.errors import Invalid
from pizzabot.messages import Json
from pizzabot.people import Person

from .. import body, forms
from ..ids import is_id, known_id, positive
from ..refusals import BadBody, UnsupportedMediaType
from . import parse

_LARGE_BYTES = 200_000
_LONGEST_KEY = 255


@dataclass(frozen=True, slots=True)
class Call:
    """A request of a known person. `via` is the channel it counts for: api, or terminal when it says so."""

    request: Request
    doors: Doors
    person: Person
    via: str

    def id(self, name: str, what: str) -> str:
        """An id from the path; what cannot be one is not found, like one that is not there."""
        return known_id(str(self.request.path_params[name]), what)

    def id_query(self, name: str) -> str | None:
        """An optional id of the query."""
        value = self.request.query_params.get(name)
        if value is not None and not is_id(value):
            raise Invalid(f'"{name}" is not an id; send one that this API gave.', code="invalid_query")
        return value

    def number(self, name: str, default: int, *, most: int) -> int:
        """A number of the query from 1 on; more than `most` is taken as `most`."""
        text = self.request.query_params.get(name)
        if text is None:
            return default
        number = positive(text)
        if number is None:
            raise Invalid(f'"{name}" is not a number from 1 to {most}.', code="invalid_query")
        return min(number, most)

    def moment(self, name: str) -> datetime | None:
        """An optional time of the query: ISO 8601 with offset, or a date, which begins at midnight UTC."""
        text = self.request.query_params.get(name)
        if text is None:
            return None
        try:
            found = datetime.fromisoformat(text)
            if found.tzinfo is None and len(text) == len("2026-03-02"):
                found = found.replace(tzinfo=UTC)
            if found.tzinfo is not None and found.year >= 1970:
                return found.astimezone(UTC)
        except (ValueError, OverflowError):
            pass
        raise Invalid(
            f'"{name}" is not a time; write a date, 2026-03-02, or a time with offset, 2026-03-02T09:00:00Z.',
            code="invalid_query",
        )

    def key(self) -> str | None:
        """The Idempotency-Key, as it was sent; None without one."""
        sent = self.request.headers.getlist("idempotency-key")
        if not sent:
            return None
        if len(sent) > 1 or not 0 < len(sent[0]) <= _LONGEST_KEY or not sent[0].isprintable():
            raise Invalid(
                f"An Idempotency-Key has 1 to {_LONGEST_KEY} printable characters.", code="invalid_key"
            )
        return sent[0]

    async def json(self, *, limit_bytes: int = body.JSON_BYTES, empty: Json = None) -> Json:
        """The body as JSON; with `empty`, a body that is not there means that.

        Raises Refused with 400, 408, 413, 415 or 422.
        """
        raw = await self.raw(limit_bytes)
        if not raw and empty is not None:
            return empty
        if self.media_type != "application/json":
            raise UnsupportedMediaType("Send JSON with the header Content-Type: application/json.")
        if not raw:
            raise BadBody("The body is empty; send a JSON object.")
        return parse.decode(raw) if len(raw) < _LARGE_BYTES else await asyncio.to_thread(parse.decode, raw)

    async def raw(self, limit_bytes: int) -> bytes:
        """The bytes of the body."""
        return await body.read_body(self.request.receive, self.request.headers, limit_bytes)

    @property
    def media_type(self) -> str:
        """What the body is said to be, without parameters."""
        return forms.media_type(self.request.headers)
