"""Which settings are right one by one and wrong together?

Each check yields the path of the key to change and a sentence that says how.
"""

from __future__ import annotations

import difflib
import ipaddress
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from pizzabot.errors import Invalid
from pizzabot.people import People
from pizzabot.settings.file import KeyPath
from pizzabot.settings.tables import (
    ApprovalsTable,
    EmailTable,
    ListenTable,
    OAuthTable,
    RuleTable,
    ServerTable,
    Settings,
    SlackTable,
    SmtpTable,
)
from pizzabot.settings.values import PROVIDERS, is_loopback, shown
from pizzabot.triggers.schedules import Schedule

Contradiction = tuple[KeyPath, str]


def contradictions(settings: Settings) -> Iterator[Contradiction]:
    """Everything that does not fit together."""
    yield from _providers(settings)
    yield from _people(settings)
    if settings.slack.enabled:
        yield from _slack(settings.slack)
    if settings.email.enabled:
        yield from _email(settings.email)
    yield from _web(settings)
    yield from _rules(settings)
    yield from _triggers(settings)


def _providers(settings: Settings) -> Iterator[Contradiction]:
    for name in settings.models:
        if name not in PROVIDERS:
            yield ("models", name), f"is not a known provider; {_nearest(name, PROVIDERS)}"


def _people(settings: Settings) -> Iterator[Contradiction]:
    if not any(person.role == "owner" for person in settings.people):
        yield ("people",), 'nobody is owner; give one person role = "owner"'
    taken: dict[tuple[str, str], int] = {}
    for index, person in enumerate(settings.people):
        marks: list[tuple[KeyPath, str, str]] = [(("name",), "name", person.name.casefold())]
        marks += [(("emails", i), "address", address) for i, address in enumerate(person.emails)]
        marks += [(("slack",), "Slack id", person.slack)] if person.slack else []
        for place, kind, value in marks:
            other = taken.setdefault((kind, value), index)
            if other != index:
                yield (
                    ("people", index, *place),
                    f"{settings.people[other].name} has the same {kind}; each belongs to one person",
                )
        if person.digest is not None:
            try:
                Schedule.parse(person.digest, person.timezone)
            except Invalid as error:
                yield ("people", index, "digest"), str(error)


def _slack(slack: SlackTable) -> Iterator[Contradiction]:
    needed = ["bot_token", "app_token" if slack.mode == "socket" else "signing_secret"]
    for key in needed:
        secret = getattr(slack, key)
        if secret is None or not secret.get_secret_value():
            yield (
                ("slack", key),
                f'is missing; add {key} = "${{SLACK_{key.upper()}}}" or set enabled = false in [slack]',
            )

    for key, wrong, other in (("bot_token", "xapp-", "app_token"), ("app_token", "xoxb-", "bot_token")):
        secret = getattr(slack, key)
        if secret is not None and secret.get_secret_value().startswith(wrong):
            yield ("slack", key), f"begins with {wrong}, as the {other} does; the two are exchanged"


def _email(email: EmailTable) -> Iterator[Contradiction]:
    if email.address is None:
        yield (
            ("email", "address"),
            'is missing; add address = "pizza@example.com" or set enabled = false in [email]',
        )
    if email.imap is None and email.listen is None:
        yield ("email",), "nothing brings mail in; add [email.imap] or [email.listen], or set enabled = false"
    if email.smtp is None:
        yield (
            ("email", "smtp"),
            "is missing; add [email.smtp] with host and port, or set enabled = false in [email]",
        )
    for name, server in (("imap", email.imap), ("smtp", email.smtp)):
        if server is not None:
            yield from _mail_server(name, server)
    if email.listen is not None:
        yield from _listen(email.listen)


def _mail_server(name: str, server: ServerTable) -> Iterator[Contradiction]:
    if not server.host:
        yield ("email", name, "host"), f'is missing; add host = "{name}.example.com"'
    elif server.security == "none" and not is_loopback(server.host):
        yield (
            ("email", name, "security"),
            '"none" is for this machine only; write "tls" or "starttls"',
        )
    if name == "imap" and not server.username:
        yield ("email", name, "username"), "is missing; add username = …"
    if server.oauth is not None:
        if isinstance(server, SmtpTable) and not server.username:
            yield ("email", name, "username"), "is missing beside oauth; add username = …"
        yield from _oauth(name, server.oauth)
    elif (name == "imap" or server.username) and server.password is None:
        yield ("email", name, "password"), f'is missing; add password = "${{{name.upper()}_PASSWORD}}"'


