"""Does a mail to ourselves come back, and would a forged one be believed? Tried out by `doctor --send`.

    mailbox: note where it ends -> send -> look at what is new, until it is there -> what its header says
                                -> the same once more with a forged mail

Nothing is taken, marked or moved: a server that watches the mailbox meanwhile is not disturbed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pizzabot.errors import ConfigError, DeliveryFailed
from pizzabot.settings import Settings
from pizzabot.settings.tables import EmailTable, ImapTable

from .failures import Declined, NotLetIn, Unreachable
from .imap.connection import ImapConnection
from .imap.door import log_in
from .oauth import blocking, token_source
from .places import OwnAddress, new_token
from .reading.headers import headers_of
from .reading.shape import halves
from .smtp.replies import NoSuchRecipient, Rejected
from .smtp.sending import Sender
from .trial_mails import forgery, of_forgery, of_returned, topmost, trial
from .writing.signing import load_key, sign

if TYPE_CHECKING:
    from .checks import Found

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait for a mail, for the forged one, between two looks, and between two lines; seconds."""

    trial: float = 90.0
    forgery: float = 30.0
    look: float = 2.0
    line: float = 15.0


async def try_out(
    settings: Settings, folder: Path, tell: Tell, patience: Patience | None = None
) -> Sequence[Found]:
    """Send, and see what comes back. `folder` is the home; `tell` hears how far it is."""
    table = settings.email
    if not table.enabled:
        return ()
    assert table.smtp is not None  # the settings' checks see to it
    tokens = blocking(token_source(table.smtp.oauth))
    sender = Sender(table.smtp, tokens)
    try:
        attempt = _Trial(table, folder, sender, tell, patience or Patience())
        return await (attempt.one_way() if table.imap is None else attempt.round_trip(table.imap))
    except NoSuchRecipient as error:
        if not table.plus_addressing:
            return [("error", f"our own address does not exist: {error}", "correct email.address")]
        cure = "let the mail server take local+anything@domain, or set email.plus_addressing = false"
        return [("error", f"our address with a tag does not exist: {error}", cure)]
    except DeliveryFailed as error:
        return [("error", f"the mail was not sent: {error}", "correct [email.smtp], then try again")]
    except (NotLetIn, Unreachable, Declined, ConfigError) as error:
        return [("error", f"the mail could not be tried out: {error}", "see the line above about it")]
    finally:
        await sender.close()


