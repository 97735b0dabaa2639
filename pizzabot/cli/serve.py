"""How does a server start, say that it is ready, and end?"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import shlex
import signal
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pizzabot.cli.failures import program
from pizzabot.cli.place import HomeOption, address_file, home_of, url_of, write_address
from pizzabot.errors import ConfigError
from pizzabot.home import Home
from pizzabot.text import visible

if TYPE_CHECKING:
    from pizzabot.settings import Settings
    from pizzabot.wiring import Runtime

logger = logging.getLogger(__name__)
Greeting = Callable[["Runtime"], Awaitable[list[str]]]

_SERVERS_SETTLE_SECONDS = 30.0

HostOption = Annotated[
    str | None, typer.Option("--host", metavar="HOST", help="Listen there instead of on web.host.")
]
PortOption = Annotated[
    int | None,
    typer.Option("--port", min=0, max=65535, help="Listen there instead of on web.port; 0 takes a free one."),
]


def serve(host: HostOption = None, port: PortOption = None, home: HomeOption = None) -> None:
    """Run the server until SIGTERM or Ctrl-C."""
    at_home = f" --home {shlex.quote(home)}" if home else ""

    async def greeting(_runtime: Runtime) -> list[str]:
        return [f"Open the inbox in a browser with the link of: {program()} open{at_home}"]

    run_server(home_of(home), host, port, greeting)


def run_server(
    home: Home, host: str | None, port: int | None, greeting: Greeting, more: Mapping[str, str] | None = None
) -> None:
    """Own the home, serve until a signal comes, and close cleanly; `greeting` are more lines at the start.

    `more` are settings as variables, over the environment.

    Raises:
        ConfigError: something that is configured is wrong.
        HomeLocked: another process serves this home.
    """
    os.umask(0o077)
    home.prepare()
    with home.lock():
        environ = serving_environment(home.path, {**os.environ, **(more or {})}, host, port)
        settings = _configured(home, environ)
        with contextlib.suppress(FileNotFoundError):
            address_file(home).unlink()  # of a server that was killed
        try:
            with asyncio.Runner(loop_factory=_loop_factory()) as runner:
                runner.run(_serve(home, settings, environ, greeting))
        finally:
            with contextlib.suppress(FileNotFoundError):
                address_file(home).unlink()
            gc.freeze()  # or Python, at its end, looks once more through all that the agent loaded: a second


def serving_environment(
    home: Path, environ: Mapping[str, str], host: str | None, port: int | None
) -> dict[str, str]:
    """The environment with `.env` under it, and the options as the settings they stand for.

    As settings they are checked like settings: `--host 0.0.0.0` is no way around `allowed_origins`.
    """
    from pizzabot.settings import load_environment

    given = {"PIZZABOT_WEB__HOST": host, "PIZZABOT_WEB__PORT": str(port) if port is not None else None}
    options = {name: value for name, value in given.items() if value is not None}
    return load_environment(home, environ) | options


def _configured(home: Home, environ: Mapping[str, str]) -> Settings:
    from pizzabot import logs
    from pizzabot.settings import load_settings
    from pizzabot.wiring import secrets_of

    settings = load_settings(home.path, environ)
    logs.configure(
        home.logs,
        settings.log_level,
        secrets_of(settings, home, environ),
        console_format=settings.log_format,
        file_bytes=settings.log_file_bytes,
        old_files=settings.log_old_files,
    )
    # Model clients look for their keys in the process's own environment.
    os.environ.update({name: value for name, value in environ.items() if name not in os.environ})
    return settings


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where it runs, a quarter faster; the standard loop elsewhere."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


async def _serve(
    home: Home,
    settings: Settings,
    environ: Mapping[str, str],
    greeting: Greeting,
) -> None:
    from pizzabot.agent.models import label
    from pizzabot.wiring import open_runtime

    with _signalled() as stopping:
        async with open_runtime(home, settings, environ) as runtime:
            port = getattr(runtime.channels.get("api"), "port", settings.web.port)
            write_address(home, settings.web.host, port)
            where = url_of(settings.web.host, port)
            print(f"Pizza Bot is ready at {where} with {label(settings.model)}, home {home.path}", flush=True)
            for line in [*await _broken(runtime), *await greeting(runtime)]:
                print(line, flush=True)
            watch = asyncio.create_task(_tell_unready(runtime), name="unready")
            await _until_stopped(stopping, runtime.working)
            print("Closing; what is unfinished goes on at the next start.", flush=True)
            watch.cancel()
            await asyncio.gather(watch, return_exceptions=True)
            with contextlib.suppress(FileNotFoundError):
                address_file(home).unlink()


async def _until_stopped(stopping: asyncio.Event, working: asyncio.Task[None]) -> None:
    """Wait for a signal; a server that cannot start runs ends with the reason instead of waiting."""
    signalled = asyncio.create_task(stopping.wait(), name="signal")
    await asyncio.wait({signalled, working}, return_when=asyncio.FIRST_COMPLETED)
    if working.done() and not working.cancelled() and (failure := working.exception()) is not None:
        signalled.cancel()
        raise ConfigError("workflows.sqlite", f"runs cannot be started: {type(failure).__name__}: {failure}")
    await signalled


@contextlib.contextmanager
def _signalled() -> Iterator[asyncio.Event]:
    """An event that the first SIGTERM or SIGINT sets; the second one ends the process at once."""
    stopping, loop = asyncio.Event(), asyncio.get_running_loop()

    def received(number: int) -> None:
        if stopping.is_set():
            os._exit(128 + number)
        stopping.set()

    numbers = (signal.SIGTERM, signal.SIGINT)
    for number in numbers:
        loop.add_signal_handler(number, received, number)
    try:
        yield stopping
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


async def _broken(runtime: Runtime) -> list[str]:
    from pizzabot.cli.checks import prices
    from pizzabot.settings.later import not_acted_on

    status = await runtime.doors.reports.status(runtime.people.owner)
    broken = [f"broken: {place_of(row)}: {visible(row['reason'])}" for row in status["broken"]]
    unused = [f"not used: {visible(line)}" for line in not_acted_on(runtime.settings, runtime.channels)]
    return broken + unused + [f"not known: {visible(found.text)}" for found in prices(runtime.settings)]


def place_of(row: Mapping[str, Any]) -> str:
    """The file, and the line where it is known."""
    return visible(str(row["file"])) + (f":{row['line']}" if row.get("line") else "")


async def _tell_unready(runtime: Runtime) -> None:
    """Once the MCP servers had their time to connect, say which are not there and what cannot be used."""
    await runtime.tools.settle(_SERVERS_SETTLE_SECONDS)
    reports = runtime.doors.reports
    for line in unready_lines(reports.servers(), reports.skills(runtime.people.owner)):
        print(line, flush=True)


def unready_lines(servers: Sequence[Mapping[str, Any]], skills: Sequence[Mapping[str, Any]]) -> list[str]:
    """One line for each server that is not there and each skill that cannot be used."""
    lines = [
        f"not ready: MCP server {visible(row['name'])} is {row['state']}"
        + (f": {visible(row['error'])}" if row.get("error") else "")
        for row in servers
        if row["state"] not in ("connected", "disabled")
    ]
    names = [row["name"] for row in servers]
    return lines + [
        f"not ready: skill {visible(row['id'])}: {visible(row.get('reason') or row['state'])}"
        for row in skills
        if row["state"] in ("unavailable", "loading") and not is_offer(row, names)
    ]


def is_offer(skill: Mapping[str, Any], servers: Collection[str]) -> bool:
    """Whether this built-in skill is for a server that nobody configured: an offer, nothing to repair."""
    wanted = {tool.split(":")[1] for tool in skill["tools"] if tool.startswith("mcp:")}
    return skill["source"] == "builtin" and bool(wanted) and wanted.isdisjoint(servers)
