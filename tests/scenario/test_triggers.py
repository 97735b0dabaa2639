"""Work that starts by itself: it fires when it is due, ends in its owner's inbox, and is seen through."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from pizzabot.cli import main
from pizzabot.cli.place import write_address
from pizzabot.errors import ConfigError
from pizzabot.ids import new_id
from tests.fakes.clock import FakeClock
from tests.fakes.model_server import ModelServer
from tests.fakes.patience import PATIENCE_SECONDS
from tests.fakes.runtime import Served, ledger_calls, serving, write_home
from tests.scenario.acting import answers, ask_until, call, connected, decide, pending, settled

pytestmark = pytest.mark.asyncio(loop_scope="module")
Json = dict[str, Any]


@pytest.fixture(scope="module")
def moving() -> FakeClock:
    return FakeClock()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(
    tmp_path_factory: pytest.TempPathFactory, model: ModelServer, moving: FakeClock
) -> AsyncIterator[Served]:
    home = write_home(tmp_path_factory.mktemp("triggers") / "home", model.url)
    async with serving(home, clock=moving) as running:
        await running.runtime.working
        yield running


async def make(served: Served, **fields: Any) -> Json:
    response = await served.http.post("/api/triggers", json=fields)
    assert response.status_code == 201, response.text
    made: Json = response.json()
    return made


async def firings(served: Served, trigger: Json) -> list[Json]:
    response = await served.http.get(f"/api/triggers/{trigger['id']}/occurrences")
    found: list[Json] = response.json()["occurrences"]
    return found


async def once(served: Served, trigger: Json, is_so: Callable[[list[Json]], bool]) -> list[Json]:
    """The firings of a trigger, as soon as it is so."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not is_so(found := await firings(served, trigger)):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    return found


def wake(served: Served) -> None:
    served.runtime.doors.triggers._changed()


async def test_a_schedule_fires_when_it_is_due_and_its_result_is_unread(
    served: Served, moving: FakeClock
) -> None:
    trigger = await make(
        served, name="Morning", cron="* * * * *", prompt="[[say good morning]]", timezone="UTC"
    )
    assert await firings(served, trigger) == []
    moving.advance(timedelta(minutes=1))
    wake(served)
    (fired,) = await once(served, trigger, lambda found: bool(found) and found[0]["state"] == "succeeded")
    thread = (await served.http.get(f"/api/threads/{fired['thread_id']}")).json()
    assert answers(thread) == ["good morning"]
    assert thread["title"] == "Morning"
    assert thread["unread"]
    (run,) = (await served.http.get(f"/api/threads/{fired['thread_id']}/trace")).json()["runs"]
    assert (run["trigger_id"], run["trigger"]) == (trigger["id"], "Morning")
    await served.http.delete(f"/api/triggers/{trigger['id']}")


async def test_a_firing_waits_with_its_run_and_ends_with_it(served: Served, moving: FakeClock) -> None:
    trigger = await make(
        served, name="Spending", cron="@daily", prompt=call("submit_expense", amount=1, note="x")
    )
    fired = (await served.http.post("/api/triggers/Spending/run")).json()
    assert fired["reason"] == "manual"
    (waiting,) = await once(served, trigger, lambda found: found[0]["state"] == "waiting")
    thread = (await served.http.get(f"/api/threads/{waiting['thread_id']}")).json()
    await decide(served, pending(thread)[0], "approve")
    await once(served, trigger, lambda found: found[0]["state"] == "succeeded")


async def test_a_webhook_brings_data_beside_the_prompt(served: Served, model: ModelServer) -> None:
    trigger = await make(
        served, name="Alerts", kind="webhook", prompt="Look at {{ payload.alert }}. [[say seen]]"
    )
    response = await served.http.post(
        f"/hooks/{trigger['id']}",
        json={"alert": "disk\nfull"},
        headers={"Authorization": f"Bearer {trigger['secret']}"},
    )
    assert response.status_code == 202, response.text
    taken = response.json()
    await once(served, trigger, lambda found: found[0]["state"] == "succeeded")
    thread = (await served.http.get(f"/api/threads/{taken['thread_id']}")).json()
    asked = thread["messages"][0]["text"]
    assert asked.startswith("Look at disk full. [[say seen]]")
    assert '```json\n{\n  "alert": "disk\\nfull"\n}\n```' in asked


