from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from datetime import date
from typing import Any

import pytest
from deepagents import create_deep_agent, register_harness_profile
from deepagents._models import get_model_provider
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import StructuredTool
from pydantic import BaseModel, Field

from pizzabot.agent import demo_words as words
from pizzabot.agent.demo_arguments import fill
from pizzabot.agent.demo_model import DEMO_LABEL, DemoModel
from pizzabot.agent.demo_plan import Tool, work
from pizzabot.agent.graph import profile_of

TODAY = date(2026, 11, 29)
NOW = "It is Sunday 2026-11-29 10:00 (UTC+0100, Europe/Amsterdam)."


async def pretend(**args: Any) -> str:
    return f"Filed as expense 4: {args['amount']} {args.get('currency', 'EUR')} {args['note']}"


def tool(name: str, description: str, required: Sequence[str] = (), **properties: Any) -> StructuredTool:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return StructuredTool(name=name, description=description, args_schema=schema, coroutine=pretend)


TEXT: dict[str, Any] = {"type": "string"}
CURRENCY = {"type": "string", "enum": ["EUR", "USD", "JPY"], "default": "EUR"}
EXPENSES = [
    tool("list_expenses", "List the expenses in the book.", month=TEXT),
    tool("total_expenses", "Tell how much was spent in total.", currency=CURRENCY),
    tool(
        "add_expense",
        "File one expense in the book: what was paid and what it was for.",
        ["amount", "note"],
        amount={"type": "number", "description": "What was paid"},
        note={"type": "string", "description": "What it was for"},
        currency=CURRENCY,
        date={"type": "string", "format": "date"},
        tags={"type": "array", "items": {"type": "string"}},
    ),
    tool("remove_expense", "Remove one expense by its number.", ["number"], number={"type": "integer"}),
]

LISTING = """Launch an ephemeral subagent.

Available agent types and the tools they have access to:
- general-purpose: General-purpose agent for everything, expenses and emails too.
- expenses: Keeps the expenses: what was paid or spent, e.g. "File 42.50 EUR for a taxi, tagged travel".
- email-drafts: Draft emails and replies in the person's tone.

Specify subagent_type to select the agent. Usage notes:
- Each invocation is stateless by default: the agent sees only the prompt you give it."""


class TaskArguments(BaseModel):
    description: str = Field(description="what to do")
    subagent_type: str = Field(description="who")


TASK = StructuredTool(name="task", description=LISTING, args_schema=TaskArguments, coroutine=pretend)


def reply(messages: list[BaseMessage] | str, tools: Sequence[StructuredTool]) -> AIMessage:
    said = [SystemMessage(NOW), HumanMessage(messages)] if isinstance(messages, str) else messages
    return DemoModel().bind_tools(list(tools)).invoke(said)


def calls(message: AIMessage) -> list[tuple[str, dict[str, Any]]]:
    return [(call["name"], call["args"]) for call in message.tool_calls]


# --- sentences to calls


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        (
            "Please file an expense of 42.50 EUR for a taxi to the airport, tagged travel",
            [
                (
                    "add_expense",
                    {"amount": 42.5, "note": "taxi to the airport", "currency": "EUR", "tags": ["travel"]},
                )
            ],
        ),
        (
            "I paid $18 for lunch with a customer yesterday",
            [
                (
                    "add_expense",
                    {"amount": 18, "note": "lunch with a customer", "currency": "USD", "date": "2026-11-28"},
                )
            ],
        ),
        (
            "Add €1,200.00 for “new laptop”, tags hardware and work, on 2026-11-03",
            [
                (
                    "add_expense",
                    {
                        "amount": 1200,
                        "note": "new laptop",
                        "currency": "EUR",
                        "date": "2026-11-03",
                        "tags": ["hardware", "work"],
                    },
                )
            ],
        ),
        (
            "Can you record 3000 yen for ramen on 5 November?",
            [("add_expense", {"amount": 3000, "note": "ramen", "currency": "JPY", "date": "2026-11-05"})],
        ),
        ("taxi 42,50 €", [("add_expense", {"amount": 42.5, "note": "taxi", "currency": "EUR"})]),
        (
            "File a taxi of 20 EUR. It was yesterday.",
            [("add_expense", {"amount": 20, "note": "taxi", "currency": "EUR", "date": "2026-11-28"})],
        ),
        (
            "file 12.50 EUR for lunch and 30 EUR for a taxi",
            [
                ("add_expense", {"amount": 12.5, "note": "lunch", "currency": "EUR"}),
                ("add_expense", {"amount": 30, "note": "taxi", "currency": "EUR"}),
            ],
        ),
        (
            "File 5 EUR for tea, tagged food and work, and show my expenses",
            [
                ("add_expense", {"amount": 5, "note": "tea", "currency": "EUR", "tags": ["food", "work"]}),
                ("list_expenses", {}),
            ],
        ),
        ("Show my expenses", [("list_expenses", {})]),
        ("list the expenses of last month", [("list_expenses", {"month": "2026-10"})]),
        ("How much did I spend?", [("total_expenses", {})]),
        ("What did I spend in total in dollars?", [("total_expenses", {"currency": "USD"})]),
        ("Delete expense 3", [("remove_expense", {"number": 3})]),
        ("What is the weather?", []),
    ],
)
def test_a_worker_chooses_tools_and_arguments(sentence: str, expected: list[Any]) -> None:
    assert calls(reply(sentence, EXPENSES)) == expected


