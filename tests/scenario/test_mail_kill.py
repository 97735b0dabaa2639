"""Does `kill -9` lose, repeat or forget anything that people wrote by mail, or that is written to them?"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from pizzabot.home import Home
from tests.fakes.mail.smtp_sink import Fault, SmtpSink
from tests.fakes.model_server import ModelServer
from tests.fakes.runtime import ledger_calls, write_home
from tests.lab.nursery import Doomed
from tests.scenario.mailing import (
    PEOPLE,
    Office,
    answer,
    email_toml,
    free_port,
    ids,
    listen_toml,
    mail,
    until,
)

_STALLED = 3600.0
_TAKEN = ("INSERT ON channel_notes", "NEW.key LIKE 'taken/%'")  # what comes right before the 250


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory, model: ModelServer) -> Iterator[Office]:
    with SmtpSink() as sink:
        port = free_port()
        home = write_home(
            tmp_path_factory.mktemp("mail") / "home",
            model.url,
            people=PEOPLE,
            more_toml=email_toml(sink.port, listen_toml(port)),
        )
        office = Office(Doomed(home.path), sink, port)
        office.server.start()
        try:
            yield office
        finally:
            office.server.kill()


@pytest.fixture
def office(process: Office, model: ModelServer) -> Iterator[Office]:
    """The office with everything in order, and put in order again."""
    process.get("/healthz")
    yield process
    process.sink.faults.clear()
    model.latency_seconds = 0.0


def stalled(office: Office, fault: Fault) -> None:
    """Wait until the outgoing server has come to the step at which it says nothing any more."""
    until(lambda: fault not in office.sink.faults, f"nobody came to {fault.step}")


def asked(model: ModelServer, words: str) -> int:
    return sum(words in said for _, said in model.arrivals)


def expense(note: str) -> str:
    return f'[[call bookkeeper submit_expense {{"amount": 3, "note": "{note}"}}]]'


# -- mail comes in -------------------------------------------------------------------------------------------


def test_every_mail_is_answered_once_though_the_server_is_killed_again_and_again(office: Office) -> None:
    chance = random.Random(5)
    words = [f"answer {number} of all" for number in range(8)]
    people = [threading.Thread(target=office.sends, args=(mail(f"[[say {word}]]"),)) for word in words]
    for number, person in enumerate(people, 1):
        person.start()
        time.sleep(chance.uniform(0, 0.3))
        if number % 4 == 0:
            office.again()
    for person in people:
        person.join()
    for word in words:
        office.gets(word)
        office.thread(word, "idle")
    office.has_sent_all()
    assert Counter({word: len(set(ids(office.copies(word)))) for word in words}) == dict.fromkeys(words, 1)


def test_a_mail_is_brought_again_until_it_is_committed_and_then_never_forgotten(
    office: Office, model: ModelServer
) -> None:
    written = mail("[[say committed and killed]]")
    with office.refusing(("INSERT ON inbound", "TRUE")):
        assert office.answers(written) == 451
        office.server.kill()
    office.server.start()
    office.sends(written)
    office.again()  # the door opens long before the agent is there
    assert asked(model, "committed and killed") == 0
    office.gets("committed and killed")
    office.thread("committed and killed", "idle")
    assert len(office.copies("committed and killed")) == 1


def test_a_mail_in_whose_work_the_kill_came_is_answered_once(office: Office, model: ModelServer) -> None:
    model.latency_seconds = _STALLED
    office.sends(mail("[[say thought about twice]]"))
    until(lambda: asked(model, "thought about twice"), "the model is asked")
    unacknowledged = mail("[[say brought twice]]")
    with office.refusing(_TAKEN):
        assert office.answers(unacknowledged) == 451
        office.server.kill()
    model.latency_seconds = 0.0
    office.server.start()
    office.sends(unacknowledged)
    for words in ("thought about twice", "brought twice"):
        office.gets(words)
        office.thread(words, "idle")
        assert len(office.copies(words)) == 1


def test_a_question_from_before_the_kill_is_decided_by_its_answer_once_though_that_is_killed_too(
    office: Office,
) -> None:
    office.sends(mail(expense("asked before the kill")))
    question = office.gets("[Action]")
    office.again()
    approval = answer(question, "Approve")
    with office.refusing(_TAKEN, ("UPDATE ON runs", "NEW.state = 'running'")):  # nor does the work go on yet
        assert office.answers(approval) == 451
        office.server.kill()
    office.server.start()
    office.sends(approval)
    office.gets("Result:")
    office.thread("asked before the kill", "idle")
    office.has_sent_all()
    assert len(office.copies("[Action]")) == 1
    assert len(office.copies("Approved: ")) == 1
    ran = [call["args"]["note"] for call in ledger_calls(Home(office.home), "start")]
    assert ran == ["asked before the kill"]


# -- mail goes out -------------------------------------------------------------------------------------------


def test_a_mail_that_never_reached_its_server_is_sent_however_often_the_kill_came_first(
    office: Office,
) -> None:
    office.sink.down()
    office.sends(mail("[[say not given to anybody]]"))
    until(lambda: office.rows("SELECT 1 FROM outbox WHERE state = 'pending' AND tries > 0"), "a try")
    office.server.kill()
    ((row, tries),) = office.rows("SELECT id, tries FROM outbox WHERE state = 'pending'")
    office.sink.up()
    for fault in (Fault("greeting", seconds=_STALLED), Fault("DATA", seconds=_STALLED)):
        office.sink.faults.append(fault)
        office.server.start()
        stalled(office, fault)
        office.server.kill()
    office.server.start()
    office.gets("not given to anybody")
    office.has_sent_all()
    assert len(office.copies("not given to anybody")) == 1
    assert office.rows(f"SELECT tries FROM outbox WHERE id = '{row}'") == [(tries + 3,)]  # one at each start


def test_a_mail_whose_answer_was_lost_in_the_kill_is_sent_once_more_as_the_same_mail_and_then_shown(
    office: Office,
) -> None:
    faults = [Fault("content", seconds=_STALLED), Fault("content", seconds=_STALLED + 1)]
    office.sink.faults += faults
    office.sends(mail("[[say perhaps given]]"))
    for fault in faults:
        stalled(office, fault)
        office.again()
    office.has_sent_all()
    assert [
        row for row in office.get("/api/status")["outbox"]["failed"] if "probably arrived" in row["error"]
    ]
    first, second = ids(office.copies("perhaps given"))
    assert first == second


def test_a_mail_that_its_server_took_is_not_sent_again_when_the_kill_came_before_that_was_stored(
    office: Office,
) -> None:
    with office.refusing(("UPDATE ON outbox", "NEW.state = 'sent'")):
        office.sends(mail("[[say given and noted]]"))
        until(lambda: office.rows("SELECT 1 FROM outbox WHERE state = 'unknown'"), "it is not stored")
        office.server.kill()
    office.server.start()
    office.has_sent_all()
    assert len(office.copies("given and noted")) == 1
