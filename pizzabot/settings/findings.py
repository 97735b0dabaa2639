"""How is a mistake in the settings told: which place, what is wrong, what to write instead?"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from pizzabot.errors import ConfigError
from pizzabot.settings.file import KeyPath, line_of
from pizzabot.settings.tables import Settings
from pizzabot.settings.values import shown


class SettingsError(ConfigError):
    """The settings are wrong. Reads as the first error; `others` are the rest."""

    def __init__(self, first: ConfigError, others: tuple[ConfigError, ...] = ()) -> None:
        super().__init__(first.file, first.problem, key=first.key, line=first.line)
        self.others = others


@dataclass(slots=True)
class Findings:
    """The errors of one reading, each said about a key of the file or a variable of the environment."""

    file: Path
    lines: Mapping[KeyPath, int]
    variables: Mapping[KeyPath, str] = field(default_factory=dict)
    errors: list[ConfigError] = field(default_factory=list)
    paths: set[KeyPath] = field(default_factory=set)

    def add(self, path: KeyPath, problem: str) -> None:
        """Note a problem; the first thing said about a key is the one that counts."""
        if path in self.paths:
            return
        self.paths.add(path)
        variable = next(
            (self.variables[path[:n]] for n in range(len(path), 0, -1) if path[:n] in self.variables), None
        )
        if variable is not None:
            self.errors.append(ConfigError("environment", problem, key=variable))
        else:
            self.errors.append(
                ConfigError(str(self.file), problem, key=dotted(path), line=line_of(path, self.lines))
            )

    def raise_any(self) -> None:
        if self.errors:
            raise SettingsError(self.errors[0], tuple(self.errors[1:]))


def sentence(path: KeyPath, details: ErrorDetails) -> str:
    """What is wrong with a key and what to write instead."""
    kind, context = details["type"], details.get("ctx", {})
    match kind:
        case "extra_forbidden":
            return unknown_key(str(path[-1]), path[:-1])
        case "missing":
            return _missing(path)
        case "literal_error":
            return f"{shown(details['input'])} is not allowed; write one of {context['expected']}".replace(
                " or ", ", "
            )
        case "value_error":
            return str(context["error"])
        case "tuple_type":
            return 'must be a list; write ["…"]'
        case "model_type" | "model_attributes_type" | "dict_type" | "mapping_type":
            return f"must be a table; write [{dotted(path)}]"
        case "string_type":
            return 'must be text; write it in quotes "…"'
        case "too_short" | "string_too_short":
            return f"is too short; write at least {context.get('min_length', 1)}"
    message = str(details["msg"]).removeprefix("Input ").removeprefix("Value ")
    return message[:1].lower() + message[1:]


def _missing(path: KeyPath) -> str:
    key = str(path[-1])
    table = _table_type(path[:-1])
    options = get_args(table.model_fields[key].annotation) if table and key in table.model_fields else ()
    if options and all(isinstance(option, str) for option in options):
        return "is missing; add " + " or ".join(f'{key} = "{option}"' for option in options)
    return f"is missing; add {key} = …"


def unknown_key(key: str, table_path: KeyPath) -> str:
    table = _table_type(table_path)
    known = sorted(table.model_fields) if table else []
    near = difflib.get_close_matches(key[:100].lower().replace("-", "_"), known, n=1, cutoff=0.6)
    if near:
        return f'is not a known key; did you mean "{near[0]}"?'
    return f"is not a known key; known here are {', '.join(known)}"


def _table_type(path: KeyPath) -> type[BaseModel] | None:
    """The table that a path of the settings leads to."""
    table: type[BaseModel] | None = Settings
    inside = False  # a list's index and a free key stand for the element itself
    for part in path:
        if table is None:
            return None
        if isinstance(part, int) or inside:
            inside = False
            continue
        info = table.model_fields.get(part)
        table = _model_in(info.annotation) if info else None
        inside = part in ("models", "prices")
    return table


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for arg in get_args(annotation) if (found := _model_in(arg))), None)


def dotted(path: KeyPath) -> str:
    """A path as an operator writes it: people[1].role, models.openai."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
            continue
        plain = re.fullmatch(r"[A-Za-z0-9_-]{1,60}", part) is not None
        text += ("." if text else "") + (part if plain else f'"{repr(part[:60])[1:-1]}"')
    return text
