"""What does a form say? URL-encoded or multipart/form-data (RFC 7578), as browsers and curl send them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl

from starlette.datastructures import Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from pizzabot.errors import Invalid
from pizzabot.inbox.intake import MAX_TEXT
from pizzabot.messages import Attachment
from pizzabot.text import is_storable

from .refusals import BadBody, UnsupportedMediaType

URL_ENCODED, MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"
_MAX_FIELDS = 10_000
_MAX_FILES = 100
_UTF8_BYTES = 4
_CHUNK = 65536


@dataclass(frozen=True, slots=True)
class Form:
    """The fields of a form, each at most once, and its files with the name of their field."""

    texts: Mapping[str, str]
    files: tuple[tuple[str, Attachment], ...] = ()


def media_type(headers: Headers) -> str:
    """What a body is said to be, without parameters."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


async def read(raw: bytes, headers: Headers) -> Form:
    """The form in a body.

    Raises:
        UnsupportedMediaType: the body is no form.
        BadBody: it is no well-formed one.
        Invalid: a field is given twice, or holds what cannot be stored.
    """
    sent = media_type(headers)
    if sent == MULTIPART:
        return await _multipart(raw, headers)
    if sent != URL_ENCODED:
        raise UnsupportedMediaType("Send a form, URL-encoded or as multipart/form-data.")
    try:
        pairs = parse_qsl(
            raw.decode("ascii"),
            keep_blank_values=True,
            encoding="utf-8",
            errors="strict",
            max_num_fields=_MAX_FIELDS,
        )
    except ValueError as error:
        raise BadBody("The form cannot be read; send it again from its page.", code="invalid_form") from error
    return Form(_once(pairs))


async def _multipart(raw: bytes, headers: Headers) -> Form:
    parser = MultiPartParser(
        headers,
        _chunks(raw),
        max_files=_MAX_FILES,
        max_fields=_MAX_FIELDS,
        # One more than the longest text: what is too long for the inbox is refused there, in its words.
        max_part_size=_UTF8_BYTES * MAX_TEXT + 1,
    )
    try:
        form = await parser.parse()
    except MultiPartException as error:
        raise BadBody(f"The form cannot be read: {error.message}", code="invalid_form") from error
    except (UnicodeError, LookupError) as error:  # of the character set that the form names
        raise BadBody("The form cannot be read; send it in UTF-8.", code="invalid_form") from error
    try:
        items = form.multi_items()
        texts = _once([(name, value) for name, value in items if isinstance(value, str)])
        files = [(name, await _file(value)) for name, value in items if isinstance(value, UploadFile)]
    finally:
        await form.close()
    # A browser sends an unnamed empty file for a file field that was left empty.
    return Form(texts, tuple((name, file) for name, file in files if file.filename or file.data))


async def _chunks(raw: bytes) -> AsyncGenerator[bytes, None]:
    for start in range(0, len(raw), _CHUNK):
        yield raw[start : start + _CHUNK]


async def _file(upload: UploadFile) -> Attachment:
    media_type = (upload.content_type or "application/octet-stream").partition(";")[0].strip()
    return Attachment(upload.filename or "", media_type, await upload.read())


def _once(pairs: list[tuple[str, str]]) -> dict[str, str]:
    texts: dict[str, str] = {}
    for name, value in pairs:
        if name in texts:
            raise Invalid(f"The field {name[:60]!r} is given twice; send it once.", code="invalid_body")
        if not is_storable(name + value):
            problem = f"The field {name[:60]!r} holds a NUL character; remove it."
            raise Invalid(problem, code="invalid_text")
        texts[name] = value
    return texts
