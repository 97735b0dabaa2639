"""A real Dovecot of a test's own: its processes, its mailboxes, its port, and nothing of the system's."""

from __future__ import annotations

import getpass
import grp
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from imapclient import IMAPClient

from pizzabot.settings.tables import ImapTable
from tests.fakes.mail.certificate import Certificate

USER, PASSWORD = "pizza", "secret-of-pizza"
_NOBODY = 65534
_START_SECONDS = 10.0


def dovecot_binary() -> str:
    """Where dovecot is; skips the test when it is not here, unless PIZZABOT_NEED_DOVECOT is set."""
    found = shutil.which("dovecot", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if found is None:
        message = "dovecot is not installed (Debian: apt-get install dovecot-imapd)"
        if os.environ.get("PIZZABOT_NEED_DOVECOT"):
            pytest.fail(message)
        pytest.skip(message)
    return found


@dataclass
class Dovecot:
    """`lines` are added to the configuration; they take effect at the next start."""

    binary: str
    root: Path
    certificate: Certificate
    port: int = 0
    tls_port: int = 0
    lines: list[str] = field(default_factory=list)
    password: str = PASSWORD
    _process: subprocess.Popen[bytes] | None = None

    @property
    def maildir(self) -> Path:
        return self.root / "mail" / USER

    def settings(self, **changed: object) -> ImapTable:
        """How the product reaches it; unencrypted unless told otherwise."""
        fields = {"host": "127.0.0.1", "port": self.port, "security": "none", "username": USER}
        return ImapTable.model_validate({**fields, "password": PASSWORD, **changed})

    def start(self) -> None:
        shutil.rmtree(self.root / "run", ignore_errors=True)  # sockets of one that was killed
        config = self.root / "dovecot.conf"
        config.write_text(self._config())
        (self.root / "passwd").write_text(f"{USER}:{{PLAIN}}{self.password}\n")
        self._process = subprocess.Popen(
            [self.binary, "-F", "-c", str(config)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=5) as greeted:
                    assert greeted.recv(4).startswith(b"* OK")
                return
            except (ConnectionError, AssertionError):
                if time.monotonic() > deadline or self._process.poll() is not None:
                    log = self.root / "log"
                    raise RuntimeError(log.read_text() if log.exists() else "dovecot did not start") from None
                time.sleep(0.02)

    def stop(self) -> None:
        """Kill all its processes, and every connection with them: it takes its time to end by itself."""
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):  # it may have ended by itself
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            # The others die on their own time, and until then hold the ports that the next start needs.
            deadline = time.monotonic() + _START_SECONDS
            while not all(map(_is_free, (self.port, self.tls_port))) and time.monotonic() < deadline:
                time.sleep(0.01)

    def client(self) -> IMAPClient:
        """Somebody else who reads the same mailbox; logged in, with the inbox selected."""
        client = IMAPClient("127.0.0.1", self.port, ssl=False)
        client.login(USER, self.password)
        client.select_folder("INBOX")
        return client

    @contextmanager
    def other(self) -> Iterator[IMAPClient]:
        client = self.client()
        try:
            yield client
        finally:
            with suppress(OSError, IMAPClient.Error):
                client.logout()

    def deliver(self, *mails: bytes) -> None:
        """Put mails into the inbox as a mail server does (maildir)."""
        for folder in ("", "cur", "new", "tmp"):
            self._own(self.maildir / folder)
        for mail in mails:
            name = f"{time.time_ns()}.{os.urandom(4).hex()}.test"
            written = self.maildir / "tmp" / name
            written.write_bytes(mail)
            if os.getuid() == 0:
                os.chown(written, _NOBODY, _NOBODY)
            written.rename(self.maildir / "new" / name)

    def forget_uids(self, uidvalidity: int) -> None:
        """Lose the list of UIDs: the next start gives new ones, from 1, under this UIDVALIDITY."""
        for file in self.maildir.glob("dovecot*"):
            file.unlink()
        uids = self.maildir / "dovecot-uidlist"
        uids.write_text(f"3 V{uidvalidity} N1\n")
        if os.getuid() == 0:
            os.chown(uids, _NOBODY, _NOBODY)

    def _own(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        if os.getuid() == 0:
            os.chown(folder, _NOBODY, _NOBODY)

    def _config(self) -> str:
        root = self.root
        uid = _NOBODY if os.getuid() == 0 else os.getuid()
        gid = _NOBODY if os.getuid() == 0 else os.getgid()
        users = "" if os.getuid() == 0 else _unprivileged()
        return f"""
protocols = imap
listen = 127.0.0.1
base_dir = {root}/run
state_dir = {root}/state
log_path = {root}/log
disable_plaintext_auth = no
ssl = yes
ssl_cert = <{self.certificate.chain}
ssl_key = <{self.certificate.key}
mail_location = maildir:{root}/mail/%u
first_valid_uid = 1
first_valid_gid = 1
{users}
service imap-login {{
  chroot =
  inet_listener imap {{
    port = {self.port}
  }}
  inet_listener imaps {{
    port = {self.tls_port}
  }}
}}
service anvil {{
  chroot =
}}
service stats {{
  chroot =
}}
passdb {{
  driver = passwd-file
  args = {root}/passwd
}}
userdb {{
  driver = static
  args = uid={uid} gid={gid} home={root}/mail/%u
}}
auth_failure_delay = 0
mail_fsync = never
{chr(10).join(self.lines)}
"""


def _unprivileged() -> str:
    """The configuration of a Dovecot whose processes all stay the present user."""
    user, group = getpass.getuser(), grp.getgrgid(os.getgid()).gr_name
    return f"default_internal_user = {user}\ndefault_login_user = {user}\ndefault_internal_group = {group}"


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections that linger do not count
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@contextmanager
def dovecot_server(certificate: Certificate, *lines: str) -> Iterator[Dovecot]:
    """A server that runs, with an empty inbox."""
    root = Path(tempfile.mkdtemp(prefix="dovecot-"))  # not pytest's: the user of the mail must reach it
    root.chmod(0o755)
    server = Dovecot(
        dovecot_binary(), root, certificate, port=_free_port(), tls_port=_free_port(), lines=list(lines)
    )
    try:
        server._own(root / "mail")
        server.deliver()
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(root, ignore_errors=True)
