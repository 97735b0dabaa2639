"""Do the docs tell of everything there is?"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pizzabot.adapters.web.api.routes import TABLE

from pizzabot.clock import SystemClock
from pizzabot.settings import load_settings
from pizzabot.triggers.trigger import made_from_table

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("path", [*TABLE, "/healthz", "/metrics"])
def test_every_path_of_the_api_is_documented(path: str) -> None:
    assert path in (DOCS / "api.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "word",
    [
        *(
            "action",
            "gate",
            "run",
            "thread",
            "outbox",
            "skill",
            "worker",
            "letter",
            "reply address",
            "verified",
        ),
        *("trigger", "occurrence", "misfire", "overlap"),
    ],
)
def test_the_glossary_explains_the_words_of_the_trade(word: str) -> None:
    assert f"| **{word}**" in (DOCS / "glossary.md").read_text(encoding="utf-8")


def test_the_page_on_email_shows_settings_that_are_right(tmp_path: Path) -> None:
    text = (DOCS / "email.md").read_text(encoding="utf-8")
    gmail = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    whole = [part for part in gmail if part.startswith("[email]\n")]
    assert len(whole) == 3
    for part in whole:
        more = "" if "[email.smtp]" in part else '[email.smtp]\nhost = "smtp.example.com"\n'
        (tmp_path / "pizzabot.toml").write_text(part + more)
        assert load_settings(tmp_path, {"GMAIL_APP_PASSWORD": "secret-word"}).email.enabled


def test_the_page_on_triggers_shows_tables_that_are_right(tmp_path: Path) -> None:
    text = (DOCS / "triggers.md").read_text(encoding="utf-8")
    tables = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    (tmp_path / "pizzabot.toml").write_text("\n".join(tables))
    settings = load_settings(tmp_path, {"BUILDS_SECRET": "0123456789abcdef"})
    people, now = settings.directory(), SystemClock().now()
    made = [made_from_table(table.fields(), id="", people=people, now=now) for table in settings.triggers]
    assert [(trigger.name, trigger.kind) for trigger in made] == [
        ("Morning", "cron"),
        ("Failed builds", "webhook"),
    ]


def test_every_remark_on_mail_is_explained() -> None:
    """Each reason that code gives for leaving a mail alone stands in the table of status lines."""
    text = (DOCS / "email.md").read_text(encoding="utf-8")
    sources = [path.read_text(encoding="utf-8") for path in (DOCS.parent / "adapters" / "email").glob("*.py")]
    reasons = {
        reason
        for source in sources
        for reason in re.findall(r'(?:leave\([\w.]+, f?|left_alone\[)"([^"{]+)', source)
    }
    assert len(reasons) >= 9
    assert {reason for reason in reasons if f"mail that {reason.rstrip(': ')}" not in text} == set()
