"""What is the model shown of a conversation?"""

from __future__ import annotations

from typing import Any, cast

from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from pizzabot.agent.calls import Mended


async def shown(*messages: AnyMessage) -> list[AnyMessage]:
    """What reaches the model of these messages."""
    seen: list[AnyMessage] = []

    async def model(request: ModelRequest[Any]) -> ModelResponse[Any]:
        seen.extend(request.messages)
        return ModelResponse(result=[AIMessage("ok")])

    request = ModelRequest(model=cast(Any, None), messages=list(messages))
    await Mended().awrap_model_call(request, model)
    return seen


def call(identity: str) -> Any:
    return {"name": "task", "args": {}, "id": identity, "type": "tool_call"}


async def test_a_call_that_was_left_open_is_answered_where_it_stands() -> None:
    first, asked, then = (
        HumanMessage("pay"),
        AIMessage("", tool_calls=[call("1"), call("2")]),
        HumanMessage("so"),
    )
    done = ToolMessage("paid", tool_call_id="1")
    found = await shown(first, asked, done, then)
    assert [message.type for message in found] == ["human", "ai", "tool", "tool", "human"]
    answers = {m.tool_call_id: m.text for m in found if isinstance(m, ToolMessage)}
    assert answers["1"] == "paid"
    assert "did not complete" in answers["2"]


async def test_a_conversation_without_open_calls_is_shown_as_it_is() -> None:
    messages: list[AnyMessage] = [
        HumanMessage("pay"),
        AIMessage("", tool_calls=[call("1")]),
        ToolMessage("paid", tool_call_id="1"),
    ]
    assert await shown(*messages) == messages
