"""Server processes that start at once and die at a moment that has a name.

`Nursery` is a process that imports what a server needs, once, and forks for each of a server's lives; what it
forks runs `pizzabot serve` on a home of its own like any other. A life may be given a moment of death: just
before or just after the nth commit of what certain words describe. Then the process kills itself with
SIGKILL, in the thread that commits: nothing else of it can run between the commit and the death.

    lab --{"home", "log", "moment"}--> nursery --fork--> pizzabot serve, doomed      lab <--{"pid"}-- nursery
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite

from pizzabot.agent.group_commit import GroupCommit
from pizzabot.wiring import CHANNEL_GROUP
from tests.lab.kill import Server

T = TypeVar("T")
GONE_SECONDS = 20.0
Edge = Literal["before", "after"]


@dataclass(frozen=True, slots=True)
class Moment:
    """The death comes `edge` the `nth` commit of a transaction in which a statement that writes, with its
    values behind it, matches `words` (a regular expression)."""

    edge: Edge
    words: str
    nth: int = 1

    def __str__(self) -> str:
        return f"{self.edge} {self.words}" + (f" ({self.nth})" if self.nth > 1 else "")


class Nursery:
    """The process that forks; see `shared`."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.lab.nursery"],
            env={"PATH": os.environ["PATH"], "PYTHONWARNINGS": "ignore"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(GONE_SECONDS)
        self._process.stdout.close()

    def bear(self, home: Path, log: Path, moment: Moment | None) -> int:
        """Start a server; its process id."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        asked = {"home": str(home), "log": str(log), "moment": asdict(moment) if moment else None}
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        return int(json.loads(self._process.stdout.readline())["pid"])


@cache
def shared() -> Nursery:
    """The nursery of this process, which ends with it."""
    nursery = Nursery()
    nursery.__enter__()
    atexit.register(nursery.__exit__)
    return nursery


class Doomed(Server):
    """A server on a home that lives and dies again and again."""

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self._nursery, self._pid = shared(), 0

    def start(self, moment: Moment | None = None) -> None:
        self._pid = self._nursery.bear(self.home, self.log, moment)

    @property
    def is_alive(self) -> bool:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, 0)
            return True
        return False

    def dies(self, seconds: float) -> bool:
        """Wait that long for its death; whether it came."""
        end = time.monotonic() + seconds
        while self.is_alive:
            if time.monotonic() > end:
                return False
            time.sleep(0.01)
        return True

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)
        if self.is_alive:
            self.kill()

    def _end(self, by: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, by)
        self.dies(GONE_SECONDS)


# -- inside of the nursery -----------------------------------------------------------------------------------


class _Doom:
    """Looks at each commit whether it is the one."""

    def __init__(self, moment: Moment) -> None:
        self._moment, self._words = moment, re.compile(moment.words, re.DOTALL)
        self._left, self._counting = moment.nth, threading.Lock()

    @property
    def is_before(self) -> bool:
        return self._moment.edge == "before"

    def committed(self, written: Sequence[str], commit: Callable[[], T]) -> T:
        is_it = self._is_it(written)
        if is_it and self.is_before:
            os.kill(os.getpid(), signal.SIGKILL)
        done = commit()
        if is_it:
            os.kill(os.getpid(), signal.SIGKILL)
        return done

    def _is_it(self, written: Sequence[str]) -> bool:
        if not any(self._words.search(statement) for statement in written):
            return False
        with self._counting:
            self._left -= 1
            return self._left == 0


def _watch_database(doom: _Doom) -> None:
    """Every commit through SQLAlchemy: the application's database, and that of the workflows."""
    commit: Any = SQLiteDialect_pysqlite.do_commit
    here = threading.local()  # by thread: what was written so far

    def note(_connection: Any, _cursor: Any, statement: str, values: Any, *_: Any) -> None:
        if statement.startswith(("INSERT", "UPDATE", "DELETE")):
            here.written = [*getattr(here, "written", ()), f"{statement} {values!r}"]

    def forget(_connection: Any) -> None:
        here.written = []

    def committed(dialect: Any, connection: Any) -> None:
        written, here.written = getattr(here, "written", []), []
        doom.committed(written, lambda: commit(dialect, connection))

    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    sa.event.listen(sa.Engine, "rollback", forget)
    setattr(SQLiteDialect_pysqlite, "do_commit", committed)  # noqa: B010


def _watch_checkpoints(doom: _Doom) -> None:
    transaction = GroupCommit._transaction

    def committed(self: Any, batch: Any) -> list[Any]:
        written: list[str] = []
        database = self._connect()

        def note(statement: str) -> None:
            if statement == "COMMIT":
                doom.committed(written, lambda: None)
            written.append(statement)

        # SQLite calls it before each statement; what comes after the commit is looked at once it is done.
        database.set_trace_callback(note if doom.is_before else written.append)
        done = transaction(self, batch)
        if not doom.is_before:
            doom.committed(written, lambda: None)
        return done

    setattr(GroupCommit, "_transaction", committed)  # noqa: B010


# What a server imports while it starts, and for its first run.
_NEEDED = (
    *(
        "dbos",
        "dbos._sys_db_sqlite",
        "pizzabot.cli.serve",
        "pizzabot.agent.graph",
        "pizzabot.agent.checkpoints",
    ),
    *(
        "pizzabot.tools.connection",
        "alembic.command",
        "langchain_openai",
        "openai.resources.chat.completions",
    ),
    *(
        "openai.resources.chat",
        "httpcore",
        "aiosmtpd.smtp",
        "uvicorn.lifespan.on",
        "uvicorn.protocols.http.auto",
    ),
    *("pizzabot.adapters.web.app", "markdown_it"),
)


def _import() -> None:
    for name in _NEEDED:
        import_module(name)
    for entry in entry_points(group=CHANNEL_GROUP):
        entry.load()


def _live(home: str, log: str, moment: dict[str, Any] | None) -> None:
    """Be the server, in a process just forked."""
    from pizzabot.cli.app import run

    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for stream, flags in ((0, os.O_RDONLY), (1, os.O_WRONLY)):
        os.dup2(os.open(os.devnull, flags), stream)
    os.dup2(os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), 2)
    if moment is not None:
        doom = _Doom(Moment(**moment))
        _watch_database(doom)
        _watch_checkpoints(doom)
    os._exit(run(["serve", "--home", home]))


def main() -> None:
    """Fork a server for each line of stdin, until it ends."""
    _import()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the dead
    for line in sys.stdin:
        asked = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _live(asked["home"], asked["log"], asked["moment"])
        print(json.dumps({"pid": pid}), flush=True)


if __name__ == "__main__":
    main()
