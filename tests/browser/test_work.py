"""Can somebody hand over work, follow it, decide, and keep order, with a browser and nothing else?"""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from pizzabot.adapters.web.pages.inbox import ROWS
from playwright.async_api import Locator, Page, Route, expect

from pizzabot.clock import SystemClock
from pizzabot.inbox import threads
from tests.browser.web import Web, button, call, row, said, to_thread, view
from tests.fakes.runtime import ledger_calls

pytestmark = pytest.mark.asyncio(loop_scope="package")


def ran(web: Web, note: str) -> list[dict[str, Any]]:
    """What reached the ledger under a note."""
    return [found["args"] for found in ledger_calls(web.served.home) if found["args"].get("note") == note]


async def send(page: Page, text: str, box: str = "New task") -> None:
    await page.get_by_label(box).fill(text)
    await button(page, "Send").click()


async def stay(page: Page) -> None:
    """Note that the page is this one: loading it again would forget the note."""
    await page.evaluate("window.__same = true")


async def expect_same(page: Page) -> None:
    assert await page.evaluate("window.__same === true"), "the page was loaded again"


# -- getting in ------------------------------------------------------------------------------------------


async def test_a_link_logs_in_once(web: Web) -> None:
    page = await web.window()
    link = await web.link("Ada")
    await page.goto(link)
    await expect(page).to_have_title("Log in · Pizza Bot")
    await page.goto(link)  # looking uses nothing up
    await button(page, "Log in").click()
    await expect(page.get_by_label("New task")).to_be_visible()
    await expect(page.get_by_role("banner")).to_contain_text("Ada")
    assert page.url == f"{web.served.url}/"
    other = await web.window()
    await other.goto(link)
    await button(other, "Log in").click()
    await expect(other.get_by_role("alert")).to_contain_text("was used already")
    await expect(other.get_by_label("Login code")).to_be_visible()


async def test_who_is_not_logged_in_is_led_back_to_where_they_wanted(web: Web) -> None:
    thread_id = await web.ask("[[say deep]]", "A deep place")
    page = await web.window()
    await page.goto(f"{web.served.url}/threads/{thread_id}?before=999999999")
    await expect(page).to_have_url(f"{web.served.url}/login")
    code = (await web.link("Ada")).partition("=")[2]
    await page.get_by_label("Login code").fill(code)
    await page.get_by_label("Login code").press("Enter")
    await expect(page).to_have_url(f"{web.served.url}/threads/{thread_id}?before=999999999")
    await expect(page.get_by_role("heading", name="A deep place")).to_be_visible()


async def test_after_logging_out_the_way_back_shows_nothing(web: Web) -> None:
    thread = await web.ask_until("[[say a secret word]]", "idle", "Secrets")
    page = await web.window()
    await web.log_in(page, "Ada")
    await page.goto(f"{web.served.url}/threads/{thread['id']}")
    await page.get_by_label("Message").fill("a draft for nobody else")
    await button(page, "Log out").click()
    await expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    await page.go_back()
    await expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    assert "secret" not in await page.content()
    await web.log_in(page, "Ada")
    await page.goto(f"{web.served.url}/threads/{thread['id']}")
    await expect(page.get_by_label("Message")).to_have_value("")


async def test_a_page_that_is_open_elsewhere_leaves_with_its_session(web: Web) -> None:
    page = await web.window()
    await web.log_in(page, "Flo")
    other = await web.window()
    await web.log_in(other, "Flo")
    await other.goto(f"{web.served.url}/status")
    web.expect_refused("/events")
    await button(other, "Log out everywhere").click()
    await expect(other.get_by_role("heading", name="Log in")).to_be_visible()
    await web.ask("[[say news]]", person="Flo")
    await expect(page.get_by_role("heading", name="Log in")).to_be_visible()


# -- asking ----------------------------------------------------------------------------------------------


async def test_an_answer_arrives_while_one_watches(web: Web) -> None:
    page = await web.open("/")
    await send(page, "Please wait a moment.\n[[sleep 1]]")
    await expect(page).to_have_url(re.compile("/threads/"))
    await stay(page)
    await expect(said(page, "Ada")).to_contain_text("Please wait a moment.")
    await expect(said(page)).to_contain_text("slept 1")
    await expect(page.get_by_role("region", name="Work")).to_contain_text("Done")
    await expect_same(page)
    await send(page, "[[say once more]]", "Message")
    await expect(said(page).nth(1)).to_contain_text("once more")
    await page.get_by_role("link", name="Inbox", exact=True).first.click()
    await expect(row(page, "once more")).to_be_visible()


async def test_what_happened_before_the_page_listened_is_seen_too(web: Web) -> None:
    page = await web.open(None)
    may_listen = asyncio.Event()

    async def later(route: Route) -> None:
        await may_listen.wait()
        await route.continue_()

    await page.route("**/events", later)
    thread_id = await web.ask("[[sleep 1]]", "Quicker than the stream")
    await page.goto(f"{web.served.url}/threads/{thread_id}")
    await expect(said(page)).to_have_count(0)
    await web.served.wait(thread_id, "idle")
    may_listen.set()
    await expect(said(page)).to_contain_text("slept 1")


async def test_work_is_seen_while_it_goes_on_and_can_be_stopped(web: Web) -> None:
    page = await web.open("/")
    await send(page, call("slow", seconds=300))
    await expect(page).to_have_url(re.compile("/threads/"))
    await stay(page)
    work = page.get_by_role("region", name="Work")
    await expect(work).to_contain_text("Working")
    step = work.get_by_role("listitem").filter(has_text="mcp:ledger:slow")
    await expect(step).to_contain_text("in bookkeeper")
    await expect(step).to_contain_text("…")
    await expect(page.get_by_text("is held for the next one")).to_be_visible()
    await expect_same(page)
    await button(page, "Stop").click()
    await expect(work).to_contain_text("Stopped")
    await expect(button(page, "Retry")).to_be_visible()
    await expect(button(page, "Stop")).to_have_count(0)
    assert "waited" not in await page.content()


