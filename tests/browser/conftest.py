"""One browser and one running server for all tests of this folder that run in one process."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, StorageState

from tests.browser.chromium import chromium, installed
from tests.browser.corpus import ODD_SKILL, ODD_TOOL
from tests.browser.web import Web
from tests.fakes.model_server import ModelServer
from tests.fakes.runtime import BOOKKEEPER, PEOPLE, Served, serving, write_home

MORE_PEOPLE = """
[[people]]
name = "Eve"
role = "member"

[[people]]
name = "Flo"
role = "member"

[[people]]
name = "Guy"
role = "member"
"""
RULES = """
[[approvals.rules]]
tool = "mcp:ledger:pay_invoice"
approvers = ["Bob"]
"""
CLERK = """---
name: clerk
description: Writes letters, and asks before each.
tools: "mcp:ledger:send_email"
interruptOn:
  "mcp:ledger:send_email":
    allowedDecisions: [approve, edit, reject, respond]
---
Do what is asked with your tools.
"""
BROKEN = "---\nname: broken\ntools: mcp:ledger:*\n---\nNobody knows what it is for.\n"


@pytest.fixture(scope="package")
def model() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def browser() -> AsyncIterator[Browser]:
    program = installed()
    if program is None:
        reason = "no Chromium is installed (Debian: apt-get install chromium)"
        if os.environ.get("PIZZABOT_NEED_BROWSER") == "1":
            pytest.fail(f"{reason}, and PIZZABOT_NEED_BROWSER=1 says that it has to be")
        pytest.skip(reason)
    async with chromium(program) as started:
        yield started


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def served(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory, model: ModelServer
) -> AsyncIterator[Served]:
    home = write_home(
        tmp_path_factory.mktemp("browser") / "home",
        model.url,
        people=PEOPLE + MORE_PEOPLE,
        more_toml=RULES,
        skills={"bookkeeper": BOOKKEEPER, "clerk": CLERK, "odd": ODD_SKILL, "broken": BROKEN},
        ledger_env={"LEDGER_EXTRA_TOOLS": json.dumps([ODD_TOOL])},
    )
    async with serving(home) as running:
        yield running


@pytest.fixture(scope="package")
def states() -> dict[str, StorageState]:
    """The cookies of people who are logged in: once is enough for those who test something else."""
    return {}


@pytest_asyncio.fixture(loop_scope="package")
async def web(served: Served, browser: Browser, states: dict[str, StorageState]) -> AsyncIterator[Web]:
    """The browser, for one test. What pages may never do fails it."""
    opened = Web(served, browser, states)
    yield opened
    await opened.close()
    assert opened.problems == []
