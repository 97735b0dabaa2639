"""Is every mail of the corpus taken for what it is?"""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pizzabot.adapters.email.letters import Envelope, Letter, LetterKind
from pizzabot.adapters.email.reading.pipeline import read

from ..mails import GENERATED, OURS, STORED, TRUSTED, load

ROOT = Path(__file__).parents[4]
CLASSES = {
    LetterKind.HUMAN: "human_reply",
    LetterKind.AUTO: "auto_reply",
    LetterKind.CALENDAR: "receipt",
}


def class_of(letter: Letter, approver: str) -> str:
    """What the corpus calls it: forged is a person's mail that is not proven to be the approver's."""
    if letter.kind is LetterKind.HUMAN and not _is_proven(letter, approver):
        return "spoofed"
    name: str = CLASSES.get(letter.kind, letter.kind.value)
    return name


def _is_proven(letter: Letter, approver: str) -> bool:
    return letter.verified and letter.author is not None and letter.author.address == approver


def expected(case: dict[str, Any]) -> set[str]:
    return {case["class"], *case["class_also"]}


@pytest.mark.parametrize("case", STORED, ids=lambda case: case["file"])
def test_a_mail_of_the_corpus_is_taken_for_what_it_is(case: dict[str, Any]) -> None:
    letter = read(load(case["file"]), TRUSTED, OURS)
    assert class_of(letter, case["setup"]["approver"]) in expected(case), (letter.why, letter.verification)


@pytest.mark.parametrize("case", STORED, ids=lambda case: case["file"])
def test_nothing_of_the_corpus_is_verified_where_no_server_is_trusted(case: dict[str, Any]) -> None:
    assert not read(load(case["file"]), Envelope(), OURS).verified


_LIMITED = """
import resource, sys, time
from pathlib import Path
from tests.unit.email.mails import OURS, TRUSTED, load
from pizzabot.adapters.email.reading.pipeline import read
raw = load(sys.argv[1])
before = time.process_time()
letter = read(raw, TRUSTED, OURS)
seconds = time.process_time() - before
# Not of getrusage where there is something else: Linux counts in it what the parent took before the exec.
status = Path("/proc/self/status")
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
if status.exists():
    peak = int(status.read_text().partition("VmHWM:")[2].split()[0]) * 1024
print(letter.kind.value, seconds, peak)
"""


@pytest.mark.parametrize("case", GENERATED, ids=lambda case: case["file"])
def test_a_huge_mail_is_read_within_its_limits(case: dict[str, Any]) -> None:
    command = [sys.executable, "-c", _LIMITED, case["file"]]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    kind, seconds, memory = done.stdout.split()
    assert CLASSES.get(LetterKind(kind), kind) in expected(case)
    assert float(seconds) < case["limits"]["seconds"]
    assert int(memory) < case["limits"]["rss_mb"] * 2**20


HUGE = ("gen_mime_bomb_1000", "gen_10000_recipients", "gen_html_deep_20000", "gen_redos_on_wrote")


@pytest.mark.parametrize("name", HUGE)
def test_a_mail_made_to_be_slow_is_read_all_the_same(name: str) -> None:
    raw = load(name)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    letter = read(raw, TRUSTED, OURS)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_utime - before < 5  # a guard against hanging
    assert "ledger+r-k3v9q2m7x4t8b6wz5n1c0hd@approvals.example.net" in letter.recipients
    assert (letter.kind is LetterKind.MALFORMED) == (name == "gen_mime_bomb_1000")
