"""How does text of people become text for the agent, and how does other people's text stay harmless? Pure.

Slack's own marks stand in angle brackets: `<@U0ADA>`, `<#C0GENERAL|general>`, `<!here>`, `<https://…|label>`;
`&`, `<` and `>` arrive and leave escaped (docs.slack.dev/messaging/formatting-message-text).
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from urllib.parse import urlsplit

_TOKEN = re.compile(r"<([^<>\n]+)>")
_MENTION = re.compile(r"<@([UW][A-Z0-9]+)(?:\|[^<>]*)?>")
# What Slack would take for a mention, a date or a link under another name, wherever it stands.
_SLACK_MARK = re.compile(
    r"<(?=[@#][A-Z0-9]{3,}[|>]|!(?:here|channel|everyone|subteam|date)\b|[a-z][a-z0-9+.-]*:[^<>\n]*\|)"
)
_WORD_JOINER = "\u2060"
_LINK = re.compile(
    r"(!?)\[([^\]\n]*)\]\(\s*<?([^\s<>()]+(?:\([^\s()]*\)[^\s<>()]*)*)>?(?:\s+[\"'(][^\n]*?[\"')])?\s*\)"
)
_DEFINITION = re.compile(r"^( {0,3})\[(?=[^\]\n]+\]:)", re.MULTILINE)
_LIKE_A_HOST = re.compile(r"(?:[a-z][a-z0-9+.-]*://)?((?:[\w-]+\.)+[a-z]{2,})(?![\w.-]*@)", re.IGNORECASE)


def mentioned(text: str) -> set[str]:
    """The ids of the users that a person's text mentions."""
    return set(_MENTION.findall(text))


def readable(text: str, name_of: Callable[[str], str], *, without: str | None = None) -> str:
    """A person's text as it reads in Slack; the mention of `without` (ourselves) in front is left out."""
    if without is not None:
        text = re.sub(rf"^\s*<@{re.escape(without)}(?:\|[^<>]*)?>[\s,:]*", "", text)
    return html.unescape(_TOKEN.sub(lambda mark: _said(mark[1], name_of), text))


def _said(mark: str, name_of: Callable[[str], str]) -> str:
    body, _, label = mark.partition("|")
    if body.startswith("@"):
        return f"@{label or name_of(body[1:])}"
    if body.startswith("#"):
        return f"#{label or body[1:]}"
    if body.startswith("!"):
        if body.startswith("!date^"):
            return label
        return "@" + (label.removeprefix("@") or body[1:].partition("^")[0])
    return f"{label} ({body})" if label and label != body and f"mailto:{label}" != body else label or body


def escaped(text: str) -> str:
    """Text that Slack shows as it stands: it mentions nobody and links nowhere under another name."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def harmless(markdown: str) -> str:
    """An answer's Markdown that mentions nobody and whose links lead where they say."""
    return _SLACK_MARK.sub(f"<{_WORD_JOINER}", _DEFINITION.sub(r"\1\\[", _LINK.sub(_honest, markdown)))


def no_marks(text: str) -> str:
    """Text whose Slack marks are broken and that is otherwise as it was: for code."""
    return _SLACK_MARK.sub(f"<{_WORD_JOINER}", text)


def _honest(link: re.Match[str]) -> str:
    """A link, spelt out where its label names another host than the one it leads to."""
    label, target = link[2], link[3]
    claimed = _LIKE_A_HOST.search(label)
    if claimed is None or _host(claimed[1]) == _host(_host_of(target)):
        return link[0]
    return f"{label} ({target})"


def _host_of(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _host(name: str) -> str:
    return name.casefold().removeprefix("www.")
