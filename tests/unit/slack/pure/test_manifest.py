"""Does the app ask for what it needs, no more, and does it answer only what is meant for it?"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pizzabot.adapters.slack.identity import NEEDED, SCOPES, Identity, is_ours, team_of
from pizzabot.adapters.slack.manifest import EVENTS, manifest

from pizzabot.settings import Settings

DOC = Path(__file__).parents[4] / "docs" / "slack.md"
# What Slack asks for to send an event (docs.slack.dev/reference/events).
SCOPE_OF = {
    "app_home_opened": None,
    "app_mention": "app_mentions:read",
    "app_uninstalled": None,
    "message.channels": "channels:history",
    "message.groups": "groups:history",
    "message.im": "im:history",
    "message.mpim": "mpim:history",
    "tokens_revoked": None,
    "assistant_thread_started": "assistant:write",
}


def _manifest(mode: str = "socket", url: str = "https://pizza.example/") -> dict[str, Any]:
    made: dict[str, Any] = manifest(
        Settings.model_validate({"slack": {"mode": mode}, "web": {"public_url": url}})
    )
    return made


@pytest.mark.parametrize("event", EVENTS)
def test_each_event_has_its_scope(event: str) -> None:
    assert SCOPE_OF[event] in (None, *SCOPES)


def test_the_manifest_is_json_and_asks_for_the_scopes_and_events_that_are_known() -> None:
    made = json.loads(json.dumps(_manifest()))
    assert made["oauth_config"]["scopes"] == {"bot": list(SCOPES)}
    assert made["settings"]["event_subscriptions"]["bot_events"] == list(EVENTS)
    assert "user" not in made["oauth_config"]["scopes"]


def test_over_a_socket_no_address_is_needed() -> None:
    made = _manifest()
    assert made["settings"]["socket_mode_enabled"] is True
    assert "request_url" not in json.dumps(made)
    assert "pizza.example" not in json.dumps(made)


def test_over_http_every_request_comes_to_one_address() -> None:
    made = _manifest("http")
    address = "https://pizza.example/slack/events"
    assert made["settings"]["socket_mode_enabled"] is False
    assert made["settings"]["event_subscriptions"]["request_url"] == address
    assert made["settings"]["interactivity"]["request_url"] == address
    assert [command["url"] for command in made["features"]["slash_commands"]] == [address]


def test_the_manifest_keeps_to_slacks_lengths() -> None:
    made = _manifest()
    assert len(made["display_information"]["name"]) <= 35
    assert len(made["display_information"]["description"]) <= 140
    assert len(made["features"]["bot_user"]["display_name"]) <= 80
    for shortcut in made["features"]["shortcuts"]:
        assert len(shortcut["name"]) <= 24
        assert len(shortcut["description"]) <= 150
    for command in made["features"]["slash_commands"]:
        assert re.fullmatch("/[a-z]{1,31}", command["command"])


def test_what_it_uses_has_its_scope() -> None:
    features = _manifest()["features"]
    for feature, scope in (("agent_view", "assistant:write"), ("slash_commands", "commands")):
        assert feature in features
        assert scope in SCOPES
    assert set(NEEDED) <= set(SCOPES)


def test_the_document_explains_each_scope_as_the_code_does() -> None:
    rows = re.findall(r"^\| `([a-z_]+:?[a-z]*)` \| (.+) \|$", DOC.read_text(), re.MULTILINE)
    assert dict(rows) == dict(SCOPES)
    assert [name for name, _ in rows] == sorted(SCOPES)


# -- who we are --------------------------------------------------------------------------------------------


def _identity(app_id: str | None = "A0APP", scopes: frozenset[str] = frozenset()) -> Identity:
    return Identity("T0TEAM", "U0BOT", "B0BOT", app_id, "Team", "https://t.slack.com/", scopes)


@pytest.mark.parametrize(
    ("payload", "team"),
    [
        ({"team_id": "T0TEAM"}, "T0TEAM"),
        ({"team": {"id": "T0TEAM"}}, "T0TEAM"),
        ({"team": "T0TEAM"}, "T0TEAM"),
        ({"team": None}, None),
        ({}, None),
    ],
)
def test_a_request_names_its_workspace(payload: dict[str, Any], team: str | None) -> None:
    assert team_of(payload) == team


@pytest.mark.parametrize(
    ("payload", "app_id", "ours"),
    [
        ({"team_id": "T0TEAM", "api_app_id": "A0APP"}, "A0APP", True),
        ({"team_id": "T0TEAM", "api_app_id": "A0APP"}, None, True),
        ({"team_id": "T0TEAM", "api_app_id": "A1APP"}, "A0APP", False),
        ({"team_id": "T1TEAM", "api_app_id": "A0APP"}, "A0APP", False),
        ({"team_id": "T0TEAM"}, "A0APP", False),
        ({"api_app_id": "A0APP"}, "A0APP", False),
        ({}, None, False),
    ],
)
def test_only_requests_for_this_app_in_this_workspace_are_ours(
    payload: dict[str, Any], app_id: str | None, ours: bool
) -> None:
    assert is_ours(payload, _identity(app_id)) == ours


def test_scopes_that_were_not_granted_are_missing_when_slack_says_which_were() -> None:
    assert _identity().missing == ()
    assert _identity(scopes=frozenset(SCOPES)).missing == ()
    granted = frozenset(SCOPES) - {"im:write", "commands"}
    assert _identity(scopes=granted).missing == ("commands", "im:write")
