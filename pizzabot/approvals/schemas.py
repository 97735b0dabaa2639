"""What does a tool's JSON Schema say about each argument? As much as a form needs, of schemas of any quality.

References into the schema itself are followed and unions are taken apart. What makes no sense says nothing,
and raises nothing: this is how to ask for an argument; `arguments.problems` says if the answer is right.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from pizzabot.messages import Json

_TYPES = frozenset({"string", "integer", "number", "boolean", "array", "object", "null"})
_MAX_STEPS = 500  # through references and unions, for one argument
_MAX_DESCRIPTION = 300
_MAX_PATTERN = 100
_FORMATS = {
    "date": "YYYY-MM-DD",
    "time": "hh:mm:ss",
    "date-time": "YYYY-MM-DDThh:mm:ssZ",
    "email": "an email address",
    "uri": "a URL",
    "uuid": "a UUID",
}

Alternative = Mapping[str, Any]  # one way to satisfy a schema: no reference and no union at its top


@dataclass(frozen=True, slots=True)
class Shape:
    """What one argument may be. Without types, nothing is known; null is never among the types."""

    types: frozenset[str] = frozenset()
    item_types: frozenset[str] = frozenset()
    nullable: bool = False
    choices: tuple[Json, ...] = ()
    description: str = ""
    limits: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Shapes:
    """What a schema says about the arguments that it names, in its order, and about all others."""

    named: Mapping[str, Shape]
    others: Shape
    required: frozenset[str]


def shapes(schema: Mapping[str, Any]) -> Shapes:
    """Read the schema of a tool's arguments."""
    root = dict(schema) if isinstance(schema, Mapping) else {}
    found = _alternatives(root, root)
    top = found[0] if len(found) == 1 else root
    properties, required = top.get("properties"), top.get("required")
    return Shapes(
        {name: _shape(part, root) for name, part in _object(properties).items()},
        _shape(top.get("additionalProperties"), root),
        frozenset(name for name in _list(required) if isinstance(name, str)),
    )


def type_of(value: Json) -> str:
    """The JSON type of a value; every number is a "number"."""
    if value is None:
        return "null"
    named = {bool: "boolean", str: "string", list: "array", dict: "object"}
    return named.get(type(value), "number")


def _shape(part: Json, root: Mapping[str, Any]) -> Shape:
    found = _alternatives(part, root)
    real = [a for a in found if _types(a) != {"null"}]
    nullable = any("null" in _types(a) for a in found)
    # What describes one of several alternatives does not describe the argument.
    only = real[0] if len(real) == 1 else None
    return Shape(
        types=_union(real) - {"null"},
        item_types=_item_types(real, root),
        nullable=nullable,
        choices=_choices(real, nullable),
        description=_description(_object(part) if only is None else only),
        limits=() if only is None else tuple(_limits(only)),
    )


def _alternatives(part: Json, root: Mapping[str, Any]) -> list[Alternative]:
    """The schema's ways to be satisfied. What stands beside a reference or a union counts for all of them."""
    found: list[Alternative] = []
    waiting: list[tuple[Json, frozenset[str]]] = [(part, frozenset())]
    for _ in range(_MAX_STEPS):
        if not waiting:
            return found
        part, followed = waiting.pop()
        key, members = _inner(part, root) if isinstance(part, dict) else ("", ())
        if not members:
            found += [] if part is False else [_object(part)]
            continue
        rest = {k: v for k, v in part.items() if k != key}
        if key == "$ref":
            if part[key] in followed:
                continue  # a circle offers nothing new
            followed |= {part[key]}
        waiting += [({**_object(m), **rest}, followed) for m in reversed(members) if m is not False]
    return []


def _inner(part: dict[str, Any], root: Mapping[str, Any]) -> tuple[str, Sequence[Json]]:
    """The schemas that this one stands for, and the key that says so."""
    if isinstance(reference := part.get("$ref"), str):
        return "$ref", [_target(reference, root)]
    if len(members := _list(part.get("allOf"))) == 1:
        return "allOf", members
    for key in ("anyOf", "oneOf"):
        if members := _list(part.get(key)):
            return key, members
    return "", ()


def _target(reference: str, root: Mapping[str, Any]) -> Json:
    place: Json = root
    start, *steps = unquote(reference).split("/")
    for step in steps if start == "#" else ("",):
        place = _object(place).get(step.replace("~1", "/").replace("~0", "~"))
    return place


def _types(alternative: Alternative) -> frozenset[str]:
    """The JSON types, null among them, that an alternative admits; empty when it does not say."""
    if values := _values(alternative):
        return frozenset(map(type_of, values))
    named = alternative.get("type")
    names = named if isinstance(named, list) else [named]
    return frozenset(name for name in names if isinstance(name, str) and name in _TYPES)


def _union(alternatives: Sequence[Alternative]) -> frozenset[str]:
    each = [_types(a) for a in alternatives]
    if not all(each):
        return frozenset()
    names = frozenset[str]().union(*each)
    return names - {"integer"} if "number" in names else names


def _item_types(alternatives: Sequence[Alternative], root: Mapping[str, Any]) -> frozenset[str]:
    lists = [a["items"] for a in alternatives if "items" in a]
    return _union(_alternatives(lists[0], root)) - {"null"} if len(lists) == 1 else frozenset()


def _values(alternative: Alternative) -> list[Json]:
    return [alternative["const"]] if "const" in alternative else _list(alternative.get("enum"))


def _choices(alternatives: Sequence[Alternative], nullable: bool) -> tuple[Json, ...]:
    """All admitted values, when the alternatives list them."""
    each = [_values(a) for a in alternatives]
    if not each or not all(each):
        return ()
    values = [value for values in each for value in values]
    return (*values, None) if nullable and None not in values else tuple(values)


def _description(part: Alternative) -> str:
    texts = (part.get(key) for key in ("description", "title"))
    return next((_line(t, _MAX_DESCRIPTION) for t in texts if isinstance(t, str) and t.strip()), "")


def _line(text: str, length: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1] + "…"


def _limits(part: Alternative) -> Iterator[str]:
    """The constraints in words: a number's first, then a text's, then a list's."""
    types = _types(part) or _TYPES
    if types & {"integer", "number"}:
        yield from _between(_number(part, "minimum"), _number(part, "maximum"))
        if low := _number(part, "exclusiveMinimum"):
            yield f"more than {low}"
        if high := _number(part, "exclusiveMaximum"):
            yield f"less than {high}"
    if "string" in types:
        if isinstance(form := part.get("format"), str) and form in _FORMATS:
            yield _FORMATS[form]
        yield from _between(_number(part, "minLength"), _number(part, "maxLength"), "character")
        if isinstance(pattern := part.get("pattern"), str):
            yield f"matching {_line(pattern, _MAX_PATTERN)}"
    if "array" in types:
        yield from _between(_number(part, "minItems"), _number(part, "maxItems"), "item")


def _between(low: str, high: str, unit: str = "") -> Iterator[str]:
    if low or high:
        words = f"{low} to {high}" if low and high else f"at least {low}" if low else f"at most {high}"
        plural = "" if (high or low) == "1" else "s"
        yield f"{words} {unit}{plural}" if unit else words


def _number(part: Alternative, key: str) -> str:
    """A limit as it is written; empty when there is none."""
    value = part.get(key)
    if type(value) is int or (type(value) is float and math.isfinite(value)):
        return json.dumps(value)
    return ""


def _object(value: Json) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []
