from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from deepagents import create_deep_agent
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import Checkpoint, empty_checkpoint
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from pizzabot.agent.checkpoints import GroupCommitSaver, open_checkpoints
from pizzabot.agent.group_commit import WriterClosed
from pizzabot.errors import Conflict, NotFound
from tests.fakes.patience import PATIENCE_SECONDS


@pytest.fixture
async def saver(tmp_path: Path) -> AsyncIterator[GroupCommitSaver]:
    async with open_checkpoints(tmp_path / "checkpoints.sqlite") as saver:
        yield saver


def at(thread: str, checkpoint_id: str | None = None, ns: str = "") -> RunnableConfig:
    where: dict[str, Any] = {"thread_id": thread, "checkpoint_ns": ns}
    return {"configurable": where if checkpoint_id is None else {**where, "checkpoint_id": checkpoint_id}}


def checkpoint(checkpoint_id: str, **values: Any) -> Checkpoint:
    return {**empty_checkpoint(), "id": checkpoint_id, "ts": "2026-11-01", "channel_values": values}


def rows(file: Path) -> list[tuple[Any, ...]]:
    db = sqlite3.connect(file)
    try:
        return [
            row
            for table in ("checkpoints", "writes")
            for row in db.execute(f"SELECT * FROM {table} ORDER BY 1, 2, 3, 4, 5, 6")
        ]
    finally:
        db.close()


# --- the same as the saver of LangGraph


class Tally(TypedDict):
    steps: Annotated[list[str], lambda old, new: [*old, *new]]


def asking_graph(saver: AsyncSqliteSaver) -> Any:
    async def ask(state: Tally) -> Tally:
        return {"steps": [f"answer {interrupt('how many?')}"]}

    async def note(state: Tally) -> Tally:
        return {"steps": ["noted"]}

    graph: StateGraph[Tally, None, Tally, Tally] = StateGraph(Tally)
    graph.add_node("note", note)
    graph.add_node("ask", ask)
    graph.add_edge(START, "note")
    graph.add_edge("note", "ask")
    graph.add_edge("ask", END)
    return graph.compile(checkpointer=saver)


async def story(saver: AsyncSqliteSaver) -> list[Any]:
    """What a person sees of a run that pauses, is looked at, goes on, and is deleted."""
    graph, thread = asking_graph(saver), at("T")
    paused = await graph.ainvoke({"steps": ["start"]}, thread, durability="sync")
    asked = [question.value for question in (await graph.aget_state(thread)).interrupts]
    done = await graph.ainvoke(Command(resume=3), thread, durability="sync")
    history = [
        (snap.values, snap.next, snap.metadata["step"]) async for snap in graph.aget_state_history(thread)
    ]
    await saver.adelete_thread("T")
    return [paused["steps"], asked, done["steps"], history, (await graph.aget_state(thread)).values]


async def test_a_graph_behaves_as_with_the_stock_saver(saver: GroupCommitSaver, tmp_path: Path) -> None:
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "stock.sqlite")) as stock:
        assert await story(saver) == await story(stock)


ids = st.sampled_from(["1", "2", "3"])
threads = st.sampled_from(["T", "U"])
spaces = st.sampled_from(["", "tools:7"])
values = st.one_of(st.integers(-1000, 2**60), st.text(max_size=5), st.lists(st.booleans(), max_size=2))
writes = st.lists(st.tuples(st.sampled_from(["messages", "__error__", "__interrupt__"]), values), max_size=3)
operations = st.one_of(
    st.tuples(st.just("put"), threads, spaces, ids, st.none() | ids, values),
    st.tuples(st.just("writes"), threads, spaces, ids, ids, writes),
    st.tuples(st.just("delete"), threads),
)


async def perform(saver: AsyncSqliteSaver, steps: Sequence[tuple[Any, ...]]) -> list[Any]:
    seen: list[Any] = []
    for step in steps:
        match step:
            case ("put", thread, ns, number, parent, value):
                made = checkpoint(number, x=value)
                seen.append(await saver.aput(at(thread, parent, ns), made, {"source": "loop", "step": 1}, {}))
                seen.append(await saver.aget_tuple(at(thread, ns=ns)))
            case ("writes", thread, ns, number, task, wrote):
                await saver.aput_writes(at(thread, number, ns), wrote, task, f"path/{task}")
                seen.append(await saver.aget_tuple(at(thread, number, ns)))
            case ("delete", thread):
                await saver.adelete_thread(thread)
    seen.append([found async for found in saver.alist(None)])
    history = await saver.aget_delta_channel_history(config=at("T"), channels=["messages", "x"])
    return [*seen, history]


