"""What does this room hand to the others? Frozen values, free of any library."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from pizzabot.tools.config import Transport

State = Literal["connected", "connecting", "down", "disabled", "invalid"]


@dataclass(frozen=True)
class ToolSpec:
    """A tool that can be called now. The hints come from the server, which is not to be trusted with them."""

    full_name: str
    server: str
    name: str
    description: str
    input_schema: dict[str, Any] = field(hash=False)
    read_only: bool
    destructive: bool
    idempotent: bool


@dataclass(frozen=True)
class ToolOutput:
    """What a call answered: as text, as content blocks (text and image), and as data if there is any."""

    text: str
    content: list[dict[str, Any]] = field(hash=False)
    structured: dict[str, Any] | None = field(default=None, hash=False)


@dataclass(frozen=True)
class ServerState:
    """How a server is. A connected one has an `error` too when some of its tools had to be left out."""

    name: str
    transport: Transport
    state: State
    error: str | None
    tools: tuple[ToolSpec, ...]
    stderr: tuple[str, ...]
