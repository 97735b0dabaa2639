"""Who are we in which workspace, and may we do what we need? Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# What each scope of the bot is for; docs/slack.md and the manifest are made of this.
SCOPES: Mapping[str, str] = {
    "app_mentions:read": "see when somebody mentions the bot in a channel",
    "assistant:write": "show what it is doing, a title and suggested prompts in its own view",
    "channels:history": "read replies in threads of public channels it is part of",
    "chat:write": "answer, show cards and repaint them",
    "commands": "/pizza and the message shortcut",
    "files:read": "fetch the files that people send to it",
    "files:write": "send a long answer as a file",
    "groups:history": "read replies in threads of private channels it is part of",
    "im:history": "read what people write to it",
    "im:write": "open a direct message to ask for a decision",
    "mpim:history": "read replies in threads of group messages it is part of",
    "users:read": "know the names of people who are mentioned, and which app it is itself",
}
# Without these nothing works; without one of the others a part of it does not.
NEEDED = ("chat:write", "im:history", "im:write")


@dataclass(frozen=True, slots=True)
class Identity:
    """The app as the workspace knows it. `app_id` is None where the scope to ask for it is missing."""

    team_id: str
    bot_user: str
    bot_id: str
    app_id: str | None
    team: str
    url: str  # of the workspace
    scopes: frozenset[str]

    @property
    def missing(self) -> tuple[str, ...]:
        """The scopes that were not granted; none when Slack did not say which were."""
        return tuple(scope for scope in SCOPES if scope not in self.scopes) if self.scopes else ()


def teams_of(payload: Mapping[str, Any]) -> set[str]:
    """The workspaces that a request is for: in a channel that two share, it may name the other one first."""
    if not payload.get("is_ext_shared_channel"):
        return {team} if (team := team_of(payload)) else set()
    granted = payload.get("authorizations")
    others = [a.get("team_id") for a in granted if isinstance(a, dict)] if isinstance(granted, list) else []
    return {str(team) for team in (team_of(payload), payload.get("context_team_id"), *others) if team}


def team_of(payload: Mapping[str, Any]) -> str | None:
    """The workspace that a request comes from: events and commands name it, interactions do in `team`."""
    team = payload.get("team_id") or _id(payload.get("team"))
    return str(team) if team else None


def is_ours(payload: Mapping[str, Any], identity: Identity) -> bool:
    """Whether a request is for this app in this workspace. What names neither is not."""
    app = payload.get("api_app_id")
    right_app = identity.app_id is None or app == identity.app_id
    return identity.team_id in teams_of(payload) and right_app


def _id(value: Any) -> Any:
    return value.get("id") if isinstance(value, dict) else value
