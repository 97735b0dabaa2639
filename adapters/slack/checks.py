"""Does `[slack]` work? Asked of Slack itself, for `pizzabot doctor`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from pizzabot.errors import DeliveryFailed
from pizzabot.settings import Settings, is_loopback

from .channel import identify, secret
from .client import Denied, NotLetIn, Slack
from .identity import NEEDED, Identity

# What doctor takes: level (ok, warning or error), what was found, the cure.
Found = tuple[str, str, str]


async def check(settings: Settings, _folder: Path) -> Sequence[Found]:
    """Whether the tokens are valid, have their scopes and open a socket, and whether it knows the people."""
    import aiohttp
    from slack_sdk.web.async_client import AsyncWebClient

    table = settings.slack
    if not table.enabled:
        return ()
    async with aiohttp.ClientSession() as session:
        web = AsyncWebClient(
            token=secret(table.bot_token), base_url=table.api_url, session=session, retry_handlers=[]
        )
        api = Slack(web, session)
        try:
            identity = await identify(api)
        except DeliveryFailed as error:
            return [("error", str(error), _cure(error, "slack.bot_token, the one of *Install App*,"))]
        found: list[Found] = [("ok", f"knows us as {identity.bot_user} in {identity.team}", "")]
        found += _scopes(identity)
        if table.mode == "socket":
            found.append(await _socket(api, secret(table.app_token)))
        return [*found, *await _people(api, settings, identity), *_links(settings)]


def _cure(error: DeliveryFailed, token: str) -> str:
    if isinstance(error, NotLetIn | Denied):
        return f"copy {token} again into .env, then start the server again"
    return "check the network, a proxy, and slack.api_url or SLACK_API_URL"


def _scopes(identity: Identity) -> list[Found]:
    if not identity.missing:
        return []
    level = "error" if set(identity.missing) & set(NEEDED) else "warning"
    cure = "add them to the app, install it again, then start the server again"
    return [(level, f"the bot lacks the scopes {', '.join(identity.missing)}", cure)]


async def _socket(api: Slack, app_token: str) -> Found:
    try:
        await api.call("apps.connections.open", token=app_token)
    except DeliveryFailed as error:
        cure = _cure(error, "slack.app_token, an app-level token with connections:write,")
        return ("error", f"Socket Mode does not open: {error}", cure)
    return ("ok", "Socket Mode opens", "")


async def _people(api: Slack, settings: Settings, identity: Identity) -> list[Found]:
    known = [(person.name, person.slack) for person in settings.people if person.slack]
    if not known:
        cure = 'set slack = "U…", the member id from your profile, for each of [[people]]'
        return [("error", "knows nobody: no person has a Slack member id", cure)]
    found: list[Found] = []
    for name, user in known:
        try:
            profile = (await api.call("users.info", user=user))["user"]
        except Denied:
            cure = "copy the member id from the profile in Slack again"
            found.append(("error", f"{name}: {user} is nobody in {identity.team}", cure))
        except DeliveryFailed as error:
            return [*found, ("warning", f"people could not be looked up: {error}", "see above")]
        else:
            if profile.get("deleted"):
                cure = f"remove slack of {name}, or have the account reactivated"
                found.append(("error", f"{name}: {user} is deactivated", cure))
    return found or [("ok", f"knows {', '.join(name for name, _ in known)}", "")]


def _links(settings: Settings) -> list[Found]:
    if not is_loopback(urlsplit(settings.web.public_url).hostname or ""):
        return []
    cure = "set web.public_url to an address that people reach, see docs/web.md"
    return [("ok", f"links to the web view work on this machine only ({settings.web.public_url})", cure)]
