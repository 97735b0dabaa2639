"""How do the words of the command line become one call, and its failure an exit code?"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from typing import Any

import typer

from pizzabot.cli.failures import FAILED, INTERRUPTED, WRONG_USAGE, Failed, close_stdout, tell
from pizzabot.cli.place import HomeOption
from pizzabot.cli.table import COMMANDS, GROUPS, Command, home_behind, quick_answer
from pizzabot.errors import PizzaBotError
from pizzabot.text import visible


def run(arguments: Sequence[str]) -> int:
    """Run the command; the exit code. What goes wrong is one line on stderr, whatever it was."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _call(home_behind(arguments))
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        close_stdout()
        return FAILED
    except KeyboardInterrupt:
        tell("pizzabot: interrupted")
        return INTERRUPTED
    except typer.TyperException as error:
        _show_usage_error(error)
        return WRONG_USAGE
    except Failed as error:
        for line in (f"pizzabot: {error}", *error.more):
            tell(line)
        return error.code
    except PizzaBotError as error:
        for each in (error, *getattr(error, "others", ())):
            tell(f"pizzabot: {visible(str(each))}")
        return FAILED
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        tell(f"pizzabot: {visible(place + (error.strerror or str(error)))}")
        return FAILED
    except Exception as error:  # noqa: BLE001 - the outermost place: a person gets a line, not a traceback
        tell(f"pizzabot: this should not happen: {type(error).__name__}: {visible(str(error))}")
        return FAILED


def _call(arguments: Sequence[str]) -> int:
    if (answer := quick_answer(arguments)) is not None:
        sys.stdout.write(answer)
        return 0
    result = build(arguments)(list(arguments), prog_name="pizzabot", standalone_mode=False)
    return result if isinstance(result, int) else 0


def build(arguments: Sequence[str]) -> typer.Typer:
    """The parser of the command that is meant; of all when the first word is none, to say what is near."""
    first = arguments[0] if arguments else ""
    meant = [row for row in COMMANDS if row.words.split()[0] == first]
    app = _typer("An inbox for background AI agents.")
    app.callback()(_root)
    groups: dict[str, typer.Typer] = {}
    for row in meant or COMMANDS:
        group, _, name = row.words.rpartition(" ")
        if group and group not in groups:
            groups[group] = _typer(GROUPS[group])
            groups[group].callback()(_root)
            app.add_typer(groups[group], name=group)
        target = groups[group] if group else app
        target.command(name, help=row.summary)(_loaded(row) if meant else _nothing)
    return app


def _typer(summary: str) -> typer.Typer:
    return typer.Typer(
        help=summary,
        add_completion=False,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )


def _root(home: HomeOption = None) -> None:
    """Nothing to do: the option stands behind the command by now. Here arrive its mistakes, and `--help`."""


def _nothing() -> None:
    """A command that is only named."""


def _loaded(row: Command) -> Callable[..., Any]:
    module, _, function = row.target.partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(f"pizzabot.cli.{module}"), function)
    return found


def _show_usage_error(error: typer.TyperException) -> None:
    context = getattr(error, "ctx", None)
    if error.format_message().startswith("Usage:"):  # a group without its command
        tell(error.format_message())
        return
    if context is not None:
        tell(context.get_usage())
    tell(f"pizzabot: {visible(error.format_message())}")
