"""Does `[email]` work? Asked of the mail servers themselves, for `pizzabot doctor`."""

from __future__ import annotations

import asyncio
import ipaddress
import smtplib
import socket
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from pizzabot.errors import ConfigError, DeliveryFailed
from pizzabot.settings import Settings, is_loopback
from pizzabot.settings.tables import DkimTable, EmailTable, ImapTable, ListenTable, SmtpTable
from pizzabot.text import visible

from .failures import Declined, NotLetIn, Unreachable
from .imap.connection import Folder, ImapConnection
from .imap.door import log_in
from .oauth import blocking, token_source
from .smtp.door import Certificate, why_closed
from .smtp.replies import NotLetIn as NotLetOut
from .smtp.sending import Sender
from .writing.signing import load_key

# What doctor takes: level (ok, warning or error), what was found, the cure.
Found = tuple[str, str, str]

_DOOR_SECONDS = 5.0
_LOGIN = (
    "copy the password or token into .env again; Gmail wants an app password, Microsoft 365 takes only oauth"
)


async def check(settings: Settings, folder: Path) -> Sequence[Found]:
    """Whether mail comes in, goes out, and is verified, and who is reached. `folder` is the home."""
    table = settings.email
    if not table.enabled:
        return ()
    assert table.address is not None  # the settings' checks see to both
    assert table.smtp is not None
    found: list[Found] = []
    if table.imap is not None:
        found += await _mailbox(table.imap)
    if table.listen is not None:
        found += await asyncio.to_thread(_door, table.listen, table.address, folder)
    found.append(await _outgoing(table.smtp))
    if table.dkim is not None:
        found.append(_signing(table.dkim, table.address, folder))
    return [*found, *_people(settings, table.address), _verification(table), *_links(settings)]


# -- in ----------------------------------------------------------------------------------------------------


async def _mailbox(table: ImapTable) -> list[Found]:
    try:
        connection = await ImapConnection.open(table)
        try:
            await log_in(connection, table, token_source(table.oauth))
            folder = await connection.select(table.folder)
            return _of_mailbox(table, folder, await connection.capabilities())
        finally:
            await connection.close()
    except NotLetIn as error:
        return [("error", str(error), _LOGIN)]
    except Declined as error:
        cure = "write a folder of this mailbox as email.imap.folder"
        return [("error", f"{table.host} does not open {table.folder}: {error}", cure)]
    except (Unreachable, ConfigError) as error:
        return [("error", str(error), "correct [email.imap], or mend the network, then ask again")]


def _of_mailbox(table: ImapTable, folder: Folder, offers: frozenset[str]) -> list[Found]:
    """What a mailbox can do that matters here."""
    found: list[Found] = [("ok", f"{table.host} lets {table.username} in and opens {table.folder}", "")]
    if "IDLE" not in offers:
        text = f"{table.host} does not tell of new mail; it is asked every {table.poll_seconds} s"
        found.append(("warning", text, "make email.imap.poll_seconds smaller if that is too slow"))
    if table.move_to and not offers & {"MOVE", "UIDPLUS"}:
        text = f"{table.host} cannot move mails, so what was taken in stays in {table.folder}"
        found.append(("warning", text, "remove email.imap.move_to"))
    elif not table.move_to and not folder.takes_keywords:
        text = f"{table.folder} takes no keywords, so nobody sees which mails were taken in"
        found.append(("warning", text, "set email.imap.move_to to a folder for them"))
    return found


def _door(table: ListenTable, address: str, folder: Path) -> list[Found]:
    found: list[Found] = []
    if table.certificate:
        try:
            Certificate(table, folder).context()
            found.append(("ok", f"the certificate {table.certificate} and its key can be used", ""))
        except ConfigError as error:
            found.append(("error", str(error), "make both files readable for this user, or name others"))
    return [*found, _listening(table, address)]


def _listening(table: ListenTable, address: str) -> Found:
    """Whether the door can open, or is open."""
    place = f"port {table.port} on {table.host}"
    if table.port == 0:
        return ("ok", "the door opens on a free port at each start", "")
    try:
        family, _, _, _, where = socket.getaddrinfo(table.host, table.port, type=socket.SOCK_STREAM)[0]
        with socket.create_server(where[:2], family=family):
            return ("ok", f"{place} is free for the door", "")
    except OSError as error:
        why = why_closed(error, table.host, table.port)
    if table.proxy_protocol:
        text = f"{place} is in use; it speaks with its proxy alone, so it was not asked who it is"
        return ("ok", text, "")
    if _is_ours(table, address):
        return ("ok", f"the door is open at {place} and takes mail for {address}", "")
    return ("error", why, "end that program, or set email.listen.port, and there where mail is handed over")


