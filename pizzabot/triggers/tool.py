"""How does a conversation become a schedule? The agent proposes a trigger, a person decides about it.

The tool is gated like any other with effects: what runs is what was approved, and it runs once.
"""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo

from pizzabot.agent import context
from pizzabot.errors import Refused, ToolFailed
from pizzabot.tools.catalogue import OwnTool
from pizzabot.tools.values import ToolOutput, ToolSpec
from pizzabot.triggers.triggers import Triggers

_VIA = "conversation"
SPEC = ToolSpec(
    full_name="builtin:create_trigger",
    server="builtin",
    name="create_trigger",
    description=(
        "Make work start by itself, again and again, at times of a cron schedule: for wishes such as "
        "“every weekday at eight, summarise my mail”. A person decides about it before it is made. Each "
        "firing is a new conversation that knows nothing of this one: put everything into the prompt."
    ),
    input_schema={
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "What it is called, short.", "minLength": 1},
            "prompt": {"type": "string", "description": "What is to be done each time, complete."},
            "cron": {
                "type": "string",
                "description": "Minute, hour, day of the month, month, day of the week: 0 8 * * mon-fri.",
            },
            "timezone": {
                "type": "string",
                "description": "An IANA zone such as Europe/Amsterdam; leave it out for the person's own.",
            },
        },
        "required": ["name", "prompt", "cron"],
        "additionalProperties": False,
    },
    read_only=False,
    destructive=False,
    idempotent=False,
)


def create_trigger(triggers: Triggers) -> OwnTool:
    """The tool, for the run it is called in: what it makes belongs to that run's person."""

    async def call(args: dict[str, Any]) -> ToolOutput:
        person = context.current.get().person
        try:
            made = (await triggers.create(args | {"kind": "cron"}, person, _VIA)).trigger
        except Refused as error:
            raise ToolFailed(f"The trigger was not made: {error}") from error
        schedule, due = made.schedule, made.next_run_at
        assert schedule is not None
        assert due is not None
        local = due.astimezone(ZoneInfo(made.timezone))
        text = f"Made: “{made.name}”, {schedule.spoken()}, first on {local:%A, %Y-%m-%d at %H:%M}."
        return ToolOutput(text, [{"type": "text", "text": text}])

    return call