def _listen(listen: ListenTable) -> Iterator[Contradiction]:
    place: KeyPath = ("email", "listen")
    if listen.key and not listen.certificate:
        yield (*place, "certificate"), "is missing beside key; add the file of the certificate"
    for index, text in enumerate(listen.trusted_networks):
        try:
            network = ipaddress.ip_network(text, strict=False)
        except ValueError:
            yield (
                (*place, "trusted_networks", index),
                f'{shown(text)} is not a network; write one such as "192.0.2.0/24"',
            )
        else:
            if network.prefixlen == 0:
                yield (
                    (*place, "trusted_networks", index),
                    "believes everybody who can reach the door; name the networks of your own mail servers",
                )


def _oauth(name: str, oauth: OAuthTable) -> Iterator[Contradiction]:
    if oauth.token_command:
        return
    for key in ("token_url", "client_id", "refresh_token"):
        if not getattr(oauth, key):
            yield ("email", name, "oauth", key), 'is missing; add it, or token_command = ["…"]'
    url = urlsplit(oauth.token_url)
    if url.scheme == "http" and not is_loopback(url.hostname or ""):
        yield (
            ("email", name, "oauth", "token_url"),
            "would send the refresh token unencrypted; write https:// instead of http://",
        )


def _web(settings: Settings) -> Iterator[Contradiction]:
    if not is_loopback(settings.web.host) and not settings.web.allowed_origins:
        yield (
            ("web", "allowed_origins"),
            f"is needed because web.host {settings.web.host} is reachable from other machines; "
            'add allowed_origins = ["https://pizza.example.com"] or set host = "127.0.0.1"',
        )


def _rules(settings: Settings) -> Iterator[Contradiction]:
    people = settings.directory()
    seen: set[str] = set()
    yield from _escalation(people, ("approvals",), settings.approvals, settings.approvals)
    for index, rule in enumerate(settings.approvals.rules):
        place: KeyPath = ("approvals", "rules", index)
        yield from _escalation(people, place, rule, settings.approvals)
        if rule.tool in seen:
            yield (*place, "tool"), f"a rule before this one names {rule.tool} too; join the two"
        seen.add(rule.tool)
        named = {name.casefold() for name in rule.approvers}
        deciding = len(named) if named else len(people.owners)
        if rule.quorum > deciding:
            who = "people may decide it" if deciding != 1 else "person may decide it"
            yield (
                (*place, "quorum"),
                f"{rule.quorum} can never approve, because {deciding} {who}; name more approvers",
            )
        yield from _deciding(people, (*place, "approvers"), rule.approvers)


def _escalation(
    people: People, place: KeyPath, table: ApprovalsTable | RuleTable, approvals: ApprovalsTable
) -> Iterator[Contradiction]:
    yield from _deciding(people, (*place, "escalate_to"), table.escalate_to)
    after, to = approvals.escalation(table)
    if "escalate_after" in table.model_fields_set and after is not None and not to:
        yield (*place, "escalate_after"), 'says when, and nothing says to whom; add escalate_to = ["…"]'
    if table.escalate_to and after is None and "escalate_after" not in table.model_fields_set:
        yield (*place, "escalate_to"), 'says to whom, and nothing says when; add escalate_after = "8h"'


def _deciding(people: People, place: KeyPath, names: Sequence[str]) -> Iterator[Contradiction]:
    """Those who are named to decide must be there and may not be members."""
    known = [person.name for person in people]
    for i, name in enumerate(names):
        person = people.by_name(name)
        if person is None:
            yield (*place, i), f'nobody is named "{name}"; {_nearest(name, known)}'
        elif person.role == "member":
            yield (*place, i), f'{name} has role member; give {name} role = "approver"'


def _triggers(settings: Settings) -> Iterator[Contradiction]:
    people = settings.directory()
    seen: set[str] = set()
    for index, trigger in enumerate(settings.triggers):
        if trigger.name.casefold() in seen:
            yield ("triggers", index, "name"), "another trigger has this name; each needs its own"
        seen.add(trigger.name.casefold())
        if trigger.kind == "digest":
            yield ("triggers", index, "kind"), "a digest is written in [[people]], as `digest`"
        if trigger.owner is not None and people.by_name(trigger.owner) is None:
            names = [person.name for person in people]
            yield (
                ("triggers", index, "owner"),
                f'nobody is named "{trigger.owner}"; {_nearest(trigger.owner, names)}',
            )


def _nearest(word: str, known: list[str] | tuple[str, ...]) -> str:
    near = difflib.get_close_matches(word[:100], known, n=1, cutoff=0.6)
    return f'did you mean "{near[0]}"?' if near else f"known are {', '.join(known)}"
