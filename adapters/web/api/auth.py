"""Who sends this request? A bearer token in the Authorization header, RFC 6750; never in a URL or a body."""

from __future__ import annotations

from starlette.datastructures import Headers

from pizzabot.doors import Doors
from pizzabot.people import Person

from ..refusals import Unauthorized

_HOW = 'send the header "Authorization: Bearer <token>"; "pizzabot token NAME" prints one'


def bearer_token(headers: Headers) -> str:
    """The token that the request carries.

    Raises:
        Unauthorized: there is none, more than one, or another scheme.
    """
    sent = headers.getlist("authorization")
    if len(sent) != 1:
        raise Unauthorized(f"A token is needed: {_HOW}.")
    scheme, _, token = sent[0].partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise Unauthorized(f"Only bearer tokens are taken: {_HOW}.")
    return token.strip()


def person_with(token: str, doors: Doors) -> Person:
    """The person whose token it is; the comparison takes as long for a near miss as for a far one.

    Raises:
        Unauthorized: the token is nobody's, or was replaced by a newer one.
    """
    name = doors.tokens.person_of(token)
    person = doors.people.by_name(name) if name is not None else None
    if person is None:
        raise Unauthorized(f"This token is not known or was replaced: {_HOW}.")
    return person
