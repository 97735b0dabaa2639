"""Which of the tools that a server lists may be offered? Listings are untrusted input.

Each entry is judged alone and rebuilt from the fields that are used here, because the library refuses a
listing as a whole when one entry of it is malformed, and reads the string "true" as a hint that is true.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

from jsonschema.exceptions import SchemaError
from jsonschema.validators import Draft202012Validator, validator_for

from pizzabot.tools.references import TOOL_NAME

_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_ANCHORS = ("$anchor", "$dynamicAnchor")


@dataclass(frozen=True)
class Sifted:
    """Entries that are safe to read, and a line for each one that was left out."""

    entries: list[dict[str, Any]]
    problems: list[str]


def sift(entries: Sequence[object]) -> Sifted:
    """Part the usable entries of one page of `tools/list` from the rest."""
    sifted = Sifted([], [])
    for entry in entries:
        name = entry.get("name") if isinstance(entry, dict) else None
        if not isinstance(entry, dict) or not isinstance(name, str) or not TOOL_NAME.fullmatch(name):
            sifted.problems.append(f"a tool was left out: {ascii(name)[:80]} is not a tool name")
        elif (problem := _problem(entry.get("inputSchema"))) is not None:
            sifted.problems.append(f'tool "{name}" was left out: {problem}')
        else:
            sifted.entries.append(_rebuilt(entry))
    return sifted


def _rebuilt(entry: dict[str, Any]) -> dict[str, Any]:
    # Without the output schema too: an answer that does not fit it is still what happened.
    description, annotations = entry.get("description"), entry.get("annotations")
    hints = annotations if isinstance(annotations, dict) else {}
    return {
        "name": entry["name"],
        "description": description if isinstance(description, str) else "",
        "inputSchema": entry["inputSchema"],
        "annotations": {hint: hints[hint] for hint in _HINTS if isinstance(hints.get(hint), bool)},
    }


def _problem(schema: object) -> str | None:
    if not isinstance(schema, dict) or schema.get("type") != "object":
        return "its input schema is not the schema of an object"
    try:
        return schema_problem(json.dumps(schema, sort_keys=True))
    except RecursionError:
        return "its input schema is nested too deeply"


@lru_cache(maxsize=1024)
def schema_problem(text: str) -> str | None:
    """Why the JSON schema in `text` cannot be used, or None. Cached: listings come again and again."""
    schema = json.loads(text)
    if not isinstance(schema.get("$schema", ""), str):
        return "its input schema is invalid at $.$schema: not a string"
    dialect = validator_for(schema, default=Draft202012Validator)
    try:
        dialect.check_schema(schema)
    except SchemaError as error:
        return f"its input schema is invalid at {error.json_path}: {error.message[:200]}"
    parts = list(_parts(schema))
    anchors = {part[key] for part in parts for key in _ANCHORS if isinstance(part.get(key), str)}
    return next(filter(None, (_flaw(part, schema, anchors) for part in parts)), None)


def _parts(schema: object) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        yield schema
    for part in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from _parts(part)


def _flaw(part: dict[str, Any], schema: dict[str, Any], anchors: set[str]) -> str | None:
    """What the meta-schema does not see: each of these raises once arguments are checked."""
    for reference in (part[key] for key in _REFERENCES if isinstance(part.get(key), str)):
        if not reference.startswith("#"):
            return f"its input schema refers to another document: {reference[:100]}"
        if reference[1:] not in anchors and not _holds(schema, reference[1:]):
            return f"its input schema refers to {reference[:100]}, which it does not hold"
    patterns = part.get("patternProperties")
    for pattern in [part.get("pattern"), *(patterns if isinstance(patterns, dict) else ())]:
        try:
            re.compile(pattern if isinstance(pattern, str) else "")
        except (re.error, OverflowError):
            return f"its input schema has a pattern that cannot be read: {pattern[:100]}"
    return None


def _holds(schema: dict[str, Any], pointer: str) -> bool:
    place: Any = schema
    first, *steps = unquote(pointer).split("/")
    for step in steps:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(place, list) and key.isdecimal() and int(key) < len(place):
            place = place[int(key)]
        elif isinstance(place, dict) and key in place:
            place = place[key]
        else:
            return False
    return not first and isinstance(place, dict | bool)
