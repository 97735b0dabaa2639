"""Mails come in from a real mailbox once and in order, whatever happens to server, process and mails."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from imapclient import IMAPClient

from adapters.email.caps import TooMany
from adapters.email.imap.connection import TAKEN
from adapters.email.letters import MAX_BYTES
from pizzabot.errors import Unavailable
from tests.fakes.mail.certificate import Certificate, make_certificate
from tests.fakes.mail.dovecot import Dovecot, dovecot_server
from tests.fakes.mail.watching import QUICK, Notes, Watched, letter
from tests.fakes.patience import PATIENCE_SECONDS

KEYWORD = TAKEN.encode()
_OFTEN = replace(QUICK, renew=(0.1, 0.1))


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return make_certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture
def dovecot(certificate: Certificate) -> Iterator[Dovecot]:
    with dovecot_server(certificate) as server:
        yield server


async def emptied(server: Dovecot, notes: Notes) -> None:
    """Start a first time, so that whatever comes later is new."""
    async with Watched(server.settings(), notes) as watched:
        await watched.until_state("ok")


def flags(client: IMAPClient) -> list[set[bytes]]:
    """The flags of every mail in the folder that `client` has selected, without \\Recent."""
    client.noop()
    uids = client.search("ALL")
    return [set(flags) - {b"\\Recent"} for _, flags in sorted(client.get_flags(uids).items())]


# -- new mail ----------------------------------------------------------------------------------------------


async def test_a_new_mail_is_taken_in_by_idle(dovecot: Dovecot) -> None:
    async with Watched(dovecot.settings()) as watched:
        await watched.until_state("ok")
        began = time.monotonic()
        dovecot.deliver(letter("one", headers="Return-Path: <ada@example.com>\n"))
        await watched.until_taken("one")
        assert time.monotonic() - began < 5  # the poll is a minute away
        assert watched.mails[0][1].sender == "ada@example.com"
        assert watched.mails[0][1].believes_results
        assert watched.door.last_event_at is not None


async def test_an_idling_door_stops_at_once_and_logs_out(dovecot: Dovecot) -> None:
    async with Watched(dovecot.settings()) as watched:
        await watched.until_state("ok")
        await asyncio.sleep(0.1)
        began = time.monotonic()
    assert time.monotonic() - began < 1
    await watched.until(lambda: "Logged out" in (dovecot.root / "log").read_text())


async def test_a_server_without_idle_is_polled(certificate: Certificate) -> None:
    with dovecot_server(certificate, "imap_capability = IMAP4rev1 UIDPLUS") as server:
        async with Watched(server.settings(poll_seconds=1)) as watched:
            await watched.until_state("ok")
            server.deliver(letter("one"))
            await watched.until_taken("one")


async def test_the_first_start_leaves_two_thousand_old_mails_alone(dovecot: Dovecot) -> None:
    dovecot.deliver(*(letter(f"old {number}") for number in range(2000)))
    async with Watched(dovecot.settings()) as watched:
        await watched.until_state("ok")
        dovecot.deliver(letter("new"))
        await watched.until_taken("new")
        with dovecot.other() as client:
            assert sum(KEYWORD in said for said in flags(client)) == 1


# -- away --------------------------------------------------------------------------------------------------


async def test_what_came_while_nobody_watched_is_taken_in_once_and_in_order(dovecot: Dovecot) -> None:
    notes = Notes()
    await emptied(dovecot, notes)
    dovecot.deliver(letter("one"), letter("two"), letter("three"))
    async with Watched(dovecot.settings(), notes) as watched:
        await watched.until_taken("one", "two", "three")
        await watched.until_state("ok")
    async with Watched(dovecot.settings(), notes) as watched:
        await watched.until_state("ok")
        assert watched.subjects == []


async def test_a_server_that_restarts_is_found_again(dovecot: Dovecot) -> None:
    async with Watched(dovecot.settings()) as watched:
        await watched.until_state("ok")
        await asyncio.to_thread(dovecot.stop)
        await watched.until(lambda: watched.states[-1][0] in ("connecting", "down"))
        dovecot.deliver(letter("one"))
        await asyncio.to_thread(dovecot.start)
        await watched.until_taken("one")
        await watched.until_state("ok")


async def test_new_uids_do_not_bring_back_what_is_old(dovecot: Dovecot) -> None:
    notes = Notes()
    dovecot.deliver(letter("old"))
    for mail in (dovecot.maildir / "new").iterdir():  # a maildir's INTERNALDATE is the time of the file
        long_ago = (datetime.now(UTC) - timedelta(days=3)).timestamp()
        os.utime(mail, (long_ago, long_ago))
    async with Watched(dovecot.settings(), notes) as watched:
        await watched.until_state("ok")
        dovecot.deliver(letter("known"))
        await watched.until_taken("known")
    dovecot.stop()
    dovecot.forget_uids(uidvalidity=12345)
    dovecot.deliver(letter("new"))
    dovecot.start()
    async with Watched(dovecot.settings(), notes) as watched:
        await watched.until_taken("known", "new")  # the first is known to whoever takes it
        await watched.until_state("ok")
        dovecot.deliver(letter("newer"))
        await watched.until_taken("known", "new", "newer")


_KILLED = """
import asyncio, sys
from adapters.email.imap.door import ImapDoor
from pizzabot.settings.tables import ImapTable

