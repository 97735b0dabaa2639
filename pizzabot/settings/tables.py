"""Which tables and keys do the settings have, of which type, with which default?

Frozen, and closed: a key that stands here nowhere is an error, apart from the free keywords of `[models.*]`.
What concerns one key is checked by its type; what concerns several stands in `pizzabot.settings`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Annotated, Any, Literal
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, model_validator

from pizzabot.people import Notify, People, Person, Role
from pizzabot.settings.values import (
    Age,
    Count,
    DatabaseUrl,
    Dollars,
    Duration,
    DurationText,
    Mailbox,
    ModelName,
    Name,
    Origin,
    Port,
    Positive,
    Price,
    QuietHours,
    SlackId,
    Text,
    ToolText,
    Url,
    Zone,
    is_loopback,
)

Place = Literal["slack", "email", "web"]
GateDecision = Literal["approve", "edit", "reject", "respond"]
ConnectionSecurity = Literal["tls", "starttls", "none"]

_SECRET_KEYS = ("key", "secret", "token", "password")
_SHORTEST_SECRET = 6  # redacting shorter texts would blacken ordinary words


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


class Table(BaseModel):
    """What all tables share."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class ProviderTable(Table):
    """`[models.PROVIDER]`: how that provider is reached, and any other keyword of `init_chat_model`."""

    model_config = ConfigDict(frozen=True, extra="allow", hide_input_in_errors=True)

    base_url: Url | None = Field(default=None, repr=False)
    api_key: SecretStr | None = None

    @model_validator(mode="before")
    @classmethod
    def _hide_secrets(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        return {key: SecretStr(v) if _is_secret(key, v) else v for key, v in value.items()}

    def arguments(self) -> dict[str, Any]:
        """The keywords to call the model with; secrets stay wrapped."""
        return {key: value for key, value in self if value is not None}


class PriceTable(Table):
    """`[prices."provider:model"]`: US dollars per million tokens.

    What is read from the provider's cache or written to it costs like other input when nothing is said.
    """

    input: Price
    output: Price
    cached_input: Price | None = None
    cache_write: Price | None = None


class NotifyTable(Table):
    """`people.notify`: where somebody is told besides the thread's own place."""

    action: tuple[Place, ...] | None = None
    unread: tuple[Place, ...] | None = None
    digest: tuple[Place, ...] | None = None


class PersonTable(Table):
    """`[[people]]`: one person and what reaches them."""

    name: Name
    role: Role
    emails: tuple[Mailbox, ...] = ()
    slack: SlackId | None = None
    timezone: Zone = "UTC"
    notify: NotifyTable = NotifyTable()
    digest: Text | None = None
    quiet_hours: QuietHours | None = None
    day_usd: Dollars | None = None

    def person(self) -> Person:
        """The same as a plain value for the rooms that know nothing of settings."""
        return Person(
            name=self.name,
            role=self.role,
            emails=self.emails,
            slack=self.slack,
            timezone=self.timezone,
            notify=Notify(self.notify.action, self.notify.unread, self.notify.digest),
            digest=self.digest,
            quiet_hours=self.quiet_hours,
        )


class SlackTable(Table):
    """`[slack]`: the workspace app. A table that is there is on, unless it says otherwise."""

    enabled: bool = True
    bot_token: SecretStr | None = None
    app_token: SecretStr | None = None
    signing_secret: SecretStr | None = None
    mode: Literal["socket", "http"] = "socket"
    api_url: Url = "https://slack.com/api/"
    allow_bots: tuple[SlackId, ...] = ()


class OAuthTable(Table):
    """`[email.imap.oauth]`, `[email.smtp.oauth]`: log in with XOAUTH2 instead of a password.

    Either `token_command`, which prints an access token, or a refresh token with where it is redeemed.
    """

    token_command: tuple[Text, ...] = ()
    token_url: Url = ""
    client_id: str = ""
    client_secret: SecretStr | None = None
    refresh_token: SecretStr | None = None
    scope: str = ""


class ServerTable(Table):
    """What the incoming and the outgoing mail server have in common.

    `ca_file` holds certificates (PEM) to trust beside those of the machine.
    """

    host: str = ""
    security: ConnectionSecurity = "tls"
    ca_file: str = ""
    username: str = ""
    password: SecretStr | None = None
    oauth: OAuthTable | None = None


class ImapTable(ServerTable):
    """`[email.imap]`: the mailbox that is watched. `move_to` names a folder for what was taken in."""

    port: Port = 993
    folder: Text = "INBOX"
    move_to: str = ""
    poll_seconds: Positive = 60


class ListenTable(Table):
    """`[email.listen]`: the built-in door for mail.

    `trusted_networks` are those whose Authentication-Results are believed: a relay of the operator's own.
    """

    host: Text = "127.0.0.1"
    port: Port = 8025
    protocol: Literal["smtp", "lmtp"] = "smtp"
    hostname: str = ""
    certificate: str = ""
    key: str = ""
    proxy_protocol: bool = False
    trusted_networks: tuple[Text, ...] = ("127.0.0.0/8", "::1/128")


class SmtpTable(ServerTable):
    """`[email.smtp]`: the server that takes outgoing mail."""

    port: Port = 587
    security: ConnectionSecurity = "starttls"


class DkimTable(Table):
    """`[email.dkim]`: sign outgoing mail (RFC 6376)."""

    selector: Text
    key_file: Text
    domain: str = ""


class CapsTable(Table):
    """`[email.caps]`: breakers against mail loops and floods."""

    automatic_per_thread: Count = 30
    per_verified_person_hour: Count = 600
    accepted_per_person_hour: Count = 300
    per_unverified_address_day: Count = 0
    questions_per_action: Count = 3


class EmailTable(Table):
    """`[email]`: the agent's own address."""

    enabled: bool = True
    address: Mailbox | None = None
    name: Text = "Pizza Bot"
    plus_addressing: bool = True
    trusted_authserv_ids: tuple[Text, ...] = ()
    imap: ImapTable | None = None
    listen: ListenTable | None = None
    smtp: SmtpTable | None = None
    dkim: DkimTable | None = None
    caps: CapsTable = CapsTable()


class WebTable(Table):
    """`[web]`: the local view and the API."""

    host: Text = "127.0.0.1"
    port: Port = 8642
    public_url: Url = ""
    allowed_origins: tuple[Origin, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _derive_public_url(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        if value.get("public_url"):
            return {**value, "public_url": str(value["public_url"]).rstrip("/")}
        return {**value, "public_url": _public_url(value)}


class RuleTable(Table):
    """`[[approvals.rules]]`: the operator's word on one tool or a family of tools."""

    tool: ToolText
    ask: bool = True
    decisions: Annotated[tuple[GateDecision, ...], Field(min_length=1)] = ("approve", "edit", "reject")
    approvers: Annotated[tuple[Name, ...], Field(min_length=1)] = ()
    quorum: Positive = 1
    urgent: bool = False
    escalate_after: Duration = None
    escalate_to: tuple[Name, ...] = ()


class WordsTable(Table):
    """`[approvals.words]`: what a reply may say besides the English words, as `["freigegeben"]`."""

    approve: tuple[Text, ...] = ()
    reject: tuple[Text, ...] = ()


class ApprovalsTable(Table):
    """`[approvals]`: what asks unless somebody said otherwise, and when a question lapses."""

    default: Literal["ask", "annotations", "allow"] = "annotations"
    reminder_after: Duration = Field(default="4h", validate_default=True)
    expire_after: Duration = None
    on_expiry: Literal["park", "reject"] = "park"
    escalate_after: Duration = None
    escalate_to: tuple[Name, ...] = ()
    skills_may_loosen: bool = False
    words: WordsTable = WordsTable()
    rules: tuple[RuleTable, ...] = ()

    def escalation(self, table: ApprovalsTable | RuleTable) -> tuple[timedelta | None, tuple[str, ...]]:
        """When and to whom: what `table` says itself, else what stands here."""
        said = table.model_fields_set
        after = table.escalate_after if "escalate_after" in said else self.escalate_after
        return after, table.escalate_to if "escalate_to" in said else self.escalate_to


class LimitsTable(Table):
    """`[limits]`: the bounds of a run and of a day."""

    run_seconds: Positive = 1800
    model_calls: Positive = 40
    tool_calls: Positive = 100
    worker_tool_calls: Positive = 150
    run_usd: Dollars = 2.0
    day_usd: Dollars = 20.0
    run_tokens: Positive | None = None
    day_tokens: Positive | None = None
    parallel_runs: Positive = 20


class DatabaseTable(Table):
    """`[database]`: empty for SQLite in the home."""

    url: DatabaseUrl = Field(default="", repr=False)


class RetentionTable(Table):
    """`[retention]`: how old what gets before it is removed; "never" keeps it."""

    messages: Age = None
    checkpoints: Age = None
    attachments: Age = None
    outbox: Age = Field(default="90d", validate_default=True)
    activity: Age = Field(default="90d", validate_default=True)
    audit: Age = None


class TelemetryTable(Table):
    """`[telemetry]`: what other programs may read of this server, and where its traces go."""

    metrics_token: Annotated[SecretStr, Field(min_length=16)] | None = None
    otlp_endpoint: Url | None = None
    otlp_headers: Mapping[str, SecretStr] = Field(default_factory=dict)
    service_name: Text = "pizzabot"


class TriggerTable(Table):
    """`[[triggers]]`: the fields of the API's trigger; what is not written stays unset."""

    name: Name
    kind: Literal["cron", "webhook", "digest"] | None = None
    prompt: str | None = None
    cron: Text | None = None
    timezone: Zone | None = None
    secret: Annotated[SecretStr, Field(min_length=16)] | None = None
    signing: Literal["secret", "hmac"] | None = None
    owner: Name | None = None
    channels: tuple[Text, ...] | None = None
    skills: tuple[Text, ...] | None = None
    model: ModelName | None = None
    budget_usd: Dollars | None = None
    overlap: Literal["skip", "queue", "allow"] | None = None
    misfire: Literal["latest", "skip", "all"] | None = None
    misfire_max: Positive | None = None
    grace: DurationText | None = None
    enabled: bool | None = None

    def fields(self) -> dict[str, Any]:
        """What the file says, as the body of a request to the API would say it; the secret in the open."""
        written = self.model_dump(mode="json", exclude_unset=True)
        if self.secret is not None:
            written["secret"] = self.secret.get_secret_value()
        return written


class Settings(Table):
    """Everything that can be configured, read once at start."""

    model: ModelName = "openai:gpt-5-mini"
    log_level: Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(_lower)] = "info"
    log_format: Literal["text", "json"] = "text"
    log_file_bytes: Annotated[Positive, Field(ge=10_000)] = 10_000_000
    log_old_files: Annotated[Count, Field(ge=1, le=1000)] = 5
    models: Mapping[str, ProviderTable] = Field(default_factory=dict)
    prices: Mapping[ModelName, PriceTable] = Field(default_factory=dict)
    people: tuple[PersonTable, ...] = (PersonTable(name="Owner", role="owner"),)
    slack: SlackTable = SlackTable(enabled=False)
    email: EmailTable = EmailTable(enabled=False)
    web: WebTable = WebTable(public_url="http://127.0.0.1:8642")
    approvals: ApprovalsTable = ApprovalsTable()
    limits: LimitsTable = LimitsTable()
    database: DatabaseTable = DatabaseTable()
    retention: RetentionTable = RetentionTable()
    telemetry: TelemetryTable = TelemetryTable()
    triggers: tuple[TriggerTable, ...] = ()

    def directory(self) -> People:
        """The people as the rooms use them."""
        return People(table.person() for table in self.people)

    def secrets(self) -> frozenset[str]:
        """Every secret text that must not reach a log line."""
        urls = [self.database.url, *(provider.base_url or "" for provider in self.models.values())]
        texts = {*_secret_texts(self), *(text for url in urls for text in _passwords_in(url))}
        return frozenset(text for text in texts if len(text) >= _SHORTEST_SECRET)


def _is_secret(key: str, value: object) -> bool:
    return isinstance(value, str) and key.lower().rpartition("_")[2] in _SECRET_KEYS


def _public_url(web: Mapping[str, Any]) -> str:
    host = web.get("host") or "127.0.0.1"
    origins = web.get("allowed_origins") or [""]
    first = origins[0] if isinstance(origins, list | tuple) else ""
    if not is_loopback(str(host)) and str(first).startswith("http"):
        return str(first)
    literal = f"[{host}]" if ":" in str(host) else host
    return f"http://{literal}:{web.get('port', 8642)}"


def _secret_texts(value: object) -> Iterator[str]:
    if isinstance(value, SecretStr):
        yield value.get_secret_value()
    elif isinstance(value, BaseModel):
        for _, inner in value:
            yield from _secret_texts(inner)
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _secret_texts(inner)
    elif isinstance(value, tuple | list):
        for inner in value:
            yield from _secret_texts(inner)


def _passwords_in(url: str) -> Iterator[str]:
    """The password of a URL as it is written and as it is meant."""
    try:
        password = urlsplit(url).password
    except ValueError:
        return
    if password:
        yield from (password, unquote(password))
