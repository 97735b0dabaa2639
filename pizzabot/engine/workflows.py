"""Who remembers, across a crash, that a run was at work? One DBOS workflow per attempt of a run.

The workflow has no steps: LangGraph's checkpoints are the log of what was done, the run's row says where it
stands, and DBOS starts the workflow again after a crash. It has a file of its own on SQLite, because two
writers of one file wait for each other by sleeping; everything in it follows from the runs table.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import sqlalchemy as sa
from sqlalchemy import event

# DBOS derives a version from the code by default, and would orphan what an older version started.
APPLICATION_VERSION = "runtime-1"
APPLICATION_NAME = "pizzabot"
_TIDY_BATCH = 500

Body = Callable[[str, int], Awaitable[None]]


class Workflows(Protocol):
    """Starts the body of a run and starts it again after a crash."""

    async def launch(self, body: Body) -> None:
        """Be ready to start; what a crash interrupted is started again."""
        ...

    async def start(self, run_id: str, attempt: int) -> None:
        """Start `body(run_id, attempt)` at once, in this process."""
        ...

    async def close(self) -> None:
        """Start nothing more."""
        ...


_body: Body | None = None


async def execute_run(run_id: str, attempt: int) -> None:
    """The workflow: registered under this name, so it is found again by any later process."""
    if _body is not None:
        await _body(run_id, attempt)


@cache
def _workflow() -> Any:
    """The workflow as DBOS knows it; once per process."""
    from dbos import DBOS

    return DBOS.workflow(name="pizzabot.run")(execute_run)


class DbosWorkflows:
    """DBOS on a SQLite file, without its queues, admin server and console."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._engine: sa.Engine | None = None
        self._tidying: asyncio.Task[None] | None = None

    async def launch(self, body: Body) -> None:
        global _body
        _body = body
        await asyncio.to_thread(self._configure)
        from dbos import DBOS

        DBOS.launch()
        self._tidying = asyncio.create_task(self._tidy(), name="workflows")

    async def _tidy(self) -> None:
        """Forget the workflows that ended: their runs' rows say all that is worth knowing."""
        from dbos import DBOS

        while True:
            ended = await DBOS.list_workflows_async(
                status=["SUCCESS", "ERROR"], limit=_TIDY_BATCH, load_input=False, load_output=False
            )
            if not ended:
                return
            await DBOS.delete_workflows_async([workflow.workflow_id for workflow in ended])

    def _configure(self) -> None:
        from dbos import DBOS, DBOSConfig

        logging.getLogger("dbos").setLevel(logging.WARNING)
        self._engine = _engine(self._path)
        config: DBOSConfig = {
            "name": APPLICATION_NAME,
            "system_database_url": f"sqlite:///{self._path}",
            "system_database_engine": self._engine,
            "application_version": APPLICATION_VERSION,
            "executor_id": "local",
            "log_level": "WARNING",
            "enable_otlp": False,
        }
        DBOS(config=config)
        _workflow()

    async def start(self, run_id: str, attempt: int) -> None:
        from dbos import DBOS, SetWorkflowID

        with SetWorkflowID(f"{run_id}.{attempt}"):
            await DBOS.start_workflow_async(_workflow(), run_id, attempt)

    async def close(self) -> None:
        global _body
        _body = None
        from dbos import DBOS

        if self._tidying is not None:
            self._tidying.cancel()
            await asyncio.gather(self._tidying, return_exceptions=True)
        await asyncio.to_thread(DBOS.destroy, workflow_completion_timeout_sec=0)
        # DBOS made its own pool the loop's default one and has just shut it down.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(thread_name_prefix="default"))
        if self._engine is not None:
            self._engine.dispose()


def _engine(path: Path) -> sa.Engine:
    """DBOS as shipped uses the rollback journal; WAL is three to four times faster.

    Its commits do not wait for the disk: a crash of the process loses none of them, and what a power cut
    takes follows from the runs table, where each commit does wait (`runs.recover`, `runs.claim_again`).
    """
    engine = sa.create_engine(f"sqlite:///{path}")

    @event.listens_for(engine, "connect")
    def _connected(connection: sqlite3.Connection, _record: Any) -> None:
        connection.isolation_level = "IMMEDIATE"
        for pragma in (
            "busy_timeout = 30000",
            "journal_mode = WAL",
            "synchronous = NORMAL",
            "foreign_keys = ON",
        ):
            connection.execute(f"PRAGMA {pragma}")

    return engine
