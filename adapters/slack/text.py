"""How does text of people become text for the agent, and how does other people's text stay harmless? Pure.

Slack's own marks stand in angle brackets: `<@U0ADA>`, `<#C0GENERAL|general>`, `<!here>`, `<https://…|label>`;
`&`, `<` and `>` arrive and leave escaped (docs.slack.dev/messaging/formatting-message-text).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token

_TOKEN = re.compile(r"<([^<>\n]+)>")
_MENTION = re.compile(r"<@([UW][A-Z0-9]+)(?:\|[^<>]*)?>")
# What Slack would take for a mention, a date or a link under another name, wherever it stands.
_SLACK_MARK = re.compile(
    r"<(?=[@#][A-Z0-9]{3,}[|>]|!(?:here|channel|everyone|subteam|date)\b|(?i:[a-z][a-z0-9+.-]*):[^<>\n]*\|)"
)
_WORD_JOINER = "\u2060"
_LINK = re.compile(
    r"(!?)\[([^\[\]\n]*)\]\(\s*<?([^\s<>()]+(?:\([^\s()]*\)[^\s<>()]*)*)>?"
    r"(?:\s+(?:\"[^\"\n]*\"|'[^'\n]*'|\([^()\n]*\)))?\s*\)"
)
# Also inside of quotes and lists.
_DEFINITION = re.compile(r"^((?:[ \t>*+-]|\d{1,9}[.)][ \t])*)\[(?=[^\]\n]+\]:)", re.MULTILINE)
_BRACKET = re.compile(r"(?<!\\)((?:\\\\)*)\[")  # one that is not escaped
_JOINERS = re.compile("[\u200c\u200d\u2060\ufe0e\ufe0f]")  # shown as nothing
_RUN = re.compile(r"[\w.@-]+")  # holds a host, an address or a word
_LIKE_A_HOST = re.compile(r"[\w.-]+\.[^\W\d_]{2,}")
_ENTITIES = {"&amp;": "&", "&lt;": "<", "&gt;": ">"}


def mentioned(text: str) -> set[str]:
    """The ids of the users that a person's text mentions."""
    return set(_MENTION.findall(text))


def readable(text: str, name_of: Callable[[str], str], *, without: str | None = None) -> str:
    """A person's text as it reads in Slack; the mention of `without` (ourselves) in front is left out."""
    if without is not None:
        text = re.sub(rf"^\s*<@{re.escape(without)}(?:\|[^<>]*)?>[\s,:]*", "", text)
    said = _TOKEN.sub(lambda mark: _said(mark[1], name_of), text)
    return re.sub("&(?:amp|lt|gt);", lambda entity: _ENTITIES[entity[0]], said)


def _said(mark: str, name_of: Callable[[str], str]) -> str:
    body, _, label = mark.partition("|")
    if body.startswith("@"):
        return f"@{label or name_of(body[1:])}"
    if body.startswith("#"):
        return f"#{label or body[1:]}"
    if body.startswith("!"):
        if body.startswith("!date^"):
            return label or body
        return "@" + (label.removeprefix("@") or body[1:].partition("^")[0])
    return f"{label} ({body})" if label and label != body and f"mailto:{label}" != body else label or body


def escaped(text: str) -> str:
    """Text that Slack shows as it stands: it mentions nobody and links nowhere under another name."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def harmless(markdown: str) -> str:
    """An answer's Markdown that mentions nobody and whose links lead where they say."""
    made = _SLACK_MARK.sub(f"<{_WORD_JOINER}", _DEFINITION.sub(r"\1\\[", _LINK.sub(_honest, markdown)))
    # What is written so that the patterns miss it, a reader of Markdown finds: then nothing is a link.
    return made if _links_are_honest(made) else _BRACKET.sub(r"\1\\[", made)


def no_marks(text: str) -> str:
    """Text whose Slack marks are broken and that is otherwise as it was: for code."""
    return _SLACK_MARK.sub(f"<{_WORD_JOINER}", text)


def _honest(link: re.Match[str]) -> str:
    """A link, spelt out where its label names another host than the one it leads to."""
    label, target = link[2], link[3]
    return link[0] if _names_only(label, _host_of(target)) else f"{label} ({target})"


def _links_are_honest(markdown: str) -> bool:
    return "]" not in markdown or all(
        _is_honest(token.children or ()) for token in parser().parse(markdown) if token.type == "inline"
    )


def _is_honest(inline: Sequence[Token]) -> bool:
    target: str | None = None
    label: list[str] = []
    for token in inline:
        if token.type == "link_open":
            target, label = str(token.attrGet("href") or ""), []
        elif token.type == "link_close" and target is not None:
            if not _names_only("".join(label), _host_of(target)):
                return False
            target = None
        elif token.type == "image" and not _names_only(token.content, _host_of(str(token.attrGet("src")))):
            return False
        else:
            label.append(token.content)
    return True


@cache
def parser() -> MarkdownIt:
    """A reader of Markdown with tables."""
    return MarkdownIt("commonmark").enable("table")


def _names_only(label: str, host: str) -> bool:
    """Whether each host that a label names is this one."""
    runs = (run.rpartition("@")[2].strip(".") for run in _RUN.findall(_JOINERS.sub("", label)))
    return all(_host(run) == _host(host) for run in runs if _LIKE_A_HOST.fullmatch(run))


def _host_of(url: str) -> str:
    try:
        parts = urlsplit(url)
        return parts.hostname or (parts.path.rpartition("@")[2] if parts.scheme == "mailto" else "")
    except ValueError:
        return ""


def _host(name: str) -> str:
    name = name.casefold().removeprefix("www.")
    try:
        return name.encode("idna").decode()
    except UnicodeError:
        return name
