"""Does this tool call need a person, and whose word counts? Pure functions of what is configured.

Strongest first: the skill's `interruptOn`; the operator's `[[approvals.rules]]`; the tool's own annotations
(a tool that is not marked read-only asks). A skill may loosen the operator's rule only when
`approvals.skills_may_loosen` says so. The approvers of a matching rule count whoever set the gate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Literal

from pizzabot.messages import Verdict
from pizzabot.tools.references import parse_reference

DEFAULT_DECISIONS = (Verdict.APPROVE, Verdict.EDIT, Verdict.REJECT)


@dataclass(frozen=True, slots=True)
class Rule:
    """One `[[approvals.rules]]` table; all names are as `[[people]]` write them."""

    tool: str
    ask: bool = True
    decisions: tuple[str, ...] = DEFAULT_DECISIONS
    approvers: tuple[str, ...] = ()
    quorum: int = 1
    urgent: bool = False
    escalate_after: timedelta | None = None
    escalate_to: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Timing:
    """What becomes of an action that nobody decides. A time of None: never.

    `urgent`: reminders are said in quiet hours, too.
    """

    reminder_after: timedelta | None = None
    expire_after: timedelta | None = None
    on_expiry: Literal["park", "reject"] = "park"
    escalate_after: timedelta | None = None
    escalate_to: tuple[str, ...] = ()
    urgent: bool = False


@dataclass(frozen=True, slots=True)
class Gate:
    """`quorum` people must agree. No `approvers`: the thread's owner and people with role owner.

    `substitutes` may decide after the action was escalated to them.
    """

    decisions: tuple[Verdict, ...]
    approvers: tuple[str, ...]
    quorum: int = 1
    substitutes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SkillWord:
    """What a skill says about one tool: `ask=False` is `interruptOn: {tool: false}`."""

    ask: bool
    decisions: tuple[Verdict, ...] = DEFAULT_DECISIONS


@dataclass(frozen=True, slots=True)
class Policy:
    """What the operator configured."""

    default: Literal["ask", "annotations", "allow"]
    rules: Sequence[Rule]
    skills_may_loosen: bool
    times: Timing = Timing()

    def gate(self, tool: str, *, read_only: bool, skill: SkillWord | None) -> Gate | None:
        """The gate before `tool` (a full name such as `mcp:ledger:pay`), or None when it may run."""
        rule = self.rule_for(tool)
        operator = self._operator_decisions(rule, read_only=read_only)
        if skill is None:
            return self._gate(operator, rule, tool) if operator is not None else None
        if not skill.ask:
            loosened = operator is None or self.skills_may_loosen
            return None if loosened else self._gate(operator or (), rule, tool)
        return self._gate(self._tighter(skill.decisions, rule), rule, tool)

    def _gate(self, decisions: tuple[Verdict, ...], rule: Rule | None, tool: str) -> Gate:
        approvers, quorum = (tuple(rule.approvers), rule.quorum) if rule else ((), 1)
        return Gate(decisions, approvers, quorum, self.timing(tool).escalate_to)

    def timing(self, tool: str) -> Timing:
        """What becomes of an action about `tool`, or about a limit, that nobody decides."""
        rule = self.rule_for(tool)
        if rule is None:
            return self.times
        return replace(
            self.times,
            urgent=rule.urgent,
            escalate_after=rule.escalate_after,
            escalate_to=rule.escalate_to,
        )

    def rule_for(self, tool: str) -> Rule | None:
        """The most specific rule that names the tool; among equals the first."""
        matching = [rule for rule in self.rules if parse_reference(rule.tool).matches(tool)]
        return max(matching, key=lambda rule: parse_reference(rule.tool).specificity, default=None)

    def _operator_decisions(self, rule: Rule | None, *, read_only: bool) -> tuple[Verdict, ...] | None:
        if rule is not None:
            return _verdicts(rule.decisions) if rule.ask else None
        asks = self.default == "ask" or (self.default == "annotations" and not read_only)
        return DEFAULT_DECISIONS if asks else None

    def _tighter(self, wanted: tuple[Verdict, ...], rule: Rule | None) -> tuple[Verdict, ...]:
        if rule is None or not rule.ask or self.skills_may_loosen:
            return wanted
        both = tuple(verdict for verdict in wanted if verdict in _verdicts(rule.decisions))
        # Two lists without a common word leave only what is safe.
        return both or (Verdict.REJECT,)


def _verdicts(words: Sequence[str]) -> tuple[Verdict, ...]:
    return tuple(Verdict(word) for word in words)
