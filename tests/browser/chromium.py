"""Which browser is there, and how is it started? Debian's own Chromium: nothing is downloaded for tests."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from playwright.async_api import Browser, async_playwright

_NAMES = ("chromium-headless-shell", "/usr/bin/chromium", "chromium", "chromium-browser", "google-chrome")
# No sandbox: in a container the user is often root, and every page is ours.
_ARGS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")


def installed() -> str | None:
    """The program of the browser, when there is one."""
    return next((found for name in _NAMES if (found := shutil.which(name)) is not None), None)


@asynccontextmanager
async def chromium(program: str) -> AsyncIterator[Browser]:
    """The browser, without a window."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=_ARGS, headless=True)
        try:
            yield browser
        finally:
            await browser.close()
