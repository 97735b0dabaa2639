"""Does `pizzabot open` print a link that can be piped, and say all else beside it?"""

from __future__ import annotations

import json
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pizzabot.cli import house, main
from pizzabot.cli.client import Api, httpx
from tests.unit.cli.conftest import Answers

URL = "http://127.0.0.1:8642/login?code=once"
MADE = {"person": "Ada", "url": URL, "expires_at": "2026-03-09T12:10:00+00:00"}

Asked = list[tuple[str, str, Any]]
Serve = Callable[[Any], Asked]


@pytest.fixture
def serve(serving: Callable[[Answers], Api], monkeypatch: pytest.MonkeyPatch) -> Serve:
    """Puts a server in the place of the real one; what it was asked."""

    def make(answer: Any) -> Asked:
        asked: Asked = []

        def answers(request: httpx.Request) -> Any:
            asked.append((request.method, request.url.path, json.loads(request.content)))
            return answer

        @contextmanager
        def connected(option: str | None) -> Iterator[Api]:
            yield serving(answers)

        monkeypatch.setattr(house, "connected", connected)
        return asked

    return make


@pytest.fixture(autouse=True)
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The links that a browser was opened with; no test opens one."""
    links: list[str] = []

    def open_link(url: str) -> bool:
        links.append(url)
        return True

    monkeypatch.setattr(webbrowser, "open", open_link)
    return links


@pytest.mark.parametrize(
    ("words", "body"), [([], {}), (["Cay"], {"person": "Cay"}), (["Zoë Ω"], {"person": "Zoë Ω"})]
)
def test_the_server_is_asked_for_a_link_of_that_person(
    serve: Serve, words: list[str], body: dict[str, str]
) -> None:
    asked = serve(MADE)
    assert main(["open", *words]) == 0
    assert asked == [("POST", "/api/login-links", body)]


def test_the_link_alone_goes_to_stdout(
    serve: Serve, capsys: pytest.CaptureFixture[str], opened: list[str]
) -> None:
    serve(MADE)
    assert main(["open"]) == 0
    said = capsys.readouterr()
    assert said.out == f"{URL}\n"
    assert said.err == "It logs Ada in, once, within ten minutes.\n"
    assert opened == []


def test_as_json_it_is_what_the_server_said(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    serve(MADE)
    assert main(["open", "--json"]) == 0
    said = capsys.readouterr()
    assert (json.loads(said.out), said.err) == (MADE, "")


def test_a_browser_is_opened_only_when_asked_for(
    serve: Serve, capsys: pytest.CaptureFixture[str], opened: list[str]
) -> None:
    serve(MADE)
    assert main(["open", "--browser"]) == 0
    assert opened == [URL]
    assert capsys.readouterr().out == f"{URL}\n"


def test_without_a_browser_the_link_is_there_all_the_same(
    serve: Serve, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(MADE)
    monkeypatch.setattr(webbrowser, "open", lambda url: False)
    assert main(["open", "--browser"]) == 1
    said = capsys.readouterr()
    assert said.out == f"{URL}\n"
    assert said.err.endswith("pizzabot: no browser could be opened here; open the link yourself\n")


def test_a_refusal_is_told_in_its_own_words(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    error = {"code": "not_an_owner", "message": "Only an owner may make a login link for somebody else."}
    serve(httpx.Response(403, json={"error": error}))
    assert main(["open", "Ada"]) == 1
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", f"pizzabot: {error['message']}\n")


def test_a_name_cannot_rewrite_the_terminal(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    serve(MADE | {"person": "\x1b[2J\u202e"})
    assert main(["open"]) == 0
    said = capsys.readouterr()
    assert "\x1b" not in said.err
    assert "\u202e" not in said.err


@pytest.mark.parametrize("words", [["open", "a", "b"], ["open", "--frob"]], ids=" ".join)
def test_wrong_usage_is_code_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert capsys.readouterr().out == ""


def test_without_a_server_the_code_is_3(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIZZABOT_HOME", str(tmp_path / "home"))
    assert main(["open"]) == 3
    assert "the server is not running" in capsys.readouterr().err
