"""Blocks: what Slack refuses, what a person reads, and what they enter."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tests.fakes.slack.workspace import Json

MESSAGE_BLOCKS, VIEW_BLOCKS = 50, 100
MARKDOWN_CHARACTERS = 12_000  # of all markdown blocks of a message together
_ANYWHERE = {"section", "header", "divider", "context", "actions", "input", "image", "rich_text", "video"}
_IN_MESSAGES = _ANYWHERE | {"markdown", "table", "context_actions", "task_card", "plan"}
_TEXT_CHARACTERS = {"section": 3000, "header": 150}
_ELEMENTS = {"context": 10, "actions": 25}
_OPTIONS = {"overflow": 5, "checkboxes": 10, "radio_buttons": 10, "static_select": 100}
_BUTTONS = ("button", "workflow_button", "icon_button", "overflow")
# what an element calls its value, and the value it starts with
_VALUE = {
    "static_select": ("selected_option", "initial_option"),
    "radio_buttons": ("selected_option", "initial_option"),
    "multi_static_select": ("selected_options", "initial_options"),
    "checkboxes": ("selected_options", "initial_options"),
    "datepicker": ("selected_date", "initial_date"),
    "timepicker": ("selected_time", "initial_time"),
    "users_select": ("selected_user", "initial_user"),
}


class Refusal(Exception):
    """An answer with `ok` false."""

    def __init__(self, error: str, *details: str) -> None:
        super().__init__(error, *details)
        self.error = error
        self.details = details


class CannotDo(AssertionError):
    """Nobody could do this in Slack: no such button, a required field is empty, the text is too long."""


def check_blocks(blocks: Any, *, view: bool = False) -> list[Json]:
    if not isinstance(blocks, list) or not all(isinstance(b, dict) and "type" in b for b in blocks):
        raise Refusal("invalid_blocks_format")
    if problems := list(_problems(blocks, view=view)):
        raise Refusal("invalid_arguments" if view else "invalid_blocks", *problems)
    if sum(len(b["text"]) for b in blocks if b["type"] == "markdown") > MARKDOWN_CHARACTERS:
        raise Refusal("msg_blocks_too_long")
    return blocks


def check_view(view: Any, kind: str) -> Json:
    if not isinstance(view, dict) or view.get("type") != kind:
        raise Refusal("invalid_arguments", f"no view of type {kind}")
    check_blocks(view.get("blocks"), view=True)
    if len(json.dumps(view, ensure_ascii=False).encode()) > 250_000:
        raise Refusal("view_too_large")
    if kind == "modal":
        inputs = any(b["type"] == "input" for b in view["blocks"])
        for key, needed in (("title", True), ("submit", inputs), ("close", False)):
            text = (view.get(key) or {}).get("text", "")
            if len(text) > 24 or (needed and not text):
                raise Refusal("invalid_arguments", f"{key} of {len(text)} characters")
    if len(view.get("private_metadata") or "") > 3000:
        raise Refusal("invalid_arguments", "private_metadata over 3000 characters")
    return view


def _problems(blocks: list[Json], *, view: bool) -> Iterator[str]:
    if len(blocks) > (VIEW_BLOCKS if view else MESSAGE_BLOCKS):
        yield f"{len(blocks)} blocks"
    names = [b["block_id"] for b in blocks if "block_id" in b]
    yield from (f"block_id {n} twice" for n in sorted({n for n in names if names.count(n) > 1}))
    for place, block in enumerate(blocks):
        yield from (f"/blocks/{place}: {problem}" for problem in _block_problems(block, view=view))


def _block_problems(block: Json, *, view: bool) -> Iterator[str]:
    kind = block["type"]
    if kind not in (_ANYWHERE if view else _IN_MESSAGES):
        yield f"unsupported type {kind}"
    if len(block.get("block_id", "")) > 255:
        yield "block_id over 255 characters"
    if kind == "section" and not block.get("text") and not block.get("fields"):
        yield "no text"
    texts = [(block["text"], _TEXT_CHARACTERS.get(kind, 3000))] if isinstance(block.get("text"), dict) else []
    texts += [(f, 2000) for f in block.get("fields", [])]
    if kind == "context":
        texts += [(e, 3000) for e in block.get("elements", []) if e.get("type") != "image"]
    if kind == "input":
        texts += [(block.get("label"), 2000)] + [(block[k], 2000) for k in ("hint",) if block.get(k)]
    for text, most in texts:
        yield from _text_problems(text, most)
    if kind in _ELEMENTS and not 1 <= len(block.get("elements", [])) <= _ELEMENTS[kind]:
        yield f"{len(block.get('elements', []))} elements"
    elements = [e for _, e in controls([block])]
    actions = [e["action_id"] for e in elements if "action_id" in e]
    if len(actions) > len(set(actions)):
        yield "an action_id twice"
    for element in elements:
        yield from _element_problems(element)


def _text_problems(text: Any, most: int) -> Iterator[str]:
    if not isinstance(text, dict) or text.get("type") not in ("plain_text", "mrkdwn"):
        yield f"no text object: {text!r}"
    elif not 1 <= len(text.get("text", "")) <= most:
        yield f"text of {len(text.get('text', ''))} characters, at most {most}"


def _element_problems(element: Json) -> Iterator[str]:
    kind = element.get("type")
    if len(element.get("action_id", "")) > 255:
        yield "action_id over 255 characters"
    if kind == "button":
        yield from _text_problems(element.get("text"), 75)
        if len(element.get("value", "")) > 2000 or len(element.get("url", "")) > 3000:
            yield "value or url of a button too long"
    if element.get("placeholder"):
        yield from _text_problems(element["placeholder"], 150)
    if kind in _OPTIONS:
        options = _options(element)
        if not 1 <= len(options) <= _OPTIONS[kind]:
            yield f"{len(options)} options"
        for option in options:
            yield from _text_problems(option.get("text"), 75)
            if not 1 <= len(option.get("value", "")) <= 150:
                yield f"value of an option of {len(option.get('value', ''))} characters"
        first = element.get(_VALUE.get(kind, ("", ""))[1], [])
        if any(o not in options for o in (first if isinstance(first, list) else [first])):
            yield "an initial option is not offered"
    if kind == "plain_text_input" and len(element.get("initial_value", "")) > element.get("max_length", 3000):
        yield "initial_value too long"


# What a person reads.


def controls(blocks: Sequence[Json]) -> Iterator[tuple[Json, Json]]:
    """Everything a person can use, each with its block."""
    for block in blocks:
        found = block.get("elements", []) if block["type"] in ("actions", "context_actions") else []
        for element in [*found, *(block[k] for k in ("accessory", "element") if k in block)]:
            if element.get("type") != "image":
                yield block, element


def label(element: Json) -> str:
    """The words on a control or an option."""
    for key in ("text", "placeholder"):
        if isinstance(element.get(key), dict):
            return str(element[key].get("text", ""))
    return str(element.get("action_id", ""))


def words(blocks: Sequence[Json], names: Mapping[str, str]) -> str:
    return "\n".join(text for b in blocks if (text := _block_words(b, names)))


def plain(text: str, names: Mapping[str, str]) -> str:
    """Slack's notation as it is shown."""

    def shown(match: re.Match[str]) -> str:
        target, _, title = match[1].partition("|")
        if target[0] in "@#":
            return target[0] + (title or names.get(target[1:], target[1:]))
        if target[0] == "!":
            return title or "@" + target[1:]
        return f"{title} ({target})" if title else target

    return html.unescape(re.sub(r"<([^<>\n]+)>", shown, text))


