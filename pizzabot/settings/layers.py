"""What do the environment and the variables make of the file, before any type is known?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError

from pizzabot.clock import system_zone
from pizzabot.errors import ConfigError
from pizzabot.settings.file import KeyPath, UnsetVariable, expand
from pizzabot.settings.findings import Findings, unknown_key
from pizzabot.settings.tables import Settings
from pizzabot.settings.values import provider_of

_PREFIX = "PIZZABOT_"
_DELIMITER = "__"
_SWITCHED = ("slack", "email")
_DEEPEST = 10
_GONE = object()


def environment_layer(
    environ: Mapping[str, str], findings: Findings
) -> tuple[dict[str, Any], dict[KeyPath, str]]:
    """What the environment says, and which variable says it."""
    names = sorted(name for name in environ if name.startswith(_PREFIX) and _is_setting(name))
    if not names:
        return {}, {}
    from pydantic_settings import EnvSettingsSource  # costs half a second, and most homes need none of it
    from pydantic_settings.exceptions import SettingsError as NotJson

    source = EnvSettingsSource(Settings, env_prefix=_PREFIX, env_nested_delimiter=_DELIMITER)  # type: ignore[arg-type]
    overlay: dict[str, Any] = {}
    variables: dict[KeyPath, str] = {}
    for name in names:
        path = tuple(name.removeprefix(_PREFIX).lower().split(_DELIMITER))
        if path[0] not in Settings.model_fields or len(path) > _DEEPEST:
            findings.errors.append(ConfigError("environment", unknown_key(path[0], ()), key=name[:200]))
            continue
        source.env_vars = {name.lower(): environ[name]}
        try:
            said = source()
        except (NotJson, RecursionError):
            findings.errors.append(
                ConfigError("environment", 'is not JSON; write lists and tables as ["a", "b"]', key=name)
            )
            continue
        overlay = merged(overlay, said)
        variables[path] = name
    return overlay, variables


def _is_setting(name: str) -> bool:
    """Whether the name means a setting: PIZZABOT_HOME and what container platforms inject do not."""
    rest = name.removeprefix(_PREFIX)
    return _DELIMITER in rest or rest.lower() in Settings.model_fields


def merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Two trees in one: tables are joined key by key; everything else of `over` replaces what it covers."""
    result = dict(under)
    for key, value in over.items():
        below = result.get(key)
        result[key] = merged(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return result


def tables_in_use(tree: Mapping[str, Any], environ: Mapping[str, str]) -> Mapping[KeyPath, bool]:
    """For the tables that may be out of use: are they in use? Elsewhere every variable is needed."""
    triggers = tree.get("triggers")
    models = [tree.get("model", Settings.model_fields["model"].default)]
    models += [t.get("model") for t in triggers if isinstance(t, dict)] if isinstance(triggers, list) else []
    providers = {provider_of(_leniently(model, environ)) for model in models if isinstance(model, str)}
    tables: dict[KeyPath, bool] = {("models", name): name in providers for name in _table(tree, "models")}
    for name in _SWITCHED:
        tables[(name,)] = _is_on(_leniently(_table(tree, name).get("enabled", True), environ))
    return tables


def _table(tree: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = tree.get(name)
    return found if isinstance(found, dict) else {}


def _leniently(value: Any, environ: Mapping[str, str]) -> Any:
    try:
        return expand(value, environ) if isinstance(value, str) else value
    except UnsetVariable:
        return value


def _is_on(value: object) -> bool:
    try:
        return TypeAdapter(bool).validate_python(value)
    except ValidationError:
        return True


def expanded(
    node: Any,
    path: KeyPath,
    environ: Mapping[str, str],
    findings: Findings,
    in_use: Mapping[KeyPath, bool],
) -> Any:
    """`node` with its variables replaced; in a table out of use an unset one takes its key away."""
    if path in findings.variables:
        return node
    if isinstance(node, str):
        if "\0" in node:
            findings.add(path, "holds a NUL character; remove it")
            return ""
        try:
            return expand(node, environ)
        except UnsetVariable as error:
            if all(in_use.get(path[:end], True) for end in range(1, len(path))):
                findings.add(path, str(error))
            return _GONE
    if isinstance(node, dict):
        inner = {key: expanded(value, (*path, key), environ, findings, in_use) for key, value in node.items()}
        return {key: value for key, value in inner.items() if value is not _GONE}
    if isinstance(node, list):
        items = [expanded(value, (*path, i), environ, findings, in_use) for i, value in enumerate(node)]
        return [value for value in items if value is not _GONE]
    return node


def add_machine_defaults(tree: dict[str, Any], environ: Mapping[str, str]) -> None:
    """Fill in what the machine knows: its time zone, and the Slack address that tests and proxies set."""
    zone = system_zone(environ)
    people = tree.get("people") or [{"name": "Owner", "role": "owner"}]
    if isinstance(people, list):
        tree["people"] = [{"timezone": zone, **p} if isinstance(p, dict) else p for p in people]
    slack = tree.get("slack")
    if isinstance(slack, dict) and environ.get("SLACK_API_URL"):
        tree["slack"] = {"api_url": environ["SLACK_API_URL"], **slack}
