"""Actions and schemas that tests of cards and modals begin with."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from pizzabot.messages import Action, ActionKind, ActionState, Verdict

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
STRING, INTEGER, NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}
BOOLEAN, OBJECT = {"type": "boolean"}, {"type": "object"}

ANY_TEXT = st.text(st.characters(codec=None), max_size=12) | st.sampled_from(
    [
        *("", " ", "\n", " a ", "a\r\nb\rc\n", "-", "42", "true", "null", '"a"', "\ud800", "\x00", "x" * 76),
        *("<!channel>", "<@U0ADA>", "a\u202eb", "\x1b[31m", "&amp;", "🍕" * 80, "12.50", "1e3", "x\n" * 50),
    ]
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT
VALUES = st.recursive(
    SCALARS, lambda v: st.lists(v, max_size=4) | st.dictionaries(ANY_TEXT, v, max_size=3), max_leaves=8
)
_TYPES = st.sampled_from(
    [
        *(
            STRING,
            INTEGER,
            NUMBER,
            BOOLEAN,
            OBJECT,
            {},
            True,
            {"type": "array"},
            {"type": ["integer", "string"]},
        ),
        *({"type": "array", "items": STRING}, {"type": "array", "items": INTEGER}, {"type": "null"}),
        {"type": "array", "items": BOOLEAN},
        {"enum": [f"choice {n}" for n in range(120)]},
        {"enum": ["x" * 76, "y"]},
        {"enum": ["-", "a"]},
        {"description": "d" * 5_000, "pattern": "p" * 500},
    ]
)
PARTS = (
    _TYPES
    | _TYPES.map(lambda part: {"anyOf": [part, {"type": "null"}]})
    | st.lists(VALUES, max_size=5).map(lambda values: {"enum": values})
)


@st.composite
def schemas(draw: st.DrawFn, args: Mapping[str, Any]) -> dict[str, Any]:
    """Schemas that know some of the arguments, and some others."""
    names = st.sampled_from(sorted(args)) | ANY_TEXT if args else ANY_TEXT
    return {
        "properties": draw(st.dictionaries(names, PARTS, max_size=4)),
        # What is required and missing is an error, and rightly so.
        "required": [name for name in args if draw(st.booleans())],
    }


ARGUMENTS = st.dictionaries(ANY_TEXT, VALUES, max_size=4)


def action(**parts: Any) -> Action:
    """A pending action of Ada's, but for `parts`."""
    made: dict[str, Any] = {
        "id": "a1",
        "thread_id": "t1",
        "run_id": "r1",
        "kind": ActionKind.TOOL,
        "tool": "mcp:bank:pay",
        "title": "Pay INV-7?",
        "args": {"invoice": "INV-7", "amount": 12.5},
        "args_schema": {"properties": {"invoice": STRING, "amount": NUMBER}},
        "digest": "d" * 64,
        "allowed_decisions": (Verdict.APPROVE, Verdict.EDIT, Verdict.REJECT, Verdict.RESPOND),
        "approvers": (),
        "state": ActionState.PENDING,
        "created_at": NOW,
    }
    return Action(**made | parts)
