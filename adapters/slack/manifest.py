"""What has Slack to know about the app? The manifest that is pasted when the app is made. Pure.

See docs.slack.dev/reference/app-manifest.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from pizzabot.errors import ConfigError
from pizzabot.settings import Settings, is_loopback

from .commands import SHORTCUT
from .door import PATH
from .identity import SCOPES

EVENTS = (
    "app_home_opened",
    "app_mention",
    "app_uninstalled",
    "assistant_thread_started",
    "message.channels",
    "message.groups",
    "message.im",
    "message.mpim",
    "tokens_revoked",
)


def manifest(settings: Settings) -> dict[str, Any]:
    """The app's manifest for these settings: Socket Mode, or the address of this server.

    Raises ConfigError when Slack cannot reach that address.
    """
    socket = settings.slack.mode == "socket"
    if not socket and is_loopback(urlsplit(settings.web.public_url).hostname or ""):
        problem = 'Slack cannot reach this machine under it; set the address that it can, or mode = "socket"'
        raise ConfigError("pizzabot.toml", problem, key="web.public_url")
    address = {} if socket else {"request_url": settings.web.public_url.rstrip("/") + PATH}
    command = {"url": address["request_url"]} if address else {}
    return {
        "_metadata": {"major_version": 2},
        "display_information": {
            "name": "Pizza Bot",
            "description": "Hand work over, walk away, decide what needs a decision.",
            "background_color": "#8b2e16",
        },
        "features": {
            "app_home": {
                "home_tab_enabled": True,
                "messages_tab_enabled": True,
                "messages_tab_read_only_enabled": False,
            },
            "bot_user": {"display_name": "Pizza Bot", "always_online": True},
            "agent_view": {"agent_description": "An inbox for background agents: it works while you do not."},
            "shortcuts": [
                {
                    "name": "Send to Pizza Bot",
                    "type": "message",
                    "callback_id": SHORTCUT,
                    "description": "Hand this message over and get the result in a direct message",
                }
            ],
            "slash_commands": [
                {
                    "command": "/pizza",
                    "description": "Hand over work, list what waits, stop",
                    "usage_hint": "[inbox|unread|action|stop|stop all|resume|help|TEXT]",
                    "should_escape": True,
                    **command,
                }
            ],
        },
        "oauth_config": {"scopes": {"bot": list(SCOPES)}},
        "settings": {
            "event_subscriptions": {**address, "bot_events": list(EVENTS)},
            "interactivity": {"is_enabled": True, **address},
            "org_deploy_enabled": False,
            "socket_mode_enabled": socket,
            "token_rotation_enabled": False,
        },
    }
