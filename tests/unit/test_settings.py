"""Does a right file load, and does a wrong one say on one line each where, what and what to do?"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel

from pizzabot.clock import system_zone
from pizzabot.people import Notify
from pizzabot.settings import Settings, SettingsError, default_toml, load_environment, load_settings
from pizzabot.settings.later import not_acted_on
from pizzabot.settings.tables import EmailTable
from pizzabot.settings.values import is_loopback, parse_duration

NOTHING: dict[str, str] = {"TZ": "UTC"}
CORPUS = Path(__file__).parents[1] / "corpus" / "settings"
DOCS = Path(__file__).parents[2] / "docs" / "configuration.md"

CONTRACT = """
model = "openai:gpt-5-mini"
log_level = "WARNING"
[models.openai]
base_url = "http://127.0.0.1:9911/v1"
api_key = "${OPENAI_KEY}"
temperature = 0.2
[prices."openai:gpt-5-mini"]
input = 0.25
output = 2.0

[[people]]
name = "Ada"
role = "owner"
emails = ["Ada@example.com"]
slack = "U0ADA"
timezone = "Europe/Amsterdam"
notify = { action = ["slack", "email"], unread = ["slack"] }
digest = "0 8 * * 1-5"
quiet_hours = "20:00-07:00"

[slack]
enabled = true
bot_token = "${SLACK_BOT_TOKEN}"
app_token = "${SLACK_APP_TOKEN}"
mode = "socket"
api_url = "https://slack.com/api/"

[email]
enabled = true
address = "pizza@example.com"
plus_addressing = true
trusted_authserv_ids = ["mx.example.com"]
[email.imap]
host = "imap.example.com"
port = 993
security = "tls"
username = "pizza"
password = "${IMAP_PASSWORD}"
[email.listen]
host = "127.0.0.1"
port = 8025
[email.smtp]
host = "smtp.example.com"
port = 587
security = "starttls"
[email.caps]
automatic_per_thread = 30
per_verified_person_hour = 600
per_unverified_address_day = 0
questions_per_action = 3

[web]
host = "127.0.0.1"
port = 8642
public_url = "http://127.0.0.1:8642"
allowed_origins = []

[approvals]
default = "annotations"
reminder_after = "4h"
expire_after = "never"
on_expiry = "park"
[[approvals.rules]]
tool = "mcp:ledger:submit_expense"
decisions = ["approve", "edit", "reject"]
approvers = ["Ada"]
quorum = 1

[limits]
run_seconds = 1800
model_calls = 40
tool_calls = 100
worker_tool_calls = 150
run_usd = 2.0
day_usd = 20.0
parallel_runs = 20

[database]
url = "postgresql://pizza:p%40ssw0rd@db/pizza"

