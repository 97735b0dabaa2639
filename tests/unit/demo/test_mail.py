"""Does the demo's outgoing mail become files, and is what its person writes a mail as programs write it?"""

from __future__ import annotations

import smtplib
import socket
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pizzabot.demo.mailbox import file_name, mailbox
from pizzabot.demo.send import answering, beginning, main, written


def mail(subject: str) -> EmailMessage:
    made = EmailMessage(policy=default)
    made["From"], made["To"], made["Subject"] = "pizza@demo.example", "you@demo.example", subject
    made.set_content("Hello")
    return made


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def test_each_mail_becomes_a_numbered_file(tmp_path: Path) -> None:
    heard: list[tuple[str, str, str]] = []
    port, folder = free_port(), tmp_path / "mail"
    for subject in ("Re: Show my expenses", "über alles/../x"):  # also after a restart
        with (
            mailbox(folder, port, lambda to, said, file: heard.append((to, said, file.name))),
            smtplib.SMTP("127.0.0.1", port) as client,
        ):
            client.send_message(mail(subject))
    assert heard == [
        ("you@demo.example", "Re: Show my expenses", "0001-Re-Show-my-expenses.eml"),
        ("you@demo.example", "über alles/../x", "0002-ber-alles-x.eml"),
    ]
    files = sorted(folder.iterdir())
    assert [message_from_bytes(file.read_bytes(), policy=default)["Subject"] for file in files] == [
        "Re: Show my expenses",
        "über alles/../x",
    ]
    assert all(file.stat().st_mode & 0o077 == 0 for file in (folder, *files))


def test_a_taken_port_is_said_at_once(tmp_path: Path) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(OSError, match="in use"),
        mailbox(tmp_path, taken.getsockname()[1], lambda to, said, file: None),
    ):
        raise AssertionError("the port is taken")


@given(st.text())
def test_a_file_name_stays_in_its_folder_and_needs_no_quotes(subject: str) -> None:
    name = file_name(7, subject)
    assert name.startswith("0007-")
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.")
    assert len(name) <= 80
    assert ".." not in name


def test_an_answer_goes_to_the_reply_address_and_quotes_what_it_answers() -> None:
    asked = mail("[Action] pay")
    asked["Reply-To"], asked["Message-ID"] = "pizza+r-token@demo.example", "<1@demo.example>"
    asked.set_content("amount: 42.5\nnote: taxi\n")
    reply = answering(asked.as_bytes(), "", ["amount=40=2"])
    assert reply["To"] == "pizza+r-token@demo.example"
    assert reply["In-Reply-To"] == "<1@demo.example>"
    assert reply["Subject"] == "Re: [Action] pay"
    assert reply.get_content().splitlines()[-2:] == ["> amount: 40=2", "> note: taxi"]
    with pytest.raises(ValueError, match="no line that begins with amoun:"):
        answering(asked.as_bytes(), "", ["amoun=1"])


def test_a_mail_carries_the_verdict_that_the_demo_believes() -> None:
    results = str(written("Hello", "A task")["Authentication-Results"])
    assert results == "mx.demo.example; dmarc=pass header.from=demo.example"


@pytest.mark.parametrize("words", [[], [" "], ["--set", "amount=40"]])
def test_a_mail_without_a_text_is_a_wrong_use(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert "Give its text, or --answer FILE" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("Show my expenses", "Show my expenses"),
        ("Show\nmy   expenses", "Show my expenses"),
        ("Please file " + "an expense " * 9, "Please file an expense an expense an expense an expense an …"),
    ],
)
def test_the_subject_of_a_mail_is_its_first_words(text: str, subject: str) -> None:
    assert beginning(text) == subject


def test_a_file_that_is_not_there_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--home", str(tmp_path), "--answer", str(tmp_path / "none.eml"), "Approve"]) == 1
    assert capsys.readouterr().err.endswith("none.eml: No such file or directory\n")
