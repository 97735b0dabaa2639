"""Does the API give a long thread in pieces, and a login link only to who may have it?"""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from pizzabot.clock import SystemClock
from pizzabot.inbox import threads
from tests.fakes.patience import PATIENCE_SECONDS
from tests.fakes.runtime import Served, client
from tests.unit.web.asked import finished, store_of, stored
from tests.unit.web.browser import UNKNOWN

pytestmark = pytest.mark.asyncio(loop_scope="package")


async def long_thread(served: Served, count: int, person: str = "Ada") -> str:
    """A thread with so many messages: `0`, `1`, …"""
    thread_id = await finished(served, "0", person)

    def write(connection: Any) -> None:
        for number in range(1, count):
            threads.add_message(
                connection,
                thread_id,
                SystemClock().now(),
                role="notice",
                author="Pizza Bot",
                text=str(number),
            )

    await store_of(served).write(write)
    return thread_id


def texts(found: dict[str, Any]) -> list[int]:
    return [int(message["text"]) for message in found["messages"]]


async def test_without_a_query_a_thread_is_there_as_a_whole(served: Served) -> None:
    path = f"/api/threads/{await long_thread(served, 250)}"
    found = (await served.http.get(path)).json()
    assert texts(found) == list(range(250))
    assert (found["has_older"], found["has_newer"]) == (False, False)


async def test_pieces_of_a_thread_are_the_newest_those_before_and_those_behind(served: Served) -> None:
    path = f"/api/threads/{await long_thread(served, 10)}"
    whole = (await served.http.get(path)).json()
    ids = [message["id"] for message in whole["messages"]]
    for query, shown, has_older, has_newer in (
        ({"messages": 3}, [7, 8, 9], True, False),
        ({"messages": 10}, list(range(10)), False, False),
        ({"messages": 1000}, list(range(10)), False, False),
        ({"messages": 3, "before": ids[7]}, [4, 5, 6], True, True),
        ({"messages": 3, "before": ids[2]}, [0, 1], False, True),
        ({"messages": 3, "before": ids[0]}, [], False, True),
        ({"messages": 3, "after": ids[2]}, [3, 4, 5], True, True),
        ({"messages": 3, "after": ids[8]}, [9], True, False),
        ({"before": ids[2]}, [0, 1], False, True),
        ({"after": ids[8]}, [9], True, False),
    ):
        found = (await served.http.get(path, params=query)).json()
        assert (texts(found), found["has_older"], found["has_newer"]) == (shown, has_older, has_newer), query
        assert found.keys() == whole.keys()


async def test_a_piece_has_at_most_200_messages(served: Served) -> None:
    path = f"/api/threads/{await long_thread(served, 205)}"
    last = (await served.http.get(path)).json()["messages"][-1]["id"]
    for query in ({"messages": 201}, {"messages": 10**17}, {"before": str(int(last) + 1)}, {"after": "1"}):
        assert len(texts((await served.http.get(path, params=query)).json())) == 200, query


@pytest.mark.parametrize("name", ["messages", "before", "after"])
@pytest.mark.parametrize(
    "number", ["0", "-1", "1.5", "x", "", "²", "9" * 5000, "0" * 5000 + "1"], ids=range(8)
)
async def test_a_place_that_makes_no_sense_is_refused(served: Served, name: str, number: str) -> None:
    thread_id = await finished(served, "0")
    response = await served.http.get(f"/api/threads/{thread_id}", params={name: number})
    assert (response.status_code, response.json()["error"]["code"]) == (422, "invalid_query")
    assert name in response.json()["error"]["message"]


