"""Do the requests about conversations do what they say?"""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import pytest

from tests.fakes.model_server import ModelServer
from tests.fakes.runtime import Served, ledger_calls

pytestmark = pytest.mark.asyncio(loop_scope="package")

EXPENSE = '[[call bookkeeper submit_expense {"amount": 4, "note": "tea"}]]'


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


async def start(served: Served, text: str, **more: Any) -> str:
    response = await served.http.post("/api/threads", json={"text": text} | more)
    assert response.status_code == 201, response.text
    return str(response.json()["thread_id"])


async def shown(served: Served, thread_id: str) -> dict[str, Any]:
    return dict((await served.http.get(f"/api/threads/{thread_id}")).json())


async def test_a_message_starts_a_thread_and_its_answer_is_there_afterwards(served: Served) -> None:
    response = await served.http.post("/api/threads", json={"text": "[[say hello there]]"})
    assert response.status_code == 201
    made = response.json()
    assert made.keys() == {"thread_id", "run_id", "message_id", "held"}
    assert made["held"] is False
    thread = await served.wait(made["thread_id"], "idle")
    assert [(m["role"], m["text"]) for m in thread["messages"]] == [
        ("user", "[[say hello there]]"),
        ("assistant", "hello there"),
    ]
    assert thread["runs"][0]["id"] == made["run_id"]
    assert thread["runs"][0]["usage"]["input_tokens"] > 0


async def test_a_title_that_a_person_gave_stays(served: Served) -> None:
    thread_id = await start(served, "[[say x]]", title="  My\ntitle ")
    thread = await served.wait(thread_id, "idle")
    assert thread["title"] == "My title"


async def test_a_second_message_continues_the_thread(served: Served) -> None:
    thread_id = await start(served, "[[say one]]")
    await served.wait(thread_id, "idle")
    response = await served.http.post(f"/api/threads/{thread_id}/messages", json={"text": "[[say two]]"})
    assert response.status_code == 202
    assert response.json()["thread_id"] == thread_id
    thread = await served.wait(thread_id, "idle")
    assert [m["text"] for m in thread["messages"] if m["role"] == "assistant"] == ["one", "two"]


async def test_what_arrives_while_a_run_waits_is_held(served: Served) -> None:
    thread_id = await start(served, EXPENSE)
    await served.wait(thread_id, "waiting")
    response = await served.http.post(f"/api/threads/{thread_id}/messages", json={"text": "and then?"})
    assert (response.status_code, response.json()["held"], response.json()["run_id"]) == (202, True, None)
    assert (await served.http.delete(f"/api/threads/{thread_id}")).status_code == 204


async def test_the_channel_of_a_thread_is_terminal_only_when_the_terminal_says_so(served: Served) -> None:
    for header, channel in (("terminal", "terminal"), ("slack", "api"), ("", "api")):
        response = await served.http.post(
            "/api/threads", json={"text": "[[say x]]"}, headers={"X-Pizzabot-Client": header}
        )
        thread = await served.wait(response.json()["thread_id"], "idle")
        assert thread["channel"] == channel


async def test_an_attachment_comes_back_as_it_was_sent(served: Served) -> None:
    data = bytes(range(256)) * 5000
    file = {"filename": "täx report.bin", "media_type": "application/octet-stream", "data": encoded(data)}
    thread_id = await start(served, "[[say thanks]]", attachments=[file])
    (kept,) = (await served.wait(thread_id, "idle"))["messages"][0]["attachments"]
    assert (kept["filename"], kept["size_bytes"]) == ("täx report.bin", len(data))
    response = await served.http.get(f"/api/threads/{thread_id}/attachments/{kept['id']}")
    assert response.content == data
    assert response.headers["content-disposition"] == (
        "attachment; filename=\"t_x report.bin\"; filename*=UTF-8''t%C3%A4x%20report.bin"
    )
    assert response.headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert response.headers["x-content-type-options"] == "nosniff"
    part = await served.http.get(response.url.path, headers={"Range": "bytes=1-3"})
    assert (part.status_code, part.content) == (206, b"\x01\x02\x03")


