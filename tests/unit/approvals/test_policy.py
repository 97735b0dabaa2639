"""Which calls ask, whom, and what can be answered? A table of what was configured."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from pizzabot.approvals.policy import DEFAULT_DECISIONS, Gate, Policy, Rule, SkillWord
from pizzabot.messages import Verdict

APPROVE, EDIT, REJECT, RESPOND = Verdict.APPROVE, Verdict.EDIT, Verdict.REJECT, Verdict.RESPOND
PAY = "mcp:ledger:pay"
ASKS = Gate(DEFAULT_DECISIONS, ())


def _gate(
    *rules: Rule,
    default: Literal["ask", "annotations", "allow"] = "annotations",
    read_only: bool = False,
    skill: SkillWord | None = None,
    may_loosen: bool = False,
    tool: str = PAY,
) -> Gate | None:
    return Policy(default, rules, may_loosen).gate(tool, read_only=read_only, skill=skill)


@pytest.mark.parametrize(
    ("default", "read_only", "asks"),
    [
        ("ask", False, True),
        ("ask", True, True),
        ("annotations", False, True),
        ("annotations", True, False),
        ("allow", False, False),
        ("allow", True, False),
    ],
)
def test_without_a_rule_the_default_counts(
    default: Literal["ask", "annotations", "allow"], read_only: bool, asks: bool
) -> None:
    assert _gate(default=default, read_only=read_only) == (ASKS if asks else None)


@pytest.mark.parametrize("read_only", [False, True])
def test_a_rule_counts_more_than_annotations(read_only: bool) -> None:
    rule = Rule(PAY, decisions=("approve", "reject"), approvers=("Bob",))
    assert _gate(rule, read_only=read_only) == Gate((APPROVE, REJECT), ("Bob",))
    assert _gate(Rule(PAY, ask=False), read_only=read_only, default="ask") is None


@pytest.mark.parametrize(
    ("rules", "approver"),
    [
        (("mcp:ledger:*", PAY), PAY),
        ((PAY, "mcp:ledger:*"), PAY),
        (("mcp:ledger:*", "mcp:ledger:pa*"), "mcp:ledger:pa*"),
        (("mcp:ledger:pa*", "mcp:ledger:p*"), "mcp:ledger:pa*"),
        (("mcp:other:*", "mcp:ledger:*"), "mcp:ledger:*"),
        (("mcp:ledger:pay*", PAY), PAY),
    ],
)
def test_the_closest_rule_counts(rules: tuple[str, ...], approver: str) -> None:
    gate = _gate(*(Rule(tool, approvers=(tool,)) for tool in rules))
    assert gate is not None
    assert gate.approvers == (approver,)


def test_among_equal_rules_the_first_counts() -> None:
    gate = _gate(Rule(PAY, approvers=("first",)), Rule(PAY, approvers=("second",)))
    assert gate is not None
    assert gate.approvers == ("first",)


def test_a_rule_for_another_tool_does_not_count() -> None:
    assert _gate(Rule("mcp:ledger:pay_all", ask=False), Rule("mcp:ledge:*", ask=False)) == ASKS


def test_a_rule_that_asks_for_no_decision_still_closes_the_gate() -> None:
    assert _gate(Rule(PAY, decisions=())) == Gate((), ())


SKILL_CASES: dict[str, tuple[dict[str, Any], Gate | None]] = {
    "a skill may tighten what is allowed": (
        {"rules": [Rule(PAY, ask=False, approvers=("Bob",))], "skill": SkillWord(True, (APPROVE, REJECT))},
        Gate((APPROVE, REJECT), ("Bob",)),
    ),
    "a skill may tighten a read-only tool": (
        {"read_only": True, "skill": SkillWord(True)},
        ASKS,
    ),
    "a skill may not open what the operator closed": (
        {"rules": [Rule(PAY, approvers=("Bob",))], "skill": SkillWord(False)},
        Gate(DEFAULT_DECISIONS, ("Bob",)),
    ),
    "a skill may not open what the annotations close": (
        {"skill": SkillWord(False)},
        ASKS,
    ),
    "a skill may open it when the operator lets it": (
        {"rules": [Rule(PAY)], "skill": SkillWord(False), "may_loosen": True},
        None,
    ),
    "a skill may leave open what is open": (
        {"read_only": True, "skill": SkillWord(False)},
        None,
    ),
    "a skill and a rule leave the decisions that both allow": (
        {
            "rules": [Rule(PAY, decisions=("approve", "reject"))],
            "skill": SkillWord(True, (APPROVE, EDIT, RESPOND)),
        },
        Gate((APPROVE,), ()),
    ),
    "without a common decision only rejecting is left": (
        {"rules": [Rule(PAY, decisions=("approve",))], "skill": SkillWord(True, (EDIT,))},
        Gate((REJECT,), ()),
    ),
    "a skill that may loosen may add decisions": (
        {
            "rules": [Rule(PAY, decisions=("reject",))],
            "skill": SkillWord(True, (APPROVE,)),
            "may_loosen": True,
        },
        Gate((APPROVE,), ()),
    ),
    "a skill cannot change who decides": (
        {"rules": [Rule(PAY, approvers=("Bob",))], "skill": SkillWord(True), "may_loosen": True},
        Gate(DEFAULT_DECISIONS, ("Bob",)),
    ),
}


@pytest.mark.parametrize(("configured", "gate"), SKILL_CASES.values(), ids=SKILL_CASES)
def test_a_skill_and_the_operator(configured: dict[str, Any], gate: Gate | None) -> None:
    assert _gate(*configured.pop("rules", ()), **configured) == gate


def test_built_in_tools_have_rules_too() -> None:
    assert _gate(Rule("builtin:eval", approvers=("Bob",)), tool="builtin:eval") == Gate(
        DEFAULT_DECISIONS, ("Bob",)
    )
