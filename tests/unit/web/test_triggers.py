"""Is a trigger over HTTP what the contract says, and only for those whose affair it is?"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pytest

from pizzabot.ids import new_id
from tests.fakes.runtime import Served, client

pytestmark = pytest.mark.asyncio(loop_scope="package")
Json = dict[str, Any]
SECRET = "correct-horse-battery"


def cron(**fields: Any) -> Json:
    return {"name": new_id(), "cron": "0 3 1 1 *", "prompt": "[[say done]]"} | fields


def webhook(**fields: Any) -> Json:
    return {"name": new_id(), "kind": "webhook", "prompt": "[[say done]]"} | fields


async def make(served: Served, fields: Json, person: str = "Ada") -> Json:
    http = served.http if person == "Ada" else await served.as_person(person)
    response = await http.post("/api/triggers", json=fields)
    assert response.status_code == 201, response.text
    made: Json = response.json()
    return made


async def test_a_schedule_has_every_field_of_the_contract(served: Served) -> None:
    written = cron(
        kind="cron",
        timezone="Asia/Kathmandu",
        owner="Cay",
        channels=["web", "slack:C0123", "Bob"],
        skills=["bookkeeper"],
        model="openai:mock",
        budget_usd=0.5,
        overlap="queue",
        misfire="all",
        misfire_max=7,
        grace="2h",
        enabled=True,
    )
    made = await make(served, written)
    assert [line.partition(",")[0] for line in made.pop("warnings")] == ["channels: names slack:C0123"]
    assert written.items() <= made.items()
    assert made.keys() - written.keys() == {
        "id", "signing", "paused", "source", "created_at", "next_run_at", "last_run_at"
    }  # fmt: skip
    assert (made["signing"], made["paused"], made["source"], made["last_run_at"]) == (None, None, "api", None)
    due = datetime.fromisoformat(made["next_run_at"])
    assert f"{due:%m-%dT%H:%M%z}" == "12-31T21:15+0000"
    assert (await served.http.get(f"/api/triggers/{made['id']}")).json() == made


async def test_what_is_not_written_has_its_default(served: Served) -> None:
    made = await make(served, cron(), "Cay")
    assert {
        name: made[name] for name in ("kind", "timezone", "owner", "overlap", "misfire", "misfire_max")
    } == {
        "kind": "cron",
        "timezone": (await (await served.as_person("Cay")).get("/api/me")).json()["timezone"],
        "owner": "Cay",
        "overlap": "skip",
        "misfire": "latest",
        "misfire_max": 5,
    }
    assert (made["grace"], made["enabled"]) == ("5m", True)
    assert [made[name] for name in ("channels", "skills", "model", "budget_usd")] == [None] * 4


@pytest.mark.parametrize("signing", ["secret", "hmac"])
async def test_a_webhook_tells_its_secret_once_and_only_when_it_made_it(served: Served, signing: str) -> None:
    made = await make(served, webhook(signing=signing))
    assert len(made["secret"]) >= 32
    assert (made["kind"], made["signing"], made["cron"], made["next_run_at"]) == (
        "webhook",
        signing,
        None,
        None,
    )
    assert made["overlap"] == "queue"
    given = await make(served, webhook(signing=signing, secret=SECRET))
    for answer in (
        await served.http.get(f"/api/triggers/{made['id']}"),
        await served.http.get("/api/triggers"),
        await served.http.patch(f"/api/triggers/{made['id']}", json={"prompt": "x"}),
        await served.http.get(f"/api/triggers/{given['id']}"),
    ):
        assert made["secret"] not in answer.text
        assert '"secret":"' not in answer.text.replace(" ", "").replace('"signing":"secret"', "")
    assert "secret" not in given


@pytest.mark.parametrize("place", ["slack", "slack:C0123", "email"])
async def test_a_place_whose_channel_is_off_is_taken_with_a_warning(served: Served, place: str) -> None:
    channel = place.partition(":")[0]
    said = f"channels: names {place}, and {channel} is off; nobody is told there until it is on."
    made = await make(served, cron(channels=["web", place, "Bob"]))
    assert (made["channels"], made["warnings"]) == (["web", place, "Bob"], [said])
    path = f"/api/triggers/{made['id']}"
    assert "warnings" not in (await served.http.patch(path, json={"channels": ["web", "Bob"]})).json()
    assert (await served.http.patch(path, json={"channels": [place]})).json()["warnings"] == [said]


async def test_a_change_changes_what_is_written_and_null_means_the_default(served: Served) -> None:
    made = await make(served, cron(overlap="allow", misfire="skip", model="openai:mock"))
    path = f"/api/triggers/{made['id']}"
    changed = (
        await served.http.patch(path, json={"prompt": "Other.", "overlap": None, "model": None})
    ).json()
    assert changed == made | {"prompt": "Other.", "overlap": "skip", "model": None}
    assert (await served.http.get(path)).json() == changed


async def test_a_name_is_as_good_as_an_id(served: Served) -> None:
    made = await make(served, cron(name="Every Year, At Three"))
    assert (await served.http.get("/api/triggers/every year, at three")).json()["id"] == made["id"]


async def test_an_occurrence_has_every_field_of_the_contract(served: Served) -> None:
    made = await make(served, cron())
    ran = await served.http.post(f"/api/triggers/{made['id']}/run")
    assert ran.status_code == 202
    fired = ran.json()
    assert fired.keys() == {"id", "state", "scheduled_at", "reason", "thread_id", "started_at", "ended_at"}
    assert (fired["state"], fired["reason"]) == ("running", "manual")
    thread = await served.wait(fired["thread_id"], "idle")
    assert [message["text"] for message in thread["messages"]] == ["[[say done]]", "done"]
    assert (await served.http.get(f"/api/triggers/{made['id']}")).json()["last_run_at"] is not None


async def test_occurrences_come_newest_first_in_pages(served: Served) -> None:
    made = await make(served, cron(overlap="allow"))
    path = f"/api/triggers/{made['id']}"
    ids = [(await served.http.post(f"{path}/run")).json()["id"] for _ in range(5)]
    first = (await served.http.get(f"{path}/occurrences?limit=3")).json()
    rest = (await served.http.get(f"{path}/occurrences?limit=3&before={first['next_before']}")).json()
    assert [one["id"] for one in first["occurrences"] + rest["occurrences"]] == ids[::-1]
    assert rest["next_before"] is None


async def test_a_run_with_the_same_key_is_the_same_run_also_while_it_is_at_work(served: Served) -> None:
    made = await make(served, cron(prompt="[[sleep 0.3]]"))
    path, key = f"/api/triggers/{made['id']}/run", {"Idempotency-Key": "press"}
    first, again = await served.http.post(path, headers=key), await served.http.post(path, headers=key)
    assert (again.status_code, again.json()["id"]) == (202, first.json()["id"])
    other = await served.http.post(path)
    assert (other.status_code, other.json()["error"]["code"]) == (409, "at_work")
    wrong = await served.http.post(path, headers={"Idempotency-Key": "k" * 256})
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (422, "invalid_key")


async def test_right_after_a_run_has_ended_the_next_one_can_be_run(served: Served) -> None:
    made = await make(served, cron())
    for _ in range(5):
        ran = await served.http.post(f"/api/triggers/{made['id']}/run")
        assert ran.status_code == 202, ran.text
        await served.wait(ran.json()["thread_id"], "idle")


async def test_what_is_off_can_be_run_by_hand(served: Served) -> None:
    made = await make(served, cron(enabled=False))
    assert made["next_run_at"] is None
    assert (await served.http.post(f"/api/triggers/{made['id']}/run")).json()["state"] == "running"


async def test_a_removed_trigger_is_gone_and_its_threads_stay(served: Served) -> None:
    made = await make(served, cron())
    fired = (await served.http.post(f"/api/triggers/{made['id']}/run")).json()
    assert (await served.http.delete(f"/api/triggers/{made['id']}")).status_code == 204
    for method, path in (
        ("GET", ""),
        ("DELETE", ""),
        ("PATCH", ""),
        ("POST", "/run"),
        ("GET", "/occurrences"),
    ):
        json: Json | None = {} if method in ("PATCH", "POST") else None
        answer = await served.http.request(method, f"/api/triggers/{made['id']}{path}", json=json)
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")
    assert (await served.http.get(f"/api/threads/{fired['thread_id']}")).status_code == 200
    await served.wait(fired["thread_id"], "idle")


@pytest.mark.parametrize(
    ("fields", "code", "said"),
    [
        ({"name": ""}, "invalid_trigger", "name: "),
        ({"name": "a\nb"}, "invalid_trigger", "name: "),
        ({"name": 7}, "invalid_trigger", "name: must be text"),
        ({"name": "Digest:Ada"}, "invalid_trigger", 'name: begins with "digest:", which is for digests'),
        ({"prompt": None}, "invalid_trigger", "prompt: is missing; write what is to be done."),
        ({"prompt": "x" * 20_001}, "invalid_trigger", "prompt: has more than 20,000 characters"),
        ({"cron": "61 * * * *"}, "invalid_cron", 'cron: "61 * * * *" is no schedule: '),
        ({"cron": "0 0 30 2 *"}, "invalid_cron", 'cron: "0 0 30 2 *" is no schedule: '),
        ({"cron": None}, "invalid_trigger", "kind: is missing; write"),
        ({"timezone": "Mars/Olympus"}, "invalid_trigger", "timezone: "),
        ({"owner": "Eve"}, "invalid_trigger", "owner: names nobody of [[people]]: Eve; write one of"),
        ({"channels": ["fax"]}, "invalid_trigger", 'channels: does not know "fax"; write "slack", "email"'),
        ({"channels": "web"}, "invalid_trigger", "channels: "),
        ({"skills": [7]}, "invalid_trigger", "skills.0: "),
        ({"model": "gpt"}, "invalid_trigger", "model: "),
        ({"budget_usd": 0}, "invalid_trigger", "budget_usd: "),
        ({"budget_usd": True}, "invalid_trigger", "budget_usd: "),
        ({"overlap": "maybe"}, "invalid_trigger", "overlap: "),
        ({"misfire": "some"}, "invalid_trigger", "misfire: "),
        ({"misfire_max": 0}, "invalid_trigger", "misfire_max: "),
        ({"misfire_max": 101}, "invalid_trigger", "misfire_max: is at most 100."),
        ({"grace": "soon"}, "invalid_trigger", "grace: "),
        ({"grace": 300}, "invalid_trigger", "grace: "),
        ({"enabled": "maybe"}, "invalid_trigger", "enabled: "),
        ({"kind": "pigeon"}, "invalid_trigger", "kind: "),
        ({"kind": "digest"}, "invalid_trigger", "kind: a digest is written in [[people]]"),
        ({"secret": SECRET}, "invalid_trigger", "secret: is for webhooks only; leave it out."),
        ({"signing": "hmac"}, "invalid_trigger", "signing: is for webhooks only; leave it out."),
        ({"kind": "webhook"}, "invalid_trigger", "cron: is not for webhooks; leave it out."),
        ({"id": new_id()}, "invalid_trigger", "id: is not a field of triggers; remove it."),
        ({"next_run_at": None}, "invalid_trigger", "next_run_at: is not a field of triggers; remove it."),
        ({"kind": "webhook", "cron": None, "secret": "short"}, "invalid_trigger", "secret: "),
        (
            {"kind": "webhook", "cron": None, "prompt": "{{ x }}"},
            "invalid_template",
            "prompt: The prompt cannot be",
        ),
    ],
)
async def test_what_cannot_be_is_refused_with_the_field_and_the_cure_also_as_a_change(
    served: Served, fields: Mapping[str, Any], code: str, said: str
) -> None:
    answer = await served.http.post("/api/triggers", json=cron(**fields))
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (422, code)
    assert error["message"].startswith(said)
    if fields.keys() & {"kind", "signing", "secret"}:
        return
    made = await make(served, cron())
    answer = await served.http.patch(f"/api/triggers/{made['id']}", json=fields)
    if answer.status_code == 200:  # null sets back to the default, or leaves out what is not kept
        assert set(fields.values()) == {None}
        return
    assert answer.json()["error"]["code"] in (code, "invalid_trigger")
    assert (await served.http.get(f"/api/triggers/{made['id']}")).json() == made


async def test_the_kind_cannot_change(served: Served) -> None:
    made = await make(served, cron())
    answer = await served.http.patch(f"/api/triggers/{made['id']}", json={"kind": "webhook", "cron": None})
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "invalid_trigger")


@pytest.mark.parametrize("body", [[], "x", 7])
async def test_a_body_that_is_no_object_is_refused(served: Served, body: Any) -> None:
    assert (await served.http.post("/api/triggers", json=body)).status_code == 422


async def test_a_name_is_taken_once_whatever_its_case(served: Served) -> None:
    made, other = await make(served, cron(name="Straße")), await make(served, cron())
    for answer in (
        await served.http.post("/api/triggers", json=cron(name="STRASSE")),
        await served.http.patch(f"/api/triggers/{other['id']}", json={"name": "strasse"}),
    ):
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "name_taken")
        assert answer.json()["error"]["message"] == "Another trigger is named Straße; choose another name."
    again = await served.http.patch(f"/api/triggers/{made['id']}", json={"name": "straße"})
    assert again.json()["name"] == "straße"


# -- whose it is -------------------------------------------------------------------------------------------


async def test_members_see_and_change_their_own_and_owners_all(served: Served) -> None:
    ada, cay, dan = served.http, await served.as_person("Cay"), await served.as_person("Dan")
    made = await make(served, cron(), "Cay")
    path = f"/api/triggers/{made['id']}"
    assert made["owner"] == "Cay"
    assert made["id"] in [row["id"] for row in (await cay.get("/api/triggers")).json()["triggers"]]
    assert made["id"] in [row["id"] for row in (await ada.get("/api/triggers")).json()["triggers"]]
    assert made["id"] not in [row["id"] for row in (await dan.get("/api/triggers")).json()["triggers"]]
    for answer in (
        await dan.get(path),
        await dan.get(f"/api/triggers/{made['name']}"),
        await dan.patch(path, json={"prompt": "x"}),
        await dan.delete(path),
        await dan.post(f"{path}/run"),
        await dan.get(f"{path}/occurrences"),
    ):
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")
    assert (await cay.patch(path, json={"prompt": "[[say x]]"})).status_code == 200
    ran = (await cay.post(f"{path}/run")).json()
    assert (await cay.get(f"/api/threads/{ran['thread_id']}")).status_code == 200
    await served.wait(ran["thread_id"], "idle")
    assert (await ada.patch(path, json={"enabled": False})).status_code == 200
    assert (await ada.delete(path)).status_code == 204


@pytest.mark.parametrize("person", ["Bob", "Cay"])
async def test_only_an_owner_makes_or_gives_away_for_somebody_else(served: Served, person: str) -> None:
    http, made = await served.as_person(person), await make(served, cron(), person)
    for answer in (
        await http.post("/api/triggers", json=cron(owner="Dan")),
        await http.patch(f"/api/triggers/{made['id']}", json={"owner": "Ada"}),
    ):
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "not_an_owner")
    given = await served.http.patch(f"/api/triggers/{made['id']}", json={"owner": "Dan"})
    assert given.json()["owner"] == "Dan"
    assert (await http.get(f"/api/triggers/{made['id']}")).status_code == 404


async def test_without_a_token_nothing_is_told(served: Served) -> None:
    async with client(served.url, None) as nobody:
        for path in ("/api/triggers", f"/api/triggers/{new_id()}", f"/api/triggers/{new_id()}/occurrences"):
            assert (await nobody.get(path)).status_code == 401


async def test_every_change_stands_in_the_audit_without_a_secret(served: Served) -> None:
    made = await make(served, webhook(secret="swordfish-swordfish"))
    path = f"/api/triggers/{made['id']}"
    await served.http.patch(path, json={"secret": "swordfish-swordfish-2"})
    await served.http.post(f"{path}/run")
    await served.http.delete(path)
    lines = (await served.http.get("/api/audit?limit=50")).json()["lines"]
    events = [line["event"] for line in lines if line["subject"] == made["id"]]
    assert events == ["trigger.removed", "trigger.run", "trigger.changed", "trigger.created"]
    assert "swordfish" not in str(lines)
