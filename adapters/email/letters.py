"""What is a mail, once it was read? The values between the doors, the reading and the answering.

    bytes + Envelope --reading--> Letter --answering--> accepted | decided | asked back | left alone

Everything here is frozen, free of libraries, and can be sent between processes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from pizzabot.messages import Attachment


class LetterKind(StrEnum):
    """What sort of mail it is. Only `HUMAN` is ever answered, and only when its sender is verified."""

    HUMAN = "human"
    AUTO = "auto"  # auto-responders, notifications, programs (RFC 3834)
    BOUNCE = "bounce"  # delivery status: failed, delayed (RFC 3464), and what reads like one
    RECEIPT = "receipt"  # read and delivery receipts (RFC 8098)
    CALENDAR = "calendar"  # answers to invitations (RFC 5546)
    LIST = "list"  # mailing lists and newsletters (RFC 2919, RFC 2369)
    MALFORMED = "malformed"  # over a limit, or not to be read without guessing


@dataclass(frozen=True, slots=True)
class Envelope:
    """What is known of a mail beside its bytes.

    `sender` is MAIL FROM, "" the null sender, None not known. `recipients` are RCPT TO; empty when it was
    fetched from a mailbox. `believes_results`: its Authentication-Results can come only from a server we
    trust, because it was fetched from our mailbox or came from a network that the operator trusts.
    `header_only`: the mail was over the limit, and the bytes are no more than the beginning of its header.
    """

    sender: str | None = None
    recipients: tuple[str, ...] = ()
    believes_results: bool = False
    header_only: bool = False


@dataclass(frozen=True, slots=True)
class Mailbox:
    """One address with the name that stands beside it; `address` is lower case, `name` untrusted text."""

    address: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Bounce:
    """What a delivery report says of one address (RFC 3464); `status` as in 5.1.1."""

    recipient: str | None
    action: str  # failed | delayed | delivered | relayed | expanded
    status: str | None
    said: str  # the other server's words, one line


@dataclass(frozen=True, slots=True)
class OwnText:
    """What the person wrote anew in a mail, without quotes, signatures, footers and banners.

    `text` leaves out the lines between our value markers, `full` has them where they stood. `agrees` is False
    when the text part and the HTML part say different things, or a part is missing: then it may be passed on
    and never decides. `values` are the lines between our value markers as they came back, of the person's own
    text or, when `in_quote`, of the quote below it; None when there are none.
    """

    text: str
    agrees: bool = True
    values: str | None = None
    in_quote: bool = False
    full: str = ""


@dataclass(frozen=True, slots=True)
class Letter:
    """One mail as it was read.

    `why` names the rule that made it this `kind`. `digest` is the same for every copy of the same mail and
    different for another mail with the same Message-ID. `author` is the one From, None when there is not
    exactly one; `verified` says whether From is proven, `verification` how, or why not, in words for the
    operator. `recipients` are all addresses it was sent or delivered to, lower case, envelope first;
    `meant_for` are those that its author wrote down, as far as a signature of their domain tells.
    `references` name the mails that it answers, the nearest first, with angle brackets. `text` is everything
    that it says, quotes and all. `left_out` counts files that came with it and were too many. `is_ours` means
    that it carries our own loop mark or says that it comes from our own address. `is_too_large`: only its
    header was fetched.
    """

    kind: LetterKind
    why: str
    digest: str
    message_id: str | None = None
    author: Mailbox | None = None
    verified: bool = False
    verification: str = ""
    recipients: tuple[str, ...] = ()
    meant_for: tuple[str, ...] = ()
    to: tuple[Mailbox, ...] = ()
    cc: tuple[Mailbox, ...] = ()
    references: tuple[str, ...] = ()
    subject: str = ""
    text: str = ""
    own: OwnText = OwnText("")
    attachments: Sequence[Attachment] = ()
    left_out: int = 0
    bounce: Bounce | None = None
    is_ours: bool = False
    is_too_large: bool = False


@dataclass(frozen=True, slots=True)
class Ours:
    """What is known of our own mails, so that they are recognised in a quote and in a loop.

    `addresses` are those that our mails come from, lower case, without tokens. `loop_mark` is the value of
    X-Pizzabot-Loop. The markers are whole lines.
    """

    addresses: tuple[str, ...]
    loop_mark: str
    authserv_ids: tuple[str, ...] = ()


# How much of a mail is taken in on any way: bytes of the whole, and of a header.
MAX_BYTES = 25 * 1024 * 1024
MAX_HEADER_BYTES = 256 * 1024

# Returns when the mail is committed; the same one may come again. Raises Unavailable when it could not be
# stored now, Refused when it never will be.
Take = Callable[[bytes, Envelope], Awaitable[None]]

REPLY_ABOVE = "=== Please write your answer above this line ==="
BEGIN_VALUES = "[[ begin values ]]"
END_VALUES = "[[ end values ]]"