async def test_a_failure_says_why_and_retry_goes_on(web: Web) -> None:
    thread = await web.ask_until("Once only. [[fail 400 1]]", "failed", "To fail first")
    page = await web.open(f"/threads/{thread['id']}")
    await expect(
        page.get_by_role("region", name="Work").get_by_text(re.compile("400|model"))
    ).not_to_have_count(0)
    await button(page, "Retry").click()
    await expect(said(page).last).to_contain_text("recovered")


async def test_a_draft_stays_until_it_is_sent_and_is_sent_once(web: Web) -> None:
    page = await web.open("/")
    await page.get_by_label("New task").fill("[[say drafted]]")
    await page.get_by_role("link", name="Skills").click()
    await expect(page.get_by_role("heading", name="Skills")).to_be_visible()
    await page.get_by_role("link", name="Inbox", exact=True).click()
    await expect(page.get_by_label("New task")).to_have_value("[[say drafted]]")
    await button(page, "Send").dblclick()
    await expect(said(page)).to_contain_text("drafted")
    await page.get_by_role("link", name="Inbox", exact=True).first.click()
    await expect(page.get_by_label("New task")).to_have_value("")
    found = await web.api("GET", "/threads?q=drafted")
    assert len(found["threads"]) == 1


async def test_a_draft_outlives_a_session_that_ended_and_is_shown_to_nobody_else(web: Web) -> None:
    page = await web.window()
    written = asyncio.Event()

    async def later(route: Route) -> None:  # a page that follows may notice first, and leave by itself
        await written.wait()
        await route.continue_()

    await page.route("**/events", later)
    await web.log_in(page, "Flo")
    await page.get_by_label("New task").fill("long and carefully written")
    await page.context.clear_cookies()
    await button(page, "Send").click()
    await expect(page.get_by_role("alert")).to_contain_text("You are not logged in")
    await web.log_in(page, "Eve")
    await expect(page.get_by_label("New task")).to_have_value("")
    await page.context.clear_cookies()
    await web.log_in(page, "Flo")
    await expect(page.get_by_label("New task")).to_have_value("long and carefully written")
    written.set()


async def test_a_button_that_has_the_focus_stays_the_button_it_is(web: Web) -> None:
    thread_id = await web.ask("[[sleep 2]]", "Focus on a button")
    page = await web.open(f"/threads/{thread_id}")
    archive = button(page, "Archive")
    await archive.focus()
    await expect(button(page, "Stop")).to_have_count(
        0
    )  # the run ended, and the row of buttons is another one
    await expect(said(page).last).to_contain_text("slept")
    await expect(archive).to_be_focused()


async def test_a_file_goes_along_and_can_be_had_back(web: Web) -> None:
    page = await web.open("/")
    name = "Rechnung ü & <b>.txt"
    await page.get_by_label("Files").set_input_files(
        {"name": name, "mimeType": "text/plain", "buffer": b"taxi 42.50"}
    )
    await send(page, "[[say a file]]")
    async with page.expect_download() as download:
        await page.get_by_role("link", name=name).click()
    got = await download.value
    assert (await got.path()).read_bytes() == b"taxi 42.50"
    assert got.suggested_filename.startswith("Rechnung ü")
    await expect(said(page)).to_contain_text("a file")


# -- deciding --------------------------------------------------------------------------------------------


async def test_the_card_in_a_thread_approves(web: Web) -> None:
    action = await web.waiting("submit_expense", "From the card", amount=4, note="card")
    page = await web.open("/?view=action")
    await to_thread(page, "From the card").click()
    await stay(page)
    await expect(page.get_by_text("mcp:ledger:submit_expense · skill bookkeeper")).to_be_visible()
    assert ran(web, "card") == []
    await button(page, "Approve").click()
    await expect(said(page)).to_contain_text("filed 4 EUR for card")
    await expect(page.get_by_text("Approved by Ada in web")).to_be_visible()
    assert ran(web, "card") == [{"amount": 4, "note": "card"}]
    assert (await web.action(action["id"]))["decided_via"] == "web"


async def test_the_page_of_an_action_approves(web: Web) -> None:
    action = await web.waiting("submit_expense", "From the page", amount=5, note="page")
    page = await web.open(f"/actions/{action['id']}")
    await expect(page.get_by_label("amount")).to_have_value("5")
    await expect(page.get_by_label("currency")).to_have_value("")
    await button(page, "Approve").click()
    await expect(page.get_by_text("Approved by Ada in web")).to_be_visible()
    await expect(page.get_by_role("button", name=re.compile("Approve|Reject"))).to_have_count(0)
    await web.served.wait(action["thread_id"], "idle")
    assert ran(web, "page") == [{"amount": 5, "note": "page"}]


