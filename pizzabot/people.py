"""Who is who, and who may see, decide and administer what?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Literal
from zoneinfo import ZoneInfo

from pizzabot.errors import Forbidden
from pizzabot.messages import Action

Role = Literal["owner", "approver", "member"]


@dataclass(frozen=True, slots=True)
class Notify:
    """Where a person is told besides the place the thread lives in.

    None means "not said": the first of Slack, email and web that is configured for the person.
    An empty tuple means "nowhere else".
    """

    action: tuple[str, ...] | None = None
    unread: tuple[str, ...] | None = None
    digest: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Person:
    """One person of `[[people]]`. `emails` are lower case, `quiet_hours` reads HH:MM-HH:MM in `timezone`."""

    name: str
    role: Role
    emails: tuple[str, ...] = ()
    slack: str | None = None
    timezone: str = "UTC"
    notify: Notify = Notify()
    digest: str | None = None
    quiet_hours: str | None = None


class People:
    """Everybody this installation knows, in the order of the file."""

    def __init__(self, everybody: Iterable[Person]) -> None:
        self._everybody = tuple(everybody)
        self._by_name: Mapping[str, Person] = {person.name.casefold(): person for person in self._everybody}
        self._by_email: Mapping[str, Person] = {
            address.lower() if address.isascii() else address: person
            for person in self._everybody
            for address in person.emails
        }
        self._by_slack: Mapping[str, Person] = {
            person.slack: person for person in self._everybody if person.slack is not None
        }

    def __iter__(self) -> Iterator[Person]:
        return iter(self._everybody)

    def __len__(self) -> int:
        return len(self._everybody)

    def by_name(self, name: str) -> Person | None:
        """The person of that name, whatever the case."""
        return self._by_name.get(name.casefold())

    def by_email(self, address: str) -> Person | None:
        """The person with exactly that address, lower-cased: no plus-tags, no display names, no folding.

        Only ASCII is lowered: the sign for Kelvin would become a k, and its mailbox somebody else's.
        """
        return self._by_email.get(address.lower() if address.isascii() else address)

    def by_slack(self, user_id: str) -> Person | None:
        """The person with that Slack user id."""
        return self._by_slack.get(user_id)

    def decides(self, person: Person, approvers: Iterable[str], thread_owner: str, quorum: int = 1) -> bool:
        """`may_decide`, and when too few of those who were named are left in the settings, owners do, too."""
        named = frozenset(approvers)
        if may_decide(person, named, thread_owner):
            return True
        left = {found.name for name in named if (found := self.by_name(name)) is not None}
        return bool(named) and len(left) < quorum and may_administer(person)

    def decides_action(self, person: Person, action: Action, thread_owner: str) -> bool:
        """Whether the person's word counts for an action in a thread of `thread_owner`."""
        return self.decides(person, action.approvers, thread_owner, action.quorum)

    @property
    def owner(self) -> Person:
        """The first owner: told about everything that belongs to nobody else."""
        return self.owners[0]

    @property
    def owners(self) -> tuple[Person, ...]:
        """Everybody with role owner; the settings guarantee at least one."""
        return tuple(person for person in self._everybody if person.role == "owner")


def may_see(person: Person, thread_owner: str, may_decide_here: bool) -> bool:
    """Owners see every thread, members their own, approvers also those with an action they may decide."""
    if person.role == "owner" or _same_name(person.name, thread_owner):
        return True
    return person.role == "approver" and may_decide_here


def may_decide(person: Person, approvers: frozenset[str], thread_owner: str) -> bool:
    """With approvers exactly those decide; without, the thread's owner and people with role owner."""
    if approvers:
        return any(_same_name(person.name, name) for name in approvers)
    return person.role == "owner" or _same_name(person.name, thread_owner)


def owns(person: Person, thread_owner: str) -> bool:
    """Whether it is the person's own thread, however the name is written."""
    return _same_name(person.name, thread_owner)


def may_write(person: Person, thread_owner: str) -> bool:
    """Whether the person may write in a thread, and rename, archive, fork, stop and delete it."""
    return owns(person, thread_owner) or may_administer(person)


def may_administer(person: Person) -> bool:
    """Whether the person may change skills, servers, triggers of others, grants, and stop everything."""
    return person.role == "owner"


def administer(person: Person) -> None:
    """Raise Forbidden unless the person may administer."""
    if not may_administer(person):
        raise Forbidden("Only an owner may do this.", code="not_an_owner")


def is_quiet(person: Person, moment: datetime) -> bool:
    """Whether `moment` lies in the person's quiet hours, which may span midnight."""
    if person.quiet_hours is None:
        return False
    start, end = (time.fromisoformat(part) for part in person.quiet_hours.split("-"))
    local = moment.astimezone(ZoneInfo(person.timezone)).time()
    if start < end:
        return start <= local < end
    return local >= start or local < end


def quiet_until(person: Person, moment: datetime) -> datetime | None:
    """When the person's quiet hours end, in UTC; None when `moment` does not lie in them."""
    if person.quiet_hours is None or not is_quiet(person, moment):
        return None
    end, zone = time.fromisoformat(person.quiet_hours.split("-")[1]), ZoneInfo(person.timezone)
    local = moment.astimezone(zone)
    # A clock that goes back at night shows the end twice, and one that goes forward may skip it.
    ends = (
        datetime.combine(local.date() + timedelta(days=days), end.replace(fold=fold), zone).astimezone(UTC)
        for days in range(2)
        for fold in range(2)
    )
    return min(moment_of_end for moment_of_end in ends if moment_of_end > moment)


def _same_name(one: str, other: str) -> bool:
    return one.casefold() == other.casefold()
