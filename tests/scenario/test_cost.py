"""What every run does again, it does not prepare again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import langsmith.run_helpers
import pytest
import sqlalchemy as sa

from tests.fakes.model_server import ModelServer
from tests.fakes.runtime import Served, serving, write_home

pytestmark = pytest.mark.asyncio(loop_scope="module")


@contextmanager
def executed(path: Path) -> Iterator[list[Any]]:
    """The statements, as objects, that are executed meanwhile on one SQLite file."""
    found: list[Any] = []

    def keep(connection: sa.Connection, statement: Any, *_rest: object) -> None:
        if connection.engine.url.database == str(path):
            found.append(statement)

    sa.event.listen(sa.Engine, "before_execute", keep)
    try:
        yield found
    finally:
        sa.event.remove(sa.Engine, "before_execute", keep)


async def answered(served: Served, number: int) -> None:
    """Ask, and look at nothing until the answer was delivered."""
    with served.doors.events.subscribe() as events:
        response = await served.http.post(
            "/api/threads", json={"text": f"[[say {number}]]", "title": f"Number {number}"}
        )
        thread_id = response.json()["thread_id"]
        async for event in events:
            if (event.kind, event.thread_id) == ("delivered", thread_id):
                return


async def test_a_run_executes_only_statements_that_were_built_before(
    tmp_path: Path, model: ModelServer
) -> None:
    home = write_home(tmp_path / "home", model.url)
    async with serving(home) as served:
        with executed(home.app_database) as before:
            await answered(served, 1)
            await answered(served, 2)
        with executed(home.app_database) as again:
            await answered(served, 3)
    known = {id(statement) for statement in before}
    assert again != []
    assert [str(statement) for statement in again if id(statement) not in known] == []


async def test_no_hook_of_a_model_call_is_traced_for_langsmith(
    tmp_path: Path, model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    traced: list[str] = []
    setup = langsmith.run_helpers._setup_run

    def seen(function: Any, *args: Any, **how: Any) -> Any:
        traced.append(function.__qualname__)
        return setup(function, *args, **how)

    monkeypatch.setattr(langsmith.run_helpers, "_setup_run", seen)
    async with serving(write_home(tmp_path / "home", model.url)) as served:
        await answered(served, 1)
    assert traced == []