async def test_a_wish_for_work_again_and_again_becomes_a_trigger_once_a_person_says_so(
    served: Served,
) -> None:
    wish = call("create_trigger", "root", name="Weekly", prompt="Summarise the week", cron="0 9 * * mon")
    thread = await ask_until(served, f"Every monday at nine, please. {wish}", "waiting")
    (action,) = pending(thread)
    assert (action["tool"], action["args"]["cron"]) == ("builtin:create_trigger", "0 9 * * mon")
    assert [row["name"] for row in await rows(served) if row["name"] == "Weekly"] == []
    await decide(served, action, "edit", args=action["args"] | {"cron": "30 9 * * mon"})
    thread = await settled(served, thread["id"])
    assert "Mondays at 09:30" in answers(thread)[0]
    (made,) = [row for row in await rows(served) if row["name"] == "Weekly"]
    assert (made["cron"], made["owner"], made["source"]) == ("30 9 * * mon", "Ada", "conversation")


async def rows(served: Served) -> list[Json]:
    found: list[Json] = (await served.http.get("/api/triggers")).json()["triggers"]
    return found


async def test_a_trigger_with_skills_uses_no_others(served: Served) -> None:
    await connected(served)
    for skills, calls in ((["Bookkeeper"], 1), (["guide"], 0)):
        before = len(ledger_calls(served.home))
        trigger = await make(
            served, name=new_id(), cron="@yearly", skills=skills, prompt=call("lookup", query="x")
        )
        fired = (await served.http.post(f"/api/triggers/{trigger['id']}/run")).json()
        await served.wait(fired["thread_id"], "idle", "failed")
        assert len(ledger_calls(served.home)) - before == calls


# -- the command line --------------------------------------------------------------------------------------