PAY = tool(
    "mcp__bank__pay_invoice",
    "Pay an invoice to a recipient.",
    ["amount", "to", "urgent"],
    amount={"type": "number"},
    to=TEXT,
    days={"type": "integer"},
    urgent={"type": "boolean"},
    reason={"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
    extra={"type": "object"},
)


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Pay an invoice of 40 to Ada", {"amount": 40, "to": "Ada", "urgent": False}),
        (
            "Pay the invoice, urgent, amount 40.25 to ada@example.com for the roof",
            {"amount": 40.25, "to": "ada@example.com", "urgent": True, "reason": "roof"},
        ),
        (
            "Pay the invoice within days 7 and amount 99 to Bob, not urgent",
            {"amount": 99, "to": "Bob", "days": 7, "urgent": False},
        ),
        ("Pay invoice 2026-11-03 at 10:30, 12 EUR to Bob", {"amount": 12, "to": "Bob", "urgent": False}),
    ],
)
def test_arguments_come_from_the_schema_of_any_tool(sentence: str, expected: dict[str, Any]) -> None:
    assert calls(reply(sentence, [PAY])) == [("mcp__bank__pay_invoice", expected)]


def test_references_and_defaults_of_a_schema_are_followed() -> None:
    schema = {
        "properties": {
            "size": {"$ref": "#/$defs/Size"},
            "topping": {"enum": ["extra_cheese", "ham"], "default": "ham"},
            "topic": {"type": "string"},
        },
        "required": ["size", "topping", "topic"],
        "$defs": {"Size": {"type": "string", "enum": ["small", "large"]}},
    }
    filled = fill(schema, "a large one with extra cheese about ovens", today=TODAY)
    assert filled.args == {"size": "large", "topping": "extra_cheese", "topic": "ovens"}
    assert fill(schema, "about ovens", today=TODAY).missing == ("size",)
    assert fill(schema, "about ovens", today=TODAY).args == {"topping": "ham", "topic": "ovens"}


@pytest.mark.parametrize(
    ("sentence", "named"),
    [
        ("File an expense for a taxi", ["amount (What was paid)"]),
        ("File an expense of 12 EUR", ["note (What it was for)"]),
        ("File an expense", ["amount (What was paid)", "note (What it was for)"]),
        ("Remove an expense", ["number"]),
    ],
)
def test_missing_arguments_are_asked_for_and_nothing_is_called(sentence: str, named: list[str]) -> None:
    answer = reply(sentence, EXPENSES)
    assert answer.tool_calls == []
    assert f"I need to know: {', '.join(named)}. What should I put there?" in answer.text


def test_messages_that_came_together_are_answered_together() -> None:
    together: list[BaseMessage] = [HumanMessage("File 5 EUR for tea"), HumanMessage("Show my expenses")]
    assert [name for name, _ in calls(reply(together, EXPENSES))] == ["add_expense", "list_expenses"]


def test_what_stands_around_the_words_of_a_person_is_no_part_of_them() -> None:
    said = "Bob writes:\n\nFile an expense for tea\n\n[Attached image: tea.png (image/png, 1,234 bytes)]"
    assert "I need to know: amount" in reply(said, EXPENSES).text
    assert calls(reply(said, [TASK]))[0][1] == {
        "description": "File an expense for tea",
        "subagent_type": "expenses",
    }


def test_files_of_the_agent_are_left_alone() -> None:
    plan = work("write a file about expenses", [Tool("write_file", "Write a file.", {})], TODAY)
    assert plan.calls == ()


