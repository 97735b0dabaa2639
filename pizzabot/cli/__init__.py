"""The command line: `main` answers help at once, and loads what a command needs only for that command."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    from pizzabot.cli.table import quick_answer

    answer = quick_answer(given)
    if answer is None:
        from pizzabot.cli.app import run

        return run(given)
    try:
        sys.stdout.write(answer)
        sys.stdout.flush()
    except BrokenPipeError:
        from pizzabot.cli.failures import close_stdout

        close_stdout()
    return 0