@pytest.fixture
def pizzabot(
    served: Served, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Any]:
    """Runs a command against the server; its exit code, and the lines on stdout and on stderr."""
    for name in [name for name in os.environ if name.startswith("PIZZABOT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIZZABOT_HOME", str(served.home.path))
    # As `serve` says where it is.
    served.home.lock_file.write_text(str(os.getpid()))
    write_address(served.home, "127.0.0.1", served.port)

    async def run(*words: str) -> tuple[int, list[str], list[str]]:
        capsys.readouterr()
        code = await asyncio.to_thread(main, ["triggers", *words])
        said = capsys.readouterr()
        return code, said.out.splitlines(), said.err.splitlines()

    return run


async def test_a_schedule_by_commands(
    served: Served, pizzabot: Callable[..., Any], moving: FakeClock
) -> None:
    name = "24/7: ../report"
    add = ("add", name, "--cron", "0 8 * * 1-5", "--zone", "Europe/Amsterdam", "--prompt", "[[say ok]]")
    options = (
        "--overlap",
        "queue",
        "--misfire",
        "all",
        "--misfire-max",
        "3",
        "--grace",
        "1h",
        "--skill",
        "bookkeeper",
    )
    code, out, err = await pizzabot(*add, *options, "--channel", "web", "--owner", "Cay", "--budget", "0.5")
    assert (code, err) == (0, [])
    assert out[0].startswith(f"{name}: next ")
    known = next(
        row for row in (await served.http.get("/api/triggers")).json()["triggers"] if row["name"] == name
    )
    assert {
        k: known[k] for k in ("cron", "overlap", "misfire", "misfire_max", "grace", "owner", "budget_usd")
    } == {
        "cron": "0 8 * * 1-5",
        "overlap": "queue",
        "misfire": "all",
        "misfire_max": 3,
        "grace": "1h",
        "owner": "Cay",
        "budget_usd": 0.5,
    }
    code, out, _ = await pizzabot("list")
    (row,) = [line for line in out if line.startswith(name)]
    assert "weekdays at 08:00 (Europe/Amsterdam)" in row
    code, out, _ = await pizzabot("run", name)
    assert (code, out[0].split("; ")[0]) == (0, "Running")
    code, out, _ = await pizzabot("show", name.upper())
    assert (code, out[0].split(), "manual" in out[-1]) == (0, ["name", *name.split()], True)
    code, out, _ = await pizzabot("edit", name, "--off", "--cron", "@daily")
    assert (code, out) == (0, [f"{name}: next off"])
    code, out, _ = await pizzabot("next", name, "--count", "2")
    assert (code, len(out), out[0][10:]) == (0, 2, "T00:00:00+01:00")
    assert (await pizzabot("remove", name))[:2] == (0, ["Removed."])
    code, out, err = await pizzabot("show", name)
    assert (code, out, err) == (
        1,
        [],
        [f'pizzabot: There is no trigger "{name}"; `triggers list` shows them.'],
    )


async def test_a_webhook_by_commands_tells_its_secret_once(
    served: Served, pizzabot: Callable[..., Any]
) -> None:
    code, out, err = await pizzabot("add", "Deploys", "--webhook", "--prompt", "Look.", "--signing", "hmac")
    known = (await served.http.get("/api/triggers/Deploys")).json()
    assert (code, err) == (0, ["The secret is shown this once."])
    assert out[0] == "Deploys: next when it is called"
    rows = dict(line.split() for line in out[1:])
    assert rows == {
        "url": f"{served.url}/hooks/{known['id']}",
        "signing": "hmac",
        "secret": rows["secret"],
    }
    assert len(rows["secret"]) >= 32
    code, again, _ = await pizzabot("show", "Deploys", "--json")
    assert rows["secret"] not in "".join(again)
    code, renewed, _ = await pizzabot("edit", "Deploys", "--new-secret")
    assert renewed[-1].split()[0] == "secret"
    assert renewed[-1] != out[-1]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["add", "X", "--prompt", "x"], 2, "give either --cron or --webhook"),
        (
            ["add", "X", "--prompt", "x", "--cron", "@daily", "--webhook"],
            2,
            "give either --cron or --webhook",
        ),
        (["add", "X", "--cron", "@daily"], 2, "--prompt"),
        (["add", "X", "--prompt", "x", "--cron", "8 am"], 1, '"8 am" is no schedule'),
        (["add", "X", "--prompt", "x", "--cron", "@daily", "--zone", "Mars"], 1, "timezone: "),
        (["edit", "nobody", "--off"], 1, 'There is no trigger "nobody"'),
        (["edit", "nobody"], 2, "nothing is to be changed"),
        (["run", "nobody"], 1, 'There is no trigger "nobody"'),
        (["next", "* * *"], 1, '"* * *" is neither a trigger nor a schedule'),
        (["next", "99 * * * *"], 1, '"99 * * * *" is no schedule'),
    ],
)
async def test_a_command_that_cannot_be_says_why_in_one_line(
    pizzabot: Callable[..., Any], words: list[str], code: int, said: str
) -> None:
    ended, out, err = await pizzabot(*words)
    assert (ended, out) == (code, [])
    assert said in " ".join(err)
    assert code == 2 or len(err) == 1


# -- the file ----------------------------------------------------------------------------------------------


async def test_a_table_that_cannot_be_stops_the_start_with_its_name_and_doctor_says_the_same(
    tmp_path: Path, model: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    table = """
        [[triggers]]
        name = "Hook"
        kind = "webhook"
        prompt = "{{ nothing }}"
        secret = "0123456789abcdef"
    """
    home = write_home(tmp_path / "home", model.url, more_toml=table)
    said = '[[triggers]] "Hook": prompt: The prompt cannot be filled in: "nothing" is not known.'
    with pytest.raises(ConfigError, match=re.escape(said)):
        async with serving(home):
            pass
    capsys.readouterr()
    assert await asyncio.to_thread(main, ["--home", str(home.path), "doctor", "--offline"]) == 1
    out = capsys.readouterr().out
    assert [line for line in out.splitlines() if line.startswith("error")] == [
        f"error    triggers  {said} Write {{{{ payload.name }}}} for a field of what the webhook brings. -> "
        "correct it in pizzabot.toml"
    ]
    assert "0123456789abcdef" not in out
