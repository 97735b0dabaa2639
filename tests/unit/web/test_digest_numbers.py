"""Numbers written below a digest in the web view, over the API and from the terminal: do they decide exactly
what was listed, all or nothing, once, and only for the person it was made for?"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from pizzabot.adapters.web.saying import say

from pizzabot.digests import making
from pizzabot.errors import Unavailable
from pizzabot.messages import Action, InboundMessage
from tests.fakes.runtime import Served
from tests.unit.web.asked import CLOCK, pending, store_of
from tests.unit.web.browser import at_home

pytestmark = pytest.mark.asyncio(loop_scope="package")
_keys = (f"numbers-{number}" for number in itertools.count())


@dataclass(frozen=True)
class Listed:
    """Cay's digest: its thread, and what it lists by number."""

    thread_id: str
    actions: list[Action]


async def made(served: Served) -> str:
    cay = served.doors.people.by_name("Cay")
    assert cay is not None

    def work(connection: sa.Connection) -> str:
        found = making.make(connection, cay, served.doors.people, {}, served.url, CLOCK.now())
        assert found is not None
        return found.thread_id

    return await store_of(served).write(work)


async def digest(served: Served, count: int, **changes: Any) -> Listed:
    cay = await served.as_person("Cay")
    for action in (await cay.get("/api/actions?state=pending&limit=100")).json()["actions"]:
        if action["may_decide"]:
            await cay.post(f"/api/actions/{action['id']}/decision", json={"decision": "reject"})
    listed = [await pending(served, person="Cay", **changes) for _ in range(count)]
    return Listed(await made(served), listed)


async def writes(
    served: Served, listed: Listed, text: str, who: str = "Cay", **headers: str
) -> httpx.Response:
    http = served.http if who == "Ada" else await served.as_person(who)
    return await http.post(f"/api/threads/{listed.thread_id}/messages", json={"text": text}, headers=headers)


async def states(served: Served, listed: Listed) -> list[str]:
    found = [await served.http.get(f"/api/actions/{action.id}") for action in listed.actions]
    return [response.json()["state"] for response in found]


async def messages(served: Served, listed: Listed) -> list[dict[str, Any]]:
    thread = (await served.http.get(f"/api/threads/{listed.thread_id}")).json()
    return list(thread["messages"])


@pytest.mark.parametrize("client", ["terminal", ""])
async def test_numbers_decide_and_what_was_done_is_said_in_the_thread(served: Served, client: str) -> None:
    listed = await digest(served, 3)
    headers = {"X-Pizzabot-Client": client}
    response = await writes(served, listed, "approve 1, 3; reject 2: too dear", **headers)
    assert response.status_code == 202
    assert (response.json()["run_id"], response.json()["held"]) == (None, False)
    assert await states(served, listed) == ["approved", "rejected", "approved"]
    decided = (await served.http.get(f"/api/actions/{listed.actions[0].id}")).json()
    assert (decided["decided_by"], decided["decided_via"]) == ("Cay", client or "api")
    said = (await messages(served, listed))[-1]
    assert (said["id"], said["role"]) == (response.json()["message_id"], "notice")
    assert said["text"].splitlines() == [
        "You wrote “approve 1, 3; reject 2: too dear”.",
        "",
        "- **1** · Pay an invoice: approved.",
        "- **2** · Pay an invoice: rejected. Reason: too dear",
        "- **3** · Pay an invoice: approved.",
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("approve 1; reject 2?", "it says more than the decisions"),
        ("approve 1, 7", "there is no number 7 in the list"),
        ("approve all", "it says more than the one word"),
    ],
)
async def test_one_part_that_is_not_clear_decides_nothing_and_reaches_no_agent(
    served: Served, text: str, why: str
) -> None:
    listed = await digest(served, 2)
    assert (await writes(served, listed, text)).json()["run_id"] is None
    assert await states(served, listed) == ["pending", "pending"]
    said = (await messages(served, listed))[-1]
    assert said["role"] == "notice"
    assert f"Nothing was decided: {why}" in said["text"]


async def test_anything_else_goes_to_the_agent(served: Served) -> None:
    listed = await digest(served, 1)
    run_id = (await writes(served, listed, "Which one can wait? [[say the first]]")).json()["run_id"]
    assert run_id is not None
    await served.wait(listed.thread_id, "idle")
    assert (await messages(served, listed))[-1]["text"] == "the first"


