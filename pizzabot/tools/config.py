"""Which MCP servers does `.mcp.json` name, and which entries cannot be used, and why?

    {"mcpServers": {"ledger": {"command": "python", "args": ["ledger.py"], "env": {"TOKEN": "${TOKEN}"}},
                    "wiki":   {"type": "http", "url": "https://…", "headers": {"Authorization": "…"},
                               "enabled": true, "timeout_seconds": 300, "start_timeout_seconds": 30}}}

A mistake in one entry makes that server invalid and leaves its siblings alone. A mistake that leaves no
doubtless reading of the file is a `Broken` with the line it stands on. Nothing here raises.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from pizzabot.tools.positions import keys_of

Transport = Literal["stdio", "http", "sse"]

CALL_TIMEOUT_SECONDS = 300.0
START_TIMEOUT_SECONDS = 30.0

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_TRANSPORTS: Mapping[str, Transport] = {
    "stdio": "stdio",
    "http": "http",
    "streamable-http": "http",
    "sse": "sse",
}
# Blotting these out would make every path and traceback unreadable and protect nothing.
_PUBLIC_VARIABLES = frozenset({"HOME", "LANG", "LOGNAME", "PATH", "PWD", "SHELL", "TMPDIR", "USER"})
_SHORTEST_SECRET = 4
_SHORTEST_LITERAL_SECRET = 8


@dataclass(frozen=True)
class Broken:
    """A place in a file that could not be used. `line` is None when the file as a whole is meant."""

    file: str
    line: int | None
    reason: str


@dataclass(frozen=True)
class ServerSpec:
    """One entry of the file, expanded. With `error` set nothing else may be relied on but the name."""

    name: str
    transport: Transport = "stdio"
    command: str = ""
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str | None = None
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    enabled: bool = True
    timeout_seconds: float = CALL_TIMEOUT_SECONDS
    start_timeout_seconds: float = START_TIMEOUT_SECONDS
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    error: str | None = None


@dataclass(frozen=True)
class McpConfig:
    """All servers of the file in its order, and what was wrong with the rest."""

    servers: tuple[ServerSpec, ...] = ()
    broken: tuple[Broken, ...] = ()

    @property
    def secrets(self) -> frozenset[str]:
        """Values that must never be shown: header values, environment values, expanded variables."""
        return frozenset[str]().union(*(server.secrets for server in self.servers))


def read_servers(path: Path, environ: Mapping[str, str]) -> McpConfig:
    """The servers of a file on disk; no file means no servers."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return McpConfig()
    except (OSError, UnicodeDecodeError) as error:
        return McpConfig(broken=(Broken(str(path), None, f"cannot be read: {error}"),))
    return parse_servers(text, str(path), environ)


def parse_servers(text: str, file: str, environ: Mapping[str, str]) -> McpConfig:
    """The servers that `text` describes. `file` is only named in messages."""
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        return McpConfig(broken=(Broken(file, error.lineno, f"not valid JSON: {error.msg}"),))
    except RecursionError:
        return McpConfig(broken=(Broken(file, None, "not valid JSON: nested too deeply"),))
    entries = document.get("mcpServers") if isinstance(document, dict) else None
    if document == {}:
        return McpConfig()
    if not isinstance(entries, dict):
        return McpConfig(broken=(Broken(file, 1, 'must be an object with an object "mcpServers"'),))

    keys = keys_of(text)
    doubled = [key for key in keys if key.repeated]
    broken = [Broken(file, key.line, f'the key "{key.path[-1]}" appears twice') for key in doubled]
    if any(len(key.path) == 1 for key in doubled):
        return McpConfig(broken=tuple(broken))
    lines = {key.path[1]: key.line for key in keys if len(key.path) == 2}

    servers = []
    for name, entry in entries.items():
        if not _NAME.fullmatch(name):
            reason = f"server name {name[:80]!r} must be 1 to 64 letters, digits, underscores or hyphens"
            broken.append(Broken(file, lines.get(name), reason))
            continue
        server = parse_server(name, entry, environ)
        twice = next((key.path[-1] for key in doubled if key.path[:2] == ("mcpServers", name)), None)
        if twice is not None and server.enabled:
            server = replace(server, error=f'server "{name}": the key "{twice}" appears twice')
        servers.append(server)
    return McpConfig(tuple(servers), tuple(broken))