# --- the root agent


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("I spent 12 EUR on lunch.", [("expenses", "I spent 12 EUR on lunch.")]),
        ("Show my expenses", [("expenses", "Show my expenses")]),
        (
            "File 12 EUR for lunch and draft an email to Bob about it",
            [("expenses", "File 12 EUR for lunch"), ("email-drafts", "draft an email to Bob about it")],
        ),
        (
            "File an expense of 5 EUR for tea and file an expense of 6 EUR for cake",
            [("expenses", "File an expense of 5 EUR for tea and file an expense of 6 EUR for cake")],
        ),
    ],
)
def test_the_root_hands_each_part_to_the_worker_that_fits(
    sentence: str, expected: list[tuple[str, str]]
) -> None:
    made = calls(reply(sentence, [*EXPENSES, TASK]))
    assert made == [("task", {"description": text, "subagent_type": worker}) for worker, text in expected]


def test_what_fits_no_worker_gets_an_answer_that_says_who_is_speaking() -> None:
    assert reply("Write me a poem", [TASK]).tool_calls == []
    answer = reply("Tell me a joke about Rome", [TASK])
    assert answer.tool_calls == []
    assert "offline demo model" in answer.text
    assert "joke" in answer.text
    assert "- expenses: Keeps the expenses" in answer.text
    assert "general-purpose" not in answer.text
    assert answer.text.endswith('Try for example: "File 42.50 EUR for a taxi, tagged travel"')


def test_an_answer_to_a_question_completes_the_earlier_request() -> None:
    asked = reply("File an expense for a taxi", EXPENSES).text
    talk: list[BaseMessage] = [
        HumanMessage("File an expense for a taxi."),
        AIMessage("", tool_calls=[{"name": "task", "args": {}, "id": "1"}]),
        ToolMessage(asked, tool_call_id="1", name="task"),
        AIMessage(asked),
    ]
    made = calls(reply([*talk, HumanMessage("42.50 EUR")], [TASK]))
    assert made[0][1]["description"] == "File an expense for a taxi, 42.50 EUR"
    made = calls(reply([*talk, HumanMessage("Show my expenses")], [TASK]))
    assert made[0][1]["description"] == "Show my expenses"


# --- after the tools


def after(*results: tuple[str, str], said: str = "File 12 EUR for lunch") -> list[BaseMessage]:
    asked = AIMessage(
        "", tool_calls=[{"name": "add_expense", "args": {}, "id": str(i)} for i in range(len(results))]
    )
    told = [
        ToolMessage(text, tool_call_id=str(i), name="add_expense", status=status)
        for i, (text, status) in enumerate(results)
    ]
    return [HumanMessage(said), asked, *told]


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        (("Filed as expense 4", "success"), "Filed as expense 4"),
        (
            ("A person rejected add_expense: too dear", "error"),
            "I did not do it: A person rejected add_expense: too dear",
        ),
        (
            (
                "Ada rejected this call; it was not made and must not be tried again in another way. "
                "Reason: too dear",
                "error",
            ),
            "I did not do it: Ada rejected this call. Reason: too dear",
        ),
        (("Rejected by Ada", "success"), "I did not do it: Rejected by Ada"),
        (
            ("Server: request rejected, no token", "error"),
            "It did not work (add_expense): Server: request rejected, no token",
        ),
        (("the book is locked", "error"), "It did not work (add_expense): the book is locked"),
        (
            ("The outcome of this call is unknown", "error"),
            "I cannot say whether it was done: The outcome of this call is unknown",
        ),
        (("", "success"), "(no text came back)"),
    ],
)
def test_a_worker_reports_honestly_what_came_of_its_call(result: tuple[str, str], answer: str) -> None:
    assert reply(after(result), EXPENSES).text == answer
    assert reply(after(result), EXPENSES).tool_calls == []


def test_several_results_are_told_one_by_one() -> None:
    text = reply(
        after(("Filed as expense 4", "success"), ("A person rejected it: no", "error")), EXPENSES
    ).text
    assert text == "- Filed as expense 4\n- I did not do it: A person rejected it: no"


def test_a_part_that_could_not_be_done_is_asked_for_after_the_rest() -> None:
    said = "File an expense for lunch. Show my expenses."
    assert calls(reply(said, EXPENSES)) == [("list_expenses", {})]
    assert "I need to know: amount" in reply(after(("1. tea", "success"), said=said), EXPENSES).text


def test_a_last_call_without_tools_tells_what_was_done() -> None:
    talk = [*after(("Filed as expense 4", "success")), HumanMessage("The limit is reached. Answer now.")]
    assert DemoModel().invoke(talk).text == "Filed as expense 4"


def test_the_root_passes_on_what_its_workers_report() -> None:
    talk = after(("I did not do it: A person rejected it: no", "success"), ("Drafted.", "success"))
    assert reply(talk, [TASK]).text == "I did not do it: A person rejected it: no\n\nDrafted."


# --- a model among models


