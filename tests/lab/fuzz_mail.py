"""Is there a mail that crashes the reading, takes long to read, or approves without a clear word?

`python -m tests.lab.fuzz_mail` changes the mails of the corpus at random: bytes, lines, headers, words. What
is found is kept in a file and said. `tests/unit/email/reading/test_fuzz_reading.py` runs a short form.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from pizzabot.adapters.email.letters import Letter, LetterKind
from pizzabot.adapters.email.reading.pipeline import read

from pizzabot.approvals.replies import judge
from pizzabot.messages import Verdict
from tests.unit.email.mails import OURS, PROPOSALS, STORED, TRUSTED, load
from tests.unit.email.written import action

LONGEST_SECONDS = 2.0
_WORDS = (b"Approve", b"Reject", b"not", b"?", b"\r\n", b"> ", b"<div>", b"</div>", b"=20", b"\x00", b"\xff")
_CLEAR = re.compile(r"approve|\byes\b|go ahead|\U0001f44d|\u2705", re.IGNORECASE)


@dataclass(slots=True)
class Outcome:
    """What the rounds were like. `bad` are mails with what was wrong with them."""

    rounds: int = 0
    slowest_seconds: float = 0.0
    kinds: Counter[LetterKind] = field(default_factory=Counter)
    approvals: int = 0
    bad: list[tuple[str, bytes]] = field(default_factory=list)


def fuzz(rounds: int, seed: int) -> Outcome:
    """Read so many changed mails; the same seed gives the same mails."""
    chance, outcome = random.Random(seed), Outcome()
    mails = [load(case["file"]) for case in STORED]
    question = action(args=PROPOSALS["pay_invoice"], args_schema={})
    for _ in range(rounds):
        raw = changed(chance, mails)
        before = time.thread_time()
        letter = read(raw, TRUSTED, OURS)
        own = letter.own
        judged = judge(own.text, own.agrees, own.values, question, in_quote=own.in_quote)
        took = time.thread_time() - before
        outcome.rounds += 1
        outcome.kinds[letter.kind] += 1
        outcome.slowest_seconds = max(outcome.slowest_seconds, took)
        outcome.approvals += judged.verdict is Verdict.APPROVE
        if took > LONGEST_SECONDS:
            outcome.bad.append((f"took {took:.1f} s", raw))
        if "could not be read (" in letter.why:
            outcome.bad.append((letter.why, raw))
        if judged.verdict is Verdict.APPROVE and not is_clear(letter):
            outcome.bad.append((f"approved by {own.text!r}", raw))
    return outcome


def is_clear(letter: Letter) -> bool:
    """Whether a person would say that the own text holds a word that approves."""
    return _CLEAR.search(letter.own.text) is not None


def changed(chance: random.Random, mails: list[bytes]) -> bytes:
    """One of the mails, changed in one to five places."""
    raw = chance.choice(mails)
    for _ in range(chance.randint(1, 5)):
        raw = chance.choice((_byte, _cut, _word, _doubled, _moved, _joined))(chance, raw, mails)
    return raw


def _place(chance: random.Random, raw: bytes) -> int:
    return chance.randrange(len(raw) + 1)


def _byte(chance: random.Random, raw: bytes, _: list[bytes]) -> bytes:
    at = _place(chance, raw)
    return raw[:at] + bytes((chance.randrange(256),)) + raw[at + 1 :]


def _cut(chance: random.Random, raw: bytes, _: list[bytes]) -> bytes:
    at = _place(chance, raw)
    return raw[:at] + raw[at + chance.randint(1, 200) :]


def _word(chance: random.Random, raw: bytes, _: list[bytes]) -> bytes:
    at = _place(chance, raw)
    return raw[:at] + chance.choice(_WORDS) * chance.choice((1, 1, 2, 50)) + raw[at:]


def _doubled(chance: random.Random, raw: bytes, _: list[bytes]) -> bytes:
    lines = raw.split(b"\r\n")
    at = chance.randrange(len(lines))
    return b"\r\n".join(lines[: at + 1] + [lines[at]] * chance.choice((1, 3, 100)) + lines[at + 1 :])


def _moved(chance: random.Random, raw: bytes, _: list[bytes]) -> bytes:
    lines = raw.split(b"\r\n")
    lines.insert(chance.randrange(len(lines)), lines.pop(chance.randrange(len(lines))))
    return b"\r\n".join(lines)


def _joined(chance: random.Random, raw: bytes, mails: list[bytes]) -> bytes:
    other = chance.choice(mails)
    return raw[: _place(chance, raw)] + other[_place(chance, other) :]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, default=Path("fuzz-mail"))
    options = parser.parse_args()
    outcome = fuzz(options.rounds, options.seed)
    kinds = ", ".join(f"{kind} {count}" for kind, count in outcome.kinds.most_common())
    slowest = f"slowest {outcome.slowest_seconds:.2f} s"
    print(f"{outcome.rounds} mails ({kinds}), {outcome.approvals} approvals, {slowest}")
    for number, (why, raw) in enumerate(outcome.bad):
        options.keep.mkdir(exist_ok=True)
        kept = options.keep / f"{number:04}.eml"
        kept.write_bytes(raw)
        print(f"{kept}: {why}")
    return 1 if outcome.bad else 0


if __name__ == "__main__":
    sys.exit(main())
