"""No model call starts when the money of a run or of a day is used up; somebody may allow more."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from pizzabot.home import Home
from pizzabot.inbox import runs, threads
from tests.fakes.clock import FakeClock
from tests.fakes.model_server import TITLE, ModelServer
from tests.fakes.patience import PATIENCE_SECONDS
from tests.fakes.runtime import PEOPLE, Served, serving, write_home
from tests.scenario.acting import Json, answers, ask, ask_until, call, decide, notices, pending, settled

pytestmark = pytest.mark.asyncio(loop_scope="module")

# Every call of this module's model reads a thousand tokens, and a thousand tokens cost a dollar.
CALL = (1_000, 0)
PRICED = '\n[prices."openai:mock"]\ninput = 1000.0\noutput = 1000.0\n'


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with ModelServer(tokens=CALL) as server:
        yield server


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def home_with(
    path: Path, model: ModelServer, limits: str, *, people: str = PEOPLE, priced: str = PRICED
) -> Home:
    return write_home(path / "home", model.url, people=people, more_toml=f"{priced}\n[limits]\n{limits}\n")


@asynccontextmanager
async def at_work(home: Home, clock: FakeClock | None = None) -> AsyncIterator[Served]:
    """A server that has loaded all that a run needs: the seconds that takes are nobody's wait."""
    async with serving(home, clock=clock) as served:
        await asyncio.shield(served.runtime.working)
        yield served


def asked_about(model: ModelServer, word: str) -> int:
    """How many requests the model got in conversations with this word."""
    return sum(word in str(asked.messages) for asked in model.asked)


def endless(word: str) -> str:
    """Words that keep the model calling a tool for ever."""
    return call("lookup", query=word).replace("[[call", "[[loop")


# -- a run -------------------------------------------------------------------------------------------------


async def test_a_run_starts_no_call_beyond_its_budget_and_goes_on_with_as_much_again(
    tmp_path: Path, model: ModelServer
) -> None:
    async with at_work(home_with(tmp_path, model, "run_usd = 5")) as served:
        thread = await ask_until(served, endless("forever"), "waiting")
        assert asked_about(model, "forever") == 5
        (limit,) = pending(thread)
        assert (limit["tool"], limit["args"]) == ("limit:usd", {"limit": "usd", "used": 5, "allowance": 5})
        assert "$5.00" in limit["title"]
        assert "Approve allows $5.00 more" in limit["why"]
        await decide(served, limit, "approve")
        await asyncio.wait_for(_until_calls(model, "forever", 10), 30)
        thread = await served.wait(thread["id"], "waiting")
        assert asked_about(model, "forever") == 10
        (limit,) = pending(thread)
        assert limit["args"] == {"limit": "usd", "used": 10, "allowance": 5}
        await decide(served, limit, "reject")
        thread = await settled(served, thread["id"])
        assert "ended at its limit" in answers(thread)[0]
        assert asked_about(model, "forever") == 10
        said = [text for text in notices(thread) if "This run has used" in text]
        assert len(said) == 1  # at four dollars of five, and never again
        assert "$4.00 of $5.00" in said[0]


async def _until_calls(model: ModelServer, word: str, count: int) -> None:
    while asked_about(model, word) < count:  # noqa: ASYNC110 - another thread has no event
        await asyncio.sleep(0.01)


async def test_workers_side_by_side_do_not_go_beyond_the_budget_together(
    tmp_path: Path, model: ModelServer
) -> None:
    jobs = json.dumps([["bookkeeper", "lookup", {"query": f"abreast {n}"}] for n in range(6)])
    async with at_work(home_with(tmp_path, model, "run_usd = 4")) as served:
        thread = await ask_until(served, f"[[workers {jobs}]]", "waiting")
        assert asked_about(model, "abreast") == 4
        assert [action["args"]["limit"] for action in pending(thread)] == ["usd"]
        assert thread["runs"][0]["used"]["usd"] == 4


