"""Where are the templates, and how is one filled in? Jinja2 over `templates/`, undefined names are errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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


def _environment(*, autoescape: bool) -> Environment:
    return Environment(
        loader=FunctionLoader(_load),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
        autoescape=autoescape,
    )


@cache
def _for_text() -> Environment:
    # Prompts are text for a model, not HTML: nothing is escaped here.
    return _environment(autoescape=False)


def html_templates(filters: Mapping[str, Callable[..., Any]]) -> Environment:
    """The templates as HTML: every value is escaped unless it is `Markup`."""
    environment = _environment(autoescape=True)
    environment.filters.update(filters)
    return environment


def read_file(name: str) -> bytes:
    """A file of `templates/` as it is."""
    return files("pizzabot.templates").joinpath(*name.split("/")).read_bytes()


def render_text(template: str, **values: Any) -> str:
    """The plain-text template `template` with `values`."""
    return _for_text().get_template(template).render(**values)
