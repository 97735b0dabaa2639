"""How does a person get in, and out again?

    GET  /login?code=…   a page with a button; nothing is used up by looking, or by a mail scanner's look
    POST /login          uses the code up: a new session, in a cookie that no script can read
    POST /logout         ends this session, or all of this person

The page before the login has a secret cookie, too: its form's token comes from it.
"""

from __future__ import annotations

import logging
import secrets
from collections import deque
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from urllib.parse import quote, unquote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from pizzabot.doors import Doors
from pizzabot.sessions import LONGEST_LIFE, CodeNotValid

from ..forms import Form
from ..refusals import TooMany
from .html import bare, see_other
from .visit import VIA, Visit, csrf_of, is_ours, local_path, read_form

logger = logging.getLogger(__name__)
SESSION = "pizzabot_session"
_BEFORE, _RETURN = "pizzabot_login", "pizzabot_return"
_BEFORE_SECONDS = 3600
_WINDOW = timedelta(minutes=1)
_LONGEST_CODE = 200
_LARGEST_FORM_BYTES = 10_000


@dataclass(slots=True)
class Attempts:
    """Failed logins of the last minute: at most `per_address` from one address, `in_all` from everywhere."""

    per_address: int = 10
    in_all: int = 100
    failed: deque[tuple[datetime, str]] = field(default_factory=deque)

    def fail(self, address: str, now: datetime) -> None:
        """Count one more; raises TooMany when an address, or everybody together, failed too often already.

        A right code is never counted and always let through: it cannot be guessed, and behind a proxy all
        people have one address.
        """
        while self.failed and now - self.failed[0][0] >= _WINDOW:
            self.failed.popleft()
        if self.of(address) >= self.per_address or len(self.failed) >= self.in_all:
            raise TooMany("Too many logins failed; wait a minute and try again.")
        self.failed.append((now, address))

    def of(self, address: str) -> int:
        """How many of them came from there."""
        return sum(1 for _, failed in self.failed if failed == address)


def to_login(request: Request) -> Response:
    """Off to the login, with where to go afterwards in a cookie."""
    response = RedirectResponse("/login", 303)
    wanted = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    if request.method == "GET":
        _set(
            response,
            request,
            _RETURN,
            quote(local_path(wanted), safe=""),
            path="/login",
            seconds=_BEFORE_SECONDS,
        )
    return response


async def show(request: Request, doors: Doors) -> Response:
    """`GET /login?code=`."""
    return await _form(request, doors, request.query_params.get("code", "")[:_LONGEST_CODE])


async def _form(
    request: Request, doors: Doors, code: str, status: int = 200, problem: str | None = None
) -> Response:
    secret = request.cookies.get(_BEFORE) or secrets.token_urlsafe(32)
    # Whose link it is, so that nobody writes into somebody else's inbox by a link that was slipped to them.
    whom = await doors.sessions.person_for(code) if code else None
    now = await doors.sessions.person_of(request.cookies.get(SESSION, ""))
    response = bare("login", status, code=code, csrf=csrf_of(secret), problem=problem, whom=whom, now=now)
    _set(response, request, _BEFORE, secret, path="/login", seconds=_BEFORE_SECONDS)
    return response


async def log_in(request: Request, doors: Doors, attempts: Attempts) -> Response:
    """`POST /login`: a new session under a new secret, whatever cookie was sent."""
    address, now = request.client.host if request.client else "", doors.clock.now()
    form = await read_form(request, _LARGEST_FORM_BYTES)
    code = form.texts.get("code", "").strip()[:_LONGEST_CODE]
    if not is_ours(form, request.cookies.get(_BEFORE, "")):
        problem = "This page was open too long, or cookies are off. Nothing was used up; try once more."
        return await _form(request, doors, code, 403, problem)
    try:
        secret = await doors.sessions.log_in(code, VIA)
    except CodeNotValid as error:
        attempts.fail(address, now)
        logger.warning("a login failed from %s", address)
        return await _form(request, doors, "", error.status, f"{error} Make a new one with “pizzabot open”.")
    if before := request.cookies.get(SESSION):
        await doors.sessions.log_out(before, VIA)
    response = see_other(local_path(unquote(request.cookies.get(_RETURN, "/"))))
    _set(response, request, SESSION, secret, seconds=int(LONGEST_LIFE.total_seconds()))
    for name in (_BEFORE, _RETURN):
        response.delete_cookie(name, path="/login")
    return response


async def log_out(visit: Visit, form: Form) -> Response:
    """`POST /logout` `everywhere?`: and nothing that was seen stays in the browser's cache."""
    if form.texts.get("everywhere"):
        await visit.doors.sessions.log_out_everywhere(visit.person, VIA)
    else:
        await visit.doors.sessions.log_out(visit.secret, VIA)
    response = see_other("/login")
    response.delete_cookie(SESSION, path="/")
    response.headers["Clear-Site-Data"] = '"cache"'
    return response


def _set(
    response: Response, request: Request, name: str, value: str, *, seconds: int, path: str = "/"
) -> None:
    response.set_cookie(
        name, value, max_age=seconds, path=path, httponly=True, samesite="strict", secure=_is_https(request)
    )


def _is_https(request: Request) -> bool:
    """Whether the browser came over https: told by the name it used, as a proxy's word is anybody's."""
    return bool(request.app.state.names.is_https(request.headers.get("host", "")))
