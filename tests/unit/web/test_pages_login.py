"""Does only who holds a login code get in, and to a page of ours, and does nobody else change anything?"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import quote, unquote, urlencode

import httpx
import pytest
import sqlalchemy as sa
from pizzabot.adapters.web.pages.html import POLICY, asset
from pizzabot.adapters.web.pages.visit import csrf_of

from pizzabot.clock import SystemClock
from pizzabot.database.schema import login_codes
from pizzabot.people import People
from tests.fakes.clock import FakeClock
from tests.fakes.rows import ADA
from tests.fakes.runtime import Served
from tests.unit.web.asked import asked, store_of, stored
from tests.unit.web.browser import (
    HERE,
    HTML,
    OWN_TOKEN,
    PORT,
    SESSION,
    UNKNOWN,
    Browser,
    at_home,
    browsing,
    check_page,
    code_of,
    house,
    places,
    session_of,
)

pytestmark = pytest.mark.asyncio(loop_scope="package")

BEFORE, RETURN = "pizzabot_login", "pizzabot_return"


def cookies_of(response: httpx.Response) -> dict[str, Any]:
    """The cookies that an answer sets."""
    jar: SimpleCookie = SimpleCookie()
    for header in response.headers.get_list("set-cookie"):
        jar.load(header)
    return dict(jar)


def fields_for(path: str, thread_id: str) -> dict[str, str]:
    """What would make a form to that path change something."""
    return {
        "archive": thread_id,
        "text": "hello",
        "title": "Renamed",
        "unread": "1",
        "decision": "reject",
        "disable": "bookkeeper",
        "reconnect": "ledger",
        "message_id": "1",
        "everywhere": "1",
    }


# -- without a session -----------------------------------------------------------------------------------


@pytest.mark.parametrize("secret", ["", "never-a-session", "x" * 3000, '"'])
async def test_without_a_session_every_page_leads_to_the_login(served: Served, secret: str) -> None:
    async with browsing(house(served), secret=secret) as nobody:
        for path in places("GET"):
            response = await nobody.get(path)
            if path == "/events":  # asked for by a script, which no page would help
                assert (response.status_code, response.content) == (403, b"")
                continue
            assert (response.status_code, response.headers["location"]) == (303, "/login"), path
            assert response.headers["cache-control"] == "no-store"
            assert unquote(cookies_of(response)[RETURN].value) == path


@pytest.mark.parametrize("secret", ["", "never-a-session"])
async def test_without_a_session_nothing_can_be_changed(served: Served, secret: str) -> None:
    thread_id, action_id, file_id = await asked(served)
    before = await stored(served, thread_id)
    async with browsing(house(served), secret=secret) as nobody:
        for path in places("POST", thread_id, action_id, file_id):
            fields = fields_for(path, thread_id) | {"csrf": csrf_of(secret)}
            response = await nobody.send(path, fields)
            check_page(response, 403)
            assert "nothing was changed" in response.text
            assert not cookies_of(response)
    assert await stored(served, thread_id) == before


async def test_the_token_of_the_api_is_no_session(served: Served) -> None:
    token = served.runtime.tokens.owner_token()
    async with browsing(house(served), secret=token) as browser:
        response = await browser.get("/", Authorization=f"Bearer {token}")
        assert (response.status_code, response.headers["location"]) == (303, "/login")
    async with at_home(served) as ada:
        assert (await ada.get("/api/me")).status_code == 401
        assert (await ada.get("/api/me", Authorization=f"Bearer {ada.secret}")).status_code == 401


async def test_a_look_that_asks_only_for_the_headers_remembers_no_way_back(served: Served) -> None:
    async with browsing(house(served)) as nobody:
        response = await nobody.http.head("/status", headers=HTML)
        assert (response.status_code, response.headers["location"]) == (303, "/login")
        assert not cookies_of(response)


# -- where to afterwards ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "back"),
    [
        ("/", "/"),
        ("/status", "/status"),
        (f"/threads/{UNKNOWN}?before=7", f"/threads/{UNKNOWN}?before=7"),
        ("/?view=unread&q=a%20b%2Bc", "/?view=unread&q=a%20b%2Bc"),
        ("/?q=%C3%BC%E2%80%AE", "/?q=%C3%BC%E2%80%AE"),
        ("/?q=//evil.example/&r=https://evil.example/", "/?q=//evil.example/&r=https://evil.example/"),
        ("/?q=" + "x" * 3000, "/"),
        (f"/actions/{UNKNOWN}?", f"/actions/{UNKNOWN}"),
    ],
    ids=lambda text: text[:30],
)
async def test_after_the_login_one_is_where_one_wanted_to_go(served: Served, path: str, back: str) -> None:
    async with browsing(house(served)) as browser:
        assert (await browser.get(path)).headers["location"] == "/login"
        response = await browser.log_in(await code_of(served))
        assert (response.status_code, response.headers["location"]) == (303, back)
        assert RETURN not in browser.http.cookies


ELSEWHERE = [
    "//evil.example",
    "//evil.example/threads",
    "///evil.example",
    "/\\evil.example",
    "\\\\evil.example",
    "/\\/evil.example",
    "\\/evil.example",
    "/\t/evil.example",
    "/\n/evil.example",
    "/\r\n/evil.example",
    "\t//evil.example",
    " //evil.example",
    "https://evil.example",
    "https:evil.example",
    "http:/evil.example",
    "HTTPS://evil.example",
    "https:\\evil.example",
    "javascript:alert(1)",
    "java\nscript:alert(1)",
    "data:text/html,x",
    "vbscript:x",
    "mailto:x@evil.example",
    "evil.example",
    "evil.example/",
    "@evil.example",
    ".evil.example",
    ":8000",
    "?q=x",
    "#x",
    "",
    " ",
    "/ü",
    "/\u2028evil",
    "／／evil.example",
    "/\u200b/evil.example",
    "/\x00",
    "/x\x7f",
    "/x y",
    "/x\r\nSet-Cookie: a=b",
    "/" + "x" * 2000,
    "/login",
    "/login?code=abc",
    "/login/",
    "/logout",
    "/events",
    "/static/app.js",
    "/api/me",
    "\ufeff/status",
]
WAYS: dict[str, Callable[[str], str]] = {
    "quoted": lambda text: quote(text, safe=""),
    "twice": lambda text: quote(quote(text, safe=""), safe=""),
    "as it is": lambda text: text,
}


def leads_elsewhere(location: str) -> bool:
    """Whether a browser would leave this site, or come to what is no page."""
    if re.fullmatch(r"/(?![/\\])[!-~]*", location) is None:
        return True
    return location.startswith(("/login", "/logout", "/events", "/static/", "/api/"))


@pytest.mark.parametrize("way", WAYS)
async def test_a_forged_way_back_leads_to_a_page_of_ours(served: Served, way: str) -> None:
    app = house(served)
    for text in ELSEWHERE:
        value = WAYS[way](text).encode("utf-8", "surrogatepass")
        async with browsing(app) as browser:
            page = await browser.get("/login")
            before, found = cookies_of(page)[BEFORE].value, OWN_TOKEN.search(page.text)
            assert found is not None
            browser.http.cookies.clear()
            response = await browser.http.post(
                "/login",
                content=urlencode({"csrf": found[1], "code": await code_of(served)}),
                headers=[
                    (b"Accept", b"text/html"),
                    (b"Content-Type", b"application/x-www-form-urlencoded"),
                    (b"Cookie", b"%s=%s; %s=%s" % (BEFORE.encode(), before.encode(), RETURN.encode(), value)),
                ],
            )
        assert response.status_code == 303, (text, response.text)
        assert not leads_elsewhere(response.headers["location"]), (text, response.headers["location"])
        assert set(cookies_of(response)) == {SESSION, BEFORE, RETURN}, text


async def test_no_address_makes_the_server_lead_elsewhere(served: Served) -> None:
    app = house(served)
    async with browsing(app) as browser:
        for text in [
            *ELSEWHERE,
            "/%5cevil.example",
            "/%2f/evil.example",
            "/threads/%2f%2fevil",
            "/%0d%0aX: y",
        ]:
            if not text.startswith("/"):
                continue
            for raw in (
                quote(text, safe="/%?=:\\@").encode(),
                quote("/threads" + text, safe="/%?=:@").encode(),
            ):
                url = httpx.URL(HERE).copy_with(raw_path=raw)
                response = await browser.http.get(url, headers=HTML)
                assert response.headers.get("location", "/login") == "/login", text
                for name, cookie in cookies_of(response).items():
                    back = unquote(cookie.value)
                    assert name != RETURN or back == "/" or not leads_elsewhere(back), (text, back)


# -- the link --------------------------------------------------------------------------------------------


async def test_looking_at_a_login_link_uses_nothing_up(served: Served) -> None:
    code = await code_of(served)
    before = await stored(served)
    app = house(served)
    path = f"/login?code={code}"
    async with browsing(app) as scanner:
        for headers in ({}, {"Sec-Purpose": "prefetch;prerender"}, {"Sec-Fetch-Site": "cross-site"}, {}):
            page = await scanner.get(path, **headers)
            check_page(page, 200)
            assert f'name="code" value="{code}"' in page.text
            assert SESSION not in cookies_of(page)
        assert (await scanner.http.head(path)).status_code == 200
    assert await stored(served) == before
    async with browsing(app) as browser:
        assert (await browser.log_in(code)).status_code == 303


async def test_a_login_link_names_whom_it_logs_in_and_who_is_here_now(served: Served) -> None:
    """Or somebody could be made to write into the inbox of another person."""
    code = await code_of(served, "Cay")
    async with browsing(house(served)) as nobody, at_home(served, "Dan") as dan:
        for browser, is_here in ((nobody, False), (dan, True)):
            page = (await browser.get(f"/login?code={code}")).text
            assert "<b>Cay</b>" in page
            assert ("You are Dan here now" in page) is is_here
        assert "Cay" not in (await nobody.get(f"/login?code={code[:-1]}")).text


async def test_a_login_code_is_typed_where_there_is_no_link(served: Served) -> None:
    code = await code_of(served, "Cay")
    async with browsing(house(served)) as browser:
        page = await browser.get("/login")
        assert 'type="hidden" name="code"' not in page.text
        found = OWN_TOKEN.search(page.text)
        assert found is not None
        response = await browser.send("/login", {"csrf": found[1], "code": f"  {code}\r\n"})
        assert response.status_code == 303
        assert ">Cay<" in (await browser.get("/status")).text


@pytest.mark.parametrize(
    "code", ['"><script>alert(1)</script>', "x" * 5000, "\x00", "\u202ex", "' onfocus=x autofocus='"]
)
async def test_a_code_of_a_link_is_shown_to_nobody_as_markup(served: Served, code: str) -> None:
    async with browsing(house(served)) as browser:
        page = await browser.get(f"/login?code={quote(code)}")
        check_page(page, 200)
        assert "<script" not in page.text
        assert " onfocus=x" not in page.text.replace("&#39; onfocus=x", "")
        assert len(page.text) < 3000


@pytest.mark.parametrize(
    ("public_url", "url", "secure"),
    [
        ("", HERE, False),
        ("", f"http://localhost:{PORT}", False),
        ("http://pizza.example.com", "http://pizza.example.com", False),
        ("https://pizza.example.com", "http://pizza.example.com", True),  # behind a proxy that speaks https
        ("https://pizza.example.com", "http://PIZZA.example.com", True),
        ("https://Pizza.Example.com", "http://pizza.example.com", True),
        ("https://pizza.example.com:8443", "http://pizza.example.com:8443", True),
        ("https://pizza.example.com", HERE, False),  # on this machine, without the proxy
        ("https://pizza.example.com:443", "http://pizza.example.com", True),  # browsers leave that port out
        ("https://pizza.example.com", "http://pizza.example.com:443", True),
        ("https://pizza.example.com", "http://pizza.example.com.", True),
    ],
)
async def test_the_cookie_is_secure_exactly_under_an_https_name(
    served: Served, public_url: str, url: str, secure: bool
) -> None:
    app = house(served, public_url=public_url)
    code = await code_of(served)
    host = url.removeprefix("http://")
    async with browsing(app) as browser:
        page = await browser.get("/login", Host=host)
        found, before = OWN_TOKEN.search(page.text), cookies_of(page)[BEFORE]
        assert found is not None
        response = await browser.send(
            "/login",
            {"csrf": found[1], "code": code},
            Host=host,
            Origin=public_url or url,
            Cookie=f"{BEFORE}={before.value}",
        )
    assert response.status_code == 303, response.text
    session = cookies_of(response)[SESSION]
    assert (bool(session["secure"]), bool(before["secure"])) == (secure, secure)
    assert (session["httponly"], session["samesite"].lower(), session["path"]) == (True, "strict", "/")
    assert (before["httponly"], before["samesite"].lower(), before["path"]) == (True, "strict", "/login")
    assert not session["domain"]
    assert int(session["max-age"]) == 90 * 24 * 3600
    assert len(session.value) >= 43


async def test_a_login_over_a_real_connection_sets_one_session(served: Served) -> None:
    async with httpx.AsyncClient(base_url=served.url, trust_env=False) as http:
        browser = Browser(http)
        response = await browser.log_in(await code_of(served))
        assert (response.status_code, response.headers["location"]) == (303, "/")
        assert cookies_of(response)[BEFORE].value == cookies_of(response)[RETURN].value == ""
        page = await browser.get("/")
        check_page(page, 200)
        assert ">Ada<" in page.text
        assert set(http.cookies) == {SESSION}


async def test_a_login_link_that_does_not_work_says_the_same_whatever_the_reason(served: Served) -> None:
    clock = FakeClock(SystemClock().now())
    codes = {name: await code_of(served, clock=clock) for name in ("used", "late")}
    clock.advance(seconds=540)
    codes |= {"gone": await code_of(served, "Cay", clock), "used": await code_of(served, clock=clock)}
    people = People(person for person in served.doors.people if person.name != "Cay")
    app = house(served, clock=clock, people=people)
    async with browsing(app) as browser:
        assert (await browser.log_in(codes["used"])).status_code == 303
    clock.advance(seconds=60)
    said = set()
    for code in (*codes.values(), "wrong", "", "ü", "x" * 5_000):
        async with browsing(app) as browser:
            response = await browser.log_in("x")
            found = OWN_TOKEN.search(response.text)
            assert found is not None
            response = await browser.send("/login", {"csrf": found[1], "code": code})
            check_page(response, 403)
            assert SESSION not in cookies_of(response)
            said.add(OWN_TOKEN.sub("", response.text))
        clock.advance(seconds=60)
    assert len(said) == 1
    assert "used already, is older than ten minutes, or never was one" in said.pop()


async def test_a_late_link_is_late_after_ten_minutes(served: Served) -> None:
    clock = FakeClock(SystemClock().now())
    app = house(served, clock=clock)
    for seconds, status in ((599, 303), (600, 403)):
        code = await code_of(served, clock=clock)
        clock.advance(seconds=seconds)
        async with browsing(app) as browser:
            assert (await browser.log_in(code)).status_code == status


# -- whose session ---------------------------------------------------------------------------------------


async def test_a_session_cookie_from_before_the_login_is_never_taken(served: Served) -> None:
    planted = "chosen-by-somebody-else"
    async with browsing(house(served), secret=planted) as browser:
        response = await browser.log_in(await code_of(served))
        assert cookies_of(response)[SESSION].value != planted
        assert browser.secret != planted
    async with browsing(house(served), secret=planted) as attacker:
        assert (await attacker.get("/")).status_code == 303


async def test_the_login_cookie_is_no_session(served: Served) -> None:
    async with browsing(house(served)) as browser:
        secret = cookies_of(await browser.get("/login"))[BEFORE].value
        await browser.log_in(await code_of(served))
        assert browser.secret != secret
    async with browsing(house(served), secret=secret) as other:
        assert (await other.get("/")).status_code == 303


async def test_a_login_ends_the_session_that_the_browser_had(served: Served) -> None:
    async with at_home(served) as elsewhere, at_home(served) as browser:
        old = browser.secret
        response = await browser.log_in(await code_of(served, "Cay"))
        assert response.status_code == 303
        assert ">Cay<" in (await browser.get("/status")).text
        assert await served.doors.sessions.person_of(old) is None
        assert (await elsewhere.get("/")).status_code == 200


async def test_a_login_that_fails_leaves_the_session_as_it_is(served: Served) -> None:
    async with at_home(served) as browser:
        old = browser.secret
        assert (await browser.log_in("wrong")).status_code == 403
        assert browser.secret == old
        assert (await browser.get("/")).status_code == 200


async def test_two_people_are_not_mixed_up(served: Served) -> None:
    app = house(served)
    async with at_home(served, "Cay", app) as cay, at_home(served, "Dan", app) as dan:
        answers = await asyncio.gather(*(browser.get("/status") for browser in [cay, dan] * 10))
        for name, answer in zip(["Cay", "Dan"] * 10, answers, strict=True):
            assert f"You are {name} (member)" in answer.text


async def test_who_is_gone_from_the_settings_is_asked_to_log_in(served: Served) -> None:
    people = People(person for person in served.doors.people if person.name != "Cay")
    async with at_home(served, "Cay", house(served, people=people)) as cay:
        assert (await cay.get("/")).headers["location"] == "/login"
        check_page(await cay.post("/threads", {"text": "x"}), 403)


# -- forms of others -------------------------------------------------------------------------------------


async def test_no_form_is_taken_without_the_token_of_its_session(served: Served) -> None:
    thread_id, action_id, file_id = await asked(served)
    app = house(served)
    async with at_home(served, app=app) as ada, at_home(served, app=app) as other:
        login_token = csrf_of(cookies_of(await ada.get("/login"))[BEFORE].value)
        own = csrf_of(ada.secret)
        wrong: list[dict[str, str]] = [
            {},
            {"csrf": ""},
            {"csrf": csrf_of(other.secret)},
            {"csrf": login_token},
            {"csrf": csrf_of("")},
            {"csrf": own[:-1]},
            {"csrf": own.upper()},
            {"csrf": own + " "},
            {"csrf": "ü"},
            {"CSRF": own},
            {"csrf": ada.secret},
        ]
        before = await stored(served, thread_id)
        for path in places("POST", thread_id, action_id, file_id):
            fields = fields_for(path, thread_id)
            for token in wrong:
                response = await ada.send(path, fields | token)
                check_page(response, 403)
                assert "nothing was changed" in response.text, (path, token)
            response = await ada.send(f"{path}?csrf={own}", fields, **{"X-CSRF-Token": own})
            check_page(response, 403)
        assert await stored(served, thread_id) == before
        assert (await ada.get("/")).status_code == 200


@pytest.mark.parametrize(
    "origin",
    ["null", "https://evil.example", f"http://127.0.0.1:{PORT + 1}", f"https://127.0.0.1:{PORT}", ""],
)
async def test_no_form_is_taken_from_a_page_of_somebody_else(served: Served, origin: str) -> None:
    thread_id, action_id, file_id = await asked(served)
    async with at_home(served) as ada:
        before = await stored(served, thread_id)
        for path in [*places("POST", thread_id, action_id, file_id), "/login"]:
            fields = fields_for(path, thread_id) | {"csrf": csrf_of(ada.secret)}
            response = await ada.send(path, fields, Origin=origin)
            check_page(response, 403)
            assert "page of another site" in response.text
        assert await stored(served, thread_id) == before


async def test_a_login_form_needs_the_token_of_its_own_page(served: Served) -> None:
    code = await code_of(served)
    app = house(served)
    async with browsing(app) as browser, browsing(app) as other:
        token = csrf_of(cookies_of(await browser.get("/login"))[BEFORE].value)
        others = csrf_of(cookies_of(await other.get("/login"))[BEFORE].value)
        before = await stored(served)
        for fields in ({}, {"csrf": others}, {"csrf": ""}, {"csrf": csrf_of("")}):
            response = await browser.send("/login", {"code": code} | fields)
            check_page(response, 403)
            assert "Nothing was used up" in response.text
            assert f'value="{code}"' in response.text  # one more press is enough
            assert SESSION not in cookies_of(response)
        async with browsing(app) as without:
            check_page(await without.send("/login", {"code": code, "csrf": token}), 403)
        assert await stored(served) == before
        assert (await browser.send("/login", {"code": code, "csrf": token})).status_code == 303


# -- too often wrong -------------------------------------------------------------------------------------


async def test_ten_wrong_logins_of_a_minute_are_enough_from_one_address(served: Served) -> None:
    clock = FakeClock(SystemClock().now())
    app = house(served, clock=clock)
    async with browsing(app, address="10.0.0.1") as browser, browsing(app, address="10.0.0.2") as other:
        for _ in range(10):
            check_page(await browser.log_in("wrong"), 403)
            clock.advance(seconds=1)
        refused = await browser.log_in("wrong")
        check_page(refused, 429)
        assert refused.headers["retry-after"] == "60"
        check_page(await browser.get("/login"), 200)
        check_page(await other.log_in("wrong"), 403)
        clock.advance(seconds=49.999)
        check_page(await browser.log_in("wrong"), 429)
        clock.advance(seconds=0.001)
        check_page(await browser.log_in("wrong"), 403)


async def test_a_right_code_opens_whatever_others_tried(served: Served) -> None:
    """It cannot be guessed, and behind a proxy everybody has one address."""
    app = house(served)
    code = await code_of(served)
    async with browsing(app, address="10.0.0.1") as browser, browsing(app, address="10.0.0.2") as other:
        for _ in range(12):
            await browser.log_in("wrong")
        assert (await browser.log_in(await code_of(served))).status_code == 303
        assert (await other.log_in(code)).status_code == 303


async def test_the_wait_that_is_named_is_enough(served: Served) -> None:
    clock = FakeClock(SystemClock().now())
    async with browsing(house(served, clock=clock)) as browser:
        for _ in range(50):  # what was refused does not make it longer
            refused = await browser.log_in("wrong")
        check_page(refused, 429)
        clock.advance(seconds=int(refused.headers["retry-after"]))
        check_page(await browser.log_in("wrong"), 403)


async def test_logins_that_work_and_forms_that_are_stale_are_no_wrong_ones(served: Served) -> None:
    async with browsing(house(served)) as browser:
        for _ in range(12):
            assert (await browser.log_in(await code_of(served))).status_code == 303
            assert (await browser.send("/login", {"code": "x"})).status_code == 403
        check_page(await browser.log_in("wrong"), 403)


async def test_many_addresses_together_have_a_bound(served: Served) -> None:
    clock = FakeClock(SystemClock().now())
    app = house(served, clock=clock)
    for number in range(100):
        async with browsing(app, address=f"10.0.1.{number}") as browser:
            check_page(await browser.log_in("wrong"), 403)
    async with browsing(app, address="10.0.0.2") as browser:
        check_page(await browser.log_in("wrong"), 429)
        clock.advance(timedelta(minutes=1))
        check_page(await browser.log_in("wrong"), 403)


async def test_wrong_logins_at_the_same_moment_are_counted_like_others(served: Served) -> None:
    """All requests are let in before one of them has told its code."""
    app, waiting, told = house(served), asyncio.Semaphore(0), asyncio.Event()
    before = "a-secret"
    body = urlencode({"csrf": csrf_of(before), "code": "wrong"}).encode()
    statuses: list[int] = []

    async def attempt() -> None:
        async def receive() -> dict[str, Any]:
            waiting.release()
            await told.wait()
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Mapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])
                waiting.release()  # or it is refused before its body is asked for

        headers = {
            "host": f"127.0.0.1:{PORT}",
            "content-type": "application/x-www-form-urlencoded",
            "cookie": f"{BEFORE}={before}",
        }
        scope = {
            "type": "http",
            "method": "POST",
            "path": "/login",
            "query_string": b"",
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
            "client": ("10.0.0.1", 1),
        }
        await app(scope, receive, send)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(30):
            tasks.create_task(attempt())
        for _ in range(30):
            await waiting.acquire()
        told.set()
    assert sorted(statuses) == [403] * 10 + [429] * 20


# -- and out ---------------------------------------------------------------------------------------------


async def test_logging_out_ends_this_session_and_clears_what_the_browser_kept(served: Served) -> None:
    app = house(served)
    async with at_home(served, app=app) as browser, at_home(served, app=app) as other:
        secret = browser.secret
        response = await browser.post("/logout")
        assert (response.status_code, response.headers["location"]) == (303, "/login")
        assert '"cache"' in response.headers["clear-site-data"]
        assert browser.secret == ""
        assert (await other.get("/")).status_code == 200
    async with browsing(app, secret=secret) as replayed:
        assert (await replayed.get("/")).headers["location"] == "/login"


async def test_logging_out_everywhere_ends_all_sessions_of_this_person(served: Served) -> None:
    app = house(served)
    dan, cay = await session_of(served, "Dan"), await session_of(served, "Cay")
    async with at_home(served, "Dan", app) as browser:
        response = await browser.post("/logout", {"everywhere": "1"})
        assert (response.status_code, response.headers["location"]) == (303, "/login")
    for secret, status in ((dan, 303), (cay, 200)):
        async with browsing(app, secret=secret) as other:
            assert (await other.get("/")).status_code == status


async def test_a_link_does_not_log_out(served: Served) -> None:
    async with at_home(served) as browser:
        check_page(await browser.get("/logout"), 405)
        assert (await browser.get("/")).status_code == 200


# -- from other sites ------------------------------------------------------------------------------------


async def test_a_link_from_elsewhere_leads_on_once_and_is_no_circle(served: Served) -> None:
    """The browser keeps a strict cookie back from what another site asks for, and sends it with our own."""
    thread_id, action_id, _ = await asked(served)
    app = house(served)
    for path in ("/", f"/threads/{thread_id}?before=9", f"/actions/{action_id}"):
        async with browsing(app) as without:
            onward = await without.get(path, **{"Sec-Fetch-Site": "cross-site"})
            check_page(onward, 200)
            assert '<meta http-equiv="refresh" content="0">' in onward.text  # the same address again
            assert '<a href="">' in onward.text
            assert "<script" not in onward.text
            assert not cookies_of(onward)
            for site in ("same-origin", "none", "same-site"):
                again = await without.get(path, **{"Sec-Fetch-Site": site})
                assert (again.status_code, again.headers["location"]) == (303, "/login")
        async with at_home(served, app=app) as ada:
            check_page(await ada.get(path, **{"Sec-Fetch-Site": "same-origin"}), 200)


async def test_a_stranger_learns_nothing_from_the_page_that_leads_on(served: Served) -> None:
    thread_id, _, _ = await asked(served)
    async with browsing(house(served)) as nobody:
        said = {
            (await nobody.get(f"/threads/{name}", **{"Sec-Fetch-Site": "cross-site"})).text
            for name in (thread_id, UNKNOWN, "x")
        }
    assert len(said) == 1


async def test_a_login_link_from_elsewhere_shows_the_login(served: Served) -> None:
    async with browsing(house(served)) as browser:
        page = await browser.get("/login?code=abc", **{"Sec-Fetch-Site": "cross-site"})
        check_page(page, 200)
        assert 'value="abc"' in page.text


# -- what every answer carries ---------------------------------------------------------------------------


async def test_every_page_carries_what_protects_it(served: Served) -> None:
    thread_id, action_id, file_id = await asked(served)
    hook = {"name": "With a page", "kind": "webhook", "prompt": "Look."}
    trigger = (await served.doors.triggers.create(hook, ADA, "web")).trigger
    async with at_home(served) as ada:
        for path in places("GET", thread_id, action_id, file_id, trigger.id):
            is_page = path not in ("/events", "/audit/export")
            if is_page and "/attachments/" not in path and "/messages/" not in path:
                check_page(await ada.get(path), 200)
                assert (await ada.http.head(path, headers=HTML)).status_code == 200


async def test_the_policy_lets_nothing_in_and_nobody_frame_it() -> None:
    rules = dict(rule.strip().split(" ", 1) for rule in POLICY.split(";"))
    assert rules == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self'",
        "connect-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'self'",
        "frame-ancestors": "'none'",
    }


def _breaks(doors: Any) -> None:
    async def fail(*args: Any, **options: Any) -> Any:
        raise RuntimeError("the secret is swordfish")

    doors.thread = fail


async def test_every_refusal_is_a_page_that_carries_it_too(served: Served) -> None:
    async with at_home(served) as ada, at_home(served, "Cay") as cay:
        token = {"csrf": csrf_of(ada.secret)}
        check_page(await ada.get(f"/threads/{UNKNOWN}"), 404)
        check_page(await ada.get("/nothing/here"), 404)
        check_page(await ada.get("/static/nothing.js"), 404)
        check_page(await ada.get("/inbox"), 405)
        check_page(await ada.http.request("DELETE", "/", headers=HTML), 405)
        check_page(await ada.get("/?cursor=x"), 422)
        check_page(await ada.post("/threads", {"text": " "}), 422)
        check_page(await cay.get("/audit"), 403)
        check_page(await ada.get("/", Host="evil.example"), 421)
        check_page(await ada.get("/", Origin="null"), 403)
        check_page(await ada.send("/threads", token, **{"Content-Type": "text/plain"}), 415)
        check_page(await ada.send("/threads", token, **{"Content-Type": "multipart/form-data"}), 400)
        check_page(await ada.send("/threads", token, **{"Content-Length": "70000000"}), 413)
    async with at_home(served, app=house(served, written=_breaks)) as ada:
        broken = await ada.get(f"/threads/{UNKNOWN}/delete")
        check_page(broken, 500)
        assert "swordfish" not in broken.text


async def test_a_program_is_refused_in_json(served: Served) -> None:
    async with browsing(house(served)) as program:
        response = await program.http.get("/nothing/here")
        assert (response.status_code, response.json()["error"]["code"]) == (404, "not_found")


# -- files of ours ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "media_type"),
    [
        ("app.css", "text/css; charset=utf-8"),
        ("app.js", "text/javascript; charset=utf-8"),
        ("icon.svg", "image/svg+xml"),
    ],
)
async def test_files_of_ours_are_typed_and_kept_under_their_versions(
    served: Served, name: str, media_type: str
) -> None:
    async with browsing(house(served)) as nobody:
        page = await nobody.get("/login")
        assert asset("app.css") in page.text
        lasting = await nobody.get(asset(name))
        assert (lasting.status_code, lasting.headers["content-type"]) == (200, media_type)
        assert lasting.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert lasting.headers["x-content-type-options"] == "nosniff"
        assert "set-cookie" not in lasting.headers
        assert (await nobody.get(f"/static/{name}")).headers["cache-control"] == "no-cache"


@pytest.mark.parametrize(
    "path",
    [
        "/static/",
        "/static/nothing",
        "/static/../login.html.j2",
        "/static/..%2Flogin.html.j2",
        "/static/%2e%2e%2flogin.html.j2",
        "/static/..%5Clogin.html.j2",
        "/static/%2Fetc%2Fpasswd",
        "/static/app.js%00",
        "/static/app.js/",
        "/static/App.js",
        "/static/app.js%2F..%2Fapp.css",
        "/static",
        "/static/__init__.py",
    ],
)
async def test_no_other_file_is_served(served: Served, path: str) -> None:
    async with httpx.AsyncClient(base_url=served.url, trust_env=False) as http:
        url = httpx.URL(served.url).copy_with(raw_path=path.encode())
        assert (await http.get(url, headers=HTML)).status_code == 404


# -- bodies that are no form -----------------------------------------------------------------------------


URL_ENCODED = "application/x-www-form-urlencoded"


@pytest.mark.parametrize(
    ("content", "media_type", "status"),
    [
        (b"csrf=a&csrf=b&code=x", URL_ENCODED, 422),
        (b"code=x&code=x", URL_ENCODED, 422),
        (b"code=%00", URL_ENCODED, 422),
        (b"code=x%00&csrf=%00", URL_ENCODED, 422),
        (b"%00=x", URL_ENCODED, 422),
        (b"code=%FF%FE", URL_ENCODED, 400),
        (b"code=%ED%A0%80", URL_ENCODED, 400),
        (b"code=\xff", URL_ENCODED, 400),
        (b"&".join(b"a%d=" % number for number in range(20_000)), URL_ENCODED, 413),
        (b"code=" + b"x" * 3_000_000, URL_ENCODED, 413),
        (b"code=" + b"x" * 5_000, URL_ENCODED, 403),
        (b"", URL_ENCODED, 403),
        (b'{"code": "x"}', "application/json", 415),
        (b"code=x", "text/plain", 415),
        (b"code=x", "", 415),
        (b"code=x", "multipart/form-data", 400),
        (b"code=x", "multipart/form-data; boundary=b", 400),
        (
            b'--b\r\nContent-Disposition: form-data; name="code"\r\n\r\nx',
            "multipart/form-data; boundary=b",
            403,
        ),
        (
            b'--b\r\nContent-Disposition: form-data; name="code"\r\n\r\nx\x00\r\n--b--\r\n',
            "multipart/form-data; boundary=b",
            422,
        ),
        (
            b'--b\r\nContent-Disposition: form-data; name="code"; filename="x"\r\n\r\nx\r\n--b--\r\n',
            "multipart/form-data; boundary=b",
            403,
        ),
    ],
    ids=range(20),
)
async def test_a_body_that_is_no_login_form_is_a_clear_page(
    served: Served, content: bytes, media_type: str, status: int
) -> None:
    async with browsing(house(served)) as browser:
        await browser.get("/login")
        before = await stored(served)
        headers = HTML | ({"Content-Type": media_type} if media_type else {})
        response = await browser.http.post("/login", content=content, headers=headers)
        check_page(response, status)
        assert SESSION not in cookies_of(response)
        assert len(response.text) < 5000
        assert await stored(served) == before


async def test_nobody_can_make_the_login_read_a_body_of_many_megabytes(served: Served) -> None:
    async with browsing(house(served)) as browser:
        response = await browser.send(
            "/login", {}, **{"Content-Type": "multipart/form-data; boundary=b", "Content-Length": "60000000"}
        )
        check_page(response, 413)


async def test_nothing_of_a_code_is_left_in_a_page_or_the_database(served: Served) -> None:
    code = await code_of(served)
    async with browsing(house(served)) as browser:
        response = await browser.log_in(code)
        assert code not in str(response.headers)
        assert code not in (await browser.get("/")).text

    def count(connection: sa.Connection) -> int:
        query = sa.select(sa.func.count()).select_from(login_codes).where(login_codes.c.hash == code)
        return int(connection.execute(query).scalar_one())

    assert await store_of(served).read(count) == 0
    assert code not in repr(await stored(served))
