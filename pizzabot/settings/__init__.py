"""Is everything configured, and if not: which line has to change, and to what?

The environment (`PIZZABOT_SECTION__KEY`) goes over the file, the file over the defaults. Whatever is wrong is
reported together, each error on one line with file, line, key, problem and cure.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pizzabot.errors import ConfigError
from pizzabot.settings.checks import contradictions
from pizzabot.settings.example import default_toml
from pizzabot.settings.file import key_lines, load_environment, parse_toml, read_text
from pizzabot.settings.findings import Findings, SettingsError, sentence
from pizzabot.settings.layers import add_machine_defaults, environment_layer, expanded, merged, tables_in_use
from pizzabot.settings.tables import Settings
from pizzabot.settings.values import PROVIDERS, is_loopback, provider_of

__all__ = [
    "PROVIDERS",
    "Settings",
    "SettingsError",
    "default_toml",
    "is_loopback",
    "load_environment",
    "load_settings",
    "provider_of",
]


_MOST_ERRORS = 100  # nobody reads more at once


def load_settings(home: Path, environ: Mapping[str, str]) -> Settings:
    """Read `pizzabot.toml` and `.env` of the home under `environ`.

    Raises:
        SettingsError: with every error that could be found.
    """
    file = home / "pizzabot.toml"
    try:
        environ = load_environment(home, environ)
        text = read_text(file)
        tree = parse_toml(file, text)
    except ConfigError as error:
        raise SettingsError(error) from error
    findings = Findings(file, key_lines(text))
    overlay, variables = environment_layer(environ, findings)
    findings.variables = variables
    tree = merged(tree, overlay)
    in_use = tables_in_use(tree, environ)
    tree = {key: expanded(value, (key,), environ, findings, in_use) for key, value in tree.items()}
    add_machine_defaults(tree, environ)
    settings = _validated(tree, findings)
    findings.raise_any()
    return settings


def _validated(tree: Mapping[str, Any], findings: Findings) -> Settings:
    try:
        settings = Settings.model_validate(tree)
    except ValidationError as error:
        found = error.errors(include_url=False)[:_MOST_ERRORS]
        for details in found:
            path = tuple(details["loc"])
            if details["type"] == "too_short" and any(path == other["loc"][:-1] for other in found):
                continue  # it is short because an item was left out that has its own error
            findings.add(path, sentence(path, details))
        findings.raise_any()
        raise
    for path, problem in contradictions(settings):
        findings.add(path, problem)
    return settings
