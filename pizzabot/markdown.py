"""How does Markdown of an agent or a person become HTML that may stand in a page or a mail? `markup`.

The library only takes the text apart. What is written is written here, kind by kind, from a fixed list of
elements and attributes; a kind that is not in the list comes out as text. Nothing of a text reaches an
attribute but the destination of a link that `_DESTINATION` admits, the number a list starts at, and a
language's name.

A text that would take long (`_is_unwieldy`), or of which the library would leave out what is nested too
deeply, is shown as it is.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from html import escape
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, table
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markupsafe import Markup

from pizzabot.text import visible

# The work of taking a text apart grows with its marks and lines. These bounds keep the worst at half a
# second; no report that somebody reads comes near them.
_LONGEST = 100_000
_MOST_LINES = 5_000
_MOST_MARKS = 20_000
_MOST_CELLS = 20_000  # of one table: a row of one letter is filled up to the width of the head
_MOST_LINKED = 200_000  # characters of all destinations: a reference repeats its own as often as it is used
_LONGEST_LINK = 2_000
_DEEPEST = 20  # two for each level of a list

_LONGEST_CACHED = 20_000
_CACHED = 500  # ten pages of fifty messages
_CACHED_LONG = 32

_MARK = re.compile(r"[!#&()*+:<=>\[\\\]_`|~-]")

_IN_PATH = r"[\w.~:/?#\[\]@!$&'()*+,;=%-]*"
_HEADER = r"(?:subject|body)=[\w.~:/?@!$'()*+,;%-]*"
_URL = (
    # No name or password before the host: https://bank.example@elsewhere.example/ reads as something else.
    rf"https?://(?:[\w.-]+|\[[0-9a-f:.]+\])(?::[0-9]{{1,5}})?(?:[/?#]{_IN_PATH})?"
    # No further receivers: cc and bcc are not seen before the mail is open.
    rf"|mailto:[\w.!$'*+~-]+@[\w.-]+(?:\?{_HEADER}(?:&{_HEADER})?)?"
)
_WRITTEN = re.compile(_URL, re.IGNORECASE)
_DESTINATION = re.compile(_URL, re.IGNORECASE | re.ASCII)
_SCHEME_BEFORE = re.compile(r"(?<![a-z0-9.+-])(?:https?|mailto)$", re.IGNORECASE)
# A bare URL ends before brackets, quotes and the punctuation of other scripts.
_BARE = re.compile(r"""[^\s<>"`\\^{|}\[\]“”‘’«»…—–、。，；：！？（）「」『』【】《》]+""")
_AFTER_SENTENCE = "?!.,:;*_~'\""

_LOOKS_LIKE_URL = re.compile(
    r"://|\bwww\.|\bmailto:|[\w-]@[\w-]|[\w-][.。][^\W\d_][\w-]|\d\.\d+\.\d+\.\d", re.IGNORECASE
)
_BEGINS_SOMETHING = re.compile(r"[\n!&*:<\[\\\]_`~]")
_LANGUAGE = re.compile(r"[a-z0-9+#-]{1,40}")
_REL = 'rel="noopener noreferrer nofollow"'

_ELEMENTS = {
    "paragraph": "p",
    "blockquote": "blockquote",
    "bullet_list": "ul",
    "list_item": "li",
    "thead": "thead",
    "tbody": "tbody",
    "tr": "tr",
}
# A page has its own h1 and h2.
_HEADINGS = {"h1": "h3", "h2": "h4", "h3": "h5", "h4": "h6", "h5": "h6", "h6": "h6"}
_BLOCKS = {
    **{f"{kind}_open": f"<{tag}>" for kind, tag in _ELEMENTS.items()},
    **{f"{kind}_close": f"</{tag}>\n" for kind, tag in _ELEMENTS.items()},
    "ordered_list_close": "</ol>\n",
    "hr": "<hr>\n",
    # A region that can be focused scrolls by keyboard, and on a phone instead of the page.
    "table_open": '<div class="table" tabindex="0" role="region" aria-label="Table"><table>\n',
    "table_close": "</table></div>\n",
    "th_close": "</th>",
    "td_close": "</td>",
}
_INLINES = {
    "softbreak": "<br>\n",  # as written: people end lines where they want them to end
    "hardbreak": "<br>\n",
    "em_open": "<em>",
    "em_close": "</em>",
    "strong_open": "<strong>",
    "strong_close": "</strong>",
    "s_open": "<s>",
    "s_close": "</s>",
}
_BETWEEN = {"softbreak": " ", "hardbreak": " "}
_ALIGNED = {
    "text-align:left": ' class="left"',
    "text-align:center": ' class="center"',
    "text-align:right": ' class="right"',
}


class _Unwieldy(Exception):
    """This text is better shown as it is."""


