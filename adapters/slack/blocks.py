"""How is Block Kit spelt? One small function for each block in use (docs.slack.dev/reference/block-kit).

Text of others stands in `plain_text` and `rich_text`, which Slack never reads for marks: it cannot mention,
link or format.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

Block = dict[str, Any]

MESSAGE_BLOCKS = 50
VIEW_BLOCKS = 100
SECTION_TEXT = 3_000
INPUT_TEXT = 3_000
BUTTON_VALUE = 2_000
OPTION_TEXT = 75
OPTIONS = 100
HINT_TEXT = 2_000


def shortened(text: str, most: int) -> str:
    """`text` of at most `most` characters, the cut marked."""
    return text if len(text) <= most else text[: most - 1] + "…"


def size_of(blocks: Any) -> int:
    """How much blocks or a view weigh in JSON."""
    return len(json.dumps(blocks, ensure_ascii=False))


def plain_text(text: str, most: int = SECTION_TEXT) -> Block:
    return {"type": "plain_text", "text": shortened(text, most) or " ", "emoji": False}


def mrkdwn(text: str) -> Block:
    """Words of ours, in Slack's own markup; what others wrote in it is escaped by the caller."""
    return {"type": "mrkdwn", "text": shortened(text, SECTION_TEXT)}


def header(text: str) -> Block:
    return {"type": "header", "text": plain_text(text, 150)}


def section(text: Block, accessory: Block | None = None) -> Block:
    made: Block = {"type": "section", "text": text}
    return made | {"accessory": accessory} if accessory is not None else made


def context(*texts: Block) -> Block:
    return {"type": "context", "elements": list(texts)}


def divider() -> Block:
    return {"type": "divider"}


def markdown(text: str) -> Block:
    return {"type": "markdown", "text": text}


def actions(block_id: str, elements: Sequence[Block]) -> Block:
    return {"type": "actions", "block_id": block_id, "elements": list(elements)}


def button(
    label: str,
    action_id: str,
    *,
    value: str | None = None,
    url: str | None = None,
    style: Literal["primary", "danger"] | None = None,
    confirm: Block | None = None,
) -> Block:
    made: Block = {"type": "button", "text": plain_text(label, OPTION_TEXT), "action_id": action_id}
    extra = {"value": value, "url": url, "style": style, "confirm": confirm}
    return made | {name: part for name, part in extra.items() if part is not None}


def confirm(title: str, text: str, yes: str, no: str) -> Block:
    return {
        "title": plain_text(title, 100),
        "text": plain_text(text, 300),
        "confirm": plain_text(yes, 30),
        "deny": plain_text(no, 30),
    }


def option(text: str, value: str) -> Block:
    return {"text": plain_text(text, OPTION_TEXT), "value": value}


def select(action_id: str, placeholder: str, options: Sequence[Block]) -> Block:
    return {
        "type": "static_select",
        "action_id": action_id,
        "placeholder": plain_text(placeholder, 150),
        "options": list(options),
    }


def input_block(
    block_id: str, label: str, element: Block, *, optional: bool, hint: str = "", dispatch: bool = False
) -> Block:
    made: Block = {
        "type": "input",
        "block_id": block_id,
        "label": plain_text(label, HINT_TEXT),
        "element": element,
        "optional": optional,
    }
    if hint:
        made["hint"] = plain_text(hint, HINT_TEXT)
    if dispatch:
        made["dispatch_action"] = True
    return made


def text_input(action_id: str, initial: str = "", *, multiline: bool = False) -> Block:
    made: Block = {
        "type": "plain_text_input",
        "action_id": action_id,
        "multiline": multiline,
        "max_length": INPUT_TEXT,
    }
    return made | {"initial_value": initial} if initial else made


def rich_text(*elements: Block) -> Block:
    return {"type": "rich_text", "elements": list(elements)}


def rich_section(*leaves: Block) -> Block:
    return {"type": "rich_text_section", "elements": list(leaves)}


def preformatted(text: str) -> Block:
    return {"type": "rich_text_preformatted", "elements": [leaf(text)]}


def leaf(text: str, style: Literal["bold", "italic", "code"] | None = None) -> Block:
    made: Block = {"type": "text", "text": text or " "}
    return made | {"style": {style: True}} if style is not None else made


def modal(
    title: str,
    blocks: Sequence[Block],
    *,
    callback_id: str = "pizza_told",
    metadata: str = "",
    submit: str | None = None,
    close: str = "Cancel",
) -> Mapping[str, Any]:
    made: Block = {
        "type": "modal",
        "callback_id": callback_id,
        "title": plain_text(title, 24),
        "close": plain_text(close, 24),
        "blocks": list(blocks),
    }
    if submit is not None:
        made["submit"] = plain_text(submit, 24)
    if metadata:
        made["private_metadata"] = metadata
    return made
