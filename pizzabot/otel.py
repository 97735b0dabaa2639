"""How do spans reach a collector? OpenTelemetry's SDK with a provider of our own, OTLP over HTTP.

Needs the extra `otel`. Nothing global is set: what else is in the process keeps its own tracing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar, Token

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from pizzabot import __version__
from pizzabot.tracing import Ids, Kind, Value

_KINDS: Mapping[Kind, SpanKind] = {"internal": SpanKind.INTERNAL, "client": SpanKind.CLIENT}
_EXPORT_SECONDS = 5.0

_holder: ContextVar[trace.Span | None] = ContextVar("pizzabot_span", default=None)
_wanted: ContextVar[Ids | None] = ContextVar("pizzabot_span_ids", default=None)


class _IdGenerator(RandomIdGenerator):
    """The ids that are wanted, else random ones."""

    def generate_trace_id(self) -> int:
        wanted = _wanted.get()
        return wanted.trace if wanted is not None else super().generate_trace_id()

    def generate_span_id(self) -> int:
        wanted = _wanted.get()
        return wanted.span if wanted is not None else super().generate_span_id()


class OtelTracer:
    """Hands spans to processors; `service` is what this installation is called in the traces."""

    def __init__(self, processors: Sequence[SpanProcessor], service: str = "pizzabot") -> None:
        # What OTEL_RESOURCE_ATTRIBUTES says is added by the SDK, as OTEL_TRACES_SAMPLER is heard by it.
        resource = Resource.create({"service.name": service, "service.version": __version__})
        self._provider = TracerProvider(
            resource=resource, id_generator=_IdGenerator(), shutdown_on_exit=False
        )
        for processor in processors:
            self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("pizzabot", __version__)

    def begin(
        self,
        name: str,
        attributes: Mapping[str, Value],
        *,
        kind: Kind = "internal",
        ids: Ids | None = None,
        links: Sequence[Ids] = (),
        holds_others: bool = False,
    ) -> OtelSpan:
        parent = _holder.get() if ids is None else None
        context = trace.set_span_in_context(parent) if parent is not None else Context()
        wanted = _wanted.set(ids)
        try:
            span = self._tracer.start_span(
                name,
                context=context,
                kind=_KINDS[kind],
                attributes=dict(attributes),
                links=[Link(_context_of(each)) for each in links],
            )
        finally:
            _wanted.reset(wanted)
        return OtelSpan(span, _holder.set(span) if holds_others else None)

    def close(self) -> None:
        self._provider.shutdown()


def _context_of(ids: Ids) -> SpanContext:
    return SpanContext(ids.trace, ids.span, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))


class OtelSpan:
    """A span that was begun."""

    def __init__(self, span: trace.Span, token: Token[trace.Span | None] | None) -> None:
        self._span, self._token = span, token

    def end(self, attributes: Mapping[str, Value], *, error: str | None = None) -> None:
        if self._token is not None:
            with suppress(ValueError):  # ended by another task than began it: that one's context ends anyway
                _holder.reset(self._token)
            self._token = None
        if not self._span.is_recording():
            return
        self._span.set_attributes(dict(attributes))
        if error is not None:
            self._span.set_attribute("error.type", error)
            self._span.set_status(Status(StatusCode.ERROR))  # without a description: it could hold anything
        self._span.end()


def otlp_tracer(endpoint: str, headers: Mapping[str, str], service: str) -> OtelTracer:
    """A tracer that sends to the collector at `endpoint`, in the background."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    exporter = OTLPSpanExporter(
        endpoint=f"{endpoint.rstrip('/')}/v1/traces", headers=dict(headers), timeout=_EXPORT_SECONDS
    )
    return OtelTracer([BatchSpanProcessor(exporter)], service)
