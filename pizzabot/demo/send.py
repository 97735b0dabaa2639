"""How does the person of the demo write a mail, without a mail program?

    python -m pizzabot.demo.send "Show my expenses"
    python -m pizzabot.demo.send --answer .demo/mail/0002-Action-add-expense.eml Approve
    python -m pizzabot.demo.send --answer .demo/mail/0002-Action-add-expense.eml --set amount=40

The mail goes to the door of the demo, with what the person's mail server would say of its sender.
"""

from __future__ import annotations

import argparse
import os
import re
import smtplib
import sys
from collections.abc import Sequence
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import SMTP, default
from email.utils import formatdate, make_msgid
from pathlib import Path
from textwrap import shorten

from pizzabot.demo.home import ADDRESS, AUTHSERV, MAIL, PERSON
from pizzabot.errors import ConfigError
from pizzabot.settings import load_settings

_SECONDS = 15.0
_LONGEST_SUBJECT = 60  # characters
_DOMAIN = PERSON.rpartition("@")[2]


def main(arguments: Sequence[str] | None = None) -> int:
    """Send what the command line says; the exit code."""
    parser = _parser()
    said = parser.parse_args(arguments)
    if said.answer is None and not said.text.strip():
        parser.error("what does the mail say? Give its text, or --answer FILE")
    try:
        listen = load_settings(said.home, os.environ).email.listen
        port = said.port or (listen.port if listen is not None else 0)
        mail = (
            written(said.text, said.subject or beginning(said.text)) if said.answer is None else _answer(said)
        )
        with smtplib.SMTP("127.0.0.1", port, "localhost", timeout=_SECONDS) as door:
            door.send_message(mail, PERSON, [str(mail["To"])])
    except ConfigError as error:
        return _failed(str(error))
    except smtplib.SMTPException as error:
        return _failed(f"the door did not take it: {error}")
    except OSError as error:
        place = (
            f"{error.filename}: " if error.filename else "the door for mail does not answer; is the demo on? "
        )
        return _failed(f"{place}{error.strerror or error}")
    except ValueError as error:
        return _failed(str(error))
    print(f"Sent. What comes back will be a file in {said.home / MAIL}.")
    return 0


def beginning(text: str) -> str:
    """The first words of a text, for a subject."""
    return shorten(text, _LONGEST_SUBJECT, placeholder=" …")


def written(text: str, subject: str) -> EmailMessage:
    """A mail of the person to the agent."""
    mail = EmailMessage(policy=SMTP)
    mail["Authentication-Results"] = f"{AUTHSERV}; dmarc=pass header.from={_DOMAIN}"
    mail["From"], mail["To"], mail["Subject"] = PERSON, ADDRESS, subject
    mail["Date"], mail["Message-ID"] = formatdate(), make_msgid(domain=_DOMAIN)
    mail.set_content(text)
    return mail


def answering(original: bytes, text: str, changes: Sequence[str] = ()) -> EmailMessage:
    """A reply as mail programs write it: the text, and below it the original, quoted.

    `changes` are KEY=VALUE for lines of the original that begin with `KEY: `, as somebody would type over
    them. Raises ValueError for one that is not there.
    """
    mail = message_from_bytes(original, policy=default)
    part = mail.get_body(("plain",))
    quoted = "" if part is None else str(part.get_content())
    for change in changes:
        quoted = _changed(quoted, change)
    below = "\n".join(f"> {line}".rstrip() for line in quoted.splitlines())
    reply = written(
        f"{text}\n\nOn {mail['Date']}, {mail['From']} wrote:\n\n{below}\n", f"Re: {mail['Subject']}"
    )
    reply.replace_header("To", str(mail["Reply-To"] or mail["From"]))
    reply["In-Reply-To"] = reply["References"] = str(mail["Message-ID"])
    return reply


def _changed(text: str, change: str) -> str:
    key, _, value = change.partition("=")
    line = re.search(rf"(?m)^{re.escape(key)}: .*$", text)
    if line is None:
        raise ValueError(f"the mail has no line that begins with {key}:")
    return f"{text[: line.start()]}{key}: {value}{text[line.end() :]}"


def _answer(said: argparse.Namespace) -> EmailMessage:
    return answering(said.answer.read_bytes(), said.text, said.set)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m pizzabot.demo.send", description="Send a mail to the running demo, as its one person."
    )
    parser.add_argument("text", nargs="?", default="", help="what the mail says")
    parser.add_argument("--home", type=Path, default=Path(".demo"), help="the home of the demo (.demo)")
    parser.add_argument("--port", type=int, help="the port of its door, when the home does not say it")
    parser.add_argument("--subject", help="what stands above a new mail (its first words)")
    parser.add_argument("--answer", type=Path, metavar="FILE", help="the mail to be answered")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="a value to be changed in it"
    )
    return parser


def _failed(why: str) -> int:
    print(f"not sent: {why}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
