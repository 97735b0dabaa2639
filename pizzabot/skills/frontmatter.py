"""What does a SKILL.md declare, and if it cannot be understood: why, and on which line?

A gate that cannot be read makes the whole skill broken: a typo must never open what the author closed.
Everything else that other products put into these files is tolerated.
"""

from __future__ import annotations

import difflib
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pizzabot.errors import ConfigError
from pizzabot.skills.header import LARGEST_BYTES, KeyLines, read_header
from pizzabot.tools.references import ToolReference, parse_reference

DECISIONS = ("approve", "edit", "reject", "respond")
DEFAULT_DECISIONS = ("approve", "edit", "reject")

_LONGEST_REFERENCE = 200
_ID = re.compile(r"[a-z0-9_.-]{1,64}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class GateDeclaration:
    """One line of `interruptOn`. `ask` False loosens, where the operator lets skills loosen."""

    reference: ToolReference
    ask: bool
    decisions: tuple[str, ...] = DEFAULT_DECISIONS


@dataclass(frozen=True, slots=True)
class SkillFile:
    """A SKILL.md that was understood. `id` is the folder's name, `tools` are references in their order."""

    id: str
    name: str
    description: str
    tools: tuple[str, ...]
    gates: tuple[GateDeclaration, ...]
    display_name: str
    body: str
    path: Path

    @property
    def references(self) -> tuple[ToolReference, ...]:
        """The declared tools, parsed."""
        return tuple(parse_reference(text) for text in self.tools)


def read_skill(path: Path) -> SkillFile:
    """Read the SKILL.md at `path`.

    Raises:
        ConfigError: with line and reason, when it cannot be read or understood.
    """
    try:
        descriptor = os.open(
            path, os.O_RDONLY | os.O_NONBLOCK
        )  # a pipe in the place of a file must not hang us
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise ConfigError(str(path), "is not a regular file")
            raw = file.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise ConfigError(str(path), f"cannot be read ({error.strerror})") from error
    return parse_skill(raw, path)


def parse_skill(raw: bytes, path: Path) -> SkillFile:
    """Understand the bytes of a SKILL.md; the folder of `path` gives the id.

    Raises:
        ConfigError: with line and reason.
    """
    declared, lines, body = read_header(raw, path)
    for key in declared:
        _refuse_misspelt_gate(key, path, lines.get((key,)))
    metadata = declared.get("metadata")
    if isinstance(metadata, dict):
        for key in metadata:
            _refuse_gate_in_metadata(key, path, lines.get(("metadata",)))
    name = _text(declared, "name", path, lines)
    return SkillFile(
        id=_id(path),
        name=name,
        description=_text(declared, "description", path, lines),
        tools=tuple(dict.fromkeys(_tools(declared, path, lines))),
        gates=tuple(_gates(declared, path, lines)),
        display_name=_display_name(metadata) or name,
        body=body,
        path=path,
    )


def _id(path: Path) -> str:
    name = path.parent.name
    if not _ID.fullmatch(name):
        raise ConfigError(
            str(path),
            "lies in a folder whose name is no id; use 1 to 64 letters, digits, hyphens, underscores, dots",
        )
    return name


def _text(declared: Mapping[Any, Any], key: str, path: Path, lines: KeyLines) -> str:
    value = declared.get(key)
    if value is None or value == "":
        raise ConfigError(str(path), f"is missing; add {key}: …", key=key, line=lines.get((key,), 1))
    if not isinstance(value, str) or not value.strip():
        raise ConfigError(str(path), "must be text; write it in quotes", key=key, line=lines.get((key,)))
    return value.strip()


def _display_name(metadata: object) -> str | None:
    value = metadata.get("display-name") if isinstance(metadata, dict) else None
    return value.strip() or None if isinstance(value, str) else None


def _tools(declared: Mapping[Any, Any], path: Path, lines: KeyLines) -> Iterator[str]:
    for key in ("tools", "mcp"):
        value = declared.get(key)
        items = re.split(r"[,\s]+", value.strip()) if isinstance(value, str) else value
        if items is None:
            continue
        if not isinstance(items, list):
            raise ConfigError(
                str(path), "must be a list or a line of tool references", key=key, line=lines.get((key,))
            )
        for index, item in enumerate(items):
            if item == "" and isinstance(value, str):
                continue
            yield str(_reference(item, key, path, lines.get((key, index), lines.get((key,)))))


def _reference(item: object, key: str, path: Path, line: int | None) -> ToolReference:
    if not isinstance(item, str):
        raise ConfigError(
            str(path), "holds something that is no text; write mcp:server:tool", key=key, line=line
        )
    if len(item) > _LONGEST_REFERENCE:
        raise ConfigError(str(path), "holds a text that is too long for a tool", key=key, line=line)
    try:
        return parse_reference(item)
    except ValueError as error:
        raise ConfigError(str(path), str(error), key=key, line=line) from error


def _gates(declared: Mapping[Any, Any], path: Path, lines: KeyLines) -> Iterator[GateDeclaration]:
    if "interruptOn" not in declared:
        return
    value = declared["interruptOn"]
    if not isinstance(value, dict) or not value:
        raise ConfigError(
            str(path),
            "must map tool references to true or allowedDecisions; remove it when nothing is gated",
            key="interruptOn",
            line=lines.get(("interruptOn",)),
        )
    seen: set[str] = set()
    for key, answer in value.items():
        line = lines.get(("interruptOn", key), lines.get(("interruptOn",)))
        reference = _reference(key, "interruptOn", path, line)
        if str(reference) in seen:
            raise ConfigError(str(path), f"{reference} stands twice", key="interruptOn", line=line)
        seen.add(str(reference))
        yield _gate(reference, answer, path, line)


def _gate(reference: ToolReference, answer: object, path: Path, line: int | None) -> GateDeclaration:
    if isinstance(answer, bool):
        return GateDeclaration(reference, ask=answer)
    key = f"interruptOn.{reference}"
    if not isinstance(answer, dict):
        raise ConfigError(str(path), "must be true, false or allowedDecisions: […]", key=key, line=line)
    for unknown in answer.keys() - {"allowedDecisions"}:
        raise ConfigError(
            str(path), f"{unknown!r} is not known here; write allowedDecisions: […]", key=key, line=line
        )
    decisions = answer.get("allowedDecisions")
    if not isinstance(decisions, list) or not decisions:
        raise ConfigError(
            str(path), "allowedDecisions must be a list with at least one decision", key=key, line=line
        )
    for decision in decisions:
        if decision not in DECISIONS:
            raise ConfigError(
                str(path), f"{decision!r} is no decision; write {', '.join(DECISIONS)}", key=key, line=line
            )
    return GateDeclaration(reference, ask=True, decisions=tuple(dict.fromkeys(decisions)))


def _refuse_misspelt_gate(key: object, path: Path, line: int | None) -> None:
    if key == "interruptOn" or not isinstance(key, str):
        return
    plain = re.sub(r"[^a-z]", "", key.lower())
    if difflib.SequenceMatcher(None, plain[:40], "interrupton").ratio() > 0.8:
        raise ConfigError(str(path), "is not a known key; did you mean interruptOn?", key=key[:60], line=line)


def _refuse_gate_in_metadata(key: object, path: Path, line: int | None) -> None:
    if isinstance(key, str) and re.sub(r"[^a-z]", "", key.lower()) == "interrupton":
        raise ConfigError(
            str(path), "stands inside metadata, where it has no effect; move it out", key=key, line=line
        )
