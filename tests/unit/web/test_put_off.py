"""Is what somebody put off marked as such in the view Action, for them and for nobody else?"""

from __future__ import annotations

import pytest

from tests.fakes.runtime import Served
from tests.unit.web.asked import pending
from tests.unit.web.browser import at_home

pytestmark = pytest.mark.asyncio(loop_scope="package")


async def test_what_is_put_off_is_marked_for_who_put_it_off_and_waits_for_others(served: Served) -> None:
    action = await pending(served, person="Cay")
    cay = await served.as_person("Cay")
    await cay.post(f"/api/actions/{action.id}/snooze", json={"until": "2h"})
    found = {}
    for name, http in (("Cay", cay), ("Ada", served.http)):
        page = (await http.get("/api/threads?view=action&limit=100")).json()
        (row,) = (row for row in page["threads"] if row["id"] == action.thread_id)
        async with at_home(served, name) as browser:
            text = (await browser.get("/?view=action")).text
        item = text[text.index(f'id="t{action.thread_id}"') :].partition("</li>")[0]
        found[name] = (
            row["pending"][0]["put_off_until"] is not None,
            "put off until" in item,
            "1 to decide" in item,
        )
    assert found == {"Cay": (True, True, False), "Ada": (False, False, True)}
