"""Are these arguments what the tool's JSON Schema asks for, and are they what the person saw?"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.validators import validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

from pizzabot.audit import canonical_json
from pizzabot.messages import Args

_MAX_PROBLEMS = 20
_LONGEST_MESSAGE = 300
# Formats that are told apart the same way everywhere; a tool's idea of the others may be its own.
_FORMATS = FormatChecker(formats=["date", "email", "ipv4", "ipv6", "uuid"])


def digest(action_id: str, tool: str, args: Args) -> str:
    """What binds a decision to what was shown: SHA-256 over action, tool and canonical arguments."""
    return hashlib.sha256(
        canonical_json([action_id, tool, args]).encode("utf-8", "surrogatepass")
    ).hexdigest()


def problems(args: Any, schema: Mapping[str, Any]) -> list[dict[str, str]]:
    """Every place where `args` break the schema: `{"path": "/amount", "message": …}`, RFC 6901 pointers.

    Types are taken as they stand: nothing is coerced, so "42" is no number.
    """
    if not isinstance(args, dict):
        return [{"path": "", "message": "arguments are an object with one field per argument"}]
    try:
        canonical_json(args)
    except (ValueError, RecursionError) as error:
        return [{"path": "", "message": f"arguments are not JSON: {error}"}]
    try:
        errors = _errors(args, dict(schema))
    except (SchemaError, Unresolvable, RecursionError, re.error) as error:
        # What cannot be checked is not run.
        return [{"path": "", "message": f"the tool's own schema cannot be used ({type(error).__name__})"}]
    return [{"path": _pointer(error), "message": _plain(error)} for error in errors[:_MAX_PROBLEMS]]


def by_argument(found: Iterable[Mapping[str, str]], names: Collection[str]) -> dict[str, str]:
    """The first problem of each named argument: the one that its JSON pointer begins with."""
    named: dict[str, str] = {}
    for problem in found:
        name = problem["path"].split("/")[1] if problem["path"] else ""
        name = name.replace("~1", "/").replace("~0", "~")
        if name in names:
            named.setdefault(name, problem["message"])
    return named


def _errors(args: Any, schema: dict[str, Any]) -> list[ValidationError]:
    named = schema if isinstance(schema.get("$schema", ""), str) else {}
    kind = validator_for(named, default=Draft202012Validator)
    kind.check_schema(schema)
    # An empty registry: what a schema refers to elsewhere is never fetched.
    found = kind(schema, registry=Registry(), format_checker=_FORMATS).iter_errors(args)
    return sorted(found, key=lambda error: [str(part) for part in error.absolute_path])


def _pointer(error: ValidationError) -> str:
    parts = (str(part).replace("~", "~0").replace("/", "~1") for part in error.absolute_path)
    return "".join(f"/{part}" for part in parts)


def _plain(error: ValidationError) -> str:
    """What is wrong, for a person; with the validator's own words where they say it as well."""
    told = _IN_WORDS.get(str(error.validator))
    said = told(error.validator_value) if told is not None else error.message
    return said if len(said) <= _LONGEST_MESSAGE else said[: _LONGEST_MESSAGE - 1] + "…"


def _count(number: Any, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


_IN_WORDS: Mapping[str, Callable[[Any], str]] = {
    "minLength": lambda least: f"needs at least {_count(least, 'character')}",
    "maxLength": lambda most: f"has more than {_count(most, 'character')}",
    "minItems": lambda least: f"needs at least {_count(least, 'item')}",
    "maxItems": lambda most: f"has more than {_count(most, 'item')}",
    "minimum": lambda least: f"must be {least} or more",
    "exclusiveMinimum": lambda least: f"must be more than {least}",
    "maximum": lambda most: f"must be {most} or less",
    "exclusiveMaximum": lambda most: f"must be less than {most}",
    "format": lambda name: f"is no {name}" + (", as in 2026-11-30" if name == "date" else ""),
}
