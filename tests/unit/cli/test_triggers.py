"""`pizzabot triggers …` on a running server: what is printed beside what, and what is refused."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import NamedTuple

import pytest
import pytest_asyncio

from pizzabot.cli import main
from pizzabot.cli.place import write_address
from pizzabot.ids import new_id
from tests.fakes.model_server import ModelServer
from tests.fakes.runtime import PEOPLE, Served, serving, write_home

pytestmark = pytest.mark.asyncio(loop_scope="module")

MORE = """
[[triggers]]
name = "From the file"
cron = "0 3 1 1 *"
prompt = "[[say done]]"
"""


class Said(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def rows(self) -> dict[str, str]:
        """What is printed as a word and its value, up to the first empty line."""
        lines = self.out.partition("\n\n")[0].splitlines()
        return {key: value.strip() for key, _, value in (line.partition(" ") for line in lines)}


Command = Callable[..., Awaitable[Said]]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    people = PEOPLE.replace('role = "owner"', 'role = "owner"\ndigest = "0 8 * * *"', 1)
    with ModelServer() as model:
        path = tmp_path_factory.mktemp("triggers") / "home"
        home = write_home(path, model.url, people=people, more_toml=MORE)
        async with serving(home) as running:
            home.lock_file.write_text(f"{os.getpid()}\n")
            write_address(home, "127.0.0.1", running.port)
            yield running


@pytest.fixture
def command(served: Served, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs `pizzabot triggers` with these words, for the home of the server."""
    for name in [name for name in os.environ if name.startswith("PIZZABOT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIZZABOT_HOME", str(served.home.path))

    async def run(*words: str) -> Said:
        code = await asyncio.to_thread(main, ["triggers", *words])
        said = capsys.readouterr()
        return Said(code, said.out, said.err)

    return run


async def made(command: Command, *words: str) -> str:
    """The name of a new trigger: yearly, unless the words say otherwise."""
    name = new_id()
    when = () if "--webhook" in words else ("--cron", "0 3 1 1 *")
    said = await command("add", name, "--prompt", "[[say done]]", *when, *words)
    assert said.code == 0, said.err
    return name


@pytest.mark.parametrize(
    ("kind", "rows"),
    [
        ("cron", {"cron", "timezone", "prompt"}),
        ("webhook", {"url", "signing", "prompt"}),
        ("digest", {"cron", "timezone"}),
    ],
)
async def test_every_kind_is_shown_with_the_rows_that_it_has(
    command: Command, kind: str, rows: set[str]
) -> None:
    names = {"digest": "digest:Ada"}
    words = ("--webhook",) if kind == "webhook" else ()
    said = await command("show", names.get(kind) or await made(command, *words))
    assert (said.code, said.err) == (0, "")
    assert said.rows["kind"] == kind
    assert rows == said.rows.keys() & {"cron", "timezone", "url", "signing", "prompt"}


@pytest.mark.parametrize("signing", ["secret", "hmac"])
async def test_what_the_other_program_needs_is_printed_by_name_when_a_webhook_is_made(
    command: Command, served: Served, signing: str
) -> None:
    name = new_id()
    said = await command("add", name, "--webhook", "--prompt", "Look.", "--signing", signing)
    trigger = await served.doors.triggers.get(name, served.runtime.people.owner)
    first, *rows = said.out.splitlines()
    assert first == f"{name}: next when it is called"
    printed = dict(row.split(maxsplit=1) for row in rows)
    assert (set(printed), printed["signing"]) == ({"url", "signing", "secret"}, signing)
    assert printed["url"] == f"{served.url}/hooks/{trigger.id}"
    assert len(printed["secret"]) >= 32
    assert "shown this once" in said.err
    new = await command("edit", name, "--new-secret")
    assert new.out.splitlines()[-1].split()[0] == "secret"
    assert printed["secret"] not in new.out
    assert "secret " not in (await command("show", name)).out.replace("signing   secret", "")


async def test_as_json_a_new_webhook_is_what_the_server_said(command: Command) -> None:
    said = await command("add", new_id(), "--webhook", "--prompt", "Look.", "--json")
    made = json.loads(said.out)
    assert (made["signing"], len(made["secret"]) >= 32, said.err) == ("secret", True, "")


FILE = "It is written in pizzabot.toml: what is changed here is changed back at the next start.\n"
BACK = "It is written in pizzabot.toml: what is removed here is back at the next start.\n"


async def test_of_a_trigger_of_the_file_it_is_said_that_the_file_wins(command: Command) -> None:
    off = await command("edit", "From the file", "--off")
    assert (off.code, off.err) == (0, "")  # what a person switched off stays off
    for json_too in ([], ["--json"]):
        edited = await command("edit", "From the file", "--prompt", "Other.", *json_too)
        assert (edited.code, edited.err) == (0, FILE)
    removed = await command("remove", "From the file")
    assert (removed.out, removed.err) == ("Removed.\n", BACK)


async def test_of_a_trigger_that_was_made_here_nothing_is_said_of_the_file(command: Command) -> None:
    name = await made(command)
    assert (await command("edit", name, "--prompt", "Other.")).err == ""
    assert (await command("remove", name)).err == ""


async def test_only_a_webhook_gets_a_new_secret(command: Command) -> None:
    name = await made(command)
    before = (await command("show", name)).out
    said = await command("edit", name, "--new-secret", "--prompt", "Other.")
    told = f"pizzabot: {name} is no webhook and has no secret; nothing was changed\n"
    assert (said.code, said.out, said.err) == (1, "", told)
    assert (await command("show", name)).out == before


async def test_next_says_that_a_word_is_neither_a_trigger_nor_a_schedule(command: Command) -> None:
    said = await command("next", "hello")
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith('pizzabot: "hello" is neither a trigger nor a schedule; ')
    assert len((await command("next", await made(command), "--count", "2")).out.splitlines()) == 2


async def test_a_place_whose_channel_is_off_is_warned_of_beside_the_result(command: Command) -> None:
    name = new_id()
    made = ("--cron", "@daily", "--prompt", "Look.", "--channel", "slack:C0123", "--channel", "web")
    said = await command("add", name, *made)
    warning = "channels: names slack:C0123, and slack is off; nobody is told there until it is on.\n"
    assert (said.code, said.err) == (0, warning)
    assert (await command("edit", name, "--channel", "email", "--json")).err.startswith(
        "channels: names email"
    )
    assert (await command("edit", name, "--channel", "web")).err == ""
