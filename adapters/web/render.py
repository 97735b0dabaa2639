"""How do values look on the wire? JSON bodies, errors and safe file names. Pure.

{"error": {"code": "invalid_args", "message": "…", "errors": [{"path": "/amount", "message": "…"}]}}
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import quote

from starlette.responses import FileResponse, Response, StreamingResponse

from pizzabot.doors import StoredFile
from pizzabot.errors import Refused

_LONGEST_NAME = 150
_FORBIDDEN_CATEGORIES = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")  # controls, bidi marks, half surrogates
_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 ._-()[]+,=@#!$&^{}~")
_ATTR_CHARS = "!#$&+-.^_`|~"  # RFC 5987, attr-char beside letters and digits


def json_bytes(value: Any) -> bytes:
    """Compact JSON. Text that UTF-8 cannot hold (half a surrogate pair from a model) is escaped."""
    try:
        return _dump(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return _dump(value, ensure_ascii=True).encode()


def _dump(value: Any, *, ensure_ascii: bool) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, allow_nan=False, separators=(",", ":"))


def answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON answer."""
    return Response(json_bytes(value), status, headers, media_type="application/json")


def error_body(error: Refused, action: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The body of a refusal; `action` is the present state that a conflict is about."""
    shown: dict[str, Any] = {"code": error.code, "message": str(error)}
    if error.details.get("errors"):
        shown["errors"] = list(error.details["errors"])
    if error.details.get("thread_id"):
        shown["thread_id"] = error.details["thread_id"]
    return {"error": shown} | ({"action": dict(action)} if action is not None else {})


def safe_filename(untrusted: str) -> str:
    """A name that is no path, hides nothing and cannot break a header."""
    base = untrusted.replace("\\", "/").rpartition("/")[2]
    visible = "".join(c for c in base if unicodedata.category(c) not in _FORBIDDEN_CATEGORIES)
    name = visible.strip().lstrip(".").strip()
    if len(name) > _LONGEST_NAME:
        stem, dot, ending = name.rpartition(".")
        kept = f"{dot}{ending}" if dot and len(ending) <= 16 else ""
        name = (stem or name)[: _LONGEST_NAME - len(kept)].rstrip() + kept
    return name or "file"


def content_disposition(untrusted: str) -> str:
    """The header that makes a browser store a file, RFC 6266: a plain name and, when needed, the true one."""
    name = safe_filename(untrusted)
    plain = "".join(c if c in _PLAIN else "_" for c in name)
    header = f'attachment; filename="{plain}"'
    return header if plain == name else f"{header}; filename*=UTF-8''{quote(name, safe=_ATTR_CHARS)}"


def stored_file(file: StoredFile) -> Response:
    """An attachment: to be stored by whoever asks for it, never shown or run in place."""
    headers = {
        "Content-Disposition": content_disposition(file.filename),
        "Content-Security-Policy": "default-src 'none'; sandbox",
    }
    return FileResponse(file.path, headers=headers, media_type=file.media_type)


def audit_file(lines: AsyncIterator[str]) -> Response:
    """The audit as a file to be stored, sent while it is read."""
    headers = {"Content-Disposition": content_disposition("pizzabot-audit.jsonl")}
    return StreamingResponse(lines, headers=headers, media_type="application/x-ndjson")
