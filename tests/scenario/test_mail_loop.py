"""Do two installations that know each other's address stop writing to each other, and does status show it?"""

from __future__ import annotations

import re
import smtplib
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.fakes.mail.smtp_sink import Mail, SmtpSink
from tests.fakes.model_server import ModelServer
from tests.fakes.runtime import write_home
from tests.lab.nursery import Doomed
from tests.scenario.mailing import AUTHSERV, Office, email_toml, free_port, listen_toml, mail, until

ALPHA, BETA = "pizza@alpha.example", "pizza@beta.example"
_MOST = 3
_CAPS = f"\n[email.caps]\nper_verified_person_hour = {_MOST}\n"
_MARKS = re.compile(rb"(?mi)^(?:Auto-Submitted|X-Auto-Response-Suppress|X-Pizzabot-Loop):.*\r\n")


@dataclass
class Relay:
    """Brings what the one sends to the door of the other, and says that its sender is proven."""

    door: int
    domain: str
    takes_marks_away: bool = False

    def __call__(self, sent: Mail) -> None:
        proven = f"Authentication-Results: {AUTHSERV}; dmarc=pass header.from={self.domain}\r\n".encode()
        content = proven + (_MARKS.sub(b"", sent.content) if self.takes_marks_away else sent.content)
        with smtplib.SMTP("127.0.0.1", self.door, timeout=20) as client:
            client.sendmail(sent.sender, sent.recipients, content)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory, model: ModelServer) -> Iterator[tuple[Office, Office]]:
    """Each has the other among its people, and each one's mail comes to the other."""
    with SmtpSink() as from_alpha, SmtpSink() as from_beta:
        offices = []
        for own, other, sink in ((ALPHA, BETA, from_alpha), (BETA, ALPHA, from_beta)):
            port = free_port()
            people = f'[[people]]\nname = "The other"\nrole = "owner"\nemails = ["{other}"]\n'
            toml = email_toml(sink.port, listen_toml(port), own) + _CAPS
            folder = tmp_path_factory.mktemp("mail") / "home"
            home = write_home(folder, model.url, people=people, more_toml=toml)
            offices.append(Office(Doomed(home.path), sink, port))
        alpha, beta = offices
        from_alpha.deliver = Relay(beta.door, "alpha.example")
        from_beta.deliver = Relay(alpha.door, "beta.example")
        alpha.server.start()
        beta.server.start()
        try:
            yield alpha, beta
        finally:
            alpha.server.kill()
            beta.server.kill()


def test_an_answer_of_another_installation_is_known_by_its_marks_and_not_answered(
    both: tuple[Office, Office],
) -> None:
    alpha, beta = both
    beta.get("/healthz")
    alpha.sends(mail("[[say as agreed]]", author=BETA, to=ALPHA))
    beta.remarks("was written by no person: auto: 1")
    assert len(alpha.sink.mails) == 1
    assert beta.sink.mails == []
    assert beta.get("/api/threads")["threads"] == []


def test_two_installations_whose_marks_get_lost_stop_at_the_cap_and_status_shows_it(
    both: tuple[Office, Office],
) -> None:
    alpha, beta = both
    for office in both:
        office.sink.mails.clear()
        assert isinstance(office.sink.deliver, Relay)
        office.sink.deliver.takes_marks_away = True
    alpha.sends(mail("Hello", author=BETA, to=ALPHA))
    held = until(lambda: [office for office in both if waiting(office)], "an answer too many, which waits")
    for office in held:
        office.remarks(f"as many mails an hour as allowed: {BETA if office is alpha else ALPHA}")
    assert [waiting(office) for office in both].count(1) == 1
    assert [row["state"] for office in both for row in office.threads("Hello")] == ["idle", "idle"]
    # What the one had said before counts, too.
    assert 2 * _MOST - 2 <= len(alpha.sink.mails) + len(beta.sink.mails) <= 2 * _MOST


def waiting(office: Office) -> int:
    """How many answers wait for the next hour."""
    query = "SELECT count(*) FROM outbox WHERE state = 'pending' AND error LIKE 'too many mails to%'"
    return int(office.rows(query)[0][0])
