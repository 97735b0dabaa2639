"""Does everybody see and change in the browser what is theirs, and does no text become part of a page?"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest
import sqlalchemy as sa
from pizzabot.adapters.web.pages.inbox import ROWS
from pizzabot.adapters.web.pages.threads import MESSAGES
from pizzabot.adapters.web.pages.visit import csrf_of

from pizzabot.agent import activity
from pizzabot.agent.activity import Activity
from pizzabot.approvals import store
from pizzabot.ids import new_id
from pizzabot.inbox import runs, threads
from pizzabot.messages import ActionState, Attachment, RunState, Verdict
from pizzabot.people import People, Person
from pizzabot.sessions import Sessions
from tests.fakes.rows import arrives, question
from tests.fakes.runtime import Served
from tests.unit.web.asked import CLOCK, asked, done, finished, store_of, stored, word
from tests.unit.web.browser import (
    HTML,
    SESSION,
    UNKNOWN,
    Browser,
    at_home,
    browsing,
    check_page,
    house,
    path_of,
    places,
    session_of,
)
from tests.unit.web.tree import UNSEEN, Node, buttons, check, is_in, labels, links, sent_of, shown, tree

pytestmark = pytest.mark.asyncio(loop_scope="package")

EVERYBODY = ["Ada", "Bob", "Cay", "Dan"]
ALWAYS = ("Log out", "Keyboard shortcuts", "Close")  # on every page


def row_ids(page: Node) -> list[str]:
    """The threads that a page of the inbox lists."""
    return [
        node.attrs["id"].removeprefix("t")
        for node in page.all("li")
        if node.attrs.get("id", "").startswith("t")
    ]


async def present(served: Served, thread_id: str) -> threads.Thread:
    thread = await store_of(served).read(lambda c: threads.get(c, thread_id))
    assert thread is not None
    return thread


# -- the inbox -------------------------------------------------------------------------------------------


async def test_the_inbox_shows_everybody_only_what_is_theirs(served: Served) -> None:
    mark = word()
    own = {name: await finished(served, f"{mark} of {name}", name) for name in EVERYBODY}
    for_bob, _, _ = await asked(served, "Cay", approvers=("Bob",))
    expected = {
        "Ada": {*own.values(), for_bob},
        "Bob": {own["Bob"], for_bob},
        "Cay": {own["Cay"], for_bob},
        "Dan": {own["Dan"]},
    }
    for name in EVERYBODY:
        async with at_home(served, name) as browser:
            listed = set(row_ids(await shown(browser, "/")))
            assert listed & {*own.values(), for_bob} == expected[name]
            found = row_ids(await shown(browser, f"/?q={mark}"))
            assert set(found) == expected[name] - {for_bob}


async def test_the_counts_are_those_of_the_person(served: Served) -> None:
    for name in EVERYBODY:
        api = served.http if name == "Ada" else await served.as_person(name)
        counts = (await api.get("/api/threads")).json()["counts"]
        async with at_home(served, name) as browser:
            page = await shown(browser, "/")
        told = {node.text.split()[0].lower(): node.all("b") for node in page.one("nav", id="views").all("a")}
        assert {view: int(found[0].text) for view, found in told.items() if found} == counts
        assert told["archived"] == []


async def test_each_view_holds_what_its_name_says(served: Served) -> None:
    mark = word()
    plain, unread, archived = [await finished(served, f"{mark} {n}", "Dan") for n in range(3)]
    waiting, _, _ = await asked(served, "Dan", title=mark)

    def change(connection: sa.Connection) -> None:
        threads.mark(connection, unread, unread=True, archived=None)
        threads.mark(connection, archived, unread=None, archived=True)
        threads.rename(connection, waiting, f"{mark} waits", source="user")

    await store_of(served).write(change)
    views = {
        "": {plain, unread, waiting},
        "all": {plain, unread, waiting},
        "unread": {unread},
        "action": {waiting},
        "archived": {archived},
        "nothing-known": {plain, unread, waiting},
        "<b>": {plain, unread, waiting},
    }
    async with at_home(served, "Dan") as dan:
        for view, expected in views.items():
            for query in ("", f"&q={mark}"):
                page = await shown(dan, f"/?view={view}{query}")
                assert set(row_ids(page)) & {plain, unread, archived, waiting} == expected, (view, query)
                (current,) = page.one("nav", id="views").all("a", aria_current="page")
                known = view if view in ("unread", "action", "archived") else "all"
                assert current.text.split()[0].lower() == known


async def test_pages_of_the_inbox_are_short_and_show_every_thread_once(served: Served) -> None:
    mark, count = word(), 2 * ROWS + 5
    assert ROWS <= 100

    def work(connection: sa.Connection) -> list[str]:
        return [done(connection, f"{mark} {number}", "Dan") for number in range(count)]

    made = await store_of(served).write(work)
    async with at_home(served, "Dan") as dan:
        for start in (f"/?q={mark}", "/"):
            seen: list[str] = []
            path: str | None = start
            while path is not None:
                page = await shown(dan, path)
                rows = row_ids(page)
                assert 0 < len(rows) <= ROWS
                seen += rows
                older = page.all("a", rel="next")
                path = older[0].attrs["href"] if older else None
            assert len(seen) == len(set(seen))
            assert [i for i in seen if i in made] == made[::-1]


async def test_a_search_marks_what_it_found_and_leads_to_it(served: Served) -> None:
    mark = word()
    thread_id = await finished(served, "A question", "Cay", answer=f"before {mark} behind")
    async with at_home(served, "Cay") as cay:
        page = await shown(cay, f"/?q={mark.upper()}")
        assert row_ids(page) == [thread_id]
        assert [node.text for node in page.all("mark")] == [mark]
        (link,) = [href for href in links(page) if thread_id in href]
        there = await shown(cay, link)
        assert f"before {mark} behind" in there.one("article", id=urlsplit(link).fragment).text


@pytest.mark.parametrize(
    "query",
    [
        "q=%00",
        "q=%FF",
        "q=%ED%A0%80",
        "q=" + "x" * 3000,
        "q=" + "x+" * 1000,
        "q=%22%27%3Cb%3E&q=twice",
        "q=***",
        "q=NEAR(a+b)+OR+NOT",
        "view=unread&view=all",
        "done=delete",
        "done=archive&thread=" + UNKNOWN,
        "done=archive&thread=%00",
        "done=read&thread=",
        "done=%3Cscript%3E&thread=x",
        "cursor=",
    ],
    ids=lambda text: text[:20],
)
async def test_no_query_breaks_the_inbox(served: Served, query: str) -> None:
    async with at_home(served, "Dan") as dan:
        await shown(dan, f"/?{query}")


@pytest.mark.parametrize("cursor", ["x", "1.2", "s", "s1x", "-1", "9" * 30, f"{'9' * 17}.{UNKNOWN}x"])
async def test_a_cursor_that_is_none_is_a_clear_page(served: Served, cursor: str) -> None:
    async with at_home(served, "Dan") as dan:
        await shown(dan, f"/?cursor={cursor}", 422)


async def test_a_row_is_archived_and_marked_and_that_is_undone(served: Served) -> None:
    thread_id = await finished(served, "To be moved", "Dan")
    async with at_home(served, "Dan") as dan:
        for button, undo, attribute, value in (
            ("archive", "unarchive", "archived", True),
            ("unread", "read", "unread", True),
            ("read", "unread", "unread", False),
            ("unarchive", "archive", "archived", False),
        ):
            response = await dan.post("/inbox", {button: thread_id, "back": "/?view=all&q=moved"})
            assert response.status_code == 303
            assert getattr(await present(served, thread_id), attribute) is value
            back = response.headers["location"]
            assert dict(parse_qsl(urlsplit(back).query)) == {
                "view": "all",
                "q": "moved",
                "done": button,
                "thread": thread_id,
            }
            page = await shown(dan, back)
            (told,) = [form for form in page.all("form", action="/inbox") if "done" in form.classes]
            (offered,) = buttons(page, told)
            assert (offered.attrs["name"], offered.attrs["value"]) == (undo, thread_id)
            await dan.send("/inbox", sent_of(page, told, offered))
            assert getattr(await present(served, thread_id), attribute) is not value
            await dan.post("/inbox", {button: thread_id})


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({}, 422),
        ({"archive": UNKNOWN, "read": UNKNOWN}, 422),
        ({"delete": UNKNOWN}, 422),
        ({"archive": UNKNOWN}, 404),
        ({"archive": "../x"}, 404),
        ({"archive": ""}, 404),
    ],
    ids=str,
)
async def test_a_form_of_the_inbox_that_says_nothing_changes_nothing(
    served: Served, fields: dict[str, str], status: int
) -> None:
    async with at_home(served, "Dan") as dan:
        check_page(await dan.post("/inbox", fields), status)


# -- what is not theirs ----------------------------------------------------------------------------------


async def test_what_belongs_to_others_looks_like_what_is_not_there(served: Served) -> None:
    theirs = await asked(served, "Cay")
    fields = {"decision": "approve", "message_id": "1", "text": "x", "title": "x"}
    for name in ("Dan", "Bob"):
        async with at_home(served, name) as browser:
            before = await stored(served, theirs[0])
            for method in ("GET", "POST"):
                paths = zip(
                    places(method, *theirs),
                    places(method, UNKNOWN, UNKNOWN, UNKNOWN),
                    places(method, "x", "x", "x"),
                    strict=True,
                )
                for real, *others in paths:
                    if real in others:
                        continue
                    answers = [
                        await (browser.get(path) if method == "GET" else browser.post(path, fields))
                        for path in (real, *others)
                    ]
                    for answer in answers:
                        check_page(answer, 404)
                    assert answers[0].text == answers[1].text, real
            check_page(await browser.post("/inbox", {"archive": theirs[0]}), 404)
            assert await stored(served, theirs[0]) == before


async def test_a_file_is_found_only_in_its_own_thread(served: Served) -> None:
    mine, theirs = await asked(served, "Dan"), await asked(served, "Cay")
    async with at_home(served, "Dan") as dan:
        for path in (
            f"/threads/{mine[0]}/attachments/{theirs[2]}",
            f"/threads/{theirs[0]}/attachments/{theirs[2]}",
            f"/threads/{mine[0]}/attachments/{UNKNOWN}",
            f"/threads/{mine[0]}/attachments/..%2Fapp.sqlite",
        ):
            await shown(dan, path, 404)
        assert (await dan.get(f"/threads/{mine[0]}/attachments/{mine[2]}")).content == b"x"


async def test_an_approver_sees_what_to_decide_on_and_decides_no_more_than_that(served: Served) -> None:
    thread_id, action_id, file_id = await asked(served, "Cay", approvers=("Bob",))
    here = f"/threads/{thread_id}"
    async with at_home(served, "Bob") as bob:
        before = await stored(served, thread_id)
        page = await shown(bob, here)
        assert [label for label in labels(page) if label not in ALWAYS] == ["Approve", "Reject"]
        assert page.all("textarea") == []
        assert not [node for node in page.walk() if "formaction" in node.attrs]
        assert f"{here}/delete" not in links(page)
        assert "Delete for good" not in labels(await shown(bob, f"{here}/delete"))
        assert (await bob.get(f"{here}/attachments/{file_id}")).content == b"x"
        await shown(bob, f"/actions/{action_id}")
        for path in places("POST", thread_id):
            if path.startswith(here):
                fields = {"text": "x", "title": "x", "message_id": "1"}
                check_page(await bob.post(path, fields), 403)
        for name in ("archive", "unarchive", "read", "unread"):
            check_page(await bob.post("/inbox", {name: thread_id}), 403)
        assert await stored(served, thread_id) == before


async def test_an_owner_may_write_in_the_thread_of_a_member_and_does_not_read_for_them(
    served: Served,
) -> None:
    thread_id, _, _ = await asked(served, "Cay")
    await store_of(served).write(lambda c: threads.mark(c, thread_id, unread=True, archived=None))
    for name, reads in (("Ada", False), ("Cay", True)):
        async with at_home(served, name) as browser:
            page = await shown(browser, f"/threads/{thread_id}")
            assert page.one("form", id="end").attrs["action"] == f"/threads/{thread_id}/messages"
            assert ("data-unread" in page.one("div", id="head").attrs) is reads


@pytest.mark.parametrize("name", ["Bob", "Cay"])
async def test_the_house_is_run_by_owners_only(served: Served, name: str) -> None:
    async with at_home(served, name) as browser:
        before = await stored(served)
        for path in ("/", "/skills", "/mcp", "/status", "/usage"):
            page = await shown(browser, path)
            assert "/audit" not in links(page)
            assert buttons(page, page.one("form", id="switch")) == []
            assert "Stop everything" not in page.text
            names = {button.attrs.get("name") for button in page.all("button")}
            assert not names & {"enable", "disable", "reconnect"}
        for path in ("/audit", "/audit?verify=1"):
            await shown(browser, path, 403)
        for path, fields in (
            ("/stop", {}),
            ("/resume", {}),
            ("/skills", {"disable": "bookkeeper"}),
            ("/skills", {"enable": "bookkeeper"}),
            ("/mcp", {"reconnect": "ledger"}),
        ):
            response = await browser.post(path, fields)
            check_page(response, 403)
            assert "Only an owner may do this" in response.text
        assert await stored(served) == before


async def test_an_owner_stops_everything_and_resumes_it_where_they_are(served: Served) -> None:
    async with at_home(served) as ada, at_home(served, "Cay") as cay:
        page = await shown(ada, "/usage?days=7")
        form = page.one("form", id="switch")
        (button,) = buttons(page, form)
        assert (form.attrs["action"], button.text) == ("/stop", "Stop everything")
        try:
            response = await ada.send("/stop", sent_of(page, form, button))
            assert (response.status_code, response.headers["location"]) == (303, "/usage?days=7")
            assert "Everything is stopped, by Ada" in (await shown(cay, "/")).text
            page = await shown(ada, "/usage?days=7")
            form = page.one("form", id="switch")
            (button,) = buttons(page, form)
            assert (form.attrs["action"], button.text) == ("/resume", "Resume")
        finally:
            response = await ada.post("/resume", {"back": "//evil.example"})
        assert (response.status_code, response.headers["location"]) == (303, "/")
        assert "Everything is stopped" not in (await shown(cay, "/")).text


async def test_while_everything_is_stopped_a_queued_thread_says_that_it_waits_for_resume(
    served: Served,
) -> None:
    async with at_home(served) as ada:
        try:
            await ada.post("/stop", {})
            sent = await served.http.post("/api/threads", json={"text": "[[say done]]"})
            thread = sent.json()["thread_id"]
            page = await shown(ada, f"/threads/{thread}")
            assert "It starts after Resume." in page.text
            assert "as soon as there is room" not in page.text
        finally:
            await ada.post("/resume", {})
        await served.wait(thread, "idle")


async def test_an_owner_switches_a_skill_and_connects_a_server_anew(served: Served) -> None:
    async with at_home(served) as ada:
        try:
            assert (await ada.post("/skills", {"disable": "bookkeeper"})).headers["location"] == "/skills"
            page = await shown(ada, "/skills")
            assert [b.attrs["value"] for b in page.all("button", name="enable")] == ["bookkeeper"]
        finally:
            assert (await ada.post("/skills", {"enable": "bookkeeper"})).status_code == 303
        assert (await shown(ada, "/skills")).all("button", name="enable") == []
        for fields, status in (
            (dict[str, str](), 422),
            ({"enable": "a", "disable": "a"}, 422),
            ({"disable": "nobody"}, 404),
            ({"disable": "../x\r\n"}, 404),
        ):
            check_page(await ada.post("/skills", fields), status)
        for name in ("nobody", "", "<b>"):
            check_page(await ada.post("/mcp", {"reconnect": name}), 404)
        assert (await ada.post("/mcp", {"reconnect": "ledger"})).headers["location"] == "/mcp"


async def test_usage_of_others_is_for_owners(served: Served) -> None:
    def spend(connection: sa.Connection) -> None:
        for person in ("Ada", "Cay"):
            place = {"thread_id": UNKNOWN, "run_id": UNKNOWN, "person": person, "model": "x:unlisted"}
            activity.spend(connection, activity.Tokens(1, 1, None), CLOCK.now(), **place)

    await store_of(served).write(spend)
    for name, expected in (("Ada", {"Ada", "Cay"}), ("Cay", {"Cay"})):
        async with at_home(served, name) as browser:
            page = await shown(browser, "/usage")
            people = {row.all("td")[0].text for row in page.all("tr") if len(row.all("td")) == 6}
            assert people & {"Ada", "Cay"} == expected
            assert "price unknown" in page.text
            assert ("of everybody's budget" in page.text) is (name == "Ada")
            assert "The price is not known of " in page.text
            (days,) = page.all("div", **{"aria-label": "By day"})
            assert len(days.all("tr")) >= 2


NUMBERS = ["0", "-1", "1.5", "x", "²", "", "9" * 18, "9" * 19, "9" * 5000, "0" * 5000 + "1"]


@pytest.mark.parametrize("number", NUMBERS, ids=lambda text: f"{text[:8]} {len(text)}")
async def test_a_number_of_an_address_that_makes_no_sense_breaks_nothing(served: Served, number: str) -> None:
    thread_id = await finished(served, "Numbers", "Ada")
    async with at_home(served) as ada:
        for path in (
            f"/usage?days={number}",
            f"/audit?before={number}",
            f"/threads/{thread_id}?before={number}",
            f"/threads/{thread_id}?after={number}",
        ):
            await shown(ada, path)


async def test_the_audit_pages_backwards_and_is_verified_on_demand(served: Served) -> None:
    async with at_home(served) as ada:
        for _ in range(102):
            await served.doors.sessions.issue_code("Ada", served.doors.people.owner, "web")
        newest = await shown(ada, "/audit")
        numbers = [int(row.all("td")[0].text) for row in newest.one("tbody").all("tr")]
        assert (len(numbers), numbers) == (100, sorted(numbers, reverse=True))
        (older,) = newest.all("a", rel="next")
        following = await shown(ada, older.attrs["href"])
        assert int(following.one("tbody").all("tr")[0].all("td")[0].text) == numbers[-1] - 1
        verified = await shown(ada, "/audit?verify=1")
        assert "fit together" in verified.text


# -- a thread --------------------------------------------------------------------------------------------


async def test_what_is_written_becomes_a_thread_and_is_answered(served: Served) -> None:
    async with at_home(served, "Cay") as cay:
        page = await shown(cay, "/")
        fields = sent_of(page, page.one("form", data_draft="new")) | {"text": "[[say hello\r\nthere]]"}
        response = await cay.send("/threads", fields)
        assert response.status_code == 303
        assert re.fullmatch(r"/threads/[0-9a-f-]{36}\?sent=[\w-]+", response.headers["location"])
        place = path_of(response)
        thread = await served.wait(place.rpartition("/")[2], "idle")
        assert [(m["role"], m["text"]) for m in thread["messages"]] == [
            ("user", "[[say hello\nthere]]"),
            ("assistant", "hello\nthere"),
        ]
        assert (thread["channel"], thread["owner"]) == ("web", "Cay")
        there = await shown(cay, place)
        assert [node.attrs["class"] for node in there.all("article")] == ["said user", "said assistant"]


async def test_a_form_that_is_sent_twice_is_taken_once(served: Served) -> None:
    mark = word()
    async with at_home(served, "Cay") as cay:
        page = await shown(cay, "/")
        fields = sent_of(page, page.one("form", data_draft="new")) | {"text": f"[[say x]] {mark}"}
        place, again = [path_of(await cay.send("/threads", fields)) for _ in range(2)]
        assert place == again
        thread_id = place.rpartition("/")[2]
        await served.wait(thread_id, "idle")
        page = await shown(cay, place)
        fields = sent_of(page, page.one("form", id="end")) | {"text": f"[[say y]] {mark}"}
        for _ in range(2):
            answer = await cay.send(f"{place}/messages", fields)
            assert path_of(answer) == place
            assert answer.headers["location"].endswith("#end")
        thread = await served.wait(thread_id, "idle")
        assert [m["role"] for m in thread["messages"]].count("user") == 2
        assert row_ids(await shown(cay, f"/?q={mark}")) == [thread_id]
        page = await shown(cay, place)
        assert sent_of(page, page.one("form", id="end"))["key"] != fields["key"]


@pytest.mark.parametrize("fields", [{}, {"text": ""}, {"text": " \r\n\t "}, {"Text": "x"}], ids=str)
async def test_an_empty_message_is_refused_and_nothing_is_there(
    served: Served, fields: dict[str, str]
) -> None:
    thread_id = await finished(served, "Something", "Cay")
    async with at_home(served, "Cay") as cay:
        before = await stored(served, thread_id)
        for path in ("/threads", f"/threads/{thread_id}/messages"):
            response = await cay.post(path, fields)
            check_page(response, 422)
            assert "empty" in response.text
        assert await stored(served, thread_id) == before


async def test_a_form_that_is_sent_with_other_words_is_another_message(served: Served) -> None:
    """Back in the browser, and something else is written into the same form."""
    async with at_home(served, "Cay") as cay:
        page = await shown(cay, "/")
        fields = sent_of(page, page.one("form", data_draft="new"))
        made = {path_of(await cay.send("/threads", fields | {"text": f"[[say {n}]]"})) for n in range(2)}
        assert len(made) == 2


async def test_what_was_refused_is_still_there_to_be_sent(served: Served) -> None:
    thread_id = await finished(served, "Something", "Cay")
    words = "\nkept </textarea>"
    async with at_home(served, "Cay") as cay:
        for path in ("/threads", f"/threads/{thread_id}/messages"):
            response = await sent_files(cay, [("a.txt", b"x", "nonsense")], words, path)
            check_page(response, 422)
            page = tree(response.text)
            check(page)
            form = page.one("form", action=path)
            kept = sent_of(page, form)
            assert kept["text"] == "\r\nkept </textarea>"
            assert path_of(await cay.send(path, kept)).startswith("/threads/")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"text": "x" * 1_048_577}, "at most 1,048,576"),
        ({"text": "a\x00b"}, "NUL"),
        ({"text": "x", "key": "\x00"}, "NUL"),
    ],
    ids=["long", "nul", "key"],
)
async def test_a_message_that_cannot_be_stored_says_why(
    served: Served, fields: dict[str, str], said: str
) -> None:
    async with at_home(served, "Cay") as cay:
        response = await cay.post("/threads", fields)
        check_page(response, 422)
        assert said in response.text


FILE_NAMES = [
    ("../../etc/passwd", "passwd"),
    ("..\\..\\boot.ini", "boot.ini"),
    ("a\u202egpj.exe", "agpj.exe"),
    ("<img src=x onerror=alert(1)>.svg", "_img src=x onerror=alert(1)_.svg"),
    ("täx.pdf", "t_x.pdf"),
    (".htaccess", "htaccess"),
    ("x" * 250 + ".txt", "x" * 146 + ".txt"),
    ("con.txt; filename=evil.exe", "con.txt_ filename=evil.exe"),
    ('a".html', None),
    ("a\r\nSet-Cookie: x=1", None),
]


async def sent_files(
    browser: Browser, files: Sequence[tuple[str, bytes, str]], text: str, path: str = "/threads"
) -> httpx.Response:
    """A message with files, as a browser writes them (HTML 4.10.21.8: quotes and line breaks are escaped)."""
    parts = [("csrf", csrf_of(browser.secret)), ("text", text), ("key", new_id())]
    body = b"".join(
        b'--b\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n' % (name.encode(), value.encode())
        for name, value in parts
    )
    for name, data, media_type in files:
        escaped = name.replace("\n", "%0A").replace("\r", "%0D").replace('"', "%22").encode()
        body += b'--b\r\nContent-Disposition: form-data; name="files"; filename="%s"\r\n' % escaped
        body += b"Content-Type: %s\r\n\r\n%s\r\n" % (media_type.encode(), data)
    headers = HTML | {"Content-Type": "multipart/form-data; boundary=b"}
    return await browser.http.post(path, content=body + b"--b--\r\n", headers=headers)


async def test_files_come_with_a_message_and_are_stored_by_who_fetches_them(served: Served) -> None:
    async with at_home(served, "Cay") as cay:
        files = [(name, name.encode(), "text/html") for name, _ in FILE_NAMES]
        response = await sent_files(cay, files, "[[say thanks]]")
        assert response.status_code == 303, response.text
        page = await shown(cay, response.headers["location"])
        check(page)
        fetched = [node.attrs["href"] for node in page.all("a") if "download" in node.attrs]
        for href, (name, kept) in zip(fetched, FILE_NAMES, strict=True):
            file = await cay.get(href)
            assert (file.status_code, file.content) == (200, name.encode())
            disposition = file.headers["content-disposition"]
            assert kept is None or disposition.startswith(f'attachment; filename="{kept}"'), disposition
            assert disposition.startswith('attachment; filename="')
            assert disposition.count('"') == 2
            assert disposition.isascii()
            assert file.headers["content-security-policy"] == "default-src 'none'; sandbox"
            assert file.headers["x-content-type-options"] == "nosniff"
            assert file.headers["cache-control"] == "no-store"
            assert "set-cookie" not in file.headers
        assert {path.name for path in served.home.attachments.iterdir() if len(path.name) != 36} == set()


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ([("x" * 300, b"x", "text/plain")], "at most 255"),
        ([(f"{n}.txt", b"x", "text/plain") for n in range(21)], "At most 20 files"),
        ([("a.txt", b"x", "nonsense")], "media type"),
        ([("  ", b"x", "text/plain")], "filename"),
    ],
    ids=["name", "many", "type", "blank"],
)
async def test_files_that_are_not_taken_say_why(
    served: Served, files: list[tuple[str, bytes, str]], said: str
) -> None:
    async with at_home(served, "Cay") as cay:
        before = await stored(served)
        response = await sent_files(cay, files, "x")
        check_page(response, 422)
        assert said in response.text
        assert await stored(served) == before


async def test_a_message_may_be_a_file_alone_and_an_empty_file_field_is_none(served: Served) -> None:
    async with at_home(served, "Cay") as cay:
        alone = await sent_files(cay, [("a.txt", b"", "")], "")
        assert alone.status_code == 303
        none = await sent_files(cay, [("", b"", "application/octet-stream")], "[[say x]]")
        assert none.status_code == 303
        assert (await shown(cay, none.headers["location"])).all("ul", class_="files") == []


async def test_everything_that_can_be_done_to_a_thread_is_done(served: Served) -> None:
    thread_id, action_id, _ = await asked(served, "Cay")
    here = f"/threads/{thread_id}"
    async with at_home(served, "Cay") as cay:

        async def press(label: str) -> httpx.Response:
            page = await shown(cay, here)
            (button,) = [node for node in page.all("button") if node.text == label]
            form = page.one("form", id=button.attrs["form"])
            return await cay.send(button.attrs["formaction"], sent_of(page, form, button))

        assert path_of(await press("Mark unread")) == "/"
        assert (await present(served, thread_id)).unread
        assert (await press("Mark read")).headers["location"] == here
        assert not (await present(served, thread_id)).unread
        assert "done=archive" in (await press("Archive")).headers["location"]
        assert (await present(served, thread_id)).archived
        assert (await press("To inbox")).headers["location"] == here
        assert not (await present(served, thread_id)).archived
        page = await shown(cay, here)
        form = page.one("form", action=f"{here}/title")
        response = await cay.send(f"{here}/title", sent_of(page, form) | {"title": " New\r\nname "})
        assert response.headers["location"] == here
        assert (await present(served, thread_id)).title == "New name"
        assert "is held for the next one" in page.text
        held = await cay.post(f"{here}/messages", {"text": "and then?"})
        assert path_of(held) == here
        assert "held for the next run" in (await shown(cay, here)).text
        assert (await press("Stop")).headers["location"] == here
        assert (await present(served, thread_id)).state == "stopped"
        action = await store_of(served).read(lambda c: store.get(c, action_id))
        assert action is not None
        assert action.state == ActionState.WITHDRAWN
        assert "Stop" not in labels(await shown(cay, here))
        asking = await shown(cay, f"{here}/delete")
        (button,) = [node for node in asking.all("button") if node.text == "Delete for good"]
        form = next(node for node in asking.all("form", method="post") if is_in(button, node))
        assert form.attrs.get("action") is None
        gone = await cay.send(f"{here}/delete", sent_of(asking, form, button))
        assert gone.headers["location"] == "/?done=delete"
        assert "Deleted." in (await shown(cay, gone.headers["location"])).text
        await shown(cay, here, 404)
        check_page(await cay.post(f"{here}/delete"), 404)


async def test_a_failed_run_says_why_and_is_retried(served: Served) -> None:
    async with at_home(served, "Cay") as cay:
        place = path_of(await cay.post("/threads", {"text": f"[[fail 401 1]] {word()}"}))
        thread_id = place.rpartition("/")[2]
        await served.wait(thread_id, "failed")
        page = await shown(cay, place)
        assert len(page.one("section").all("p", class_="problem")) == 1
        assert "Retry" in labels(page)
        assert (await cay.post(f"{place}/retry")).headers["location"] == place
        await served.wait(thread_id, "idle")
        check_page(await cay.post(f"{place}/retry"), 409)


async def test_a_fork_goes_on_from_an_answer(served: Served) -> None:
    async with at_home(served, "Cay") as cay:
        place = path_of(await cay.post("/threads", {"text": "[[say one]]"}))
        await served.wait(place.rpartition("/")[2], "idle")
        page = await shown(cay, place)
        (button,) = [node for node in page.all("button") if node.text == "Fork from here"]
        fields = sent_of(page, page.one("form", id="do"), button)
        made = (await cay.send(button.attrs["formaction"], fields)).headers["location"]
        assert made != place
        said = [node.text.strip() for node in (await shown(cay, made)).all("div", class_="text")]
        assert said == ["[[say one]]", "one"]
        for wrong, status in (
            (dict[str, str](), 422),
            ({"message_id": "x"}, 404),
            ({"message_id": "9" * 30}, 404),
        ):
            check_page(await cay.post(f"{place}/fork", wrong), status)


TITLES = [("", 422), (" \r\n ", 422), ("x" * 201, 422), ("\x00", 422), ("x" * 200, 303)]


@pytest.mark.parametrize(("title", "status"), TITLES, ids=range(5))
async def test_a_title_is_one_line_that_can_be_seen(served: Served, title: str, status: int) -> None:
    thread_id = await finished(served, "Named", "Cay")
    async with at_home(served, "Cay") as cay:
        response = await cay.post(f"/threads/{thread_id}/title", {"title": title})
        assert response.status_code == status
        assert (await present(served, thread_id)).title == (title if status == 303 else "Named")


async def test_a_long_thread_is_read_in_pieces_that_hold_each_message_once(served: Served) -> None:
    thread_id = await finished(served, "first", "Cay")
    count = 2 * MESSAGES + 3

    def write(connection: sa.Connection) -> None:
        for number in range(count):
            threads.add_message(
                connection, thread_id, CLOCK.now(), role="notice", author="Pizza Bot", text=f"n{number}"
            )

    await store_of(served).write(write)
    async with at_home(served, "Cay") as cay:
        seen: list[str] = []
        path: str | None = f"/threads/{thread_id}"
        while path is not None:
            page = await shown(cay, path)
            said = [node.text.strip() for node in page.all("div", class_="text")]
            assert 0 < len(said) <= MESSAGES
            seen = said + seen
            earlier = [node.attrs["href"] for node in page.all("a") if node.text == "Earlier messages"]
            path = earlier[0] if earlier else None
        assert seen == ["first", *(f"n{number}" for number in range(count))]
        (later,) = [node.attrs["href"] for node in page.all("a") if node.text == "Later messages"]
        following = [node.text.strip() for node in (await shown(cay, later)).all("div", class_="text")]
        assert following == seen[len(said) : len(said) + MESSAGES]


async def test_what_is_too_long_for_a_page_is_there_as_a_file(served: Served) -> None:
    words = "</pre><b>x</b> \u202e" * 40_000
    thread_id = await finished(served, words, "Cay", answer=words)
    here = f"/threads/{thread_id}"
    async with at_home(served, "Cay") as cay, at_home(served, "Dan") as dan:
        page = await shown(cay, here)
        check(page)
        whole = [href for href in links(page) if href.startswith(f"{here}/messages/")]
        assert whole
        for path in whole:
            file = await cay.get(path)
            assert (file.status_code, file.text) == (200, words)
            assert file.headers["content-disposition"].startswith("attachment; ")
            assert file.headers["content-type"] == "text/plain; charset=utf-8"
            assert file.headers["x-content-type-options"] == "nosniff"
            await shown(dan, path, 404)
        other = await finished(served, "another", "Cay")
        number = whole[0].rpartition("/")[2]
        for path in (
            f"/threads/{other}/messages/{number}",
            *(f"{here}/messages/{wrong}" for wrong in ("0", "x", "-1", "9" * 19, "9" * 5000)),
        ):
            await shown(cay, path, 404)


async def test_a_run_at_work_is_shown_with_what_it_does_now(served: Served) -> None:
    async with at_home(served, "Cay") as cay:
        place = path_of(await cay.post("/threads", {"text": f"[[sleep 30]] {word()}"}))
        await served.wait(place.rpartition("/")[2], "running")
        page = await shown(cay, place)
        assert "Working" in page.one("section").one("summary").text
        assert "open" in page.one("section").one("details").attrs
        assert (await cay.post(f"{place}/stop")).status_code == 303


async def test_what_happens_is_told_to_who_may_see_it(served: Served) -> None:
    async with httpx.AsyncClient(base_url=served.url, trust_env=False, timeout=20) as http:
        http.cookies.set(SESSION, await session_of(served, "Dan"), domain="127.0.0.1", path="/")
        theirs, mine = await finished(served, "c", "Cay"), await finished(served, "d", "Dan")
        async with http.stream("GET", "/events") as stream:
            assert stream.headers["content-type"] == "text/event-stream; charset=utf-8"
            assert stream.headers["cache-control"] == "no-store"
            lines = stream.aiter_lines()
            assert await anext(lines) == "retry: 2000"
            for name, thread_id in (("Cay", theirs), ("Dan", mine)):
                person = served.doors.people.by_name(name)
                assert person is not None
                await served.doors.change_thread(thread_id, person, unread=False)
            told: list[str] = []
            while mine not in told:
                line = await anext(lines)
                told += [json.loads(line[6:])["thread_id"]] if line.startswith("data: ") else []
            assert theirs not in told
            await served.doors.sessions.log_out(http.cookies[SESSION], "web")
            async for _ in lines:  # to the end: who is out is told nothing more
                pass


# -- pages as such ---------------------------------------------------------------------------------------


def get_paths(thread_id: str, action_id: str, file_id: str) -> list[str]:
    """Every page with everything that can be asked of it."""
    here = f"/threads/{thread_id}"
    return [
        *[path for path in places("GET", thread_id, action_id, file_id) if path != "/events"],
        *(f"/?view={view}" for view in ("action", "unread", "all", "archived")),
        "/?q=please",
        f"/?done=archive&thread={thread_id}",
        f"{here}?before=1000000",
        f"{here}?after=1",
        "/usage?days=7",
        "/audit?before=5",
        "/audit?verify=1",
        "/login",
        "/login?code=x",
        "/nothing",
        "/static/app.js",
    ]


async def all_pages(browser: Browser, *ids: str) -> list[tuple[str, Node]]:
    """What a person is shown everywhere."""
    answers = [(path, await browser.get(path)) for path in get_paths(*ids)]
    return [(path, tree(a.text)) for path, a in answers if a.headers["content-type"].startswith("text/html")]


async def test_looking_changes_nothing(served: Served) -> None:
    thread_id, action_id, file_id = await asked(served)
    expired, expired_action, _ = await asked(served)

    def change(connection: sa.Connection) -> None:
        store.settle(connection, expired_action, [ActionState.PENDING], state=ActionState.EXPIRED)
        threads.mark(connection, thread_id, unread=True, archived=None)

    await store_of(served).write(change)
    async with at_home(served) as ada:
        before = await stored(served, thread_id, expired)
        for path in [*get_paths(thread_id, action_id, file_id), f"/actions/{expired_action}"]:
            for method in ("GET", "HEAD"):
                response = await ada.http.request(method, path, headers=HTML)
                assert response.status_code in (200, 404), (path, response.text)
            # What belongs to a form is no more than a part of the address here.
            question_mark = "&" if "?" in path else "?"
            fields = f"csrf={csrf_of(ada.secret)}&archive={thread_id}&decision=approve&unread=0&title=x"
            await ada.get(f"{path}{question_mark}{fields}")
        assert await stored(served, thread_id, expired) == before


async def test_every_form_carries_the_token_of_its_session_and_no_address_does(served: Served) -> None:
    ids = await asked(served, "Cay", approvers=("Bob", "Ada"))
    for name in ("Ada", "Bob", "Cay"):
        async with at_home(served, name) as browser:
            token = csrf_of(browser.secret)
            for path, page in await all_pages(browser, *ids):
                for form in page.all("form"):
                    carried = [node.attrs["value"] for node in form.all("input", name="csrf")]
                    if form.attrs.get("method") != "post":
                        assert carried == [], (path, form.attrs)
                    elif buttons(page, form):
                        assert len(carried) == 1, (path, form.attrs)
                        assert (carried == [token]) is (form.attrs.get("action") != "/login"), path
                assert not [href for href in links(page) if token in href]
                assert not [node for node in page.walk() if browser.secret in str(node.attrs)]


async def test_every_page_has_one_heading_and_labels_for_what_is_filled_in(served: Served) -> None:
    ids = await asked(served, "Cay", approvers=("Bob", "Ada"))
    for name in ("Ada", "Bob", "Cay"):
        async with at_home(served, name) as browser:
            for path, page in await all_pages(browser, *ids):
                check(page)
                assert page.one("title").text.endswith("· Pizza Bot")
                known = [node.attrs["id"] for node in page.walk() if "id" in node.attrs]
                assert len(known) == len(set(known)), path
                named = {node.attrs["for"] for node in page.all("label") if "for" in node.attrs}
                for node in [*page.all("textarea"), *page.all("select"), *page.all("input")]:
                    if node.attrs.get("type") != "hidden":
                        wrapped = any(is_in(node, label) for label in page.all("label"))
                        assert wrapped or node.attrs["id"] in named, (path, node.attrs)
                for node in page.walk():
                    for reference in node.attrs.get("aria-describedby", "").split():
                        assert reference in known, (path, reference)


# -- what others wrote -----------------------------------------------------------------------------------

SCRIPT = "<script>alert(1)</script>"
PAYLOADS = [
    SCRIPT,
    "<ScRiPt src=//evil.example/x.js></sCrIpT>",
    "<script\n>alert(1)</script\n>",
    "</script><script>alert(1)</script>",
    "</title><script>alert(1)</script>",
    "</textarea><script>alert(1)</script>",
    "</pre></code></main></body></html><script>alert(1)</script>",
    "</option></select><img src=x onerror=alert(1)>",
    "<img src=x onerror=alert(1)>",
    "<img/src=x/onerror=alert(1)//",
    "<img src=`x`onerror=alert(1)>",
    "<svg onload=alert(1)>",
    "<svg><script>alert(1)</script></svg>",
    "<svg><animate onbegin=alert(1) attributeName=x></svg>",
    "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "<iframe src=javascript:alert(1)>",
    "<object data=javascript:alert(1)>",
    "<embed src=//evil.example/x>",
    "<base href=//evil.example/>",
    "<meta http-equiv=refresh content='0;url=//evil.example'>",
    "<link rel=stylesheet href=//evil.example/x.css>",
    "<style>*{background:url(//evil.example)}</style>",
    "<form action=//evil.example><button>x</button></form>",
    "<input autofocus onfocus=alert(1)>",
    "<details open ontoggle=alert(1)>",
    "<a href=javascript:alert(1)>x</a>",
    "<body onload=alert(1)>",
    "<template><img src=x onerror=alert(1)></template>",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
    "<!--><img src=x onerror=alert(1)>-->",
    "<![CDATA[<img src=x onerror=alert(1)>]]>",
    "<?xml version='1.0'?><x>",
    '" onmouseover="alert(1)',
    "' onmouseover='alert(1)",
    '" autofocus onfocus=alert(1) x="',
    '"><img src=x onerror=alert(1)>',
    "'><img src=x onerror=alert(1)>",
    "` onmouseover=alert(1) `",
    'x" style="position:fixed;inset:0',
    "javascript:alert(1)",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt&colon;alert(1))",
    "[x](data:text/html,<script>alert(1)</script>)",
    "![x](https://evil.example/x.png)",
    "[https://bank.example](https://evil.example/)",
    '<https://evil.example/"onmouseover=alert(1)>',
    '```"><img src=x onerror=alert(1)>\nx\n```',
    "{{ 7 * 7 }}{% raw %}{{ config }}",
    "${7*7}#{7*7}",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&#60;img src=x onerror=alert(1)&#62;",
    "&quot; onmouseover=&quot;alert(1)",
    "\u202e<img src=x onerror=alert(1)>\u2066",
    "\x1b[2J\x07<b>",
    "＜script＞alert(1)＜/script＞",
    "%3Cscript%3Ealert(1)%3C/script%3E",
    "\\u003cscript\\u003ealert(1)",
]


def hostile(connection: sa.Connection, words: str) -> tuple[str, str, str]:
    """A thread of Ada whose every text is `words`: the ids of it, of a pending and of a decided action."""
    flat = threads.one_line(words, 200)
    files = [(new_id(), Attachment(flat, "text/plain", b"x"))]
    accepted = arrives(connection, CLOCK, words, files=files, title=flat)
    (run,) = [run for run in runs.claim(connection, 1000, CLOCK.now()) if run.id == accepted.run_id]
    place = {"thread_id": run.thread_id, "run_id": run.id}
    step = Activity("tool", words, "error", worker=words, detail=words, milliseconds=3)
    activity.record(connection, step, CLOCK.now(), **place)
    threads.add_message(
        connection,
        run.thread_id,
        CLOCK.now(),
        role="assistant",
        author=words,
        text=words,
        run_id=run.id,
    )
    schema = {
        "properties": {
            words: {"type": "string", "description": words, "title": words},
            "long": {"type": "string"},
            "choice": {"enum": [words, "other", {words: words}], "description": words},
            "list": {"type": "array", "items": {"type": "string"}, "description": words},
            "json": {"type": "object", "description": words},
            "pattern": {"type": "string", "pattern": words, "default": words, "examples": [words]},
        }
    }
    args = {
        words: words,
        "long": f"{words}\n" * 5,
        "choice": words,
        "list": [words, "x"],
        "json": {words: [words, {"deep": words}]},
        "pattern": words,
        f"more {words}": words,
    }
    made = []
    for _ in range(2):
        asking = question(
            tool=f"mcp:{words}:{words}",
            title=words,
            why=words,
            skill=words,
            args=args,
            args_schema=schema,
            allowed_decisions=(Verdict.APPROVE, Verdict.EDIT, Verdict.REJECT, Verdict.RESPOND),
        )
        made.append(store.ask(connection, asking, CLOCK.now(), requested_by=words, **place)[0].id)
    values = {
        "state": "edited",
        "decision": "edit",
        "reason": words,
        "response": words,
        "final_args": args | {"long": words, words: f"other {words}"},
        "decided_by": "Ada",
        "decided_at": CLOCK.now(),
        "decided_via": "web",
    }
    assert store.settle(connection, made[1], [ActionState.PENDING], **values)
    assert runs.finish(connection, run, RunState.FAILED, CLOCK.now(), used={}, error=(words, words))
    return run.thread_id, made[0], made[1]


async def hostile_thread(served: Served, words: str) -> tuple[str, str, str]:
    return await store_of(served).write(lambda c: hostile(c, words))


async def removed(served: Served, thread_id: str) -> None:
    await served.doors.delete_thread(thread_id, served.doors.people.owner, "web")


async def test_no_text_becomes_part_of_a_page(served: Served) -> None:
    assert len(PAYLOADS) >= 40
    async with at_home(served) as ada:
        for words in PAYLOADS:
            thread_id, pending, decided = await hostile_thread(served, words)
            for path in (f"/threads/{thread_id}", f"/actions/{pending}", f"/actions/{decided}"):
                check(await shown(ada, path))
            typed = {"fields": "1", "digest": words, "reason": words, "response": words, "decision": "edit"}
            typed |= {f"arg.{number}": words for number in range(7)}
            for action_id in (pending, decided):
                refused = await ada.post(f"/actions/{action_id}", typed)
                assert refused.status_code in (409, 422), refused.status_code
                check(tree(refused.text))
            await removed(served, thread_id)


async def test_no_title_becomes_part_of_a_page(served: Served) -> None:
    async with at_home(served) as ada:
        made = {words: (await hostile_thread(served, words))[0] for words in PAYLOADS}
        listed: list[str] = []
        for path in ("/", "/?view=action"):
            for _ in range(2):
                page = await shown(ada, path)
                check(page)
                listed += row_ids(page)
                (older,) = page.all("a", rel="next") or [Node("a", {"href": path})]
                path = older.attrs["href"]
        assert set(made.values()) <= set(listed)
        for words, thread_id in made.items():
            check(await shown(ada, f"/threads/{thread_id}/delete"))
            if words in PAYLOADS[:3]:
                check(await shown(ada, f"/?done=archive&thread={thread_id}"))
            await removed(served, thread_id)


async def test_the_words_that_are_shown_are_those_that_were_written(served: Served) -> None:
    """Escaped once, not twice: a person reads what is there."""
    async with at_home(served) as ada:
        for words in (SCRIPT, '&lt;b&gt; & "it\'s"', "{{ 7 * 7 }}"):
            thread_id, pending, _ = await hostile_thread(served, words)
            page = await shown(ada, f"/threads/{thread_id}")
            assert page.one("h1").text == words
            assert page.one("ul", class_="files").one("a").text == words
            form = await shown(ada, f"/actions/{pending}")
            assert form.one("h1").text == words
            assert form.one("input", name="arg.0").attrs["value"] == words
            assert form.one("textarea", name="arg.1").text == "\n" + f"{words}\n" * 5
            await removed(served, thread_id)


async def test_words_that_were_searched_for_are_no_part_of_the_page(served: Served) -> None:
    async with at_home(served) as ada:
        for words in PAYLOADS:
            if UNSEEN.search(words):
                continue
            response = await ada.http.get("/", params={"q": words, "view": words}, headers=HTML)
            check_page(response, 200)
            page = tree(response.text)
            check(page)
            assert page.one("input", id="q").attrs["value"] == words.strip()


async def test_what_cannot_be_seen_of_a_search_is_written_out(served: Served) -> None:
    async with at_home(served) as ada:
        response = await ada.http.get("/", params={"q": "a\u202eb"}, headers=HTML)
        check(tree(response.text))


async def test_an_address_is_no_part_of_the_page(served: Served) -> None:
    async with at_home(served) as ada, browsing(house(served)) as nobody:
        for words in PAYLOADS:
            raw = "/" + "".join(f"%{byte:02x}" for byte in words.encode())
            for browser in (ada, nobody):
                url = browser.http.base_url.copy_with(raw_path=raw.encode())
                response = await browser.http.get(url, headers=HTML)
                check_page(response, 404)
                check(tree(response.text))


class _House:
    """Skills and servers that a stranger named."""

    def __init__(self, words: str) -> None:
        self._words = words

    def skills(self) -> list[dict[str, Any]]:
        return [
            {
                "id": self._words,
                "name": self._words,
                "description": self._words,
                "state": state,
                "reason": self._words,
                "file": self._words,
                "line": 3,
                "source": self._words,
                "tools": [self._words],
            }
            for state in ("ready", "loading", "unavailable", "disabled", "broken")
        ]

    def servers(self) -> list[dict[str, Any]]:
        return [
            {
                "name": self._words,
                "transport": "stdio",
                "state": state,
                "error": self._words,
                "unused": True,
                "tools": [{"name": self._words, "read_only": False}],
            }
            for state in ("connected", "down", "invalid")
        ]

    def broken(self) -> list[dict[str, Any]]:
        return [{"file": self._words, "line": 1, "reason": self._words}]


async def test_names_of_skills_and_servers_are_no_part_of_a_page(served: Served) -> None:
    secret = await session_of(served)
    for words in PAYLOADS:

        def written(doors: Any, words: str = words) -> None:
            doors.reports = copy.copy(doors.reports)
            doors.reports._skills = _House(words)

        async with browsing(house(served, written=written), secret=secret) as ada:
            for path in ("/skills", "/mcp", "/status"):
                check(await shown(ada, path))
            skills = (await shown(ada, "/skills")).all("button", name="disable")
            assert {button.attrs["value"] for button in skills} == {words}


async def test_the_name_of_a_person_is_no_part_of_a_page(served: Served) -> None:
    name = "\"'><img src=x onerror=alert(1)>"
    people = People([Person(name, "owner")])
    sessions = Sessions(store_of(served), CLOCK, people)
    secret = await sessions.log_in((await sessions.issue_code(name, people.owner, "web")).code, "web")
    thread_id, action_id, _ = await asked(served, name, approvers=(name,))
    async with browsing(house(served, people=people), secret=secret) as browser:
        for path in ("/", "/status", "/usage", "/audit", f"/threads/{thread_id}", f"/actions/{action_id}"):
            check(await shown(browser, path))
        assert (await browser.post(f"/threads/{thread_id}/delete")).status_code == 303


async def test_every_line_of_the_audit_is_text(served: Served) -> None:
    async with at_home(served) as ada:
        # A key that somebody chose is kept there.
        made = [await finished(served, "x", key=words[:60]) for words in PAYLOADS]
        page = await shown(ada, "/audit")
        check(page)
        assert all(any(thread_id in node.text for node in page.all("code")) for thread_id in made)
        for thread_id in made:
            await removed(served, thread_id)
