"""How is a home copied while its server runs, and how does it come back? One zip file with a manifest.

`checkpoints.sqlite` is copied first and `app.sqlite` after it: the effects ledger in `app.sqlite` must never
be older than the checkpoints, or a tool call that the graph has behind it would look as if it had not begun.
Attachments come last, because each is on disk before its row. Each database is copied in one step: stepwise
copies never end under writes.

Left out: `.env`, `token` and `tokens.json` (secrets), `logs`, and `workflows.sqlite` (follows from the runs).

A restore goes back in time. What happened after the backup is forgotten: messages may be taken and delivered
again and cards may ask again. What was being sent at the backup's moment is "unknown" and looked up at start.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pizzabot
from pizzabot.clock import SystemClock
from pizzabot.database import archive as archives
from pizzabot.database.archive import BackupFailed, Manifest, Member, listed
from pizzabot.database.migrate import migrate
from pizzabot.errors import ConfigError
from pizzabot.home import PRIVATE_FILE, PRIVATE_FOLDER, Home

_PART = ".restore-"


@dataclass(frozen=True, slots=True)
class BackupSummary:
    """What a backup holds; `skipped` names links and special files, which are not followed."""

    path: Path
    version: str
    created_at: datetime
    files: int
    size: int
    skipped: tuple[str, ...] = ()


# -- backup ----------------------------------------------------------------------------------------------


def backup(home: Home, target: Path) -> BackupSummary:
    """Copy the home into the new file `target`; also while a server runs.

    Raises:
        BackupFailed: the file exists, there is no data, PostgreSQL holds it, or the disk is full.
    """
    _refuse_postgres(home)
    target = target.absolute()
    if os.path.lexists(target):
        raise BackupFailed(
            f"{target} exists already; a backup never overwrites anything. Choose another name."
        )
    if not home.app_database.is_file():
        raise BackupFailed(f"{home.path} holds no data yet: there is nothing to back up.")
    _refuse_inside(home, target)
    with (
        _disk_errors(f"{target} could not be written"),
        tempfile.TemporaryDirectory(prefix=".pizzabot-backup-", dir=target.parent) as folder,
    ):
        part = Path(folder) / "backup.zip"
        manifest, skipped = _pack(home, part, Path(folder))
        _publish(part, target)
    return _summary(target, manifest, skipped)


def _pack(home: Home, part: Path, scratch: Path) -> tuple[Manifest, tuple[str, ...]]:
    members: list[Member] = []
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE), "wb") as file:
        with zipfile.ZipFile(file, "w", compresslevel=6) as archive:
            for name in archives.DATABASES:
                if (home.path / name).is_file():
                    copy = _copy_database(home.path / name, scratch / name)
                    with copy.open("rb") as source:
                        members.append(archives.add(archive, name, source, executable=False))
                    copy.unlink()
            added, skipped = _pack_files(home, archive)
            manifest = Manifest(pizzabot.__version__, SystemClock().now(), (*members, *added))
            archive.writestr(archives.MANIFEST, manifest.to_json(), zipfile.ZIP_DEFLATED)
        file.flush()
        os.fsync(file.fileno())
    return manifest, skipped


def _copy_database(source: Path, target: Path) -> Path:
    """A consistent copy; the server's writers go on meanwhile."""
    os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE))
    try:
        with (
            closing(sqlite3.connect(source, timeout=30)) as original,
            closing(sqlite3.connect(target)) as copy,
        ):
            original.backup(copy, pages=-1)
            copy.execute("PRAGMA journal_mode = DELETE")  # everything in the one file
            (state,) = copy.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.Error as error:
        raise BackupFailed(f"{source.name} could not be copied: {error}") from error
    if state != "ok":
        raise BackupFailed(f"{source.name} is damaged ({state}); restore an older backup.")
    return target


