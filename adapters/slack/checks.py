"""Does `[slack]` work? Asked of Slack itself, for `pizzabot doctor`."""

from __future__ import annotations

from collections.abc import Sequence

from pizzabot.errors import DeliveryFailed
from pizzabot.settings import Settings

from .channel import identify, secret
from .client import Slack
from .identity import NEEDED

# What doctor takes: level (ok, warning or error), what was found, the cure.
Found = tuple[str, str, str]


async def check(settings: Settings) -> Sequence[Found]:
    """Whether the tokens are valid, have the scopes that are needed, and open a socket."""
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
            return [("error", str(error), "correct slack.bot_token; see docs/slack.md")]
        found: list[Found] = [("ok", f"is reached as {identity.bot_user} in {identity.team}", "")]
        if identity.missing:
            missing = ", ".join(identity.missing)
            level = "error" if set(identity.missing) & set(NEEDED) else "warning"
            found.append((level, f"the bot lacks the scopes {missing}", "add them and install the app again"))
        if table.mode == "socket":
            try:
                await api.call("apps.connections.open", token=secret(table.app_token))
            except DeliveryFailed as error:
                cure = "make an app-level token with connections:write and set slack.app_token"
                found.append(("error", f"Socket Mode does not open: {error}", cure))
            else:
                found.append(("ok", "Socket Mode opens", ""))
        if not any(person.slack for person in settings.people):
            cure = 'set slack = "U…", the member id from your profile, for each of [[people]]'
            found.append(("error", "knows nobody: no person has a Slack member id", cure))
        return found
