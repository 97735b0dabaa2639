"""How is a home made, saved, brought up to date and opened to people? Nothing here needs a running server."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from pizzabot.cli.failures import Failed, tell
from pizzabot.cli.output import count
from pizzabot.cli.place import HomeOption, home_of
from pizzabot.errors import ConfigError
from pizzabot.home import write_private
from pizzabot.text import visible

FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="The backup file.")]


def init(home: HomeOption = None) -> None:
    """Make the home and write a commented pizzabot.toml where there is none."""
    from pizzabot.settings import default_toml

    found = home_of(home)
    os.umask(0o077)
    found.prepare()
    if found.toml.exists():
        print(f"{found.toml} is there already; nothing was changed.")
        return
    text = default_toml()
    if sys.stdin.isatty() and sys.stdout.isatty():
        text = _asked(text)
    write_private(found.toml, text.encode())
    print(f"Wrote {found.toml}. Next: edit it, then `pizzabot doctor`, then `pizzabot serve`.")


def _asked(text: str) -> str:
    from pydantic import TypeAdapter

    from pizzabot.settings.values import ModelName, Name

    name = _ask("Your name", "", TypeAdapter(Name).validate_python)
    model = _ask("Model, as provider:model", "openai:gpt-5-mini", TypeAdapter(ModelName).validate_python)
    return filled(text, name, model)


def _ask(question: str, default: str, check: Callable[[str], Any]) -> str:
    while True:
        answer = input(f"{question}{f' [{default}]' if default else ' (empty: leave it out)'}: ").strip()
        if not answer:
            return default
        try:
            check(answer)
        except ValueError as error:
            tell(_why_not(error))
        else:
            return answer


def _why_not(error: ValueError) -> str:
    from pydantic import ValidationError

    if isinstance(error, ValidationError):
        return str(error.errors()[0].get("ctx", {}).get("error", error.errors()[0]["msg"]))
    return str(error)


def filled(text: str, name: str, model: str) -> str:
    """The commented file with the answers in it."""
    text = re.sub(r"(?m)^# model = .*$", lambda _: f"model = {toml_text(model)}", text, count=1)
    if not name:
        return text
    person = f'[[people]]\nname = {toml_text(name)}\nrole = "owner"'
    return re.sub(r'(?m)^# \[\[people\]\]\n# name = .*\n# role = "owner"', lambda _: person, text, count=1)


def toml_text(text: str) -> str:
    """A TOML string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def token(
    person: Annotated[str, typer.Argument(metavar="PERSON", help="A name from [[people]].")],
    home: HomeOption = None,
) -> None:
    """Print a new API token for a person; the one before is void. Nothing else is printed."""
    from pizzabot.settings import load_settings
    from pizzabot.tokens import Tokens

    found = home_of(home)
    if not found.path.is_dir():
        raise Failed(f"there is no home at {found.path}; make one with `pizzabot init`")
    os.umask(0o077)
    found.prepare()
    people = load_settings(found.path, os.environ).directory()
    print(Tokens(found, people).issue(person))


def migrate(home: HomeOption = None) -> None:
    """Bring the database to this version's tables; the server does the same at its start."""
    from pizzabot.database.migrate import migrate as bring_up_to_date
    from pizzabot.settings import load_settings

    found = home_of(home)
    os.umask(0o077)
    found.prepare()
    with found.lock():
        settings = load_settings(found.path, os.environ)
        bring_up_to_date(settings.database.url, found.app_database)
    print("The database has this version's tables.")


def backup(file: FileArgument, home: HomeOption = None) -> None:
    """Copy the home into one new file; the server may run meanwhile."""
    from pizzabot.database.backup import backup as save

    found = home_of(home)
    if not found.path.is_dir():
        raise Failed(f"there is no home at {found.path}")
    os.umask(0o077)
    made = save(found, file)
    print(f"Wrote {visible(str(made.path))} with {count(made.files, 'file')}. .env and tokens are not in it.")
    for name in made.skipped:
        tell(f"left out, because it is no plain file: {visible(name)}")


def restore(file: FileArgument, home: HomeOption = None) -> None:
    """Fill an empty home from a backup; no server may run on it."""
    from pizzabot.database.backup import restore as fill

    found = home_of(home)
    os.umask(0o077)
    made = fill(found, file)
    print(
        f"Restored {count(made.files, 'file')} into {found.path}. Put its .env back, then `pizzabot serve`."
    )


def skills_check(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A SKILL.md, or the folder it is in.")],
) -> None:
    """Read a skill as the server would, and say what it declares or what is wrong where."""
    from pizzabot.skills.frontmatter import read_skill

    file = path / "SKILL.md" if path.is_dir() else path
    try:
        skill = read_skill(file.absolute())
    except ConfigError as error:
        raise Failed(visible(str(error))) from error
    for gate in skill.gates:
        # Which tools a wildcard stands for is known only to a server; a gate beside all of them is a mistake.
        declared = skill.references
        if not any(
            tool.matches(str(gate.reference)) or gate.reference.matches(str(tool)) for tool in declared
        ):
            raise Failed(f"{visible(str(gate.reference))} in interruptOn is none of the skill's tools")
    print(f"{visible(skill.name)} is well-formed: {visible(skill.description)}")
    for tool in skill.tools:
        print(f"tool   {visible(tool)}")
    for gate in skill.gates:
        asks = f"asks ({', '.join(gate.decisions)})" if gate.ask else "does not ask"
        print(f"gate   {visible(str(gate.reference))} {asks}")


def version() -> None:
    """Print the version."""
    from pizzabot import __version__

    print(f"pizzabot {__version__}")


def slack_manifest(home: HomeOption = None) -> None:
    """Print the app's manifest as JSON: for Socket Mode, or with this server's address for mode "http"."""
    from importlib.metadata import entry_points

    from pizzabot.cli.output import print_json
    from pizzabot.settings import load_environment, load_settings

    path = home_of(home).path
    environ = load_environment(path, os.environ)
    # Switched off for this: the tokens come from the app that is made with it, so they are not there yet.
    settings = load_settings(path, {**environ, "PIZZABOT_SLACK__ENABLED": "false"})
    (entry,) = entry_points(group="pizzabot.manifests", name="slack")
    print_json(entry.load()(settings))