async def test_an_older_piece_brings_nothing_of_the_run_that_works_now(served: Served) -> None:
    thread_id = await finished(served, "0", answer="1")
    path = f"/api/threads/{thread_id}"
    response = await served.http.post(f"{path}/messages", json={"text": "[[sleep 30]] 2"})
    assert response.status_code == 202
    working = response.json()["run_id"]
    live: list[dict[str, Any]] = []
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not live:
            found = (await served.http.get(path, params={"messages": 1})).json()
            live = [row for row in found["activity"] if row["run_id"] == working and row["at"] is None]
    (message,) = found["messages"]
    older = (await served.http.get(path, params={"messages": 2, "before": message["id"]})).json()
    await served.http.post(f"{path}/stop")
    assert texts(older) == [0, 1]
    known = {run["id"] for run in older["runs"]}
    assert working not in known
    assert {row["run_id"] for row in older["activity"]} <= known


async def test_a_piece_of_somebody_elses_thread_is_not_there(served: Served) -> None:
    thread_id = await long_thread(served, 3, "Cay")
    dan = await served.as_person("Dan")
    for query in ({"messages": 1}, {"before": "5"}, {"after": "1"}):
        response = await dan.get(f"/api/threads/{thread_id}", params=query)
        assert response.status_code == 404
        assert response.json() == (await dan.get(f"/api/threads/{UNKNOWN}", params=query)).json()


# -- login links -----------------------------------------------------------------------------------------


async def link(http: httpx.AsyncClient, body: Any) -> httpx.Response:
    content = json.dumps(body)  # httpx does not send half a surrogate pair
    return await http.post("/api/login-links", content=content, headers={"Content-Type": "application/json"})


@pytest.mark.parametrize("body", [None, {}, {"person": None}, {"person": "Cay"}, {"person": "cay"}], ids=str)
async def test_everybody_gets_a_link_for_themselves(served: Served, body: Any) -> None:
    cay = await served.as_person("Cay")
    response = await (cay.post("/api/login-links") if body is None else link(cay, body))
    assert response.status_code == 201
    made = response.json()
    assert made.keys() == {"person", "url", "expires_at"}
    assert made["person"] == "Cay"
    left = datetime.fromisoformat(made["expires_at"]) - datetime.now(UTC)
    assert timedelta(minutes=9) < left <= timedelta(minutes=10)
    parts = urlsplit(made["url"])
    assert (f"{parts.scheme}://{parts.netloc}", parts.path) == (served.url, "/login")
    (code,) = parse_qs(parts.query)["code"]
    person = await served.doors.sessions.person_of(await served.doors.sessions.log_in(code, "web"))
    assert person is not None
    assert person.name == "Cay"
    assert response.headers["cache-control"] == "no-store"


async def test_an_owner_gets_a_link_for_anybody(served: Served) -> None:
    for name in ("Ada", "Bob", "Cay", "dan"):
        response = await link(served.http, {"person": name})
        assert (response.status_code, response.json()["person"]) == (201, name.title())


@pytest.mark.parametrize(
    ("by", "body", "status", "code"),
    [
        ("Cay", {"person": "Dan"}, 403, "not_an_owner"),
        ("Cay", {"person": "Ada"}, 403, "not_an_owner"),
        ("Bob", {"person": "Cay"}, 403, "not_an_owner"),
        ("Cay", {"person": "Nobody"}, 403, "not_an_owner"),
        ("Ada", {"person": "Nobody"}, 404, "not_found"),
        ("Ada", {"person": "Nobody\x00\ud800"}, 422, "invalid_text"),
        ("Ada", {"person": ""}, 404, "not_found"),
        ("Ada", {"person": 1}, 422, "invalid_body"),
        ("Ada", {"name": "Ada"}, 422, "invalid_body"),
        ("Ada", [], 422, "invalid_body"),
    ],
    ids=str,
)
async def test_nobody_gets_a_link_that_is_not_for_them(
    served: Served, by: str, body: Any, status: int, code: str
) -> None:
    http = served.http if by == "Ada" else await served.as_person(by)
    before = await stored(served)
    response = await link(http, body)
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)
    assert await stored(served) == before


async def test_a_link_needs_a_token(served: Served) -> None:
    async with client(served.url, None) as nobody:
        assert (await link(nobody, {"person": "Ada"})).status_code == 401
