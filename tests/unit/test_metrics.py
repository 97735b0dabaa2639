"""Does Prometheus read what the rows say, under labels that nobody outside can make up?"""

from __future__ import annotations

import re
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
import sqlalchemy as sa
from prometheus_client.parser import text_string_to_metric_families

from pizzabot.channel import Channel
from pizzabot.database.connection import Database
from pizzabot.inbox import runs
from pizzabot.messages import ChannelState
from pizzabot.metrics import Metrics
from pizzabot.outbox import store as outbox
from tests.fakes.clock import FakeClock
from tests.fakes.rows import answers, arrives, waits

DOCS = Path(__file__).parents[2] / "docs" / "observability.md"
SERVERS = [{"name": "ledger", "state": "down", "tools": [{"name": "pay"}, {"name": "list"}]}]


class _Off:
    def state(self) -> ChannelState:
        return ChannelState("unauthorized", "a token that is wrong")


def metrics_of(database: Database, clock: FakeClock, token: str | None = None) -> Metrics:
    return Metrics(
        database=database,
        clock=clock,
        channels={"push": cast(Channel, _Off())},
        servers=lambda: SERVERS,
        token=token,
    )


async def read(metrics: Metrics) -> dict[str, float]:
    """Every sample as `name{labels}`."""
    text = (await metrics.exposition()).decode()
    return {
        sample.name + "".join(f" {key}={value}" for key, value in sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def some(found: dict[str, float], *names: str) -> list[float | None]:
    return [found.get(f"pizzabot_{name}") for name in names]


async def test_runs_and_actions_are_counted_with_the_age_of_the_oldest(
    database: Database, clock: FakeClock
) -> None:
    await database.write(lambda c: arrives(c, clock))
    await database.write(lambda c: answers(c, clock))
    await database.write(lambda c: waits(c, clock, asks=2))
    clock.advance(seconds=30)
    await database.write(lambda c: arrives(c, clock))
    await database.write(lambda c: runs.stop_everything(c, clock.now(), person="Ada", via="web"))
    clock.advance(seconds=12)
    found = await read(metrics_of(database, clock))
    states = ("queued", "running", "waiting", "done", "failed", "stopped")
    assert some(found, *(f"runs state={state}" for state in states)) == [1, 0, 1, 1, 0, 0]
    assert some(found, "runs_oldest_queued_seconds", "actions_oldest_pending_seconds") == [12, 42]
    assert some(found, "actions_pending kind=tool", "actions_pending kind=limit", "stopped") == [2, 0, 1]


async def test_nothing_at_all_is_zero_and_not_absent(database: Database, clock: FakeClock) -> None:
    found = await read(metrics_of(database, clock))
    assert some(found, "runs state=failed", "runs_oldest_queued_seconds", "stopped") == [0, 0, 0]


async def test_the_outbox_is_counted_by_channel_and_state(database: Database, clock: FakeClock) -> None:
    def say(connection: sa.Connection, channel: str, key: str) -> None:
        thread_id = arrives(connection, clock).thread_id
        about: dict[str, Any] = {"key": key, "channel": channel, "address": key, "thread_id": thread_id}
        outbox.enqueue(connection, clock.now(), kind="notice", **about)

    for channel, key in (("slack", "a"), ("slack", "b"), ("email", "c")):
        await database.write(partial(say, channel=channel, key=key))
        clock.advance(seconds=10)
    first, *_ = await database.write(lambda c: outbox.take(c, clock.now(), limit=1))
    await database.write(lambda c: outbox.failed(c, first, "the address is gone"))
    found = await read(metrics_of(database, clock))
    assert some(
        found, *(f"outbox_items channel=slack state={s}" for s in ("pending", "unknown", "failed"))
    ) == [
        1,
        0,
        1,
    ]
    assert some(found, "outbox_oldest_seconds channel=slack", "outbox_oldest_seconds channel=email") == [
        20,
        10,
    ]


async def test_what_is_put_off_is_counted_apart_and_waits_only_from_when_it_is_due(
    database: Database, clock: FakeClock
) -> None:
    def say(connection: sa.Connection) -> None:
        thread_id = arrives(connection, clock).thread_id
        due = clock.now() + timedelta(hours=8)
        for key in ("a", "b"):
            about: dict[str, Any] = {"key": key, "channel": "slack", "address": key, "thread_id": thread_id}
            outbox.enqueue(connection, clock.now(), kind="answer", put_off_until=due, **about)

    async def look() -> tuple[list[float | None], float | None, int]:
        found = await read(metrics_of(database, clock))
        names = (f"outbox_items channel=slack state={state}" for state in ("put_off", "pending", "sending"))
        oldest = found.get("pizzabot_outbox_oldest_seconds channel=slack")
        return some(found, *names), oldest, (await database.read(outbox.summary))["put_off"]

    await database.write(say)
    clock.advance(timedelta(hours=8) - timedelta(seconds=1))
    assert await database.write(lambda c: outbox.take(c, clock.now(), limit=9)) == []
    assert await look() == ([2, 0, 0], None, 2)
    clock.advance(seconds=4)
    (first,) = await database.write(lambda c: outbox.take(c, clock.now(), limit=1))
    assert await look() == ([0, 1, 1], 3, 0)
    retried = partial(
        outbox.try_later, due_at=clock.now() + timedelta(minutes=5), error="away", unknown=False
    )
    await database.write(lambda c: retried(c, first))
    clock.advance(seconds=60)
    assert await look() == ([0, 2, 0], 63, 0)


async def test_channels_and_servers_are_in_exactly_one_state(database: Database, clock: FakeClock) -> None:
    found = await read(metrics_of(database, clock))
    of_channel = {k: v for k, v in found.items() if k.startswith("pizzabot_channel_state")}
    assert sum(of_channel.values()) == 1
    assert of_channel["pizzabot_channel_state channel=push state=unauthorized"] == 1
    assert some(found, "mcp_server_state server=ledger state=down") == [1]
    assert some(found, "mcp_server_tools server=ledger") == [2]


async def test_requests_are_counted_by_pattern_and_what_a_stranger_makes_up_is_other(
    database: Database, clock: FakeClock
) -> None:
    metrics = metrics_of(database, clock)
    metrics.answered("GET", "/api/threads/{thread_id}", 200, 0.02)
    metrics.answered("GET", "/api/threads/{thread_id}", 200, 0.3)
    for made_up in ("FROB", "x" * 50):
        metrics.answered(made_up, None, 404, 0.001)
    found = await read(metrics)
    assert some(found, "http_requests_total method=GET route=/api/threads/{thread_id} status=200") == [2]
    assert some(found, "http_requests_total method=other route=other status=404") == [2]
    name = "http_request_duration_seconds_bucket le=0.025 route=/api/threads/{thread_id}"
    assert some(found, name) == [1]


async def test_two_servers_in_one_process_count_apart(database: Database, clock: FakeClock) -> None:
    one, other = metrics_of(database, clock), metrics_of(database, clock)
    one.answered("GET", "/", 200, 0.1)
    assert not any("http_requests_total" in name for name in await read(other))


async def test_no_text_of_a_person_becomes_a_label(database: Database, clock: FakeClock) -> None:
    accepted = await database.write(lambda c: arrives(c, clock, "a very secret plan", person="Ada"))
    clock.advance(timedelta(minutes=1))
    text = (await metrics_of(database, clock).exposition()).decode()
    for hidden in ("secret plan", "Ada", accepted.thread_id, accepted.run_id or "-"):
        assert hidden not in text


@pytest.mark.parametrize(
    ("known", "sent", "reads"),
    [
        ("a" * 20, "a" * 20, True),
        ("a" * 20, "a" * 19 + "b", False),
        ("a" * 20, "ü", False),
        (None, "", False),
    ],
)
async def test_only_the_configured_token_is_the_scrapers(
    sqlite_database: Database, clock: FakeClock, known: str | None, sent: str, reads: bool
) -> None:
    assert metrics_of(sqlite_database, clock, known).is_scraper(sent) is reads


async def test_the_documentation_names_exactly_what_is_there(
    sqlite_database: Database, clock: FakeClock
) -> None:
    """Every family that has samples or could have some stands in the table, and no other."""
    text = (await metrics_of(sqlite_database, clock).exposition()).decode()
    there = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE pizzabot_")}
    told = set(re.findall(r"^\| `(pizzabot_\w+)` \|", DOCS.read_text(), re.MULTILINE))
    assert {name.removesuffix("_created") for name in there} == told
