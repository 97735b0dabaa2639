"""What a server may do to a mailbox's door: lie, fall silent, cut off, and want a token."""

from __future__ import annotations

import base64
import time
from collections.abc import AsyncIterator
from dataclasses import replace

import httpx
import pytest

from adapters.email.imap.door import Timing
from tests.fakes.mail.scripted import ScriptedServer, scripted_server
from tests.fakes.mail.watching import QUICK, Notes, Watched

OAUTH = {"token_command": ["echo", "token-1"]}


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with scripted_server() as scripted:
        yield scripted


async def test_the_last_mail_is_not_new_because_a_search_names_it(server: ScriptedServer) -> None:
    server.subjects = {5: "old"}
    async with Watched(server.settings(poll_seconds=1)) as watched:
        await watched.until(lambda: server.said.count("UID SEARCH UID 6:*") >= 2)
        assert watched.subjects == []
        server.subjects[9] = "new"
        server.notify()
        await watched.until_taken("new")


async def test_mail_that_comes_between_the_search_and_idle_is_noticed(server: ScriptedServer) -> None:
    def arrive(command: str) -> None:
        if command == "IDLE":
            server.subjects[1] = "quick"

    server.answers.append(arrive)
    async with Watched(server.settings()) as watched:
        await watched.until_taken("quick")


async def test_a_server_that_falls_silent_in_idle_is_left(server: ScriptedServer) -> None:
    server.answers.append(lambda command: "" if command == "DONE" else None)
    timing = replace(QUICK, silence=0.3)
    async with Watched(server.settings(poll_seconds=1), timing=timing) as watched:
        await watched.until(lambda: server.connections >= 2)
        assert f"127.0.0.1:{server.port} does not answer" in {detail for _, detail in watched.states}
        began = time.monotonic()
    assert time.monotonic() - began < 2


@pytest.mark.parametrize("silent", ["greeting", "LOGIN", "SELECT", "UID SEARCH", "LOGOUT"])
async def test_a_silent_server_never_holds_up_the_end(server: ScriptedServer, silent: str) -> None:
    server.greets = silent != "greeting"
    server.answers.append(lambda command: "" if command.startswith(silent) else None)
    async with Watched(server.settings()) as watched:
        await watched.until(lambda: server.connections == 1)
        if silent == "LOGOUT":
            await watched.until_state("ok")
        began = time.monotonic()
    assert time.monotonic() - began < 2


async def test_idle_is_renewed_in_its_time(server: ScriptedServer) -> None:
    timing = replace(QUICK, renew=(0.05, 0.1))
    async with Watched(server.settings(), timing=timing) as watched:
        await watched.until(lambda: server.said.count("IDLE") >= 3)
        assert server.connections == 1


async def test_a_server_that_says_goodbye_is_called_again(server: ScriptedServer) -> None:
    server.answers.append(
        lambda command: (
            "+ idling\n* BYE going down\n" if server.connections == 1 and command == "IDLE" else None
        )
    )
    async with Watched(server.settings(poll_seconds=1)) as watched:
        await watched.until(lambda: server.connections == 2)
        await watched.until_state("ok")


async def test_a_mail_that_the_server_refuses_to_give_is_left_after_three_tries(
    server: ScriptedServer,
) -> None:
    server.answers.append(
        lambda command: "{tag} NO broken\n" if command.startswith("UID FETCH 1 (B") else None
    )
    async with Watched(server.settings()) as watched:
        await watched.until_state("ok")
        server.subjects = {1: "broken", 2: "good"}
        server.notify()
        await watched.until_taken("good")
        assert server.said.count("UID FETCH 1 (BODY.PEEK[])") == 3
        assert server.connections == 1


async def test_a_mail_that_ends_each_connection_is_left_after_ten(server: ScriptedServer) -> None:
    server.answers.append(lambda command: "* BYE\n" if command.startswith("UID FETCH 1 (B") else None)
    timing = replace(QUICK, first_wait=0.01, longest_wait=0.02, silence=0.1)
    notes = Notes()
    async with Watched(server.settings(), notes) as watched:
        await watched.until_state("ok")
    server.subjects = {1: "broken", 2: "good"}
    async with Watched(server.settings(), notes, timing) as watched:
        await watched.until_taken("good")
        assert server.said.count("UID FETCH 1 (BODY.PEEK[])") == 10


