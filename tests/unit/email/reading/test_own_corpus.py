"""The corpus of mails: its own text and its decisions, for every mail that a person wrote."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email import message_from_bytes, policy
from email.message import EmailMessage
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pizzabot.adapters.email.letters import Ours
from pizzabot.adapters.email.reading.own import own_text

from pizzabot.approvals.replies import Judged, judge
from pizzabot.messages import Action, ActionKind, ActionState, Verdict

CORPUS = Path(__file__).parents[3] / "corpus" / "email"
OURS = Ours(("ledger@approvals.example.net",), "test")
_EXPECTED = json.loads((CORPUS / "expected.json").read_text("utf-8"))
# What these ask for is decided elsewhere: by the state of the action, by tokens, and by the size of a mail.
_ELSEWHERE = ("a07", "a09", "a11", "b17", "gen_")
_CASES = [
    pytest.param(case, id=case["file"])
    for case in _EXPECTED["cases"]
    if case["class"] == "human_reply" and not case["file"].startswith(_ELSEWHERE)
]


@pytest.fixture(scope="module")
def render() -> ModuleType:
    """The corpus' own module, which fills its placeholders."""
    spec = spec_from_file_location("corpus_email_render", CORPUS / "render.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    with _files_left_open():
        spec.loader.exec_module(module)
    return module


@contextmanager
def _files_left_open() -> Iterator[None]:
    """The corpus' module leaves the closing of its files to the interpreter."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        yield


def _bodies(part: EmailMessage, kind: str) -> list[str]:
    if part.get_content_disposition() == "attachment" or part.get_content_maintype() == "message":
        return []
    if part.is_multipart():
        return [text for inner in part.iter_parts() for text in _bodies(inner, kind)]  # type: ignore[arg-type]
    return [part.get_content()] if part.get_content_type() == kind else []


def _action(name: str) -> Action:
    args = _EXPECTED["proposals"][name]
    allowed = (Verdict.APPROVE, Verdict.EDIT, Verdict.REJECT)
    created = datetime(2026, 11, 3, tzinfo=UTC)
    kind, state = ActionKind.TOOL, ActionState.PENDING
    return Action("a1", "t1", "r1", kind, name, name, args, {}, "d", allowed, (), state, created)


def _decision(judged: Judged, action: Action) -> dict[str, Any]:
    if judged.verdict is None:
        return {"kind": "clarify" if judged.unclear else "message"}
    changes = {k: v for k, v in (judged.args or {}).items() if v != action.args.get(k)}
    return {"kind": str(judged.verdict), "reason": judged.reason, "changes": changes}


def _same(wanted: dict[str, Any], got: dict[str, Any]) -> bool:
    if wanted["kind"] != got["kind"]:
        return False
    if wanted["kind"] == "edit":
        return bool(wanted["changes"] == got["changes"])
    return wanted.get("reason", "").rstrip(".!").lower() in " ".join(got.get("reason", "").lower().split())


@pytest.mark.parametrize("case", _CASES)
def test_a_mail_of_the_corpus(case: dict[str, Any], render: ModuleType) -> None:
    with _files_left_open():
        raw = render.load(case["file"])
    mail = message_from_bytes(raw, policy=policy.default)
    assert isinstance(mail, EmailMessage)
    found = own_text(_bodies(mail, "text/plain"), _bodies(mail, "text/html"), OURS)
    if case["new_text"] is not None:
        accepted = [render.expected_text(text) for text in (case["new_text"], *case["new_text_also"])]
        assert found.full.split() in [text.split() for text in accepted]
    action = _action(case["setup"]["proposal"])
    got = _decision(judge(found.text, found.agrees, found.values, action, in_quote=found.in_quote), action)
    assert any(_same(wanted, got) for wanted in (case["decision"], *case["accept_also"])), got
    assert got["kind"] not in case["must_not"]
