"""What does the body of a request say? Pure: bytes to JSON, JSON to values.

Nothing is coerced and nothing is ignored: another type, an unknown or a missing key is refused with the name
of the field and what to send instead. `null` means the same as leaving a key out.

    bytes --decode--> Json --message | thread_change | …--> frozen values

Errors: BadBody (400) when it is no JSON, Invalid (422) with `details["errors"]` when it is other JSON.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from pizzabot.errors import Invalid
from pizzabot.inbox.intake import MAX_ATTACHMENT_BYTES, MAX_ATTACHMENTS
from pizzabot.messages import Args, Attachment, Json, Verdict
from pizzabot.text import is_storable

from ..forms import Form
from ..refusals import BadBody

MAX_DEPTH = 50
_LONGEST_BASE64 = 4 * math.ceil(MAX_ATTACHMENT_BYTES / 3)
_FILE_FIELDS = frozenset({"attachments", "attachment", "file", "files"})
_KINDS = {str: "a text", bool: "true or false", list: "a list", dict: "an object"}


@dataclass(frozen=True, slots=True)
class Written:
    """A message as a person sent it."""

    text: str
    title: str | None = None
    attachments: tuple[Attachment, ...] = ()


@dataclass(frozen=True, slots=True)
class ThreadChange:
    """What of a thread is to change; None stays as it is."""

    unread: bool | None = None
    title: str | None = None
    archived: bool | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """A decision without the person and the action, which the request itself names."""

    verdict: Verdict
    args: Args | None = None
    reason: str | None = None
    response: str | None = None
    digest: str | None = None


def decode(raw: bytes) -> Json:
    """The JSON text of RFC 8259: UTF-8, each key once, finite numbers, at most 50 levels."""
    try:
        value = json.loads(
            raw.decode("utf-8"), object_pairs_hook=_pairs, parse_constant=_not_finite, parse_float=_finite
        )
        depth = _depth(value)
    except UnicodeDecodeError as error:
        raise BadBody(f"The body is not UTF-8 at byte {error.start}; send JSON in UTF-8.") from error
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise BadBody(f"The body is not JSON at {place}: {error.msg}.") from error
    except RecursionError as error:
        raise _too_deep() from error
    except ValueError as error:  # an integer of more digits than Python converts
        raise BadBody("The body holds a number with too many digits; send it as a text.") from error
    if depth > MAX_DEPTH:
        raise _too_deep()
    _check_storable(value)
    return value


def _too_deep() -> BadBody:
    return BadBody(f"The body is nested too deeply; at most {MAX_DEPTH} levels are taken.")


def _pairs(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise BadBody(f"The body names the key {_quoted(twice)} twice; send it once.")
    return found


def _not_finite(word: str) -> NoReturn:
    raise BadBody(f"The body holds {word}, which is no JSON; send a finite number.")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise BadBody(f"The number {text[:40]} is too large; send a finite number.")
    return number


def _depth(value: Json) -> int:
    """How many lists and objects stand inside each other; counting ends behind the limit."""
    depth, level = 0, [value]
    while depth <= MAX_DEPTH and (inner := [v for v in level if isinstance(v, dict | list)]):
        depth += 1
        level = [child for v in inner for child in (v.values() if isinstance(v, dict) else v)]
    return depth


def _check_storable(value: Json) -> None:
    for path, text in _texts(value, ""):
        if not is_storable(text):
            _refuse(path, "holds a NUL character or half a surrogate pair; remove it", code="invalid_text")


def _texts(value: Json, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, child in value.items():
            yield path or "/", key
            yield from _texts(child, f"{path}/{key}")
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from _texts(child, f"{path}/{index}")


def message(body: Json, *, titled: bool) -> Written:
    """`{"text", "title"?, "attachments"?: [{"filename", "media_type", "data": base64}]}`."""
    known = {"text": str, "attachments": list} | ({"title": str} if titled else {})
    found = fields(body, known)
    files = tuple(_attachment(item, index) for index, item in enumerate(_few(found.get("attachments", []))))
    if "text" not in found and not files:
        _refuse("/text", "is missing; write what should be done")
    return Written(found.get("text", ""), found.get("title"), files)


def message_of_form(form: Form, *, titled: bool) -> Written:
    """The fields `text` and `title`; files under `attachments` (or `attachment`, `file`, `files`)."""
    unknown = [*(form.texts.keys() - set(("text", "title")[: 1 + titled]))]
    unknown += [name for name, _ in form.files if name not in _FILE_FIELDS]
    if unknown:
        problem = f"The field {unknown[0][:60]!r} is not known; send text, title and attachments."
        raise Invalid(problem, code="invalid_body")
    if "text" not in form.texts and not form.files:
        raise Invalid('"text" is missing; write what should be done.', code="invalid_body")
    files = tuple(file for _, file in form.files)
    return Written(form.texts.get("text", ""), form.texts.get("title"), files)


def _few(items: list[Json]) -> list[Json]:
    if len(items) > MAX_ATTACHMENTS:
        raise Invalid(f"At most {MAX_ATTACHMENTS} files come with one message.", code="too_many_attachments")
    return items


def _attachment(item: Json, index: int) -> Attachment:
    path = f"/attachments/{index}"
    keys = {"filename": str, "media_type": str, "data": str}
    found = fields(item, keys, required=tuple(keys), path=path)
    return Attachment(found["filename"], found["media_type"], _bytes(found["data"], f"{path}/data"))


def _bytes(text: str, path: str) -> bytes:
    if len(text) > _LONGEST_BASE64:
        limit = MAX_ATTACHMENT_BYTES // 2**20
        _refuse(path, f"is larger than {limit} MiB; send a smaller file", code="attachment_too_large")
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        data = None
    # Decoding drops the spare bits of the last group; two texts must not mean the same bytes.
    if data is None or base64.b64encode(data).decode() != text:
        _refuse(path, "is not base64; send the bytes as RFC 4648 says, padded, on one line")
    return data


def thread_change(body: Json) -> ThreadChange:
    """`{"unread"?, "title"?, "archived"?}`, at least one of them."""
    found = fields(body, {"unread": bool, "title": str, "archived": bool})
    if not found:
        _refuse("", "says nothing; send unread, title or archived")
    return ThreadChange(**found)


def fork(body: Json) -> str:
    """`{"message_id"}`: the last message that the new thread keeps."""
    found = fields(body, {"message_id": str}, required=("message_id",))
    return str(found["message_id"])


def said(body: Json) -> Said:
    """`{"decision", "args"?, "reason"?, "response"?, "digest"?}`."""
    keys = {"decision": str, "args": dict, "reason": str, "response": str, "digest": str}
    found = fields(body, keys, required=("decision",))
    word = found.pop("decision")
    try:
        verdict = Verdict(word)
    except ValueError:
        words = ", ".join(Verdict)
        _refuse(
            "/decision", f"{_quoted(word)} is not a decision; say one of {words}", code="decision_not_allowed"
        )
    return Said(verdict, **found)


def snooze(body: Json) -> str:
    """`{"until"}`: a time in words or ISO 8601."""
    return str(fields(body, {"until": str}, required=("until",))["until"])


def enabled(body: Json) -> bool:
    """`{"enabled": bool}`."""
    return bool(fields(body, {"enabled": bool}, required=("enabled",))["enabled"])


def login_link(body: Json) -> str | None:
    """`{"person"?}`: who is to log in; None means who asks."""
    return fields(body, {"person": str}).get("person")


def nothing(body: Json) -> None:
    """A request that needs no body: none, or an empty object."""
    fields(body, {})


def fields(
    body: Json, known: Mapping[str, type], *, required: tuple[str, ...] = (), path: str = ""
) -> dict[str, Any]:
    """The keys that were sent, each of its type; keys of `required` are there."""
    if not isinstance(body, dict):
        _refuse(
            path, f"is {_kind(body)}; send an object with the keys {', '.join(known) or 'it needs: none'}"
        )
    for key in body.keys() - known.keys():
        _refuse(f"{path}/{key[:60]}", f"is not known; known are {', '.join(known) or 'no keys at all'}")
    found = {key: value for key, value in body.items() if value is not None}
    for key, value in found.items():
        if not isinstance(value, known[key]):
            _refuse(f"{path}/{key}", f"is {_kind(value)}; send {_KINDS[known[key]]}")
    for key in required:
        if key not in found:
            _refuse(f"{path}/{key}", f"is missing; send {_KINDS[known[key]]}")
    return found


def _kind(value: Json) -> str:
    if value is None:
        return "null"
    return next((name for kind, name in _KINDS.items() if isinstance(value, kind)), "a number")


def _quoted(text: str) -> str:
    return json.dumps(text[:60])


def _refuse(path: str, problem: str, *, code: str = "invalid_body") -> NoReturn:
    name = path.strip("/").replace("/", ".") or "the body"
    shown = name if name == "the body" else _quoted(name)
    raise Invalid(
        f"{shown[0].upper()}{shown[1:]} {problem}.",
        code=code,
        details={"errors": [{"path": path, "message": problem}]},
    )