def _block_words(block: Json, names: Mapping[str, str]) -> str:
    kind = block["type"]
    if kind == "markdown":
        return str(block["text"])
    if kind == "rich_text":
        return "\n".join(_rich_words(e, names) for e in block["elements"])
    if kind == "image":
        return f"({block.get('alt_text', '')})"
    texts = [block.get("text"), block.get("label"), *block.get("fields", [])]
    if kind == "context":
        texts += block["elements"]
    found = [_object_words(t, names) for t in texts if isinstance(t, dict)]
    if kind == "table":
        found += [
            " | ".join(words([c], names) if c["type"] == "rich_text" else str(c["text"]) for c in row)
            for row in block["rows"]
        ]
    shown = [f"[{label(e)}]" for _, e in controls([block])] if kind != "input" else []
    return "\n".join([t for t in found if t] + ([" ".join(shown)] if shown else []))


def _object_words(text: Json, names: Mapping[str, str]) -> str:
    if text["type"] == "image":
        return f"({text.get('alt_text', '')})"
    return plain(text["text"], names) if text["type"] == "mrkdwn" else str(text["text"])


def _rich_words(element: Json, names: Mapping[str, str]) -> str:
    kind = element["type"]
    if kind == "rich_text_list":
        ordered, indent = element.get("style") == "ordered", "  " * element.get("indent", 0)
        first = element.get("offset", 0) + 1
        return "\n".join(
            f"{indent}{f'{n}.' if ordered else '•'} {_rich_words(item, names)}"
            for n, item in enumerate(element["elements"], first)
        )
    inside = "".join(_leaf_words(leaf, names) for leaf in element["elements"])
    return f"> {inside}" if kind == "rich_text_quote" else inside.removesuffix("\n")


