"""Does what is configured work? Each check looks at one thing and says what it found, and the cure."""

from __future__ import annotations

import importlib
import os
import shutil
import sqlite3
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

from pizzabot.cli.serve import is_offer
from pizzabot.errors import ConfigError, ModelFailed, PizzaBotError
from pizzabot.home import PRIVATE_FILE, PRIVATE_FOLDER, Home
from pizzabot.text import visible

if TYPE_CHECKING:
    from pizzabot.settings import Settings
    from pizzabot.skills.catalogue import SkillCatalogue
    from pizzabot.tools.config import McpConfig
    from pizzabot.tools.values import ServerState, ToolSpec

Level = Literal["ok", "warning", "error"]

CHECKS_GROUP = "pizzabot.checks"
TRIALS_GROUP = "pizzabot.trials"
MODEL_SECONDS = 30.0
_POSTGRES_SECONDS = 10
_LITTLE_BYTES, _TOO_LITTLE_BYTES = 1_000_000_000, 100_000_000


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of doctor: what was looked at, how it is, and for what is not ok the cure."""

    level: Level
    what: str
    text: str
    cure: str = ""


def home_modes(home: Home) -> Iterator[Finding]:
    """Whether only its owner can read the home."""
    open_to_others = [
        path
        for path, mode in [
            (home.path, PRIVATE_FOLDER),
            *((folder, PRIVATE_FOLDER) for folder in home.folders),
            *((file, PRIVATE_FILE) for file in home.files),
        ]
        if _is_open(path, mode)
    ]
    for path in open_to_others:
        yield Finding("warning", "home", f"{path} can be read by others", f"chmod go-rwx {path}")
    if not open_to_others:
        yield Finding("ok", "home", f"{home.path} is private")


def _is_open(path: Path, mode: int) -> bool:
    try:
        return bool(stat.S_IMODE(path.lstat().st_mode) & ~mode & 0o077)
    except OSError:
        return False


def configured(home: Home, environ: Mapping[str, str]) -> tuple[Settings | None, list[Finding]]:
    """The settings, or everything that is wrong with them."""
    from pizzabot.settings import load_settings

    try:
        settings = load_settings(home.path, environ)
    except ConfigError as error:
        wrong = (error, *getattr(error, "others", ()))
        return None, [Finding("error", "settings", str(each), "correct it there") for each in wrong]
    source = home.toml if home.toml.exists() else "the defaults; there is no pizzabot.toml"
    return settings, [Finding("ok", "settings", f"read from {source}")]


def channels(settings: Settings) -> Iterator[Finding]:
    """Whether this version acts on everything that is configured."""
    from pizzabot.settings.later import not_acted_on
    from pizzabot.wiring import CHANNEL_GROUP

    installed = {entry.name for entry in entry_points(group=CHANNEL_GROUP)}
    for line in not_acted_on(settings, installed):
        yield Finding("warning", "settings", line, "remove it, or wait for the version that has it")


def triggers(home: Home, settings: Settings) -> Iterator[Finding]:
    """Whether every table of `[[triggers]]` can be one, has the skills that it names, and is heard."""
    from pizzabot.clock import SystemClock
    from pizzabot.errors import Invalid
    from pizzabot.triggers.places import unheard
    from pizzabot.triggers.trigger import made_from_table

    people, now, wrong = settings.directory(), SystemClock().now(), False
    for table in settings.triggers:
        try:
            made_from_table(table.fields(), id="", people=people, now=now)
        except Invalid as error:
            wrong = True
            yield Finding("error", "triggers", str(error), "correct it in pizzabot.toml")
    catalogue = _catalogue(home)
    for table in settings.triggers:
        for skill in table.skills or ():
            if not catalogue.is_usable(skill):
                wrong = True
                said = f'[[triggers]] "{table.name}": there is no skill {skill} that can be used'
                cure = "correct it, or add the skill; `pizzabot skills list` shows them"
                yield Finding("error", "triggers", said, cure)
    for table in settings.triggers:
        for warning in unheard(table.channels, lambda channel: getattr(settings, channel).enabled):
            said = f'[[triggers]] "{table.name}": {warning.rstrip(".")}'
            yield Finding("warning", "triggers", said, "switch it on in its table, or name another place")
    if settings.triggers and not wrong:
        count = len(settings.triggers)
        yield Finding("ok", "triggers", f"{count} in pizzabot.toml")


def prices(settings: Settings) -> Iterator[Finding]:
    """Whether budgets of money hold for every model that is configured."""
    from pizzabot.agent.prices import is_priced

    models = {settings.model, *(t.model for t in settings.triggers if t.model is not None)}
    for model in sorted(model for model in models if not is_priced(model, settings.prices)):
        yield Finding(
            "warning",
            "settings",
            f"the price of {model} is not known: its calls count as no money, so no budget in dollars holds",
            f'write input and output under [prices."{model}"], or set limits.run_tokens and day_tokens',
        )


async def services(home: Home, settings: Settings) -> list[Finding]:
    """Whether the services that channels talk to let us in; each channel asks its own."""
    found: list[Finding] = []
    for entry in entry_points(group=CHECKS_GROUP):
        for level, text, cure in await entry.load()(settings, home.path):
            found.append(Finding(level, entry.name, text, cure))
    return found


async def trials(home: Home, settings: Settings, tell: Callable[[str], None]) -> list[Finding]:
    """Whether what a channel sends comes back to it; `tell` hears how far that is."""
    found: list[Finding] = []
    for entry in entry_points(group=TRIALS_GROUP):
        for level, text, cure in await entry.load()(settings, home.path, tell):
            found.append(Finding(level, entry.name, text, cure))
    return found or [Finding("ok", "send", "no channel that is on can send to itself")]


def files(home: Home, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Whether `.mcp.json` and the skills can be understood, without asking any server."""
    from pizzabot.skills.catalogue import SkillRoot, builtin_root, discover
    from pizzabot.tools.config import read_servers

    config = read_servers(home.mcp_json, environ)
    for broken in config.broken:
        place = f"{broken.file}:{broken.line}" if broken.line else broken.file
        yield Finding("error", "mcp", f"{place}: {broken.reason}", "correct it there")
    for server in config.servers:
        if server.error:
            yield Finding("error", f"mcp {server.name}", server.error, "correct .mcp.json")
    for skill in discover([SkillRoot(home.skills, "home"), builtin_root()]).broken:
        place = f"{skill.path}:{skill.line}" if skill.line else str(skill.path)
        yield Finding("error", f"skill {skill.id}", f"{place}: {skill.reason}", "correct it there")


