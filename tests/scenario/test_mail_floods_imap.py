"""Does a flood in the mailbox wait there, let others pass, and come in to the last mail?"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.fakes.clock import FakeClock
from tests.fakes.mail.certificate import make_certificate
from tests.fakes.mail.dovecot import PASSWORD, USER, Dovecot, dovecot_server
from tests.fakes.mail.smtp_sink import SmtpSink
from tests.fakes.model_server import ModelServer
from tests.fakes.runtime import serving, write_home
from tests.scenario.test_mail_floods import answers, mail
from tests.unit.email.conftest import ADA, AGENT, AUTHSERV, BOB, PEOPLE, Post, comes

MOST = 20
FLOOD = 50


@pytest.fixture
def dovecot(tmp_path: Path) -> Iterator[Dovecot]:
    with dovecot_server(make_certificate(tmp_path)) as server:
        yield server


@pytest_asyncio.fixture
async def post(tmp_path: Path, model: ModelServer, dovecot: Dovecot, clock: FakeClock) -> AsyncIterator[Post]:
    with SmtpSink() as sink:
        email = f"""
[email]
address = "{AGENT}"
trusted_authserv_ids = ["{AUTHSERV}"]
[email.imap]
host = "127.0.0.1"
port = {dovecot.port}
security = "none"
username = "{USER}"
password = "{PASSWORD}"
poll_seconds = 1
[email.smtp]
host = "127.0.0.1"
port = {sink.port}
security = "none"
[email.caps]
accepted_per_person_hour = {MOST}
"""
        home = write_home(tmp_path / "home", model.url, people=PEOPLE, more_toml=email)
        async with serving(home, clock=clock) as served:
            await served.runtime.working
            yield Post(served, sink, 0)


async def test_a_flood_in_the_mailbox_waits_there_and_comes_in_hour_by_hour(
    post: Post, dovecot: Dovecot, clock: FakeClock
) -> None:
    await comes(post.state, lambda state: state["state"] == "ok")
    dovecot.deliver(*(mail(ADA, f"flood-{n}", f"[[say wave {n}.]]") for n in range(FLOOD)))
    dovecot.deliver(mail(BOB, "bob", "[[say Bob passes them]]"))
    await post.gets(BOB, "Bob passes them")
    for waiting in (FLOOD - MOST, FLOOD - 2 * MOST):
        remarks = await post.remarks(f"{waiting} mails wait in the mailbox")
        assert "as many mails in an hour as are taken in: from Ada; more wait" in remarks
        clock.advance(seconds=3601)
    await comes(lambda: answered(post), lambda count: count == FLOOD)
    assert answers(post, ADA) == Counter(f"wave {n}." for n in range(FLOOD))
    assert (await post.state()).get("detail") is None


async def answered(post: Post) -> int:
    return len(post.mails(ADA))