async def test_a_wrong_value_is_told_at_its_field_and_a_right_one_runs(web: Web) -> None:
    action = await web.waiting("submit_expense", "To correct", amount=4, note="taxi", tags=["a"])
    page = await web.open(f"/actions/{action['id']}")
    amount = page.get_by_label("amount")
    await amount.fill("much")
    await page.get_by_label("note").fill("corrected")
    await button(page, "Approve edited").click()
    await expect(page.get_by_role("alert")).to_contain_text("cannot be used")
    await expect(amount).to_have_value("much")
    await expect(amount).to_have_attribute("aria-invalid", "true")
    await expect(amount).to_have_accessible_description(re.compile("is not a number"))
    await expect(page.get_by_label("note")).to_have_value("corrected")
    await expect(page.get_by_label("note")).to_have_accessible_description(re.compile("was taxi"))
    await expect(page.get_by_label("note")).not_to_have_attribute("aria-invalid", "true")
    await amount.fill("-1")
    await button(page, "Approve edited").click()
    await expect(amount).to_have_accessible_description(re.compile("minimum|less|least|0"))
    await expect(amount).to_have_attribute("aria-invalid", "true")
    await amount.fill("12.50")
    await page.get_by_label("currency").select_option("USD")
    await page.get_by_label("tags").fill("travel\nbad weather")
    await page.get_by_label("urgent").select_option("yes")
    await button(page, "Approve edited").click()
    await expect(page.get_by_text("Edited by Ada in web")).to_be_visible()
    await expect(page.get_by_role("deletion").filter(has_text="taxi")).to_be_visible()
    await expect(page.get_by_role("insertion").filter(has_text="corrected")).to_be_visible()
    await expect(page.get_by_role("insertion").filter(has_text="12.5")).to_be_visible()
    await expect(page.get_by_role("insertion").filter(has_text="bad weather")).to_be_visible()
    await web.served.wait(action["thread_id"], "idle")
    assert ran(web, "taxi") == []
    (args,) = ran(web, "corrected")
    assert args == {
        "amount": 12.5,
        "currency": "USD",
        "note": "corrected",
        "tags": ["travel", "bad weather"],
        "urgent": True,
    }
    assert isinstance(args["amount"], float)


async def test_a_field_says_that_it_was_changed_while_one_types(web: Web) -> None:
    action = await web.waiting("submit_expense", "To mark", amount=4, note="marked", urgent=False)
    page = await web.open(f"/actions/{action['id']}")
    changed = page.locator(".field.changed")
    await page.get_by_label("note").press_sequentially("!")
    await expect(changed).to_have_count(1)
    await page.get_by_label("urgent").check()
    await expect(changed).to_have_count(2)
    await page.get_by_label("urgent").uncheck()
    await page.get_by_label("note").fill("marked")
    await expect(changed).to_have_count(0)
    await button(page, "Approve").click()
    await expect(page.get_by_text("Approved by Ada in web")).to_be_visible()


async def test_approve_is_refused_when_something_was_changed(web: Web) -> None:
    action = await web.waiting("submit_expense", "To contradict", amount=4, note="contradicted")
    page = await web.open(f"/actions/{action['id']}")
    await page.get_by_label("amount").fill("400")
    await button(page, "Approve").click()
    await expect(page.get_by_role("alert")).to_contain_text("Press Approve edited to use them")
    await expect(page.get_by_label("amount")).to_have_value("400")
    assert (await web.action(action["id"]))["state"] == "pending"
    await page.get_by_label("amount").fill("4")
    await button(page, "Approve edited").click()
    await expect(page.get_by_role("alert")).to_contain_text("Press Approve to approve what was asked")
    assert (await web.action(action["id"]))["state"] == "pending"
    assert ran(web, "contradicted") == []


async def test_enter_in_a_field_decides_nothing(web: Web) -> None:
    action = await web.waiting("submit_expense", "To type in", amount=4, note="typed")
    page = await web.open(f"/actions/{action['id']}")
    await page.evaluate("document.addEventListener('submit', () => { window.__sent = true; }, true)")
    for name in ("amount", "note", "Reason"):
        await page.get_by_label(name).press("Enter")
    # Sending a form begins with the event, before the key is up again.
    assert await page.evaluate("window.__sent === undefined")
    assert (await web.action(action["id"]))["state"] == "pending"


async def test_a_rejection_tells_the_reason(web: Web) -> None:
    action = await web.waiting("submit_expense", "Too dear", amount=4000, note="dear")
    page = await web.open(f"/actions/{action['id']}")
    await page.get_by_label("Reason").fill("too dear, ask “Bob”")
    await button(page, "Reject").click()
    await expect(page.get_by_text("Rejected by Ada in web")).to_be_visible()
    await expect(page.get_by_text("Reason: too dear, ask “Bob”")).to_be_visible()
    await page.get_by_role("link", name="To the thread").click()
    await expect(said(page)).to_contain_text("too dear, ask “Bob”")
    assert ran(web, "dear") == []


async def test_an_answer_can_stand_in_for_the_tool(web: Web) -> None:
    mail = {"to": "bob@example.com", "subject": "Hello", "body": "Are you there?"}
    action = await web.waiting("send_email", "To answer", skill="clerk", **mail)
    page = await web.open(f"/actions/{action['id']}")
    response = page.get_by_label("Response")
    await expect(response).to_have_accessible_description(re.compile("The tool does not run"))
    await response.fill("Bob is away until Monday.\nWrite to Cay.")
    await button(page, "Respond").click()
    await expect(page.get_by_text("Responded by Ada in web")).to_be_visible()
    await expect(page.get_by_text("Bob is away until Monday.")).to_be_visible()
    await page.get_by_role("link", name="To the thread").click()
    await expect(said(page)).to_contain_text("Bob is away until Monday.")
    assert [c for c in ledger_calls(web.served.home) if c["args"].get("subject") == "Hello"] == []