async def test_files_come_as_a_form_too(served: Served) -> None:
    response = await served.http.post(
        "/api/threads",
        data={"text": "[[say ok]]", "title": "Form"},
        files=[("attachments", ("a.txt", b"one", "text/plain; charset=utf-8")), ("file", ("b", b"", None))],
    )
    assert response.status_code == 201, response.text
    thread = await served.wait(response.json()["thread_id"], "idle")
    files = thread["messages"][0]["attachments"]
    assert [(f["filename"], f["media_type"], f["size_bytes"]) for f in files] == [
        ("a.txt", "text/plain", 3),
        ("b", "application/octet-stream", 0),
    ]
    assert thread["title"] == "Form"


async def test_a_file_alone_is_a_message(served: Served) -> None:
    file = {"filename": "a.txt", "media_type": "text/plain", "data": encoded(b"hi")}
    response = await served.http.post("/api/threads", json={"attachments": [file]})
    assert response.status_code == 201
    thread = await served.wait(response.json()["thread_id"], "idle")
    more = await served.http.post(
        f"/api/threads/{thread['id']}/messages", json={"text": "again", "attachments": [file]}
    )
    assert more.status_code == 202


@pytest.mark.parametrize(
    ("filename", "kept"),
    [
        ("../../etc/passwd", "passwd"),
        ("..\\..\\boot.ini", "boot.ini"),
        ('a"; filename="evil.exe', "a__ filename=_evil.exe"),
        ("a\r\nSet-Cookie: x=1", "aSet-Cookie_ x=1"),
        ("\u202egpj.exe", "gpj.exe"),
        (".htaccess", "htaccess"),
        ("…/", "file"),
    ],
)
async def test_a_hostile_file_name_stays_a_name(served: Served, filename: str, kept: str) -> None:
    file = {"filename": filename, "media_type": "text/html", "data": encoded(b"<script>")}
    thread_id = await start(served, "[[say x]]", attachments=[file])
    (row,) = (await shown(served, thread_id))["messages"][0]["attachments"]
    response = await served.http.get(f"/api/threads/{thread_id}/attachments/{row['id']}")
    assert response.status_code == 200
    assert f'filename="{kept}"' in response.headers["content-disposition"]
    assert "set-cookie" not in response.headers
    assert {p.name for p in served.home.attachments.iterdir() if len(p.name) != 36} == set()


async def test_an_attachment_of_another_thread_is_not_found(served: Served) -> None:
    file = {"filename": "a", "media_type": "text/plain", "data": encoded(b"x")}
    thread_id, other = await start(served, "[[say x]]", attachments=[file]), await start(served, "[[say y]]")
    (row,) = (await shown(served, thread_id))["messages"][0]["attachments"]
    for place in (f"{other}/attachments/{row['id']}", f"{thread_id}/attachments/{other}"):
        assert (await served.http.get(f"/api/threads/{place}")).status_code == 404
    traversal = f"/api/threads/{thread_id}/attachments/..%2F..%2Fapp.sqlite"
    assert (await served.http.get(traversal)).status_code == 404


async def test_the_inbox_pages_searches_and_counts(served: Served) -> None:
    made = [await start(served, f"[[say x]] zebra{i} stripes") for i in range(3)]
    for thread_id in made:
        await served.wait(thread_id, "idle")
    first = (await served.http.get("/api/threads", params={"q": "stripes zebra", "limit": 2})).json()
    assert first.keys() == {"threads", "counts", "next_cursor"}
    assert first["counts"].keys() == {"all", "unread", "action"}
    assert first["counts"]["all"] >= 3
    second = (
        await served.http.get("/api/threads", params={"q": "stripes zebra", "cursor": first["next_cursor"]})
    ).json()
    assert sorted(t["id"] for t in first["threads"] + second["threads"]) == sorted(made)
    assert second["next_cursor"] is None


