"""A run that waits, as a collector sees it: two attempts that are linked, and nothing that was said."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from pizzabot.otel import OtelTracer
from pizzabot.tracing import attempt_ids
from tests.fakes.model_server import ModelServer
from tests.fakes.runtime import Served, serving, write_home
from tests.scenario.acting import ask_until, call, connected, decide, pending, settled

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module")
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(
    tmp_path_factory: pytest.TempPathFactory, model: ModelServer, exporter: InMemorySpanExporter
) -> AsyncIterator[Served]:
    home = write_home(Path(tmp_path_factory.mktemp("traced")) / "home", model.url)
    tracer = OtelTracer([SimpleSpanProcessor(exporter)])
    async with serving(home, tracer=tracer) as running:
        await connected(running)
        yield running


def _named(spans: tuple[ReadableSpan, ...], name: str) -> list[ReadableSpan]:
    return [span for span in spans if span.name == name]


async def test_a_run_that_waits_is_two_linked_traces(served: Served, exporter: InMemorySpanExporter) -> None:
    thread = await ask_until(served, call("submit_expense", amount=41, note="the secret plan"), "waiting")
    run = thread["runs"][0]["id"]
    (first,) = _named(exporter.get_finished_spans(), "invoke_agent Pizza Bot")
    assert first.attributes is not None
    assert first.attributes["pizzabot.outcome"] == "waiting"
    assert (first.context.trace_id, first.context.span_id) == attempt_ids(run, 1)

    await decide(served, pending(thread)[0], "approve")
    await settled(served, thread["id"])
    spans = exporter.get_finished_spans()
    second = _named(spans, "invoke_agent Pizza Bot")[-1]
    assert second.attributes is not None
    assert (second.attributes["pizzabot.outcome"], second.attributes["pizzabot.attempt"]) == ("done", 2)
    assert [(link.context.trace_id, link.context.span_id) for link in second.links] == [attempt_ids(run, 1)]

    inside = {span.context.span_id: span for span in spans}
    (tool,) = _named(spans, "execute_tool mcp:ledger:submit_expense")
    assert tool.parent is not None
    worker = inside[tool.parent.span_id]
    assert worker.name == "invoke_agent bookkeeper"
    assert worker.parent is not None
    assert inside[worker.parent.span_id] is second
    chats = [span for span in _named(spans, "chat mock") if span.context.trace_id == second.context.trace_id]
    assert chats
    for chat in chats:
        assert chat.attributes is not None
        assert chat.attributes["gen_ai.usage.input_tokens"] > 0  # type: ignore[operator]
        assert chat.attributes["gen_ai.provider.name"] == "openai"
    deliveries = _named(spans, "deliver api")
    assert {(d.links[0].context.trace_id, d.links[0].context.span_id) for d in deliveries} <= {
        attempt_ids(run, 1),
        attempt_ids(run, 2),
    }
    assert deliveries
    told = " ".join(span.to_json() for span in spans)
    for hidden in ("secret plan", "Ada", "not-a-real-key"):
        assert hidden not in told


async def test_a_model_that_fails_is_told_by_its_code(served: Served, exporter: InMemorySpanExporter) -> None:
    exporter.clear()
    await ask_until(served, "[[fail 401 9]]", "failed")
    spans = exporter.get_finished_spans()
    (attempt,) = _named(spans, "invoke_agent Pizza Bot")
    (chat,) = _named(spans, "chat mock")
    for span in (attempt, chat):
        assert span.attributes is not None
        assert span.attributes["error.type"] == "auth"
        assert not span.status.is_ok
        assert span.events == ()
