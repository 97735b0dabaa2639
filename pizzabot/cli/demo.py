"""How is everything tried offline? A server on a home of its own, and the commands to type beside it."""

from __future__ import annotations

import os
import shlex
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from pizzabot.cli.failures import program
from pizzabot.cli.place import HomeOption, home_of
from pizzabot.cli.serve import HostOption, PortOption, run_server
from pizzabot.text import visible

if TYPE_CHECKING:
    from pizzabot.home import Home
    from pizzabot.wiring import Runtime

_HOME = ".demo"
_WITHOUT_MAIL = {"PIZZABOT_EMAIL__ENABLED": "false"}


def demo(host: HostOption = None, port: PortOption = None, home: HomeOption = None) -> None:
    """Write a demo home where there is none, and serve it, with a mailbox for the mail that it sends."""
    from pizzabot.demo.home import write_demo_home

    shown = home or _HOME
    found = home_of(shown)
    found.prepare()
    write_demo_home(found.path, sys.executable)
    with ExitStack() as stack:
        problem = _open_mailbox(found, stack)

        async def greeting(runtime: Runtime) -> list[str]:
            owner = runtime.people.owner
            issued = await runtime.doors.sessions.issue_code(owner.name, owner, "terminal")
            lines = try_lines(shown, found.path, f"{runtime.url}/login?code={issued.code}")
            door = getattr(runtime.channels.get("email"), "port", None)
            listen = runtime.settings.email.listen
            if door is not None and listen is not None:
                lines += mail_lines(shown, found.path, None if door == listen.port else door)
            return [*lines, *([problem] if problem else []), "", "Ctrl-C ends the server."]

        run_server(found, host, port, greeting, _WITHOUT_MAIL if problem else {})


def _open_mailbox(home: Home, stack: ExitStack) -> str | None:
    """Give the demo's outgoing mail somewhere to go; why there is no mail this time, when that fails."""
    from pizzabot.demo.home import ADDRESS, MAIL
    from pizzabot.settings import load_settings

    email = load_settings(home.path, os.environ).email
    if not email.enabled or email.address != ADDRESS or email.listen is None or email.smtp is None:
        return None  # an older home, or mail servers of one's own
    from pizzabot.demo.mailbox import mailbox, must_be_free

    for port in (email.listen.port, email.smtp.port):
        try:
            must_be_free(port)
        except OSError as error:
            why = f"port {port} cannot be used ({error.strerror})"
            return f"\nThis time without mail: {why}. End what uses it, or change it in {home.toml}."
    stack.enter_context(mailbox(home.path / MAIL, email.smtp.port, _tell_mail))
    return None


def _tell_mail(to: str, subject: str, file: Path) -> None:
    print(f"mail to {visible(to)}: {visible(subject)} -> {os.path.relpath(file)}", flush=True)


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
    ]


def mail_lines(home: str, path: Path, port: int | None) -> list[str]:
    """What to try by mail; `port` is the door's when the settings do not say it."""
    from pizzabot.demo.home import ADDRESS, MAIL, TRY

    send = f"{_python()} -m pizzabot.demo.send --home {shlex.quote(home)}"
    send += f" --port {port}" if port is not None else ""
    folder = shlex.quote(os.path.relpath(path / MAIL))
    return [
        "",
        f"Or by mail to {ADDRESS}, which stays on this machine; what it sends becomes files in {folder}:",
        f"  {send} {shlex.quote(TRY[0])}",
        f"  {send} --answer {folder}/FILE.eml Approve      (or: --set amount=40, or: 'Reject: too dear')",
    ]


def _python() -> str:
    """This Python as a person can type it here."""
    here = Path(sys.executable)
    return shlex.quote(str(here.relative_to(Path.cwd()) if here.is_relative_to(Path.cwd()) else here))