async def test_a_limit_above_a_page_gives_a_page(served: Served) -> None:
    response = await served.http.get("/api/threads?limit=5000")
    assert response.status_code == 200
    assert len(response.json()["threads"]) <= 100


async def test_reading_renaming_and_archiving(served: Served) -> None:
    thread_id = await start(served, "[[say x]]")
    assert (await served.wait(thread_id, "idle"))["unread"] is True
    path = f"/api/threads/{thread_id}"
    row = (await served.http.patch(path, json={"unread": False, "title": "New name"})).json()
    assert (row["unread"], row["title"]) == (False, "New name")
    assert (await served.http.patch(path, json={"archived": True})).json()["archived"] is True
    listed = (await served.http.get("/api/threads", params={"view": "archived"})).json()["threads"]
    assert thread_id in [t["id"] for t in listed]
    listed = (await served.http.get("/api/threads")).json()["threads"]
    assert thread_id not in [t["id"] for t in listed]


async def test_getting_a_thread_changes_nothing(served: Served) -> None:
    thread_id = await start(served, "[[say x]]")
    await served.wait(thread_id, "idle")
    await served.http.head(f"/api/threads/{thread_id}")
    before = (await served.http.get(f"/api/threads/{thread_id}")).json()
    assert before["unread"] is True
    for _ in range(50):  # the title is made after the answer
        if before["title"] == "A short title":
            break
        await asyncio.sleep(0.05)
        before = (await served.http.get(f"/api/threads/{thread_id}")).json()
    assert (await served.http.get(f"/api/threads/{thread_id}")).json() == before


async def test_a_deleted_thread_is_gone_with_its_files(served: Served) -> None:
    file = {"filename": "a", "media_type": "text/plain", "data": encoded(b"x")}
    thread_id = await start(served, "[[say x]]", attachments=[file])
    (row,) = (await served.wait(thread_id, "idle"))["messages"][0]["attachments"]
    response = await served.http.delete(f"/api/threads/{thread_id}")
    assert (response.status_code, response.content) == (204, b"")
    assert (await served.http.get(f"/api/threads/{thread_id}")).status_code == 404
    assert (await served.http.delete(f"/api/threads/{thread_id}")).status_code == 404
    assert not (served.home.attachments / row["id"]).exists()


async def test_stop_withdraws_and_retry_goes_on(served: Served, model: ModelServer) -> None:
    thread_id = await start(served, "[[sleep 30]]")
    await served.wait(thread_id, "running")
    response = await served.http.post(f"/api/threads/{thread_id}/stop")
    assert (response.status_code, response.json()) == (200, {"stopped": True})
    await served.wait(thread_id, "stopped")
    assert (await served.http.post(f"/api/threads/{thread_id}/stop", json={})).json() == {"stopped": False}
    response = await served.http.post(f"/api/threads/{thread_id}/retry")
    assert response.status_code == 202
    assert response.json().keys() == {"thread_id", "run_id"}
    await served.http.post(f"/api/threads/{thread_id}/stop")


async def test_a_failed_run_says_why_and_can_be_retried(served: Served) -> None:
    thread_id = await start(served, "[[fail 401 1]]")
    thread = await served.wait(thread_id, "failed")
    assert thread["runs"][0]["error"]["code"] == "auth"
    assert (await served.http.post(f"/api/threads/{thread_id}/retry")).status_code == 202
    thread = await served.wait(thread_id, "idle")
    assert thread["messages"][-1]["text"] == "recovered"
    again = await served.http.post(f"/api/threads/{thread_id}/retry")
    assert (again.status_code, again.json()["error"]["code"]) == (409, "not_failed")


