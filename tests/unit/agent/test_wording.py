"""Can what a model said be kept, and is the rest said back to it?"""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, InvalidToolCall, ToolCall
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from pizzabot.agent.wording import UNREADABLE, kept, refusal


def _calling(args: dict[str, Any]) -> AIMessage:
    return AIMessage("", tool_calls=[ToolCall(name="pay", args=args, id="1", type="tool_call")])


def _nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    "args",
    [{}, {"a": [1, -(2**63), 2**64 - 1, 0.1, True, None, "ü", {"b": []}]}, _nested(50)],
    ids=["none", "of every kind", "deep"],
)
def test_an_ordinary_call_stays_as_it_is(args: dict[str, Any]) -> None:
    message = kept(_calling(args))
    assert message.tool_calls[0]["args"] == args
    assert refusal(message.tool_calls[0]) is None


@pytest.mark.parametrize(
    ("args", "word"),
    [
        ({"a": 2**64}, "64 bits"),
        ({"a": [{"b": -(2**63) - 1}]}, "64 bits"),
        ({"a": 10**400}, "64 bits"),
        ({"a": float("inf")}, "finite"),
        ({"a": float("nan")}, "finite"),
        (_nested(400), "deep"),
    ],
    ids=["2**64", "-2**63-1", "10**400", "infinite", "nan", "too deep"],
)
def test_a_call_that_no_checkpoint_takes_is_kept_and_refused(args: dict[str, Any], word: str) -> None:
    message = kept(_calling(args))
    answer = refusal(message.tool_calls[0])
    assert answer is not None
    assert (answer.status, answer.tool_call_id) == ("error", "1")
    assert word in answer.text
    serializer = JsonPlusSerializer()
    assert serializer.loads_typed(serializer.dumps_typed(message)) == message


def test_a_call_that_is_no_json_is_a_call_that_is_refused() -> None:
    broken = InvalidToolCall(name="pay", args='{"a": ', id="7", error="bad", type="invalid_tool_call")
    message = kept(AIMessage("Paying.", invalid_tool_calls=[broken]))
    assert (message.invalid_tool_calls, message.text) == ([], "Paying.")
    assert message.tool_calls[0]["args"].keys() == {UNREADABLE}
    answer = refusal(message.tool_calls[0])
    assert answer is not None
    assert "not valid JSON" in answer.text


def test_text_that_no_database_takes_is_replaced_in_words_and_arguments() -> None:
    message = AIMessage("a\x00b", tool_calls=_calling({"k\x00": ["\ud800"]}).tool_calls)
    found = kept(message)
    assert found.text == "a\ufffdb"
    assert found.tool_calls[0]["args"] == {"k\ufffd": ["\ufffd"]}


def test_other_messages_pass() -> None:
    message = HumanMessage("\x00")
    assert kept(message) is message
