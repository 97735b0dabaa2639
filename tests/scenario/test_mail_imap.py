"""Does a server take each mail of a real mailbox once, whatever happens to it, to Dovecot or the mails?"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Iterator

import pytest

from adapters.email.imap.connection import TAKEN
from tests.fakes.mail.certificate import make_certificate
from tests.fakes.mail.dovecot import PASSWORD, USER, Dovecot, dovecot_server
from tests.fakes.mail.smtp_sink import SmtpSink
from tests.fakes.model_server import ModelServer
from tests.fakes.runtime import write_home
from tests.lab.nursery import Doomed
from tests.scenario.mailing import PEOPLE, Office, email_toml, ids, mail, until

_OLD = 2_000


@pytest.fixture(scope="module")
def dovecot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dovecot]:
    with dovecot_server(make_certificate(tmp_path_factory.mktemp("certificate"))) as server:
        yield server


@pytest.fixture(scope="module")
def office(
    tmp_path_factory: pytest.TempPathFactory, model: ModelServer, dovecot: Dovecot
) -> Iterator[Office]:
    """A server whose mailbox held many mails long before it was started."""
    old = mail("[[say old]]").as_bytes()
    dovecot.deliver(*(old.replace(b"Message-ID: <", b"Message-ID: <%d." % number) for number in range(_OLD)))
    for file in (dovecot.maildir / "new").iterdir():  # a maildir's INTERNALDATE is the time of the file
        os.utime(file, (time.time() - 86_400, time.time() - 86_400))
    imap = (
        f'[email.imap]\nhost = "127.0.0.1"\nport = {dovecot.port}\nsecurity = "none"\n'
        f'username = "{USER}"\npassword = "{PASSWORD}"\n'
    )
    with SmtpSink() as sink:
        home = write_home(
            tmp_path_factory.mktemp("mail") / "home",
            model.url,
            people=PEOPLE,
            more_toml=email_toml(sink.port, imap),
        )
        office = Office(Doomed(home.path), sink)
        office.server.start()
        try:
            watches(office)
            yield office
        finally:
            office.server.kill()


def watches(office: Office) -> None:
    """Wait until the mailbox is watched."""
    until(lambda: office.email_state()["state"] == "ok", "the mailbox is watched")


def come(dovecot: Dovecot, *words: str) -> list[bytes]:
    mails = [mail(f"[[say {word}]]").as_bytes() for word in words]
    dovecot.deliver(*mails)
    return mails


def answered_once(office: Office, *words: str) -> None:
    """Wait for the answers; each of the mails began one thread and was answered by one mail."""
    for word in words:
        office.gets(word)
        office.thread(word, "idle")
    office.has_sent_all()
    assert {word: len(set(ids(office.copies(word)))) for word in words} == dict.fromkeys(words, 1)


def all_taken(office: Office) -> int:
    return int(office.get("/api/threads?view=all&limit=1")["counts"]["all"])


def test_two_thousand_old_mails_are_left_alone_and_the_first_new_one_is_answered(
    office: Office, dovecot: Dovecot
) -> None:
    assert all_taken(office) == 0
    come(dovecot, "the first new one")
    answered_once(office, "the first new one")
    assert all_taken(office) == 1
    with dovecot.other() as client:
        assert len(client.search(["KEYWORD", TAKEN])) == 1
        assert len(client.search("UNSEEN")) == _OLD + 1


def test_each_mail_of_a_mailbox_is_answered_once_though_the_server_is_killed_while_they_come(
    office: Office, dovecot: Dovecot
) -> None:
    chance = random.Random(7)
    words = [f"in the box {letter}" for letter in "abcdef"]
    before = all_taken(office)
    for word in words[:4]:
        come(dovecot, word)
        time.sleep(chance.uniform(0, 0.1))
    office.again()
    come(dovecot, *words[4:])
    answered_once(office, *words)
    assert all_taken(office) == before + len(words)


def test_a_mail_that_was_taken_and_not_noted_in_the_cursor_is_known_after_the_kill(
    office: Office, dovecot: Dovecot
) -> None:
    watches(office)
    cursor = "NEW.key LIKE 'imap/%'"
    with office.refusing(("INSERT ON channel_notes", cursor), ("UPDATE ON channel_notes", cursor)):
        come(dovecot, "taken and not noted")
        until(lambda: office.threads("taken and not noted"), "the mail is a thread")
        office.server.kill()
    office.server.start()
    come(dovecot, "the one after it")
    answered_once(office, "taken and not noted", "the one after it")


def test_what_comes_while_dovecot_and_the_server_are_down_is_answered_when_they_are_back(
    office: Office, dovecot: Dovecot
) -> None:
    dovecot.stop()
    until(lambda: office.email_state()["state"] in ("connecting", "down"), "status says it")
    come(dovecot, "while dovecot was down")
    dovecot.start()
    answered_once(office, "while dovecot was down")
    assert office.email_state()["state"] == "ok"


def test_new_uids_bring_back_neither_what_was_answered_nor_what_is_old(
    office: Office, dovecot: Dovecot
) -> None:
    come(dovecot, "before the new uids")
    answered_once(office, "before the new uids")
    before = all_taken(office)
    dovecot.stop()
    dovecot.forget_uids(uidvalidity=4_711)
    come(dovecot, "with the new uids")
    dovecot.start()
    answered_once(office, "with the new uids", "before the new uids")
    assert all_taken(office) == before + 1


def test_people_who_read_flag_and_move_mails_meanwhile_change_nothing(
    office: Office, dovecot: Dovecot
) -> None:
    words = [f"among people {letter}" for letter in "abcdefgh"]
    before = all_taken(office)
    is_over = threading.Event()

    def meddle() -> None:
        with dovecot.other() as client:
            if not client.folder_exists("Aside"):
                client.create_folder("Aside")
            while not is_over.is_set():
                client.noop()
                uids = client.search(["UNDELETED"])[-4:]
                client.add_flags(uids, [b"\\Seen", b"\\Flagged"], silent=True)
                client.move(uids[:1], "Aside")
                client.select_folder("Aside")
                client.move(client.search("ALL"), "INBOX")
                client.select_folder("INBOX")

    person = threading.Thread(target=meddle)
    person.start()
    try:
        for word in words:
            come(dovecot, word)
        answered_once(office, *words)
    finally:
        is_over.set()
        person.join()
    assert all_taken(office) == before + len(words)
