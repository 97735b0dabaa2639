"""Is each block that is spelt one that Slack takes, whatever its text?"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from pizzabot.adapters.slack import blocks

from tests.fakes.slack.blocks import check_blocks, check_view

TEXTS = st.text() | st.integers(0, 9_000).map(lambda n: "x" * n)


@given(TEXTS, st.integers(1, 100))
def test_what_is_shortened_says_so(text: str, most: int) -> None:
    short = blocks.shortened(text, most)
    assert len(short) <= most
    assert short == text or (short.endswith("…") and text.startswith(short[:-1]))


@given(TEXTS)
def test_every_block_of_a_message_is_taken(text: str) -> None:
    pressed = blocks.button(text, "b", value="v", confirm=blocks.confirm(text, text, text, text))
    check_blocks(
        [
            blocks.header(text),
            blocks.section(blocks.plain_text(text), blocks.button(text, "a")),
            blocks.context(blocks.plain_text(text)),
            blocks.rich_text(blocks.rich_section(blocks.leaf(text, "bold")), blocks.preformatted(text)),
            blocks.actions("id", [pressed]),
            blocks.divider(),
        ]
    )
    assert blocks.leaf(text)["text"]


@given(TEXTS)
def test_every_block_of_a_modal_is_taken(text: str) -> None:
    inputs = [
        blocks.input_block(
            "a", text, blocks.text_input("v", text[: blocks.INPUT_TEXT]), optional=False, hint=text
        )
    ]
    check_view(blocks.modal(text, inputs, submit=text, close=text), "modal")


def test_what_is_not_said_is_left_out() -> None:
    assert blocks.button("A", "a") == {
        "type": "button",
        "text": {"type": "plain_text", "text": "A", "emoji": False},
        "action_id": "a",
    }
    assert "initial_value" not in blocks.text_input("v")
    assert "hint" not in blocks.input_block("a", "b", {}, optional=True)