async def test_what_is_too_long_for_a_card_is_decided_where_all_of_it_is_seen(web: Web) -> None:
    body = "\n".join(f"line {number} of a letter that goes on and on" for number in range(100))
    mail = {"to": "bob@example.com", "subject": "A long letter", "body": body}
    action = await web.waiting("send_email", "A long letter", skill="clerk", **mail)
    page = await web.open(f"/threads/{action['thread_id']}")
    await expect(button(page, "Approve")).to_have_count(0)
    await expect(button(page, "Reject")).to_have_count(0)
    await page.get_by_role("link", name="Review").click()
    await expect(page.get_by_label("body")).to_have_value(body)
    await button(page, "Approve").click()
    await expect(page.get_by_text("Approved by Ada in web")).to_be_visible()
    await web.served.wait(action["thread_id"], "idle")
    (sent,) = [c for c in ledger_calls(web.served.home) if c["args"].get("subject") == "A long letter"]
    assert sent["args"] == mail


async def test_what_cannot_be_seen_is_written_out(web: Web) -> None:
    mail = {"to": "bob\u202emoc.elpmaxe@", "subject": "a\u200bb \x1b[31mred", "body": "one\u2066two\nthree"}
    action = await web.waiting("send_email", "Unseen", skill="clerk", **mail)
    page = await web.open(f"/threads/{action['thread_id']}")
    for shown in (r"bob\u202emoc.elpmaxe@", r"a\u200bb \x1b[31mred", r"one\u2066two"):
        await expect(page.get_by_role("definition").filter(has_text=shown)).to_be_visible()
    await page.get_by_role("link", name="Review").click()
    for shown in (r"bob\u202emoc.elpmaxe@", r"a\u200bb \x1b[31mred", r"one\u2066two"):
        await expect(page.get_by_text(shown)).to_be_visible()
    await button(page, "Approve").click()
    await expect(page.get_by_text("Approved by Ada in web")).to_be_visible()
    await web.served.wait(action["thread_id"], "idle")
    assert mail in [c["args"] for c in ledger_calls(web.served.home)]


async def test_who_may_not_decide_has_nothing_to_press(web: Web) -> None:
    pay = {"vendor": "Acme", "amount": 7, "currency": "EUR"}
    action = await web.waiting("pay_invoice", "For Bob alone", person="Cay", **pay)
    for person in ("Cay", "Ada"):
        page = await web.open(f"/threads/{action['thread_id']}", person)
        await expect(page.get_by_text("Waits for Bob")).to_be_visible()
        await expect(page.get_by_role("button", name=re.compile("Approve|Reject"))).to_have_count(0)
        await page.get_by_role("link", name="Review").click()
        await expect(page.get_by_text("it waits for Bob")).to_be_visible()
        await expect(page.get_by_role("button", name=re.compile("Approve|Reject"))).to_have_count(0)
        await expect(page.get_by_text("Acme")).to_be_visible()
    page = await web.open("/?view=action", "Bob")
    await to_thread(page, "For Bob alone").click()
    await expect(page.get_by_text("Only Cay writes here.")).to_be_visible()
    await expect(button(page, "Archive")).to_have_count(0)
    await button(page, "Approve").click()
    await expect(page.get_by_text("Approved by Bob in web")).to_be_visible()


# -- two at once -----------------------------------------------------------------------------------------


async def test_what_one_decides_the_other_sees(web: Web) -> None:
    pay = {"vendor": "Twice", "amount": 9, "currency": "EUR"}
    action = await web.waiting("pay_invoice", "Seen by two", person="Cay", **pay)
    card = await web.open(f"/threads/{action['thread_id']}", "Cay")
    form = await web.open(f"/actions/{action['id']}", "Bob")
    blind = await web.open(f"/actions/{action['id']}", "Bob", java_script_enabled=False)
    for page in (card, form):
        await stay(page)
    await card.get_by_label("Message").fill("a thought that is not finished")
    await form.get_by_label("vendor").fill("Somebody else")
    other = await web.open(f"/threads/{action['thread_id']}", "Bob")
    await button(other, "Approve").click()
    for page in (card, form):
        await expect(page.get_by_text("Approved by Bob in web")).to_be_visible()
        await expect(page.get_by_role("button", name=re.compile("Approve"))).to_have_count(0)
        await expect_same(page)
    await expect(card.get_by_label("Message")).to_have_value("a thought that is not finished")
    await expect(card.get_by_label("Message")).to_be_focused()
    # A page that does not follow learns it when it is too late.
    await button(blind, "Reject").click()
    await expect(blind.get_by_role("alert")).to_contain_text("Already approved by Bob in web")
    await expect(blind.get_by_role("button", name=re.compile("Approve"))).to_have_count(0)


async def test_a_form_that_is_being_filled_in_stays_when_something_else_happens(web: Web) -> None:
    action = await web.waiting("submit_expense", "To fill in", amount=4, note="filled in")
    page = await web.open(f"/actions/{action['id']}")
    await page.get_by_label("amount").fill("44")
    await page.get_by_label("Reason").fill("perhaps")
    await page.get_by_label("note").focus()
    looked = page.wait_for_event("requestfinished", lambda r: r.url.endswith(f"/actions/{action['id']}"))
    await web.api("PATCH", f"/threads/{action['thread_id']}", {"title": "Another title"})
    await looked
    await page.evaluate("new Promise((done) => setTimeout(done, 200))")
    await expect(page.get_by_label("amount")).to_have_value("44")
    await expect(page.get_by_label("Reason")).to_have_value("perhaps")
    await expect(page.get_by_label("note")).to_be_focused()
    await expect(page.locator(".field.changed")).to_have_count(1)


