"""How does a command end when it does not succeed? One line on stderr and an exit code, never a traceback."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

from pizzabot.text import visible

FAILED = 1
WRONG_USAGE = 2
NO_SERVER = 3
INTERRUPTED = 130


class Failed(Exception):
    """What was asked did not happen. `str` is for the person; every line of `more` adds a detail."""

    code = FAILED

    def __init__(self, message: str, *more: str) -> None:
        super().__init__(message)
        self.more = more


class NotRunning(Failed):
    """Nobody serves this home."""

    code = NO_SERVER

    def __init__(self, home: object, *, starting: bool = False) -> None:
        place = visible(str(home))
        if starting:
            super().__init__(f"the server on {place} is still starting; try again in a moment")
        else:
            super().__init__(
                f"the server is not running on {place}; start it with `{program()} serve --home {place}`"
            )


def program() -> str:
    """This program as a person can type it: by its name when that is found, else as it was called."""
    called = Path(sys.argv[0])
    found = shutil.which("pizzabot")
    if called.name != "pizzabot" or (found is not None and called.resolve() == Path(found).resolve()):
        return "pizzabot"
    return shlex.quote(os.path.relpath(called))


def tell(line: str) -> None:
    """A line for the person beside the result: it goes to stderr."""
    print(line, file=sys.stderr, flush=True)


def close_stdout() -> None:
    """After a broken pipe: let nothing be written any more, so that Python ends without a complaint."""
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, sys.stdout.fileno())
    os.close(quiet)
