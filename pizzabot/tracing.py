"""What did the process do, as spans for OpenTelemetry? The interface; `pizzabot.otel` does it, when it is on.

    attempt of a run ── model call · tool call · worker ── model call · tool call
           ↑ link                                               delivery ──link──▶ attempt
    the attempt before

An attempt is a trace of its own: a run that waits for days has no open span, and its next attempt links to
the one before. The ids of an attempt follow from the run's id, so no process must remember them. Attributes
hold names and numbers, never what was said, arguments, results, addresses or messages of errors.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

Value = str | int | float | bool
Kind = Literal["internal", "client"]

_NAME = re.compile(r"[A-Za-z0-9_.:/-]{1,128}")

# https://opentelemetry.io/docs/specs/semconv/registry/attributes/gen-ai/ (gen_ai.provider.name)
_PROVIDERS = {"google_genai": "gcp.gemini", "bedrock_converse": "aws.bedrock"}


class Ids(NamedTuple):
    """What names a span everywhere: 128 and 64 bits."""

    trace: int
    span: int


def attempt_ids(run_id: str, attempt: int) -> Ids:
    """The ids of an attempt's span, the same in every process."""
    made = hashlib.sha256(f"pizzabot {run_id} {attempt}".encode()).digest()
    return Ids(int.from_bytes(made[:16], "big") or 1, int.from_bytes(made[16:24], "big") or 1)


class Span(Protocol):
    """Something that began."""

    def end(self, attributes: Mapping[str, Value], *, error: str | None = None) -> None:
        """It is over; `error` is the code of what went wrong. A second call does nothing."""
        ...


class Tracer(Protocol):
    """Begins spans; `begin` returns None when nobody wants to know."""

    def begin(
        self,
        name: str,
        attributes: Mapping[str, Value],
        *,
        kind: Kind = "internal",
        ids: Ids | None = None,
        links: Sequence[Ids] = (),
        holds_others: bool = False,
    ) -> Span | None:
        """Begin a span inside the one that holds others here.

        With `ids` it is the first of a trace. With `holds_others` spans are inside of it that begin in this
        task, and in tasks that begin in it, until it ends.
        """
        ...

    def close(self) -> None:
        """Send what is left; blocks for some seconds at most."""
        ...


class Off:
    """Traces nothing."""

    def begin(
        self,
        name: str,  # noqa: ARG002 - the protocol says so
        attributes: Mapping[str, Value],  # noqa: ARG002
        *,
        kind: Kind = "internal",  # noqa: ARG002
        ids: Ids | None = None,  # noqa: ARG002
        links: Sequence[Ids] = (),  # noqa: ARG002
        holds_others: bool = False,  # noqa: ARG002
    ) -> None:
        return None

    def close(self) -> None:
        return None


OFF: Tracer = Off()


def known_name(name: str) -> str:
    """The name of a tool or a worker, as long as it looks like one: a model can ask for whatever it likes."""
    return name if _NAME.fullmatch(name) else "unknown"


def model_attributes(model: str, worker: str | None) -> dict[str, Value]:
    """Of a model call; `model` is provider:name."""
    provider, _, name = model.partition(":")
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": _PROVIDERS.get(provider, provider),
        "gen_ai.request.model": name,
        **_worker(worker),
    }


def tool_attributes(name: str, worker: str | None) -> dict[str, Value]:
    """Of a tool call."""
    return {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, **_worker(worker)}


def agent_attributes(name: str) -> dict[str, Value]:
    """Of the work of an agent: the root or a worker."""
    return {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name}


def _worker(worker: str | None) -> dict[str, Value]:
    return {"pizzabot.worker": worker} if worker is not None else {}
