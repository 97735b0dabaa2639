"""Who may see and remove what is old, and does no run start in a thread that is held still?"""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
import sqlalchemy as sa

from pizzabot.database import schema
from pizzabot.outbox import store as outbox
from tests.fakes.patience import PATIENCE_SECONDS
from tests.fakes.runtime import Served

pytestmark = pytest.mark.asyncio(loop_scope="package")


async def test_an_owner_sees_what_would_go_and_removes_it(served: Served) -> None:
    found = (await served.http.get("/api/retention")).json()["kinds"]
    ages = {row["kind"]: row["age_seconds"] for row in found}
    assert ages == {
        "messages": None,
        "checkpoints": None,
        "attachments": None,
        "outbox": 90 * 86400,
        "activity": 90 * 86400,
        "audit": None,
    }
    response = await served.http.post("/api/retention")
    assert (response.status_code, response.json()) == (200, {"removed": {}, "finished": True})
    cay = await served.as_person("Cay")
    for method in ("GET", "POST"):
        assert (await cay.request(method, "/api/retention")).status_code == 403


async def test_the_audit_says_who_removed_how_much(served: Served) -> None:
    async def line() -> tuple[str, str, dict[str, int]] | None:
        lines = (await served.http.get("/api/audit")).json()["lines"]
        found = [line for line in lines if line["event"] == "retention.removed"]
        return (found[0]["actor"], found[0]["via"], found[0]["data"]) if found else None

    made = (await served.http.post("/api/threads", json={"text": "[[say one]]"})).json()["thread_id"]
    await served.wait(made, "idle")
    before = served.doors.clock.now() - timedelta(days=100)

    def old(connection: sa.Connection) -> None:
        outbox.enqueue(
            connection,
            before,
            key="repaint/audited",
            channel="gone",
            address="x",
            kind="notice",
            thread_id=made,
        )
        given_up = sa.update(schema.outbox).where(schema.outbox.c.key == "repaint/audited")
        connection.execute(given_up.values(state="failed"))

    assert await line() is None
    await served.doors._database.write(old)
    await served.http.post("/api/retention")
    assert await line() == ("Ada", "api", {"outbox": 1})


async def test_nothing_starts_in_a_thread_that_is_held_still(served: Served) -> None:
    engine = served.doors._engine
    made = (await served.http.post("/api/threads", json={"text": "[[say one]]"})).json()["thread_id"]
    await served.wait(made, "idle")
    async with engine.still(made) as is_still:
        assert is_still
        await served.http.post(f"/api/threads/{made}/messages", json={"text": "[[say two]]"})
        other = (await served.http.post("/api/threads", json={"text": "[[say three]]"})).json()["thread_id"]
        await served.wait(other, "idle")  # whatever came later was started meanwhile
        assert (await served.http.get(f"/api/threads/{made}")).json()["state"] == "queued"
    assert (await served.wait(made, "idle"))["messages"][-1]["text"] == "two"


async def test_a_thread_at_work_is_not_still(served: Served) -> None:
    engine = served.doors._engine
    made = (await served.http.post("/api/threads", json={"text": "[[sleep 20]] [[say x]]"})).json()
    await served.wait(made["thread_id"], "running")
    async with asyncio.timeout(PATIENCE_SECONDS):
        while engine.context_of(made["thread_id"]) is None:  # noqa: ASYNC110 - it says so when it is there
            await asyncio.sleep(0.01)
    async with engine.still(made["thread_id"]) as is_still:
        assert not is_still
    await served.http.post(f"/api/threads/{made['thread_id']}/stop")
