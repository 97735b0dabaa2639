"""What do the words `key=value` of an edit mean, given the tool's JSON Schema?"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pizzabot.cli.failures import Failed
from pizzabot.cli.text import shown_value
from pizzabot.text import visible

_WORDS = {"true": True, "false": False}


def edited(present: Mapping[str, Any], schema: Mapping[str, Any], changes: Sequence[str]) -> dict[str, Any]:
    """The full set of arguments: the present ones with the changes in their places.

    Raises:
        Failed: a change is not `key=value`, names no argument, or its value has the wrong type.
    """
    result = dict(present)
    for change in changes:
        key, equals, text = change.partition("=")
        if not equals or not key:
            raise Failed(f"{visible(change[:60])} is not key=value")
        result[key] = typed(key, text, _field(key, present, schema))
    return result


def full_set(text: str) -> dict[str, Any]:
    """The arguments that `--json` gives.

    Raises:
        Failed: it is not a JSON object.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Failed(f"--json is not JSON: {visible(str(error))}") from error
    if not isinstance(value, dict):
        raise Failed("--json must be an object with one field for each argument")
    return value


def _field(key: str, present: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    fields = schema.get("properties")
    fields = fields if isinstance(fields, dict) else {}
    if isinstance(found := fields.get(key), dict):
        return _resolved(found, schema)
    if key in present or not fields or schema.get("additionalProperties", False) is not False:
        return {}
    known = ", ".join(visible(name) for name in fields)
    raise Failed(f"{visible(key[:60])}: there is no such argument; there are {known}")


def _resolved(field: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The field behind a `$ref` into the schema's own definitions."""
    for _ in range(10):
        reference = field.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#/"):
            break
        target: Any = schema
        for part in reference[2:].split("/"):
            target = (
                target.get(part.replace("~1", "/").replace("~0", "~"), {}) if isinstance(target, dict) else {}
            )
        if not isinstance(target, dict):
            break
        field = target
    return field


def typed(key: str, text: str, field: Mapping[str, Any]) -> Any:
    """`text` as the type that the argument's schema asks for; a text argument takes it as it stands.

    Raises:
        Failed: it is not of that type; the message names the argument.
    """
    if isinstance(choices := field.get("enum"), list):
        return _choice(key, text, choices)
    types = _types(field)
    if not types:
        return _json_or_text(text)
    if "null" in types and text == "null":
        return None
    for name in types:
        value = _as(name, text)
        if value is not None:
            return value
    wanted = " or ".join(_SPOKEN.get(name, name) for name in types if name != "null")
    raise Failed(f"{visible(key)}: {visible(text[:60])!r} is not {wanted}")


_SPOKEN = {
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "array": 'a list; write JSON, such as ["a", "b"]',
    "object": 'an object; write JSON, such as {"a": 1}',
    "string": "text",
}
_LATER = ("string",)  # takes everything, so every other type of a union is tried before it


def _types(field: Mapping[str, Any]) -> list[str]:
    named = field.get("type")
    names = [named] if isinstance(named, str) else list(named) if isinstance(named, list) else []
    for union in ("anyOf", "oneOf"):
        for option in field.get(union) or ():
            if isinstance(option, dict):
                names += _types(option)
    return sorted((n for n in dict.fromkeys(names) if isinstance(n, str)), key=lambda name: name in _LATER)


def _as(name: str, text: str) -> Any:
    """`text` as that type; None when it is not."""
    if name == "string":
        return text
    if name == "boolean":
        return _WORDS.get(text.strip().lower())
    value = _parsed(text)
    if isinstance(value, bool):
        return None
    if name == "integer":
        return value if isinstance(value, int) else None
    if name == "number":
        return value if isinstance(value, int | float) else None
    wanted = {"array": list, "object": dict}.get(name)
    return value if wanted is not None and isinstance(value, wanted) else None


def _parsed(text: str) -> Any:
    def refuse(constant: str) -> Any:
        raise ValueError(constant)  # NaN and Infinity are no JSON

    try:
        return json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError):
        return None


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _choice(key: str, text: str, choices: list[Any]) -> Any:
    for choice in choices:
        if choice == text or (not isinstance(choice, str) and json.dumps(choice) == text.strip()):
            return choice
    possible = ", ".join(shown_value(choice) for choice in choices)
    raise Failed(f"{visible(key)}: {visible(text[:60])!r} is not possible; possible: {possible}")
