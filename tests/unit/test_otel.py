"""Do spans lie inside each other as the work does, link across waiting, and hold nothing that was said?"""

from __future__ import annotations

import asyncio
import hashlib
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextvars import copy_context
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from pizzabot.otel import OtelTracer
from pizzabot.settings import Settings
from pizzabot.tracing import OFF, attempt_ids, known_name, model_attributes
from pizzabot.wiring import tracer_of


class Traced:
    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.tracer = OtelTracer([SimpleSpanProcessor(self._exporter)])

    def spans(self) -> dict[str, ReadableSpan]:
        return {span.name: span for span in self._exporter.get_finished_spans()}


@pytest.fixture
def traced() -> Iterator[Traced]:
    made = Traced()
    yield made
    made.tracer.close()


def test_a_span_lies_inside_the_one_that_holds_others(traced: Traced) -> None:
    ids = attempt_ids("run", 1)
    outer = traced.tracer.begin("attempt", {}, ids=ids, holds_others=True)
    call = traced.tracer.begin("call", {"a": 1})
    beside = traced.tracer.begin("beside", {})
    for span in (beside, call, outer):
        span.end({})
    traced.tracer.begin("later", {}).end({})
    spans = traced.spans()
    assert spans["attempt"].parent is None
    assert (spans["attempt"].context.trace_id, spans["attempt"].context.span_id) == ids
    for name in ("call", "beside"):
        parent = spans[name].parent
        assert parent is not None
        assert (parent.trace_id, parent.span_id) == ids
    assert spans["later"].parent is None
    assert spans["later"].context.trace_id != ids[0]


async def test_tasks_inherit_the_holder_and_do_not_disturb_each_other(traced: Traced) -> None:
    outer = traced.tracer.begin("attempt", {}, holds_others=True)

    async def work(name: str) -> None:
        worker = traced.tracer.begin(name, {}, holds_others=True)
        begun.release()
        await asyncio.wait_for(both.wait(), 10)
        traced.tracer.begin(f"call of {name}", {}).end({})
        worker.end({})

    begun, both = asyncio.Semaphore(0), asyncio.Event()
    tasks = [asyncio.create_task(work(name)) for name in ("one", "two")]
    for _ in tasks:
        await begun.acquire()
    both.set()
    await asyncio.gather(*tasks)
    outer.end({})
    spans = traced.spans()
    for name in ("one", "two"):
        parent, inner = spans[name].parent, spans[f"call of {name}"].parent
        assert parent is not None
        assert inner is not None
        assert parent.span_id == spans["attempt"].context.span_id
        assert inner.span_id == spans[name].context.span_id


def test_a_span_may_be_ended_in_another_context(traced: Traced) -> None:
    span = copy_context().run(lambda: traced.tracer.begin("x", {}, holds_others=True))
    span.end({"a": 1})
    span.end({"a": 2})
    found = traced.spans()["x"]
    assert dict(found.attributes or {}) == {"a": 1}


def test_an_error_is_a_code_and_no_text(traced: Traced) -> None:
    traced.tracer.begin("x", {}).end({}, error="rate_limit")
    span = traced.spans()["x"]
    assert span.attributes is not None
    assert span.attributes["error.type"] == "rate_limit"
    assert (span.status.is_ok, span.status.description, span.events) == (False, None, ())


def test_a_later_attempt_links_to_the_one_before(traced: Traced) -> None:
    first, second = attempt_ids("run", 1), attempt_ids("run", 2)
    traced.tracer.begin("x", {}, ids=second, links=[first]).end({})
    (link,) = traced.spans()["x"].links
    assert (link.context.trace_id, link.context.span_id) == first


def test_the_ids_of_an_attempt_are_the_same_in_every_process() -> None:
    digest = hashlib.sha256(b"pizzabot 01a2 3").hexdigest()
    assert attempt_ids("01a2", 3) == (int(digest[:32], 16), int(digest[32:48], 16))
    assert len({attempt_ids(run, n) for run in ("a", "b") for n in (1, 2, 3)}) == 6
    assert 0 < attempt_ids("a", 1).trace < 2**128
    assert 0 < attempt_ids("a", 1).span < 2**64


def test_nothing_global_is_set(traced: Traced) -> None:
    outer = traced.tracer.begin("x", {}, holds_others=True)
    assert not trace.get_current_span().get_span_context().is_valid
    outer.end({})


def test_without_an_endpoint_nothing_of_opentelemetry_is_imported() -> None:
    assert tracer_of(Settings()) is OFF
    program = (
        "import sys, pizzabot.agent.context, pizzabot.outbox.delivery;"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("mcp:ledger:pay", "mcp:ledger:pay"),
        ("read_file", "read_file"),
        ("pay Ada's bill", "unknown"),
        ("", "unknown"),
    ],
)
def test_what_is_no_name_is_not_told(name: str, known: str) -> None:
    assert known_name(name) == known


def test_providers_have_the_names_of_the_conventions() -> None:
    about = model_attributes("google_genai:gemini-3", "books")
    assert (about["gen_ai.provider.name"], about["gen_ai.request.model"]) == ("gcp.gemini", "gemini-3")
    assert about["pizzabot.worker"] == "books"


class _Collector(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        taken.put((self.path, self.headers["Authorization"], len(body)))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None: ...


taken: queue.Queue[tuple[str, str, int]] = queue.Queue()


def test_spans_reach_a_collector_before_the_end() -> None:
    with HTTPServer(("127.0.0.1", 0), _Collector) as server:
        serving = threading.Thread(target=server.serve_forever, daemon=True)
        serving.start()
        url = f"http://127.0.0.1:{server.server_port}/"
        settings = Settings.model_validate(
            {"telemetry": {"otlp_endpoint": url, "otlp_headers": {"authorization": "Bearer collector-token"}}}
        )
        assert "collector-token" not in repr(settings)
        assert "Bearer collector-token" in settings.secrets()
        tracer = tracer_of(settings)
        span = tracer.begin("x", {})
        assert span is not None
        span.end({})
        tracer.close()
        server.shutdown()
        serving.join()
    path, header, length = taken.get(timeout=5)
    assert (path, header) == ("/v1/traces", "Bearer collector-token")
    assert length > 0