def _leaf_words(leaf: Json, names: Mapping[str, str]) -> str:
    kind = leaf["type"]
    if kind == "link":
        return f"{leaf['text']} ({leaf['url']})" if leaf.get("text") else str(leaf["url"])
    if kind in ("user", "channel"):
        known = leaf[f"{kind}_id"]
        return ("@" if kind == "user" else "#") + names.get(known, known)
    return f":{leaf['name']}:" if kind == "emoji" else str(leaf.get("text", leaf.get("fallback", "")))


# What a person enters.


def pick(blocks: Sequence[Json], wanted: str, value: str | None) -> tuple[Json, Json]:
    """The control that reads `wanted`; of several buttons alike the one that carries `value`."""
    found = [
        (block, element)
        for block, element in controls(blocks)
        if wanted in (label(element), element.get("action_id"))
        or (element["type"] == "overflow" and any(label(o) == wanted for o in _options(element)))
    ]
    if len(found) > 1 and value is not None:
        found = [(b, e) for b, e in found if e.get("value") == value] or found
    if len(found) != 1:
        seen = ", ".join(repr(label(e)) for _, e in controls(blocks)) or "none"
        raise CannotDo(f"{len(found)} controls read {wanted!r}; there are: {seen}")
    return found[0]


def action_of(block: Json, element: Json, wanted: str, value: Any, ts: str) -> Json:
    """The action an app is told of."""
    action: Json = {"type": element["type"], "action_id": element["action_id"], "action_ts": ts}
    action["block_id"] = block["block_id"]
    if element["type"] == "overflow":
        return action | {"selected_option": _option(element, value or wanted)}
    if element["type"] in _BUTTONS:
        return action | {k: element[k] for k in ("text", "value", "style", "url") if k in element}
    return action | entered(element, value)


def field(blocks: Sequence[Json], name: str) -> tuple[Json, Json]:
    """An input by its label, or by the name of its block or action."""
    for block, element in controls(blocks):
        if name in ((block.get("label") or {}).get("text"), block["block_id"], element["action_id"]):
            return block, element
    seen = [(b.get("label") or {}).get("text") for b, _ in controls(blocks)]
    raise CannotDo(f"no field {name!r}; there are: {seen}")


def entered(element: Json, value: Any) -> Json:
    """The state of an element after a person entered `value`: options are named by their text."""
    kind = element["type"]
    name = _VALUE.get(kind, ("value", ""))[0]
    if name == "selected_options":
        return {"type": kind, name: [_option(element, v) for v in value or []]}
    if value in (None, ""):
        return {"type": kind, name: None}
    if name == "selected_option":
        return {"type": kind, name: _option(element, value)}
    if kind == "number_input":
        _check_number(element, str(value))
    elif kind == "plain_text_input":
        low, high = element.get("min_length", 0), element.get("max_length", 3000)
        if not low <= len(value) <= high:
            raise CannotDo(f"a text of {low} to {high} characters is asked for, not of {len(value)}")
        if "\n" in value and not element.get("multiline"):
            raise CannotDo("a field of one line takes no line breaks")
    return {"type": kind, name: str(value)}


def state_of(blocks: Sequence[Json], values: Mapping[str, Json]) -> Json:
    """All inputs as they stand, by block and action."""
    state: Json = {}
    for block, element in controls(blocks):
        if element["type"] in _BUTTONS:
            continue
        name, first = _VALUE.get(element["type"], ("value", "initial_value"))
        empty: Any = [] if name == "selected_options" else None
        untouched = {"type": element["type"], name: element.get(first, empty)}
        action = element["action_id"]
        state.setdefault(block["block_id"], {})[action] = values.get(block["block_id"], {}).get(
            action, untouched
        )
    return {"values": state}


def check_filled(blocks: Sequence[Json], state: Json) -> None:
    for block, element in controls(blocks):
        if block["type"] == "input" and not block.get("optional"):
            now = state["values"][block["block_id"]][element["action_id"]]
            if not any(v for k, v in now.items() if k != "type"):
                raise CannotDo(f"{block['label']['text']!r} is required")


def _check_number(element: Json, value: str) -> None:
    convert: Callable[[str], float] = float if element.get("is_decimal_allowed") else int
    try:
        number = convert(value)
    except ValueError:
        raise CannotDo(f"not a number that is asked for: {value}") from None
    low, high = float(element.get("min_value", "-inf")), float(element.get("max_value", "inf"))
    if not low <= number <= high:
        raise CannotDo(f"a number from {low:g} to {high:g} is asked for, not {value}")


def _options(element: Json) -> list[Json]:
    groups = element.get("option_groups", [])
    return [*element.get("options", []), *(o for g in groups for o in g["options"])]


def _option(element: Json, wanted: Any) -> Json:
    options = _options(element)
    for option in options:
        if wanted in (label(option), option["value"]):
            return option
    raise CannotDo(f"{wanted!r} is not offered; there are: {[label(o) for o in options]}")
