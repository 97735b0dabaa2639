"""Is there always exactly one live connection, and is its state told as it is?"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.fakes.patience import PATIENCE_SECONDS
from tests.unit.slack.conftest import ADA, Office

pytestmark = pytest.mark.asyncio(loop_scope="package")


async def state(office: Office) -> dict[str, Any]:
    found: dict[str, Any] = (await office.served.http.get("/api/status")).json()["channels"]["slack"]
    return found


async def becomes(office: Office, wanted: str) -> dict[str, Any]:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            found = await state(office)
            if found["state"] == wanted:
                return found
            await asyncio.sleep(0.02)


async def works(office: Office, word: str) -> None:
    ts = await office.asks(ADA, f"[[say {word}]]")
    await office.hears(ts, word)


async def test_the_state_names_the_last_event(office: Office) -> None:
    await works(office, "event")
    found = await becomes(office, "ok")
    assert found["last_event_at"] is not None


async def test_a_cut_socket_is_opened_again(office: Office) -> None:
    office.slack.drop_socket()
    await office.slack.connected()
    await works(office, "after the cut")
    assert office.slack.sockets == 1


async def test_a_refresh_leaves_one_socket_and_loses_nothing(office: Office) -> None:
    refreshing = asyncio.create_task(office.slack.ask_refresh())
    ts = await office.asks(ADA, "[[say over the refresh]]")
    delivery = office.slack.deliveries[-1]
    await refreshing
    if not delivery.acked:
        await office.slack.connected()
        await office.slack.redeliver(delivery)
    await office.hears(ts, "over the refresh")
    await office.slack.connected()
    assert office.slack.most_sockets == 1


async def test_what_was_not_acknowledged_is_taken_when_it_comes_again(office: Office) -> None:
    office.slack.go_away()
    await becomes(office, "down")
    office.slack.come_back()
    await office.slack.connected()
    await works(office, "back again")
    await becomes(office, "ok")


async def test_a_revoked_token_leaves_everything_else_working_and_catches_up(office: Office) -> None:
    ts = await office.asks(ADA, "[[sleep 0.2]] before the token")
    token, office.slack.bot_token = office.slack.bot_token, "xoxb-other"
    found = await becomes(office, "unauthorized")
    assert "invalid_auth" in found["detail"]
    assert token not in str(found)
    made = await office.served.http.post("/api/threads", json={"text": "[[say web works]]"})
    await office.served.wait(made.json()["thread_id"], "idle")
    office.slack.bot_token = token
    office.slack.refused.clear()
    await office.hears(ts, "slept 0.2")
    await becomes(office, "ok")


@pytest.mark.parametrize("field", [{"team_id": "T0OTHER"}, {"api_app_id": "A0OTHER"}])
async def test_requests_of_another_workspace_or_app_change_nothing_and_are_counted(
    office: Office, field: dict[str, str]
) -> None:
    before = len(await office.inbox())
    event = {"type": "message", "channel": office.slack.dm(ADA), "channel_type": "im", "user": ADA}
    delivery = await office.slack.event(event | {"ts": "7.7", "text": "[[say foreign]]"}, **field)
    assert delivery.acked
    assert len(await office.inbox()) == before
    assert "another app or workspace" in (await state(office))["detail"]