async def test_the_inbox_repaints_around_focus_and_what_is_typed(web: Web) -> None:
    await web.ask_until("[[say here already]]", "idle", "Focus stays here")
    page = await web.open("/")
    await stay(page)
    await page.get_by_label("New task").fill("not sent yet")
    link = to_thread(page, "Focus stays here")
    await link.focus()
    await web.ask_until("[[say just arrived]]", "idle", "Arrives above")
    await expect(row(page, "Arrives above")).to_contain_text("just arrived")
    await expect(link).to_be_focused()
    await expect(page.get_by_label("New task")).to_have_value("not sent yet")
    await page.get_by_label("Search").press_sequentially("half a wo")
    await web.ask_until("[[say later still]]", "idle", "Arrives on top")
    await expect(row(page, "Arrives on top")).to_contain_text("later still")
    await expect(page.get_by_label("Search")).to_be_focused()
    await expect(page.get_by_label("Search")).to_have_value("half a wo")
    await expect_same(page)


async def test_a_thread_repaints_around_what_is_selected_and_opened(web: Web) -> None:
    thread = await web.ask_until("[[say the first answer]]", "idle", "Open and closed")
    page = await web.open(f"/threads/{thread['id']}")
    work = page.get_by_role("region", name="Work").first
    await expect(work.get_by_role("list")).to_be_hidden()
    await work.get_by_text("Done").click()
    await expect(work.get_by_role("list")).to_be_visible()
    await page.get_by_text("Rename", exact=True).first.click()
    await page.get_by_label("Title").fill("half a tit")
    await web.api("POST", f"/threads/{thread['id']}/messages", {"text": "[[say the second answer]]"})
    await expect(said(page).nth(1)).to_contain_text("the second answer")
    await expect(work.get_by_role("list")).to_be_visible()
    await expect(page.get_by_label("Title")).to_have_value("half a tit")
    await expect(page.get_by_label("Title")).to_be_focused()


async def test_stopping_everything_is_seen_by_everybody(web: Web) -> None:
    page, other = await web.open("/"), await web.open("/", "Cay")
    await expect(button(other, "Stop everything")).to_have_count(0)
    await button(page, "Stop everything").click()
    try:
        for shown in (page, other):
            await expect(shown.get_by_text("Everything is stopped, by Ada")).to_be_visible()
        thread_id = await web.ask("[[say after all]]", "Kept meanwhile", person="Cay")
        await expect(row(other, "Kept meanwhile")).to_contain_text("queued")
        await button(page, "Resume").click()
        await expect(other.get_by_text("Everything is stopped")).to_have_count(0)
        await expect(row(other, "Kept meanwhile")).to_contain_text("after all")
    finally:
        await web.served.http.post("/api/resume")
    assert (await web.served.wait(thread_id, "idle"))["messages"][-1]["text"] == "after all"


# -- keeping order ---------------------------------------------------------------------------------------


async def rows(web: Web, person: str, count: int, text: str) -> None:
    """Threads with a message each, without any work."""
    now = SystemClock().now()

    def work(connection: Any) -> None:
        for number in range(count):
            thread_id = threads.create(
                connection,
                now,
                owner=person,
                channel="web",
                address=None,
                title=f"Row {number:02}",
                title_source="user",
            )
            threads.add_message(
                connection, thread_id, now, role="user", author=person, text=f"{text} number {number:02}"
            )

    await web.served.doors._database.write(work)


async def titles(page: Page) -> list[str]:
    await expect(page.get_by_role("heading", name="Inbox")).to_be_attached()
    return await page.get_by_role("list").get_by_role("link").all_inner_texts()


async def test_search_marks_what_it_found_and_pages_hold_still(web: Web) -> None:
    await rows(web, "Eve", 45, "The quince harvest")
    page = await web.open("/", "Eve")
    first = await titles(page)
    assert len(first) == ROWS
    older = await page.get_by_role("link", name="Older").get_attribute("href")
    await web.ask("[[say in between]]", "In between", person="Eve")
    await page.goto(f"{web.served.url}{older}")
    await expect(page.get_by_role("link", name="Newest")).to_be_visible()
    second = await titles(page)
    assert sorted(first + second) == [f"Row {number:02}" for number in range(45)]
    await expect(page.get_by_role("link", name="Older")).to_have_count(0)
    await page.get_by_role("link", name="Newest").click()
    await expect(row(page, "In between")).to_be_visible()

    await page.get_by_label("Search").fill("QUÍNCE num 07")
    await page.get_by_label("Search").press("Enter")
    await expect(page.get_by_text("Threads with “QUÍNCE num 07”")).to_be_visible()
    assert await titles(page) == ["Row 07"]
    marks = row(page, "Row 07").locator("mark")
    assert await marks.all_inner_texts() == ["07", "quince", "num", "07"]
    await to_thread(page, "Row 07").click()
    await expect(said(page, "Eve")).to_be_in_viewport()
    await expect(said(page, "Eve")).to_contain_text("The quince harvest number 07")

    await page.goto(f"{web.served.url}/?q=quince")
    assert len(await titles(page)) == ROWS
    await page.get_by_role("link", name="Older").click()
    await expect(page.get_by_role("link", name="Newest")).to_be_visible()
    assert len(await titles(page)) == 45 - ROWS
    await page.goto(f"{web.served.url}/?q=quincex")
    await expect(page.get_by_text("Nothing was found.")).to_be_visible()