async def test_somebody_else_decides_nothing_by_it(served: Served) -> None:
    listed = await digest(served, 1)
    response = await writes(served, listed, "approve 1", who="Ada")  # an owner, who may decide it elsewhere
    assert response.json()["run_id"] is not None
    await served.wait(listed.thread_id, "idle", "failed")
    assert (await writes(served, listed, "approve 1", who="Dan")).status_code == 404
    assert await states(served, listed) == ["pending"]


async def test_what_was_not_shown_with_all_its_arguments_is_not_approved_by_number(served: Served) -> None:
    listed = await digest(served, 1, args={"body": "x" * 999})
    await writes(served, listed, "approve 1")
    assert "was not shown with all that would run" in (await messages(served, listed))[-1]["text"]
    await writes(served, listed, "reject 1")
    assert await states(served, listed) == ["rejected"]


async def test_the_same_request_brought_again_does_nothing_twice(served: Served) -> None:
    listed, key = await digest(served, 2), next(_keys)
    first = await writes(served, listed, "approve 1", **{"Idempotency-Key": key})
    before = await messages(served, listed)
    again = await writes(served, listed, "approve 1", **{"Idempotency-Key": key})
    assert (again.json(), again.headers["Idempotent-Replayed"]) == (first.json(), "true")
    # Nor does it do anything else under that name.
    await writes(served, listed, "reject 2", **{"Idempotency-Key": key})
    assert await messages(served, listed) == before
    assert await states(served, listed) == ["approved", "pending"]


async def test_a_message_that_was_taken_before_the_digest_is_no_decision_afterwards(served: Served) -> None:
    earlier, key = await digest(served, 1), next(_keys)
    assert (await writes(served, earlier, "hello", **{"Idempotency-Key": key})).json()["run_id"] is not None
    await served.wait(earlier.thread_id, "idle")
    listed = await digest(served, 1)
    await writes(served, listed, "approve 1", **{"Idempotency-Key": key})
    assert await states(served, listed) == ["pending"]


async def test_a_request_brought_again_after_a_crash_is_about_the_list_it_was_about(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed, key = await digest(served, 1), next(_keys)
    message = InboundMessage("api", "Cay", "approve 1", thread_id=listed.thread_id, key=key)

    async def dies(*_: object) -> None:
        raise Unavailable("the process died")

    with monkeypatch.context() as patch:
        patch.setattr(served.doors, "answer", dies)
        with pytest.raises(Unavailable):
            await say(served.doors, message)
    assert await states(served, listed) == ["approved"]
    later = await digest(served, 1)
    assert later.thread_id == listed.thread_id
    await say(served.doors, message)
    assert (await messages(served, listed))[-1]["text"].endswith("- **1** · Pay an invoice: approved.")
    assert await states(served, later) == ["pending"]


async def test_the_message_box_of_the_page_takes_them_and_shows_what_was_done(served: Served) -> None:
    listed = await digest(served, 2)
    here = f"/threads/{listed.thread_id}"
    async with at_home(served, "Cay") as browser:
        page = await browser.get(here)
        fields = dict(re.findall(r'type="hidden" name="(key|seen)" value="([^"]+)"', page.text))
        for _ in range(2):  # the second is the same form sent again
            sent = await browser.post(f"{here}/messages", fields | {"text": "reject 2: paid already"})
            assert sent.status_code == 303
        shown = (await browser.get(here)).text
    assert await states(served, listed) == ["pending", "rejected"]
    assert shown.count("Pay an invoice: rejected. Reason: paid already") == 1


async def test_a_page_that_does_not_show_the_newest_digest_decides_nothing_by_number(served: Served) -> None:
    earlier = await digest(served, 1)
    here = f"/threads/{earlier.thread_id}"
    async with at_home(served, "Cay") as browser:
        page = await browser.get(here)
        fields = dict(re.findall(r'type="hidden" name="(key|seen)" value="([^"]+)"', page.text))
        listed = await digest(served, 1)
        await browser.post(f"{here}/messages", fields | {"text": "approve 1"})
    assert await states(served, listed) == ["pending"]
    said = (await messages(served, listed))[-1]["text"]
    assert "a newer digest came while the page was open" in said
