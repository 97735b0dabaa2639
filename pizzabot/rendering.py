"""Where are the templates, and how is one filled in? Jinja2 over `templates/`, undefined names are errors."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined, TemplateNotFound


def _load(name: str) -> str:
    path = files("pizzabot.templates").joinpath(*name.split("/"))
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise TemplateNotFound(name) from error


@cache
def _environment() -> Environment:
    # Prompts are text for a model, not HTML: nothing is escaped here.
    return Environment(
        loader=FunctionLoader(_load),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
        autoescape=False,
    )


def render_text(template: str, **values: Any) -> str:
    """The plain-text template `template` with `values`."""
    return _environment().get_template(template).render(**values)
