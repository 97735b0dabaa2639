"""What does a page know of its request? Who visits, in which session, and what was sent."""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.requests import Request

from pizzabot.doors import Doors
from pizzabot.people import Person, may_administer, may_write, owns

from .. import body, forms
from ..forms import Form
from ..ids import known_id, positive
from .times import Times

VIA = "web"
_LONGEST_PATH = 2000
_LOCAL_PATH = re.compile(r"/(?![/\\])[!-~]*")
# Nobody wants to be brought back to these.
_NOT_PAGES = ("/login", "/logout", "/events", "/static/", "/api/")


@dataclass(frozen=True, slots=True)
class Visit:
    """A request of a person who is logged in; `secret` names their session."""

    request: Request
    doors: Doors
    person: Person
    secret: str

    @property
    def csrf(self) -> str:
        """What every form of this session carries, and no other site can know."""
        return csrf_of(self.secret)

    @property
    def here(self) -> str:
        """The page that is shown, to come back to."""
        url = self.request.url
        if self.request.method != "GET":
            return "/"
        return f"{url.path}?{url.query}" if url.query else url.path

    @property
    def times(self) -> Times:
        """The clock as this person reads it."""
        return Times(self.doors.clock.now(), self.person.timezone)

    @property
    def is_owner(self) -> bool:
        return may_administer(self.person)

    def id(self, name: str, what: str) -> str:
        """An id from the path; what cannot be one is not found, like one that is not there."""
        return known_id(str(self.request.path_params[name]), what)

    def number(self, name: str, most: int) -> int | None:
        """A number of the query from 1 on, or None when there is none that makes sense."""
        number = positive(self.request.query_params.get(name))
        return min(number, most) if number is not None else None

    def writes_in(self, thread_owner: str) -> bool:
        """Whether this person may write in a thread of that owner."""
        return may_write(self.person, thread_owner)

    def owns(self, thread_owner: str) -> bool:
        return owns(self.person, thread_owner)


def csrf_of(secret: str) -> str:
    """The token of forms that belongs to a secret cookie, from which the cookie cannot be told."""
    return hashlib.sha256(f"csrf {secret}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


async def read_form(request: Request, most_bytes: int) -> Form:
    """The form that was sent. Raises Refused when it cannot be read."""
    raw = await body.read_body(request.receive, request.headers, most_bytes)
    return await forms.read(raw, request.headers)


def is_ours(form: Form, secret: str) -> bool:
    """Whether the form came from a page that was made for this secret cookie."""
    sent = form.texts.get("csrf", "").encode()
    return bool(secret) and hmac.compare_digest(sent, csrf_of(secret).encode())


def local_path(text: str | None) -> str:
    """`text` when it is a path of ours that shows a page, else the inbox: no way to another site."""
    if text is None or len(text) > _LONGEST_PATH or _LOCAL_PATH.fullmatch(text) is None:
        return "/"
    parts = urlsplit(text)
    if parts.scheme or parts.netloc or parts.path.startswith(_NOT_PAGES):
        return "/"
    return text
