"""Can everybody use every page, on every screen, and is what strangers wrote nothing but text?"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from importlib import resources
from pprint import pformat

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, StorageState, expect

from tests.browser.corpus import ALL, SCRIPT
from tests.browser.gallery import GALLERY, Made, Tour, hang
from tests.browser.web import DESK, PHONE, Web, button, said
from tests.fakes.runtime import Served

pytestmark = pytest.mark.asyncio(loop_scope="package")

AXE = (resources.files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# What depends on colours and on the width; everything else is the same on every screen.
SEEN = ["color-contrast", "target-size", "link-in-text-block", "scrollable-region-focusable"]
_AXE_RUN = """
async (runOnly) => {
  const options = { runOnly, resultTypes: ["violations"], preload: false, selectors: false };
  return (await axe.run(document, options)).violations.map(({ id, impact, nodes }) =>
    ({ id, impact, nodes: nodes.map((node) => `${node.html.slice(0, 200)} ${node.failureSummary}`) }));
}
"""
_SIDEWAYS = """
() => {
  const beyond = [...document.querySelectorAll("body *")].filter((element) =>
    element.getBoundingClientRect().right > innerWidth + 1 && !element.closest("pre, .table"));
  return [document.scrollingElement.scrollWidth, innerWidth, beyond.map((e) => e.outerHTML.slice(0, 150))];
}
"""
_MORE_THAN_TEXT = """
() => {
  const leads = ["href", "src", "action", "formaction"], harmless = /^(https?:|mailto:|[/?#]|$)/, wrong = [];
  for (const element of document.querySelectorAll("*")) {
    for (const { name, value } of element.attributes)
      if (name.startsWith("on") || name === "style" || leads.includes(name) && !harmless.test(value))
        wrong.push(`${element.tagName} ${name}=${value}`);
    if (["IFRAME", "OBJECT", "EMBED", "BASE", "STYLE", "IMG", "svg", "math"].includes(element.tagName)
      || element.tagName === "SCRIPT" && !element.src.startsWith(`${location.origin}/static/app.js`)
      || element.tagName === "FORM" && !(element.getAttribute("action") ?? "/").startsWith("/"))
      wrong.push(element.outerHTML.slice(0, 200));
  }
  return [window.__xss ?? null, wrong];
}
"""


@dataclass
class Looks:
    """What was found on the pages of an area, by page: what keeps people from using it, what could only be
    better, and what makes a phone scroll sideways.
    """

    serious: dict[str, list[str]] = field(default_factory=dict)
    lesser: dict[str, list[str]] = field(default_factory=dict)
    sideways: dict[str, list[str]] = field(default_factory=dict)


@pytest_asyncio.fixture(scope="module", loop_scope="package")
async def made(served: Served, browser: Browser, states: dict[str, StorageState]) -> AsyncIterator[Made]:
    web = Web(served, browser, states)
    yield await hang(web)
    await web.close()


@pytest.fixture(scope="module")
def looked() -> dict[str, Looks]:
    """Areas that were looked at; two tests share a look."""
    return {}


async def look(web: Web, made: Made, area: str) -> Looks:
    """Each page dark on a phone with everything, then light on a desk with what may differ there."""
    found, tour = Looks(), Tour(web, made, {})
    for name, station in GALLERY[area].items():
        page = await station(tour)
        await unfold(page)
        await page.set_viewport_size(PHONE)
        width, room, beyond = await page.evaluate(_SIDEWAYS)
        if not width <= room == PHONE["width"]:
            found.sideways[name] = beyond
        await page.emulate_media(color_scheme="dark")
        await page.evaluate(AXE)
        dark = await page.evaluate(_AXE_RUN, {"type": "tag", "values": TAGS})
        await page.emulate_media(color_scheme="light")
        await page.set_viewport_size(DESK)
        light = await page.evaluate(_AXE_RUN, {"type": "rule", "values": SEEN})
        for screen, violations in (("dark, phone", dark), ("light, desk", light)):
            for wrong in violations:
                kind = found.serious if wrong["impact"] in ("serious", "critical") else found.lesser
                kind.setdefault(name, []).append(
                    f"{screen}: {wrong['id']} ({wrong['impact']}) {wrong['nodes']}"
                )
    return found


async def unfold(page: Page) -> None:
    """Show what is folded away, too."""
    await page.evaluate("for (const fold of document.querySelectorAll('details')) fold.open = true")


@pytest.mark.parametrize("area", GALLERY)
async def test_everybody_can_use_the_pages(
    web: Web, made: Made, looked: dict[str, Looks], area: str, request: pytest.FixtureRequest
) -> None:
    looked[area] = await look(web, made, area)
    # Shown when the test fails, and with -rP.
    request.node.add_report_section("call", "axe, less than serious", pformat(looked[area].lesser))
    assert looked[area].serious == {}


@pytest.mark.parametrize("area", GALLERY)
async def test_a_phone_never_scrolls_a_page_sideways(
    web: Web, made: Made, looked: dict[str, Looks], area: str
) -> None:
    found = looked.get(area) or await look(web, made, area)
    assert found.sideways == {}


@pytest.mark.parametrize("area", GALLERY)
async def test_what_is_written_stays_text(web: Web, made: Made, area: str) -> None:
    # Without the policy: a script that came through would run, and what is only forbidden would be loaded.
    tour = Tour(web, made, {"bypass_csp": True})
    wrong = {}
    for name, station in GALLERY[area].items():
        page = await station(tour)
        await unfold(page)
        if (found := await page.evaluate(_MORE_THAN_TEXT)) != [None, []]:
            wrong[name] = found
    assert wrong == {}


async def test_who_likes_it_dark_has_it_dark(web: Web, made: Made) -> None:
    shades = {}
    for scheme in ("light", "dark"):
        page = await web.open(f"/threads/{made.threads['pending']}", color_scheme=scheme)
        colour = await page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        shades[scheme] = sum(int(part) for part in re.findall(r"\d+", colour)[:3]) / 3
    assert shades["dark"] < 50 < 200 < shades["light"]


async def test_what_arrives_while_one_watches_stays_text(web: Web, made: Made) -> None:
    page = await web.open(f"/threads/{made.threads['answered']}", bypass_csp=True)
    body = {"text": f"{ALL}\n[[say {ALL}]]"}
    await web.api("POST", f"/threads/{made.threads['answered']}/messages", body)
    await web.api("PATCH", f"/threads/{made.threads['answered']}", {"title": SCRIPT})
    await expect(said(page).nth(1)).to_contain_text("window.__xss=21")
    await expect(page.get_by_role("heading", name=SCRIPT)).to_be_visible()
    assert await page.evaluate(_MORE_THAN_TEXT) == [None, []]
    assert await page.title() == f"{SCRIPT} · Pizza Bot"


async def test_a_file_of_a_stranger_is_stored_and_never_shown(web: Web, made: Made) -> None:
    page = await web.open(f"/threads/{made.threads['files']}", bypass_csp=True)
    for link in await page.get_by_role("article", name="Ada").get_by_role("link").all():
        path = await link.get_attribute("href")
        async with page.expect_download() as download:
            await page.evaluate("(path) => { location.href = path; }", path)
        name = (await download.value).suggested_filename
        assert "<" not in name or "/" not in name
    await expect(button(page, "Send")).to_be_visible()
