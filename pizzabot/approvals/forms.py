"""How does a person see and change a tool's arguments? As fields with a text each, and back, losing nothing.

    schema + proposed arguments --fields--> Field, Field, … --a channel's inputs--> texts --fill--> arguments

- A text that stayed as it was keeps the proposed value exactly, whatever the schema says.
- A changed text becomes the type that the schema asks for, or is refused. Nothing is coerced.
- Where a schema admits several types, or says none, the proposed value's type counts; without one, JSON.
- A proposed value that does not fit its schema is shown all the same: among choices as one more; a text where
  a number or a truth value belongs as text, whose change is read as what belongs there; the rest as JSON.
- A text stands as JSON, with its quotes, when it looks like the number or truth value that belongs there, and
  when it holds NUL or half a surrogate pair, which no input gives back.

Whether the arguments fit the schema is not decided here; see `arguments.problems`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NoReturn

from pizzabot.approvals.schemas import Shape, shapes, type_of
from pizzabot.messages import Args, Json
from pizzabot.text import is_storable, with_newlines

MAX_DEPTH = 50
_MAX_DIGITS = 4300  # of a whole number; more take Python quadratic time, so it refuses them, too
_ONE_LINE = 80
# What inputs of one line drop, and what cannot be told apart by looking.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_HALF_PAIR = re.compile("[\ud800-\udfff]")
_NUMBER = re.compile(r"([+-]?(?:0|[1-9][0-9]*))(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+")
_TRUTH = dict.fromkeys(("true", "on", "yes", "1"), True) | dict.fromkeys(("false", "off", "no", "0"), False)
_LEFT_OUT: Json = object()


class FieldKind(StrEnum):
    """Which input a field needs."""

    TEXT = "text"  # one line
    LONG_TEXT = "long_text"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    CHOICE = "choice"
    LIST = "list"  # one item a line
    JSON = "json"


_KINDS = {
    "string": FieldKind.TEXT,
    "integer": FieldKind.INTEGER,
    "number": FieldKind.NUMBER,
    "boolean": FieldKind.BOOLEAN,
    "array": FieldKind.LIST,
}
_NOUNS = {
    FieldKind.TEXT: "text",
    FieldKind.INTEGER: "whole number",
    FieldKind.NUMBER: "number",
    FieldKind.BOOLEAN: "true or false",
    FieldKind.CHOICE: "one of the choices",
    FieldKind.JSON: "JSON",
}
_SCALARS = (FieldKind.TEXT, FieldKind.INTEGER, FieldKind.NUMBER, FieldKind.BOOLEAN)


@dataclass(frozen=True, slots=True)
class Choice:
    """One value to choose. `text` is unique in its field: a string as it stands, unless that could be
    taken for another choice or cannot be seen; everything else as JSON.
    """

    text: str
    value: Json


@dataclass(frozen=True, slots=True)
class Field:
    """One argument. `text` shows the proposed `value` in full; it is empty when there is none (not `given`).

    `reads` is what a changed text is read as, `items` what each line of a list is read as.
    """

    name: str
    kind: FieldKind
    text: str
    given: bool
    value: Json
    required: bool
    nullable: bool
    choices: tuple[Choice, ...] = ()
    description: str = ""
    hint: str = ""
    reads: FieldKind = FieldKind.TEXT
    items: FieldKind = FieldKind.TEXT


@dataclass(frozen=True, slots=True)
class Filled:
    """What a person made of the fields; `args` count only without `errors`, which begin with a verb."""

    args: dict[str, Json]
    changed: tuple[str, ...]
    errors: Mapping[str, str]


# -- arguments to fields ---------------------------------------------------------------------------------


def fields(schema: Mapping[str, Any], args: Args) -> tuple[Field, ...]:
    """One field for each argument: those that the schema names in its order, then the others in theirs."""
    known = shapes(schema)
    names = dict.fromkeys((*known.named, *args))
    return tuple(
        _field(name, known.named.get(name, known.others), args, name in known.required) for name in names
    )


def _field(name: str, shape: Shape, args: Args, required: bool) -> Field:
    given, value = name in args, args.get(name)
    kind, reads, items = _kinds(shape, given, value)
    choices: dict[str, Choice] = {}
    if kind is FieldKind.CHOICE:
        choices = _choices([*shape.choices, value] if given else shape.choices)
        text = choices[_canonical(value)].text if given else ""
    else:
        text = _text(kind, value) if given else ""
    return Field(
        name=name,
        kind=kind,
        text=text,
        given=given,
        value=value,
        required=required,
        nullable=shape.nullable,
        choices=tuple(choices.values()),
        description=shape.description,
        hint=", ".join(filter(None, (_lead(kind, reads, items, shape.types), *shape.limits))),
        reads=reads,
        items=items,
    )


def _kinds(shape: Shape, given: bool, value: Json) -> tuple[FieldKind, FieldKind, FieldKind]:
    """A field's kind, what it reads, and what its items read."""
    text, as_json = FieldKind.TEXT, (FieldKind.JSON, FieldKind.JSON, FieldKind.TEXT)
    if shape.choices:
        return FieldKind.CHOICE, FieldKind.CHOICE, text
    if given and value is None and not shape.nullable:
        return as_json
    present = [] if value is None else [value]
    reads = _kind_of(shape.types, present)
    if reads is FieldKind.LIST:
        lines = value if isinstance(value, list) else []
        items = _kind_of(shape.item_types, lines)
        fits = isinstance(value, list | None) and all(_is_line(v, items) for v in lines)
        return (reads, reads, items) if fits and items in _SCALARS else as_json
    if isinstance(value, str) and reads in _SCALARS and is_storable(value) and not _misleads(value, reads):
        short = len(value) <= _ONE_LINE and not _UNSEEN.search(value)
        return text if short else FieldKind.LONG_TEXT, reads, text
    return (reads, reads, text) if all(_fits(v, reads) for v in present) else as_json


