"""Does a token name one person, and does no file but the owner's own give a token away?"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pizzabot.errors import ConfigError, NotFound
from pizzabot.home import Home
from pizzabot.people import People, Person
from pizzabot.tokens import Tokens

PEOPLE = People([Person("Ada", "owner"), Person("Bob", "approver"), Person("Dee", "owner")])


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    home.prepare()
    return home


@pytest.fixture
def tokens(home: Home) -> Tokens:
    tokens = Tokens(home, PEOPLE)
    tokens.ensure_owner()
    return tokens


def test_the_first_start_makes_a_token_for_the_owner(home: Home, tokens: Tokens) -> None:
    token = tokens.owner_token()
    assert token.startswith("pzb_")
    assert len(token) >= 4 + 43  # 256 bits in base 64
    assert tokens.person_of(token) == "Ada"
    assert home.token_file.read_text() == token + "\n"


def test_the_next_start_keeps_it(home: Home, tokens: Tokens) -> None:
    before = tokens.owner_token()
    Tokens(home, PEOPLE).ensure_owner()
    assert tokens.owner_token() == before


def test_a_lost_token_file_is_made_again_and_the_old_token_is_void(home: Home, tokens: Tokens) -> None:
    before = tokens.owner_token()
    home.token_file.unlink()
    tokens.ensure_owner()
    assert tokens.person_of(tokens.owner_token()) == "Ada"
    assert tokens.person_of(before) is None


def test_a_token_file_that_does_not_fit_is_made_again(home: Home, tokens: Tokens) -> None:
    home.token_file.write_text("pzb_something-else\n")
    tokens.ensure_owner()
    assert tokens.person_of(tokens.owner_token()) == "Ada"


def test_a_new_token_replaces_the_old_one_of_that_person_only(tokens: Tokens) -> None:
    first, second = tokens.issue("Bob"), tokens.issue("bob")
    assert (tokens.person_of(first), tokens.person_of(second)) == (None, "Bob")
    assert tokens.person_of(tokens.owner_token()) == "Ada"


def test_the_token_file_follows_the_first_owner_and_nobody_else(home: Home, tokens: Tokens) -> None:
    tokens.issue("Bob")
    tokens.issue("Dee")
    assert tokens.person_of(tokens.owner_token()) == "Ada"
    assert tokens.owner_token() == tokens.owner_token()
    assert tokens.issue("Ada") == tokens.owner_token()


def test_a_token_issued_by_another_process_counts_at_once(home: Home, tokens: Tokens) -> None:
    tokens.person_of("warm the cache")
    token = Tokens(home, PEOPLE).issue("Bob")
    assert tokens.person_of(token) == "Bob"


def test_somebody_who_left_the_settings_is_nobody(home: Home, tokens: Tokens) -> None:
    token = tokens.issue("Bob")
    assert Tokens(home, People([Person("Ada", "owner")])).person_of(token) is None


def test_a_person_nobody_knows_gets_no_token(tokens: Tokens) -> None:
    with pytest.raises(NotFound, match="known are Ada, Bob, Dee"):
        tokens.issue("Mallory")


@pytest.mark.parametrize("token", ["", "pzb_", "Ada", "\0", "ü" * 100, "x" * 1_000_000, "\ud800"])
def test_nonsense_is_nobody(tokens: Tokens, token: str) -> None:
    assert tokens.person_of(token) is None


def test_the_stored_hash_is_no_token(home: Home, tokens: Tokens) -> None:
    stored = json.loads(home.tokens_json.read_text())["Ada"]
    assert tokens.person_of(stored) is None


def test_a_long_text_that_begins_with_a_token_is_nobody(tokens: Tokens) -> None:
    assert tokens.person_of(tokens.owner_token() + "x") is None


def test_tokens_are_kept_hashed_in_private_files(home: Home, tokens: Tokens) -> None:
    token = tokens.issue("Bob")
    assert token not in home.tokens_json.read_text()
    for path in (home.tokens_json, home.token_file):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_files_are_private_under_any_umask(home: Home) -> None:
    before = os.umask(0)
    try:
        Tokens(home, PEOPLE).ensure_owner()
    finally:
        os.umask(before)
    test_tokens_are_kept_hashed_in_private_files(home, Tokens(home, PEOPLE))


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b'{"Ada": 3}', b'{"Ada": "abc"}', b"\xff", b"null", b"[" * 100_000, b" " * 1_000_001],
)
def test_a_broken_file_is_named_and_never_overwritten(home: Home, tokens: Tokens, content: bytes) -> None:
    home.tokens_json.write_bytes(content)
    attempts: list[Callable[[], object]] = [
        lambda: tokens.person_of("x"),
        lambda: tokens.issue("Bob"),
        lambda: tokens.ensure_owner(),
    ]
    for attempt in attempts:
        with pytest.raises(ConfigError, match=r"tokens\.json: is broken"):
            attempt()
    assert home.tokens_json.read_bytes() == content


def test_a_missing_file_is_named(home: Home, tokens: Tokens) -> None:
    home.tokens_json.unlink()
    with pytest.raises(ConfigError, match=r"tokens\.json: is missing"):
        tokens.person_of("x")


def test_an_unreadable_file_is_named(home: Home, tokens: Tokens) -> None:
    home.tokens_json.unlink()
    home.tokens_json.mkdir()
    with pytest.raises(ConfigError, match="cannot be read"):
        tokens.person_of("x")


@pytest.mark.parametrize("content", [None, b"", b"\n"])
def test_a_missing_owner_token_says_what_to_do(home: Home, tokens: Tokens, content: bytes | None) -> None:
    home.token_file.unlink()
    if content is not None:
        home.token_file.write_bytes(content)
    with pytest.raises(ConfigError, match="pizzabot serve"):
        tokens.owner_token()


def test_tokens_issued_at_the_same_time_are_all_kept(home: Home) -> None:
    people = People([Person("P0", "owner"), *(Person(f"P{n}", "member") for n in range(1, 12))])
    with ThreadPoolExecutor(12) as pool:
        issued = list(pool.map(lambda n: Tokens(home, people).issue(f"P{n}"), range(12)))
    tokens = Tokens(home, people)
    assert [tokens.person_of(token) for token in issued] == [f"P{n}" for n in range(12)]
