"""Access tokens come from a program or for a refresh token, and each failure says what to do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs

import httpx
import pytest

from adapters.email.failures import NotLetIn, Unreachable
from adapters.email.oauth import CommandTokens, RefreshedTokens, token_source
from pizzabot.settings.tables import OAuthTable

TABLE = OAuthTable.model_validate(
    {
        "token_url": "https://login.example/token",
        "client_id": "id",
        "client_secret": "hush",
        "refresh_token": "r1",
        "scope": "mail",
    }
)
Serve = Callable[..., list[dict[str, list[str]]]]


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Serve:
    """What token_url answers, one after the other; gives the forms that it was sent."""
    client = httpx.AsyncClient

    def serve(*responses: httpx.Response | Exception) -> list[dict[str, list[str]]]:
        waiting, forms = iter(responses), []

        def answer(request: httpx.Request) -> httpx.Response:
            forms.append(parse_qs(request.content.decode()))
            said = next(waiting)
            if isinstance(said, Exception):
                raise said
            return said

        transport = httpx.MockTransport(answer)
        monkeypatch.setattr(httpx, "AsyncClient", lambda **options: client(transport=transport, **options))
        return forms

    return serve


def good(token: str, **more: Any) -> httpx.Response:
    return httpx.Response(200, json={"access_token": token, "token_type": "Bearer", **more})


class Now:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


async def test_a_refresh_token_is_redeemed_as_the_standard_says(answers: Serve) -> None:
    forms = answers(good("a1", expires_in=3600))
    source = token_source(TABLE)
    assert source is not None
    assert await source.token() == "a1"
    assert forms == [
        {
            "grant_type": ["refresh_token"],
            "refresh_token": ["r1"],
            "client_id": ["id"],
            "client_secret": ["hush"],
            "scope": ["mail"],
        }
    ]


@pytest.mark.parametrize("life", [3600, "3600"])
async def test_an_access_token_is_kept_until_shortly_before_it_expires(answers: Serve, life: object) -> None:
    forms = answers(good("a1", expires_in=life), good("a2", expires_in=life))
    now = Now()
    tokens = RefreshedTokens(TABLE, now)
    assert await tokens.token() == "a1"
    now.seconds = 3539
    assert await tokens.token() == "a1"
    now.seconds = 3541
    assert await tokens.token() == "a2"
    assert len(forms) == 2


async def test_a_token_that_was_refused_is_not_given_again(answers: Serve) -> None:
    answers(good("a1", expires_in=3600), good("a2", expires_in=3600))
    tokens = RefreshedTokens(TABLE)
    assert await tokens.token() == "a1"
    assert await tokens.token(fresh=True) == "a2"


async def test_a_new_refresh_token_replaces_the_old_one(answers: Serve) -> None:
    forms = answers(good("a1", refresh_token="r2"), good("a2"))
    tokens = RefreshedTokens(TABLE)
    await tokens.token()
    await tokens.token(fresh=True)
    assert [form["refresh_token"] for form in forms] == [["r1"], ["r2"]]


@pytest.mark.parametrize(
    ("response", "sentence"),
    [
        (
            httpx.Response(400, json={"error": "invalid_grant"}),
            "token_url gave no access token (400, invalid_grant); sign in again for a new refresh_token",
        ),
        (
            httpx.Response(401, json={"error": "invalid_client"}),
            "token_url gave no access token (401, invalid_client); look at client_id and client_secret",
        ),
        (
            httpx.Response(200, text="<html>"),
            "token_url gave no access token (200, no access token); look at the table oauth",
        ),
        (
            httpx.Response(200, json={"access_token": "a\nb"}),
            "token_url gave no access token (200, no access token); look at the table oauth",
        ),
    ],
)
async def test_a_refusal_says_what_to_do(answers: Serve, response: httpx.Response, sentence: str) -> None:
    answers(response)
    with pytest.raises(NotLetIn) as caught:
        await RefreshedTokens(TABLE).token()
    assert str(caught.value) == sentence


@pytest.mark.parametrize("response", [httpx.Response(503), httpx.Response(429), httpx.ConnectError("no")])
async def test_an_outage_is_not_a_refusal(answers: Serve, response: httpx.Response | Exception) -> None:
    answers(response)
    with pytest.raises(Unreachable):
        await RefreshedTokens(TABLE).token()


async def test_a_program_prints_the_token() -> None:
    assert await CommandTokens(["echo", "abc.def"]).token() == "abc.def"


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (["false"], "token_command false failed with exit code 1; run it by hand"),
        (["true"], "token_command true did not print an access token on one line; run it by hand"),
        (
            ["echo", "two words"],
            "token_command echo did not print an access token on one line; run it by hand",
        ),
        (["/no/such"], "token_command /no/such cannot be started (No such file or directory)"),
    ],
)
async def test_a_program_that_gives_no_token_is_said(command: list[str], sentence: str) -> None:
    with pytest.raises(NotLetIn) as caught:
        await CommandTokens(command).token()
    assert str(caught.value) == sentence


async def test_a_program_that_does_not_end_is_ended() -> None:
    began = time.monotonic()
    with pytest.raises(Unreachable):
        await CommandTokens(["sleep", "60"], seconds=0.1).token()
    assert time.monotonic() - began < 5
    await asyncio.sleep(0)
