"""Which tools a reference means, and which of two references is the closer one."""

from __future__ import annotations

import pytest

from pizzabot.tools.references import parse_reference


@pytest.mark.parametrize(
    ("reference", "tool", "matches"),
    [
        ("mcp:ledger:pay_invoice", "mcp:ledger:pay_invoice", True),
        ("mcp:ledger:pay_invoice", "mcp:ledger:pay_invoices", False),
        ("mcp:ledger:pay_invoice", "mcp:other:pay_invoice", False),
        ("mcp:ledger:pay_*", "mcp:ledger:pay_invoice", True),
        ("mcp:ledger:pay_*", "mcp:ledger:pay_", True),
        ("mcp:ledger:pay_*", "mcp:ledger:repay_invoice", False),
        ("mcp:ledger:*", "mcp:ledger:anything", True),
        ("mcp:ledger:*", "mcp:ledger2:anything", False),
        ("mcp:ledger:*", "mcp:ledger:", False),
        ("mcp:ledger:*", "builtin:eval", False),
        ("mcp:files:fs:read.*", "mcp:files:fs:read.text", True),
        ("mcp:a:x.y", "mcp:a:xzy", False),
        ("mcp:a:[ab]*", "mcp:a:a", None),
        ("builtin:eval", "builtin:eval", True),
        ("builtin:eval", "mcp:builtin:eval", False),
        (" mcp:ledger:* ", "mcp:ledger:a", True),
    ],
)
def test_a_reference_matches_the_tools_it_means(reference: str, tool: str, matches: bool | None) -> None:
    if matches is None:
        with pytest.raises(ValueError, match="character"):
            parse_reference(reference)
    else:
        assert parse_reference(reference).matches(tool) is matches


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "starts with mcp: or builtin:"),
        ("ledger:pay", "starts with mcp: or builtin:"),
        ("*", "starts with mcp: or builtin:"),
        ("mcp:", "server name"),
        ("mcp:*:pay", "server name"),
        ("mcp:ledger", "names no tool; write mcp:ledger:*"),
        ("mcp:ledger:", "names no tool"),
        ("mcp:ledger:*_invoice", "at the end"),
        ("mcp:ledger:**", "at the end"),
        ("mcp:ledger:pay invoice", "character"),
        ("mcp:ledger:" + "x" * 129, "too long"),
        ("builtin:evil", "no such built-in tool; there is builtin:eval"),
        ("builtin:*", "no such built-in tool"),
    ],
)
def test_what_is_no_reference_is_refused_with_a_reason(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("*", r"\*")):
        parse_reference(text)


def test_the_closer_reference_is_more_specific() -> None:
    texts = ["mcp:a:p", "mcp:a:pay_invoices_all_at_once*", "mcp:a:pay_inv*", "mcp:a:pay_*", "mcp:a:*"]
    closeness = [parse_reference(text).specificity for text in texts]
    assert closeness == sorted(set(closeness), reverse=True)


def test_a_reference_knows_its_server_and_its_text() -> None:
    assert parse_reference("mcp:ledger:*").server == "ledger"
    assert parse_reference("builtin:eval").server is None
    for text in ("mcp:ledger:*", "mcp:ledger:a_*", "mcp:ledger:a", "builtin:eval"):
        assert str(parse_reference(text)) == text