def databases(home: Home, settings: Settings) -> Iterator[Finding]:
    """Whether the databases are whole."""
    if settings.database.url:
        yield _postgres(settings.database.url)
    for path in (home.app_database, home.checkpoints, home.workflows, home.store):
        if path.exists():
            yield _sqlite(path)
    if not settings.database.url and not home.app_database.exists():
        yield Finding("ok", "database", "not made yet; the first `pizzabot serve` makes it")


def _sqlite(path: Path) -> Finding:
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=10)) as connection:
            answer = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
    except sqlite3.Error as error:
        answer = str(error)
    if answer == "ok":
        return Finding("ok", "database", f"{path.name} is whole")
    cure = "stop the server and run `pizzabot restore` with the newest backup"
    return Finding("error", "database", f"{path} is damaged: {answer}", cure)


def _postgres(url: str) -> Finding:
    try:
        psycopg: Any = importlib.import_module("psycopg")  # comes with an extra, and need not be there
    except ImportError:
        return Finding("error", "database", "PostgreSQL needs its driver", "pip install 'pizzabot[postgres]'")
    try:
        with psycopg.connect(url, connect_timeout=_POSTGRES_SECONDS) as connection:
            connection.execute("SELECT 1")
    except psycopg.Error as error:
        reason = str(error).strip().partition("\n")[0]
        return Finding("error", "database", f"PostgreSQL does not answer: {reason}", "check database.url")
    return Finding("ok", "database", "PostgreSQL answers")


async def model(settings: Settings, environ: Mapping[str, str]) -> Finding:
    """Whether the model answers a tiny question; the demo model is not asked."""
    import asyncio

    from pizzabot.agent.models import classify, label, make_model

    name = label(settings.model)
    if settings.model.startswith("demo:"):
        return Finding("ok", "model", name)
    table = settings.models.get(settings.model.partition(":")[0])
    os.environ.update({key: value for key, value in environ.items() if key not in os.environ})
    try:
        made = await asyncio.to_thread(
            make_model, settings.model, table.arguments() if table else {}, environ
        )
        await asyncio.wait_for(made.ainvoke("Answer with the word ok."), MODEL_SECONDS)
    except Exception as error:  # noqa: BLE001 - every library has its own errors; classify knows them
        failure: ModelFailed = classify(error)
        return Finding("error", "model", f"{name}: {failure}", "correct model and [models.*], or the key")
    return Finding("ok", "model", f"{name} answers")


