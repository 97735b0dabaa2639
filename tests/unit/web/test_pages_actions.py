"""Does the form decide on exactly what it showed, and give the tool exactly what was typed?"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest
from pizzabot.adapters.web.pages.visit import csrf_of

from pizzabot.approvals import store
from pizzabot.inbox import runs
from pizzabot.messages import Action, ActionKind, ActionState, Verdict
from tests.fakes.rows import PAY_SCHEMA
from tests.fakes.runtime import Served, ledger_calls
from tests.unit.web.asked import pending, store_of, stored, word
from tests.unit.web.browser import Browser, at_home, check_page, path_of
from tests.unit.web.tree import Node, buttons, check, labels, links, sent_of, shown, tree

pytestmark = pytest.mark.asyncio(loop_scope="package")


async def now(served: Served, action: Action) -> Action:
    found = await store_of(served).read(lambda c: store.get(c, action.id))
    assert found is not None
    return found


async def form_of(browser: Browser, action: Action) -> tuple[Node, Node]:
    """The page of an action, and its form."""
    page = await shown(browser, f"/actions/{action.id}")
    return page, page.one("form", action=f"/actions/{action.id}")


async def pressed(
    browser: Browser, action: Action, decision: str, typed: Mapping[str, str | None] | None = None
) -> Any:
    """The answer to a button of the form after inputs were changed; None: not sent, as an unticked box."""
    page, form = await form_of(browser, action)
    (button,) = [node for node in buttons(page, form) if node.attrs.get("value") == decision]
    fields = sent_of(page, form, button) | dict(typed or {})
    sent = {name: value for name, value in fields.items() if value is not None}
    return await browser.send(form.attrs["action"], sent)


async def input_name(browser: Browser, action: Action, name: str) -> str:
    """Under which name the form sends an argument."""
    _, form = await form_of(browser, action)
    (label,) = [node for node in form.all("label") if node.text.strip() == name]
    if "for" not in label.attrs:
        return label.one("input").attrs["name"]
    (found,) = [node for node in form.walk() if node.attrs.get("id") == label.attrs["for"]]
    return found.attrs["name"]


def exact(value: Any) -> str:
    """One text for the same values of the same types, and for no others."""
    return json.dumps(value, sort_keys=True)


def problems(page: Node) -> str:
    return " ".join(node.text for node in page.all("p", class_="problem"))


# -- as it was asked -------------------------------------------------------------------------------------


def nested(depth: int) -> Any:
    value: Any = "deep"
    for level in range(depth):
        value = [value] if level % 2 else {"k": value}
    return value


TEXTS = [
    "",
    " ",
    "\n",
    "\r\n",
    "\r",
    "\n\nleading",
    "\r\nleading",
    "trailing\n",
    "trailing \t ",
    "  leading",
    "a\r\nb\rc\nd",
    "\ta\tb",
    "\u00a0nbsp\u00a0",
    "a\u202eb\u2066c\u200fd\u200d",
    "\ufeffbom",
    "\u2028line\u2029",
    "\x0b\x0c\x1b\x7f\x85",
    "nul\x00nul",
    "half \ud83d pair",
    "\udc00",
    "emoji 👩‍👩‍👧 ü",
    "</textarea><script>alert(1)</script>",
    '"quoted"',
    "'single' & &amp; &#10;",
    "true",
    "null",
    "42",
    "4.20",
    "1e400",
    "{}",
    "[1]",
    "x" * 100_000,
    ("y" * 99 + "\n") * 1000,
    "(not given)",
]
VALUES: list[Any] = [
    0,
    -1,
    2**53 + 1,
    10**40,
    0.1,
    -0.0,
    1.0,
    1e22,
    1e308,
    5e-324,
    True,
    False,
    None,
    [],
    {},
    [None, True, 1, 1.0, "1", [[]], {"a": [{}]}],
    ["a", "b"],
    ["a", "b "],
    ["a\nb", ""],
    [1, 2],
    [1, 2.0],
    {"b": 1, "a": {"ü": "\u202e", "": None}},
    {"\ud800": "\ud800"},
    nested(45),
    nested(60),
]
NAMES = ["arg.0", "fields", "digest", "csrf", "a/b~c", "ü\u202e", '"><b>', " ", "", "__proto__", "x" * 500]
TYPES = ["string", "number", "integer", "boolean", "array", "object", "null"]


def odd_arguments() -> dict[str, Any]:
    numbered: dict[str, Any] = {f"t{number}": text for number, text in enumerate(TEXTS)}
    numbered |= {f"v{number}": value for number, value in enumerate(VALUES)}
    return numbered | {name: f"of {len(name)}" for name in NAMES} | {"note": "as it was"}


def typed_as(kind: str | list[str] | None) -> dict[str, Any]:
    """A schema that says this of every argument."""
    said: dict[str, Any] = {"type": kind} if kind is not None else {}
    return {"properties": {name: said for name in odd_arguments() if name != "note"}}


SCHEMAS: dict[str, dict[str, Any]] = {
    "none": {},
    "any": typed_as(None),
    "all": typed_as(TYPES),
    **{kind: typed_as(kind) for kind in ("string", "number", "boolean", "array", "object")},
    "choices": {"properties": {name: {"enum": ["a", 1, None]} for name in odd_arguments() if name != "note"}},
}


@pytest.mark.parametrize("schema", SCHEMAS)
async def test_what_nobody_touched_is_approved_as_it_was_asked(served: Served, schema: str) -> None:
    args = odd_arguments()
    action = await pending(served, args, args_schema=SCHEMAS[schema])
    async with at_home(served) as ada:
        check((await form_of(ada, action))[0])
        response = await pressed(ada, action, "approve")
        assert response.status_code == 303, problems(tree(response.text))
    decided = await now(served, action)
    assert decided.state == ActionState.APPROVED
    assert exact(decided.final_args) == exact(args)


@pytest.mark.parametrize("schema", ["none", "any", "all"])
async def test_an_edit_leaves_everything_else_as_it_was_asked(served: Served, schema: str) -> None:
    args = {name: value for name, value in odd_arguments().items() if "\ud800" not in str(value)}
    action = await pending(served, args, args_schema=SCHEMAS[schema])
    async with at_home(served) as ada:
        name = await input_name(ada, action, "note")
        response = await pressed(ada, action, "edit", {name: "changed"})
        assert response.status_code == 303, problems(tree(response.text))
    decided = await now(served, action)
    assert decided.state == ActionState.EDITED
    assert exact(decided.final_args) == exact(args | {"note": "changed"})
    assert exact(decided.args) == exact(args)


async def test_what_was_refused_once_is_still_as_it_was_asked(served: Served) -> None:
    """The page after an error is a form, too: what nobody touched survives it."""
    args = odd_arguments()
    action = await pending(served, args)
    async with at_home(served) as ada:
        refused = await pressed(ada, action, "edit")
        check_page(refused, 422)
        page = tree(refused.text)
        form = page.one("form", action=f"/actions/{action.id}")
        (button,) = [node for node in buttons(page, form) if node.attrs.get("value") == "approve"]
        response = await ada.send(form.attrs["action"], sent_of(page, form, button))
        assert response.status_code == 303, problems(tree(response.text))
    assert exact((await now(served, action)).final_args) == exact(args)


# -- as it was typed -------------------------------------------------------------------------------------

PERSON = {"type": "object", "properties": {"a": {"type": "integer"}}}
EDITS: list[tuple[Any, dict[str, Any], str | None, Any]] = [
    (1, {"type": "integer"}, "42", 42),
    (1, {"type": "integer"}, " -7 ", -7),
    (1, {"type": "number"}, "42.5", 42.5),
    (1.5, {"type": "number"}, "42", 42),
    (1.5, {"type": "number"}, "1e3", 1000.0),
    ("a", {"type": "string"}, "42", "42"),
    ("a", {"type": "string"}, "true", "true"),
    ("a", {"type": "string"}, " b ", " b "),
    ("a", {"type": "string"}, "", ""),
    ("a\nb", {"type": "string"}, "a\r\nb\r\n", "a\nb\n"),
    ("a\nb", {"type": "string"}, "\r\na", "\na"),
    (["a"], {"type": "array", "items": {"type": "string"}}, "x\r\n\r\n y \r\n", ["x", "y"]),
    (["a"], {"type": "array", "items": {"type": "string"}}, "", []),
    ([1], {"type": "array", "items": {"type": "integer"}}, "1\r\n2", [1, 2]),
    ({"a": 1}, PERSON, '{"a": 2, "b": [1.5, "1.5", null]}', {"a": 2, "b": [1.5, "1.5", None]}),
    ([{"a": 1}], {"type": "array", "items": PERSON}, '[{"a": 9}]', [{"a": 9}]),
    ("EUR", {"enum": ["EUR", "USD", 3]}, "USD", "USD"),
    ("EUR", {"enum": ["EUR", "USD", 3]}, "3", 3),
    (True, {"type": "boolean"}, None, False),
    (False, {"type": "boolean"}, "true", True),
    (True, {"type": ["boolean", "null"]}, "false", False),
    (None, {"type": ["integer", "null"]}, "5", 5),
]


@pytest.mark.parametrize(("proposed", "said", "typed", "runs"), EDITS, ids=range(len(EDITS)))
async def test_an_edit_keeps_the_type_of_the_tool(
    served: Served, proposed: Any, said: dict[str, Any], typed: str | None, runs: Any
) -> None:
    schema = {"type": "object", "properties": {"x": said}, "additionalProperties": False}
    action = await pending(served, {"x": proposed}, args_schema=schema)
    async with at_home(served) as ada:
        response = await pressed(ada, action, "edit", {await input_name(ada, action, "x"): typed})
        assert response.status_code == 303, problems(tree(response.text))
    decided = await now(served, action)
    assert (decided.state, exact(decided.final_args)) == (ActionState.EDITED, exact({"x": runs}))
    assert exact(decided.args) == exact({"x": proposed})


async def test_what_is_not_needed_may_be_left_out_and_put_in(served: Served) -> None:
    schema = {
        "properties": {"gone": {"type": "integer"}, "new": {"type": "boolean"}, "other": {"type": "string"}}
    }
    action = await pending(served, {"gone": 1}, args_schema=schema)
    async with at_home(served) as ada:
        names = [await input_name(ada, action, name) for name in ("gone", "new")]
        response = await pressed(ada, action, "edit", dict(zip(names, ("", "true"), strict=True)))
        assert response.status_code == 303
        page = await shown(ada, f"/actions/{action.id}")
        assert [node.text.strip() for node in page.one("dl", class_="args").all("ins")] == [
            "left out",
            "true",
        ]
    assert (await now(served, action)).final_args == {"new": True}


WRONG: list[tuple[Any, dict[str, Any], str, str]] = [
    (1, {"type": "integer"}, "1.5", "is not a whole number"),
    (1, {"type": "integer"}, "x", "is not a whole number"),
    (1, {"type": "integer"}, "٤٢", "is not a whole number"),
    (1, {"type": "integer"}, "9" * 5000, "too many digits"),
    (1.5, {"type": "number"}, "1,5", "write 1.5"),
    (1.5, {"type": "number"}, "1e400", "too large"),
    (1.5, {"type": "number"}, "NaN", "is not a number"),
    (1.5, {"type": "number", "maximum": 10}, "11", "10 or less"),
    ("a", {"type": "string", "minLength": 2}, "b", "at least 2"),
    ({"a": 1}, PERSON, "{", "is not JSON"),
    ({"a": 1}, PERSON, '{"a": 1e400}', "too large"),
    ({"a": 1}, PERSON, '{"a": NaN}', "NaN"),
    ({"a": 1}, PERSON, '{"a": 1, "a": 2}', "twice"),
    ({"a": 1}, PERSON, "[" * 60 + "]" * 60, "nested too deeply"),
    ({"a": 1}, PERSON, "[" * 50_000 + "]" * 50_000, "nested too deeply"),
    ({"a": 1}, PERSON, '{"a": "x"}', "is not of type"),
    ([1], {"type": "array", "items": {"type": "integer"}}, "1\r\nx", "line 2"),
    ("EUR", {"enum": ["EUR", "USD"]}, "GBP", "is not one of the choices"),
    (1, {"type": "integer"}, "", "is needed"),
    (True, {"type": ["boolean", "null"]}, "perhaps", "is neither true nor false"),
]


@pytest.mark.parametrize(("proposed", "said", "typed", "error"), WRONG, ids=range(len(WRONG)))
async def test_a_wrong_value_stays_where_it_was_typed_beside_what_is_wrong_with_it(
    served: Served, proposed: Any, said: dict[str, Any], typed: str, error: str
) -> None:
    schema = {"properties": {"x": said, "other": {"type": "string"}}, "required": ["x"]}
    action = await pending(served, {"x": proposed, "other": "o"}, args_schema=schema)
    async with at_home(served) as ada:
        names = {name: await input_name(ada, action, name) for name in ("x", "other")}
        before = await stored(served, action.thread_id)
        changes = {names["x"]: typed, names["other"]: "changed", "reason": "because"}
        refused = await pressed(ada, action, "edit", changes)
        check_page(refused, 422)
        page = tree(refused.text)
        check(page)
        form = page.one("form", action=f"/actions/{action.id}")
        (wrong,) = [node for node in form.walk() if node.attrs.get("name") == names["x"]]
        (hint,) = [node for node in form.walk() if node.attrs.get("id") == wrong.attrs["aria-describedby"]]
        assert error in hint.one("b", class_="error").text
        assert wrong.attrs["aria-invalid"] == "true"
        kept = sent_of(page, form)
        if wrong.tag != "select":
            assert kept[names["x"]] == typed
        assert (kept[names["other"]], kept["reason"]) == ("changed", "because")
        assert await now(served, action) == action
        after = await stored(served, action.thread_id)
        assert {name for name in after if after[name] != before[name]} <= {"audit"}


async def test_approve_is_refused_when_a_value_was_changed(served: Served) -> None:
    action = await pending(served, {"x": "a", "n": 1})
    async with at_home(served) as ada:
        name = await input_name(ada, action, "n")
        for typed in ("2", "x", "1 ", ""):
            refused = await pressed(ada, action, "approve", {name: typed})
            check_page(refused, 422)
            page = tree(refused.text)
            assert "Press Approve edited to use them" in problems(page)
            assert sent_of(page, page.one("form", action=f"/actions/{action.id}"))[name] == typed
        assert await now(served, action) == action


async def test_approve_edited_is_refused_when_no_value_was_changed(served: Served) -> None:
    action = await pending(served, {"x": "a"})
    async with at_home(served) as ada:
        refused = await pressed(ada, action, "edit")
        check_page(refused, 422)
        assert "No value was changed" in problems(tree(refused.text))
        assert await now(served, action) == action


async def test_where_approve_is_not_possible_an_edit_may_leave_everything(served: Served) -> None:
    verdicts = (Verdict.EDIT, Verdict.REJECT)
    action = await pending(served, {"x": "a"}, allowed_decisions=verdicts)
    async with at_home(served) as ada:
        assert "Approve" not in labels(await shown(ada, f"/actions/{action.id}"))
        assert (await pressed(ada, action, "edit")).status_code == 303
    assert (await now(served, action)).final_args == {"x": "a"}


async def test_a_changed_value_shows_what_it_was(served: Served) -> None:
    action = await pending(served, {"x": "before", "n": 1})
    async with at_home(served) as ada:
        names = [await input_name(ada, action, name) for name in ("x", "n")]
        refused = await pressed(ada, action, "edit", {names[0]: "behind", names[1]: "wrong"})
        changed = [node.text for node in tree(refused.text).all("div") if "changed" in node.classes]
        assert ["was before" in text for text in changed] == [True, False]
        assert (await pressed(ada, action, "edit", {names[0]: "behind"})).status_code == 303
        page = await shown(ada, f"/actions/{action.id}")
        facts = page.one("dl", class_="args")
        assert [node.text for node in facts.all("del")] == ["before"]
        assert [node.text for node in facts.all("ins")] == ["behind"]


# -- other words -----------------------------------------------------------------------------------------


async def test_a_rejection_carries_its_reason(served: Served) -> None:
    for typed, kept in (("too\r\ndear ", "too\ndear"), ("", None), (" ", None)):
        action = await pending(served)
        async with at_home(served) as ada:
            response = await pressed(ada, action, "reject", {"reason": typed})
            assert response.headers["location"] == f"/actions/{action.id}"
            page = await shown(ada, f"/actions/{action.id}")
            assert ("Reason:" in page.text) is (kept is not None)
        decided = await now(served, action)
        assert (decided.state, decided.reason, decided.final_args) == (ActionState.REJECTED, kept, None)


async def test_a_response_stands_in_for_the_tool(served: Served) -> None:
    verdicts = (Verdict.APPROVE, Verdict.RESPOND)
    action = await pending(served, {"x": "a"}, allowed_decisions=verdicts)
    async with at_home(served) as ada:
        for empty in ("", " \r\n "):
            check_page(await pressed(ada, action, "respond", {"response": empty}), 422)
        long = await pressed(ada, action, "respond", {"response": "x" * 10_001})
        check_page(long, 422)
        page = tree(long.text)
        assert len(page.one("textarea", name="response").text.strip()) == 10_001
        assert await now(served, action) == action
        response = await pressed(ada, action, "respond", {"response": "do it\r\ntomorrow"})
        assert response.status_code == 303
    decided = await now(served, action)
    assert (decided.state, decided.response) == (ActionState.RESPONDED, "do it\ntomorrow")
    assert (decided.decided_by, decided.decided_via) == ("Ada", "web")


@pytest.mark.parametrize(
    ("verdict", "label"),
    [(Verdict.RETRY, "Retry"), (Verdict.DONE, "It was done"), (Verdict.FAILED, "It failed")],
)
async def test_a_call_of_unknown_end_is_resolved(served: Served, verdict: Verdict, label: str) -> None:
    verdicts = (Verdict.RETRY, Verdict.DONE, Verdict.FAILED)
    kind = ActionKind.UNCERTAIN
    action = await pending(served, {"x": "a"}, kind=kind, allowed_decisions=verdicts)
    async with at_home(served) as ada:
        page, form = await form_of(ada, action)
        assert [node.text for node in buttons(page, form)] == ["Retry", "It was done", "It failed"]
        assert [node.attrs["name"] for node in form.all("input")] == ["csrf", "digest"]
        (button,) = [node for node in buttons(page, form) if node.text == label]
        assert button.attrs["value"] == verdict
        assert (await pressed(ada, action, verdict)).status_code == 303
    decided = await now(served, action)
    assert (decided.state, decided.decision) == (ActionState.RESOLVED, verdict)
    assert decided.final_args == ({"x": "a"} if verdict is Verdict.RETRY else None)


@pytest.mark.parametrize(("verdict", "allowed"), [(Verdict.APPROVE, 100), (Verdict.REJECT, 50)])
async def test_a_run_at_its_limit_may_go_on_or_not(served: Served, verdict: Verdict, allowed: int) -> None:
    action = await pending(
        served,
        {"limit": "model_calls", "allowance": 50},
        kind=ActionKind.LIMIT,
        tool="limit:model_calls",
        allowed_decisions=(Verdict.APPROVE, Verdict.REJECT),
    )
    async with at_home(served) as ada:
        page, form = await form_of(ada, action)
        assert [node.text for node in buttons(page, form)] == ["Approve", "Reject"]
        assert page.all("dl", class_="args") == []
        assert (await pressed(ada, action, verdict)).status_code == 303
    run = await store_of(served).read(lambda c: runs.get(c, action.run_id))
    assert run is not None
    assert run.allowance["model_calls"] == allowed


@pytest.mark.parametrize("decision", ["", "perhaps", "APPROVE", "<b>", "respond", "retry", "done"])
async def test_a_word_that_is_not_offered_decides_nothing(served: Served, decision: str) -> None:
    action = await pending(served, {"x": "a"})
    async with at_home(served) as ada:
        fields = {"fields": "1", "arg.0": "a", "digest": action.digest, "response": "r"}
        response = await ada.post(f"/actions/{action.id}", fields | {"decision": decision})
        check_page(response, 422)
        assert problems(tree(response.text))
        check_page(await ada.post(f"/actions/{action.id}", fields), 422)
        assert await now(served, action) == action


# -- what was seen ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("digest", [None, "", "0" * 64, "x", "ü"])
async def test_a_decision_on_something_else_is_refused_and_what_is_now_is_shown(
    served: Served, digest: str | None
) -> None:
    action = await pending(served, {"x": "a"})
    async with at_home(served) as ada:
        for decision, typed in (("approve", "a"), ("edit", "typed"), ("reject", "a")):
            fields = {"fields": "1", "arg.0": typed, "decision": decision}
            fields |= {"digest": digest} if digest is not None else {}
            response = await ada.post(f"/actions/{action.id}", fields)
            check_page(response, 409)
            page = tree(response.text)
            assert "changed since you saw it" in problems(page)
            form = page.one("form", action=f"/actions/{action.id}")
            kept = sent_of(page, form)
            # What was typed was for something else.
            assert (kept["digest"], kept["arg.0"]) == (action.digest, "a")
        assert await now(served, action) == action


async def test_a_late_word_learns_who_was_first_when_and_where(served: Served) -> None:
    action = await pending(served, {"x": "a"})
    async with at_home(served) as ada, at_home(served) as other:
        first, second = await form_of(ada, action), await form_of(other, action)
        (reject,) = [node for node in buttons(*first) if node.attrs.get("value") == "reject"]
        won = await ada.send(f"/actions/{action.id}", sent_of(*first, reject) | {"reason": "no"})
        assert won.status_code == 303
        for value in ("approve", "reject"):
            (button,) = [node for node in buttons(*second) if node.attrs.get("value") == value]
            late = await other.send(f"/actions/{action.id}", sent_of(*second, button))
            check_page(late, 409)
            page = tree(late.text)
            assert "Already rejected by Ada in web" in problems(page)
            assert "Rejected by Ada in web, " in page.one("p", class_="verdict rejected").text
            assert page.all("form", action=f"/actions/{action.id}") == []
    decided = await now(served, action)
    assert (decided.state, decided.reason) == (ActionState.REJECTED, "no")


@pytest.mark.parametrize(
    ("decision", "typed"), [("edit", "wrong"), ("edit", "1"), ("approve", "2"), ("", "1")]
)
async def test_a_late_word_that_is_wrong_itself_learns_first_that_it_is_late(
    served: Served, decision: str, typed: str
) -> None:
    """What is wrong with it does not matter any more, and there is no field to put it right."""
    action = await pending(served, {"n": 1})
    async with at_home(served) as ada:
        await pressed(ada, action, "reject")
        fields = {"fields": "1", "digest": action.digest, "arg.0": typed, "decision": decision}
        late = await ada.post(f"/actions/{action.id}", fields)
        check_page(late, 409)
        assert "Already rejected by Ada in web" in problems(tree(late.text))


@pytest.mark.parametrize(
    ("decision", "typed"), [("edit", "wrong"), ("edit", "1"), ("approve", "2"), ("", "1")]
)
async def test_who_may_not_decide_is_told_so_whatever_they_typed(
    served: Served, decision: str, typed: str
) -> None:
    action = await pending(served, {"n": 1}, approvers=("Bob",))
    async with at_home(served) as ada:
        fields = {"fields": "1", "digest": action.digest, "arg.0": typed, "decision": decision}
        check_page(await ada.post(f"/actions/{action.id}", fields), 403)


async def test_of_two_words_at_once_one_counts(served: Served) -> None:
    action = await pending(served, {"x": "a"})
    async with at_home(served) as ada:
        page, form = await form_of(ada, action)
        fields = sent_of(page, form)
        words = ["approve", "reject"] * 3
        sent = [ada.send(f"/actions/{action.id}", fields | {"decision": said}) for said in words]
        answers = await asyncio.gather(*sent)
    assert sorted(answer.status_code for answer in answers) == [303] + [409] * 5
    won = words[[answer.status_code for answer in answers].index(303)]
    assert (await now(served, action)).decision == won


async def test_enter_in_a_field_decides_nothing(served: Served) -> None:
    """A browser presses the first button of a form for it; when that is disabled, none."""
    action = await pending(served, {"x": "a"})
    async with at_home(served) as ada:
        _, form = await form_of(ada, action)
        first = form.all("button")[0]
        assert {"disabled", "hidden"} <= first.attrs.keys()
        assert "name" not in first.attrs


# -- who decides -----------------------------------------------------------------------------------------


async def test_who_is_not_named_sees_for_whom_it_waits_and_does_not_decide(served: Served) -> None:
    action = await pending(served, {"x": "a"}, approvers=("Bob",))
    fields = {"decision": "approve", "digest": action.digest}
    async with at_home(served) as ada:
        page = await shown(ada, f"/actions/{action.id}")
        assert page.all("form", action=f"/actions/{action.id}") == []
        assert "it waits for Bob" in page.text
        thread = await shown(ada, f"/threads/{action.thread_id}")
        assert not {"Approve", "Reject"} & set(labels(thread))
        response = await ada.post(f"/actions/{action.id}", fields)
        check_page(response, 403)
        assert "not yours to decide" in response.text
        assert await now(served, action) == action
    async with at_home(served, "Bob") as bob:
        assert (await pressed(bob, action, "approve")).status_code == 303
    assert (await now(served, action)).decided_by == "Bob"


async def test_an_owner_decides_in_the_form_when_all_who_were_named_are_gone(served: Served) -> None:
    action = await pending(served, {"x": "a"}, approvers=("Somebody Gone",))
    async with at_home(served) as ada:
        page = await shown(ada, f"/actions/{action.id}")
        assert len(page.all("form", action=f"/actions/{action.id}")) == 1
        assert (await pressed(ada, action, "approve")).status_code == 303


async def test_a_member_decides_on_what_their_own_work_asks(served: Served) -> None:
    action = await pending(served, {"x": "a"}, person="Cay")
    async with at_home(served, "Cay") as cay:
        assert (await pressed(cay, action, "approve")).status_code == 303
    assert (await now(served, action)).decided_by == "Cay"


async def test_what_expired_is_reopened_by_who_may_decide(served: Served) -> None:
    action = await pending(served, {"x": "a"}, approvers=("Bob",))
    path = f"/actions/{action.id}"
    async with at_home(served) as ada, at_home(served, "Bob") as bob:
        check_page(await bob.post(f"{path}/reopen"), 409)
        await store_of(served).write(
            lambda c: store.settle(c, action.id, [ActionState.PENDING], state=ActionState.EXPIRED)
        )
        assert "Reopen" not in labels(await shown(ada, path))
        check_page(await ada.post(f"{path}/reopen"), 403)
        late = await bob.post(path, {"decision": "approve", "digest": action.digest})
        check_page(late, 409)
        page = tree(late.text)
        assert "it expired" in problems(page)
        assert "Reopen" in labels(page)
        form = page.one("form", action=f"{path}/reopen")
        assert (await bob.send(f"{path}/reopen", sent_of(page, form))).headers["location"] == path
        assert (await now(served, action)).state == ActionState.PENDING
        assert (await pressed(bob, action, "approve")).status_code == 303


async def test_where_several_have_to_approve_the_page_says_who_did(served: Served) -> None:
    action = await pending(served, {"x": "a"}, approvers=("Ada", "Bob"), quorum=2)
    path = f"/actions/{action.id}"
    async with at_home(served) as ada, at_home(served, "Bob") as bob:
        assert "0 of 2 approved" in (await shown(bob, path)).one("p", class_="standing").text
        assert (await pressed(ada, action, "approve")).status_code == 303
        page = await shown(ada, path)
        assert page.one("p", class_="standing").text.startswith("1 of 2 approved: Ada in web, ")
        assert "Approve" not in labels(page)
        assert "Reject" in labels(page)
        assert "1 of 2 approved: Ada in web" in (await shown(bob, f"/threads/{action.thread_id}")).text
        assert (await pressed(bob, action, "approve")).status_code == 303
        assert "Approved by Ada in web and Bob in web" in (await shown(bob, path)).text


async def test_what_is_put_off_says_until_when_and_a_time_that_is_none_is_told(served: Served) -> None:
    action = await pending(served, {"x": "a"})
    path = f"/actions/{action.id}"
    async with at_home(served) as ada:
        page = await shown(ada, path)
        form = page.one("form", action=f"{path}/snooze")
        wrong = await ada.send(f"{path}/snooze", {**sent_of(page, form), "until": "when it snows"})
        check_page(wrong, 422)
        assert "no time that can be understood" in problems(tree(wrong.text))
        put_off = await ada.send(f"{path}/snooze", {**sent_of(page, form), "until": "tomorrow 9:00"})
        assert put_off.headers["location"] == path
        assert "by Ada until" in (await shown(ada, path)).text


async def test_what_was_withdrawn_is_told_without_a_form(served: Served) -> None:
    action = await pending(served, {"x": "a"})
    async with at_home(served) as ada:
        await ada.post(f"/threads/{action.thread_id}/stop")
        page = await shown(ada, f"/actions/{action.id}")
        assert "Withdrawn" in page.one("p", class_="verdict withdrawn").text
        late = await ada.post(f"/actions/{action.id}", {"decision": "approve", "digest": action.digest})
        check_page(late, 409)


# -- what does not belong to the form --------------------------------------------------------------------


async def test_fields_that_were_never_in_the_form_are_ignored(served: Served) -> None:
    action = await pending(served, {"invoice": "INV-7", "amount": 12.5}, args_schema=PAY_SCHEMA)
    forged = {
        "arg.9": "1",
        "arg.-1": "1",
        "arg.00": "x",
        "arg.x": "1",
        "arg.invoice": "evil",
        "invoice": "evil",
        "args": '{"amount": 1000}',
        "amount": "1000",
        "person": "Cay",
        "via": "terminal",
        "state": "approved",
        "approvers": "",
    }
    async with at_home(served) as ada:
        name = await input_name(ada, action, "amount")
        response = await pressed(ada, action, "edit", forged | {name: "13"})
        assert response.status_code == 303
    decided = await now(served, action)
    assert decided.final_args == {"invoice": "INV-7", "amount": 13}
    assert (decided.decided_by, decided.decided_via) == ("Ada", "web")


async def test_an_argument_of_another_action_is_not_taken(served: Served) -> None:
    """Inputs that no form of this action has: a card sends none."""
    action = await pending(served, {"x": "a"})
    async with at_home(served) as ada:
        fields = {"decision": "approve", "digest": action.digest, "arg.0": "evil"}
        assert (await ada.post(f"/actions/{action.id}", fields)).status_code == 303
    assert (await now(served, action)).final_args == {"x": "a"}


@pytest.mark.parametrize(
    ("back", "leads"),
    [
        (None, None),
        ("/threads/x", "/threads/x"),
        ("/?view=action", "/?view=action"),
        ("//evil.example", "/"),
        ("https://evil.example", "/"),
        ("/\\evil.example", "/"),
        ("javascript:alert(1)", "/"),
        ("/\r\nX: y", "/"),
        ("/logout", "/"),
        ("", "/"),
    ],
)
async def test_after_a_decision_one_is_on_a_page_of_ours(
    served: Served, back: str | None, leads: str | None
) -> None:
    action = await pending(served, {"x": "a"})
    async with at_home(served) as ada:
        response = await pressed(ada, action, "reject", {"back": back})
        assert (response.status_code, response.headers["location"]) == (
            303,
            leads or f"/actions/{action.id}",
        )


# -- in a thread -----------------------------------------------------------------------------------------


async def test_a_short_question_is_answered_in_its_thread(served: Served) -> None:
    for label, state in (("Approve", ActionState.APPROVED), ("Reject", ActionState.REJECTED)):
        action = await pending(served, {"x": "a\r\nb", "flag": True})
        here = f"/threads/{action.thread_id}"
        async with at_home(served) as ada:
            page = await shown(ada, here)
            check(page)
            form = page.one("form", action=f"/actions/{action.id}")
            (button,) = [node for node in buttons(page, form) if node.text == label]
            response = await ada.send(form.attrs["action"], sent_of(page, form, button))
            assert (response.status_code, response.headers["location"]) == (303, here)
        decided = await now(served, action)
        assert decided.state == state
        assert decided.final_args in (None, {"x": "a\r\nb", "flag": True})


async def test_a_long_question_leads_to_its_form(served: Served) -> None:
    action = await pending(served, {"x": "a" * 5000})
    async with at_home(served) as ada:
        page = await shown(ada, f"/threads/{action.thread_id}")
        assert not {"Approve", "Reject"} & set(labels(page))
        assert f"/actions/{action.id}" in links(page)


async def test_what_was_decided_is_told_in_its_thread(served: Served) -> None:
    action = await pending(served, {"x": "a"})
    async with at_home(served) as ada:
        await pressed(ada, action, "reject", {"reason": "too dear"})
        card = (await shown(ada, f"/threads/{action.thread_id}")).one("div", id=f"a{action.id}")
        assert "Rejected by Ada in web" in card.text
        assert "too dear" in card.text


# -- and then it runs ------------------------------------------------------------------------------------


async def asked_for_real(served: Served, ada: Browser, note: str) -> Action:
    """An action that a run of the agent asks for."""
    call = json.dumps({"amount": 4, "note": note})
    text = f"[[call bookkeeper submit_expense {call}]]"
    thread_id = path_of(await ada.post("/threads", {"text": text})).rpartition("/")[2]
    (row,) = (await served.wait(thread_id, "waiting"))["actions"]
    found = await store_of(served).read(lambda c: store.get(c, str(row["id"])))
    assert found is not None
    return found


async def test_what_was_approved_runs_once_and_as_it_was_shown(served: Served) -> None:
    note = word()
    async with at_home(served) as ada:
        action = await asked_for_real(served, ada, note)
        assert (await pressed(ada, action, "approve")).status_code == 303
        await served.wait(action.thread_id, "idle")
    calls = [row["args"] for row in ledger_calls(served.home) if row["args"].get("note") == note]
    assert calls == [{"amount": 4, "note": note}]


async def test_what_was_edited_runs_as_it_was_typed(served: Served) -> None:
    note = word()
    async with at_home(served) as ada:
        action = await asked_for_real(served, ada, note)
        names = {
            name: await input_name(ada, action, name) for name in ("amount", "tags", "urgent", "currency")
        }
        typed = {"amount": "42.5", "tags": "a\r\nb", "urgent": "true", "currency": "JPY"}
        response = await pressed(ada, action, "edit", {names[name]: text for name, text in typed.items()})
        assert response.status_code == 303, problems(tree(response.text))
        await served.wait(action.thread_id, "idle")
    calls = [row["args"] for row in ledger_calls(served.home) if row["args"].get("note") == note]
    assert calls == [{"amount": 42.5, "note": note, "tags": ["a", "b"], "urgent": True, "currency": "JPY"}]


async def test_what_was_rejected_does_not_run(served: Served) -> None:
    note = word()
    async with at_home(served) as ada:
        action = await asked_for_real(served, ada, note)
        assert (await pressed(ada, action, "reject", {"reason": "too dear"})).status_code == 303
        thread = await served.wait(action.thread_id, "idle")
        assert "too dear" in thread["messages"][-1]["text"]
    assert not [row for row in ledger_calls(served.home) if row["args"].get("note") == note]


async def test_a_decision_without_the_token_of_the_page_is_none(served: Served) -> None:
    action = await pending(served, {"x": "a"})
    async with at_home(served) as ada, at_home(served) as other:
        fields = {"decision": "approve", "digest": action.digest, "csrf": csrf_of(other.secret)}
        check_page(await ada.send(f"/actions/{action.id}", fields), 403)
    assert await now(served, action) == action