async def test_archiving_can_be_undone(web: Web) -> None:
    await web.ask_until("[[say put away]]", "idle", "To put away")
    page = await web.open("/")
    await button(row(page, "To put away"), "Archive").click()
    told = page.get_by_role("status").filter(has_text="Archived: To put away")
    await expect(told).to_be_visible()
    await expect(row(page, "To put away")).to_have_count(0)
    await button(page, "Undo").click()
    await expect(page.get_by_role("status").filter(has_text="Back in the inbox: To put away")).to_be_visible()
    await expect(row(page, "To put away")).to_be_visible()
    await to_thread(page, "To put away").click()
    await button(page, "Archive").click()
    await expect(told).to_be_visible()
    await view(page, "Archived").click()
    await button(row(page, "To put away"), "To inbox").click()
    await expect(page.get_by_role("status").filter(has_text="Back in the inbox: To put away")).to_be_visible()
    await expect(row(page, "To put away")).to_have_count(0)
    await view(page, "All").click()
    await expect(row(page, "To put away")).to_be_visible()


async def test_what_was_read_is_marked_by_hand_and_by_reading(web: Web) -> None:
    thread = await web.ask_until("[[say unread words]]", "idle", "Read or not")
    page = await web.open("/?view=unread")
    await button(row(page, "Read or not"), "Mark read").click()
    await expect(page.get_by_role("status").filter(has_text="Marked as read: Read or not")).to_be_visible()
    await expect(row(page, "Read or not")).to_have_count(0)
    await view(page, "All").click()
    await button(row(page, "Read or not"), "Mark unread").click()
    await expect(row(page, "Read or not").get_by_role("link", name="Unread: Read or not")).to_be_visible()
    page = await web.open(None)
    await page.clock.install()
    await page.goto(f"{web.served.url}/threads/{thread['id']}")
    await expect(button(page, "Mark read")).to_be_visible()
    await page.clock.fast_forward(3000)
    await expect(button(page, "Mark read")).to_be_visible()
    await page.clock.fast_forward(2000)
    await expect(button(page, "Mark unread")).to_be_visible()


async def test_somebody_elses_thread_is_not_read_by_looking(web: Web) -> None:
    thread = await web.ask_until("[[say not yours]]", "idle", "Of Guy", person="Guy")
    page = await web.open(None)
    await page.clock.install()
    await page.goto(f"{web.served.url}/threads/{thread['id']}")
    await expect(button(page, "Mark read")).to_be_visible()
    await page.clock.fast_forward(20_000)
    await web.api("POST", f"/threads/{thread['id']}/messages", {"text": "[[say for Guy]]"}, person="Guy")
    await expect(said(page).nth(1)).to_contain_text("for Guy")
    await page.clock.fast_forward(20_000)
    assert (await web.api("GET", f"/threads/{thread['id']}"))["unread"] is True


async def test_a_thread_is_renamed_forked_and_deleted(web: Web) -> None:
    thread = await web.ask_until("[[say the root]]", "idle", "Before it was renamed")
    page = await web.open(f"/threads/{thread['id']}")
    await page.get_by_text("Rename", exact=True).first.click()
    await page.get_by_label("Title").fill("Renamed <b>boldly</b>")
    await page.get_by_label("Title").press("Enter")
    await expect(page.get_by_role("heading", name="Renamed <b>boldly</b>")).to_be_visible()
    await button(page, "Fork from here").click()
    await page.wait_for_url(lambda url: "/threads/" in url and thread["id"] not in url)
    await expect(said(page)).to_contain_text("the root")
    await send(page, "[[say a branch]]", "Message")
    await expect(said(page).nth(1)).to_contain_text("a branch")
    await page.goto(f"{web.served.url}/threads/{thread['id']}")
    await expect(said(page)).to_have_count(1)

    elsewhere = await web.tab(page, f"/threads/{thread['id']}")
    await page.get_by_role("link", name="Delete…").click()
    await expect(page.get_by_text("are gone for good")).to_be_visible()
    await page.get_by_role("link", name="Keep it").click()
    await expect(said(page)).to_contain_text("the root")
    await page.get_by_role("link", name="Delete…").click()
    web.expect_refused(f"/threads/{thread['id']}")
    await button(page, "Delete for good").click()
    await expect(page.get_by_role("status").filter(has_text="Deleted.")).to_be_visible()
    await expect(
        page.get_by_role("listitem").filter(has=page.locator(f'a[href*="{thread["id"]}"]'))
    ).to_have_count(0)
    await expect(elsewhere.get_by_label("New task")).to_be_visible()
    await elsewhere.goto(f"{web.served.url}/threads/{thread['id']}")
    await expect(elsewhere.get_by_role("alert")).to_contain_text("There is no such thread.")


async def test_a_long_thread_is_read_in_pieces(web: Web) -> None:
    now = SystemClock().now()

    def work(connection: Any) -> str:
        thread_id = threads.create(
            connection,
            now,
            owner="Ada",
            channel="web",
            address=None,
            title="A long talk",
            title_source="user",
        )
        for number in range(120):
            role: Any = "assistant" if number % 2 else "user"
            author = threads.AGENT_NAME if number % 2 else "Ada"
            threads.add_message(
                connection, thread_id, now, role=role, author=author, text=f"turn {number:03}", run_id="none"
            )
        return thread_id

    thread_id = await web.served.doors._database.write(work)
    page = await web.open(f"/threads/{thread_id}")

    async def turns() -> list[str]:
        found = await page.get_by_role("article").all_inner_texts()
        return [match[0] for text in found if (match := re.search(r"turn \d+", text))]

    expected = [f"turn {number:03}" for number in range(120)]
    assert await turns() == expected[70:]
    await page.get_by_role("link", name="Earlier messages").click()
    await expect(page.get_by_role("link", name="Later messages")).to_be_visible()
    assert await turns() == expected[20:70]
    await page.get_by_role("link", name="Earlier messages").click()
    await expect(page.get_by_role("link", name="Earlier messages")).to_have_count(0)
    assert await turns() == expected[:20]
    await page.get_by_role("link", name="Later messages").click()
    await expect(page.get_by_role("link", name="Earlier messages")).to_be_visible()
    assert await turns() == expected[20:70]
    await page.get_by_role("link", name="Newest").click()
    await expect(page.get_by_role("link", name="Later messages")).to_have_count(0)
    assert await turns() == expected[70:]


