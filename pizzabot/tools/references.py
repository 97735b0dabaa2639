"""Which tools does a line in a skill or an approval rule mean?

    mcp:ledger:pay_invoice   this tool
    mcp:ledger:pay_*         tools of the server that begin so
    mcp:ledger:*             every tool of the server
    builtin:eval             a tool of this product

The full name of a tool is the first and the last form.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# Names are listed one by one: a typo in a gate must be refused, not match nothing.
BUILTIN_TOOLS = frozenset({"eval"})

SERVER_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
TOOL_NAME = re.compile(r"[A-Za-z0-9_.:/-]{1,128}")


@dataclass(frozen=True)
class ToolReference:
    """A parsed reference. `server` is None for built-in tools; `name` is the part before a final `*`."""

    server: str | None
    name: str
    wildcard: bool = False

    def __str__(self) -> str:
        place = "builtin" if self.server is None else f"mcp:{self.server}"
        return f"{place}:{self.name}{'*' if self.wildcard else ''}"

    def matches(self, full_name: str) -> bool:
        """Whether the tool of this full name is meant."""
        if self.wildcard:
            beginning = str(self)[:-1]
            return full_name.startswith(beginning) and len(full_name) > len(f"mcp:{self.server}:")
        return full_name == str(self)

    @property
    def specificity(self) -> tuple[bool, int]:
        """Larger is closer: exact beats a longer prefix beats a shorter prefix beats `*`."""
        return (not self.wildcard, len(self.name))


def full_name(server: str, tool: str) -> str:
    """The name under which the product knows a tool of an MCP server."""
    return f"mcp:{server}:{tool}"


def parse_reference(text: str) -> ToolReference:
    """Read one reference.

    Raises:
        ValueError: the text is no reference; the message says what it should look like.
    """
    text = text.strip()
    kind, _, rest = text.partition(":")
    if kind == "builtin":
        if rest not in BUILTIN_TOOLS:
            known = ", ".join(f"builtin:{name}" for name in sorted(BUILTIN_TOOLS))
            raise ValueError(f"{text!r}: there is no such built-in tool; there is {known}")
        return ToolReference(None, rest)
    if kind != "mcp":
        raise ValueError(f"{text!r}: a tool reference starts with mcp: or builtin:, as in mcp:server:tool")
    server, colon, tool = rest.partition(":")
    if not SERVER_NAME.fullmatch(server):
        raise ValueError(f"{text!r}: the server name must be 1 to 64 letters, digits, underscores or hyphens")
    if not colon or not tool:
        raise ValueError(f"{text!r}: names no tool; write mcp:{server}:* for all tools of the server")
    wildcard = tool.endswith("*")
    name = tool.removesuffix("*")
    if "*" in name:
        raise ValueError(f"{text!r}: one * is allowed, at the end")
    if name and not TOOL_NAME.fullmatch(name):
        raise ValueError(f"{text!r}: the tool name has a character that no tool name has, or is too long")
    return ToolReference(server, name, wildcard)
