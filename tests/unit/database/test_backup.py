"""Is a backup whole and private while others write, and does a restore refuse everything else, undone?"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pizzabot.database.archive import BackupFailed
from pizzabot.database.backup import backup, restore
from pizzabot.errors import ConfigError, HomeLocked
from pizzabot.home import Home

SECRETS = {".env": "KEY=sk-secret", "token": "pzb_secret", "tokens.json": '{"Ada": 1}'}
KEPT = {
    "pizzabot.toml": "[[people]]\n",
    ".mcp.json": "{}",
    "skills/pay/SKILL.md": "---\nname: pay\n---\n",
    "plugins/acme/deep/run.sh": "#!/bin/sh\n",
    "memories/Ada/notes.md": "likes Käse 🍕",
    "attachments/0197": "bytes",
}
LEFT_OUT = {"logs/pizzabot.log": "lines", "workflows.sqlite": "derived"}


def _fill_database(path: Path, rows: int) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE IF NOT EXISTS rows (n INTEGER PRIMARY KEY, text)")
    connection.executemany("INSERT INTO rows (text) VALUES (?)", [("x" * 100,)] * rows)
    connection.commit()
    connection.close()


def _rows(path: Path) -> int:
    connection = sqlite3.connect(path)
    try:
        (number,) = connection.execute("SELECT count(*) FROM rows").fetchone()
        return int(number)
    finally:
        connection.close()


@pytest.fixture
def home(tmp_path: Path, _migrated_file: Path) -> Home:
    home = Home(tmp_path / "home")
    home.prepare()
    shutil.copy(_migrated_file, home.app_database)
    _fill_database(home.app_database, 10)
    _fill_database(home.checkpoints, 20)
    for name, text in (SECRETS | KEPT | LEFT_OUT).items():
        path = home.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (home.path / "plugins/acme/deep/run.sh").chmod(0o755)
    return home


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "backup.zip"


@pytest.fixture
def other(tmp_path: Path) -> Home:
    return Home(tmp_path / "other")


def _left(home: Home) -> set[str]:
    return {str(path.relative_to(home.path)) for path in home.path.rglob("*") if path.is_file()} - {".lock"}


# -- backup ----------------------------------------------------------------------------------------------


def test_a_backup_holds_the_data_and_no_secret(home: Home, target: Path) -> None:
    summary = backup(home, target)
    with zipfile.ZipFile(target) as archive:
        names = archive.namelist()
        packed = b"".join(archive.read(name) for name in names)
    assert names[:2] == ["checkpoints.sqlite", "app.sqlite"]
    assert set(names) == {"checkpoints.sqlite", "app.sqlite", "manifest.json", *KEPT}
    assert not any(text.encode() in packed for text in SECRETS.values())
    assert (summary.files, summary.skipped) == (len(names) - 1, ())
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert list(target.parent.glob(".pizzabot-backup-*")) == []


def test_the_manifest_tells_each_file_with_size_and_hash(home: Home, target: Path) -> None:
    summary = backup(home, target)
    with zipfile.ZipFile(target) as archive:
        manifest = json.loads(archive.read("manifest.json"))
        for member in manifest["members"]:
            data = archive.read(member["name"])
            assert (member["size"], member["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())
    assert manifest["version"] == summary.version
    assert manifest["created_at"] == summary.created_at.isoformat()
    assert summary.size == sum(member["size"] for member in manifest["members"])


def test_nothing_is_overwritten(home: Home, target: Path) -> None:
    target.write_text("mine")
    with pytest.raises(BackupFailed, match="exists already"):
        backup(home, target)
    assert target.read_text() == "mine"
    dangling = target.with_name("link.zip")
    dangling.symlink_to("nowhere")
    with pytest.raises(BackupFailed, match="exists already"):
        backup(home, dangling)


def test_links_are_not_followed_out_of_the_home(home: Home, target: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "private").write_text("private")
    (home.skills / "file").symlink_to(outside / "private")
    (home.skills / "folder").symlink_to(outside)
    (home.memories / "loop").symlink_to(home.memories)
    shutil.rmtree(home.plugins)
    home.plugins.symlink_to(outside)
    os.mkfifo(home.attachments / "pipe")
    summary = backup(home, target)
    assert set(summary.skipped) == {
        "skills/file",
        "skills/folder",
        "memories/loop",
        "plugins",
        "attachments/pipe",
    }
    with zipfile.ZipFile(target) as archive:
        assert not any("private" in name or "plugins" in name for name in archive.namelist())


def test_a_backup_while_others_write_is_consistent(home: Home, target: Path, other: Home) -> None:
    """Each transaction writes a pair: first to the ledger's database, then to the checkpoints'."""
    stop = threading.Event()

    def write() -> None:
        app, checkpoints = sqlite3.connect(home.app_database), sqlite3.connect(home.checkpoints)
        while not stop.is_set():
            for connection in (app, checkpoints):
                connection.execute("INSERT INTO rows (text) VALUES (?)", ("y" * 5000,))
                connection.commit()
        app.close()
        checkpoints.close()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        backup(home, target)
    finally:
        stop.set()
        writer.join()
    restore(other, target)
    # The ledger may be ahead of the checkpoints, never behind.
    assert _rows(other.app_database) - 10 >= _rows(other.checkpoints) - 20
    assert _rows(other.app_database) <= _rows(home.app_database)


def test_a_backup_into_itself_is_refused(home: Home) -> None:
    with pytest.raises(BackupFailed, match="part of the backup itself"):
        backup(home, home.attachments / "backup.zip")


def test_a_home_without_data_is_refused(tmp_path: Path, target: Path) -> None:
    with pytest.raises(BackupFailed, match="nothing to back up"):
        backup(Home(tmp_path / "empty"), target)
    assert not target.exists()


def test_a_folder_that_is_not_there_is_refused(home: Home, tmp_path: Path) -> None:
    with pytest.raises(BackupFailed, match="No such file"):
        backup(home, tmp_path / "nowhere" / "backup.zip")


def test_a_postgres_home_is_sent_to_pg_dump(home: Home, target: Path) -> None:
    home.toml.write_text('[database]\nurl = "postgresql://ada:hunter2@db/pizza"\n')
    for attempt in (backup, restore):
        with pytest.raises(BackupFailed, match="pg_dump") as caught:
            attempt(home, target)
        assert "hunter2" not in str(caught.value)


def test_a_damaged_database_is_not_backed_up(home: Home, target: Path) -> None:
    data = bytearray(home.checkpoints.read_bytes())
    data[4096:] = os.urandom(len(data) - 4096)
    home.checkpoints.write_bytes(data)
    with pytest.raises(BackupFailed, match=r"checkpoints\.sqlite"):
        backup(home, target)
    assert not target.exists()


def test_a_full_disk_leaves_nothing_behind(home: Home, target: Path) -> None:
    program = (
        "import resource, signal, sys; from pathlib import Path\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "from pizzabot.database.backup import backup; from pizzabot.errors import PizzaBotError\n"
        "from pizzabot.home import Home\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))\n"
        "try: backup(Home(Path(sys.argv[1])), Path(sys.argv[2]))\n"
        "except PizzaBotError as error: print(error.code, error)\n"
    )
    (home.attachments / "large").write_bytes(os.urandom(100_000))
    done = subprocess.run(
        [sys.executable, "-c", program, home.path, target], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("backup ")
    assert sorted(path.name for path in target.parent.iterdir()) == ["home"]


# -- restore ---------------------------------------------------------------------------------------------


def test_a_restored_home_is_the_home_that_was(home: Home, target: Path, other: Home) -> None:
    made = backup(home, target)
    restored = restore(other, target)
    assert (restored.files, restored.size, restored.created_at) == (made.files, made.size, made.created_at)
    assert _left(other) == {"checkpoints.sqlite", "app.sqlite", *KEPT}
    for name, text in KEPT.items():
        assert (other.path / name).read_text() == text
    assert (_rows(other.app_database), _rows(other.checkpoints)) == (10, 20)
    script = other.path / "plugins/acme/deep/run.sh"
    for path in other.path.rglob("*"):
        expected = 0o700 if path.is_dir() or path == script else 0o600
        assert stat.S_IMODE(path.stat().st_mode) == expected, path
    backup(other, target.with_name("again.zip"))


def test_a_running_server_is_not_disturbed(home: Home, target: Path, other: Home) -> None:
    backup(home, target)
    other.prepare()
    with other.lock(), pytest.raises(HomeLocked):
        restore(other, target)
    assert _left(other) == set()


@pytest.mark.parametrize("name", ["app.sqlite", "checkpoints.sqlite-wal", "store.sqlite", "workflows.sqlite"])
def test_data_that_is_there_must_be_moved_away_first(
    home: Home, target: Path, other: Home, name: str
) -> None:
    backup(home, target)
    other.prepare()
    (other.path / name).write_text("mine")
    with pytest.raises(BackupFailed, match=f"move away {name}"):
        restore(other, target)
    assert _left(other) == {name}
    assert (other.path / name).read_text() == "mine"


def test_files_that_are_there_are_not_overwritten(home: Home, target: Path, other: Home) -> None:
    backup(home, target)
    other.prepare()
    other.toml.write_text("mine")
    with pytest.raises(BackupFailed, match=r"move away pizzabot\.toml"):
        restore(other, target)
    assert _left(other) == {"pizzabot.toml"}


def test_nothing_is_placed_behind_a_link(home: Home, target: Path, other: Home, tmp_path: Path) -> None:
    backup(home, target)
    outside = tmp_path / "outside"
    outside.mkdir()
    other.prepare()
    other.skills.rmdir()
    other.skills.symlink_to(outside)
    with pytest.raises(BackupFailed, match="move away skills"):
        restore(other, target)
    assert list(outside.iterdir()) == []


def _rewrite(target: Path, change: Callable[[dict[str, Any], dict[str, bytes]], None]) -> Path:
    """The backup again, with manifest and contents changed."""
    with zipfile.ZipFile(target) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(contents.pop("manifest.json"))
    change(manifest, contents)
    changed = target.with_name("changed.zip")
    with zipfile.ZipFile(changed, "w") as archive:
        for name, data in contents.items():
            archive.writestr(name, data)
        archive.writestr("manifest.json", json.dumps(manifest))
    return changed


def _put(manifest: dict[str, Any], contents: dict[str, bytes], name: str, data: bytes = b"x") -> str:
    contents[name] = data
    sha256 = hashlib.sha256(data).hexdigest()
    entry = {"name": name, "size": len(data), "sha256": sha256, "executable": False}
    manifest["members"] = [*(m for m in manifest["members"] if m["name"] != name), entry]
    return name


HOSTILE: dict[str, Callable[[dict[str, Any], dict[str, bytes]], object]] = {
    **{
        f"the name {name!r}": lambda m, c, name=name: _put(m, c, name)  # type: ignore[misc]
        for name in (
            "../evil",
            "skills/../../evil",
            "/etc/evil",
            "skills//evil",
            "skills/./evil",
            "skills/",
            "skills",
            ".env",
            "token",
            ".lock",
            "logs/evil",
            "app.sqlite-wal",
            "evil",
        )
    },
    "changed bytes": lambda m, c: c.update({".mcp.json": b"[]"}),
    "fewer bytes": lambda m, c: c.update({".mcp.json": b""}),
    "more bytes": lambda m, c: c.update({".mcp.json": b"{} " * 1000}),
    "a file without an entry": lambda m, c: c.update({"skills/extra": b"x"}),
    "an entry without a file": lambda m, c: c.pop(".mcp.json"),
    "an entry twice": lambda m, c: m["members"].append(m["members"][0]),
    "no application data": lambda m, c: (
        c.pop("app.sqlite"),
        m.update(members=[e for e in m["members"] if e["name"] != "app.sqlite"]),
    ),
    "a negative size": lambda m, c: m["members"][0].update(size=-1),
    "a size that is no number": lambda m, c: m["members"][0].update(size="9"),
    "a hash that is none": lambda m, c: m["members"][0].update(sha256="x"),
    "another field": lambda m, c: m["members"][0].update(link="/etc/passwd"),
    "no members": lambda m, c: m.pop("members"),
    "members of another type": lambda m, c: m.update(members=[1]),
    "another format": lambda m, c: m.update(format=2),
    "no time": lambda m, c: m.update(created_at=None),
    "a database that is none": lambda m, c: _put(m, c, "app.sqlite", b"not a database" * 500),
    "a file that is a folder too": lambda m, c: [_put(m, c, name) for name in ("skills/a", "skills/a/b")],
    "a name that is too long": lambda m, c: _put(m, c, "skills/" + "x" * 300),
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
def test_a_changed_backup_places_nothing(
    home: Home, target: Path, other: Home, tmp_path: Path, change: Callable[..., None]
) -> None:
    backup(home, target)
    changed = _rewrite(target, change)
    before = {path.name for path in tmp_path.iterdir()}
    with pytest.raises((BackupFailed, ConfigError)):
        restore(other, changed)
    assert {path.name for path in tmp_path.iterdir()} - before <= {"other"}
    assert not other.path.exists() or _left(other) == set()


def test_links_in_a_backup_are_refused(home: Home, target: Path, other: Home) -> None:
    backup(home, target)
    with zipfile.ZipFile(target) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    changed = target.with_name("changed.zip")
    with zipfile.ZipFile(changed, "w") as archive:
        for name, data in contents.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = (stat.S_IFLNK if name.startswith("memories") else stat.S_IFREG) << 16
            archive.writestr(info, data)
    with pytest.raises(BackupFailed, match="not a plain file"):
        restore(other, changed)


def test_a_bomb_is_refused_before_it_is_unpacked(home: Home, target: Path, other: Home) -> None:
    backup(home, target)
    with zipfile.ZipFile(target) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    contents["attachments/0197"] = bytes(50_000_000)
    changed = target.with_name("changed.zip")
    with zipfile.ZipFile(changed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in contents.items():
            archive.writestr(name, data)
    assert changed.stat().st_size < 200_000
    with pytest.raises(BackupFailed, match="another size"):
        restore(other, changed)


def test_more_than_the_disk_holds_is_refused(
    home: Home, target: Path, other: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    backup(home, target)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=9))
    with pytest.raises(BackupFailed, match="too little space"):
        restore(other, target)
    assert _left(other) == set()


@pytest.mark.parametrize("cut", [0, 10, 5000, -1, -30])
def test_a_backup_that_was_cut_off_is_refused(home: Home, target: Path, other: Home, cut: int) -> None:
    backup(home, target)
    data = target.read_bytes()
    target.write_bytes(data[:cut])
    with pytest.raises(BackupFailed):
        restore(other, target)
    assert not other.path.exists()


def test_every_flipped_byte_is_found_or_harmless(home: Home, target: Path, other: Home) -> None:
    backup(home, target)
    data = target.read_bytes()
    for place in range(0, len(data), max(1, len(data) // 60)):
        changed = bytearray(data)
        changed[place] ^= 0x5A
        target.write_bytes(changed)
        try:
            restore(other, target)
        except BackupFailed:
            assert not other.path.exists() or _left(other) == set()
        else:
            assert (other.path / "memories/Ada/notes.md").read_text() == KEPT["memories/Ada/notes.md"]
            assert _rows(other.app_database) == 10
        shutil.rmtree(other.path, ignore_errors=True)


def test_something_else_is_not_a_backup(other: Home, tmp_path: Path) -> None:
    letter = tmp_path / "letter.txt"
    letter.write_text("Dear Ada")
    empty = io.BytesIO()
    zipfile.ZipFile(empty, "w").close()
    nothing = tmp_path / "nothing.zip"
    nothing.write_bytes(empty.getvalue())
    for source in (letter, nothing):
        with pytest.raises(BackupFailed, match="not a backup of Pizza Bot"):
            restore(other, source)
    with pytest.raises(BackupFailed, match="No such file"):
        restore(other, tmp_path / "missing.zip")
    assert not other.path.exists()


def test_a_backup_of_a_newer_version_is_refused(home: Home, target: Path, other: Home) -> None:
    connection = sqlite3.connect(home.app_database)
    connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.commit()
    connection.close()
    backup(home, target)
    with pytest.raises(ConfigError, match=r"backup\.zip: was written by a newer version"):
        restore(other, target)
    assert _left(other) == set()


def test_a_restore_that_fails_in_the_middle_is_undone(
    home: Home, target: Path, other: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    backup(home, target)
    rename, calls = os.rename, []

    def fails(source: Path, place: Path) -> None:
        calls.append(place)
        if len(calls) == 4:
            raise OSError(28, "No space left on device")
        rename(source, place)

    monkeypatch.setattr(os, "rename", fails)
    with pytest.raises(BackupFailed, match="No space left"):
        restore(other, target)
    monkeypatch.undo()
    assert _left(other) == set()
    restore(other, target)
    assert _rows(other.app_database) == 10


def test_what_a_killed_restore_left_is_removed(home: Home, target: Path, other: Home) -> None:
    backup(home, target)
    other.prepare()
    left = other.path / ".restore-abc"
    left.mkdir()
    (left / "app.sqlite").write_text("half")
    restore(other, target)
    assert not left.exists()