async def test_a_skill_is_switched_off_and_on_and_a_server_reconnected(web: Web) -> None:
    page = await web.open("/skills")
    clerk = row(page, "Writes letters")
    await expect(clerk).to_contain_text("ready")
    await button(clerk, "Switch off").click()
    await expect(clerk).to_contain_text("switched off")
    await button(clerk, "Switch on").click()
    await expect(clerk).to_contain_text("ready")
    await page.get_by_role("link", name="Servers").click()
    await button(row(page, "ledger").first, "Reconnect").click()
    await expect(row(page, "submit_expense may change things").first).to_contain_text("connected")
    member = await web.open("/skills", "Cay")
    await expect(row(member, "Writes letters")).to_be_visible()
    await expect(button(member, "Switch off")).to_have_count(0)


# -- keys ------------------------------------------------------------------------------------------------


async def leads_on(page: Page, key: str) -> None:
    """Press a key that leads to another page, and wait until that one hears keys, too."""
    async with page.expect_navigation(wait_until="domcontentloaded"):
        await page.keyboard.press(key)


async def test_the_inbox_is_worked_off_by_keys(web: Web) -> None:
    for title in ("Key three", "Key two", "Key one"):
        await web.ask_until("[[say by keys]]", "idle", title, person="Guy")
    page = await web.open("/", "Guy")
    keys = page.keyboard
    first, second, third = (to_thread(page, f"Key {name}") for name in ("one", "two", "three"))
    await keys.press("j")
    await expect(first).to_be_focused()
    await keys.press("k")
    await expect(first).to_be_focused()
    await keys.press("j")
    await keys.press("j")
    await expect(third).to_be_focused()
    await keys.press("k")
    await expect(second).to_be_focused()
    await keys.press("m")
    await expect(button(row(page, "Key two"), "Mark unread")).to_be_visible()
    await expect(second).to_be_focused()
    await keys.press("m")
    await expect(button(row(page, "Key two"), "Mark read")).to_be_visible()
    await expect(second).to_be_focused()
    await keys.press("e")
    await expect(page.get_by_role("status").filter(has_text="Archived: Key two")).to_be_visible()
    await expect(row(page, "Key two")).to_have_count(0)
    await expect(third).to_be_focused()
    await keys.press("k")
    await leads_on(page, "Enter")
    await expect(page.get_by_role("heading", name="Key one")).to_be_visible()
    mark = page.get_by_role("button", name=re.compile("Mark (un)?read"))
    before = await mark.inner_text()  # being in front of its owner for some seconds may have marked it
    await leads_on(page, "m")
    await expect(mark).to_have_text({"Mark read": "Mark unread", "Mark unread": "Mark read"}[before])
    await leads_on(page, "u")
    await expect(page.get_by_label("New task")).to_be_visible()
    await keys.press("j")
    await leads_on(page, "Enter")
    await expect(page.get_by_role("heading", name="Key one")).to_be_visible()
    await leads_on(page, "e")
    await expect(page.get_by_role("status").filter(has_text="Archived: Key one")).to_be_visible()


async def test_keys_search_write_and_leave_fields_alone(web: Web) -> None:
    page = await web.open("/")
    keys = page.keyboard
    search, task = page.get_by_label("Search"), page.get_by_label("New task")
    await keys.press("/")
    await expect(search).to_be_focused()
    await expect(search).to_have_value("")
    await keys.type("jek/m?u")
    await expect(search).to_have_value("jek/m?u")
    await keys.press("Escape")
    await expect(search).not_to_be_focused()
    await keys.press("n")
    await expect(task).to_be_focused()
    await keys.type("[[say sent by keys]]")
    await keys.press("Control+Enter")
    await expect(said(page)).to_contain_text("sent by keys")


async def test_single_keys_can_be_switched_off(web: Web) -> None:
    await web.ask("[[say keys off]]", "Keys off")
    page = await web.open("/")
    keys = page.keyboard
    await keys.press("?")
    dialog = page.get_by_role("dialog", name="Keyboard")
    await expect(dialog).to_be_visible()
    await expect(dialog).to_contain_text("mark read or unread")
    await keys.press("j")  # not behind the dialog
    await dialog.get_by_label("Single-key shortcuts").uncheck()
    await button(dialog, "Close").click()
    await expect(dialog).to_be_hidden()
    for _ in range(2):
        await keys.press("j")
        await keys.press("/")
        assert await page.evaluate("document.activeElement === document.body")
        await page.goto(f"{web.served.url}/?view=all")
        await expect(row(page, "Keys off")).to_be_visible()
    await button(page, "Keyboard shortcuts").click()
    await dialog.get_by_label("Single-key shortcuts").check()
    await keys.press("Escape")
    await expect(dialog).to_be_hidden()
    await keys.press("/")
    await expect(page.get_by_label("Search")).to_be_focused()


_RING = """
() => {
  const element = document.activeElement, own = getComputedStyle(element);
  const row = element.closest("li"), around = row && getComputedStyle(row);
  const seen = (style) => style && style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
  return [element.tagName, element.innerText || element.id, seen(own) || seen(around)];
}
"""


