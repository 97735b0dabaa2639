"""What does the operator's file say, on which line, and which variables does it name?

Reads TOML and `.env` as text. Knows nothing of which keys exist.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pizzabot.errors import ConfigError

KeyPath = tuple[str | int, ...]

_LARGEST_BYTES = 1_000_000
_DEEPEST = 20

_BARE = r"[A-Za-z0-9_-]+"
_PART = rf"(?:{_BARE}|\"[^\"]*\"|'[^']*')"
_KEY = rf"{_PART}(?:[ \t]*\.[ \t]*{_PART})*"
_HEADER = re.compile(rf"[ \t]*(\[\[?)[ \t]*({_KEY})[ \t]*\]\]?[ \t]*(?:#.*)?")
_ASSIGNMENT = re.compile(rf"[ \t]*({_KEY})[ \t]*=")
_TEXT_OR_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*"|\'[^\']*\'|#.*')
_ENDLESS_KEY = re.compile(r"(?<![A-Za-z0-9_.-])(?:[A-Za-z0-9_-]+[ \t]*\.[ \t]*){40}")  # quadratic in tomllib
_VARIABLE = re.compile(r"\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}|\$\{")
_ENV_LINE = re.compile(r"(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*(.*)")
_ENV_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


class UnsetVariable(Exception):
    """A text names a variable that is not set, or names none where it should; `str` is the cure."""


def read_text(path: Path) -> str:
    """The text of a file of the operator's; empty when there is none.

    Raises:
        ConfigError: the file cannot be read, is too large, or is not UTF-8.
    """
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise ConfigError(str(path), f"cannot be read ({error.strerror})") from error
    if len(raw) > _LARGEST_BYTES:
        raise ConfigError(str(path), "is larger than 1 MB; this is not a settings file")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(str(path), "is not UTF-8 text; save it as UTF-8", line=line) from error


def parse_toml(path: Path, text: str) -> dict[str, Any]:
    """The tables of a TOML text.

    Raises:
        ConfigError: with the line, when the text is not TOML or nested beyond reason.
    """
    too_deep = ConfigError(str(path), f"is nested more than {_DEEPEST} levels deep; no setting needs that")
    if _ENDLESS_KEY.search(text):
        raise too_deep
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        problem, line = _without_place(str(error))
        raise ConfigError(str(path), f"is not valid TOML: {problem}", line=line) from error
    except RecursionError as error:
        raise too_deep from error
    if _deeper_than(tree, _DEEPEST):
        raise too_deep
    return tree


def key_lines(text: str) -> Mapping[KeyPath, int]:
    """The line of every table and key that stands at the beginning of a line.

    Keys inside inline tables are not listed: `line_of` then answers with the line of the whole.
    """
    lines: dict[KeyPath, int] = {}
    table: KeyPath = ()
    counts: dict[KeyPath, int] = {}
    for number, line in _statements(text):
        if header := _HEADER.fullmatch(line):
            table = _numbered(_parts(header[2]), counts, opens_item=header[1] == "[[")
            for end in range(1, len(table) + 1):
                lines.setdefault(table[:end], number)
        elif assignment := _ASSIGNMENT.match(line):
            path = table
            for part in _parts(assignment[1]):
                path = (*path, part)
                lines.setdefault(path, number)
    return lines


def line_of(path: KeyPath, lines: Mapping[KeyPath, int]) -> int | None:
    """The line of a key, else of the nearest table around it."""
    for end in range(len(path), 0, -1):
        if path[:end] in lines:
            return lines[path[:end]]
    return None


def expand(text: str, environ: Mapping[str, str]) -> str:
    """`text` with `${VAR}` and `${VAR:-default}` replaced; `$${` stands for a plain `${`.

    Raises:
        UnsetVariable: a variable without default is not set.
    """

    def value(match: re.Match[str]) -> str:
        if match[0] == "$${":
            return "${"
        name, default = match[1], match[2]
        if name is None:
            raise UnsetVariable("holds a ${ that is no ${VARIABLE}; write $${ for a plain ${")
        if default is not None:
            return environ.get(name) or default
        if name not in environ:
            raise UnsetVariable(
                f"the variable {name[:60]} is not set; set it in the environment or in .env, "
                f"or write ${{{name[:60]}:-default}}"
            )
        return environ[name]

    return _VARIABLE.sub(value, text)


def load_environment(home: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """`environ` with the `.env` of the home under it: what the environment says, stays.

    Raises:
        ConfigError: with the line, when the file cannot be understood.
    """
    path = home / ".env"
    said: dict[str, str] = {}
    for number, line in enumerate(read_text(path).splitlines(), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        match = _ENV_LINE.fullmatch(stripped)
        value = _env_value(match[2]) if match else None
        if match is None or value is None or "\0" in value:
            raise ConfigError(str(path), "is not KEY=VALUE; quote values with spaces or #", line=number)
        said[match[1]] = value
    return {**said, **environ}


def _env_value(raw: str) -> str | None:
    """The value of a `.env` line, or None when its quotes do not close."""
    if raw[:1] == "'":
        quoted = re.fullmatch(r"'([^']*)'[ \t]*(?:#.*)?", raw)
        return quoted[1] if quoted else None
    if raw[:1] == '"':
        quoted = re.fullmatch(r'"((?:[^"\\]|\\.)*)"[ \t]*(?:#.*)?', raw)
        return re.sub(r"\\(.)", lambda m: _ENV_ESCAPES.get(m[1], m[1]), quoted[1]) if quoted else None
    return re.split(r"(?:^|[ \t])#", raw, maxsplit=1)[0].rstrip()


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """The numbered lines on which a statement begins: not those inside multi-line texts and arrays."""
    depth = 0
    closing: str | None = None
    for number, line in enumerate(text.split("\n"), 1):
        begins = depth == 0 and closing is None
        rest = line.rstrip("\r")
        if begins:
            yield number, rest
            if _HEADER.fullmatch(rest):
                continue
        rest, closing = _outside_long_texts(rest, closing)
        bare = _TEXT_OR_COMMENT.sub("", rest)
        depth = max(0, depth + sum(map(bare.count, "[{")) - sum(map(bare.count, "]}")))


def _outside_long_texts(line: str, closing: str | None) -> tuple[str, str | None]:
    """`line` without its parts of multi-line texts, and the quotes that still have to close one."""
    kept = ""
    while line:
        if closing is not None:
            _, found, line = line.partition(closing)
            if not found:
                return kept, closing
            closing = None
            continue
        match = re.search(r"\"\"\"|'''|" + _TEXT_OR_COMMENT.pattern, line)
        if match is None:
            return kept + line, None
        kept, line = kept + line[: match.start()], line[match.end() :]
        closing = match[0] if match[0] in ('"""', "'''") else None
    return kept, closing


