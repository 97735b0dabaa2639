"""What happens in a running server to work that waits for a decision which nobody makes?"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from tests.fakes.clock import FakeClock
from tests.fakes.model_server import ModelServer
from tests.fakes.patience import PATIENCE_SECONDS
from tests.fakes.runtime import Served, ledger_calls, serving, write_home
from tests.scenario.acting import Json, answers, ask_until, call, decide, pending

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def _acted(served: Served, action_id: str, state: str) -> Json:
    """The action, as soon as it is in that state."""
    found: Json = {}
    async with asyncio.timeout(PATIENCE_SECONDS):
        while found.get("state") != state:
            found = (await served.http.get(f"/api/actions/{action_id}")).json()
            await asyncio.sleep(0.02)
    return found


async def test_a_parked_action_goes_on_after_it_was_reopened_and_approved(
    tmp_path: Path, model: ModelServer
) -> None:
    home = write_home(tmp_path / "home", model.url, more_toml='[approvals]\nexpire_after = "7d"\n')
    async with serving(home) as served:
        await served.runtime.working
        thread = await ask_until(served, call("submit_expense", amount=1, note="parked"), "waiting")
        (action,) = pending(thread)
        await served.is_late(action["id"], "expires_at")
        expired = await _acted(served, action["id"], "expired")
        late = await decide(served, expired, "approve", status=409)
        assert late["error"]["code"] == "already_decided"
        assert "Reopen it" in late["error"]["message"]
        waiting = (await served.http.get(f"/api/threads/{thread['id']}")).json()
        assert (waiting["state"], waiting["action_count"]) == ("waiting", 0)
        reopened = (await served.http.post(f"/api/actions/{expired['id']}/reopen", json={})).json()
        assert reopened["state"] == "pending"
        await decide(served, reopened, "approve")
        await served.wait(thread["id"], "idle")
    assert [made["args"]["note"] for made in ledger_calls(home)] == ["parked"]


async def test_what_expired_while_nothing_ran_is_told_to_the_agent_at_the_next_start(
    tmp_path: Path, model: ModelServer
) -> None:
    toml = '[approvals]\nexpire_after = "7d"\non_expiry = "reject"\n'
    home, clock = write_home(tmp_path / "home", model.url, more_toml=toml), FakeClock()
    async with serving(home, clock=clock) as served:
        await served.runtime.working
        thread = await ask_until(served, call("submit_expense", amount=1, note="late"), "waiting")
        (action,) = pending(thread)
    clock.advance(timedelta(days=8))
    async with serving(home, clock=clock) as served:
        await served.runtime.working
        thread = await served.wait(thread["id"], "idle")
        (expired,) = thread["actions"]
        assert (expired["id"], expired["state"], expired["decision"]) == (action["id"], "expired", "reject")
        assert "Nobody decided on this call in time" in answers(thread)[-1]
    assert ledger_calls(home, "start") == []
