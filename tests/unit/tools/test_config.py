"""Reading `.mcp.json`: what is a mistake of one server, and what of the whole file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pizzabot.tools.config import McpConfig, parse_servers, read_servers, redact


def parse(servers: dict[str, Any], **environ: str) -> McpConfig:
    return parse_servers(json.dumps({"mcpServers": servers}), ".mcp.json", environ)


def test_a_stdio_server_is_read_with_its_defaults() -> None:
    (server,) = parse({"ledger": {"command": "python", "args": ["-m", "ledger"], "cwd": "/srv"}}).servers
    assert (server.name, server.transport, server.command) == ("ledger", "stdio", "python")
    assert (server.args, server.cwd, server.enabled) == (("-m", "ledger"), "/srv", True)
    assert (server.timeout_seconds, server.start_timeout_seconds) == (300, 30)
    assert server.error is None


@pytest.mark.parametrize(
    ("kind", "transport"), [("http", "http"), ("streamable-http", "http"), ("sse", "sse"), (None, "http")]
)
def test_a_web_server_is_read(kind: str | None, transport: str) -> None:
    entry = {"url": "https://example.com/mcp", "headers": {"X-Key": "k"}} | ({"type": kind} if kind else {})
    (server,) = parse({"wiki": entry}).servers
    assert (server.transport, server.url, server.headers) == (
        transport,
        "https://example.com/mcp",
        {"X-Key": "k"},
    )


def test_variables_and_defaults_expand_in_every_string() -> None:
    entry = {
        "command": "${BIN}/run",
        "args": ["--key=${KEY}", "${MODE:-fast}"],
        "env": {"A": "${KEY}-${KEY}"},
        "cwd": "${NOPE:-}",
    }
    (server,) = parse({"x": entry}, BIN="/opt", KEY="key-4711").servers
    assert server.command == "/opt/run"
    assert server.args == ("--key=key-4711", "fast")
    assert server.env == {"A": "key-4711-key-4711"}
    assert server.cwd is None


@pytest.mark.parametrize(
    ("entry", "key"),
    [
        ({"command": "${GONE}"}, "command"),
        ({"command": "x", "args": ["a", "${GONE}"]}, r"args\[1\]"),
        ({"command": "x", "env": {"TOKEN": "${GONE}"}}, r"env\.TOKEN"),
        ({"type": "http", "url": "https://${GONE}/"}, "url"),
        ({"type": "sse", "url": "https://a/", "headers": {"Auth": "Bearer ${GONE}"}}, r"headers\.Auth"),
    ],
)
def test_an_unset_variable_names_server_key_and_variable(entry: dict[str, Any], key: str) -> None:
    bad, good = parse({"bad": entry, "good": {"command": "y"}}).servers
    assert bad.error is not None
    with pytest.raises(AssertionError, match=rf'server "bad": {key}: \$\{{GONE\}} is not set'):
        raise AssertionError(bad.error)
    assert good.error is None


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ([], "must be an object"),
        ({}, "command: is missing"),
        ({"command": 7}, "command: must be a string"),
        ({"command": "x", "args": "a b"}, "args: must be a list of strings"),
        ({"command": "x", "args": [1]}, "args[0]: must be a string"),
        ({"command": "x", "env": {"A": 1}}, "env.A: must be a string"),
        ({"command": "x", "env": ["A"]}, "env: must be an object of strings"),
        ({"command": "x", "enabled": "no"}, "enabled: must be true or false"),
        ({"command": "x", "timeout_seconds": "9"}, "timeout_seconds: must be a number of seconds above 0"),
        ({"command": "x", "timeout_seconds": True}, "timeout_seconds: must be a number of seconds above 0"),
        ({"command": "x", "start_timeout_seconds": 0}, "start_timeout_seconds: must be a number"),
        ({"command": "x\0"}, "command: must not hold a NUL character"),
        ({"type": "carrier-pigeon"}, "type: must be one of"),
        ({"type": "http", "url": "ftp://a"}, "url: must be an http or https address"),
        ({"type": "http", "url": "http://[::1"}, "url: must be an http or https address"),
    ],
)
def test_a_wrong_type_is_an_error_of_that_server_alone(entry: Any, problem: str) -> None:
    bad, good = parse({"bad": entry, "good": {"command": "y"}}).servers
    assert problem in (bad.error or "")
    assert good.error is None


def test_unknown_keys_are_tolerated() -> None:
    (server,) = parse({"x": {"command": "y", "alwaysAllow": ["a"], "disabledReason": None}}).servers
    assert server.error is None


@pytest.mark.parametrize("name", ["", "a b", "a:b", "x" * 65, "ä", "a\n"])
def test_a_name_that_cannot_stand_in_a_reference_is_broken(name: str) -> None:
    config = parse({name: {"command": "y"}, "good": {"command": "y"}})
    assert [server.name for server in config.servers] == ["good"]
    assert "server name" in config.broken[0].reason
    assert config.broken[0].line == 1


def test_malformed_json_is_broken_with_its_line() -> None:
    config = parse_servers('{\n  "mcpServers": {\n    "a": {"command": "x",}\n  }\n}', "/home/.mcp.json", {})
    assert config.servers == ()
    assert (config.broken[0].file, config.broken[0].line) == ("/home/.mcp.json", 3)
    assert config.broken[0].reason.startswith("not valid JSON: ")


@pytest.mark.parametrize("text", ["", "[]", "null", '{"servers": {}}', '{"mcpServers": []}', "[" * 100_000])
def test_a_file_of_another_shape_is_broken(text: str) -> None:
    config = parse_servers(text, "f", {})
    assert config.servers == ()
    assert len(config.broken) == 1


def test_an_empty_object_means_no_servers() -> None:
    assert parse_servers("{}", "f", {}) == McpConfig()


def test_a_key_that_appears_twice_is_broken_and_its_server_invalid() -> None:
    text = """{"mcpServers": {
        "a": {"command": "x",
              "env": {"K": "1"},
              "command": "y"},
        "b": {"command": "x", "args": ["\\"command\\": {"], "env": {"command": "z"}},
        "c": {"command": "x"},
        "c": {"command": "y"}
    }}"""
    config = parse_servers(text, "f", {})
    assert [(broken.line, broken.reason) for broken in config.broken] == [
        (4, 'the key "command" appears twice'),
        (7, 'the key "c" appears twice'),
    ]
    assert {server.name: server.error is None for server in config.servers} == {
        "a": False,
        "b": True,
        "c": False,
    }


def test_two_lists_of_servers_are_no_list() -> None:
    config = parse_servers('{"mcpServers": {"a": {"command": "x"}},\n "mcpServers": {}}', "f", {})
    assert config.servers == ()
    assert config.broken[0].line == 2


def test_secrets_are_collected_from_environment_headers_and_addresses() -> None:
    config = parse(
        {
            "a": {
                "command": "x",
                "args": ["${ARG}"],
                "env": {"K": "literal-key", "DIR": "/srv/data", "N": "1"},
            },
            "b": {
                "type": "http",
                "url": "https://u:pass-word@h/",
                "headers": {"Authorization": "Bearer t0k3n"},
            },
        },
        ARG="arg-secret",
    )
    assert config.secrets == {"arg-secret", "literal-key", "pass-word", "Bearer t0k3n", "t0k3n"}
    assert "t0k3n" not in repr(config)
    assert "literal-key" not in repr(config)


def test_the_home_directory_is_no_secret() -> None:
    assert parse({"a": {"command": "x", "cwd": "${HOME}/work"}}, HOME="/home/ada").secrets == frozenset()


def test_a_longer_secret_is_blotted_out_before_a_part_of_it() -> None:
    assert redact("key abcdef and abcd", {"abcd", "abcdef"}) == "key *** and ***"


def test_a_missing_file_means_no_servers_and_an_unreadable_one_is_broken(tmp_path: Path) -> None:
    assert read_servers(tmp_path / ".mcp.json", {}) == McpConfig()
    (tmp_path / "latin").write_bytes(b'{"a": "\xff"}')
    assert read_servers(tmp_path / "latin", {}).broken[0].reason.startswith("cannot be read")
    (tmp_path / "bom").write_bytes(b'\xef\xbb\xbf{"mcpServers": {"a": {"command": "x"}}}')
    assert len(read_servers(tmp_path / "bom", {}).servers) == 1


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12) | st.just("${A}"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)
keys = st.sampled_from(["command", "args", "env", "url", "type", "headers", "enabled", "timeout_seconds"])


@settings(max_examples=50, deadline=None)
@given(st.dictionaries(st.text(max_size=6), st.dictionaries(keys, json_values) | json_values, max_size=3))
def test_no_content_of_the_file_raises(servers: dict[str, Any]) -> None:
    config = parse(servers)
    assert len(config.servers) + len(config.broken) == len(servers)


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=40))
def test_no_text_raises(text: str) -> None:
    parse_servers(text, "f", {})
