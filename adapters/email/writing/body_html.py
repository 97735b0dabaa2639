"""How does a mail look where HTML is shown? Pure: templates, with Markdown dressed for mail clients.

Every style is inline: Outlook ignores parts of a style sheet, and clients that quote a mail drop the whole of
it. The sheet in the head holds only what cannot be inline: the dark theme and the narrow screen. It needs
`!important` to win, so its classes name roles (`ink`, `soft`, `line`), not looks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from jinja2 import Environment
from markupsafe import Markup, escape

from pizzabot.markdown import markup, plain
from pizzabot.rendering import html_templates

from .imitations import imitates

_MONO = "font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:13px"
_CELL = "padding:7px 12px 7px 0;border-bottom:1px solid #ddd7cf;vertical-align:top;text-align:left"
_BLOCK = (
    f"margin:0 0 16px;padding:12px 14px;background:#f1eee9;border-radius:8px;{_MONO};line-height:1.5;"
    "white-space:pre-wrap;overflow-wrap:anywhere;word-break:break-word"
)
# The elements that `pizzabot.markdown` writes: what a mail sets beside them, and the roles of their colours.
_DRESS: Mapping[str, tuple[str, str]] = {
    "p": ("", "margin:0 0 14px"),
    "h3": ("", "margin:26px 0 10px;font-size:20px;line-height:1.3;font-weight:600"),
    "h4": ("", "margin:24px 0 8px;font-size:17px;line-height:1.35;font-weight:600"),
    "h5": ("", "margin:20px 0 6px;font-size:15px;line-height:1.4;font-weight:600"),
    "h6": ("", "margin:18px 0 6px;font-size:15px;line-height:1.4;font-weight:600"),
    "ul": ("", "margin:0 0 14px;padding:0 0 0 22px"),
    "ol": ("", "margin:0 0 14px;padding:0 0 0 26px"),
    "li": ("", "margin:0 0 5px"),
    "blockquote": (
        "line soft",
        "margin:0 0 14px;padding:2px 0 2px 14px;border-left:3px solid #ddd7cf;color:#625b54",
    ),
    "pre": ("code", _BLOCK),
    "code": ("code", f"{_MONO};background:#f1eee9;padding:1px 4px;border-radius:4px"),
    "hr": ("line", "margin:22px 0;border:0;border-top:1px solid #ddd7cf"),
    "div": ("", "margin:0 0 16px;overflow-x:auto"),
    # Words stay whole: what is too wide for a phone scrolls by itself.
    "table": (
        "",
        "border-collapse:collapse;font-size:14px;line-height:1.45;overflow-wrap:normal;word-break:normal",
    ),
    "th": ("line soft", f"{_CELL};color:#625b54;font-weight:600"),
    "td": ("line", _CELL),
    "a": ("link", "color:#8f2f12;text-decoration:underline"),
}
_DIRECTED = frozenset({"p", "h3", "h4", "h5", "h6", "ul", "ol", "blockquote", "td", "th"})
_CODE_IN_PRE = f"{_MONO};background:transparent;padding:0"
_OPENING = re.compile(r'<(pre><code|[a-z][a-z0-9]*)((?: [a-z-]+="[^"]*")*)>')
_DROPPED = re.compile(r' class="[^"]*"')
_SIDE = re.compile(r'class="(left|center|right)"')
_SPACES = re.compile("^ | (?= )", re.MULTILINE)


def dressed(markdown: str) -> Markup:
    """`markdown` as harmless HTML that looks the same in every client."""
    html = markup(markdown)
    if imitates(html.striptags()):
        html = plain(markdown)  # its marks of Markdown had taken a marker of ours apart
    return Markup(_OPENING.sub(_dressed, str(html)))


def _dressed(opening: re.Match[str]) -> str:
    tag, attributes = opening[1], opening[2]
    if tag == "pre><code":
        return f"{_tag('pre', '', _DRESS['pre'])}{_tag('code', '', ('', _CODE_IN_PRE))}"
    roles, style = _DRESS.get(tag, ("", ""))
    if side := _SIDE.search(attributes):
        style = style.replace("text-align:left", f"text-align:{side[1]}")
    kept = _DROPPED.sub("", attributes) + (' dir="auto"' if tag in _DIRECTED else "")
    return _tag(tag, kept, (roles, style))


def _tag(tag: str, attributes: str, dress: tuple[str, str]) -> str:
    roles, style = dress
    named = f' class="{roles}"' if roles else ""
    styled = f' style="{style}"' if style else ""
    return f"<{tag}{attributes}{named}{styled}>"


def lines(text: str) -> Markup:
    """`text` with its line breaks and spaces, also where `white-space` is not known (Outlook)."""
    return Markup(_SPACES.sub("&nbsp;", str(escape(text))).replace("\n", "<br>"))


def page(template: str, **values: Any) -> str:
    """The HTML of a mail: a template of `templates/email/`, filled in."""
    return _templates().get_template(f"email/{template}.html.j2").render(**values)


@cache
def _templates() -> Environment:
    return html_templates({"dressed": dressed, "lines": lines})
