"""Which values pass between the rooms? Frozen, typed, and free of any channel's wire format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

Json = Any  # a value that json.loads can return
Args = Mapping[str, Json]


class RunState(StrEnum):
    """Where a run stands. `queued -> running -> done | failed | stopped`, `running -> waiting -> queued`."""

    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"


class ThreadState(StrEnum):
    """Where a thread stands: its newest run, with `idle` for done and for none."""

    IDLE = "idle"
    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    FAILED = "failed"
    STOPPED = "stopped"


class ActionState(StrEnum):
    """Where an action stands. Final is every state but `pending`, and `expired` without a decision."""

    PENDING = "pending"
    APPROVED = "approved"
    EDITED = "edited"
    REJECTED = "rejected"
    RESPONDED = "responded"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    RESOLVED = "resolved"


class ActionKind(StrEnum):
    """What an action asks: may this tool run, what became of that call, may this run go on."""

    TOOL = "tool"
    UNCERTAIN = "uncertain"
    LIMIT = "limit"


# The tool of a question that no run asks: whether a trigger goes on that failed again and again.
FAILURES = "limit:failures"


class Verdict(StrEnum):
    """What a person can say to an action."""

    APPROVE = "approve"
    EDIT = "edit"
    REJECT = "reject"
    RESPOND = "respond"
    RETRY = "retry"
    DONE = "done"
    FAILED = "failed"


ACTIVE_RUN_STATES = (RunState.QUEUED, RunState.RUNNING, RunState.WAITING)
RETRIABLE_RUN_STATES = (RunState.FAILED, RunState.STOPPED)

THREAD_STATE_OF_RUN: Mapping[RunState, ThreadState] = {
    RunState.QUEUED: ThreadState.QUEUED,
    RunState.RUNNING: ThreadState.RUNNING,
    RunState.WAITING: ThreadState.WAITING,
    RunState.DONE: ThreadState.IDLE,
    RunState.FAILED: ThreadState.FAILED,
    RunState.STOPPED: ThreadState.STOPPED,
}


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that came with a message; `filename` is untrusted text, never a path."""

    filename: str
    media_type: str
    data: bytes


@dataclass(frozen=True, slots=True)
class InboundMessage:
    """One message as a channel understood it, ready to be committed.

    `key` names the item for ever: the same key is taken once (Slack team+channel+ts, mailbox+Message-ID+hash,
    a caller's Idempotency-Key…); None only where the sender cannot redeliver.
    `address` is the place in the channel where the conversation lives and where answers go; a known address
    continues its thread. `thread_id` continues that thread whatever the address; `is_guest` says that the
    channel knows the person as part of that conversation, so that it need not be the person's own.
    `aside_to` names an action about which it says something and decides nothing: while that is a call that
    waits, the words go to the agent with the decision, or with the next message, and begin no work by
    themselves.
    """

    channel: str
    person: str
    text: str
    address: str | None = None
    thread_id: str | None = None
    title: str | None = None
    key: str | None = None
    attachments: Sequence[Attachment] = ()
    is_guest: bool = False
    aside_to: str | None = None


@dataclass(frozen=True, slots=True)
class Accepted:
    """What became of an inbound message. `held`: it waits for the thread's active run to end."""

    thread_id: str
    run_id: str | None
    message_id: str
    held: bool
    duplicate: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """What a person answered to an action, and through which channel.

    `args` of an edit are the full set. `digest` names what the person was shown; None trusts the present
    state (only where the channel just rendered it).
    """

    action_id: str
    person: str
    via: str
    verdict: Verdict
    args: Args | None = None
    reason: str | None = None
    response: str | None = None
    digest: str | None = None


@dataclass(frozen=True, slots=True)
class Vote:
    """The approval of one person, of the several that an action takes."""

    person: str
    via: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Snooze:
    """A person who put an action off, and until when."""

    person: str
    until: datetime