async def test_one_sees_where_one_is_and_can_skip_to_the_content(web: Web) -> None:
    await web.ask_until("[[say with a ring]]", "idle", "With a ring", person="Guy")
    page = await web.open("/", "Guy")
    await page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to content")
    await expect(skip).to_be_focused()
    await expect(skip).to_be_in_viewport(ratio=1)
    await page.keyboard.press("Enter")
    assert await page.evaluate("document.activeElement.id") == "main"
    await page.keyboard.press("Tab")
    await expect(page.get_by_label("New task")).to_be_focused()
    await page.goto(f"{web.served.url}/?view=all")
    seen = []
    for _ in range(60):
        await page.keyboard.press("Tab")
        tag, words, ring = await page.evaluate(_RING)
        if tag == "BODY":
            break
        seen.append(words)
        assert ring, f"nobody sees that {tag} {words!r} has the focus"
    for words in ("Inbox", "Log out", "text", "q", "Archive"):
        assert words in seen
    assert any("With a ring" in words for words in seen)


# -- without a script ------------------------------------------------------------------------------------


async def reload_until(page: Page, found: Locator) -> None:
    """Follow the page's own link until something is there."""
    for _ in range(200):
        if await found.count():
            return
        await page.get_by_role("link", name="Load again").click()
        await page.wait_for_timeout(100)
    raise AssertionError(f"it never came: {found}")


async def test_everything_works_without_a_script(web: Web) -> None:
    page = await web.window(java_script_enabled=False)
    await web.log_in(page, "Ada")
    await send(page, call("submit_expense", amount=4, note="blind"))
    await reload_until(page, page.get_by_role("link", name="Review"))
    await page.get_by_role("link", name="Review").click()
    await page.get_by_label("amount").fill("4,5")
    await button(page, "Approve edited").click()
    await expect(page.get_by_label("amount")).to_have_accessible_description(re.compile("write 4.5"))
    await page.get_by_label("amount").fill("4.5")
    await button(page, "Approve edited").click()
    await expect(page.get_by_text("Edited by Ada in web")).to_be_visible()
    await page.get_by_role("link", name="To the thread").click()
    await reload_until(page, said(page))
    await expect(said(page)).to_contain_text("filed 4.5 EUR for blind")
    assert ran(web, "blind") == [{"amount": 4.5, "note": "blind"}]

    await page.get_by_role("link", name="Inbox", exact=True).first.click()
    await page.get_by_label("Search").fill("blind")
    await button(page, "Search").click()
    await expect(page.locator("mark").first).to_have_text("blind")

    await button(page, "Stop everything").click()
    try:
        await expect(page.get_by_text("Everything is stopped, by Ada")).to_be_visible()
        await expect(page.get_by_label("Search")).to_have_value("blind")
        await button(page, "Resume").click()
        await expect(page.get_by_text("Everything is stopped")).to_have_count(0)
    finally:
        await web.served.http.post("/api/resume")
    await button(page, "Log out").click()
    await expect(page.get_by_role("heading", name="Log in")).to_be_visible()


# -- work that starts by itself ------------------------------------------------------------------------------


async def test_a_trigger_is_made_and_run_with_the_keyboard_alone(web: Web) -> None:
    page = await web.open("/triggers")
    await page.get_by_label("Name").focus()
    for text in ("By keyboard", "[[say typed]]", "0 25 * * *"):
        await page.keyboard.type(text)
        await page.keyboard.press("Tab")
    web.expect_refused("/triggers#new")
    await page.get_by_label("Name").press("Enter")
    await expect(page.get_by_role("alert")).to_contain_text("see what is marked")
    when = page.get_by_label("When", exact=True)
    await expect(when).to_have_accessible_description(re.compile('"0 25 \\* \\* \\*" is no schedule'))
    await expect(page.get_by_label("What is to be done")).to_have_value("[[say typed]]")
    await when.fill("0 5 29 2 *")
    await when.press("Enter")
    await expect(page.get_by_role("heading", name="By keyboard")).to_be_visible()
    await button(page, "Run now").focus()
    await page.keyboard.press("Enter")
    await expect(said(page).last).to_contain_text("typed")


async def test_the_form_of_a_trigger_shows_what_is_for_its_kind(web: Web) -> None:
    page = await web.open("/triggers")
    of_clocks, of_webhooks = page.get_by_label("When", exact=True), page.get_by_label("proves itself")
    await expect(of_clocks).to_be_visible()
    await expect(of_webhooks).to_be_hidden()
    await page.get_by_label("Started by").select_option("webhook")
    await expect(of_clocks).to_be_hidden()
    await expect(of_webhooks).to_be_visible()


async def test_the_page_of_a_trigger_follows_what_it_does(web: Web) -> None:
    made = await web.api("POST", "/triggers", {"name": "Followed", "cron": "@yearly", "prompt": "[[say ok]]"})
    page = await web.open(f"/triggers/{made['id']}")
    await expect(page.get_by_role("table")).to_contain_text("It has not fired yet.")
    await stay(page)
    await web.api("POST", f"/triggers/{made['id']}/run")
    await expect(page.get_by_role("table")).to_contain_text("succeeded")
    await expect_same(page)


async def test_a_secret_stays_until_it_was_read_whatever_happens_meanwhile(web: Web) -> None:
    page = await web.open("/triggers")
    await page.get_by_label("Started by").select_option("webhook")
    await page.get_by_label("Name").fill("Kept")
    await page.get_by_label("What is to be done").fill("[[say ok]]")
    await button(page, "Create").click()
    secret = page.locator("pre")
    await expect(secret).to_be_visible()
    shown = await secret.text_content()
    async with page.expect_response(lambda response: "/triggers" in response.url):
        await web.api("POST", "/triggers/Kept/run")
    await expect(page.get_by_role("table")).to_contain_text("succeeded")
    assert await secret.text_content() == shown
