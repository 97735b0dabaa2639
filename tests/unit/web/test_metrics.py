"""Who may scrape the server, and what do they get?"""

from __future__ import annotations

import pytest

from tests.fakes.runtime import Served, client

pytestmark = pytest.mark.asyncio(loop_scope="package")


async def test_an_owner_reads_metrics_as_text(served: Served) -> None:
    response = await served.http.get("/metrics")
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert "# TYPE pizzabot_runs gauge" in response.text
    assert 'pizzabot_mcp_server_state{server="ledger",state="connected"}' in response.text


async def test_nobody_else_does(served: Served) -> None:
    async with client(served.url, None) as nobody, client(served.url, "pzb_wrong") as stranger:
        for http in (nobody, stranger):
            response = await http.get("/metrics")
            assert (response.status_code, response.json()["error"]["code"]) == (401, "unauthorized")
    cay = await served.as_person("Cay")
    assert (await cay.get("/metrics")).status_code == 403


async def test_requests_are_counted_under_their_pattern(served: Served) -> None:
    unknown = "01a22968-afdf-7442-bd3e-eadb2bffc4ec"
    await served.http.get(f"/api/threads/{unknown}")
    await served.http.get("/made/up/path")
    text = (await served.http.get("/metrics")).text
    assert 'route="/api/threads/{thread_id}",status="404"' in text
    assert 'method="GET",route="other",status="404"' in text
    assert unknown not in text
    assert "made/up" not in text
