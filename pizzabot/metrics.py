"""How does the house look to Prometheus? Numbers for `GET /metrics`, of rows wherever there are rows.

What stands in rows is read when it is asked for, so it is right after a restart; what does not (requests, the
process) is counted here, in a registry of this server alone. No label holds a thread, a person or a text.
"""

from __future__ import annotations

import asyncio
import hmac
import platform
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, get_args, get_type_hints

import sqlalchemy as sa
from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from pizzabot import __version__
from pizzabot.approvals import store as actions
from pizzabot.channel import Channel
from pizzabot.clock import Clock
from pizzabot.database.connection import Database
from pizzabot.inbox import runs, tallies
from pizzabot.inbox.tallies import Counts
from pizzabot.messages import ActionKind, ChannelState, RunState
from pizzabot.outbox import store as outbox
from pizzabot.tools.values import State as ServerState

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_OTHER = "other"  # what a stranger can make up is no label
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_OUTBOX_STATES = ("pending", "sending", "unknown", "put_off", "failed")
_CHANNEL_STATES = get_args(get_type_hints(ChannelState)["state"])
_SERVER_STATES = get_args(ServerState)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the rows say at one moment."""

    runs: Mapping[RunState, int]
    queued_since: datetime | None
    stopped: bool
    actions: Mapping[ActionKind, int]
    pending_since: datetime | None
    outbox: Mapping[tuple[str, str], int]
    outbox_since: Mapping[str, datetime]
    totals: Mapping[str, Counts]


class Metrics:
    """The numbers of one server."""

    def __init__(
        self,
        *,
        database: Database,
        clock: Clock,
        channels: Mapping[str, Channel],
        servers: Callable[[], Sequence[Mapping[str, Any]]],
        token: str | None,
    ) -> None:
        self._database, self._clock, self._channels = database, clock, channels
        self._servers, self._token = servers, token
        self._totals, self._reading = tallies.Totals(), asyncio.Lock()
        self._counted = CollectorRegistry()
        ProcessCollector(registry=self._counted)
        self._requests = Counter(
            "pizzabot_http_requests",
            "Requests answered, by the path's pattern.",
            ["method", "route", "status"],
            registry=self._counted,
        )
        self._seconds = Histogram(
            "pizzabot_http_request_duration_seconds",
            "How long requests took; event streams last as long as somebody watches.",
            ["route"],
            buckets=_SECONDS,
            registry=self._counted,
        )

    def is_scraper(self, token: str) -> bool:
        """Whether this is `telemetry.metrics_token`, which reads these numbers and nothing else."""
        known = self._token
        return known is not None and hmac.compare_digest(token.encode("utf-8", "replace"), known.encode())

    def answered(self, method: str, route: str | None, status: int, seconds: float) -> None:
        """Count a request; `route` is the pattern that its path matched, None when it matched none."""
        place = route or _OTHER
        self._requests.labels(method if method in _METHODS else _OTHER, place, str(status)).inc()
        self._seconds.labels(place).observe(seconds)

    async def exposition(self) -> bytes:
        """Everything, in Prometheus's text format 0.0.4."""
        now = self._clock.now()
        async with self._reading:
            seen = await self._database.read(lambda c: self._snapshot(c, now))
        states = {name: channel.state().state for name, channel in self._channels.items()}
        families = [*families_of(seen, now), *states_of(states, self._servers())]
        registry = CollectorRegistry()
        registry.register(_Families(families))
        return generate_latest(registry) + await asyncio.to_thread(generate_latest, self._counted)

    def _snapshot(self, connection: sa.Connection, now: datetime) -> Snapshot:
        return Snapshot(
            runs=runs.counts(connection),
            queued_since=runs.oldest_queued(connection),
            stopped=runs.stopped_by(connection) is not None,
            actions=actions.pending_counts(connection),
            pending_since=actions.oldest_pending(connection),
            outbox=outbox.counts(connection),
            outbox_since=outbox.oldest_open(connection),
            totals=self._totals.read(connection, now),
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Families:
    found: Collection[Metric]

    def collect(self) -> Collection[Metric]:
        return self.found


def families_of(seen: Snapshot, now: datetime) -> Iterator[Metric]:
    """What the rows say, as Prometheus takes it. Pure."""
    yield _gauge(
        "build_info", "The version that runs.", ["version", "python"], [((__version__, _python()), 1)]
    )
    yield _gauge("stopped", "1 while everything is stopped.", [], [((), int(seen.stopped))])
    yield _gauge("runs", "Runs by state.", ["state"], [((s,), n) for s, n in seen.runs.items()])
    yield _gauge(
        "runs_oldest_queued_seconds",
        "How long the first run in the queue waits already; 0 when none does.",
        [],
        [((), _age(seen.queued_since, now))],
    )
    yield _gauge(
        "actions_pending",
        "Actions that wait for a decision.",
        ["kind"],
        [((k,), n) for k, n in seen.actions.items()],
    )
    yield _gauge(
        "actions_oldest_pending_seconds",
        "How long the first action waits already; 0 when none does.",
        [],
        [((), _age(seen.pending_since, now))],
    )
    named = {channel for channel, _ in seen.outbox}
    yield _gauge(
        "outbox_items",
        "What is to be said and was not said yet, and what was given up.",
        ["channel", "state"],
        [((c, s), seen.outbox.get((c, s), 0)) for c in sorted(named) for s in _OUTBOX_STATES],
    )
    yield _gauge(
        "outbox_oldest_seconds",
        "How long the oldest of it waits already, without what is put off.",
        ["channel"],
        [((channel,), _age(since, now)) for channel, since in sorted(seen.outbox_since.items())],
    )
    yield from _totals(seen.totals)


def _totals(totals: Mapping[str, Counts]) -> Iterator[Metric]:
    def column(tally: tallies.Tally, index: int = 0) -> list[tuple[tuple[str, ...], float]]:
        return [((label,), numbers[index]) for label, numbers in sorted(totals[tally.name].items())]

    yield _counter("messages_received", "Messages of people.", ["channel"], column(tallies.ARRIVED))
    yield _counter("tool_calls", "Tool calls that ended.", ["outcome"], column(tallies.TOOL_CALLS))
    yield _counter("model_calls", "Model calls that ended.", ["outcome"], column(tallies.MODEL_CALLS))
    read, written = column(tallies.SPENT, 1), column(tallies.SPENT, 2)
    tokens = [((*label, "input"), n) for label, n in read] + [((*label, "output"), n) for label, n in written]
    yield _counter("tokens", "Tokens that models read and wrote.", ["model", "direction"], tokens)
    yield _counter("cost_usd", "US dollars, where the price is known.", ["model"], column(tallies.SPENT, 3))
    yield _counter(
        "model_calls_unpriced", "Model calls whose price is not known.", ["model"], column(tallies.SPENT, 4)
    )


def states_of(channels: Mapping[str, str], servers: Sequence[Mapping[str, Any]]) -> Iterator[Metric]:
    """How channels and MCP servers are: 1 for the state that each is in, 0 for the others. Pure."""
    yield _gauge(
        "channel_state", "1 for the state it is in.", ["channel", "state"], _hot(channels, _CHANNEL_STATES)
    )
    found = {str(row["name"]): str(row["state"]) for row in servers}
    yield _gauge(
        "mcp_server_state", "1 for the state it is in.", ["server", "state"], _hot(found, _SERVER_STATES)
    )
    yield _gauge(
        "mcp_server_tools",
        "Tools that it offers.",
        ["server"],
        [((str(r["name"]),), len(r["tools"])) for r in servers],
    )


def _hot(states: Mapping[str, str], known: Sequence[str]) -> Iterator[tuple[tuple[str, ...], float]]:
    for name, state in sorted(states.items()):
        yield from (((name, each), int(each == state)) for each in known)


_Samples = Iterable[tuple[tuple[str, ...], float]]


def _gauge(name: str, told: str, labels: Sequence[str], samples: _Samples) -> Metric:
    family = GaugeMetricFamily(f"pizzabot_{name}", told, labels=labels)
    for values, number in samples:
        family.add_metric(values, number)
    return family


def _counter(name: str, told: str, labels: Sequence[str], samples: _Samples) -> Metric:
    family = CounterMetricFamily(f"pizzabot_{name}", told, labels=labels)
    for values, number in samples:
        family.add_metric(values, number)
    return family


def _age(since: datetime | None, now: datetime) -> float:
    return max(0.0, (now - since).total_seconds()) if since is not None else 0.0


def _python() -> str:
    return platform.python_version()
