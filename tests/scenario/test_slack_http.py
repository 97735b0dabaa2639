"""Does a whole server in HTTP mode answer Slack's signed requests, and nobody else's?"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from slack_sdk.signature import SignatureVerifier

from tests.fakes.model_server import ModelServer
from tests.fakes.runtime import Served, serving, write_home
from tests.fakes.slack import FakeSlack, Message

PEOPLE = """
[[people]]
name = "Ada"
role = "owner"
slack = "U0ADA"
"""


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def office(
    tmp_path_factory: pytest.TempPathFactory, model: ModelServer
) -> AsyncIterator[tuple[FakeSlack, Served]]:
    async with FakeSlack({"U0ADA": "ada"}, mode="http") as slack:
        table = (
            f'\n[slack]\nmode = "http"\nbot_token = "{slack.bot_token}"\n'
            f'signing_secret = "{slack.signing_secret}"\napi_url = "{slack.url}"\n'
        )
        async with serving(
            write_home(tmp_path_factory.mktemp("http") / "home", model.url, people=PEOPLE, more_toml=table)
        ) as served:
            slack.request_url = f"{served.url}/slack/events"
            await slack.until(lambda: served.runtime.channels["slack"].state().state == "ok")
            yield slack, served
        assert slack.refused == []


def said(slack: FakeSlack, ts: str, words: str) -> list[Message]:
    told = slack.messages(slack.dm("U0ADA"), ts)
    return [m for m in told if m.user == slack.bot_user and words in slack.words(m)]


async def test_a_conversation_a_decision_and_a_command_work_over_http(
    office: tuple[FakeSlack, Served],
) -> None:
    slack, _ = office
    ts = await slack.says("U0ADA", '[[call bookkeeper submit_expense {"amount": 3, "note": "http"}]]')
    (card,) = await slack.until(lambda: said(slack, ts, "Run submit_expense?"))
    await slack.click("U0ADA", card, "Edit")
    await slack.until(lambda: "amount" in str(slack.modal("U0ADA")))
    assert "errors" in await slack.submit("U0ADA", {"amount": "-1"})
    assert await slack.submit("U0ADA", {"amount": "4"}) == {}
    await slack.until(lambda: said(slack, ts, "filed 4"))
    await slack.until(lambda: "Edited and approved by Ada in Slack" in slack.words(card))
    assert "/pizza TEXT" in (await slack.command("U0ADA", "/pizza help"))["text"]


async def test_what_slack_did_not_sign_changes_nothing_and_is_counted(
    office: tuple[FakeSlack, Served],
) -> None:
    slack, served = office
    before = len((await served.http.get("/api/threads")).json()["threads"])
    event: dict[str, Any] = {"type": "message", "channel": slack.dm("U0ADA"), "channel_type": "im"}
    written = slack.post(slack.dm("U0ADA"), "U0ADA", "[[say signed]]")
    event |= {"user": "U0ADA", "ts": written.ts, "text": written.text}
    body = {"type": "event_callback", "team_id": slack.team_id, "api_app_id": slack.app_id, "event": event}
    sent, kind = json.dumps(body), "application/json"
    late = int(time.time()) - 400
    for forged in ({"secret": "guessed"}, {"signed": False}, {"timestamp": late}):
        status, _ = await slack.post_signed(sent, kind, **forged)
        assert status == 401
    foreign = json.dumps(body | {"team_id": "T0OTHER"})
    assert (await slack.post_signed(foreign, kind))[0] == 403
    timestamp = str(int(time.time()))
    signature = SignatureVerifier(slack.signing_secret).generate_signature(timestamp=timestamp, body=sent)
    headers = {"x-slack-request-timestamp": timestamp, "x-slack-signature": str(signature)}
    url = f"{served.url}/slack/events"
    answers = [await served.http.post(url, content=sent, headers=headers) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 401]
    threads = (await served.http.get("/api/threads")).json()["threads"]
    assert len(threads) == before + 1
    detail = (await served.http.get("/api/status")).json()["channels"]["slack"]["detail"]
    assert "refused requests with a wrong signature: 4" in detail
    assert "refused requests of another app or workspace: 1" in detail
    await slack.until(lambda: said(slack, written.ts, "signed"))
