"""How many runs a second do twenty parallel runs of three steps get from each SQLite saver?"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import StateGraph

from pizzabot.agent.checkpoints import open_checkpoints

PARALLEL = 20
RUNS = 200

Opener = Callable[[Path], AbstractAsyncContextManager[AsyncSqliteSaver]]


@dataclass(frozen=True)
class Row:
    saver: str
    runs_per_second: float
    ratio: float


class Note(TypedDict):
    text: str


@asynccontextmanager
async def _plain(path: Path) -> AsyncIterator[AsyncSqliteSaver]:
    async with AsyncSqliteSaver.from_conn_string(str(path)) as saver:
        await saver.setup()
        await saver.conn.execute("PRAGMA synchronous=FULL")
        yield saver


async def rows(runs: int = RUNS, parallel: int = PARALLEL) -> list[Row]:
    """One row for each saver, the plain one first; `ratio` is relative to it."""
    openers: dict[str, Opener] = {"AsyncSqliteSaver": _plain, "GroupCommitSaver": open_checkpoints}
    rates = {name: await _runs_per_second(opener, runs, parallel) for name, opener in openers.items()}
    base = next(iter(rates.values()))
    return [Row(name, rate, rate / base) for name, rate in rates.items()]


async def _runs_per_second(opener: Opener, runs: int, parallel: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        async with opener(Path(folder) / "checkpoints.sqlite") as saver:
            graph = _three_steps(saver)
            gate = asyncio.Semaphore(parallel)

            async def run(thread: int) -> None:
                async with gate:
                    config = {"configurable": {"thread_id": str(thread)}}
                    await graph.ainvoke({"text": "x" * 1000}, config, durability="sync")

            started = time.perf_counter()
            await asyncio.gather(*(run(thread) for thread in range(runs)))
            return runs / (time.perf_counter() - started)


def _three_steps(saver: AsyncSqliteSaver) -> Any:
    async def step(state: Note) -> Note:
        return {"text": state["text"][::-1]}

    graph: StateGraph[Note, None, Note, Note] = StateGraph(Note)
    for name in ("one", "two", "three"):
        graph.add_node(name, step)
    graph.add_edge("__start__", "one")
    graph.add_edge("one", "two")
    graph.add_edge("two", "three")
    return graph.compile(checkpointer=saver)


def table(measured: list[Row]) -> str:
    """The rows as text."""
    lines = [f"{PARALLEL} parallel runs of 3 steps, durability sync, synchronous FULL"]
    lines += [f"{row.saver:<20} {row.runs_per_second:8.1f} runs/s  x{row.ratio:.1f}" for row in measured]
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(asyncio.run(rows())))