class _Trial:
    """One trial over an open way out."""

    def __init__(
        self, table: EmailTable, folder: Path, sender: Sender, tell: Tell, patience: Patience
    ) -> None:
        assert table.address is not None  # the settings' checks see to it
        self._table, self._sender, self._tell, self._patience = table, sender, tell, patience
        self._own = OwnAddress(table.address.lower())
        self._key = load_key(table.dkim, self._own.address, folder) if table.dkim is not None else None

    async def one_way(self) -> list[Found]:
        """With a door alone it cannot be seen what comes back: the server that runs has the door."""
        await self._send_trial(new_token())
        text = (
            "nothing is proven yet: the outgoing server took a mail to ourselves, but whether it comes to "
            "the door, and with which authserv-id, cannot be seen from here"
        )
        cure = (
            "`pizzabot serve` has to run, because it opens the door. When the mail comes, `pizzabot status` "
            "counts one that came from ourselves; the id stands first in the topmost Authentication-Results "
            "of any mail that your mail server delivers"
        )
        return [("warning", text, cure)]

    async def round_trip(self, imap: ImapTable) -> list[Found]:
        mailbox = await _Mailbox.open(imap)
        try:
            token = new_token()
            to = await self._send_trial(token)
            began = _seconds()
            header = await self._returned(mailbox, token, self._patience.trial)
            if header is None:
                return [self._lost(imap)]
            found: list[Found] = [("ok", f"a mail to {to} came back after {_seconds() - began:.0f} s", "")]
            found += of_returned(header, self._table.trusted_authserv_ids)
            return [*found, *await self._forged(mailbox, header)]
        finally:
            await mailbox.close()

    async def _send_trial(self, token: str) -> str:
        """Send the trial; the address that it went to."""
        own = self._own
        # A reply address that was never given out: a server that runs finds nothing that it answers.
        to = own.tagged("r", new_token()) if self._table.plus_addressing else own.address
        data = trial(own, self._table.name, to, token, datetime.now(UTC))
        await self._sender.send(own.address, to, sign(data, self._key) if self._key is not None else data)
        self._tell(f"A mail to {to} went out.")
        return to

    def _lost(self, imap: ImapTable) -> Found:
        tagged = ", or set email.plus_addressing = false when it is lost there"
        cure = f"look for it in other folders, such as the one for spam{tagged * self._table.plus_addressing}"
        text = f"the mail did not come back to {imap.folder} within {self._patience.trial:.0f} s"
        return ("error", text, cure)

    async def _forged(self, mailbox: _Mailbox, returned: bytes) -> list[Found]:
        """Send a mail under another name with a verdict of our server's, where the server lets us."""
        said = topmost(headers_of(halves(returned)[0]))
        named = (*self._table.trusted_authserv_ids, *([said.server] if said and said.server else []))
        servers = tuple(dict.fromkeys(server.lower() for server in named))
        if not servers:
            return [("ok", "no verdict is believed, so there is none to forge", "")]
        token = new_token()
        mail = forgery(self._own, servers, token, datetime.now(UTC))
        try:
            await self._sender.send(self._own.address, self._own.address, mail)
        except Rejected as error:
            return [("ok", f"a forged mail does not even go out: {error}", "")]
        except DeliveryFailed as error:
            return [("warning", f"a forged mail could not be tried out: {error}", "try again later")]
        self._tell("A forged mail went out, to see whether it would be believed.")
        header = await self._returned(mailbox, token, self._patience.forgery)
        if header is None:
            return [("ok", "a forged mail was not delivered, or set aside as spam", "")]
        return [of_forgery(header, self._own, servers)]

    async def _returned(self, mailbox: _Mailbox, token: str, seconds: float) -> bytes | None:
        """The header of the mail with that token; None when it did not come in time."""
        began = told = _seconds()
        while True:
            if (header := await mailbox.find(token)) is not None:
                return header
            now = _seconds()
            if now - began >= seconds:
                return None
            if now - told >= self._patience.line:
                told = now
                self._tell(f"Not there yet, after {now - began:.0f} s of {seconds:.0f}.")
            await asyncio.sleep(self._patience.look)


class _Mailbox:
    """What comes into the watched folder, and the one that a running server moves mails to, from now on."""

    def __init__(self, connection: ImapConnection) -> None:
        self._connection = connection
        self._next: dict[str, int] = {}  # the UID from which on mails are new, by folder

    @classmethod
    async def open(cls, table: ImapTable) -> _Mailbox:
        """Raises NotLetIn, Unreachable, Declined, ConfigError."""
        mailbox = cls(await ImapConnection.open(table))
        try:
            await log_in(mailbox._connection, table, token_source(table.oauth))
            if table.move_to:
                mailbox._next[table.move_to] = 1  # a running server makes it with the first mail
                with suppress(Declined):
                    mailbox._next[table.move_to] = (await mailbox._connection.select(table.move_to)).uidnext
            mailbox._next[table.folder] = (await mailbox._connection.select(table.folder)).uidnext
        except BaseException:
            await mailbox.close()
            raise
        return mailbox

    async def find(self, token: str) -> bytes | None:
        """The header of a new mail that holds `token`."""
        for folder in self._next:
            with suppress(Declined):
                await self._connection.select(folder)
                if (header := await self._search(folder, token.encode())) is not None:
                    return header
        return None

    async def _search(self, folder: str, token: bytes) -> bytes | None:
        least = self._next[folder]
        uids = sorted(uid for uid in await self._connection.search(["UID", f"{least}:*"]) if uid >= least)
        for uid in uids:
            header = await self._connection.fetch_header(uid)
            if header is not None and token in header:
                return header
            self._next[folder] = uid + 1
        return None

    async def close(self) -> None:
        await self._connection.close()


def _seconds() -> float:
    return asyncio.get_running_loop().time()
