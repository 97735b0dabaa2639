"""Do pages answer when the disk is full, the form is odd or huge, or those who were asked are gone?"""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
import sqlalchemy as sa
from pizzabot.adapters.web.watching import EventStream, Sight

from pizzabot.doors import Doors
from pizzabot.errors import Unavailable
from pizzabot.events import MAX_OF_ONE, Events
from pizzabot.messages import Event
from pizzabot.people import Person
from tests.fakes.patience import PATIENCE_SECONDS
from tests.fakes.runtime import Served
from tests.unit.web.asked import pending
from tests.unit.web.browser import at_home
from tests.unit.web.tree import sent_of, shown

pytestmark = pytest.mark.asyncio(loop_scope="package")


class Bus:
    """As much of the doors as a stream needs."""

    def __init__(self) -> None:
        self.events = Events()


async def test_a_stream_on_which_something_always_happens_ends_when_its_reader_is_gone() -> None:
    bus, told = Bus(), list[Any]()

    async def gone() -> bool:
        return False

    async def send(message: Any) -> None:
        told.append(message)

    async def receive() -> Any:
        await asyncio.Event().wait()

    sight = Sight(cast(Doors, bus), Person("Ada", "owner"), None)
    stream = EventStream(sight, gone, asyncio.Event(), heartbeat_seconds=0.05)
    task = asyncio.create_task(stream({"type": "http", "method": "GET"}, receive, send))
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not task.done():
            bus.events.publish(Event("servers"))
            await asyncio.sleep(0.005)
    assert told[-1] == {"type": "http.response.body", "body": b""}


async def test_a_stream_is_asked_at_once_when_a_session_ends() -> None:
    bus = Bus()
    known = [True]

    async def still_known() -> bool:
        return known[0]

    async def send(message: Any) -> None:
        pass

    async def receive() -> Any:
        await asyncio.Event().wait()

    sight = Sight(cast(Doors, bus), Person("Ada", "owner"), None)
    stream = EventStream(sight, still_known, asyncio.Event())
    task = asyncio.create_task(stream({"type": "http", "method": "GET"}, receive, send))
    await asyncio.sleep(0)
    bus.events.publish(Event("sessions"))
    known[0] = False
    bus.events.publish(Event("sessions"))
    async with asyncio.timeout(PATIENCE_SECONDS):
        await task


async def test_one_person_cannot_take_all_places_to_watch() -> None:
    events = Events()
    held = [events.subscribe("Cay") for _ in range(MAX_OF_ONE)]
    for place in held:
        place.__enter__()
    with pytest.raises(Unavailable), events.subscribe("Cay"):
        pass
    with events.subscribe("Dan"):
        pass
    held.pop().__exit__(None, None, None)
    with events.subscribe("Cay"):
        pass
    for place in held:
        place.__exit__(None, None, None)


async def test_an_owner_decides_what_waits_for_people_who_are_gone(served: Served) -> None:
    action = await pending(served, {"n": 1}, approvers=("Zed",))
    async with at_home(served) as ada:
        page = await shown(ada, f"/actions/{action.id}")
        assert [node for node in page.all("button") if node.attrs.get("value") == "approve"]


@pytest.mark.parametrize("text", ["é" * 1_000_000, "\n" * 1_000_000], ids=["letters", "lines"])
async def test_long_arguments_can_be_rejected(served: Served, text: str) -> None:
    action = await pending(served, {"s": text})
    async with at_home(served) as ada:
        form = {"digest": action.digest, "fields": "1", "arg.0": text, "decision": "reject"}
        assert (await ada.post(f"/actions/{action.id}", form)).status_code == 303


@pytest.mark.parametrize("charset", ["punycode", "undefined", "no-such-charset"])
async def test_a_form_in_an_odd_character_set_is_refused(served: Served, charset: str) -> None:
    body = b'--b\r\nContent-Disposition: form-data; name="a"\r\n\r\nh\xff-i\r\n--b--\r\n'
    media_type = f"multipart/form-data; boundary=b; charset={charset}"
    async with at_home(served) as ada:
        answer = await ada.http.post("/threads", content=body, headers={"Content-Type": media_type})
    assert 400 <= answer.status_code < 500


async def test_a_full_disk_stops_no_reading_and_is_told_in_plain_words(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = served.doors._database
    async with at_home(served) as ada:
        await database.write(
            lambda c: c.execute(sa.text("UPDATE sessions SET seen_at = seen_at - 7200000000"))
        )
        page = await shown(ada, "/")
        compose = page.one("form", action="/threads")

        async def full(work: Any) -> Any:
            raise sa.exc.OperationalError("x", {}, Exception("database or disk is full"))

        with monkeypatch.context() as patch:
            patch.setattr(database, "write", full)
            assert (await ada.http.get("/")).status_code == 200
            refused = await ada.send("/threads", sent_of(page, compose) | {"text": "keep these words"})
            assert refused.status_code == 503
            assert "keep these words" in refused.text
            assert "Nothing was stored" in refused.text
            assert (await ada.post("/logout", {})).status_code == 503


async def test_a_page_shows_so_much_and_links_to_the_rest(served: Served) -> None:
    words = "and so on " * 70_000
    thread_id = str((await served.http.post("/api/threads", json={"text": words})).json()["thread_id"])
    async with at_home(served) as ada:
        page = await shown(ada, f"/threads/{thread_id}")
        (whole,) = [node for node in page.all("a") if node.text == "the whole message"]
        assert len(page.text) < 20_000
        answer = await ada.http.get(whole.attrs["href"])
        assert answer.text == words
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"
        assert answer.headers["content-disposition"].startswith("attachment;")
        other = whole.attrs["href"].rpartition("/")[0] + "/1"
        assert (await ada.http.get(other)).status_code == 404
    async with at_home(served, "Dan") as dan:
        assert (await dan.http.get(whole.attrs["href"])).status_code == 404


async def test_what_is_too_much_to_be_taken_apart_is_shown_as_it_is(served: Served) -> None:
    words = "**not bold** " * 18_000
    thread_id = str((await served.http.post("/api/threads", json={"text": words})).json()["thread_id"])
    async with at_home(served) as ada:
        page = await shown(ada, f"/threads/{thread_id}")
    assert page.all("strong") == []
    assert page.one("pre", class_="plain").text.strip() == words.strip()