def _is_ours(table: ListenTable, address: str) -> bool:
    """Whether what listens greets as our door does, and takes mail for us."""
    kind, ident = (smtplib.LMTP, "LMTP") if table.protocol == "lmtp" else (smtplib.SMTP, "ESMTP")
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(table.host, table.host)
    try:
        client = kind(local_hostname="localhost", timeout=_DOOR_SECONDS)
        _, greeting = client.connect(host, table.port)
        with client:
            client.ehlo_or_helo_if_needed()
            client.mail("")
            code, _ = client.rcpt(address)
    except (OSError, smtplib.SMTPException):
        return False
    return code == 250 and greeting.decode("ascii", "replace") == (
        f"{table.hostname or socket.gethostname()} {ident}"
    )


# -- out ---------------------------------------------------------------------------------------------------


async def _outgoing(table: SmtpTable) -> Found:
    sender = Sender(table, blocking(token_source(table.oauth)))
    try:
        await sender.check()
    except DeliveryFailed as error:
        cure = _LOGIN if isinstance(error, NotLetOut) else "correct [email.smtp], or mend the network"
        return ("error", str(error), cure)
    finally:
        await sender.close()
    return ("ok", f"{table.host} takes outgoing mail", "")


def _signing(table: DkimTable, address: str, folder: Path) -> Found:
    try:
        key = load_key(table, address, folder)
    except ConfigError as error:
        return ("error", str(error), "name the private key that belongs to the published one")
    name = f"{key.selector}._domainkey.{key.domain}"
    return ("ok", f"outgoing mail is signed; the public key has to stand in DNS at {name}", "")


# -- who ---------------------------------------------------------------------------------------------------


def _people(settings: Settings, address: str) -> list[Found]:
    cure = 'set emails = ["…"] for each of [[people]] who is to write or be told by mail'
    found: list[Found] = [
        ("error", f"{person.name} has {address}, which is our own address and never heard", "write theirs")
        for person in settings.people
        if address.lower() in person.emails
    ]
    reached = [person.name for person in settings.people if person.emails]
    if not reached:
        return [*found, ("error", "knows nobody: no person has a mail address", cure)]
    found.append(("ok", f"knows {', '.join(reached)}", ""))
    others = [person.name for person in settings.people if not person.emails]
    if others:
        have = "has no mail address and is" if len(others) == 1 else "have no mail addresses and are"
        found.append(("warning", f"{', '.join(others)} {have} not reached by mail", cure))
    return found


def _verification(table: EmailTable) -> Found:
    if table.trusted_authserv_ids:
        ids = ", ".join(map(visible, table.trusted_authserv_ids))
        return ("ok", f"believes what {ids} says of senders", "")
    heard = "only mail that its sender's own domain signed with DKIM is heard"
    if table.imap is None and table.listen is not None:
        if _is_first(table.listen):
            text = f"no mail server stands before the door, so trusted_authserv_ids is rightly empty: {heard}"
            return ("ok", text, "")
        cure = (
            "write down the name that stands first in the topmost Authentication-Results of any mail that "
            "the mail server before the door delivers"
        )
    else:
        cure = (
            "run `pizzabot doctor --send`: it prints the line to add. "
            "Microsoft 365 writes no id; leave it empty"
        )
    return ("warning", f"trusted_authserv_ids is empty, so {heard}", cure)


def _is_first(door: ListenTable) -> bool:
    """Whether the door takes mail from everywhere, and no server elsewhere is believed."""
    return not is_loopback(door.host) and all(
        ipaddress.ip_network(network, strict=False).is_loopback for network in door.trusted_networks
    )


def _links(settings: Settings) -> list[Found]:
    """Whether the links in mails lead anywhere from another machine or a phone."""
    url = settings.web.public_url
    if not is_loopback(urlsplit(url).hostname or ""):
        return []
    text = f"links in mails lead to {url}, which opens on this machine alone"
    return [("warning", text, "set web.public_url to an address that people reach; answering needs no link")]