@dataclass(frozen=True, slots=True)
class Action:
    """A decision that somebody is asked for. `args` stay what was proposed, `final_args` are what ran.

    `quorum` people have to approve the same arguments; `votes` are those who did. When one of them edits,
    `args` are theirs until enough others have approved them, and `asked_args` what was proposed before.
    """

    id: str
    thread_id: str
    run_id: str
    kind: ActionKind
    tool: str
    title: str
    args: Args
    args_schema: Mapping[str, Any]
    digest: str
    allowed_decisions: tuple[Verdict, ...]
    approvers: tuple[str, ...]
    state: ActionState
    created_at: datetime
    skill: str | None = None
    requested_by: str | None = None
    why: str | None = None
    decision: Verdict | None = None
    decided_by: str | None = None
    decided_at: datetime | None = None
    decided_via: str | None = None
    reason: str | None = None
    response: str | None = None
    final_args: Args | None = None
    waiting_since: datetime | None = None
    expires_at: datetime | None = None
    escalated_to: tuple[str, ...] = ()
    quorum: int = 1
    votes: tuple[Vote, ...] = ()
    asked_args: Args | None = None
    edited_by: str | None = None
    revision: int = 0
    snoozes: tuple[Snooze, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether a decision can still come: it waits, or it expired and can be reopened."""
        return self.state is ActionState.PENDING or (
            self.state is ActionState.EXPIRED and self.decision is None
        )

    @property
    def lapsed(self) -> bool:
        """Whether it expired for good: the agent is told that nobody decided in time."""
        return self.state is ActionState.EXPIRED and self.decision is not None

    @property
    def shown(self) -> str:
        """What a copy of its card shows: the state, and while it waits which revision of the card."""
        if self.state is ActionState.PENDING and self.revision:
            return f"{self.state}.{self.revision}"
        return str(self.state)


@dataclass(frozen=True, slots=True)
class Beginning:
    """What a run began with: what people wrote, as author and text, or the name of a trigger."""

    words: tuple[tuple[str, str], ...] = ()
    trigger: str | None = None


@dataclass(frozen=True, slots=True)
class DigestItem:
    """An action in a digest. `bound_to` is the digest of the arguments that it had when it was listed."""

    number: int
    action: Action
    thread_title: str
    bound_to: str


@dataclass(frozen=True, slots=True)
class UnreadThread:
    """A thread whose owner has not seen its newest message."""

    thread_id: str
    title: str
    last_message: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Failure:
    """Work that failed, or could not be started: then it has no thread."""

    title: str
    why: str
    at: datetime
    thread_id: str | None = None


@dataclass(frozen=True, slots=True)
class DayUsage:
    """What was used since midnight; the cost is None when a price is not known."""

    tokens: int
    cost_usd: float | None
    of_everybody: bool


@dataclass(frozen=True, slots=True)
class Upcoming:
    """A trigger and when it fires next."""

    name: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Digest:
    """What a person is told at regular times: what waits for them, what is new, what failed, what comes.

    `items` stand as they are now, under the numbers that they were given; all else is as it was at `made_at`.
    The `more_…` say how many there were beyond what is listed, `put_off` how many the person is not told of
    because they put them off. `since` is when failures began to count.
    """

    id: str
    person: str
    thread_id: str
    made_at: datetime
    since: datetime
    zone: str
    items: tuple[DigestItem, ...] = ()
    more_items: int = 0
    put_off: int = 0
    unread: tuple[UnreadThread, ...] = ()
    more_unread: int = 0
    failed: tuple[Failure, ...] = ()
    more_failed: int = 0
    usage: DayUsage | None = None
    coming: tuple[Upcoming, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing in it needs anybody: what was used, what comes and what was put off is no news by
        itself."""
        return not (self.items or self.unread or self.failed)

    @property
    def state(self) -> str:
        """How its items stand, by number: a copy that shows another state is repainted."""
        return " ".join(f"{item.number}:{item.action.state}" for item in self.items)


# `reminder` is a short word about an action whose card was shown before.
OutboundKind = Literal["answer", "notice", "action", "status", "reminder", "digest"]


@dataclass(frozen=True, slots=True)
class Step:
    """One thing the agent did or does: the tool `name`, used by `worker` or by the root agent (None)."""

    name: str
    worker: str | None
    outcome: str  # started | ok | error | paused | stopped
    milliseconds: int | None = None


@dataclass(frozen=True, slots=True)
class RunStatus:
    """How a run stands and its newest steps, oldest first: what a status message shows."""

    run_id: str
    state: RunState
    started_at: datetime | None
    ended_at: datetime | None
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class OutboundItem:
    """One thing to be shown at one address of one channel.

    `key` is the idempotency key: the channel puts it where `Channel.find` can look it up; nothing with it is
    older than `queued_at`. `external_id` is set when a copy is already there and must be repainted in place.
    `action`, `status` and the items of a `digest` are as they stand at delivery, not at queueing, so a late
    copy is never stale.
    `card` names the copy of the action that a reminder is about, when there is one at this address. A notice
    with an `action` answers somebody who decided it.
    `can_be_retried`: a notice that work failed or was stopped, which can go on from there now.
    """

    key: str
    channel: str
    address: str
    kind: OutboundKind
    thread_id: str
    thread_title: str
    text: str
    queued_at: datetime
    action: Action | None = None
    status: RunStatus | None = None
    digest: Digest | None = None
    person: str | None = None
    external_id: str | None = None
    card: str | None = None
    can_be_retried: bool = False


@dataclass(frozen=True, slots=True)
class Working:
    """A run at work in a thread that lives at `address`; `copy` names its status message once it is there."""

    run_id: str
    address: str
    started_at: datetime | None
    copy: str | None


@dataclass(frozen=True, slots=True)
class Staged:
    """What arrived and takes longer to understand than its sender waits; `body` is the channel's."""

    key: str
    body: str


@dataclass(frozen=True, slots=True)
class Told:
    """Something that is said in a thread and shown to one person, at one address, once per `key`.

    `digest_id` names the digest that it is about: what is answered to it is answered to that. `action_id`
    names the action on which the person's word was taken: the channel shows what it runs with.
    """

    key: str
    thread_id: str
    channel: str
    address: str
    person: str
    text: str
    digest_id: str | None = None
    action_id: str | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """Proof that an item arrived; `external_id` is the channel's own name for the copy."""

    external_id: str


@dataclass(frozen=True, slots=True)
class ChannelState:
    """How a channel is: state is ok, connecting, down, unauthorized or off."""

    state: Literal["ok", "connecting", "down", "unauthorized", "off"]
    detail: str | None = None
    last_event_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """Something changed; live views repaint. `data` is small and JSON."""

    kind: str
    thread_id: str | None = None
    data: Mapping[str, Json] = field(default_factory=dict)
