"""The end of an id is enough when only one thread or action ends so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pizzabot.cli import ids
from pizzabot.cli.client import Api, httpx
from pizzabot.cli.failures import Failed
from tests.unit.cli.conftest import Answers, action_row, thread_row

Serving = Callable[[Answers], Api]


def pages(*views: list[dict[str, Any]]) -> Answers:
    """All threads on pages of one view, then the archived ones."""

    def answer(request: httpx.Request) -> dict[str, Any]:
        rows = views[["all", "archived"].index(request.url.params["view"])]
        start = int(request.url.params.get("cursor", "0"))
        following = start + 2
        return {"threads": rows[start:following], "next_cursor": str(following) if rows[following:] else None}

    return answer


def test_a_whole_id_is_not_looked_up(serving: Serving) -> None:
    def never(request: httpx.Request) -> Any:
        raise AssertionError(request.url)

    whole = thread_row(7)["id"]
    assert ids.thread_id(serving(never), whole.upper()) == whole


def test_an_ending_is_looked_for_on_every_page_and_in_the_archive(serving: Serving) -> None:
    api = serving(pages([thread_row(n) for n in range(0x1000, 0x1005)], [thread_row(0x2222)]))
    assert ids.thread_id(api, "1004") == thread_row(0x1004)["id"]
    assert ids.thread_id(api, "…002222") == thread_row(0x2222)["id"]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("abc", "too short"),
        ("9999", "no thread whose id ends in 9999"),
        ("hello!", "hello! is not the id"),
        ("\x1b[2J0000", r"\x1b[2J0000 is not the id"),
        ("", "is not the id"),
        ("../../x", "is not the id"),
    ],
)
def test_what_names_nothing_is_refused(serving: Serving, given: str, told: str) -> None:
    with pytest.raises(Failed) as refused:
        ids.thread_id(serving(pages([thread_row(1)], [])), given)
    assert told in str(refused.value)


def test_an_ending_of_several_names_them(serving: Serving) -> None:
    api = serving(pages([thread_row(0x1ABCD), thread_row(0x2ABCD, title="Other\x07")], []))
    with pytest.raises(Failed, match="abcd is the end of 2 thread ids") as refused:
        ids.thread_id(api, "abcd")
    assert refused.value.more == (
        "  00000000-0000-7000-8000-00000001abcd  Thread 109517",
        "  00000000-0000-7000-8000-00000002abcd  Other\\x07",
    )
    assert ids.thread_id(api, "2abcd").endswith("2abcd")


def test_waiting_actions_come_before_decided_ones(serving: Serving) -> None:
    waiting, decided = action_row(0x1ABCD), action_row(0x2ABCD, state="approved")

    def answer(request: httpx.Request) -> dict[str, Any]:
        return {"actions": [waiting] if request.url.params.get("state") == "pending" else [waiting, decided]}

    api = serving(answer)
    assert ids.action(api, "abcd") == waiting
    assert ids.action(api, "2abcd") == decided


def test_a_whole_action_id_is_asked_for(serving: Serving) -> None:
    api = serving(lambda request: action_row(5) | {"title": request.url.path})
    assert ids.action(api, action_row(5)["id"])["title"] == f"/api/actions/{action_row(5)['id']}"
