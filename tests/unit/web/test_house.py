"""What may owners and members read and do about the whole installation?"""

from __future__ import annotations

import pytest

from pizzabot import __version__, audit_file
from tests.fakes.runtime import Served, client
from tests.unit.web.browser import at_home

pytestmark = pytest.mark.asyncio(loop_scope="package")


async def test_health_needs_no_token(served: Served) -> None:
    async with client(served.url, None) as nobody:
        response = await nobody.get("/healthz")
    assert response.status_code == 200
    assert response.json() == {"status": "ok", "version": __version__}


async def test_a_token_says_whose_it_is(served: Served) -> None:
    assert (await served.http.get("/api/me")).json() == {
        "name": "Ada",
        "role": "owner",
        "timezone": "Europe/Amsterdam",
        "version": __version__,
    }
    cay = await served.as_person("Cay")
    assert (await cay.get("/api/me")).json()["role"] == "member"


async def test_skills_servers_and_status(served: Served) -> None:
    skills = (await served.http.get("/api/skills")).json()["skills"]
    assert "bookkeeper" in [skill["id"] for skill in skills]
    (ledger,) = (await served.http.get("/api/mcp")).json()["servers"]
    assert (ledger["name"], ledger["unused"]) == ("ledger", False)
    status = (await served.http.get("/api/status")).json()
    assert status["channels"]["api"] == {"state": "ok"}
    assert status["channels"]["slack"] == {"state": "off"}
    assert status["stopped"] is False
    assert status.keys() >= {"channels", "mcp", "model", "outbox", "stopped", "broken"}


async def test_a_server_is_connected_anew_by_owners_only(served: Served) -> None:
    assert (await served.http.post("/api/mcp/ledger/reconnect")).status_code == 202
    assert (await served.http.post("/api/mcp/nobody/reconnect")).status_code == 404
    cay = await served.as_person("Cay")
    response = await cay.post("/api/mcp/ledger/reconnect")
    assert (response.status_code, response.json()["error"]["code"]) == (403, "not_an_owner")


async def test_the_audit_is_for_owners_and_its_chain_holds(served: Served) -> None:
    await served.http.post("/api/threads", json={"text": "[[say audited]]"})
    page = (await served.http.get("/api/audit", params={"limit": 2})).json()
    assert page["lines"][0].keys() == {"seq", "at", "actor", "via", "event", "subject", "data"}
    older = (await served.http.get("/api/audit", params={"before": page["lines"][0]["seq"]})).json()
    assert all(line["seq"] < page["lines"][0]["seq"] for line in older["lines"])
    verified = (await served.http.get("/api/audit/verify")).json()
    assert (verified["ok"], verified["broken_at"]) == (True, None)
    cay = await served.as_person("Cay")
    for path in ("/api/audit", "/api/audit/verify"):
        assert (await cay.get(path)).status_code == 403


async def test_usage_of_others_is_for_owners(served: Served) -> None:
    made = (await served.http.post("/api/threads", json={"text": "[[say cost]]"})).json()
    await served.wait(made["thread_id"], "idle")
    mine = (await served.http.get("/api/usage", params={"days": 7})).json()
    assert mine["days"] == 7
    assert "Ada" in {row["person"] for row in mine["rows"]}
    dan = await served.as_person("Dan")
    assert {row["person"] for row in (await dan.get("/api/usage")).json()["rows"]} <= {"Dan"}


async def test_stop_everything_holds_posts_until_resume(served: Served) -> None:
    cay = await served.as_person("Cay")
    assert (await cay.post("/api/stop")).status_code == 403
    assert (await served.http.post("/api/stop")).json() == {"stopped": True}
    status = (await served.http.get("/api/status")).json()
    assert (status["stopped"], status["stopped_by"]["person"]) == (True, "Ada")
    response = await served.http.post("/api/threads", json={"text": "[[say later]]"})
    assert response.status_code == 201
    assert (await cay.post("/api/resume")).status_code == 403
    assert (await served.http.post("/api/resume")).json() == {"stopped": False, "resumed": True}
    assert (await served.http.post("/api/resume")).json()["resumed"] is False
    thread = await served.wait(response.json()["thread_id"], "idle")
    assert thread["messages"][-1]["text"] == "later"


async def test_members_see_their_own_threads_and_owners_all(served: Served) -> None:
    cay, dan = await served.as_person("Cay"), await served.as_person("Dan")
    made = (await cay.post("/api/threads", json={"text": "[[say mine]]"})).json()["thread_id"]
    path = f"/api/threads/{made}"
    assert (await cay.get(path)).status_code == 200
    assert (await served.http.get(path)).status_code == 200
    missing = (await dan.get("/api/threads/01a22968-afdf-7442-bd3e-eadb2bffc4ec")).json()
    for method, place, body in (
        ("GET", "", None),
        ("PATCH", "", {"unread": True}),
        ("DELETE", "", None),
        ("POST", "/stop", None),
        ("POST", "/retry", None),
        ("POST", "/messages", {"text": "x"}),
        ("POST", "/fork", {"message_id": "1"}),
    ):
        response = await dan.request(method, path + place, json=body)
        assert (response.status_code, response.json()) == (404, missing), place
    assert made not in [t["id"] for t in (await dan.get("/api/threads")).json()["threads"]]
    assert (await dan.get("/api/events", params={"thread": made})).status_code == 404


async def test_an_owner_switches_a_skill_off_and_on_and_nobody_else_may(served: Served) -> None:
    path = "/api/skills/bookkeeper"
    cay = await served.as_person("Cay")
    assert (await cay.patch(path, json={"enabled": False})).status_code == 403
    off = await served.http.patch(path, json={"enabled": False})
    assert (off.status_code, off.json()["state"]) == (200, "disabled")
    listed = {row["id"]: row["state"] for row in (await served.http.get("/api/skills")).json()["skills"]}
    assert listed["bookkeeper"] == "disabled"
    on = await served.http.patch(path, json={"enabled": True})
    assert on.json()["state"] in ("ready", "loading")
    assert (await served.http.patch("/api/skills/nobody", json={"enabled": True})).status_code == 404
    assert (await served.http.patch(path, json={"enabled": "yes"})).status_code == 422


async def test_an_owner_takes_the_audit_away_as_a_file_that_can_be_verified(served: Served) -> None:
    response = await served.http.get("/api/audit/export")
    assert response.headers["content-disposition"] == 'attachment; filename="pizzabot-audit.jsonl"'
    found = audit_file.verify(response.text.splitlines())
    assert found.broken_at is None
    assert found.lines > 0
    cay = await served.as_person("Cay")
    assert (await cay.get("/api/audit/export")).status_code == 403
    async with at_home(served, "Ada") as browser:
        page = await browser.get("/audit/export")
        assert audit_file.verify(page.text.splitlines()).broken_at is None


async def test_the_audit_of_a_time_takes_dates_and_times_with_an_offset(served: Served) -> None:
    later = (await served.http.get("/api/audit", params={"since": "2999-01-01"})).json()
    assert later == {"lines": [], "next_before": None}
    earlier = (await served.http.get("/api/audit", params={"until": "2999-01-01T00:00:00+02:00"})).json()
    assert earlier["lines"]
    for wrong in ("yesterday", "2026-03-02T09:00", "0001-01-01T00:00:00+14:00"):
        assert (await served.http.get("/api/audit", params={"since": wrong})).status_code == 422
