"""Is the Home tab the inbox: what waits, what is unread, everything, and the ways to steer?"""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.slack import Fault
from tests.unit.slack.conftest import ADA, CAY, EVE, Office, expense

pytestmark = pytest.mark.asyncio(loop_scope="package")


async def opened(office: Office, user: str, words: str = "") -> dict[str, Any]:
    """The Home tab, once it is there and holds these words."""
    await office.slack.opens_home(user)
    return await shows(office, user, words)


async def shows(office: Office, user: str, words: str) -> dict[str, Any]:
    def found() -> dict[str, Any] | None:
        view = office.slack.home(user)
        return view if view is not None and words in office.slack.words(view) else None

    view = await office.slack.until(found, f"{words!r} on the Home tab of {user}")
    assert view is not None
    return view


async def offers(office: Office, user: str, button: str, value: str) -> dict[str, Any]:
    """The Home tab, opened, once it offers this: it may be open already and show what was before."""
    await office.slack.opens_home(user)

    def found() -> dict[str, Any] | None:
        view = office.slack.home(user)
        return view if view is not None and value in office.slack.values(view, button) else None

    view = await office.slack.until(found, f"{button} for {value} on the Home tab of {user}")
    assert view is not None
    return view


async def test_the_home_tab_has_its_three_sections(office: Office) -> None:
    words = office.slack.words(await opened(office, ADA, "All"))
    assert words.index("Action") < words.index("Unread") < words.index("All")


async def test_an_action_is_decided_on_the_home_tab_and_the_card_follows(office: Office) -> None:
    ts = await office.asks(ADA, expense("from home"))
    card = await office.card(ts)
    thread = await office.thread("from home")
    value = f"{thread['actions'][0]['id']} {thread['actions'][0]['digest']}"
    view = await offers(office, ADA, "Approve", value)
    await office.slack.click(ADA, view, "Approve", value)
    await office.becomes(card, "Approved by Ada in Slack")
    await office.hears(ts, "Result:")


async def test_an_open_home_tab_follows_what_happens(office: Office) -> None:
    await opened(office, ADA)
    ts = await office.asks(ADA, "[[say seen at home]]")
    await office.hears(ts, "seen at home")
    await shows(office, ADA, "seen at home")


async def test_mark_read_takes_a_thread_out_of_unread(office: Office) -> None:
    ts = await office.asks(CAY, "[[say to be read]]")
    await office.hears(ts, "to be read", user=CAY)
    thread = await office.thread("to be read")
    view = await offers(office, CAY, "Mark read", thread["id"])
    await office.slack.click(CAY, view, "Mark read", thread["id"])

    def gone() -> bool:
        shown = office.slack.home(CAY)
        return shown is not None and thread["id"] not in office.slack.values(shown, "Mark read")

    await office.slack.until(gone)
    assert (await office.thread("to be read"))["unread"] is False


async def test_a_search_shows_only_threads_with_these_words_and_can_be_cleared(office: Office) -> None:
    for word in ("zebra", "giraffe"):
        ts = await office.asks(CAY, f"[[say {word}]]")
        await office.hears(ts, word, user=CAY)
    view = await opened(office, CAY, "giraffe")
    await office.slack.click(CAY, view, "pizza_search", "zebra")
    found = await shows(office, CAY, "Threads with zebra")
    everything = office.slack.words(found).rpartition("Threads with zebra")[2]
    assert "zebra" in everything
    assert "giraffe" not in everything
    await office.slack.click(CAY, found, "Show all")
    await office.slack.until(
        lambda: "Threads with" not in office.slack.words(office.slack.home(CAY) or {"blocks": []})
    )


async def test_only_owners_stop_everything_and_resume_it(office: Office) -> None:
    assert "Stop everything" not in office.slack.buttons(await opened(office, CAY, "All"))
    view = await opened(office, ADA, "All")
    await office.slack.click(ADA, view, "Stop everything")
    stopped = await shows(office, ADA, "Everything is stopped")
    ts = await office.asks(CAY, "[[say held back]]")
    await office.whispered(CAY, "Everything is stopped by Ada")
    await office.slack.click(ADA, stopped, "Resume")
    await office.hears(ts, "held back", user=CAY)


async def test_a_stranger_sees_nothing_but_how_to_be_let_in(office: Office) -> None:
    view = await opened(office, EVE, "I only work for people I was told about")
    assert office.slack.buttons(view) == []


async def test_a_view_that_changed_behind_our_back_is_published_anew(office: Office) -> None:
    await opened(office, ADA, "All")
    office.slack.faults_on["views.publish"] = [Fault(error="hash_conflict")]
    before = len(office.slack.calls_of("views.publish"))
    await office.slack.opens_home(ADA)
    await office.slack.until(lambda: len(office.slack.calls_of("views.publish")) >= before + 2)
