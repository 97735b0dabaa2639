"""How does a refusal look? A page for who reads pages, JSON for everybody else and for all of the API."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.responses import Response

from pizzabot.errors import Refused

from .pages.html import bare
from .render import answer, error_body


def refused(path: str, headers: Headers, error: Refused) -> Response:
    """The answer to a request that changed nothing."""
    if reads_pages(path, headers):
        return bare("refused", error.status, error=error)
    return answer(error_body(error), error.status)


def reads_pages(path: str, headers: Headers) -> bool:
    """Whether a browser shows the answer to somebody: it says so, programs do not."""
    return not path.startswith("/api/") and "text/html" in headers.get("accept", "")
