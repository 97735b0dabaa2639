"""A fake Slack in this process: the Web API, Socket Mode or signed HTTP, and the people who use it.

    async with FakeSlack(people={"U0ADA": "ada"}) as slack:
        start_the_app(slack.url, slack.bot_token, slack.app_token)
        await slack.connected()
        ts = await slack.says("U0ADA", "order lunch")
        answer = await slack.until(lambda: slack.messages(slack.dm("U0ADA"), ts)[1:])
        await slack.click("U0ADA", answer[0], "Approve")
        assert slack.refused == []

Texts are in Slack's own notation, as an app receives them: `<@U0ADA>`, `&amp;`. Every call the service would
refuse stands in `refused`; nothing is ever sent twice unless a test asks for it.
"""

from tests.fakes.slack.blocks import CannotDo
from tests.fakes.slack.server import FakeSlack
from tests.fakes.slack.workspace import Call, Delivery, Fault, File, Message

__all__ = ["Call", "CannotDo", "Delivery", "FakeSlack", "Fault", "File", "Message"]