async def test_the_summary_of_a_long_conversation_counts_and_does_not_start_beyond_the_budget(
    tmp_path: Path, model: ModelServer
) -> None:
    price = PRICED.replace("1000.0", "1.0")
    model.tokens = (1_000_000, 0)  # longer than what is summarised
    try:
        async with at_work(home_with(tmp_path, model, "run_usd = 4", priced=price)) as served:
            thread = await ask_until(served, endless("long talk"), "waiting")
            assert asked_about(model, "long talk") == 4
            await decide(served, pending(thread)[0], "approve")
            await asyncio.wait_for(_until_calls(model, "long talk", 8), 30)
            thread = await served.wait(thread["id"], "waiting")
            assert asked_about(model, "long talk") == 8
            assert asked_about(model, "Messages to summarize") > 0
            assert thread["runs"][0]["usage"]["model_calls"] == 8
    finally:
        model.tokens = CALL


async def test_without_a_known_price_the_budget_of_tokens_holds_all_the_same(
    tmp_path: Path, model: ModelServer
) -> None:
    limits = "run_usd = 0.01\nday_usd = 0.01\nrun_tokens = 3_000"
    async with at_work(home_with(tmp_path, model, limits, priced="")) as served:
        thread = await ask_until(served, endless("priceless"), "waiting")
        assert asked_about(model, "priceless") == 3
        (limit,) = pending(thread)
        assert limit["args"] == {"limit": "tokens", "used": 3_000, "allowance": 3_000}
        assert thread["usage"]["cost_usd"] is None


async def test_a_run_of_a_trigger_has_the_budget_it_was_given_and_gets_that_again(
    tmp_path: Path, model: ModelServer, clock: FakeClock
) -> None:
    async with at_work(home_with(tmp_path, model, "run_usd = 50\nday_usd = 100"), clock) as served:
        given = dict(served.doors._engine.endings.allowance) | {"usd": 3}

        def fires(connection: sa.Connection) -> str:
            thread_id = threads.create(
                connection,
                clock.now(),
                owner="Ada",
                channel="api",
                address=None,
                title="x",
                title_source="user",
            )
            threads.add_message(
                connection, thread_id, clock.now(), role="user", author="Ada", text=endless("fired")
            )
            runs.create(
                connection,
                thread_id,
                clock.now(),
                person="Ada",
                model="openai:mock",
                allowance=given,
                trigger_id="morning",
            )
            return thread_id

        thread_id = await served.doors._database.write(fires)
        served.doors._engine.wake()
        (limit,) = pending(await served.wait(thread_id, "waiting"))
        assert (asked_about(model, "fired"), limit["args"]["allowance"]) == (3, 3)
        await decide(served, limit, "approve")
        await asyncio.wait_for(_until_calls(model, "fired", 6), 30)
        thread = await _asked_again(served, thread_id)
        assert (asked_about(model, "fired"), pending(thread)[0]["args"]["allowance"]) == (6, 3)
        (row,) = (await served.http.get("/api/usage")).json()["by_trigger"]
        assert (row["trigger_id"], row["cost_usd"]) == ("morning", 6)


# -- a day -------------------------------------------------------------------------------------------------


async def test_parallel_runs_share_the_day_and_one_approval_releases_them_all(
    tmp_path: Path, model: ModelServer, clock: FakeClock
) -> None:
    async with at_work(home_with(tmp_path, model, "run_usd = 1000\nday_usd = 10"), clock) as served:
        ids = [await ask(served, endless(f"crowd {n} of many")) for n in range(5)]
        threads = [await served.wait(thread_id, "waiting") for thread_id in ids]
        calls = asked_about(model, "of many")
        assert 10 <= calls < 10 + len(ids)  # each may be in the middle of one call, no more
        first, *others = [pending(thread)[0] for thread in threads]
        assert {action["args"]["limit"] for action in (first, *others)} == {"day_usd"}
        assert first["args"]["day"] == "2026-03-02"
        assert first["approvers"] == ["Ada"]
        await decide(served, first, "approve")
        more = first["args"]["allowance"]
        assert 1 <= more < 1 + len(ids)  # a dollar, and what was used beyond
        await asyncio.wait_for(_until_calls(model, "of many", calls + 1), 30)
        threads = [await _asked_again(served, thread_id) for thread_id in ids]
        assert 10 + more <= asked_about(model, "of many") < 10 + more + len(ids)
        answered = [thread["actions"][0] for thread in threads]
        assert {(a["state"], a["decided_by"]) for a in answered} == {("approved", "Ada")}
        audited = (await served.http.get("/api/audit", params={"limit": 1000})).json()["lines"]
        assert [line["data"]["allowance"] for line in audited if line["event"] == "budget.raised"] == [more]
        said = [text for thread in threads for text in notices(thread) if "the budget of everybody" in text]
        assert len(said) == 1


