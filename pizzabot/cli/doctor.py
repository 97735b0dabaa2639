"""Is this installation healthy? Every check in order, one line each, with the cure for what is not."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from pizzabot.cli import checks
from pizzabot.cli.checks import Finding
from pizzabot.cli.failures import FAILED, tell
from pizzabot.cli.output import JsonOption, print_json
from pizzabot.cli.place import HomeOption, home_of
from pizzabot.home import Home
from pizzabot.logs import Redaction
from pizzabot.text import visible

if TYPE_CHECKING:
    from pizzabot.settings import Settings

_SERVERS_SECONDS = 35.0


def doctor(
    json: JsonOption = False,
    offline: Annotated[
        bool, typer.Option("--offline", help="Ask neither Slack, mail servers, the model, nor MCP servers.")
    ] = False,
    send: Annotated[
        bool, typer.Option("--send", help="Also send a mail to our own address and see it come back.")
    ] = False,
    home: HomeOption = None,
) -> int:
    """Check settings, home, triggers, database, Slack, email, model, MCP servers, skills, server and disk."""
    if offline and send:
        raise typer.BadParameter("give either --offline or --send")
    logging.getLogger().addHandler(logging.NullHandler())  # what fails is a line below, not a log
    found = list(examined(home_of(home), os.environ, offline=offline, send=send))
    if json:
        healthy = not any(finding.level == "error" for finding in found)
        print_json({"ok": healthy, "checks": [asdict(finding) for finding in found]})
    else:
        for finding in found:
            print(_line(finding))
    return FAILED if any(finding.level == "error" for finding in found) else 0


def _line(finding: Finding) -> str:
    cure = f" -> {visible(finding.cure)}" if finding.cure else ""
    return f"{finding.level:<8} {finding.what:<9} {visible(finding.text)}{cure}"


def examined(
    home: Home, environ: Mapping[str, str], *, offline: bool, send: bool = False
) -> Iterator[Finding]:
    """Every finding, with no secret in it."""
    if not home.path.is_dir():
        yield Finding("error", "home", f"there is no folder {home.path}", "make it with `pizzabot init`")
        return
    yield from checks.home_modes(home)
    settings, findings = checks.configured(home, environ)
    yield from findings
    yield checks.disk(home)
    if settings is None:
        return
    environ = _with_env_file(home, environ)
    from pizzabot.wiring import secrets_of

    redaction = Redaction(secrets_of(settings, home, environ))
    for finding in _of_settings(home, settings, environ, offline=offline, send=send):
        yield Finding(finding.level, finding.what, redaction.redacted(finding.text), finding.cure)


def _with_env_file(home: Home, environ: Mapping[str, str]) -> Mapping[str, str]:
    from pizzabot.settings import load_environment

    return load_environment(home.path, environ)


def _of_settings(
    home: Home, settings: Settings, environ: Mapping[str, str], *, offline: bool, send: bool
) -> Iterator[Finding]:
    yield from checks.channels(settings)
    yield from checks.triggers(home, settings)
    yield from checks.prices(settings)
    yield from checks.databases(home, settings)
    if not offline:
        yield from asyncio.run(checks.services(home, settings))
        if send:
            yield from asyncio.run(checks.trials(home, settings, tell))
        yield asyncio.run(checks.model(settings, environ))
        yield from asyncio.run(_connected(home, environ))
    else:
        yield from checks.files(home, environ)
        yield Finding(
            "ok",
            "services",
            "Slack, mail servers, the model and MCP servers were not asked, because of --offline",
        )
    yield checks.running(home, environ)


async def _connected(home: Home, environ: Mapping[str, str]) -> list[Finding]:
    """Connect to every MCP server, within its deadline, and look at the skills with what is there then."""
    from pizzabot.tools.catalogue import ToolCatalogue
    from pizzabot.tools.config import read_servers

    config = read_servers(home.mcp_json, environ)
    catalogue = ToolCatalogue(config)
    await catalogue.start()
    try:
        await catalogue.settle(_SERVERS_SECONDS)
        states, tools = catalogue.states(), catalogue.tools()
    finally:
        await catalogue.stop()
    return [*checks.servers(config, states), *checks.skills(home, tools, states)]
