"""Is the home private, found where it should be, and owned by one process at a time?"""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pizzabot.errors import ConfigError, HomeLocked
from pizzabot.home import Home, resolve_home, write_private

HOLD_THE_LOCK = """
import sys, time
from pathlib import Path
from pizzabot.home import Home
with Home(Path(sys.argv[1])).lock():
    print("locked", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    home.prepare()
    return home


@pytest.fixture(params=[0o000, 0o022, 0o777], ids=["umask 0", "umask 022", "umask 777"])
def any_umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(
    ("option", "environ", "expected"),
    [
        ("/srv/pizza", {"PIZZABOT_HOME": "/elsewhere"}, "/srv/pizza"),
        (None, {"PIZZABOT_HOME": "/elsewhere"}, "/elsewhere"),
        (None, {"PIZZABOT_HOME": ""}, str(Path.home() / ".pizzabot")),
        (None, {}, str(Path.home() / ".pizzabot")),
        ("~/other", {}, str(Path.home() / "other")),
        ("relative", {}, str(Path.cwd() / "relative")),
    ],
)
def test_the_option_goes_before_the_environment_before_the_default(
    option: str | None, environ: dict[str, str], expected: str
) -> None:
    assert resolve_home(option, environ) == Path(expected)


@pytest.mark.parametrize("option", ["/srv/\0", "~nobody-of-that-name/home"])
def test_a_home_that_cannot_be_a_path_is_refused(option: str) -> None:
    with pytest.raises(ConfigError):
        resolve_home(option, {})


@pytest.mark.usefixtures("any_umask")
def test_folders_are_private_whatever_the_umask(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep").chmod(0o755)
    home = Home(tmp_path / "deep" / "home")
    home.prepare()
    assert [mode(path) for path in (home.path, *home.folders)] == [0o700] * 6


@pytest.mark.usefixtures("any_umask")
def test_files_are_private_whatever_the_umask(tmp_path: Path) -> None:
    home = Home(tmp_path)
    write_private(home.token_file, b"secret")
    with home.lock():
        assert (mode(home.token_file), mode(home.lock_file)) == (0o600, 0o600)


def test_open_files_and_folders_of_ours_are_made_private(home: Home) -> None:
    home.path.chmod(0o755)
    home.memories.chmod(0o777)
    opened = [home.toml, home.env_file, home.app_database, home.path / "app.sqlite-wal"]
    for path in opened:
        path.write_text("x")
        path.chmod(0o666)
    home.prepare()
    assert [mode(path) for path in opened] == [0o600] * 4
    assert [mode(home.path), mode(home.memories)] == [0o700, 0o700]


def test_a_linked_folder_keeps_its_mode(home: Home, tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    checkout.mkdir(mode=0o755)
    home.skills.rmdir()
    home.skills.symlink_to(checkout)
    home.prepare()
    assert mode(checkout) == 0o755


def test_preparing_twice_changes_nothing(home: Home) -> None:
    home.toml.write_text("# mine")
    home.prepare()
    assert home.toml.read_text() == "# mine"


def test_a_file_in_the_place_of_the_home_is_named(tmp_path: Path) -> None:
    place = tmp_path / "home"
    place.write_text("x")
    with pytest.raises(ConfigError, match="is a file where a folder is needed") as caught:
        Home(place).prepare()
    assert caught.value.file == str(place)


def test_a_file_in_the_place_of_a_folder_is_named(home: Home) -> None:
    home.logs.rmdir()
    home.logs.write_text("x")
    with pytest.raises(ConfigError, match="logs: is a file"):
        home.prepare()


def test_a_file_above_the_home_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(ConfigError, match="--home"):
        Home(tmp_path / "file" / "home").prepare()


def test_a_place_where_nothing_can_be_created_is_named() -> None:
    with pytest.raises(ConfigError, match="cannot be created or written"):
        Home(Path("/proc/pizzabot")).prepare()


def test_a_folder_shared_by_everybody_is_refused_and_keeps_its_mode(tmp_path: Path) -> None:
    shared = tmp_path / "tmp"
    shared.mkdir()
    shared.chmod(0o1777)
    with pytest.raises(ConfigError, match="shared by everybody"):
        Home(shared).prepare()
    assert mode(shared) == 0o1777


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_the_home_of_somebody_else_is_refused_and_keeps_its_mode(tmp_path: Path) -> None:
    place = tmp_path / "home"
    place.mkdir(mode=0o755)
    os.chown(place, 65534, 65534)
    with pytest.raises(ConfigError, match="belongs to user id 65534"):
        Home(place).prepare()
    assert mode(place) == 0o755


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_home_that_cannot_be_written_is_made_writable_or_named(tmp_path: Path) -> None:
    parent = tmp_path / "locked"
    parent.mkdir(mode=0o500)
    with pytest.raises(ConfigError, match="cannot be created or written"):
        Home(parent / "home").prepare()


def test_a_second_lock_names_the_process_that_holds_the_first(home: Home) -> None:
    with home.lock(), pytest.raises(HomeLocked, match=rf"process {os.getpid()} is running"), home.lock():
        pass


def test_a_lock_can_be_taken_again_after_it_was_given_back(home: Home) -> None:
    with home.lock():
        assert home.lock_file.read_text() == f"{os.getpid()}\n"
    with home.lock():
        pass


def test_another_process_keeps_us_out_until_it_is_killed(home: Home) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD_THE_LOCK, str(home.path)], stdout=subprocess.PIPE, text=True
    ) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "locked\n"
            with pytest.raises(HomeLocked, match=f"process {holder.pid} is running"), home.lock():
                pass
        finally:
            holder.send_signal(signal.SIGKILL)
            holder.wait()
    with home.lock():
        assert home.lock_file.read_text() == f"{os.getpid()}\n"


def test_a_child_process_does_not_inherit_the_lock(home: Home) -> None:
    with home.lock():
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, close_fds=False)
    try:
        with home.lock():
            pass
    finally:
        child.communicate(b"\n")


def test_a_link_in_the_place_of_the_lock_is_not_followed(home: Home, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("keep me")
    home.lock_file.symlink_to(precious)
    with pytest.raises(ConfigError, match="cannot be locked"), home.lock():
        pass
    assert precious.read_text() == "keep me"


def test_a_lock_file_with_nonsense_in_it_still_gives_an_answer(home: Home) -> None:
    with home.lock():
        home.lock_file.write_bytes(b"\xff\0garbage")
        with pytest.raises(HomeLocked, match="another process is running"), home.lock():
            pass


def test_a_write_that_fails_leaves_the_old_file_and_no_litter(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_private(home.token_file, b"old")

    def full_disk(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space"):
        write_private(home.token_file, b"new")
    assert home.token_file.read_bytes() == b"old"
    assert [path.name for path in home.path.iterdir() if path.is_file()] == ["token"]


def test_the_home_is_importable_without_heavy_libraries() -> None:
    code = "import sys, pizzabot.home, pizzabot.people, pizzabot.tokens; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"pydantic", "yaml", "sqlalchemy", "langgraph", "rich", "typer"} & set(loaded)