def _parts(key: str) -> tuple[str, ...]:
    return tuple(part.strip("\"'") for part in re.findall(_PART, key))


def _numbered(parts: tuple[str, ...], counts: dict[KeyPath, int], *, opens_item: bool) -> KeyPath:
    """The path of a header, with the index of the present item after each array of tables."""
    path: KeyPath = ()
    for index, part in enumerate(parts):
        path = (*path, part)
        last = index == len(parts) - 1
        if last and opens_item:
            counts[path] = counts.get(path, -1) + 1
        if path in counts:
            path = (*path, counts[path])
    return path


def _without_place(message: str) -> tuple[str, int | None]:
    match = re.fullmatch(r"(.*) \(at (?:line (\d+), column \d+|end of document)\)", message, re.DOTALL)
    if match is None:
        return message, None
    problem = match[1][:1].lower() + match[1][1:] + ("" if match[2] else " at the end of the file")
    return problem, int(match[2]) if match[2] else None


def _deeper_than(tree: object, limit: int) -> bool:
    level: list[object] = [tree]
    for _ in range(limit):
        level = [child for node in level for child in _children(node)]
        if not level:
            return False
    return True


def _children(node: object) -> list[object]:
    if isinstance(node, dict):
        return list(node.values())
    return list(node) if isinstance(node, list) else []
