"""Does what we say to somebody who answered by mail say what was done, and what to do?"""

from __future__ import annotations

import pytest
from pizzabot.adapters.email import words

from tests.unit.email.written import action

PAGE = "https://pizza.example/actions/a1"


@pytest.mark.parametrize("kept", [True, False])
def test_a_question_says_that_words_are_kept_only_when_there_were_any(kept: bool) -> None:
    for is_last in (False, True):
        said = words.question(action(), "amount is not a number", PAGE, kept=kept, is_last=is_last)
        assert "I could not tell: amount is not a number" in said
        assert ("What you wrote is kept for the agent." in said) is kept


def test_only_the_last_question_leads_to_the_page_and_invites_no_answer() -> None:
    asked = [
        (
            words.question(action(), "your mail is empty", PAGE, kept=True, is_last=is_last),
            words.list_question("there is no number 9", PAGE, is_last=is_last),
        )
        for is_last in (False, True)
    ]
    for first, last in zip(*asked, strict=True):
        assert "answer" in first.lower()
        assert PAGE not in first
        assert "answer" not in last.lower()
        assert "no further question" in last
        assert last.splitlines()[-1] == PAGE


def test_a_reason_that_ends_its_sentence_gets_no_second_full_stop() -> None:
    assert ".." not in words.list_question(words.SEVERAL_QUESTIONS, PAGE)