def test_the_same_messages_give_the_same_reply_and_other_places_give_other_ids() -> None:
    said: list[BaseMessage] = [HumanMessage("file 5 EUR for tea and 6 EUR for cake", id="h1")]
    first, again = reply(said, EXPENSES), reply(said, EXPENSES)
    assert first.tool_calls == again.tool_calls
    later = reply([*said, first, AIMessage("done"), HumanMessage(said[0].content, id="h2")], EXPENSES)
    ids = [call["id"] for call in [*first.tool_calls, *later.tool_calls]]
    assert len(set(ids)) == 4


def test_it_is_labelled_and_counts_its_use() -> None:
    answer = reply("Show my expenses", EXPENSES)
    assert answer.response_metadata["model_name"] == DEMO_LABEL == "demo (offline, not a real model)"
    assert DemoModel()._get_ls_params()["ls_model_name"] == DEMO_LABEL
    assert answer.usage_metadata is not None
    assert answer.usage_metadata["input_tokens"] == len(NOW + "Show my expenses") // 4
    assert answer.usage_metadata["total_tokens"] > answer.usage_metadata["input_tokens"]


async def test_it_runs_on_the_event_loop_without_a_thread_and_can_be_slow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    before = threading.active_count()
    await DemoModel(latency_seconds=0.5).ainvoke("hello")
    assert slept == [0.5]
    assert threading.active_count() == before


@pytest.mark.parametrize(
    ("conversation", "title"),
    [
        ("\n\nPlease file an expense of 42.50 EUR for a taxi", "File an expense of 42.50 EUR"),
        (" for the conversation:\nuser: could you show my expenses? Thanks", "Show my expenses?"),
        (" for this: remind Bob of the roof", "Remind Bob of the roof"),
        ("", "New conversation"),
    ],
)
def test_a_title_is_made_from_the_first_sentence(conversation: str, title: str) -> None:
    assert DemoModel().invoke(f"Give a short title{conversation}").text == title


# --- in a real agent


class Rejecting(AgentMiddleware[Any, Any]):
    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        call = request.tool_call
        if call["name"] != "add_expense" or "gold" not in call["args"]["note"]:
            return await handler(request)
        text = "A person rejected add_expense. Reason: too dear"
        return ToolMessage(text, tool_call_id=call["id"], name=call["name"], status="error")


async def test_it_drives_a_deep_agent_with_a_worker_to_the_end() -> None:
    provider = get_model_provider(DemoModel()) or "demo"
    register_harness_profile(provider, profile_of(provider))
    worker: Any = {
        "name": "expenses",
        "description": "Keeps the book of expenses: what was paid or spent.",
        "runnable": create_deep_agent(DemoModel(), EXPENSES, system_prompt=NOW, middleware=[Rejecting()]),
    }
    agent = create_deep_agent(DemoModel(), subagents=[worker], system_prompt="You are the root.")

    async def ask(text: str) -> list[BaseMessage]:
        messages: list[BaseMessage] = (await agent.ainvoke({"messages": [HumanMessage(text)]}))["messages"]
        return messages

    done = await ask("I paid $18 for lunch")
    assert [message.type for message in done] == ["human", "ai", "tool", "ai"]
    assert done[-1].text == "Filed as expense 4: 18 USD lunch"
    assert (await ask("I paid $900 for gold"))[-1].text == (
        "I did not do it: A person rejected add_expense. Reason: too dear"
    )
    assert "I need to know: amount" in (await ask("File an expense for lunch"))[-1].text
    assert "offline demo model" in (await ask("Hello!"))[-1].text


# --- words


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("expenses", "expense"),
        ("filed", "adding"),
        ("spent", "spending"),
        ("deleted", "removes"),
        ("taxis", "taxi"),
    ],
)
def test_forms_of_a_word_share_a_stem(one: str, other: str) -> None:
    assert words.stem(one) == words.stem(other)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("42.50, €7 and 1,200.00", [42.5, 7, 1200]),
        ("on 2026-11-05 at 10:30 I paid 12,5€ for 2026-11", [12.5]),
        ("room B12 v1.2.3 of 5 November", []),
        ("3.", [3]),
    ],
)
def test_numbers_are_read_as_people_write_them(text: str, values: list[float]) -> None:
    assert [value for _, value in words.numbers(text)] == values


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("today", "2026-11-29"),
        ("on December 24", "2025-12-24"),
        ("3rd of March 2024", "2024-03-03"),
        ("31 February", None),
        ("some day", None),
    ],
)
def test_days_are_read_as_people_write_them(text: str, expected: str | None) -> None:
    assert words.day(text, TODAY) == expected
