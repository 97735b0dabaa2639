"""Do the docs tell of everything there is?"""

from __future__ import annotations

from pathlib import Path

import pytest
from pizzabot.adapters.web.api.routes import TABLE

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("path", [*TABLE, "/healthz"])
def test_every_path_of_the_api_is_documented(path: str) -> None:
    assert path in (DOCS / "api.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("word", ["action", "gate", "run", "thread", "outbox", "skill", "worker"])
def test_the_glossary_explains_the_words_of_the_trade(word: str) -> None:
    assert f"| **{word}**" in (DOCS / "glossary.md").read_text(encoding="utf-8")
