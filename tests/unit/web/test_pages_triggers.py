"""Can triggers be made, changed, run and removed with forms, without losing what was typed?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import httpx
import pytest

from pizzabot.ids import new_id
from pizzabot.messages import FAILURES
from pizzabot.triggers import firing, store
from pizzabot.triggers.trigger import Trigger
from tests.fakes.rows import ADA
from tests.fakes.runtime import Served
from tests.unit.web.asked import store_of
from tests.unit.web.browser import Browser, at_home, check_page, path_of
from tests.unit.web.tree import Node, buttons, check, labels, sent_of, shown, tree

pytestmark = pytest.mark.asyncio(loop_scope="package")
TYPED = {"prompt": "Do <b>this</b>.", "cron": "0 8 * * 1", "model": "openai:mock"}
DECIDED = '[[call bookkeeper submit_expense {"amount": 4, "note": "tea"}]]'


async def filled(
    browser: Browser, path: str, button: str, typed: Mapping[str, str] | None = None
) -> httpx.Response:
    """The answer to a form, filled in as somebody does who changes only these fields."""
    page = await shown(browser, path)
    for form in page.all("form"):
        for node in buttons(page, form):
            if node.text == button:
                sent = sent_of(page, form, node)
                assert (typed or {}).keys() <= sent.keys()
                return await browser.send(
                    form.attrs.get("action", path).partition("#")[0], sent | dict(typed or {})
                )
    raise AssertionError(f"there is no button {button}")


async def made(served: Served, **fields: object) -> Trigger:
    written = {"name": new_id(), "cron": "0 3 1 1 *", "prompt": "[[say done]]"} | fields
    return (await served.doors.triggers.create(written, ADA, "web")).trigger


async def now(served: Served, trigger: Trigger) -> Trigger:
    return await served.doors.triggers.get(trigger.id, ADA)


def value(page: Node, name: str) -> str:
    """What stands in a field."""
    (node,) = [node for node in page.walk() if node.attrs.get("name") == name and node.tag != "button"]
    if node.tag == "textarea":
        return node.text.removeprefix("\n")
    if node.tag == "select":
        (chosen,) = [option for option in node.all("option") if "selected" in option.attrs]
        return chosen.attrs["value"]
    return node.attrs["value"]


async def test_a_schedule_is_made_by_its_form(served: Served) -> None:
    name = new_id()
    async with at_home(served) as browser:
        typed = {"name": name, "prompt": "First line.\r\nSecond.", "cron": "0 8 * * mon-fri"}
        answer = await filled(browser, "/triggers", "Create", typed)
        page = await shown(browser, path_of(answer))
        check(page)
        assert page.one("h1").text == name
        assert "weekdays at 08:00 (Europe/Amsterdam)" in page.text
        assert name in (await shown(browser, "/triggers")).text
    trigger = await served.doors.triggers.get(name, ADA)
    assert (trigger.kind, trigger.owner, trigger.prompt) == ("cron", "Ada", "First line.\nSecond.")
    assert (trigger.timezone, trigger.overlap, trigger.misfire) == ("Europe/Amsterdam", "skip", "latest")


async def test_every_field_of_the_form_counts(served: Served) -> None:
    typed = {
        "name": new_id(),
        "prompt": "Look.",
        "cron": "@daily",
        "timezone": "Asia/Tokyo",
        "channels": "web, Bob",
        "skills": "bookkeeper",
        "model": "openai:mock",
        "budget_usd": "0.25",
        "overlap": "allow",
        "misfire": "skip",
        "grace": "1h",
    }
    async with at_home(served) as browser:
        path = path_of(await filled(browser, "/triggers", "Create", typed))
        page = await shown(browser, path)
        assert {name: value(page, name) for name in typed} == typed
        path_of(await filled(browser, path, "Save"))
    trigger = await served.doors.triggers.get(typed["name"], ADA)
    assert (trigger.channels, trigger.skills, trigger.budget_usd) == (("web", "Bob"), ("bookkeeper",), 0.25)
    assert (trigger.timezone, trigger.overlap, trigger.misfire, trigger.grace) == (
        *("Asia/Tokyo", "allow", "skip"),
        "1h",
    )


async def test_what_nobody_wrote_stays_so_when_the_form_is_saved(served: Served) -> None:
    trigger = await made(served)
    async with at_home(served) as browser:
        path_of(await filled(browser, f"/triggers/{trigger.id}", "Save", {"misfire": "all"}))
    after = await now(served, trigger)
    assert (after.overlap, after.defaulted) == ("queue", trigger.defaulted)


WRONG = [
    ("cron", {"cron": "every day"}, '"every day" is no schedule'),
    ("cron", {"cron": ""}, "It is missing; write when it fires"),
    ("timezone", {"timezone": "Mars/Olympus"}, "Mars/Olympus"),
    ("prompt", {"prompt": " "}, "It is missing; write what is to be done."),
    ("budget_usd", {"budget_usd": "cheap"}, "It must be a number of dollars, such as 0.50."),
    ("budget_usd", {"budget_usd": "nan"}, "greater than 0"),
    ("grace", {"grace": "soon"}, "is not a duration"),
    ("channels", {"channels": "fax"}, 'It does not know "fax"'),
    ("prompt", {"kind": "webhook", "prompt": "{{ x }}", "cron": ""}, "The prompt cannot be filled in"),
]


def marked(page: Node) -> dict[str, str]:
    """By field, what the page says beside it, as a screen reader finds it."""
    inputs = [f for kind in ("input", "textarea", "select") for f in page.all(kind, aria_invalid="true")]
    return {
        str(f.attrs["name"]): page.one("p", id=str(f.attrs["aria-describedby"]).split()[0]).text
        for f in inputs
    }


@pytest.mark.parametrize(("field", "wrong", "said"), WRONG)
async def test_what_cannot_be_comes_back_as_it_was_typed_with_the_reason_beside_it(
    served: Served, field: str, wrong: dict[str, str], said: str
) -> None:
    typed = TYPED | {"name": new_id()} | wrong
    async with at_home(served) as browser:
        answer = await filled(browser, "/triggers", "Create", typed)
        check_page(answer, 422)
        page = tree(answer.text)
        check(page)
        assert page.one("p", role="alert").text == "Nothing was saved: see what is marked."
        assert marked(page).keys() == {field}
        assert said in marked(page)[field]
        assert {name: value(page, name) for name in typed} == typed
        assert "open" in page.one("details").attrs
        if "kind" in wrong:
            return
        trigger = await made(served)
        answer = await filled(browser, f"/triggers/{trigger.id}", "Save", typed)
        check_page(answer, 422)
        page = tree(answer.text)
        assert said in marked(page)[field]
        assert {name: value(page, name) for name in typed} == typed
    assert await now(served, trigger) == trigger


async def test_all_that_is_wrong_is_marked_at_once(served: Served) -> None:
    typed = {
        "name": "",
        "prompt": "",
        "cron": "daily",
        "channels": "fax, pigeon",
        "skills": "juggling",
        "model": "gpt",
        "budget_usd": "0",
        "grace": "x",
    }
    async with at_home(served) as browser:
        page = tree((await filled(browser, "/triggers", "Create", typed)).text)
    check(page)
    assert marked(page).keys() == typed.keys()
    assert "pigeon" in marked(page)["channels"]


async def test_a_form_that_leaves_out_its_kind_comes_back_like_any_other(served: Served) -> None:
    async with at_home(served) as browser:
        page = await shown(browser, "/triggers")
        (form,) = [form for form in page.all("form") if "fields" in form.classes]
        (create,) = [node for node in buttons(page, form) if node.text == "Create"]
        sent = {name: text for name, text in sent_of(page, form, create).items() if name != "kind"}
        check_page(await browser.send("/triggers", sent), 422)


async def test_a_name_that_is_taken_is_said_beside_it(served: Served) -> None:
    await made(served, name="Taken already")
    async with at_home(served) as browser:
        answer = await filled(browser, "/triggers", "Create", TYPED | {"name": "Taken already"})
    check_page(answer, 409)
    assert "Another trigger is named Taken already" in marked(tree(answer.text))["name"]


async def test_what_a_form_hides_neither_stops_a_webhook_nor_is_written(served: Served) -> None:
    typed = TYPED | {"name": new_id(), "kind": "webhook", "cron": "daily", "timezone": "Mars/X", "grace": "x"}
    async with at_home(served) as browser:
        check_page(await filled(browser, "/triggers", "Create", typed), 200)
    assert "timezone" in (await served.doors.triggers.get(typed["name"], ADA)).defaulted


async def test_what_is_wrong_with_a_field_that_is_not_there_stands_above_the_form(served: Served) -> None:
    trigger = await made(served, kind="webhook", cron=None)
    gone = replace(trigger, timezone="Mars/X", defaulted=())  # a zone that this machine knew once
    await store_of(served).write(lambda c: store.put(c, gone, new=False))
    async with at_home(served) as browser:
        page = tree((await filled(browser, f"/triggers/{trigger.id}", "Save", {"prompt": "x"})).text)
    assert "Mars/X" in page.one("p", role="alert").text
    assert marked(page) == {}


@pytest.mark.parametrize("signing", ["secret", "hmac"])
async def test_the_secret_of_a_webhook_is_shown_once(served: Served, signing: str) -> None:
    name = new_id()
    typed = {"kind": "webhook", "name": name, "prompt": "Look.", "signing": signing}
    async with at_home(served) as browser:
        answer = await filled(browser, "/triggers", "Create", typed)
        check_page(answer, 200)
        page = tree(answer.text)
        secret = page.one("pre").text
        assert len(secret) >= 32
        trigger = await served.doors.triggers.get(name, ADA)
        assert f"POST {served.doors.url()}/hooks/{trigger.id}" in page.text
        again = await browser.get(f"/triggers/{trigger.id}")
        assert secret not in again.text
        answer = await filled(browser, f"/triggers/{trigger.id}", "New secret")
        assert tree(answer.text).one("pre").text != secret
        path_of(await filled(browser, f"/triggers/{trigger.id}", "Save", {"prompt": "Other."}))
    after = await now(served, trigger)
    assert (after.signing, after.prompt, after.overlap) == (signing, "Other.", "queue")


async def test_run_now_leads_to_the_thread_and_the_firing_is_listed(served: Served) -> None:
    trigger = await made(served)
    async with at_home(served) as browser:
        path = path_of(await filled(browser, f"/triggers/{trigger.id}", "Run now"))
        assert path.startswith("/threads/")
        await served.wait(path.removeprefix("/threads/"), "idle")
        page = await shown(browser, f"/triggers/{trigger.id}")
        check(page)
        assert "run now" in page.one("table").text
        assert path in [node.attrs["href"] for node in page.one("table").all("a")]


async def test_while_the_one_before_is_at_work_run_now_says_so_there(served: Served) -> None:
    trigger = await made(served, prompt="[[sleep 0.5]]")
    async with at_home(served) as browser:
        path_of(await filled(browser, f"/triggers/{trigger.id}", "Run now"))
        answer = await filled(browser, f"/triggers/{trigger.id}", "Run now")
        check_page(answer, 409)
        assert "still at work" in tree(answer.text).text


async def test_while_the_one_before_waits_for_a_person_run_now_leads_to_its_thread(served: Served) -> None:
    trigger = await made(served, prompt=DECIDED)
    async with at_home(served) as browser:
        thread = path_of(await filled(browser, f"/triggers/{trigger.id}", "Run now"))
        await served.wait(thread.removeprefix("/threads/"), "waiting")
        answer = await filled(browser, f"/triggers/{trigger.id}", "Run now")
        check_page(answer, 409)
        page = tree(answer.text)
        check(page)
        assert page.one("p", role="alert").text == "The one before waits for a decision; decide it first."
        assert thread in [node.attrs["href"] for node in page.all("a")]
    other = await served.http.post(f"/api/triggers/{trigger.id}/run")
    error = other.json()["error"]
    assert (error["code"], error["thread_id"]) == ("at_work", thread.removeprefix("/threads/"))


async def test_off_on_and_removed(served: Served) -> None:
    trigger = await made(served)
    path = f"/triggers/{trigger.id}"
    async with at_home(served) as browser:
        assert path_of(await filled(browser, path, "Switch off")) == path
        assert not (await now(served, trigger)).enabled
        page = await shown(browser, path)
        assert "Switch on" in labels(page)
        assert "Next:" not in page.text
        path_of(await filled(browser, path, "Switch on"))
        assert (await now(served, trigger)).enabled
        assert path_of(await filled(browser, path, "Remove it for good")) == "/triggers"
        check_page(await browser.get(path), 404)


async def test_a_paused_trigger_says_why_and_can_be_switched_on(served: Served) -> None:
    trigger = await made(served)
    await store_of(served).write(
        lambda c: firing._pause(c, trigger, "failed 3 times in a row", served.doors.clock.now())
    )
    async with at_home(served) as browser:
        assert "failed 3 times in a row" in (await shown(browser, "/triggers")).text
        page = await shown(browser, f"/triggers/{trigger.id}")
        assert "Paused: failed 3 times in a row" in page.text
        path_of(await filled(browser, f"/triggers/{trigger.id}", "Switch on"))
    assert (await now(served, trigger)).fires


async def test_a_place_whose_channel_is_off_is_warned_of_on_the_triggers_page(served: Served) -> None:
    typed = {"name": new_id(), "prompt": "Look.", "cron": "@daily", "channels": "web, slack:C0123"}
    async with at_home(served) as browser:
        page = await shown(browser, path_of(await filled(browser, "/triggers", "Create", typed)))
        check(page)
        assert "channels: names slack:C0123, and slack is off" in page.text
        other = await made(served, channels=["web", "Bob"])
        assert "is off" not in (await shown(browser, f"/triggers/{other.id}")).text


async def test_a_zone_that_is_gone_breaks_no_page(served: Served) -> None:
    trigger = await made(served)
    gone = replace(trigger, timezone="Mars/Olympus", paused="the zone is gone", next_run_at=None)
    await store_of(served).write(lambda c: store.put(c, gone, new=False))
    async with at_home(served) as browser:
        for path in ("/triggers", f"/triggers/{trigger.id}"):
            assert "0 3 1 1 * (Mars/Olympus)" in (await shown(browser, path)).text
    await served.doors.triggers.remove(trigger.id, ADA, "web")


async def test_others_triggers_are_not_there(served: Served) -> None:
    trigger = await made(served, name="Of Ada alone " + new_id())
    async with at_home(served, "Cay") as browser:
        assert trigger.name not in (await shown(browser, "/triggers")).text
        check_page(await browser.get(f"/triggers/{trigger.id}"), 404)
        check_page(await browser.post(f"/triggers/{trigger.id}", {"do": "remove"}), 404)
    assert await now(served, trigger) == trigger


async def test_names_and_prompts_are_nothing_but_text(served: Served) -> None:
    hostile = '<script>alert(1)</script>"&'
    trigger = await made(served, name=hostile, prompt=hostile + "</textarea><b>")
    async with at_home(served) as browser:
        for path in ("/triggers", f"/triggers/{trigger.id}"):
            page = await shown(browser, path)
            check(page)
            assert hostile in page.text
        assert value(page, "prompt") == hostile + "</textarea><b>"
    await served.doors.triggers.remove(trigger.id, ADA, "web")


async def test_the_question_after_failures_reads_as_one_and_its_answer_is_heeded(served: Served) -> None:
    """On the action's own page: what failed, what either answer does, and no arguments."""
    trigger = await made(served, prompt="[[fail 400 9]]", overlap="allow")
    for _ in range(3):
        fired = await served.doors.triggers.run_now(trigger.id, ADA, "web")
        assert fired.thread_id is not None
        await served.wait(fired.thread_id, "failed")
    await served.doors.triggers._ticker.follow(served.doors.clock.now())
    found = (await served.http.get(f"/api/threads/{fired.thread_id}")).json()
    (asked,) = found["actions"]
    assert (asked["kind"], asked["tool"], asked["allowed_decisions"]) == (
        "limit",
        FAILURES,
        ["approve", "reject"],
    )
    async with at_home(served) as browser:
        page = await shown(browser, f"/actions/{asked['id']}")
        assert page.one("h1").text == f"“{trigger.name}” failed 3 times in a row and is paused. Let it go on?"
        assert "Approve lets it fire at its next time again; Reject switches it off." in page.text
        assert "limit" not in page.one("main").text.lower()
        answer = await filled(browser, f"/actions/{asked['id']}", "Reject")
        assert answer.status_code == 303
    await served.doors.triggers._ticker.follow(served.doors.clock.now())
    after = await now(served, trigger)
    assert (after.enabled, after.paused) == (False, None)
