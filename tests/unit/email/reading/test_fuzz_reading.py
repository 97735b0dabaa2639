"""The short form of `tests.lab.fuzz_mail`."""

from __future__ import annotations

from tests.lab.fuzz_mail import fuzz


def test_changed_mails_are_read_in_time_and_approve_by_a_clear_word_only() -> None:
    outcome = fuzz(rounds=1_000, seed=20261130)
    assert outcome.bad == []
    assert outcome.approvals > 50  # or nothing was tested