[[triggers]]
name = "Morning"
kind = "cron"
cron = "0 8 * * 1-5"
prompt = "What is on today?"
grace = "2h"
"""

CONTRACT_VARIABLES = {
    "OPENAI_KEY": "sk-0123456789",
    "SLACK_BOT_TOKEN": "xoxb-0123456789",
    "SLACK_APP_TOKEN": "xapp-0123456789",
    "IMAP_PASSWORD": "correct horse",
}


def load(home: Path, text: str | bytes, environ: dict[str, str] = NOTHING) -> Settings:
    content = text if isinstance(text, bytes) else text.encode()
    (home / "pizzabot.toml").write_bytes(content)
    return load_settings(home, environ)


def errors(home: Path, text: str | bytes, environ: dict[str, str] = NOTHING) -> list[str]:
    """The lines an operator sees, without the folder in front."""
    with pytest.raises(SettingsError) as caught:
        load(home, text, environ)
    return lines_of(caught.value, home)


def lines_of(error: SettingsError, home: Path) -> list[str]:
    lines = [str(error), *map(str, error.others)]
    assert all("\n" not in line and line.isprintable() and len(line) < 500 for line in lines)
    return [line.removeprefix(f"{home}/") for line in lines]


# A right file


def test_no_file_at_all_gives_the_defaults_and_one_owner(tmp_path: Path) -> None:
    settings = load_settings(tmp_path, NOTHING)
    assert [(person.name, person.role, person.timezone) for person in settings.people] == [
        ("Owner", "owner", "UTC")
    ]
    assert (settings.slack.enabled, settings.email.enabled) == (False, False)
    assert settings == Settings()


def test_every_key_of_the_documented_file_is_read(tmp_path: Path) -> None:
    settings = load(tmp_path, CONTRACT, CONTRACT_VARIABLES)
    ada = settings.directory().owner
    assert (ada.emails, ada.timezone, ada.quiet_hours) == (
        ("ada@example.com",),
        "Europe/Amsterdam",
        "20:00-07:00",
    )
    assert ada.notify == Notify(action=("slack", "email"), unread=("slack",))
    assert settings.models["openai"].arguments().keys() == {"base_url", "api_key", "temperature"}
    assert settings.prices["openai:gpt-5-mini"].output == 2.0
    assert settings.slack.bot_token is not None
    assert settings.slack.bot_token.get_secret_value() == "xoxb-0123456789"
    assert settings.email.imap is not None
    assert settings.email.imap.port == 993
    assert settings.approvals.reminder_after == timedelta(hours=4)
    assert settings.approvals.expire_after is None
    assert settings.approvals.rules[0].approvers == ("Ada",)
    assert settings.log_level == "warning"
    assert settings.triggers[0].fields() == {
        "name": "Morning",
        "kind": "cron",
        "cron": "0 8 * * 1-5",
        "prompt": "What is on today?",
        "grace": "2h",
    }


def test_all_secrets_are_named_for_redaction_and_shown_nowhere(tmp_path: Path) -> None:
    text = CONTRACT + '[models.bedrock_converse]\naws_secret_access_key = "aws-0123456789"\n'
    text = text.replace("http://127.0.0.1:9911", "http://me:proxy-password@127.0.0.1:9911")
    settings = load(tmp_path, text, CONTRACT_VARIABLES)
    secrets = settings.secrets()
    assert secrets == {
        *CONTRACT_VARIABLES.values(),
        *("p%40ssw0rd", "p@ssw0rd", "aws-0123456789", "proxy-password"),
    }
    assert not [secret for secret in secrets if secret in repr(settings)]


def test_a_short_secret_is_not_redacted_since_it_would_blacken_ordinary_words(tmp_path: Path) -> None:
    assert load(tmp_path, '[models.openai]\napi_key = "abc"').secrets() == frozenset()


def test_settings_cannot_be_changed(tmp_path: Path) -> None:
    settings = load_settings(tmp_path, NOTHING)
    with pytest.raises(ValueError, match="frozen"):
        settings.web.port = 1  # type: ignore[misc]


def test_the_example_file_changes_no_default(tmp_path: Path) -> None:
    assert load(tmp_path, default_toml()) == Settings()


def test_the_example_file_loads_with_every_comment_mark_removed(tmp_path: Path) -> None:
    lines = default_toml().splitlines()
    opened = [line.removeprefix("# ") for line in lines if re.match(r"# (\[|[a-z_]+ = )", line)]
    assert len(opened) > 60
    variables = {"SLACK_BOT_TOKEN": "b", "SLACK_APP_TOKEN": "a", "IMAP_PASSWORD": "i", "SMTP_PASSWORD": "s"}
    settings = load(
        tmp_path, "\n".join(opened), {**variables, "OPENAI_API_KEY": "o", "METRICS_TOKEN": "m" * 16}
    )
    assert settings.directory().owner.name == "Ada"


def _paths(table: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, field in table.model_fields.items():
        inner = next((arg for arg in _models_in(field.annotation)), None)
        if inner is None:
            yield name
        else:
            yield name
            yield from _paths(inner, f"{prefix}{name}.")


def _models_in(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for arg in get_args(annotation):
        yield from _models_in(arg)


@pytest.mark.parametrize("key", sorted(set(_paths(Settings))))
def test_every_key_stands_in_the_documentation(key: str) -> None:
    text = DOCS.read_text()
    assert re.search(rf"^\| `(notify\.)?{key}` \||^#+ `\[+([a-z]+\.)?{key}[].]", text, re.MULTILINE)


def test_importing_the_settings_does_not_import_what_only_some_need() -> None:
    code = "import sys, pizzabot.settings; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"pydantic_settings", "yaml", "sqlalchemy", "langgraph", "rich", "typer"} & set(loaded)


# Defaults from the machine


@pytest.mark.parametrize(("zone", "expected"), [("Asia/Tokyo", "Asia/Tokyo"), (":Asia/Tokyo", "Asia/Tokyo")])
def test_people_without_a_zone_live_in_the_zone_of_the_machine(
    tmp_path: Path, zone: str, expected: str
) -> None:
    settings = load(tmp_path, '[[people]]\nname = "Ada"\nrole = "owner"', {"TZ": zone})
    assert settings.people[0].timezone == expected


def test_a_machine_without_a_named_zone_is_in_utc(tmp_path: Path) -> None:
    assert system_zone({"TZ": "XYZ"}, tmp_path / "localtime") == "UTC"


def test_the_zone_of_the_machine_is_where_localtime_leads(tmp_path: Path) -> None:
    (tmp_path / "localtime").symlink_to("/usr/share/zoneinfo/Europe/Paris")
    assert system_zone({}, tmp_path / "localtime") == "Europe/Paris"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[web]\nport = 9000", "http://127.0.0.1:9000"),
        ('[web]\nhost = "::1"', "http://[::1]:8642"),
        ('[web]\npublic_url = "https://p.example.com/"', "https://p.example.com"),
        ('[web]\nhost = "0.0.0.0"\nallowed_origins = ["https://P.example.com"]', "https://p.example.com"),
    ],
)
def test_the_public_address_follows_from_the_rest(tmp_path: Path, text: str, expected: str) -> None:
    assert load(tmp_path, text).web.public_url.lower() == expected


def test_the_slack_address_may_come_from_its_usual_variable(tmp_path: Path) -> None:
    text = '[slack]\nbot_token = "b"\napp_token = "a"'
    assert (
        load(tmp_path, text, {"SLACK_API_URL": "http://127.0.0.1:1/"}).slack.api_url == "http://127.0.0.1:1/"
    )


# The environment


def test_the_environment_goes_over_the_file(tmp_path: Path) -> None:
    environ = {
        "PIZZABOT_WEB__PORT": "9000",
        "PIZZABOT_MODEL": "ollama:llama",
        "PIZZABOT_MODELS__OLLAMA__BASE_URL": "http://127.0.0.1:11434",
        "PIZZABOT_WEB__ALLOWED_ORIGINS": '["https://a.example.com"]',
        "PIZZABOT_PEOPLE": '[{"name": "Eve", "role": "owner"}]',
        "PIZZABOT_PRICES": '{"ollama:llama": {"input": 0, "output": 0}}',
    }
    settings = load(tmp_path, '[web]\nport = 1\n[[people]]\nname = "Ada"\nrole = "owner"', environ)
    assert (settings.web.port, settings.model) == (9000, "ollama:llama")
    assert settings.models["ollama"].base_url == "http://127.0.0.1:11434"
    assert settings.web.allowed_origins == ("https://a.example.com",)
    assert [person.name for person in settings.people] == ["Eve"]
    assert settings.prices["ollama:llama"].input == 0


def test_variables_that_are_no_settings_are_left_alone(tmp_path: Path) -> None:
    environ = {
        "PIZZABOT_HOME": "/x",
        "PIZZABOT_SERVICE_HOST": "10.0.0.1",
        "PIZZABOT_PORT": "tcp://10.0.0.1:80",
    }
    assert load_settings(tmp_path, environ).web.port == 8642


def test_a_value_of_the_environment_is_not_expanded(tmp_path: Path) -> None:
    environ = {"PIZZABOT_SLACK__BOT_TOKEN": "${HOME}", "PIZZABOT_SLACK__APP_TOKEN": "x"}
    token = load_settings(tmp_path, environ).slack.bot_token
    assert token is not None
    assert token.get_secret_value() == "${HOME}"


def test_the_environment_stands_in_for_a_variable_that_is_not_set(tmp_path: Path) -> None:
    text = '[slack]\nbot_token = "${NOPE}"\napp_token = "x"'
    assert load(tmp_path, text, {"PIZZABOT_SLACK__BOT_TOKEN": "b"}).slack.enabled


@pytest.mark.parametrize(
    ("environ", "line"),
    [
        (
            {"PIZZABOT_WEBB__PORT": "1"},
            'environment: PIZZABOT_WEBB__PORT: is not a known key; did you mean "web"?',
        ),
        (
            {"PIZZABOT_WEB__PROT": "1"},
            'environment: PIZZABOT_WEB__PROT: is not a known key; did you mean "port"?',
        ),
        (
            {"PIZZABOT_WEB__ALLOWED_ORIGINS": "https://a"},
            'environment: PIZZABOT_WEB__ALLOWED_ORIGINS: is not JSON; write lists and tables as ["a", "b"]',
        ),
        (
            {"PIZZABOT_SLACK__MODE": "carrier", "PIZZABOT_SLACK__ENABLED": "false"},
            "environment: PIZZABOT_SLACK__MODE: 'carrier' is not allowed; write one of 'socket', 'http'",
        ),
        (
            {"PIZZABOT_PEOPLE": '[{"name": "Eve"}]'},
            'environment: PIZZABOT_PEOPLE: is missing; add role = "owner" or role = "approver" '
            'or role = "member"',
        ),
    ],
)
def test_a_mistake_in_the_environment_names_the_variable(
    tmp_path: Path, environ: dict[str, str], line: str
) -> None:
    assert errors(tmp_path, "", environ) == [line]


@pytest.mark.parametrize("value", ["[" * 100_000, "x" * 1_000_000, '{"a":' * 5000])
def test_monstrous_values_of_the_environment_are_refused_on_one_line(tmp_path: Path, value: str) -> None:
    assert errors(tmp_path, "", {"PIZZABOT_PEOPLE": value})
    assert errors(tmp_path, "", {"PIZZABOT_MODEL": value})
    assert errors(tmp_path, "", {"PIZZABOT_WEB" + "__A" * 3000: value[:10]})


# Variables in the file


@pytest.mark.parametrize(
    ("written", "environ", "read"),
    [
        ("${A}", {"A": "x"}, "x"),
        ("-${A}-${B}-", {"A": "x", "B": "y"}, "-x-y-"),
        ("${A:-d}", {}, "d"),
        ("${A:-d}", {"A": ""}, "d"),
        ("${A:-d}", {"A": "x"}, "x"),
        ("${A:-}", {}, ""),
        ("${A}", {"A": "${B}"}, "${B}"),
        ("$${A}", {"A": "x"}, "${A}"),
        ("$A $ 5$", {}, "$A $ 5$"),
    ],
)
def test_variables_are_filled_in(tmp_path: Path, written: str, environ: dict[str, str], read: str) -> None:
    settings = load(tmp_path, f'[[triggers]]\nname = "t"\nprompt = "{written}"', environ)
    assert settings.triggers[0].prompt == read


@pytest.mark.parametrize("written", ["${1A}", "${}", "${A", "${A:+x}", "${A-b}"])
def test_something_like_a_variable_is_refused(tmp_path: Path, written: str) -> None:
    text = f'[[triggers]]\nname = "t"\nprompt = "{written}"'
    assert errors(tmp_path, text, {"A": "x"}) == [
        "pizzabot.toml:3: triggers[0].prompt: holds a ${ that is no ${VARIABLE}; write $${ for a plain ${"
    ]


def test_a_digest_is_no_table_of_triggers(tmp_path: Path) -> None:
    assert errors(tmp_path, '[[triggers]]\nname = "t"\nkind = "digest"\ncron = "@daily"') == [
        "pizzabot.toml:3: triggers[0].kind: a digest is written in [[people]], as `digest`"
    ]


def test_an_unset_variable_is_named_with_file_line_and_key_and_said_once(tmp_path: Path) -> None:
    text = '[slack]\napp_token = "x"\nbot_token = "${SLACK_BOT_TOKEN}"'
    assert errors(tmp_path, text) == [
        "pizzabot.toml:3: slack.bot_token: the variable SLACK_BOT_TOKEN is not set; "
        "set it in the environment or in .env, or write ${SLACK_BOT_TOKEN:-default}"
    ]


@pytest.mark.parametrize(
    "text",
    [
        '[slack]\nenabled = false\nbot_token = "${NOPE}"',
        '[slack]\nenabled = "${SLACK:-no}"\nbot_token = "${NOPE}"',
        '[email]\nenabled = false\naddress = "${NOPE}"\n[email.imap]\nhost = "${NOPE}"\nport = "${NOPE}"',
        'model = "demo:offline"\n[models.openai]\napi_key = "${NOPE}"',
        '[models.anthropic]\napi_key = "${NOPE}"',
    ],
)
def test_what_is_out_of_use_demands_no_variables(tmp_path: Path, text: str) -> None:
    assert load(tmp_path, text).secrets() == frozenset()


@pytest.mark.parametrize(
    "text",
    [
        '[models.openai]\napi_key = "${NOPE}"',
        '[models.anthropic]\napi_key = "${NOPE}"\n[[triggers]]\nname = "t"\nmodel = "anthropic:x"',
        '[email]\nenabled = "${MAYBE:-on}"\naddress = "${NOPE}"',
        '[[people]]\nname = "Ada"\nrole = "owner"\nemails = ["${NOPE}"]',
        '[database]\nurl = "${NOPE}"',
    ],
)
def test_what_is_in_use_demands_its_variables(tmp_path: Path, text: str) -> None:
    assert any("the variable NOPE is not set" in line for line in errors(tmp_path, text))


def test_a_digest_that_is_no_schedule_is_named_with_its_cure(tmp_path: Path) -> None:
    text = '[[people]]\nname = "Ada"\nrole = "owner"\ndigest = "0 25 * * *"'
    assert errors(tmp_path, text) == [
        'pizzabot.toml:4: people[0].digest: "0 25 * * *" is no schedule: hour: "25" is out of range; '
        "write 0 to 23."
    ]


# .env


def test_the_env_file_of_the_home_is_read_and_never_overrides(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(
        b'\xef\xbb\xbf# comment\r\n\r\nA=1\r\nexport B = two words \r\nC="x # y\\n\\"z\\"" # why\r\n'
        b"D='$A \\n'\r\nE=\r\nF=a#b # c\r\nG=a=b\r\n"
    )
    environ = load_environment(tmp_path, {"A": "from outside", "Z": "z"})
    assert environ == {
        "A": "from outside",
        "Z": "z",
        "B": "two words",
        "C": 'x # y\n"z"',
        "D": "$A \\n",
        "E": "",
        "F": "a#b",
        "G": "a=b",
    }


def test_the_env_file_fills_variables_and_settings(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("TOKEN=xoxb-1\nPIZZABOT_WEB__PORT=9001\n")
    settings = load(tmp_path, '[slack]\nbot_token = "${TOKEN}"\napp_token = "x"')
    assert settings.web.port == 9001


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"A=1\nnonsense\n", 2),
        (b"A='open\n", 1),
        (b'\nA="open\n', 2),
        (b'A="x" y\n', 1),
        (b"1A=x\n", 1),
        (b"A B=x\n", 1),
        (b"A=1\nB=x\0y\n", 2),
        (b"A=1\n\nB=\xff\n", 3),
    ],
)
def test_a_wrong_line_of_the_env_file_is_named(tmp_path: Path, content: bytes, line: int) -> None:
    (tmp_path / ".env").write_bytes(content)
    with pytest.raises(SettingsError) as caught:
        load_settings(tmp_path, {})
    assert str(caught.value).startswith(f"{tmp_path}/.env:{line}: is not ")
    assert "x y" not in str(caught.value)


# A wrong file


def _mistakes() -> Iterator[tuple[str, str]]:
    """The blocks of the corpus file: text and expected line."""
    for block in (CORPUS / "mistakes.txt").read_text().split("====\n")[1:]:
        text, _, line = block.rpartition("\n-> ")
        yield text, line.rstrip("\n")


@pytest.mark.parametrize(("text", "line"), list(_mistakes()))
def test_one_mistake_gives_one_line_with_the_cure(tmp_path: Path, text: str, line: str) -> None:
    assert errors(tmp_path, text) == [f"pizzabot.toml:{line}"]


@pytest.mark.parametrize(
    "tool", ["ledger:pay", "mcp:ledger", "mcp:a:b*c", "mcp:*:pay", "builtin:nope", "*", ""]
)
def test_a_rule_for_something_that_is_no_tool_is_refused(tmp_path: Path, tool: str) -> None:
    [line] = errors(tmp_path, f'[[approvals.rules]]\ntool = "{tool}"')
    assert line.startswith("pizzabot.toml:2: approvals.rules[0].tool: ")


@pytest.mark.parametrize("tool", ["mcp:ledger:pay", "mcp:ledger:pay_*", "mcp:ledger:*", "builtin:eval"])
def test_a_rule_may_name_a_tool_a_family_or_a_server(tmp_path: Path, tool: str) -> None:
    assert load(tmp_path, f'[[approvals.rules]]\ntool = "{tool}"').approvals.rules[0].tool == tool


def test_a_member_cannot_be_made_approver_by_a_rule_alone(tmp_path: Path) -> None:
    text = (
        '[[people]]\nname = "Ada"\nrole = "owner"\n[[people]]\nname = "Cy"\nrole = "member"\n'
        '[[approvals.rules]]\ntool = "mcp:a:b"\napprovers = ["cy"]'
    )
    assert errors(tmp_path, text) == [
        'pizzabot.toml:9: approvals.rules[0].approvers[0]: cy has role member; give cy role = "approver"'
    ]


def test_two_people_share_no_name_address_or_slack_id(tmp_path: Path) -> None:
    text = (
        '[[people]]\nname = "Ada"\nrole = "owner"\nemails = ["a@b.c"]\nslack = "U0ADA"\n'
        '[[people]]\nname = "ADA"\nrole = "member"\nemails = ["x@y.z", "A@B.C"]\nslack = "U0ADA"\n'
    )
    assert errors(tmp_path, text) == [
        "pizzabot.toml:7: people[1].name: Ada has the same name; each belongs to one person",
        "pizzabot.toml:9: people[1].emails[1]: Ada has the same address; each belongs to one person",
        "pizzabot.toml:10: people[1].slack: Ada has the same Slack id; each belongs to one person",
    ]


def test_email_without_what_it_needs_names_all_of_it(tmp_path: Path) -> None:
    lines = errors(tmp_path, "[email]\n[email.caps]\nquestions_per_action = 1")
    assert [line.split(": ")[1] for line in lines] == ["email.address", "email", "email.smtp"]


def test_mail_without_encryption_is_for_this_machine_only(tmp_path: Path) -> None:
    text = '[email]\naddress = "p@e.c"\n[email.listen]\n[email.smtp]\nsecurity = "none"\nhost = "{}"'
    assert load(tmp_path, text.format("127.0.0.1")).email.enabled
    assert errors(tmp_path, text.format("mail.example.com")) == [
        'pizzabot.toml:5: email.smtp.security: "none" is for this machine only; write "tls" or "starttls"'
    ]


def test_a_refresh_token_is_never_sent_unencrypted(tmp_path: Path) -> None:
    text = (
        '[email]\naddress = "p@e.c"\n[email.listen]\n[email.smtp]\nhost = "h"\nusername = "u"\n'
        "[email.smtp.oauth]\n"
        'client_id = "c"\nrefresh_token = "r"\ntoken_url = "http://{}/token"'
    )
    assert load(tmp_path, text.format("127.0.0.1:8080")).email.enabled
    assert errors(tmp_path, text.format("login.example.com")) == [
        "pizzabot.toml:10: email.smtp.oauth.token_url: would send the refresh token unencrypted; "
        "write https:// instead of http://"
    ]


def test_all_mistakes_are_told_together_in_one_go(tmp_path: Path) -> None:
    text = 'modle = 1\n[web]\nport = -1\n[[people]]\nname = "A"\nrole = "x"\n[slack]\nbot_token = "${NOPE}"\n'
    lines = errors(tmp_path, text, {"PIZZABOT_LIMITS__RUN_USD": "free"})
    assert sorted(line.split(": ")[1] for line in lines) == [
        "PIZZABOT_LIMITS__RUN_USD",
        "modle",
        "people[0].role",
        "slack.bot_token",
        "web.port",
    ]


def test_no_error_shows_a_secret(tmp_path: Path) -> None:
    text = (
        '[slack]\nbot_token = ["xoxb-secret"]\n[models.openai]\napi_key = {x = "sk-secret"}\n'
        '[database]\nurl = "x://u:secret@h"'
    )
    assert not [line for line in errors(tmp_path, text) if "secret" in line]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('a = """\n[web]\nport = 1\n"""\n[web]\nbad = 1', 6),
        ("a = '''x'''\n[web]\nbad = 1", 3),
        ('x = [\n  "a", # ]\n  "[web]",\n]\n[web]\nbad = 1', 6),
        ("[web] # [x]\n\n  bad = 1", 3),
        ('[ "web" ]\nbad = 1', 2),
        ("web.bad = 1", 1),
        ("web = { bad = 1 }", 1),
        ("[limits]\n[web]\r\n'bad' = 1", 3),
    ],
)
def test_the_line_is_right_around_unusual_toml(tmp_path: Path, text: str, line: int) -> None:
    assert any(found.startswith(f"pizzabot.toml:{line}: web.bad: ") for found in errors(tmp_path, text))


def test_the_line_is_that_of_the_right_item_of_a_list_of_tables(tmp_path: Path) -> None:
    person = "[[people]]\nname = 'P{}'\nrole = 'owner'\n[people.notify]\naction = {}\n"
    text = person.format(0, []) + person.format(1, ["fax"])
    assert errors(tmp_path, text)[0].startswith("pizzabot.toml:10: people[1].notify.action[0]: ")


# Hostile files


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"model = \n", "1: is not valid TOML: invalid value"),
        (b"a = 1\na = 2\n", "2: is not valid TOML: cannot overwrite a value"),
        (b"model = 'a\0b'", "1: is not valid TOML: found invalid character '\\x00'"),
        (b'\nmodel = "a\\u0000b"', "2: model: holds a NUL character; remove it"),
        (b"model = 'x'\n\n# \xff\n", "3: is not UTF-8 text; save it as UTF-8"),
        (b"a" * 1_000_001, " is larger than 1 MB; this is not a settings file"),
        (b"x = " + b"[" * 100_000, " is nested more than 20 levels deep; no setting needs that"),
        (
            b"x = " + b"{a=" * 50 + b"1" + b"}" * 50,
            " is nested more than 20 levels deep; no setting needs that",
        ),
        (b"a." * 400_000 + b"a = 1", " is nested more than 20 levels deep; no setting needs that"),
        (b"x = [", "is not valid TOML: invalid value at the end of the file"),
    ],
)
def test_a_file_that_is_no_settings_file_is_refused_on_one_line(
    tmp_path: Path, content: bytes, line: str
) -> None:
    assert line in errors(tmp_path, content)[0]


@pytest.mark.parametrize(
    "text",
    [
        'model = "{}"',
        '[[people]]\nname = "{}"\nrole = "owner"',
        '[[people]]\nname = "A"\nrole = "{}"',
        '[[people]]\nname = "A"\nrole = "owner"\ntimezone = "{}"',
        '[approvals]\nreminder_after = "{}"',
        '[[approvals.rules]]\ntool = "{}"',
        '[web]\npublic_url = "{}"',
        '"{}" = 1',
        '[models."{}"]',
    ],
)
@pytest.mark.parametrize(
    "value",
    ["x" * 200_000, "a\\nb", "\\u202Eevil\\u001B[31m", "😀" * 150],
    ids=["long", "newline", "bidi", "emoji"],
)
def test_hostile_values_give_short_printable_lines(tmp_path: Path, text: str, value: str) -> None:
    errors(tmp_path, text.format(value))


ODD_VALUES = (
    *(
        "1",
        "-1",
        "1.5",
        "nan",
        "1e999",
        "9" * 400,
        "true",
        '""',
        '"x"',
        '"[1"',
        '"${X:-}"',
        "1979-05-27",
        "07:32:00",
    ),
    *("[]", "[[]]", "[1]", '["x"]', "{}", "{ a = 1 }", "[{}]"),
)


def _every_key() -> Iterator[str]:
    """Every key of the documented file, as a dotted path from the top, where that is TOML."""
    table = ""
    for line in CONTRACT.splitlines():
        if header := re.fullmatch(r"\[([^\[\]]+)\]", line):
            table = header[1] + "."
            yield header[1]
        elif line.startswith("[["):
            table = "-"
        elif (assignment := re.match(r"([a-z_]+) =", line)) and table != "-":
            yield table + assignment[1]
    yield from ("people", "triggers", "approvals.rules")


@pytest.mark.parametrize("key", list(_every_key()))
def test_no_value_of_any_key_escapes_as_another_error(tmp_path: Path, key: str) -> None:
    for value in ODD_VALUES:
        text = f"{key} = {value}"
        try:
            load(tmp_path, text)
        except SettingsError as error:
            lines_of(error, tmp_path)


@pytest.mark.parametrize("table", ["people", "triggers", "approvals.rules"])
def test_no_value_in_any_list_of_tables_escapes_as_another_error(tmp_path: Path, table: str) -> None:
    keys = {"people": "name role emails slack timezone notify digest quiet_hours"}
    keys["triggers"] = "name prompt cron timezone secret owner channels skills model budget_usd grace enabled"
    keys["approvals.rules"] = "tool ask decisions approvers quorum"
    for key in keys[table].split():
        for value in ODD_VALUES:
            text = f"[[{table}]]\n{key} = {value}"
            try:
                load(tmp_path, text)
            except SettingsError as error:
                lines_of(error, tmp_path)


def test_a_folder_in_the_place_of_the_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "pizzabot.toml").mkdir()
    with pytest.raises(SettingsError, match=r"pizzabot\.toml: cannot be read \(Is a directory\)"):
        load_settings(tmp_path, {})


# Single values


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("3s", 3), ("15m", 900), ("4h", 14_400), ("7d", 604_800), ("never", None)],
)
def test_durations(text: str, seconds: int | None) -> None:
    duration = parse_duration(text)
    assert (duration.total_seconds() if duration else None) == seconds


@pytest.mark.parametrize(
    "text", ["", "0s", "-1h", "4", "4H", " 4h", "4h ", "1.5h", "٣s", "9999999d", 4, True]
)
def test_what_is_no_duration(text: object) -> None:
    with pytest.raises(ValueError, match=r"is not a duration|is longer than a century"):
        parse_duration(text)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "[::1]", "localhost", "LOCALHOST"])
def test_loopback(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "", "localhost.example.com", "10.0.0.1", "127.0.0.1.example.com"]
)
def test_not_loopback(host: str) -> None:
    assert not is_loopback(host)


def test_the_documented_file_is_toml() -> None:
    assert tomllib.loads(CONTRACT)


def test_a_cap_that_this_version_does_not_know_how_to_keep_is_said() -> None:
    caps = EmailTable.model_validate({"caps": {"per_unverified_address_day": 1}})
    (line,) = not_acted_on(Settings(email=caps), {"email"})
    assert line.startswith("email.caps.per_unverified_address_day: not acted on yet")
    assert not_acted_on(Settings(email=EmailTable()), {"email"}) == []
