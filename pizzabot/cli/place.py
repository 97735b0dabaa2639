"""Which home does a command mean, where does its server listen, and with whose token is it asked?"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from pizzabot.cli.failures import NotRunning
from pizzabot.home import Home, resolve_home, write_private

HomeOption = Annotated[
    str | None,
    typer.Option("--home", metavar="DIR", help="The home directory; else PIZZABOT_HOME, else ~/.pizzabot."),
]

_ANY_HOST = {"0.0.0.0": "127.0.0.1", "::": "::1"}


@dataclass(frozen=True, slots=True)
class Server:
    """A running server as a command reaches it."""

    home: Home
    url: str
    token: str


def home_of(option: str | None, environ: Mapping[str, str] = os.environ) -> Home:
    """The home that the command line or the environment names."""
    return Home(resolve_home(option, environ))


def address_file(home: Home) -> Path:
    """Where a running server says under which host and port it is reached."""
    return home.path / ".address"


def write_address(home: Home, host: str, port: int) -> None:
    """Say where this server is reached, for the commands of this machine."""
    write_private(address_file(home), f"{host} {port}\n".encode())


def server_of(home: Home, environ: Mapping[str, str] = os.environ) -> Server:
    """The server of that home.

    Raises:
        NotRunning: no process holds the home; asked first, because after a crash somebody else may listen on
            the port, and the token is not for them.
        ConfigError: there is no token.
    """
    if not is_running(home):
        raise NotRunning(home.path)
    host, port = _address(home)
    return Server(home, url_of(host, port), environ.get("PIZZABOT_TOKEN") or _owner_token(home))


def url_of(host: str, port: int) -> str:
    """Where a server that listens on that host is reached from this machine."""
    reached = _ANY_HOST.get(host, host)
    return f"http://[{reached}]:{port}" if ":" in reached else f"http://{reached}:{port}"


def is_running(home: Home) -> bool:
    """Whether the process that the lock file names is alive. To try the lock itself could break a start."""
    try:
        line = home.lock_file.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return False
    if not line.isdigit():
        return False
    try:
        os.kill(int(line), 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True


def _address(home: Home) -> tuple[str, int]:
    """Where the server of that home said that it listens. Nowhere else: the token is for it alone."""
    try:
        host, _, port = address_file(home).read_text(encoding="utf-8").strip().rpartition(" ")
        return host, int(port)
    except (OSError, ValueError) as error:
        raise NotRunning(home.path, starting=True) from error


def _owner_token(home: Home) -> str:
    from pizzabot.people import People
    from pizzabot.tokens import Tokens

    return Tokens(home, People([])).owner_token()
