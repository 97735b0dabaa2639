"""Does `kill -9` lose, repeat or forget anything that people did in Slack?"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from pizzabot.home import Home
from tests.fakes.model_server import ModelServer
from tests.fakes.runtime import ledger_calls, write_home
from tests.fakes.slack import Delivery, FakeSlack, Fault, Message
from tests.lab.kill import Server
from tests.lab.nursery import Doomed

PEOPLE = """
[[people]]
name = "Ada"
role = "owner"
slack = "U0ADA"
"""


@asynccontextmanager
async def office(folder: Path, model: ModelServer) -> AsyncIterator[tuple[FakeSlack, Server]]:
    async with FakeSlack({"U0ADA": "ada"}, ack_seconds=1.0) as slack:
        tokens = f'bot_token = "{slack.bot_token}"\napp_token = "{slack.app_token}"\n'
        table = f'\n[slack]\n{tokens}api_url = "{slack.url}"\n'
        server = Doomed(write_home(folder / "home", model.url, people=PEOPLE, more_toml=table).path)
        server.start()
        try:
            await slack.connected()
            yield slack, server
        finally:
            await asyncio.to_thread(server.stop)


async def again(slack: FakeSlack, server: Server) -> None:
    """Kill the server and start it again; Slack delivers again what was not acknowledged."""
    server.kill()
    await slack.until(lambda: slack.sockets == 0)
    server.start()
    await slack.connected()
    await retried(slack)


async def retried(slack: FakeSlack) -> None:
    """Deliver again, as Slack does, every event that was never acknowledged."""
    taken = {_event(delivery) for delivery in slack.deliveries if delivery.acked}
    lost = {_event(d): d for d in slack.deliveries if d.kind == "events_api" and _event(d) not in taken}
    for delivery in lost.values():
        await slack.redeliver(delivery)


def _event(delivery: Delivery) -> str:
    return str(delivery.body.get("event_id"))


def said(slack: FakeSlack, ts: str, words: str) -> list[Message]:
    """What the app said in that thread that holds these words."""
    told = slack.messages(slack.dm("U0ADA"), ts)
    return [m for m in told if m.user == slack.bot_user and words in slack.words(m)]


async def test_every_message_is_answered_once_though_the_server_is_killed_again_and_again(
    tmp_path: Path, model: ModelServer
) -> None:
    chance = random.Random(4)
    async with office(tmp_path, model) as (slack, server):
        asked: dict[str, str] = {}
        for round_ in range(3):
            sending = []
            for number in range(4):
                word = f"answer {round_}.{number}"
                sending.append((word, asyncio.create_task(slack.says("U0ADA", f"[[say {word}]]"))))
                await asyncio.sleep(chance.uniform(0, 0.05))
            await again(slack, server)
            asked |= {word: await task for word, task in sending}
        await retried(slack)
        for word, ts in asked.items():
            await slack.until(lambda w=word, t=ts: said(slack, t, w), word)  # type: ignore[misc]
        await asyncio.sleep(0.5)
        assert {word: len(said(slack, ts, word)) for word, ts in asked.items()} == dict.fromkeys(asked, 1)


async def test_a_card_that_was_shown_before_the_kill_is_decided_after_it(
    tmp_path: Path, model: ModelServer
) -> None:
    async with office(tmp_path, model) as (slack, server):
        words = '[[call bookkeeper submit_expense {"amount": 3, "note": "over the kill"}]]'
        ts = await slack.says("U0ADA", words)
        (card,) = await slack.until(lambda: said(slack, ts, "Run submit_expense?"))
        await again(slack, server)
        assert (await slack.click("U0ADA", card, "Approve")).acked
        await slack.until(lambda: said(slack, ts, "Result:"))
        await slack.until(lambda: "Approved by Ada in Slack" in slack.words(card))
        assert [c["args"]["note"] for c in ledger_calls(Home(server.home))] == ["over the kill"]


async def test_a_status_message_of_a_killed_server_goes_on_and_ends(
    tmp_path: Path, model: ModelServer
) -> None:
    async with office(tmp_path, model) as (slack, server):
        ts = await slack.says("U0ADA", "[[sleep 4]]")
        (status,) = await slack.until(lambda: said(slack, ts, "Working"))
        await again(slack, server)
        await slack.until(lambda: said(slack, ts, "slept 4"))
        await slack.until(lambda: "Done" in slack.words(status))
        assert slack.buttons(status) == []
        assert len(said(slack, ts, "")) == 2


async def test_a_file_that_was_acknowledged_before_the_kill_is_fetched_after_it(
    tmp_path: Path, model: ModelServer
) -> None:
    async with office(tmp_path, model) as (slack, server):
        slack.faults_on["download"] = [Fault(status=500)] * 1000
        ts = await slack.says("U0ADA", "[[say got it]]", files=[("plan.txt", b"the plan")])
        assert slack.deliveries[-1].acked
        server.kill()
        slack.faults_on.clear()
        server.start()
        await slack.until(lambda: said(slack, ts, "got it"))
