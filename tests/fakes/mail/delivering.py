"""A mail server of a small company: what the sink takes, it judges and puts into Dovecot's mailbox."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from email import message_from_bytes
from email.policy import default

from tests.fakes.mail.dovecot import Dovecot
from tests.fakes.mail.smtp_sink import Mail


@dataclass(frozen=True, slots=True)
class Delivering:
    """Handed to a sink as `deliver`.

    `results` is what it says of `domain`, its own, in Authentication-Results; "" when it says nothing.
    `server` is the id that stands before, "" for none. With `removes_forged` it takes out headers that name
    it already. `loses` says of a recipient whether the mail is dropped.
    """

    dovecot: Dovecot
    domain: str
    server: str = "mx.bot.example"
    results: str = "spf=pass; dkim=pass (good) header.d={domain}; dmarc={dmarc} header.from={domain}"
    removes_forged: bool = True
    loses: Callable[[str], bool] = lambda address: False

    def __call__(self, mail: Mail) -> None:
        if any(map(self.loses, mail.recipients)):
            return
        content = mail.content
        if self.removes_forged:
            name = re.escape(self.server.encode())
            content = re.sub(rb"(?mi)^Authentication-Results: " + name + rb"(?:.*\n[ \t])*.*\n", b"", content)
        self.dovecot.deliver(self._judged(content))

    def _judged(self, content: bytes) -> bytes:
        if not self.results:
            return content
        author = str(message_from_bytes(content, policy=default)["From"]).rpartition("@")[2].rstrip(">")
        dmarc = "pass" if author == self.domain else "fail"
        said = self.results.format(domain=author, dmarc=dmarc)
        begins = f"{self.server}; " if self.server else ""
        return f"Authentication-Results: {begins}{said}\r\n".encode() + content
