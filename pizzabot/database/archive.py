"""What does a backup file look like, and is this one whole? A zip with a manifest of sizes and hashes.

Everything in it is untrusted until it was read once: names, sizes, hashes and the number of members.
"""

from __future__ import annotations

import hashlib
import json
import re
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, BinaryIO

from pizzabot.errors import PizzaBotError

MANIFEST = "manifest.json"
FORMAT = 1
DATABASES = ("checkpoints.sqlite", "app.sqlite", "store.sqlite")  # in the order in which they are copied
FILES = ("pizzabot.toml", ".mcp.json")
FOLDERS = ("skills", "plugins", "memories", "attachments")
_MAX_MANIFEST_BYTES = 64 * 1024 * 1024
_CHUNK = 1024 * 1024
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, UnicodeError)


class BackupFailed(PizzaBotError):
    """A backup or a restore that did not happen; nothing was left behind."""

    code = "backup"


@dataclass(frozen=True, slots=True)
class Member:
    """One file of a backup; `name` is its path inside the home."""

    name: str
    size: int
    sha256: str
    executable: bool = False


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a backup holds, when and by which version it was made."""

    version: str
    created_at: datetime
    members: tuple[Member, ...]

    @property
    def size(self) -> int:
        """Bytes of all files, unpacked."""
        return sum(member.size for member in self.members)

    def to_json(self) -> bytes:
        value = {
            "format": FORMAT,
            "version": self.version,
            "created_at": self.created_at.isoformat(),
            "members": [asdict(member) for member in self.members],
        }
        return json.dumps(value, indent=1).encode()


def add(archive: zipfile.ZipFile, name: str, file: BinaryIO, *, executable: bool) -> Member:
    """Append a file, hashed as it is written."""
    info = zipfile.ZipInfo(name)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = (stat.S_IFREG | (0o700 if executable else 0o600)) << 16
    sha256, size = hashlib.sha256(), 0
    with archive.open(info, "w", force_zip64=True) as target:
        while chunk := file.read(_CHUNK):
            sha256.update(chunk)
            size += len(chunk)
            target.write(chunk)
    return Member(name, size, sha256.hexdigest(), executable)


def read_manifest(archive: zipfile.ZipFile) -> Manifest:
    """The manifest, after everything was checked that can be checked without unpacking.

    Raises:
        BackupFailed: not a backup of ours, or its files are not those of its manifest, each once and plain.
    """
    infos = archive.infolist()
    names = [info.filename for info in infos]
    if MANIFEST not in names:
        raise BackupFailed("This is not a backup of Pizza Bot: it has no manifest.json.")
    if archive.getinfo(MANIFEST).file_size > _MAX_MANIFEST_BYTES:
        raise damaged("its manifest is too large")
    try:
        manifest = _parse(json.loads(b"".join(_chunks(archive, MANIFEST, _MAX_MANIFEST_BYTES))))
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise damaged("its manifest cannot be read") from error
    sizes = {member.name: member.size for member in manifest.members}
    if sorted(names) != sorted([*sizes, MANIFEST]) or len(sizes) != len(manifest.members):
        raise damaged("its files are not those of its manifest")
    if "app.sqlite" not in sizes:
        raise damaged("it has no app.sqlite")
    for info in infos:
        if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG):
            raise damaged(f"{info.filename!r} is not a plain file")
        if info.filename != MANIFEST and info.file_size != sizes[info.filename]:
            raise damaged(f"{info.filename!r} has another size than its manifest says")
    return manifest


def _parse(value: Any) -> Manifest:
    if value["format"] != FORMAT:
        raise BackupFailed("This backup was made by another version of Pizza Bot; restore it with that one.")
    members = tuple(_member(**entry) for entry in value["members"])
    return Manifest(str(value["version"])[:40], datetime.fromisoformat(value["created_at"]), members)


def _member(name: str, size: int, sha256: str, executable: bool) -> Member:
    if not _is_ours(name) or type(size) is not int or size < 0 or type(executable) is not bool:
        raise ValueError(name)
    if not re.fullmatch("[0-9a-f]{64}", sha256):
        raise ValueError(sha256)
    return Member(name, size, sha256, executable)


def _is_ours(name: str) -> bool:
    """Whether this is a path of a file that backups hold: relative, without a step up or an empty step."""
    first, *rest = name.split("/")
    if not rest:
        return name in DATABASES or name in FILES
    return first in FOLDERS and "\0" not in name and all(part not in ("", ".", "..") for part in rest)


def unpack(archive: zipfile.ZipFile, member: Member, write: Callable[[bytes], object]) -> None:
    """Hand out a member's bytes, never more than its manifest says.

    Raises:
        BackupFailed: its bytes are not those that were packed.
    """
    sha256, size = hashlib.sha256(), 0
    for chunk in _chunks(archive, member.name, member.size):
        sha256.update(chunk)
        size += len(chunk)
        write(chunk)
    if size != member.size or sha256.hexdigest() != member.sha256:
        raise damaged(f"{member.name!r} is not what was packed")


def _chunks(archive: zipfile.ZipFile, name: str, limit: int) -> Iterator[bytes]:
    try:
        with archive.open(name) as source:
            left = limit
            while chunk := source.read(min(_CHUNK, left + 1)):
                left -= len(chunk)
                if left < 0:
                    raise damaged(f"{name!r} is larger than its manifest says")
                yield chunk
    except _DAMAGED as error:
        raise damaged(f"{name!r} cannot be unpacked") from error


def open_archive(file: BinaryIO) -> zipfile.ZipFile:
    """A zip to read.

    Raises:
        BackupFailed: it is none.
    """
    try:
        return zipfile.ZipFile(file)
    except _DAMAGED as error:
        raise BackupFailed("This is not a backup of Pizza Bot, or it is not whole: copy it again.") from error


def damaged(what: str) -> BackupFailed:
    """The refusal of a file that is not as it was written."""
    return BackupFailed(f"This backup is damaged: {what}. Nothing was restored; take another one.")


def listed(members: Sequence[str], most: int = 5) -> str:
    """Some names for a message."""
    more = f" and {len(members) - most} more" if len(members) > most else ""
    return ", ".join(members[:most]) + more
