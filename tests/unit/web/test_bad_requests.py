"""Does the real server refuse what is wrong, in one shape, and stay well?"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest
from pizzabot.adapters.web.api.routes import TABLE

from tests.fakes.runtime import Served, client

pytestmark = pytest.mark.asyncio(loop_scope="package")

UNKNOWN = "01a22968-afdf-7442-bd3e-eadb2bffc4ec"
PATHS = [
    (
        method,
        path.format(
            thread_id=UNKNOWN,
            action_id=UNKNOWN,
            attachment_id=UNKNOWN,
            name="ledger",
            skill_id=UNKNOWN,
            trigger_id=UNKNOWN,
        ),
    )
    for path, methods in TABLE.items()
    for method in methods
]


def check_refusal(response: httpx.Response, status: int, code: str | None = None) -> dict[str, Any]:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["content-security-policy"].startswith("default-src 'none'")
    assert "server" not in response.headers
    error: dict[str, Any] = response.json()["error"]
    assert error["message"]
    assert code is None or error["code"] == code
    return error


async def raw(served: Served, request: bytes, *, then: bytes = b"") -> bytes:
    """What the server answers to bytes that no client library would send."""
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    try:
        writer.write(request)
        await writer.drain()
        if then:
            writer.write(then)
        return await asyncio.wait_for(reader.read(), 20)
    finally:
        writer.close()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)


async def test_every_path_wants_a_token(served: Served) -> None:
    async with client(served.url, None) as nobody:
        for method, path in PATHS:
            response = await nobody.request(method, path)
            check_refusal(response, 401, "unauthorized")
            assert response.headers["www-authenticate"].startswith("Bearer")


async def test_no_other_word_than_the_right_token_opens(served: Served) -> None:
    token = served.runtime.tokens.owner_token()
    async with client(served.url, None) as nobody:
        for header in (
            "",
            "Bearer",
            f"Basic {token}",
            token,
            f"Bearer {token}x",
            f"Bearer {token[:-1]}",
            f"Bearer {token} {token}",
            f"Bearer {'x' * 10_000}",
            "Bearer ÿ",
        ):
            headers = {"Authorization": header.encode("latin-1")}
            check_refusal(await nobody.get("/api/me", headers=headers), 401)  # type: ignore[arg-type]
        twice = [("Authorization", f"Bearer {token}")] * 2
        check_refusal(await nobody.get("/api/me", headers=twice), 401)
        for query in ({"token": token}, {"access_token": token}):
            check_refusal(await nobody.get("/api/me", params=query), 401)
        assert (await nobody.get("/api/me", headers={"Authorization": f"bearer {token}"})).status_code == 200


async def test_a_replaced_token_is_void_at_once(served: Served) -> None:
    old = served.runtime.tokens.issue("Dan")
    async with client(served.url, old) as before:
        assert (await before.get("/api/me")).status_code == 200
        served._clients.pop("Dan", None)
        served.runtime.tokens.issue("Dan")
        check_refusal(await before.get("/api/me"), 401)


async def test_a_foreign_host_is_refused_everywhere(served: Served) -> None:
    for path in ("/healthz", "/api/threads", "/nothing"):
        for host in ("evil.example.com", f"evil.example.com:{served.port}", "127.0.0.1:1"):
            check_refusal(await served.http.get(path, headers={"Host": host}), 421, "foreign_host")
    answer = await raw(served, b"GET /healthz HTTP/1.0\r\n\r\n")
    assert b" 421 " in answer.split(b"\r\n")[0]


async def test_a_foreign_origin_is_refused_with_and_without_a_token(served: Served) -> None:
    async with client(served.url, None) as nobody:
        for http in (served.http, nobody):
            for origin in ("null", "https://evil.example.com", "http://127.0.0.1:1"):
                response = await http.post("/api/stop", headers={"Origin": origin})
                check_refusal(response, 403, "foreign_origin")
                assert "access-control-allow-origin" not in response.headers
    ours = {"Origin": served.url}
    assert (await served.http.get("/api/me", headers=ours)).status_code == 200
    check_refusal(await served.http.get("/api/me", headers=[("Origin", served.url), ("Origin", "null")]), 403)


async def test_unknown_paths_and_methods_answer_in_json(served: Served) -> None:
    for path in ("/nothing", "/api", "/api/nothing", "/api/threads/", "/healthz/", "/%00", "/..%2f..%2fetc"):
        check_refusal(await served.http.get(path), 404, "not_found")
    response = await served.http.put("/api/threads")
    check_refusal(response, 405, "method_not_allowed")
    assert response.headers["allow"] == "GET, HEAD, POST"
    check_refusal(await served.http.get(f"/api/threads/{UNKNOWN}/stop"), 405)
    check_refusal(await served.http.request("OPTIONS", "/api/threads"), 405)
    check_refusal(await served.http.request("BREW", "/api/threads"), 405)


async def test_unknown_ids_are_not_found(served: Served) -> None:
    bodies = {"messages": {"text": "x"}, "fork": {"message_id": "1"}, "decision": {"decision": "approve"}}
    for method, path in PATHS:
        if UNKNOWN not in path:
            continue
        changed = {"enabled": True} if "/skills/" in path else {"unread": True}
        body = bodies.get(path.rpartition("/")[2], changed if method == "PATCH" else None)
        for wrong in (UNKNOWN, "x", "%00", "1' OR '1'='1", "..%2F.."):
            response = await served.http.request(method, path.replace(UNKNOWN, wrong), json=body)
            check_refusal(response, 404, "not_found")


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("/api/threads?view=mine", "view"),
        ("/api/threads?limit=0", "limit"),
        ("/api/threads?limit=-1", "limit"),
        ("/api/threads?limit=ten", "limit"),
        ("/api/threads?limit=%C2%B2", "limit"),
        ("/api/threads?limit=" + "9" * 50, "limit"),
        ("/api/threads?cursor=nonsense", "cursor"),
        ("/api/threads?q=x&cursor=1.2", "cursor"),
        ("/api/threads?q=" + "x" * 1001, '"q"'),
        ("/api/actions?state=done", "state"),
        ("/api/actions?before=x", "before"),
        ("/api/usage?days=1.5", "days"),
        ("/api/audit?before=x", "before"),
        ("/api/events?thread=x", "thread"),
    ],
)
async def test_a_wrong_query_is_named(served: Served, query: str, named: str) -> None:
    error = check_refusal(await served.http.get(query), 422)
    assert named in error["message"]


async def test_odd_searches_are_only_words(served: Served) -> None:
    for words in ('"', "a OR b", "NEAR(", "*", "\x00", "title:x", "%", "-", "🍕"):
        assert (await served.http.get("/api/threads", params={"q": words})).status_code == 200


async def test_bodies_that_are_no_json(served: Served) -> None:
    typed = {"Content-Type": "application/json"}
    for content in (b"{", b"[" * 200_000, b'{"text": NaN}', b'{"text":"a","text":"b"}', b"\xff", b""):
        response = await served.http.post("/api/threads", content=content, headers=typed)
        check_refusal(response, 400, "invalid_json")
    response = await served.http.post("/api/threads", content=b'{"text":"a\\u0000"}', headers=typed)
    check_refusal(response, 422, "invalid_text")


async def test_another_content_type_is_not_guessed(served: Served) -> None:
    for content_type in ("text/plain", "application/x-www-form-urlencoded", "application/jsonp", ""):
        headers = {"Content-Type": content_type}
        response = await served.http.post("/api/threads", content=b'{"text":"x"}', headers=headers)
        check_refusal(response, 415, "unsupported_media_type")
    headers = {"Content-Type": "Application/JSON; charset=utf-8"}
    response = await served.http.post("/api/threads", content=b'{"text":"[[say x]]"}', headers=headers)
    assert response.status_code == 201


async def test_forms_that_cannot_be_read(served: Served) -> None:
    for content_type, content in (
        ("multipart/form-data", b"x"),
        ("multipart/form-data; boundary=b", b"no boundary at all"),
        ("multipart/form-data; boundary=b", b"--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b--\r\n"),
        ("multipart/form-data; boundary=" + "b" * 300, b"x"),
    ):
        headers = {"Content-Type": content_type}
        check_refusal(
            await served.http.post("/api/threads", content=content, headers=headers), 400, "invalid_form"
        )
    file = ("a.txt", b"x", "text/plain")
    for fields, name in (
        ({"text": "x", "owner": "Ada"}, "file"),
        ({"text": ["x", "y"]}, "file"),
        ({"text": "x"}, "secrets"),
        ({"title": "x"}, None),
    ):
        files = {name: file} if name else {"file": ("", b"")}
        response = await served.http.post("/api/threads", data=fields, files=files)
        check_refusal(response, 422, "invalid_body")


async def test_files_that_the_inbox_does_not_take(served: Served) -> None:
    good = {"filename": "a.txt", "media_type": "text/plain", "data": "aGk="}
    for wrong, code in (
        ({"filename": ""}, "invalid_attachment"),
        ({"filename": "x" * 256}, "text_too_long"),
        ({"media_type": "text"}, "invalid_attachment"),
        ({"media_type": "text/html\r\nX: y"}, "invalid_attachment"),
        ({"data": "!"}, "invalid_body"),
    ):
        body = {"text": "x", "attachments": [good | wrong]}
        check_refusal(await served.http.post("/api/threads", json=body), 422, code)
    before = set(served.home.attachments.iterdir())
    check_refusal(await served.http.post("/api/threads", json={"text": "  \n "}), 422, "empty_message")
    assert set(served.home.attachments.iterdir()) == before


async def test_idempotency_keys_that_are_none(served: Served) -> None:
    for key in ("", "x" * 256, "a\tb"):
        response = await served.http.post(
            "/api/threads", json={"text": "x"}, headers={"Idempotency-Key": key}
        )
        check_refusal(response, 422, "invalid_key")
    twice = [("Idempotency-Key", "a"), ("Idempotency-Key", "b")]
    check_refusal(await served.http.post("/api/threads", json={"text": "x"}, headers=twice), 422)


async def test_a_body_that_is_too_large_is_refused_and_the_answer_arrives(served: Served) -> None:
    thread = f"/api/threads/{UNKNOWN}/fork"
    headers = {"Content-Type": "application/json"}
    declared = await served.http.post(thread, content=b"x" * 2_000_001, headers=headers)
    check_refusal(declared, 413, "too_large")

    async def chunks() -> Any:
        for _ in range(60):
            yield b"x" * 50_000

    chunked = await served.http.post(thread, content=chunks(), headers=headers)
    check_refusal(chunked, 413, "too_large")
    over = {"Content-Type": "application/json", "Content-Length": str(64 * 1024 * 1024 + 1)}
    token = served.runtime.tokens.owner_token()
    lines = [
        "POST /api/threads HTTP/1.1",
        f"Host: 127.0.0.1:{served.port}",
        f"Authorization: Bearer {token}",
        *(f"{name}: {value}" for name, value in over.items()),
    ]
    answer = await raw(served, "\r\n".join([*lines, "", ""]).encode())
    assert b" 413 " in answer.split(b"\r\n")[0]


async def test_a_body_of_an_unknown_sender_is_not_read(served: Served) -> None:
    lines = [
        "POST /api/threads HTTP/1.1",
        f"Host: 127.0.0.1:{served.port}",
        "Content-Length: 50000000",
        "",
        "",
    ]
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    writer.write("\r\n".join(lines).encode())
    head = await asyncio.wait_for(reader.readline(), 5)
    assert b" 401 " in head
    writer.close()
    await writer.wait_closed()


async def test_a_smuggled_second_request_is_not_taken(served: Served) -> None:
    token = served.runtime.tokens.owner_token()
    inner = b'{"text":"x"}POST /api/stop HTTP/1.1\r\n\r\n'
    head = (
        f"POST /api/threads HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: 10\r\nConnection: close\r\n\r\n"
    )
    answer = await raw(served, head.encode() + inner)
    assert b" 400 " in answer.split(b"\r\n")[0]
    assert (await served.http.get("/api/status")).json()["stopped"] is False


async def test_gets_and_heads_have_no_effect(served: Served) -> None:
    before = (await served.http.get("/api/audit")).json()["lines"][:1]
    for method, path in PATHS:
        if method == "GET" and path != "/api/events":
            full = await served.http.get(path)
            head = await served.http.head(path)
            assert (head.status_code, head.content) == (full.status_code, b"")
    head = await served.http.head("/api/events")
    assert (head.status_code, head.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
    assert (await served.http.get("/api/audit")).json()["lines"][:1] == before


async def test_a_body_where_none_is_needed_must_be_an_empty_object(served: Served) -> None:
    for path in ("/api/resume", "/api/mcp/ledger/reconnect"):
        check_refusal(await served.http.post(path, json={"all": True}), 422, "invalid_body")
        check_refusal(await served.http.post(path, json=[]), 422, "invalid_body")


async def test_secrets_are_in_no_answer(served: Served) -> None:
    token = served.runtime.tokens.owner_token()
    for method, path in PATHS:
        if method == "GET" and path != "/api/events":
            text = (await served.http.get(path)).text
            assert token not in text
            assert "not-a-real-key" not in text
            lines = text.splitlines() if path == "/api/audit/export" else [text]
            assert all(json.loads(line) is not None for line in lines)