def markup(text: str) -> Markup:
    """`text` as HTML that holds no script, no style, no id, no image and no link into our own pages."""
    text = str(text)  # no subclass that escapes in its own way
    return _cached(text) if len(text) <= _LONGEST_CACHED else _cached_long(text)


def plain(text: str) -> Markup:
    """`text` as it is: for what is too much to be taken apart."""
    return Markup(f'<pre class="plain">{escape(visible(str(text), body=True))}</pre>\n')


def blocks(text: str) -> Sequence[Token] | None:
    """`text` taken apart, for whoever writes something else than HTML; None when it is shown as it is.

    Every destination of a link is harmless or empty. Entities may have brought unseen characters in again.
    """
    text = visible(text, body=True)
    if _is_unwieldy(text):
        return None
    try:
        tokens = _PARSER.parse(text)
    except (_Unwieldy, RecursionError):
        return None
    return None if any(map(_is_too_deep, tokens)) or _linked(tokens) > _MOST_LINKED else tokens


def _markup(text: str) -> Markup:
    tokens = blocks(text)
    return plain(text) if tokens is None else Markup(_html(tokens))


_cached = lru_cache(maxsize=_CACHED)(_markup)
_cached_long = lru_cache(maxsize=_CACHED_LONG)(_markup)


def _is_unwieldy(text: str) -> bool:
    return (
        len(text) > _LONGEST
        or text.count("\n") > _MOST_LINES
        or (len(text) > _MOST_MARKS and sum(1 for _ in _MARK.finditer(text)) > _MOST_MARKS)
    )


def _is_too_deep(token: Token) -> bool:
    """Whether the library leaves out what stands in it."""
    return token.level >= _DEEPEST - 1 and token.type in ("blockquote_open", "list_item_open")


def _linked(tokens: Sequence[Token]) -> int:
    """How many characters all destinations have."""
    inner = (child.attrs for token in tokens for child in token.children or () if child.attrs)
    return sum(len(str(attrs.get("href") or attrs.get("src") or "")) for attrs in inner)


def _text(text: str) -> str:
    """Text for HTML. Entities may have brought unseen characters in again."""
    return escape(visible(text, body=True))


# -- taking apart ----------------------------------------------------------------------------------------


class _Parser(MarkdownIt):
    """CommonMark with tables and strikethrough, without raw HTML; only whole, harmless URLs are links."""

    def __init__(self) -> None:
        super().__init__("commonmark", {"html": False, "maxNesting": _DEEPEST})
        self.enable(["table", "strikethrough", "linkify"])
        self.disable(["html_block", "html_inline"])
        self.core.ruler.disable("linkify")
        self.inline.ruler.at("linkify", _bare_url)
        self.block.ruler.at("table", _table, {"alt": ["paragraph", "reference"]})
        self.inline.terminator_re = _BEGINS_SOMETHING  # of the library's own, half begin nothing here
        self.parse("a")  # puts the rules in order; two threads that did it at once would see half of them

    def normalizeLink(self, url: str) -> str:
        return url if _DESTINATION.fullmatch(url) else super().normalizeLink(url)

    def validateLink(self, url: str) -> bool:
        return _is_allowed(url)


def _is_allowed(url: str) -> bool:
    return len(url) <= _LONGEST_LINK and _DESTINATION.fullmatch(url) is not None


def _bare_url(state: StateInline, silent: bool) -> bool:
    """An explicit http(s) or mailto URL in running text.

    The library's own rule does this too, in time that grows with the square of the text.
    """
    colon, source = state.pos, state.src
    if source[colon] != ":" or state.linkLevel:
        return False
    before = _SCHEME_BEFORE.search(source, max(0, colon - 7), colon)
    if before is None or not state.pending.endswith(before[0]):
        return False
    start = before.start()
    rest = _BARE.match(source, start, min(state.posMax, start + _LONGEST_LINK + 1))
    url = _without_sentence(rest[0]) if rest else ""
    if not _WRITTEN.fullmatch(url):
        return False  # quickly: there may be thousands
    destination = state.md.normalizeLink(url)
    if not state.md.validateLink(destination):
        return False
    if not silent:
        state.pending = state.pending[: start - colon]
        state.push("link_open", "a", 1).attrs = {"href": destination}
        state.push("text", "", 0).content = url
        state.push("link_close", "a", -1)
    state.pos = start + len(url)
    return True


def _without_sentence(url: str) -> str:
    """`url` without the punctuation of the sentence around it; a bracket that opened inside stays."""
    surplus = url.count(")") - url.count("(")
    end = len(url)
    while end:
        if url[end - 1] == ")" and surplus > 0:
            surplus -= 1
        elif url[end - 1] not in _AFTER_SENTENCE:
            break
        end -= 1
    return url[:end]


