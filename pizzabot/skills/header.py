"""What stands between the `---` lines of a SKILL.md, as plain data, and on which line is each key?

Refuses what YAML allows and nobody needs here; mends what public collections write and YAML forbids.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from pizzabot.errors import ConfigError

LARGEST_BYTES = 1_000_000

_LARGEST_HEADER = 64_000  # the parser is slow by design; no honest header comes near
_TOP_LEVEL_LINE = re.compile(r"([A-Za-z_][\w.-]*)[ \t]*:[ \t]+(?![|>\"'])(\S.*)")
_MEANINGFUL_KEYS = ("tools", "mcp", "metadata")

KeyLines = Mapping[tuple[Any, ...], int]


def read_header(raw: bytes, path: Path) -> tuple[dict[Any, Any], KeyLines, str]:
    """The header's keys, the line of each key and list item, and the body.

    Raises:
        ConfigError: with the line, when there is no header that can be read.
    """
    header, body = _split(_decoded(raw, path), path)
    declared, lines = _mapping(header, path)
    return declared, lines, body


def _decoded(raw: bytes, path: Path) -> str:
    if len(raw) > LARGEST_BYTES:
        raise ConfigError(str(path), "is larger than 1 MB; move the long parts into files beside it")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(str(path), "is not UTF-8 text; save it as UTF-8", line=line) from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _split(text: str, path: Path) -> tuple[str, str]:
    """The header and the body."""
    lines = text.split("\n")
    if lines[0].rstrip() != "---":
        raise ConfigError(str(path), "has no header; the first line must be ---", line=1)
    end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() == "---"), None)
    if end is None:
        raise ConfigError(str(path), "has a header without end; close it with a line ---", line=1)
    header = "\n".join(lines[1:end]) + "\n"
    if len(header) > _LARGEST_HEADER:
        raise ConfigError(str(path), "has a header of more than 64 kB; move the text into the body", line=1)
    return header, "\n".join(lines[end + 1 :]).strip()


class _Loader(yaml.SafeLoader):
    """Plain data only: no aliases (a few lines of them fill the memory), no key twice."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(problem="aliases are not allowed", problem_mark=mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = True) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, dict | list | set):
                raise yaml.MarkedYAMLError(problem="a key must be a word", problem_mark=key_node.start_mark)
            if key in seen:
                raise yaml.MarkedYAMLError(problem=f"{key!r} stands twice", problem_mark=key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep=deep)


def _mapping(header: str, path: Path) -> tuple[dict[Any, Any], KeyLines]:
    """The header as data, with the line of every key."""
    try:
        try:
            found, lines = _load(header)
        except (yaml.scanner.ScannerError, yaml.parser.ParserError):
            if re.search("interrupt[ _-]?on", header, re.IGNORECASE):
                raise  # guessing at a file with gates could lose one
            repaired = _repaired(header)
            if repaired == header:
                raise
            found, lines = _load(repaired)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 2 if mark is not None else None
        raise ConfigError(str(path), f"has a header that is not YAML: {error.problem}", line=line) from error
    except yaml.reader.ReaderError as error:
        line = header.count("\n", 0, error.position) + 2
        raise ConfigError(str(path), "has a character in its header that YAML forbids", line=line) from error
    except (RecursionError, ValueError, TypeError, OverflowError) as error:
        raise ConfigError(str(path), "has a header that is not YAML we can read", line=2) from error
    if not isinstance(found, dict):
        raise ConfigError(str(path), "has a header without keys; name and description are required", line=2)
    return found, lines


def _load(header: str) -> tuple[Any, KeyLines]:
    loader = _Loader(header)
    try:
        node = loader.get_single_node()
        if node is None:
            return {}, {}
        return loader.construct_document(node), dict(_key_lines(node, ()))
    finally:
        loader.dispose()


def _key_lines(node: yaml.Node, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], int]]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            inner = (*path, key.value)
            yield inner, key.start_mark.line + 2
            yield from _key_lines(value, inner)
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield (*path, index), item.start_mark.line + 2
            yield from _key_lines(item, (*path, index))


def _repaired(header: str) -> str:
    """`header` with the plain values of top-level keys in quotes, as public collections mean them.

    `description: Use when: …` and `argument-hint: [file] [dir]` are not YAML and stand in many files.
    """
    result: list[str] = []
    lines = header.split("\n")
    while lines:
        line = lines.pop(0)
        match = _TOP_LEVEL_LINE.fullmatch(line)
        if match is None or match[1] in _MEANINGFUL_KEYS:
            result.append(line)
            continue
        continued = []
        while lines and lines[0][:1] in (" ", "\t"):
            continued.append(lines.pop(0))
        value = " ".join([match[2].strip(), *(part.strip() for part in continued)]).strip()
        result.append(f"{match[1]}: {json.dumps(value, ensure_ascii=False)}")
        result.extend("" for _ in continued)  # the lines after it keep their numbers
    return "\n".join(result)