@settings(max_examples=25, deadline=None, database=None)
@given(steps=st.lists(operations, max_size=12))
def test_any_sequence_of_operations_leaves_the_rows_of_the_stock_saver(
    steps: list[tuple[Any, ...]],
) -> None:
    async def compare(folder: Path) -> None:
        async with AsyncSqliteSaver.from_conn_string(str(folder / "stock.sqlite")) as stock:
            await stock.setup()
            expected = await perform(stock, steps)
        async with open_checkpoints(folder / "ours.sqlite") as ours:
            assert await perform(ours, steps) == expected
        assert rows(folder / "ours.sqlite") == rows(folder / "stock.sqlite")

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(compare(Path(folder)))


async def test_each_file_can_be_opened_by_the_other_saver(tmp_path: Path) -> None:
    file = tmp_path / "checkpoints.sqlite"
    async with AsyncSqliteSaver.from_conn_string(str(file)) as stock:
        await stock.aput(at("T"), checkpoint("1", x=1), {}, {})
    async with GroupCommitSaver.from_conn_string(str(file)) as ours:
        await ours.aput(at("T", "1"), checkpoint("2", x=2), {}, {})
    async with AsyncSqliteSaver.from_conn_string(str(file)) as stock:
        found = await stock.aget_tuple(at("T"))
    assert found is not None
    assert found.checkpoint["channel_values"] == {"x": 2}


# --- what was acknowledged is there


CHILD = """
import asyncio, os, sys
from pathlib import Path
from langgraph.checkpoint.base import empty_checkpoint
from pizzabot.agent.checkpoints import open_checkpoints

async def writer(saver, thread, log):
    for number in range(100_000):
        name = f"{number:06}"
        config = {"configurable": {"thread_id": str(thread), "checkpoint_ns": ""}}
        stored = await saver.aput(config, {**empty_checkpoint(), "id": name}, {}, {})
        await saver.aput_writes(stored, [("x", name)], "task")
        os.write(log, f"{thread} {name}\\n".encode())
        os.fsync(log)

async def main():
    log = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    async with open_checkpoints(Path(sys.argv[1])) as saver:
        await asyncio.gather(*(writer(saver, thread, log) for thread in range(8)))

asyncio.run(main())
"""


def acknowledged_lines(log: Path) -> list[list[str]]:
    lines = log.read_text().splitlines(keepends=True) if log.exists() else []
    return [line.split() for line in lines if line.endswith("\n")]


async def test_every_acknowledged_write_survives_kill_9(tmp_path: Path) -> None:
    file, log = tmp_path / "checkpoints.sqlite", tmp_path / "acknowledged.log"
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", CHILD, str(file), str(log))
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while child.returncode is None and len(acknowledged_lines(log)) < 400:  # noqa: ASYNC110 - a file
                await asyncio.sleep(0.02)
    finally:
        child.kill()
        await child.wait()
    acknowledged = acknowledged_lines(log)
    assert len(acknowledged) >= 400
    async with open_checkpoints(file) as saver:
        for thread, name in acknowledged:
            found = await saver.aget_tuple(at(thread, name))
            assert found is not None
            assert found.pending_writes == [("task", "x", name)]


async def test_close_commits_what_waits_and_refuses_what_comes_later(tmp_path: Path) -> None:
    file = tmp_path / "checkpoints.sqlite"
    async with open_checkpoints(file) as saver:
        tasks = [
            asyncio.create_task(saver.aput(at(str(number)), checkpoint("1"), {}, {})) for number in range(100)
        ]
        await asyncio.sleep(0)
    await asyncio.gather(*tasks)
    assert len(rows(file)) == 100
    with pytest.raises(WriterClosed, match="the checkpoints are closed"):
        await saver.aput(at("late"), checkpoint("1"), {}, {})


async def test_a_write_that_cannot_be_stored_fails_alone(saver: GroupCommitSaver) -> None:
    outcomes = await asyncio.gather(
        saver.aput(at("good"), checkpoint("1"), {}, {}),
        saver.aput(at("bad\ud800"), checkpoint("1"), {}, {}),
        saver.aput_writes(at("good", "1"), [("x", 1)], "task"),
        return_exceptions=True,
    )
    assert isinstance(outcomes[1], UnicodeEncodeError)
    found = await saver.aget_tuple(at("good"))
    assert found is not None
    assert found.pending_writes == [("task", "x", 1)]


async def test_deleting_a_thread_also_deletes_writes_that_were_under_way(saver: GroupCommitSaver) -> None:
    await asyncio.gather(
        saver.aput(at("T"), checkpoint("1"), {}, {}),
        saver.aput_writes(at("T", "1"), [("x", 1)], "task"),
        saver.aput(at("U"), checkpoint("1"), {}, {}),
        saver.adelete_thread("T"),
    )
    assert [found.config["configurable"]["thread_id"] async for found in saver.alist(None)] == ["U"]


