"""What goes over the wire to a model?"""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from pizzabot.agent.models import make_model
from tests.fakes.model_server import ModelServer

IMAGE = {"type": "image", "base64": "iVBORw0KGgo=", "mime_type": "image/png"}
CONVERSATION: list[AnyMessage] = [
    SystemMessage("Be brief."),
    HumanMessage([{"type": "text", "text": "What is it? ✓"}, IMAGE]),
    AIMessage(
        "",
        tool_calls=[{"name": "look", "args": {"at": {"deep": [1, None]}}, "id": "c1", "type": "tool_call"}],
    ),
    ToolMessage("a cat", tool_call_id="c1"),
    HumanMessage("[[say ok]]"),
]
LOOK = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "Looks.",
        "parameters": {
            "type": "object",
            "properties": {"at": {"anyOf": [{"type": "object"}, {"type": "null"}]}},
        },
    },
}


class Recorder(ModelServer):
    """Keeps whole bodies."""

    def __init__(self) -> None:
        super().__init__()
        self.bodies: list[dict[str, Any]] = []

    def reply(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        self.bodies.append(body)
        return super().reply(body)


@pytest.mark.parametrize(
    "options", [{}, {"extra_body": {"seed": 7}, "temperature": 0.5}], ids=["plain", "more"]
)
@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])
async def test_what_is_sent_straight_is_what_the_client_would_send(
    options: dict[str, Any], streaming: bool
) -> None:
    server = Recorder()
    with server:
        given = {"base_url": server.url, "api_key": "none", "streaming": streaming, **options}
        model: Any = make_model("openai:mock", given, {})
        straight = await model.bind_tools([LOOK]).ainvoke(CONVERSATION)
        model.async_client = model.root_async_client.chat.completions
        walked = await model.bind_tools([LOOK]).ainvoke(CONVERSATION)
    assert straight.text == walked.text == "ok"
    assert straight.usage_metadata == walked.usage_metadata
    assert server.bodies[0] == server.bodies[1]
    assert server.bodies[0]["tools"] == [LOOK]
    assert len(server.bodies[0]["messages"]) == len(CONVERSATION)
