"""What does a form with files say? multipart/form-data, RFC 7578, as curl and browsers send it.

Fields: `text`, `title`; files under `attachments` (or `attachment`, `file`, `files`).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator

from starlette.datastructures import Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from pizzabot.errors import Invalid
from pizzabot.inbox.intake import MAX_TEXT
from pizzabot.messages import Attachment

from .parse import Written
from .refusals import BadBody

_FILE_FIELDS = frozenset({"attachments", "attachment", "file", "files"})
_MAX_PARTS = 100
_UTF8_BYTES = 4
_CHUNK = 65536


async def message(raw: bytes, headers: Headers, *, titled: bool) -> Written:
    """The message in a form.

    Raises:
        BadBody: it is no well-formed multipart/form-data.
        Invalid: a field is not known, or given twice.
    """
    parser = MultiPartParser(
        headers,
        _chunks(raw),
        max_files=_MAX_PARTS,
        max_fields=_MAX_PARTS,
        # One more than the longest text: what is too long for the inbox is refused there, in its words.
        max_part_size=_UTF8_BYTES * MAX_TEXT + 1,
    )
    try:
        form = await parser.parse()
    except MultiPartException as error:
        raise BadBody(f"The form cannot be read: {error.message}", code="invalid_form") from error
    try:
        texts: dict[str, str] = {}
        files: list[Attachment] = []
        for name, value in form.multi_items():
            if isinstance(value, UploadFile):
                files += await _file(name, value)
            elif name in texts or name not in ("text", "title")[: 1 + titled]:
                raise _field(name, "twice" if name in texts else None)
            else:
                texts[name] = value
    finally:
        await form.close()
    if "text" not in texts and not files:
        raise Invalid('"text" is missing; write what should be done.', code="invalid_body")
    return Written(texts.get("text", ""), texts.get("title"), tuple(files))


async def _chunks(raw: bytes) -> AsyncGenerator[bytes, None]:
    for start in range(0, len(raw), _CHUNK):
        yield raw[start : start + _CHUNK]


async def _file(name: str, upload: UploadFile) -> list[Attachment]:
    if name not in _FILE_FIELDS:
        raise _field(name, None)
    data = await upload.read()
    if not upload.filename and not data:
        return []  # what a browser sends for a file field that was left empty
    media_type = (upload.content_type or "application/octet-stream").partition(";")[0].strip()
    return [Attachment(upload.filename or "", media_type, data)]


def _field(name: str, problem: str | None) -> Invalid:
    shown = repr(name[:60])
    if problem is not None:
        return Invalid(f"The field {shown} is given {problem}; send it once.", code="invalid_body")
    return Invalid(f"The field {shown} is not known; send text, title and attachments.", code="invalid_body")