async def test_synchronous_callers_in_other_threads_are_served(saver: GroupCommitSaver) -> None:
    await asyncio.to_thread(saver.put, at("T"), checkpoint("1", x=5), {}, {})
    found = await asyncio.to_thread(saver.get_tuple, at("T"))
    assert found is not None
    assert found.checkpoint["channel_values"] == {"x": 5}


async def test_the_file_belongs_to_this_user_alone(tmp_path: Path) -> None:
    file = tmp_path / "checkpoints.sqlite"
    file.touch(0o644)
    async with open_checkpoints(file) as saver:
        await saver.aput(at("T"), checkpoint("1"), {}, {})
        modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in os.listdir(tmp_path)]
    assert modes == [0o600] * 3


# --- forks


class Counting(BaseChatModel):
    """Says how many messages it was shown, so that a lost one is noticed."""

    @property
    def _llm_type(self) -> str:
        return "counting"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        heard = [str(m.content) for m in messages if isinstance(m, HumanMessage)]
        return ChatResult(generations=[ChatGeneration(message=AIMessage(f"heard {' '.join(heard)}"))])

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return self._generate(messages)


async def say(agent: Any, thread: str, text: str) -> str:
    state = await agent.ainvoke({"messages": [HumanMessage(text)]}, at(thread), durability="sync")
    return str(state["messages"][-1].content)


async def test_a_deep_agent_goes_on_in_a_copy_with_all_its_messages(saver: GroupCommitSaver) -> None:
    agent = create_deep_agent(Counting(), checkpointer=saver)
    await say(agent, "T", "one")
    await say(agent, "T", "two")
    await saver.acopy_thread("T", "copy")
    assert await say(agent, "copy", "three") == "heard one two three"
    assert await say(agent, "T", "drei") == "heard one two drei"


async def test_a_fork_at_an_earlier_checkpoint_knows_nothing_of_what_came_later(
    saver: GroupCommitSaver,
) -> None:
    agent = create_deep_agent(Counting(), checkpointer=saver)
    await say(agent, "T", "one")
    fork_at = (await agent.aget_state(at("T"))).config["configurable"]["checkpoint_id"]
    await say(agent, "T", "two")
    await saver.acopy_thread("T", "fork", fork_at)
    copied = (await agent.aget_state(at("fork"))).values["messages"]
    assert [str(message.content) for message in copied] == ["one", "heard one"]
    assert await say(agent, "fork", "other") == "heard one other"
    assert await say(agent, "fork", "more") == "heard one other more"
    assert await say(agent, "T", "three") == "heard one two three"


async def test_a_full_copy_of_a_paused_thread_can_be_answered(saver: GroupCommitSaver) -> None:
    graph = asking_graph(saver)
    await graph.ainvoke({"steps": ["start"]}, at("T"), durability="sync")
    await saver.acopy_thread("T", "copy")
    done = await graph.ainvoke(Command(resume=7), at("copy"), durability="sync")
    assert done["steps"] == ["start", "noted", "answer 7"]
    assert (await graph.aget_state(at("T"))).next == ("ask",)


async def test_a_fork_takes_what_subgraphs_stored_before_it_and_not_after(saver: GroupCommitSaver) -> None:
    for number, parent in (("1", None), ("2", "1"), ("3", "2")):
        await saver.aput(at("T", parent), checkpoint(number), {}, {})
        await saver.aput_writes(at("T", number), [("x", number)], "task")
        sub = at("T", None, f"tools:{number}")
        await saver.aput(sub, checkpoint(f"sub{number}"), {"parents": {"": number}}, {})
    await saver.acopy_thread("T", "fork", "2")
    found = {
        found.checkpoint["id"]: found.pending_writes
        async for found in saver.alist({"configurable": {"thread_id": "fork"}})
    }
    assert found == {"1": [("task", "x", "1")], "2": [], "sub1": []}


async def test_a_fork_refuses_unknown_sources_and_used_targets(saver: GroupCommitSaver) -> None:
    await saver.aput(at("T"), checkpoint("1"), {}, {})
    with pytest.raises(NotFound, match="no checkpoint 9"):
        await saver.acopy_thread("T", "new", "9")
    with pytest.raises(NotFound, match="no checkpoint yet"):
        await saver.acopy_thread("nobody", "new")
    with pytest.raises(Conflict, match="has a state already"):
        await saver.acopy_thread("T", "T")