def _kind_of(types: frozenset[str], values: Sequence[Json]) -> FieldKind:
    """The kind for a type: the schema's, or where it leaves that open, the one that all the values have."""
    if len(types) != 1:
        named = {_named(value, types) for value in values}
        types = frozenset(named if not types else named & types) if len(named) == 1 else frozenset()
    return _KINDS.get(next(iter(types), ""), FieldKind.JSON)


def _named(value: Json, types: frozenset[str]) -> str:
    name = type_of(value)
    return "integer" if name == "number" and "integer" in types else name


def _fits(value: Json, kind: FieldKind) -> bool:
    """Whether an input of that kind can show the value and give it back. A truth value is no number."""
    match kind:
        case FieldKind.TEXT:
            return isinstance(value, str) and is_storable(value)
        case FieldKind.INTEGER:
            return type(value) is int
        case FieldKind.NUMBER:
            return type(value) is int or (type(value) is float and math.isfinite(value))
        case FieldKind.BOOLEAN:
            return isinstance(value, bool)
    return True


def _misleads(text: str, kind: FieldKind) -> bool:
    """Whether a text looks like what belongs in its place, "42" like 42: nobody could put that right."""
    if kind is FieldKind.TEXT:
        return False
    try:
        _READERS[kind](text)
    except ValueError:
        return False
    return True


def _is_line(value: Json, kind: FieldKind) -> bool:
    """Whether a list's item survives as a line; reading drops blank lines and outer spaces."""
    if isinstance(value, str) and (not value or value != value.strip() or "\n" in value or "\r" in value):
        return False
    return _fits(value, kind)


def _choices(values: Iterable[Json]) -> dict[str, Choice]:
    """The choices by their canonical JSON, each value once."""
    by_json = {_canonical(value): value for value in values}
    return {
        text: Choice(value if isinstance(value, str) and _is_plain(value, by_json) else text, value)
        for text, value in by_json.items()
    }


def _is_plain(text: str, taken: Mapping[str, Json]) -> bool:
    return bool(text) and text == text.strip() and not _UNSEEN.search(text) and text not in taken


def _text(kind: FieldKind, value: Json) -> str:
    if kind is FieldKind.JSON:
        # Indenting what is nested without a limit would take quadratic space.
        return _json(value, indent=2 if _depth(value) <= MAX_DEPTH else None)
    if kind is FieldKind.LIST:
        return "\n".join(_text(FieldKind.TEXT, item) for item in value or ())
    if value is None:
        return ""
    return value if isinstance(value, str) else _json(value)


def _json(value: Json, **options: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, **options)
    return _HALF_PAIR.sub(lambda half: f"\\u{ord(half[0]):04x}", text)


def _canonical(value: Json) -> str:
    """One text for equal values and for no others: 1, 1.0 and true differ. It takes NaN, too."""
    return _json(value, sort_keys=True)


def _depth(value: Json) -> int:
    """How many lists and objects stand inside each other; counting ends behind the limit."""
    depth, level = 0, [value]
    while depth <= MAX_DEPTH and (inner := [v for v in level if isinstance(v, dict | list)]):
        depth += 1
        level = [child for v in inner for child in (v.values() if isinstance(v, dict) else v)]
    return depth


def _lead(kind: FieldKind, reads: FieldKind, items: FieldKind, types: frozenset[str]) -> str:
    """What is to be written, where the input alone does not say it."""
    if kind is FieldKind.LIST:
        return f"one {'item' if items is FieldKind.TEXT else _NOUNS[items]} a line"
    if kind is FieldKind.JSON:
        wanted = _kind_of(types, ())
        quotes = " in double quotes" if wanted is FieldKind.TEXT else ""
        return f"JSON, {_NOUNS[wanted]}{quotes}" if wanted in _SCALARS else "JSON"
    if kind in (FieldKind.BOOLEAN, FieldKind.CHOICE) or reads is FieldKind.TEXT:
        return ""
    return _NOUNS[reads]


# -- texts to arguments ----------------------------------------------------------------------------------