def parse_server(name: str, entry: object, environ: Mapping[str, str]) -> ServerSpec:
    """One server. A mistake becomes `error`, which names the server, the key and the cure."""
    reading = _Reading(entry if isinstance(entry, dict) else {}, environ)
    try:
        if not isinstance(entry, dict):
            raise _Wrong("must be an object")
        enabled = reading.flag("enabled", True)
        if not enabled:
            return ServerSpec(name, transport=reading.transport(), enabled=False)
        return _read(name, reading)
    except _Wrong as wrong:
        return ServerSpec(
            name,
            secrets=frozenset(reading.secrets),
            error=redact(f'server "{name}": {wrong}', reading.secrets),
        )


def redact(text: str, secrets: frozenset[str] | set[str]) -> str:
    """`text` with every secret blotted out."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "***")
    return text


class _Wrong(Exception):
    """What is wrong with an entry; never leaves this module."""


def _read(name: str, reading: _Reading) -> ServerSpec:
    transport = reading.transport()
    if transport == "stdio":
        command, url = reading.text("command"), ""
        if not command:
            raise _Wrong('command: is missing; a server needs "command", or "type" and "url"')
    else:
        command, url = "", reading.text("url")
        reading.keep(_password(url))
    env, headers = reading.table("env"), reading.table("headers")
    for value in env.values():
        if not value.startswith("/"):
            reading.keep(value, _SHORTEST_LITERAL_SECRET)
    for value in headers.values():
        reading.keep(value)
        reading.keep(value.rpartition(" ")[2])  # the token without "Bearer"
    return ServerSpec(
        name=name,
        transport=transport,
        command=command,
        args=reading.texts("args"),
        env=env,
        cwd=reading.text("cwd") or None,
        url=url,
        headers=headers,
        timeout_seconds=reading.seconds("timeout_seconds", CALL_TIMEOUT_SECONDS),
        start_timeout_seconds=reading.seconds("start_timeout_seconds", START_TIMEOUT_SECONDS),
        secrets=frozenset(reading.secrets),
    )


def _password(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise _Wrong("url: must be an http or https address")
    return parts.password or ""


class _Reading:
    """Typed access to one entry that expands variables and remembers what came out of them."""

    def __init__(self, entry: Mapping[str, Any], environ: Mapping[str, str]) -> None:
        self._entry, self._environ = entry, environ
        self.secrets: set[str] = set()

    def keep(self, value: str, shortest: int = _SHORTEST_SECRET) -> None:
        # Output is redacted line by line, so a key of many lines is many secrets.
        self.secrets.update(line for line in value.splitlines() if len(line.strip()) >= shortest)

    def transport(self) -> Transport:
        kind = self._entry.get(
            "type", "http" if "url" in self._entry and "command" not in self._entry else "stdio"
        )
        if not isinstance(kind, str) or kind not in _TRANSPORTS:
            raise _Wrong(f"type: must be one of {', '.join(_TRANSPORTS)}")
        return _TRANSPORTS[kind]

    def flag(self, key: str, default: bool) -> bool:
        value = self._entry.get(key, default)
        if not isinstance(value, bool):
            raise _Wrong(f"{key}: must be true or false")
        return value

    def seconds(self, key: str, default: float) -> float:
        value = self._entry.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
            raise _Wrong(f"{key}: must be a number of seconds above 0")
        return float(value)

    def text(self, key: str) -> str:
        return self._expand(key, self._entry.get(key, ""))

    def texts(self, key: str) -> tuple[str, ...]:
        values = self._entry.get(key, [])
        if not isinstance(values, list):
            raise _Wrong(f"{key}: must be a list of strings")
        return tuple(self._expand(f"{key}[{index}]", value) for index, value in enumerate(values))

    def table(self, key: str) -> dict[str, str]:
        values = self._entry.get(key, {})
        if not isinstance(values, dict):
            raise _Wrong(f"{key}: must be an object of strings")
        return {name: self._expand(f"{key}.{name}", value) for name, value in values.items()}

    def _expand(self, key: str, value: object) -> str:
        if not isinstance(value, str):
            raise _Wrong(f"{key}: must be a string")
        if "\0" in value:
            raise _Wrong(f"{key}: must not hold a NUL character")
        return _VARIABLE.sub(lambda found: self._variable(key, found[1], found[2]), value)

    def _variable(self, key: str, variable: str, default: str | None) -> str:
        value = self._environ.get(variable)
        if default is not None and not value:
            return default
        if value is None:
            raise _Wrong(f"{key}: ${{{variable}}} is not set; set it, or write ${{{variable}:-default}}")
        if variable not in _PUBLIC_VARIABLES:
            self.keep(value)
        return value
