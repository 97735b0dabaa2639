"""How does a command end when it does not succeed? One line on stderr and an exit code, never a traceback."""

from __future__ import annotations

import os
import sys

from pizzabot.cli.text import visible

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

    def __init__(self, home: object) -> None:
        super().__init__(f"the server is not running on {visible(str(home))}; start it with `pizzabot serve`")


def tell(line: str) -> None:
    """A line for the person beside the result: it goes to stderr."""
    print(line, file=sys.stderr, flush=True)


def close_stdout() -> None:
    """After a broken pipe: let nothing be written any more, so that Python ends without a complaint."""
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, sys.stdout.fileno())
    os.close(quiet)