def servers(config: McpConfig, states: Sequence[ServerState]) -> Iterator[Finding]:
    """Whether every MCP server that is switched on could be connected to."""
    for broken in config.broken:
        place = f"{broken.file}:{broken.line}" if broken.line else broken.file
        yield Finding("error", "mcp", f"{place}: {broken.reason}", "correct it there")
    for state in states:
        if state.state == "connected":
            left_out = f"; {state.error}" if state.error else ""
            level: Level = "warning" if state.error else "ok"
            yield Finding(level, "mcp", f"{state.name} is connected, {len(state.tools)} tools{left_out}")
        elif state.state == "disabled":
            yield Finding("ok", "mcp", f"{state.name} is switched off")
        else:
            why = state.error or "it did not answer in time"
            yield Finding(
                "error", "mcp", f"{state.name} is not there: {why}", "correct its entry in .mcp.json"
            )


def _catalogue(home: Home) -> SkillCatalogue:
    from pizzabot.skills.catalogue import SkillRoot, builtin_root, discover

    return discover([SkillRoot(home.skills, "home"), builtin_root()])


def skills(home: Home, tools: Mapping[str, ToolSpec], states: Sequence[ServerState]) -> Iterator[Finding]:
    """Whether every skill can be used, and whether every server is used by one."""
    from pizzabot.skills.catalogue import listed, readiness

    catalogue = _catalogue(home)
    by_name = {state.name: state.state for state in states}
    for unreadable in catalogue.unreadable:
        yield Finding("error", "skills", f"{unreadable.file}: {unreadable.reason}", "make it readable")
    for skill in catalogue.skills:
        row = listed(skill, readiness(skill, tools, by_name))
        if row["state"] in ("ready", "disabled"):
            yield Finding("ok", "skills", f"{skill.id} is {row['state']}")
        elif is_offer(row, by_name):
            yield Finding("ok", "skills", f"{skill.id} is built in and waits for its MCP server")
        else:
            place = f"{row['file']}:{row['line']}" if row.get("line") else row["file"]
            yield Finding("error", "skills", f"{skill.id}: {row.get('reason')}", f"correct {place}")
    references = [r for s in catalogue.skills if s.content and not s.disabled for r in s.content.references]
    for state in states:
        names = [tool.full_name for tool in state.tools]
        if names and not any(reference.matches(name) for reference in references for name in names):
            cure = f'add to the header of a SKILL.md: tools: "mcp:{state.name}:*"'
            yield Finding("warning", "skills", f"no skill names a tool of the MCP server {state.name}", cure)


def disk(home: Home) -> Finding:
    """Whether there is room to write."""
    free = shutil.disk_usage(home.path).free
    text = f"{free / 1e9:.1f} GB free"
    if free < _TOO_LITTLE_BYTES:
        return Finding("error", "disk", text, "make room: nothing can be stored safely")
    if free < _LITTLE_BYTES:
        return Finding("warning", "disk", text, "make room before it runs out")
    return Finding("ok", "disk", text)


def running(home: Home, environ: Mapping[str, str]) -> Finding:
    """Whether a server serves this home and answers."""
    from pizzabot import __version__
    from pizzabot.cli.client import connected
    from pizzabot.cli.failures import Failed, NotRunning

    try:
        with connected(str(home.path), environ) as api:
            served = str(api.get("/api/me").get("version", __version__))
            url = api.server.url
    except NotRunning:
        return Finding("warning", "server", "is not running", "start it with `pizzabot serve`")
    except (Failed, PizzaBotError) as error:
        return Finding("error", "server", f"runs and does not answer: {visible(str(error))}", "restart it")
    if served != __version__:
        text = f"{url} runs version {visible(served)}, this is {__version__}"
        return Finding("warning", "server", text, "restart it")
    return Finding("ok", "server", f"{url} answers")