class Notes(dict):
    async def get(self, key): return dict.get(self, key)
    async def put(self, key, value): print("NOTE", key, value, flush=True); self[key] = value

async def take(raw, envelope):
    print("TAKING", flush=True)
    await asyncio.sleep(60)

async def main():
    notes = Notes([sys.argv[2:4]] if len(sys.argv) > 3 else [])
    door = ImapDoor(ImapTable.model_validate_json(sys.argv[1]), take, notes, lambda state, detail: None)
    door.start()
    await asyncio.sleep(60)

asyncio.run(main())
"""


async def test_a_mail_is_taken_again_when_the_process_was_killed_before_it_was_committed(
    dovecot: Dovecot,
) -> None:
    notes = Notes()
    await emptied(dovecot, notes)
    dovecot.deliver(letter("one"))
    fields = {**dovecot.settings().model_dump(mode="json"), "password": dovecot.password}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _KILLED, json.dumps(fields), *next(iter(notes.items())), stdout=-1
    )
    assert process.stdout is not None
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert await process.stdout.readline() == b"TAKING\n"
    process.send_signal(signal.SIGKILL)
    rest, _ = await process.communicate()
    assert rest == b""  # no cursor was stored
    async with Watched(dovecot.settings(), notes) as watched:
        await watched.until_taken("one")


# -- people in the same mailbox ----------------------------------------------------------------------------


async def test_a_mail_that_somebody_has_read_is_taken_in_all_the_same(dovecot: Dovecot) -> None:
    notes = Notes()
    await emptied(dovecot, notes)
    dovecot.deliver(letter("one"), letter("two"))
    with dovecot.other() as client:
        client.add_flags(client.search("ALL"), [b"\\Seen"])
        async with Watched(dovecot.settings(), notes) as watched:
            await watched.until_taken("one", "two")
            await watched.until(lambda: flags(client) == [{b"\\Seen", KEYWORD}] * 2)


async def test_a_mail_stays_unread_when_it_is_taken_in(dovecot: Dovecot) -> None:
    async with Watched(dovecot.settings()) as watched:
        await watched.until_state("ok")
        dovecot.deliver(letter("one"))
        await watched.until_taken("one")
        with dovecot.other() as client:
            await watched.until(lambda: flags(client) == [{KEYWORD}])


async def test_a_mail_that_somebody_deletes_meanwhile_holds_up_nothing(dovecot: Dovecot) -> None:
    notes = Notes()
    await emptied(dovecot, notes)
    dovecot.deliver(letter("one"), letter("two"), letter("three"))
    with dovecot.other() as client:

        def delete_two(subject: str) -> None:
            if subject == "one":
                client.delete_messages(client.search("ALL")[1:2])
                client.expunge()

        async with Watched(dovecot.settings(), notes) as watched:
            watched.refuse = delete_two
            await watched.until_taken("one", "three")
            await watched.until_state("ok")


async def test_an_old_mail_that_somebody_moves_in_is_taken_in(dovecot: Dovecot) -> None:
    with dovecot.other() as client:
        client.create_folder("Junk")
        client.append("Junk", letter("rescued"), msg_time=datetime.now(UTC) - timedelta(days=400))
        client.select_folder("Junk")
        async with Watched(dovecot.settings()) as watched:
            await watched.until_state("ok")
            client.move(client.search("ALL"), "INBOX")
            await watched.until_taken("rescued")


# -- marking -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("capability", ["MOVE IDLE", "UIDPLUS IDLE"])
async def test_a_mail_that_was_taken_in_is_moved(certificate: Certificate, capability: str) -> None:
    with dovecot_server(certificate, f"imap_capability = IMAP4rev1 {capability}") as server:
        server.deliver(letter("old"))
        async with Watched(server.settings(move_to="Täken")) as watched:
            await watched.until_state("ok")
            with server.other() as client:
                client.delete_messages(client.append("INBOX", letter("one")) and client.search("ALL")[:1])
                await watched.until_taken("one")
                # "old" is marked as deleted by somebody else, and is theirs to expunge
                await watched.until(lambda: flags(client) == [{b"\\Deleted"}])
                client.select_folder("Täken")
                assert len(client.search("ALL")) == 1


async def test_a_mail_that_cannot_be_moved_is_taken_in_once(certificate: Certificate) -> None:
    with dovecot_server(certificate, "imap_capability = IMAP4rev1 IDLE") as server:
        async with Watched(server.settings(move_to="Taken")) as watched:
            await watched.until_state("ok")
            server.deliver(letter("one"))
            await watched.until_taken("one")
            server.deliver(letter("two"))
            await watched.until_taken("one", "two")


async def test_a_mail_that_was_stored_and_not_marked_is_marked_at_the_next_start(dovecot: Dovecot) -> None:
    notes = Notes()
    async with Watched(dovecot.settings(), notes) as watched:
        await watched.until_state("ok")
        dovecot.deliver(letter("one"))
        await watched.until_taken("one")
        with dovecot.other() as client:
            await watched.until(lambda: flags(client) == [{KEYWORD}])
            client.remove_flags(client.search("ALL"), [KEYWORD])
    [(key, text)] = notes.items()
    notes[key] = json.dumps({**json.loads(text), "unmarked": [1]})
    async with Watched(dovecot.settings(), notes) as watched:
        await watched.until_state("ok")
        assert watched.subjects == []
        with dovecot.other() as client:
            assert flags(client) == [{KEYWORD}]


# -- mails that make trouble -------------------------------------------------------------------------------


async def test_of_a_mail_over_the_limit_only_the_header_is_fetched(dovecot: Dovecot) -> None:
    async with Watched(dovecot.settings()) as watched:
        await watched.until_state("ok")
        dovecot.deliver(letter("large", body="x" * 1000 + "\n") + b"y" * MAX_BYTES, letter("small"))
        await watched.until_taken("large", "small")
        (raw, envelope), (_, other) = watched.mails
        assert envelope.header_only
        assert not other.header_only
        assert raw.endswith(b"\r\n\r\n")


async def test_a_mail_that_cannot_be_stored_now_waits_with_all_behind_it(dovecot: Dovecot) -> None:
    refusals = iter(range(3))

    def no_room(subject: str) -> None:
        if subject == "one" and next(refusals, None) is not None:
            raise Unavailable("The disk is full.")

    async with Watched(dovecot.settings()) as watched:
        await watched.until_state("ok")
        watched.refuse = no_room
        dovecot.deliver(letter("one"), letter("two"))
        await watched.until_taken("one", "two")
        assert ("down", "mail waits in the mailbox: The disk is full.") in watched.states
        assert await watched.until_state("ok") is None


async def test_mails_of_somebody_who_sent_too_many_wait_and_hold_up_nobody_else(dovecot: Dovecot) -> None:
    has_room, tried = asyncio.Event(), Counter[str]()

    def too_many(subject: str) -> None:
        tried[subject] += 1
        if subject.startswith("ada") and not has_room.is_set():
            raise TooMany("Ada")

    notes = Notes()
    async with Watched(dovecot.settings(), notes, _OFTEN) as watched:
        await watched.until_state("ok")
        watched.refuse = too_many
        dovecot.deliver(letter("ada 1"), letter("bob 1"), letter("ada 2"), letter("ada 3"), letter("bob 2"))
        await watched.until_taken("bob 1", "bob 2")
        await watched.until(lambda: "3 mails wait" in (watched.states[-1][1] or ""))
        with dovecot.other() as client:
            assert flags(client) == [set(), {KEYWORD}, set(), set(), {KEYWORD}]
        await watched.until(lambda: tried["ada 1"] >= 3)
        assert tried["ada 2"] == tried["ada 3"] == 1  # one of Ada's tells for all
    async with Watched(dovecot.settings(), notes, _OFTEN) as watched:
        watched.refuse = too_many
        dovecot.deliver(letter("bob 3"))
        await watched.until_taken("bob 3")
        has_room.set()
        await watched.until_taken("bob 3", "ada 1", "ada 2", "ada 3")
        await watched.until(lambda: watched.states[-1] == ("ok", None))
        with dovecot.other() as client:
            await watched.until(lambda: flags(client) == [{KEYWORD}] * 6)


async def test_a_mail_that_waits_and_is_deleted_waits_no_more(dovecot: Dovecot) -> None:
    def too_many(subject: str) -> None:
        raise TooMany("Ada")

    async with Watched(dovecot.settings(), timing=_OFTEN) as watched:
        await watched.until_state("ok")
        watched.refuse = too_many
        dovecot.deliver(letter("ada 1"))
        await watched.until(lambda: "1 mail waits" in (watched.states[-1][1] or ""))
        with dovecot.other() as client:
            client.delete_messages(client.search("ALL"))
            client.expunge()
        await watched.until(lambda: watched.states[-1] == ("ok", None))
        assert watched.mails == []


async def test_a_mail_that_cannot_be_read_is_tried_three_times_and_left(dovecot: Dovecot) -> None:
    tries: list[str] = []

    def break_down(subject: str) -> None:
        tries.append(subject)
        if subject == "poison":
            raise RecursionError("too deep")

    notes = Notes()
    async with Watched(dovecot.settings(), notes) as watched:
        await watched.until_state("ok")
        watched.refuse = break_down
        dovecot.deliver(letter("poison"), letter("one"))
        await watched.until_taken("one")
        said = await watched.until_state("ok")
        assert tries == ["poison"] * 3 + ["one"]
        assert said == "1 mail could not be read and was left in the mailbox; see the log"
        with dovecot.other() as client:
            await watched.until(lambda: flags(client) == [set(), {KEYWORD}])
    async with Watched(dovecot.settings(), notes) as watched:
        await watched.until_state("ok")
        assert watched.subjects == []


async def test_a_cursor_that_cannot_be_stored_brings_the_mail_again(dovecot: Dovecot) -> None:
    class Full(Notes):
        is_full = False

        async def put(self, key: str, value: str) -> None:
            if self.is_full:
                self.is_full = False
                raise Unavailable("The disk is full.")
            await super().put(key, value)

    notes = Full()
    async with Watched(dovecot.settings(), notes) as watched:
        await watched.until_state("ok")
        notes.is_full = True
        dovecot.deliver(letter("one"), letter("two"))
        await watched.until_taken("one", "one", "two")


# -- not let in --------------------------------------------------------------------------------------------


async def test_a_wrong_password_is_said_and_the_right_one_heals_it(dovecot: Dovecot) -> None:
    dovecot.stop()
    dovecot.password = "another"
    dovecot.start()
    async with Watched(dovecot.settings()) as watched:
        said = await watched.until_state("unauthorized")
        assert said is not None
        assert said.startswith("127.0.0.1 refused the login of pizza: [AUTHENTICATIONFAILED]")
        await asyncio.to_thread(dovecot.stop)
        dovecot.password = "secret-of-pizza"
        await asyncio.to_thread(dovecot.start)
        await watched.until_state("ok")


async def test_a_password_beyond_ascii_lets_in(dovecot: Dovecot) -> None:
    dovecot.stop()
    dovecot.password = "Pässwörd"
    dovecot.start()
    async with Watched(dovecot.settings(password="Pässwörd")) as watched:
        await watched.until_state("ok")


async def test_a_missing_folder_is_said(dovecot: Dovecot) -> None:
    async with Watched(dovecot.settings(folder="Nowhere")) as watched:
        said = await watched.until_state("down")
        assert said is not None
        assert "Nowhere" in said
        assert "look at folder" in said


@pytest.mark.parametrize("security", ["tls", "starttls"])
async def test_mail_comes_in_over_a_verified_connection(dovecot: Dovecot, security: str) -> None:
    port = dovecot.tls_port if security == "tls" else dovecot.port
    settings = dovecot.settings(
        security=security, port=port, ca_file=str(dovecot.certificate.authority), poll_seconds=60
    )
    async with Watched(settings) as watched:
        await watched.until_state("ok")
        dovecot.deliver(letter("one"))
        await watched.until_taken("one")


@pytest.mark.parametrize("security", ["tls", "starttls"])
async def test_a_certificate_that_nobody_vouches_for_is_refused(dovecot: Dovecot, security: str) -> None:
    port = dovecot.tls_port if security == "tls" else dovecot.port
    async with Watched(dovecot.settings(security=security, port=port)) as watched:
        said = await watched.until_state("down")
        assert said is not None
        assert said.startswith("the certificate of 127.0.0.1 was refused: unable to get local issuer")


async def test_a_certificate_for_another_name_is_refused(dovecot: Dovecot) -> None:
    settings = dovecot.settings(
        host="localhost",
        security="tls",
        port=dovecot.tls_port,
        ca_file=str(dovecot.certificate.authority),
    )
    async with Watched(settings) as watched:
        said = await watched.until_state("down")
        assert said is not None
        assert "Hostname mismatch" in said


async def test_no_encryption_is_never_a_way_out(certificate: Certificate) -> None:
    with dovecot_server(certificate, "ssl = no") as server:
        async with Watched(server.settings(security="starttls")) as watched:
            said = await watched.until_state("down")
            assert said is not None
            assert "does not offer STARTTLS" in said


async def test_a_port_that_speaks_no_tls_is_said(dovecot: Dovecot) -> None:
    async with Watched(dovecot.settings(security="tls")) as watched:
        said = await watched.until_state("down")
        assert said is not None
        assert "does not speak TLS on this port" in said


async def test_certificates_that_cannot_be_read_are_said(dovecot: Dovecot, tmp_path: Path) -> None:
    missing = str(tmp_path / "missing.pem")
    async with Watched(dovecot.settings(security="tls", ca_file=missing)) as watched:
        said = await watched.until_state("down")
        assert said is not None
        assert said.startswith(missing)


async def test_many_mails_at_once_come_in_order(dovecot: Dovecot) -> None:
    notes = Notes()
    await emptied(dovecot, notes)
    subjects = [f"mail {number}" for number in range(250)]
    dovecot.deliver(*map(letter, subjects))
    async with Watched(dovecot.settings(), notes) as watched:
        await watched.until_taken(*subjects)
        with dovecot.other() as client:
            await watched.until(lambda: all(KEYWORD in said for said in flags(client)))
