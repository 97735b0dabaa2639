"""Where did an attempt get to? Whatever was on disk when its process died, its run comes to the same end."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import aiosqlite
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.graph.state import CompiledStateGraph

from pizzabot.agent.checkpoints import GroupCommitSaver, open_checkpoints
from pizzabot.engine.engine import _progress

WHERE: RunnableConfig = {"configurable": {"thread_id": "T"}, "metadata": {"run_id": "R"}}
ASKED = {"messages": [HumanMessage("Look it up.", id="the message")]}
TOLD = ["Look it up.", "", "seven", "seven", "It is seven and seven."]


@tool
def look(word: str) -> str:
    """Look a word up."""
    return "seven"


class Looking(BaseChatModel):
    """Looks two words up at once, then answers."""

    @property
    def _llm_type(self) -> str:
        return "looking"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        found = [message.text for message in messages if message.type == "tool"]
        if found:
            said = AIMessage(f"It is {' and '.join(found)}.")
        else:
            calls = [{"name": "look", "args": {"word": word}, "id": word} for word in ("one", "two")]
            said = AIMessage("", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=said)])


class Copying(GroupCommitSaver):
    """Keeps a copy of the file as it stands after every commit."""

    copies: list[Path]

    async def aput(self, *args: Any, **kwargs: Any) -> RunnableConfig:
        stored = await super().aput(*args, **kwargs)
        self._copy()
        return stored

    async def aput_writes(self, *args: Any, **kwargs: Any) -> None:
        await super().aput_writes(*args, **kwargs)
        self._copy()

    def _copy(self) -> None:
        self.copies.append(self._path.with_suffix(f".{len(self.copies)}"))
        with closing(sqlite3.connect(self._path)) as here:
            here.execute("VACUUM INTO ?", (str(self.copies[-1]),))


def agent(saver: GroupCommitSaver) -> CompiledStateGraph[Any, Any, Any, Any]:
    return create_agent(Looking(), [look], checkpointer=saver)


async def goes_on(saver: GroupCommitSaver) -> tuple[bool, list[str]]:
    """What the engine does with what it finds: whether that was taken for finished, and what was said."""
    graph = agent(saver)
    state = await _progress(graph, WHERE, "R")
    if state is not None and state["finished"]:
        return True, [message.text for message in state["messages"]]
    result = await graph.ainvoke(ASKED if state is None else None, WHERE, durability="sync")
    return False, [message.text for message in result["messages"]]


async def test_whatever_was_on_disk_when_the_process_died_the_run_goes_on_to_the_same_end(
    tmp_path: Path,
) -> None:
    file = tmp_path / "checkpoints.sqlite"
    saver = Copying(await aiosqlite.connect(file), file)
    saver.copies = []
    await agent(saver).ainvoke(ASKED, WHERE, durability="sync")
    await saver.close()
    ends = []
    for copy in saver.copies:
        async with open_checkpoints(copy) as found:
            ends.append(await goes_on(found))
    assert len(ends) > 8
    assert [said for _, said in ends] == [TOLD] * len(ends)
    assert [ends[0][0], ends[-1][0]] == [False, True]
