"""Where does everything of one installation lie, and does this process own it?

The home is private (folders 0700, files 0600) whatever the umask says; one process at a time holds its lock.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from pizzabot.errors import ConfigError, HomeLocked

PRIVATE_FOLDER = 0o700
PRIVATE_FILE = 0o600


def resolve_home(option: str | None, environ: Mapping[str, str]) -> Path:
    """The home directory: the command line, else `PIZZABOT_HOME`, else `~/.pizzabot`; always absolute."""
    chosen = option or environ.get("PIZZABOT_HOME") or "~/.pizzabot"
    if "\0" in chosen:
        raise ConfigError("PIZZABOT_HOME", "holds a NUL character; give the path of a folder")
    try:
        return Path(os.path.abspath(Path(chosen).expanduser()))
    except RuntimeError as error:
        raise ConfigError(chosen, "no such user's home; write the path of the home in full") from error


class Home:
    """The paths of one installation. Making one touches nothing; `prepare` and `lock` do."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.toml = path / "pizzabot.toml"
        self.env_file = path / ".env"
        self.mcp_json = path / ".mcp.json"
        self.skills = path / "skills"
        self.plugins = path / "plugins"
        self.memories = path / "memories"
        self.attachments = path / "attachments"
        self.logs = path / "logs"
        self.app_database = path / "app.sqlite"
        self.checkpoints = path / "checkpoints.sqlite"
        self.store = path / "store.sqlite"
        self.workflows = path / "workflows.sqlite"
        self.lock_file = path / ".lock"
        self.token_file = path / "token"
        self.seal_key = path / "seal.key"  # seals the secrets that the database keeps
        self.tokens_json = path / "tokens.json"

    def __repr__(self) -> str:
        return f"Home({str(self.path)!r})"

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders inside the home."""
        return (self.skills, self.plugins, self.memories, self.attachments, self.logs)

    @property
    def files(self) -> tuple[Path, ...]:
        """Every file of ours that the home may hold, with the companions SQLite makes."""
        databases = (self.app_database, self.checkpoints, self.store, self.workflows)
        companions = tuple(
            base.with_name(base.name + end) for base in databases for end in ("-wal", "-shm", "-journal")
        )
        plain = (
            self.toml,
            self.env_file,
            self.mcp_json,
            self.lock_file,
            self.token_file,
            self.tokens_json,
            self.seal_key,
        )
        return (*plain, *databases, *companions)

    def prepare(self) -> None:
        """Create what is missing and make everything of ours private.

        Raises:
            ConfigError: the path is a file, belongs to somebody else, or cannot be written.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            _make_private_folder(self.path, follow=True)
            self._check_owner()
            for folder in self.folders:
                _make_private_folder(folder)
            for path in self.files:
                _tighten(path, PRIVATE_FILE)
        except FileExistsError as error:
            raise ConfigError(
                str(error.filename or self.path),
                "is a file where a folder is needed; move it away or choose another home with --home",
            ) from error
        except OSError as error:
            place = str(error.filename or self.path)
            raise ConfigError(
                place,
                f"cannot be created or written ({error.strerror}); choose another home with --home",
            ) from error

    def lock(self) -> HomeLock:
        """The lock of this home, to be held for life with `with home.lock():`."""
        return HomeLock(self.lock_file)

    def _check_owner(self) -> None:
        owner = self.path.stat().st_uid
        if owner != os.geteuid():
            raise ConfigError(
                str(self.path),
                f"belongs to user id {owner}, and this process runs as {os.geteuid()}; "
                "run as its owner or choose another home with --home",
            )
        if not os.access(self.path, os.W_OK | os.X_OK):
            raise ConfigError(str(self.path), "is not writable; choose another home with --home")


class HomeLock:
    """An exclusive `flock` on the lock file; the kernel frees it when the process ends, however it ends."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def __enter__(self) -> HomeLock:
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, PRIVATE_FILE)
        except OSError as error:
            raise ConfigError(str(self._path), f"cannot be locked ({error.strerror})") from error
        try:
            self._take(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._descriptor is not None:
            os.ftruncate(self._descriptor, 0)
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)  # closing alone leaves it with a child just forked
            os.close(self._descriptor)
            self._descriptor = None

    def _take(self, descriptor: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise HomeLocked(_held_by(self._path, os.pread(descriptor, 32, 0))) from error
        except OSError as error:
            raise ConfigError(
                str(self._path), f"cannot be locked ({error.strerror}); the home must be on a local disk"
            ) from error
        os.fchmod(descriptor, PRIVATE_FILE)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)


def write_private(path: Path, content: bytes) -> None:
    """Replace a file of the home in one step, readable by its owner alone, on disk when this returns."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # mkstemp makes 0600
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), PRIVATE_FILE)
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _held_by(lock_file: Path, content: bytes) -> str:
    pid = content.split(b"\n")[0].decode("ascii", "replace")
    holder = f"process {pid}" if pid.isdigit() else "another process"
    return f"{lock_file.parent}: {holder} is running on this home; stop it first or choose another --home"


def _make_private_folder(path: Path, *, follow: bool = False) -> None:
    try:
        os.mkdir(path, PRIVATE_FOLDER)
    except FileExistsError:
        if not path.is_dir():
            raise
        if path.stat().st_mode & stat.S_ISVTX:
            raise ConfigError(str(path), "is shared by everybody; choose a folder of its own") from None
    _tighten(path, PRIVATE_FOLDER, follow=follow)


def _tighten(path: Path, mode: int, *, follow: bool = False) -> None:
    """Set the mode of an own file or folder; a link or a thing of somebody else's stays as it is."""
    try:
        found = os.stat(path, follow_symlinks=follow)
    except FileNotFoundError:
        return
    if stat.S_ISLNK(found.st_mode) or found.st_uid != os.geteuid():
        return
    if stat.S_IMODE(found.st_mode) != mode:
        os.chmod(path, mode)
