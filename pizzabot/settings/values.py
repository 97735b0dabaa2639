"""What may a single value of the settings look like? Each type parses one value and names the cure."""

from __future__ import annotations

import difflib
import ipaddress
import re
from datetime import time, timedelta
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field

from pizzabot.clock import is_zone
from pizzabot.tools.references import parse_reference

PROVIDERS = ("openai", "anthropic", "google_genai", "bedrock_converse", "ollama", "openrouter", "demo")

_DURATION = re.compile(r"([1-9][0-9]{0,6})([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_LONGEST = timedelta(days=36500)
_LONGEST_TOOL = 200
_MAILBOX = re.compile(r"[^\s@<>,;:\"\\()\[\]\x00-\x1f]+@[^\s@<>,;:\"\\()\[\]\x00-\x1f]+")
_SLACK_ID = re.compile(r"[UW][A-Z0-9]{2,}")


def shown(value: object) -> str:
    """A value for an error message: on one line, invisible characters escaped, never long."""
    text = repr(value[:60]) if isinstance(value, str) else repr(value)
    return text if len(text) <= 64 else text[:60] + "…"


def parse_duration(value: object) -> timedelta | None:
    """`3s`, `15m`, `4h`, `7d` or `never` (None)."""
    if value is None or isinstance(value, timedelta):
        return value
    if value == "never":
        return None
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f'{shown(value)} is not a duration; write "3s", "15m", "4h", "7d" or "never"')
    duration = timedelta(**{_UNITS[match[2]]: int(match[1])})
    if duration > _LONGEST:
        raise ValueError(f'{shown(value)} is longer than a century; write "never"')
    return duration


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches that host name or address."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def provider_of(model: str) -> str:
    """The provider part of `provider:model`."""
    return model.partition(":")[0]


def _model(value: str) -> str:
    provider, _, name = value.partition(":")
    if not provider or not name:
        raise ValueError(f'{shown(value)} is not provider:model; write for example "openai:gpt-5-mini"')
    if provider not in PROVIDERS:
        near = difflib.get_close_matches(provider[:40], PROVIDERS, n=1, cutoff=0.6)
        cure = f'did you mean "{near[0]}:{name[:60]}"?' if near else f"known are {', '.join(PROVIDERS)}"
        raise ValueError(f"unknown provider {shown(provider)}; {cure}")
    return value


def _zone(value: str) -> str:
    if not is_zone(value):
        raise ValueError(f'{shown(value)} is not a known time zone; write one such as "Europe/Amsterdam"')
    return value


def _tool(value: str) -> str:
    if len(value) > _LONGEST_TOOL:
        raise ValueError(f"{shown(value)} is too long for a tool reference")
    return str(parse_reference(value))


def _mailbox(value: str) -> str:
    if not _MAILBOX.fullmatch(value) or len(value) > 254:
        raise ValueError(f'{shown(value)} is not a mail address; write one such as "ada@example.com"')
    local, _, domain = value.lower().rpartition("@")
    try:
        # As it stands in mails that are compared with it (RFC 5890).
        return f"{local}@{domain.encode('idna').decode('ascii')}"
    except UnicodeError as error:
        raise ValueError(
            f"{shown(value)} has a domain that cannot be in the DNS; look at its dots"
        ) from error


def _slack_id(value: str) -> str:
    if not _SLACK_ID.fullmatch(value):
        raise ValueError(f'{shown(value)} is not a Slack member id; copy it from the profile: "U0ADA"')
    return value


def _origin(value: str) -> str:
    try:
        parts = urlsplit(value)
        plain = parts.scheme in ("http", "https") and parts.hostname and not (parts.path or parts.query)
        _ = parts.port
    except ValueError:
        plain = None
    if not plain or "*" in value or "@" in value or "#" in value:
        raise ValueError(
            f'{shown(value)} is not an origin; write scheme and host, "https://pizza.example.com"'
        )
    return value.lower()


def _url(value: str) -> str:
    try:
        parts = urlsplit(value)
        good = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        good = False
    if not good:
        raise ValueError(f'{shown(value)} is not a URL; write one that begins with "http://" or "https://"')
    return value


def _database_url(value: str) -> str:
    if value and not value.startswith("postgresql://"):
        raise ValueError(
            'is neither empty nor a Postgres URL; write "" or "postgresql://user:password@host/name"'
        )
    return value


def _quiet_hours(value: str) -> str:
    start, _, end = value.partition("-")
    try:
        times = {time.fromisoformat(part) for part in (start, end) if re.fullmatch(r"\d\d:\d\d", part)}
    except ValueError:
        times = set()
    if len(times) != 2:
        raise ValueError(f'{shown(value)} are no quiet hours; write start and end, "20:00-07:00"')
    return value


def _name(value: str) -> str:
    if not value.strip() or value != value.strip() or not value.isprintable() or len(value) > 100:
        raise ValueError(f"{shown(value)} is not a name; write up to 100 printable characters")
    return value


def _not_bool(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("must be a number, not true or false")
    return value


def _dollars(value: Any) -> Any:
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            raise ValueError("must be a number of dollars, such as 0.50") from None
    return _not_bool(value)


def _age(value: timedelta | None) -> timedelta | None:
    if value is not None and value < timedelta(days=1):
        raise ValueError('is less than a day; write "1d" or more, or "never"')
    return value


def _duration_text(value: object) -> str:
    parse_duration(value)
    return str(value)


Duration = Annotated[timedelta | None, BeforeValidator(parse_duration)]
Age = Annotated[timedelta | None, BeforeValidator(parse_duration), AfterValidator(_age)]
DurationText = Annotated[str, BeforeValidator(_duration_text)]
ModelName = Annotated[str, AfterValidator(_model)]
Zone = Annotated[str, AfterValidator(_zone)]
ToolText = Annotated[str, AfterValidator(_tool)]
Mailbox = Annotated[str, AfterValidator(_mailbox)]
SlackId = Annotated[str, AfterValidator(_slack_id)]
Origin = Annotated[str, AfterValidator(_origin)]
Url = Annotated[str, AfterValidator(_url)]
DatabaseUrl = Annotated[str, AfterValidator(_database_url)]
QuietHours = Annotated[str, AfterValidator(_quiet_hours)]
Name = Annotated[str, AfterValidator(_name)]
Text = Annotated[str, Field(min_length=1)]
Port = Annotated[int, BeforeValidator(_not_bool), Field(ge=0, le=65535)]
Count = Annotated[int, BeforeValidator(_not_bool), Field(ge=0, le=10**9)]
Positive = Annotated[int, BeforeValidator(_not_bool), Field(gt=0, le=10**9)]
Dollars = Annotated[float, BeforeValidator(_dollars), Field(gt=0, allow_inf_nan=False)]
Price = Annotated[float, BeforeValidator(_dollars), Field(ge=0, allow_inf_nan=False)]