def _pack_files(home: Home, archive: zipfile.ZipFile) -> tuple[list[Member], tuple[str, ...]]:
    members: list[Member] = []
    skipped: list[str] = []
    for name in _names(home, skipped):
        try:
            descriptor = os.open(home.path / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            continue  # deleted meanwhile
        except OSError:
            skipped.append(name)
            continue
        with open(descriptor, "rb") as file:
            mode = os.fstat(descriptor).st_mode
            if stat.S_ISREG(mode):
                members.append(archives.add(archive, name, file, executable=bool(mode & 0o100)))
            else:
                skipped.append(name)
    return members, tuple(skipped)


def _names(home: Home, skipped: list[str]) -> Iterator[str]:
    yield from (name for name in archives.FILES if os.path.lexists(home.path / name))
    for folder in archives.FOLDERS:
        if (home.path / folder).is_symlink():
            skipped.append(folder)
            continue
        for place, folders, files in os.walk(home.path / folder):
            links = [name for name in folders if (Path(place) / name).is_symlink()]
            for name in sorted([*files, *links]):
                path = (Path(place) / name).relative_to(home.path).as_posix()
                try:
                    path.encode()
                except UnicodeEncodeError:
                    skipped.append(ascii(path))
                else:
                    yield path


def _publish(part: Path, target: Path) -> None:
    """Give the finished file its name, in one step, without overwriting."""
    try:
        os.link(part, target)
    except FileExistsError as error:
        raise BackupFailed(f"{target} exists already; a backup never overwrites anything.") from error
    except OSError:  # a file system without hard links
        if os.path.lexists(target):
            raise
        os.rename(part, target)
    _sync_folder(target.parent)


def _refuse_postgres(home: Home) -> None:
    with suppress(OSError, tomllib.TOMLDecodeError, UnicodeDecodeError):
        database = tomllib.loads(home.toml.read_text("utf-8")).get("database")
        if isinstance(database, dict) and database.get("url"):
            raise BackupFailed(
                "PostgreSQL holds the data of this home: use pg_dump and pg_restore, and copy the files."
            )


def _refuse_inside(home: Home, target: Path) -> None:
    inside = target.parent.resolve()
    if any(inside.is_relative_to((home.path / name).resolve()) for name in archives.FOLDERS):
        raise BackupFailed(
            f"{target} would become part of the backup itself; choose a place outside of {inside}."
        )


# -- restore ---------------------------------------------------------------------------------------------


def restore(home: Home, source: Path) -> BackupSummary:
    """Fill the home from the backup `source`; everything is verified before anything is placed.

    Raises:
        HomeLocked: a server runs on this home.
        BackupFailed: the backup is damaged, or the home holds data that would be overwritten.
        ConfigError: the backup was made by a newer version.
    """
    _refuse_postgres(home)
    with (
        _disk_errors(f"{source} could not be restored"),
        source.open("rb") as file,
        archives.open_archive(file) as archive,
    ):
        manifest = archives.read_manifest(archive)
        home.prepare()
        with home.lock():
            _fill(home, archive, manifest, source)
    return _summary(source, manifest, ())


def _fill(home: Home, archive: zipfile.ZipFile, manifest: Manifest, source: Path) -> None:
    for left in home.path.glob(_PART + "*"):
        shutil.rmtree(left)  # of a restore that was killed
    _refuse_data(home)
    _refuse_overwriting(home, manifest)
    if shutil.disk_usage(home.path).free < manifest.size:
        raise BackupFailed(f"{home.path} has too little space: {manifest.size:,} bytes are needed.")
    with tempfile.TemporaryDirectory(prefix=_PART, dir=home.path) as folder:
        for member in manifest.members:
            _unpack(archive, member, Path(folder))
        try:
            migrate("", Path(folder) / "app.sqlite")
        except ConfigError as error:
            raise ConfigError(str(source), error.problem) from error
        _place(home, manifest, Path(folder))


def _refuse_data(home: Home) -> None:
    # The workflows too: they belong to the runs of the data that was here before.
    bases = (home.app_database, home.checkpoints, home.store, home.workflows)
    there = [
        path.name
        for base in bases
        for path in (base, *(base.with_name(base.name + end) for end in ("-wal", "-shm", "-journal")))
        if os.path.lexists(path)
    ]
    if there:
        raise BackupFailed(
            f"{home.path} holds data already; move away {listed(there, 12)}, then restore again."
        )


def _refuse_overwriting(home: Home, manifest: Manifest) -> None:
    there = [member.name for member in manifest.members if os.path.lexists(home.path / member.name)]
    links = {
        parent.name
        for member in manifest.members
        for parent in (home.path / member.name).parents
        if parent != home.path and parent.is_relative_to(home.path) and parent.is_symlink()
    }
    if names := [*there, *sorted(links)]:
        raise BackupFailed(f"{home.path} has files of the backup already; move away {listed(names)}.")


def _unpack(archive: zipfile.ZipFile, member: Member, folder: Path) -> None:
    path = folder / member.name
    path.parent.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with open(os.open(path, flags, PRIVATE_FILE), "wb") as file:
        archives.unpack(archive, member, file.write)
        file.flush()
        os.fchmod(file.fileno(), PRIVATE_FOLDER if member.executable else PRIVATE_FILE)
        os.fsync(file.fileno())


def _place(home: Home, manifest: Manifest, folder: Path) -> None:
    """Move everything to its place, the databases last; undone when one step fails."""
    names = [m.name for m in manifest.members if m.name not in archives.DATABASES]
    names += [name for name in archives.DATABASES if (folder / name).exists()]
    placed: list[Path] = []
    try:
        for name in names:
            target = home.path / name
            _make_folders(home, target.parent)
            os.rename(folder / name, target)
            placed.append(target)
    except BaseException:
        for path in placed:
            path.unlink(missing_ok=True)
        raise
    for place in {path.parent for path in placed}:
        _sync_folder(place)


def _make_folders(home: Home, folder: Path) -> None:
    if folder != home.path and not folder.is_dir():
        _make_folders(home, folder.parent)
        folder.mkdir(PRIVATE_FOLDER)
        _sync_folder(folder.parent)


# -- both ------------------------------------------------------------------------------------------------


@contextmanager
def _disk_errors(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise BackupFailed(f"{what}: {error.strerror or error}. Nothing was left behind.") from error


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _summary(path: Path, manifest: Manifest, skipped: tuple[str, ...]) -> BackupSummary:
    return BackupSummary(
        path, manifest.version, manifest.created_at, len(manifest.members), manifest.size, skipped
    )