def _table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    if not silent and start + 1 < end and table(state, start, end, True):
        columns = state.src.count("|", state.bMarks[start + 1], state.eMarks[start + 1]) + 1
        following = range(start + 2, min(end, start + 2 + _MOST_CELLS // columns))
        if start + 2 + _MOST_CELLS // columns < end and not any(state.isEmpty(line) for line in following):
            raise _Unwieldy
    return table(state, start, end, silent)


# -- writing ---------------------------------------------------------------------------------------------


def _html(tokens: Sequence[Token]) -> str:
    out: list[str] = []
    for token in tokens:
        kind = token.type
        if token.hidden:
            continue
        if kind == "inline":
            _inline(token.children or (), out)
        elif kind in _BLOCKS:
            out.append(_BLOCKS[kind])
        elif kind == "heading_open":
            out.append(f"<{_HEADINGS[token.tag]}>")
        elif kind == "heading_close":
            out.append(f"</{_HEADINGS[token.tag]}>\n")
        elif kind in ("th_open", "td_open"):
            out.append(f"<{token.tag}{_ALIGNED.get(str(token.attrs.get('style')), '')}>")
        elif kind == "ordered_list_open":
            out.append(f'<ol start="{int(token.attrs["start"])}">' if "start" in token.attrs else "<ol>")
        elif kind in ("fence", "code_block"):
            out.append(f"<pre><code{_language(token.info)}>{_text(token.content)}</code></pre>\n")
        else:
            out.append(_text(token.content))
    return "".join(out)


def _language(info: str) -> str:
    name = info.split(maxsplit=1)[0].lower() if info.strip() else ""
    return f' class="language-{name}"' if _LANGUAGE.fullmatch(name) else ""


def _inline(tokens: Sequence[Token], out: list[str]) -> None:
    """Write what stands in a line."""
    href = ""  # of the link that is open: links do not nest
    start, shown = 0, ""
    for token in tokens:
        kind = token.type
        if kind == "text":
            out.append(_text(token.content))
            shown += token.content if href else ""
        elif kind in _INLINES:
            out.append(_INLINES[kind])
            shown += _BETWEEN.get(kind, "")
        elif kind == "code_inline":
            out.append(f"<code>{_text(token.content)}</code>")
            shown += token.content if href else ""
        elif kind == "link_open":
            href, start, shown = _allowed(token.attrs.get("href")), len(out), ""
        elif kind == "link_close":
            out[start:] = [_link(href, "".join(out[start:]), shown)]
            href = ""
        elif kind == "image":
            # An image would tell a stranger who reads this, and when.
            label = f"image: {_alt(token.children or ())}".rstrip(" :")
            target = _allowed(token.attrs.get("src"))
            out.append(_text(label) if href else _link(target, _text(label), label))
            shown += label if href else ""
        else:
            out.append(_text(token.content))


def _alt(tokens: Sequence[Token]) -> str:
    parts = (
        _alt(token.children or ()) if token.type == "image" else _BETWEEN.get(token.type, token.content)
        for token in tokens
    )
    return "".join(parts)


def _allowed(url: object) -> str:
    # Asked again here: an empty destination is never asked about by the library.
    return url if isinstance(url, str) and _is_allowed(url) else ""


def _link(href: str, inner: str, shown: str) -> str:
    """A link; where its text claims another destination than it has, or is empty, that one is told."""
    if not href:
        return inner
    destination = escape(href)
    if not _flattened(shown).strip():
        inner, told = inner + destination, ""
    else:
        told = "" if _is_honest(shown, href) else f" ({destination})"
    return f'<a href="{destination}" {_REL}>{inner}</a>{told}'


def _is_honest(shown: str, href: str) -> bool:
    """Whether everything in a link's text that looks like a URL, a host or an address leads where it says.

    It may say less than the whole: the host, or the beginning of the path.
    """
    claims = [word for word in _flattened(shown).split() if _LOOKS_LIKE_URL.search(word)]
    if not claims:
        return True
    scheme = href[: href.index(":") + 1].lower()
    targets = [_core(href, scheme), _core(unquote(href), scheme)]
    return all(
        any(_begins(target, _core(said, scheme)) for target in targets for said in (claim, _bared(claim)))
        for claim in claims
    )


def _flattened(text: str) -> str:
    """Without what is not seen between letters, and with one way to write each letter."""
    if text.isascii():
        return text
    kept = (c for c in text if c in " \n\t" or unicodedata.category(c) not in ("Zs", "Cf", "Mn", "Me"))
    return unicodedata.normalize("NFKC", "".join(kept))


def _bared(word: str) -> str:
    return word.strip("\"'()<>[]{}.,;:!?*…")


def _core(url: str, scheme: str) -> str:
    return url.lower().removeprefix(scheme).removeprefix("//").removeprefix("www.").rstrip("/")


def _begins(target: str, said: str) -> bool:
    end = len(said)
    return end > 0 and target.startswith(said) and target[end : end + 1] in ("", "/", "?", "#", ":")


_PARSER = _Parser()