async def _asked_again(served: Served, thread_id: str) -> Json:
    """The thread, once it waits for its second action."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while len((thread := await served.wait(thread_id, "waiting"))["actions"]) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    return thread


async def test_a_restart_changes_nothing_and_midnight_of_the_owner_begins_anew(
    tmp_path: Path, model: ModelServer, clock: FakeClock
) -> None:
    home = home_with(tmp_path, model, "run_usd = 1000\nday_usd = 3")
    async with at_work(home, clock) as served:
        thread = await ask_until(served, endless("yesterday"), "waiting")
        assert asked_about(model, "yesterday") == 3
        await served.http.post(f"/api/threads/{thread['id']}/stop")
    async with at_work(home, clock) as served:
        waits = await ask_until(served, "[[say not today]]", "waiting")
        assert asked_about(model, "not today") == 0
        clock.advance(timedelta(hours=13, minutes=59))  # 23:59 in Amsterdam, where Ada is
        still = await ask_until(served, "[[say not today either]]", "waiting")
        assert asked_about(model, "not today either") == 0
        clock.advance(timedelta(minutes=1))
        assert answers(await ask_until(served, "[[say tomorrow]]", "idle")) == ["tomorrow"]
        served.doors._engine.due()
        for known, said in ((waits, "not today"), (still, "not today either")):
            assert answers(await served.wait(known["id"], "idle")) == [said]
            assert [a["state"] for a in (await settled(served, known["id"]))["actions"]] == ["withdrawn"]


async def test_no_title_is_asked_for_when_the_day_is_used_up(
    tmp_path: Path, model: ModelServer, clock: FakeClock
) -> None:
    async with at_work(home_with(tmp_path, model, "day_usd = 3"), clock) as served:
        titles = []
        for words in ("[[say first words]]", "[[say second words]]"):
            made = (await served.http.post("/api/threads", json={"text": words})).json()
            titles.append((await served.wait(made["thread_id"], "idle"))["title"])
            await _until_title_or_sum(served, made["thread_id"])
        rows = (await served.http.get("/api/threads")).json()["threads"]
        assert [row["title"] for row in reversed(rows)] == [TITLE, "[[say second words]]"]
        spent = (await served.http.get("/api/usage")).json()["today"]
        assert sum(row["model_calls"] for row in spent) == 3  # two answers and one title


async def _until_title_or_sum(served: Served, thread_id: str) -> None:
    """Wait until nothing makes a title any more."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while served.runtime.doors._engine._titles:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_a_persons_own_budget_holds_for_that_person_and_only_owners_allow_more(
    tmp_path: Path, model: ModelServer
) -> None:
    people = PEOPLE.replace('name = "Cay"\n', 'name = "Cay"\nday_usd = 2\n')
    async with at_work(home_with(tmp_path, model, "run_usd = 50\nday_usd = 100", people=people)) as served:
        cay = await served.as_person("Cay")
        made = (await cay.post("/api/threads", json={"text": endless("thrift"), "title": "x"})).json()
        thread = await served.wait(made["thread_id"], "waiting")
        assert asked_about(model, "thrift") == 2
        (limit,) = pending(thread)
        assert (limit["args"]["limit"], limit["args"]["person"]) == ("person_day_usd", "Cay")
        refused = await cay.post(f"/api/actions/{limit['id']}/decision", json={"decision": "approve"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "not_an_approver")
        assert answers(await ask_until(served, "[[say Ada may]]", "idle")) == ["Ada may"]
        await decide(served, limit, "approve")
        await asyncio.wait_for(_until_calls(model, "thrift", 3), 30)
        await _asked_again(served, thread["id"])
        assert asked_about(model, "thrift") == 3
