"""How is everything tried offline? A server on a home of its own, and the commands to type beside it."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pizzabot.cli.failures import program
from pizzabot.cli.place import HomeOption, home_of
from pizzabot.cli.serve import HostOption, PortOption, run_server

if TYPE_CHECKING:
    from pizzabot.wiring import Runtime

_HOME = ".demo"


def demo(host: HostOption = None, port: PortOption = None, home: HomeOption = None) -> None:
    """Write a demo home where there is none, and serve it."""
    from pizzabot.demo.home import write_demo_home

    shown = home or _HOME
    found = home_of(shown)
    found.prepare()
    write_demo_home(found.path, sys.executable)

    async def greeting(runtime: Runtime) -> list[str]:
        owner = runtime.people.owner
        issued = await runtime.doors.sessions.issue_code(owner.name, owner, "terminal")
        return try_lines(shown, found.path, f"{runtime.url}/login?code={issued.code}")

    run_server(found, host, port, greeting)


def try_lines(home: str, path: Path, login: str) -> list[str]:
    """What to open, and what to try in a second terminal, ready to be copied."""
    from pizzabot.demo.home import TRY

    command = f"{program()} --home {shlex.quote(home)}"
    return [
        "",
        f"Open the inbox in a browser: {login}",
        f"The link works once, within ten minutes; another one: {command} open",
        "Write there, for example:",
        *(f"  {line}" for line in TRY),
        "",
        "Or try this in a second terminal:",
        f"  {command} ask {shlex.quote(TRY[0])}",
        f"  {command} inbox action",
        f"  {command} approve ACTION      (or: edit ACTION amount=40, or: reject ACTION)",
        f"  {command} ask {shlex.quote(TRY[2])}",
        f"  {command} status",
        "",
        f"The expenses book is {path / 'expenses.csv'}; it changes only after you approved.",
        "Ctrl-C ends the server.",
    ]
