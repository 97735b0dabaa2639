"""What does a reply to a digest do: all of what it says, or nothing, and each number at most once?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from pizzabot.approvals.decide import already_decided, check
from pizzabot.approvals.when import parse_when
from pizzabot.digests.deciding import carry_out, first_read, meant
from pizzabot.errors import Conflict, Refused, Unavailable
from pizzabot.messages import Action, ActionState, Decision, Digest, Snooze, Verdict
from pizzabot.people import Person
from tests.unit.digests.listed import NOW, digest, item

ADA = Person("Ada", "owner")
LONG = {"args": {"body": "x" * 999}, "args_schema": {}}
LIST = digest(item(1), item(2), item(3, **LONG), item(4, digest="another"), item(5))


@dataclass
class Doors:
    """As much of the doors as deciding needs; actions are decided by the same rules."""

    actions: dict[str, Action]
    notes: dict[str, str] = field(default_factory=dict)
    refusal: Refused | None = None
    decided: list[tuple[str, Verdict]] = field(default_factory=list)
    snoozed: list[tuple[str, datetime]] = field(default_factory=list)
    now: datetime = NOW

    async def decide(self, decision: Decision) -> Action:
        if self.refusal is not None:
            raise self.refusal
        action = self.actions[decision.action_id]
        check(decision, action, permitted=True)
        states = {Verdict.APPROVE: ActionState.APPROVED, Verdict.REJECT: ActionState.REJECTED}
        action = replace(
            action,
            state=states[decision.verdict],
            decision=decision.verdict,
            decided_by=decision.person,
            decided_via=decision.via,
            decided_at=NOW,
            reason=decision.reason,
        )
        self.actions[action.id] = action
        self.decided.append((action.id, decision.verdict))
        return action

    async def snooze(
        self, action_id: str, person: Person, when: str, via: str, key: str | None = None
    ) -> Action:
        if self.refusal is not None:
            raise self.refusal
        mark = f"{via} snoozed {key} {action_id}"
        if mark not in self.notes:
            until = parse_when(when, self.now, ZoneInfo(person.timezone))
            self.actions[action_id] = replace(self.actions[action_id], snoozes=(Snooze(person.name, until),))
            self.snoozed.append((action_id, until))
            self.notes[mark] = ""
        return self.actions[action_id]

    async def note(self, channel: str, key: str) -> str | None:
        return self.notes.get(f"{channel} {key}")

    async def keep(self, channel: str, values: Mapping[str, str]) -> None:
        self.notes |= {f"{channel} {key}": value for key, value in values.items()}


def doors(listed: Digest = LIST) -> Doors:
    return Doors({one.action.id: one.action for one in listed.items})


async def carried_out(here: Doors, text: str, key: str = "mail-1") -> str:
    now = replace(LIST, items=tuple(replace(one, action=here.actions[one.action.id]) for one in LIST.items))
    read_at = await first_read(here, "email", key, here.now)
    said = meant(text, now, read_at)
    assert said.commands, said.why
    return await carry_out(here, now, said.commands, ADA, "email", key, read_at)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("approve 1, 3", "number 3 was not shown with all that would run; its page shows it"),
        ("reject 4", "number 4 changed since it was listed; its page shows it as it is"),
        ("retry 1", "retry is not possible for number 1"),
        ("approve 1, 9", "there is no number 9 in the list"),
        (
            "approve 1; snooze 2 to the moon",
            "until when number 2 is put off: This is no time that can be understood; write 2h, 3 days, "
            "tomorrow, tomorrow 9:00, Mon, Fri 14:30 or 2026-03-09 09:00",
        ),
        ("approve 1?", "it says more than the decisions, in “?”"),
    ],
)
def test_one_number_that_cannot_be_decided_so_stops_all(text: str, why: str) -> None:
    said = meant(text, LIST, NOW)
    assert (said.commands, said.why) == ((), why)


def test_a_rejection_needs_no_arguments_before_the_eyes() -> None:
    assert [command.number for command in meant("reject 3: too long", LIST, NOW).commands] == [3]


def test_other_words_are_a_message() -> None:
    said = meant("Which of these can wait until next week, and why?", LIST, NOW)
    assert (said.commands, said.why) == ((), "")


async def test_each_number_is_decided_and_repeated() -> None:
    here = doors()
    said = await carried_out(here, "approve 1, 5; reject 2: too dear")
    assert here.decided == [("a1", Verdict.APPROVE), ("a2", Verdict.REJECT), ("a5", Verdict.APPROVE)]
    assert said.splitlines() == [
        "1. Pay invoice 1: approved.",
        "2. Pay invoice 2: rejected. Reason: too dear",
        "5. Pay invoice 5: approved.",
    ]


async def test_a_reply_that_comes_again_after_a_crash_says_the_same_and_does_nothing() -> None:
    here = doors()
    first = await carried_out(here, "approve 1; reject 2: too dear")
    assert await carried_out(here, "approve 1; reject 2: too dear") == first
    assert len(here.decided) == 2
    again = await carried_out(here, "approve 1", key="mail-2")
    assert again == "1. Pay invoice 1: was approved by Ada (email) before. Your word changed nothing."


async def test_a_crash_between_two_numbers_loses_neither() -> None:
    here = doors()
    await carried_out(here, "approve 1")  # then the process died
    said = await carried_out(here, "approve 1; approve 5")
    assert said == "1. Pay invoice 1: approved.\n5. Pay invoice 5: approved."
    assert here.decided == [("a1", Verdict.APPROVE), ("a5", Verdict.APPROVE)]


async def test_whoever_was_first_in_the_same_moment_is_named() -> None:
    here = doors()
    by_bob = replace(here.actions["a1"], state=ActionState.REJECTED, decided_by="Bob", decided_via="slack")
    here.refusal = already_decided(by_bob)
    said = await carried_out(here, "approve 1")
    assert said == "1. Pay invoice 1: was rejected by Bob (slack) before. Your word changed nothing."


async def test_what_changed_in_the_same_moment_is_not_decided() -> None:
    here = doors()
    here.refusal = Conflict("changed", code="stale_digest", details={"action": here.actions["a1"]})
    said = await carried_out(here, "approve 1")
    assert said == "1. Pay invoice 1: changed since it was listed, and was not decided. Look at it again."


async def test_what_could_not_be_stored_is_brought_again() -> None:
    here = doors()
    here.refusal = Unavailable("the disk is full")
    with pytest.raises(Unavailable):
        await carried_out(here, "approve 1")


async def test_what_is_put_off_is_said_with_its_time_and_the_others_count() -> None:
    here = doors()
    said = await carried_out(here, "approve 1; snooze 2 to Mon")
    first, second = said.splitlines()
    assert first == "1. Pay invoice 1: approved."
    assert second.startswith("2. Pay invoice 2: put off until Monday")
    assert here.decided == [("a1", Verdict.APPROVE)]


@pytest.mark.parametrize("until", ["2h", "tomorrow", "today 9:00"])
@pytest.mark.parametrize("died", ["before", "after"])
async def test_what_is_put_off_stays_at_its_time_when_the_reply_comes_again(until: str, died: str) -> None:
    here = doors()
    text = f"approve 1; snooze 2 to {until}"
    if died == "before":  # the time was understood and nothing was done
        here.refusal = Unavailable("the disk is full")
        with pytest.raises(Unavailable):
            await carried_out(here, text)
        here.refusal = None
        here.now += timedelta(minutes=10)
    first = await carried_out(here, text)
    moment = parse_when(until, NOW, ZoneInfo(LIST.zone))
    here.now = moment + timedelta(minutes=1)  # also when it is over by then
    assert await carried_out(here, text) == first
    assert here.snoozed == [("a2", moment)]
    here.now = NOW + timedelta(minutes=30)
    assert "put off" in await carried_out(here, f"snooze 2 to {until}", key="mail-2")
    assert len(here.snoozed) == 2