async def test_a_fork_goes_on_from_a_message(served: Served) -> None:
    thread_id = await start(served, "[[say one]]")
    thread = await served.wait(thread_id, "idle")
    body = {"message_id": thread["messages"][1]["id"]}
    response = await served.http.post(f"/api/threads/{thread_id}/fork", json=body)
    assert response.status_code == 201
    fork = (await served.http.get(f"/api/threads/{response.json()['thread_id']}")).json()
    assert [m["text"] for m in fork["messages"]] == ["[[say one]]", "one"]
    for wrong in ("999999", "x", "²"):
        response = await served.http.post(f"/api/threads/{thread_id}/fork", json={"message_id": wrong})
        assert response.status_code == 404


async def test_the_same_idempotency_key_is_taken_once(served: Served) -> None:
    headers = {"Idempotency-Key": "order-66"}
    first = await served.http.post("/api/threads", json={"text": "[[say x]]"}, headers=headers)
    assert "idempotent-replayed" not in first.headers
    again = await served.http.post("/api/threads", json={"text": "[[say x]]"}, headers=headers)
    assert (again.status_code, again.headers["idempotent-replayed"]) == (201, "true")
    assert again.json() == first.json()
    thread = await served.wait(first.json()["thread_id"], "idle")
    assert len(thread["runs"]) == 1


async def test_concurrent_duplicates_start_one_run(served: Served) -> None:
    headers = {"Idempotency-Key": "all at once"}
    body = {"text": "[[say x]]"}
    sent = [served.http.post("/api/threads", json=body, headers=headers) for _ in range(20)]
    answers = await asyncio.gather(*sent)
    assert {a.status_code for a in answers} == {201}
    assert len({a.json()["thread_id"] for a in answers}) == 1
    assert len({a.json()["message_id"] for a in answers}) == 1
    assert sum("idempotent-replayed" not in a.headers for a in answers) == 1
    thread = await served.wait(answers[0].json()["thread_id"], "idle")
    assert (len(thread["runs"]), len(thread["messages"])) == (1, 2)


async def test_a_key_belongs_to_the_person_who_used_it(served: Served) -> None:
    headers = {"Idempotency-Key": "shared"}
    mine = await served.http.post("/api/threads", json={"text": "[[say x]]"}, headers=headers)
    cay = await served.as_person("Cay")
    hers = await cay.post("/api/threads", json={"text": "[[say x]]"}, headers=headers)
    assert "idempotent-replayed" not in hers.headers
    assert hers.json()["thread_id"] != mine.json()["thread_id"]


async def test_a_key_is_not_for_two_threads(served: Served) -> None:
    one, two = await start(served, "[[say x]]"), await start(served, "[[say x]]")
    headers = {"Idempotency-Key": "once"}
    first = await served.http.post(f"/api/threads/{one}/messages", json={"text": "x"}, headers=headers)
    assert first.status_code == 202
    second = await served.http.post(f"/api/threads/{two}/messages", json={"text": "x"}, headers=headers)
    assert (second.status_code, second.json()["error"]["code"]) == (422, "idempotency_key_reused")


async def test_a_message_of_one_megabyte_is_taken_and_one_character_more_is_not(served: Served) -> None:
    words = "[[say x]]" + "ü" * (1_048_576 - 9)
    assert (await served.http.post("/api/threads", json={"text": words})).status_code == 201
    for kwargs in ({"json": {"text": words + "ü"}}, {"data": {"text": words + "ü"}, "files": {"file": b"x"}}):
        response = await served.http.post("/api/threads", **kwargs)
        assert (response.status_code, response.json()["error"]["code"]) == (422, "text_too_long")


async def test_two_workers_can_wait_side_by_side(served: Served) -> None:
    jobs = [["bookkeeper", "submit_expense", {"amount": i, "note": "x"}] for i in (7, 8)]
    thread_id = await start(served, f"[[workers {json.dumps(jobs)}]]")
    thread = await served.wait(thread_id, "waiting")
    assert sorted(a["args"]["amount"] for a in thread["actions"]) == [7, 8]
    assert not [c for c in ledger_calls(served.home) if c["args"].get("amount") in (7, 8)]
    await served.http.post(f"/api/threads/{thread_id}/stop")
