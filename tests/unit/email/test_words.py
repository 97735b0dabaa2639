"""Does what we say to somebody who answered by mail say what was done, and what to do?"""

from __future__ import annotations

import pytest
from pizzabot.adapters.email import words

from tests.unit.email.written import action


@pytest.mark.parametrize("kept", [True, False])
def test_a_question_says_that_words_are_kept_only_when_there_were_any(kept: bool) -> None:
    said = words.question(action(), "amount is not a number", kept=kept)
    assert "I could not tell: amount is not a number" in said
    assert ("What you wrote is kept for the agent." in said) is kept
