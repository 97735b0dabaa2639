"""What does a written reply to a numbered list decide? A strict grammar, pure, on the words of `verdicts`.

    text -> greeting and closing off -> only commands: `approve 1,3; reject 2: too dear; snooze 4 to Mon`
                                     -> sounds like a decision, and is none -> unclear: ask
                                     -> anything else                       -> a message

All or nothing: one part that is not a whole command makes the whole text unclear, and nothing of it counts.
Each number must be named, once; "all", "the rest" and a bare "yes" name none.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from pizzabot.approvals import verdicts
from pizzabot.approvals import vocabulary as v
from pizzabot.approvals.courtesies import core
from pizzabot.approvals.grammar import (
    ENGLISH,
    QUESTIONS,
    Grammar,
    Words,
    either,
    grammar,
    plain,
    prepared,
    tidy,
)
from pizzabot.messages import Verdict

NO_NUMBER = "it does not say which numbers"
TWICE = "it says two things about number {}"
NOT_LISTED = "there is no number {} in the list"
MORE = "it says more than the decisions, in “{}”"
NO_WHEN = "it does not say until when number {} is put off"

_LONGEST = 20_000  # characters
_LONGEST_SPAN = 100
_SHOWN = 60
_WRAPPED = 50  # columns; a mail program breaks no shorter line
# Neither an amount nor a time of the day is one.
_NUMBER = r"#?[0-9]{1,3}(?![0-9]|[.:/][0-9]|[ ]?[%€$£])"
_SPAN = rf"{_NUMBER}(?:\s*-\s*{_NUMBER})?"
_NUMBERS = rf"{_SPAN}(?:(?:\s*,\s*(?:and\s+)?|\s+and\s+|\s*&\s*|\s+){_SPAN})*"
_FIRST_AND_LAST = re.compile(r"#?([0-9]{1,3})(?:\s*-\s*#?([0-9]{1,3}))?")
_DASHES = str.maketrans("‐‑‒–—−", "------")
_PARTS = re.compile(r"[;\n]")
_BEFORE = r"(?:(?:please|and|also|then|ok|okay)[ ,]+)*"
_UNTIL = re.compile(r"\s*(?:to|until|till|for)\s+(.{1,80})", re.IGNORECASE)
_BECAUSE = re.compile(r"\s*(?::|-\s|,?\s(?=because\b))\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Command:
    """What is said about one number: a verdict with the reason of a rejection, or `snooze`, until when."""

    number: int
    verdict: Verdict | None = None
    reason: str = ""
    snooze: str = ""


@dataclass(frozen=True, slots=True)
class Listed:
    """What a text says to a list. With `commands` it decides; with `why` it is unclear; else it is a message.

    `why` completes "I could not tell what you decided: …".
    """

    commands: tuple[Command, ...] = ()
    why: str = ""


MESSAGE = Listed()


class _Unclear(Exception):
    """Why nothing of the text counts."""


@dataclass(frozen=True, slots=True)
class _Verbs:
    """The words of commands, as patterns on lower-case text."""

    commands: tuple[tuple[re.Pattern[str], Verdict | None], ...]  # one of them with its numbers
    named: re.Pattern[str]  # one of them with a number, where it is more than a part of a sentence
    following: re.Pattern[str]  # what stands between two commands in one line


def read(text: str, numbers: Collection[int], words: Words = ENGLISH, names: Collection[str] = ()) -> Listed:
    """What `text` says to a list with these `numbers`; `names` are those of its author."""
    patterns, verbs = grammar(words), _verbs(words)
    body = "\n".join(_unwrapped(core(tidy(text), names, patterns), verbs))
    lowered = plain(body)
    # A letter that becomes two in lower case would shift what is cut out below.
    if len(lowered) != len(body) or len(body) > _LONGEST or verbs.named.search(lowered) is None:
        return _without_numbers(text, words, names)
    try:
        commands = _checked(_commands(body, lowered.translate(_DASHES), patterns, verbs), numbers)
    except _Unclear as unclear:
        return Listed(why=str(unclear))
    return Listed(commands)


def _without_numbers(text: str, words: Words, names: Collection[str]) -> Listed:
    """A text without a command: what decides a single question names no number here."""
    reading = verdicts.read(text, words, names)
    if reading.verdict is Verdict.RESPOND or (reading.verdict is None and not reading.unclear):
        return MESSAGE
    return Listed(why=NO_NUMBER if reading.verdict is not None else reading.why)


@lru_cache(maxsize=32)
def _verbs(words: Words) -> _Verbs:
    approve = either([*v.APPROVE_NUMBERS, *prepared(words.approve)])
    reject = either([*v.REJECT_NUMBERS, *prepared(words.reject)])
    snooze = either(v.SNOOZE)
    outcomes = {Verdict.RETRY: "retry", Verdict.DONE: "done", Verdict.FAILED: "failed"}
    said: list[tuple[Verdict | None, str]] = [
        (Verdict.APPROVE, approve),
        (Verdict.REJECT, reject),
        (None, snooze),
        *outcomes.items(),
    ]
    anyone = f"(?:{'|'.join(verb for _, verb in said)})(?!\\w):?"
    strong, weak = f"(?<!\\w)(?:{approve}|{reject}|{snooze})", f"^(?:{'|'.join(outcomes.values())})"
    return _Verbs(
        tuple(
            (re.compile(rf"{_BEFORE}{verb}(?!\w):?\s+(?P<numbers>{_NUMBERS})"), verdict)
            for verdict, verb in said
        ),
        re.compile(rf"(?:{strong}|{weak})(?!\w):?\s+(?:(?:number|no\.?|item) ?)?#?[0-9]", re.MULTILINE),
        re.compile(rf"\s*(?:[.,]\s*(?:and\s+|then\s+)?|\s(?:and|then)\s+)(?:please[ ,]+)?(?={anyone})"),
    )


def _unwrapped(lines: Sequence[str], verbs: _Verbs) -> list[str]:
    """The lines, with a reason that a mail program broke in one line again."""
    joined: list[str] = []
    for line in lines:
        lowered = plain(line)
        goes_on = (
            joined
            and len(joined[-1].rpartition("\n")[2]) >= _WRAPPED
            and _gives_reason(plain(joined[-1]), verbs)
            and not v.VERDICTS.search(lowered)
            and not verbs.named.search(lowered)
            and not any(pattern.match(lowered) for pattern, _ in verbs.commands)
        )
        if goes_on:
            joined[-1] += f"\v{line}"
        else:
            joined.append(line)
    return [line.replace("\v", " ") for line in joined]


def _gives_reason(line: str, verbs: _Verbs) -> bool:
    last = line.rpartition(";")[2].strip()
    return any(
        verdict is Verdict.REJECT and (found := pattern.match(last)) and _BECAUSE.match(last, found.end())
        for pattern, verdict in verbs.commands
    )


def _commands(body: str, lowered: str, patterns: Grammar, verbs: _Verbs) -> Iterator[Command]:
    """Every command of a text; raises _Unclear at the first part that is none."""
    start = 0
    while start < len(body):
        end = _PARTS.search(lowered, start)
        stop = end.start() if end is not None else len(body)
        bare = lowered[start:stop].strip(" .!,")
        if bare and not patterns.courtesy.fullmatch(bare):
            yield from _part(body, lowered, start, stop, patterns, verbs)
        start = stop + 1


def _part(body: str, lowered: str, at: int, stop: int, patterns: Grammar, verbs: _Verbs) -> Iterator[Command]:
    """The commands of one part: "approve 1, reject 2: too dear"."""
    while True:
        at += len(lowered[at:stop]) - len(lowered[at:stop].lstrip())
        found = next(
            ((m, said) for pattern, said in verbs.commands if (m := pattern.match(lowered, at, stop))), None
        )
        if found is None:
            raise _Unclear(MORE.format(_short(body[at:stop])))
        match, verdict = found
        numbers = list(_numbers(match["numbers"]))
        following = verbs.following.match(lowered, match.end(), stop) if verdict is not None else None
        if following is None:
            yield from _last(numbers, verdict, body[match.end() : stop], patterns, verbs)
            return
        yield from (Command(number, verdict) for number in numbers)
        at = following.end()


def _last(
    numbers: Sequence[int], verdict: Verdict | None, rest: str, patterns: Grammar, verbs: _Verbs
) -> Iterator[Command]:
    """The last command of a part, with what stands behind its numbers."""
    if verdict is None:
        when = _UNTIL.fullmatch(rest.rstrip(" .!"))
        if when is None or QUESTIONS.search(rest):
            raise _Unclear(NO_WHEN.format(numbers[0]))
        if verbs.named.search(plain(when[1])):
            raise _Unclear(MORE.format(_short(rest)))
        yield from (Command(number, snooze=when[1].strip()) for number in numbers)
        return
    reason = _reason(rest, patterns, verbs) if verdict is Verdict.REJECT else ""
    if not reason:
        bare = plain(rest).strip(" ,.!")
        if QUESTIONS.search(rest) or ".." in rest or (bare and not patterns.courtesy.fullmatch(bare)):
            raise _Unclear(MORE.format(_short(rest)))
    yield from (Command(number, verdict, reason=reason) for number in numbers)


def _reason(rest: str, patterns: Grammar, verbs: _Verbs) -> str:
    """The reason of a rejection, behind a colon, a dash or before "because"; empty when there is none."""
    begun = _BECAUSE.match(rest.translate(_DASHES))
    reason = rest[begun.end() :].strip() if begun is not None else ""
    lowered = plain(reason)
    if len(reason) > verdicts.MOST_REASON:
        raise _Unclear(verdicts.TOO_LONG)
    # Whoever approves within a reason, or names another number, says two things.
    if patterns.any.search(lowered) or verbs.named.search(lowered) or v.RETRACTS.search(lowered):
        raise _Unclear(verdicts.TWO_WORDS)
    return reason


def _numbers(text: str) -> Iterator[int]:
    for first, last in _FIRST_AND_LAST.findall(text):
        low, high = int(first), int(last or first)
        if not low <= high < low + _LONGEST_SPAN:
            raise _Unclear(MORE.format(_short(text)))
        yield from range(low, high + 1)


def _checked(commands: Iterator[Command], numbers: Collection[int]) -> tuple[Command, ...]:
    """The commands, each about another number of the list; raises _Unclear."""
    found: dict[int, Command] = {}
    for command in commands:
        if command.number not in numbers:
            raise _Unclear(NOT_LISTED.format(command.number))
        if command.number in found:
            raise _Unclear(TWICE.format(command.number))
        found[command.number] = command
    if not found:
        raise _Unclear(NO_NUMBER)
    return tuple(found.values())


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _SHOWN else flat[: _SHOWN - 1] + "…"