def fill(fields: Sequence[Field], texts: Mapping[str, str | None]) -> Filled:
    """The arguments that the texts, by field name, make. A missing text means: as proposed."""
    args: dict[str, Json] = {}
    changed: list[str] = []
    errors: dict[str, str] = {}
    for field in fields:
        proposed = field.value if field.given else _LEFT_OUT
        try:
            value = _value(field, proposed, texts.get(field.name))
        except ValueError as error:
            errors[field.name] = str(error)
            continue
        if value is not _LEFT_OUT:
            args[field.name] = value
        if not _same(value, proposed):
            changed.append(field.name)
    return Filled(args, tuple(changed), errors)


def _same(one: Json, other: Json) -> bool:
    if one is other or one is _LEFT_OUT or other is _LEFT_OUT:
        return one is other
    return _canonical(one) == _canonical(other)


def _value(field: Field, proposed: Json, text: str | None) -> Json:
    """The value that a text stands for, or _LEFT_OUT.

    Raises:
        ValueError: it stands for none; the message says why, and what to write instead.
    """
    if text is None:
        return proposed
    text, shown = with_newlines(text), with_newlines(field.text)
    bare = text if field.reads is FieldKind.TEXT else text.strip()
    if shown in (text, bare) and (field.given or not field.required):
        return proposed
    if not bare:
        return _nothing(field)
    if field.kind is FieldKind.CHOICE:
        return _chosen(field.choices, bare)
    if field.kind is FieldKind.LIST:
        return _items(text, field.items)
    return _READERS[field.reads](text)


def _nothing(field: Field) -> Json:
    """What an empty text means where there was something, or must be something."""
    if field.given and field.reads is FieldKind.TEXT:
        return ""
    if field.kind is FieldKind.LIST:
        return []
    if not field.required:
        return _LEFT_OUT
    if field.nullable:
        return None
    raise ValueError(f"is needed; expected: {_NOUNS[field.reads]}")


def _chosen(choices: Sequence[Choice], text: str) -> Json:
    for choice in choices:
        if choice.text == text:
            return choice.value
    raise ValueError("is not one of the choices")


def _items(text: str, kind: FieldKind) -> list[Json]:
    """One item a line. Among texts blank lines mean nothing; among numbers one may have been forgotten."""
    lines = [line.strip() for line in text.rstrip().split("\n")]
    if kind is FieldKind.TEXT:
        return [line for line in lines if line]
    return [_item(line, number, kind) for number, line in enumerate(lines, 1)]


def _item(line: str, number: int, kind: FieldKind) -> Json:
    try:
        return _READERS[kind](line)
    except ValueError as error:
        raise ValueError(f"line {number} {error if line else 'is empty'}") from error


def _truth(text: str) -> bool:
    value = _TRUTH.get(text.strip().lower())
    if value is None:
        raise ValueError("is neither true nor false")
    return value


def _integer(text: str) -> int:
    text = text.strip()
    found = _NUMBER.fullmatch(text)
    if found is None or found[2] or found[3]:
        raise ValueError("is not a whole number")
    return _whole(found[1])


def _number(text: str) -> int | float:
    text = text.strip()
    found = _NUMBER.fullmatch(text)
    if found is None:
        raise ValueError(f"is not a number{_advice(text)}")
    return _finite(text) if found[2] or found[3] else _whole(text)


def _advice(text: str) -> str:
    """What to write for a comma: of decimals or, before three digits, perhaps of thousands."""
    if not _COMMA.fullmatch(text) or len(text) > _ONE_LINE:
        return ""
    whole, _, rest = text.partition(",")
    return f"; write {whole}.{rest}" + (f" or {whole}{rest}" if len(rest) == 3 else "")


def _whole(digits: str) -> int:
    if len(digits.lstrip("+-")) > _MAX_DIGITS:
        raise ValueError(f"has too many digits; at most {_MAX_DIGITS} are taken")
    return int(digits)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("is too large for a number")
    return number


def _parsed(text: str) -> Json:
    """Strict JSON: each key once, finite numbers, at most 50 levels."""
    try:
        value = json.loads(
            text, object_pairs_hook=_pairs, parse_int=_whole, parse_float=_finite, parse_constant=_not_finite
        )
        if _depth(value) > MAX_DEPTH:
            raise RecursionError
    except json.JSONDecodeError as error:
        raise ValueError(f"is not JSON at line {error.lineno}, column {error.colno}: {error.msg}") from error
    except RecursionError as error:
        raise ValueError(f"is nested too deeply; at most {MAX_DEPTH} levels are taken") from error
    return value


def _pairs(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"names the key {_json(key[:60])} twice; give it once")
        found[key] = value
    return found


def _not_finite(word: str) -> NoReturn:
    raise ValueError(f"holds {word}, which is no JSON; write a finite number")


_READERS: Mapping[FieldKind, Callable[[str], Json]] = {
    FieldKind.TEXT: str,
    FieldKind.INTEGER: _integer,
    FieldKind.NUMBER: _number,
    FieldKind.BOOLEAN: _truth,
    FieldKind.JSON: _parsed,
}