async def test_a_passing_fault_of_the_login_is_not_the_passwords(server: ScriptedServer) -> None:
    server.answers.append(
        lambda command: "{tag} NO [UNAVAILABLE] try later\n" if command.startswith("LOGIN") else None
    )
    async with Watched(server.settings()) as watched:
        said = await watched.until_state("down")
        assert said == "127.0.0.1 lets nobody in at the moment: [UNAVAILABLE] try later"


async def test_a_connection_that_is_cut_in_the_login_is_not_the_passwords(server: ScriptedServer) -> None:
    server.answers.append(lambda command: "* BYE overloaded\n" if command.startswith("LOGIN") else None)
    async with Watched(server.settings()) as watched:
        await watched.until_state("down")
        assert "unauthorized" not in {state for state, _ in watched.states}


async def test_a_server_that_wants_to_know_who_we_are_is_told(server: ScriptedServer) -> None:
    async with Watched(server.settings()) as watched:
        await watched.until_state("ok")
        assert any(command.startswith('ID ("name" "Pizza Bot"') for command in server.said)


async def test_a_folder_without_lasting_uids_is_not_read(server: ScriptedServer) -> None:
    server.answers.append(lambda command: "{tag} OK done\n" if command.startswith("SELECT") else None)
    async with Watched(server.settings()) as watched:
        said = await watched.until_state("down")
        assert said is not None
        assert "no lasting UIDs" in said


async def test_a_folder_that_may_only_be_read_is_read(server: ScriptedServer) -> None:
    server.answers.append(
        lambda command: (
            "* 0 EXISTS\n* OK [UIDVALIDITY 7] x\n* OK [UIDNEXT 1] x\n{tag} OK [READ-ONLY] done\n"
            if command.startswith(("SELECT", "EXAMINE"))
            else None
        )
    )
    async with Watched(server.settings()) as watched:
        await watched.until_state("ok")
        server.subjects = {1: "one"}
        server.notify()
        await watched.until_taken("one")


# -- XOAUTH2 -----------------------------------------------------------------------------------------------


async def test_an_access_token_lets_in(server: ScriptedServer) -> None:
    async with Watched(server.settings(oauth=OAUTH)) as watched:
        await watched.until_state("ok")
    said = base64.b64decode(server.said[server.said.index("AUTHENTICATE XOAUTH2") + 1])
    assert said == b"user=pizza\x01auth=Bearer token-1\x01\x01"


async def test_an_access_token_that_is_refused_is_renewed_at_once(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = iter(["old", "new"])

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json={"access_token": next(tokens), "expires_in": 3600})

    client = httpx.AsyncClient
    monkeypatch.setattr(
        httpx, "AsyncClient", lambda **options: client(transport=httpx.MockTransport(answer), **options)
    )

    def refuse_the_old(command: str) -> str | None:
        if command.startswith("TOKEN") and b"old" in base64.b64decode(command[6:]):
            return "+ eyJzdGF0dXMiOiI0MDAifQ==\n"
        return None

    server.answers.append(refuse_the_old)
    oauth = {"token_url": "https://login.example/token", "client_id": "c", "refresh_token": "r"}
    async with Watched(server.settings(oauth=oauth)) as watched:
        await watched.until_state("ok")
    assert [state for state, _ in watched.states] == ["connecting", "ok"]
    assert server.said[server.said.index("AUTHENTICATE XOAUTH2") + 2] == ""  # the challenge's answer


async def test_a_token_that_is_refused_twice_is_said(server: ScriptedServer) -> None:
    server.answers.append(lambda command: "+ e30=\n" if command.startswith("TOKEN") else None)
    async with Watched(server.settings(oauth=OAUTH)) as watched:
        said = await watched.until_state("unauthorized")
        assert said is not None
        assert "refused the login of pizza" in said


def test_the_product_is_patient() -> None:
    timing = Timing()
    assert (timing.first_wait, timing.longest_wait, timing.renew) == (1.0, 300.0, (240.0, 540.0))
