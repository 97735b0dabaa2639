"""What does a mail's HTML say, line by line, and what of it did the program put there? Pure.

    HTML -> tree (lxml) -> lines as a person sees them, each own, quoted or of the signature

Programs mark what they quote by classes, ids and elements, which no language changes. What cannot be seen is
left out; what is struck out is marked `~~so~~`, for it is no longer meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum

from lxml import etree

from . import reply_phrases

MOST = 512_000  # characters of HTML that are read
_SKIPPED = frozenset(
    {"head", "title", "style", "script", "template", "noscript", "object", "embed", "iframe", "svg"}
    | {"select", "option", "textarea"}
)
_BLOCKS = frozenset(
    {"address", "article", "aside", "blockquote", "body", "center", "dd", "details", "div", "dl", "dt", "li"}
    | {"fieldset", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "html"}
    | {"main", "nav", "ol", "p", "pre", "section", "summary", "table", "tbody", "tfoot", "thead", "tr", "ul"}
)
_CELLS = frozenset(("td", "th"))
_STRUCK = frozenset(("del", "s", "strike"))
_SPACES = re.compile("[ \t\r\n\f]+")
_CELL = "\x1f"

# By class, id and name, each surrounded by spaces, in lower case.
_QUOTES = re.compile(
    r"yahoo_quoted|gmail_attr|moz-cite-prefix|moz-forward-container|moz-email-headers|reply-intro|replyheader"
    r"|reference-message-container|messagereplysection|zmail_extra|isreplycontent|ntes-mailmaster-quote"
    r"|aqm-original"
    r"|olk_src_body_section|tutanota_quote|mailmaster_quote|original-message|includetail"
    r"|blockquote_zmail|(?<= )qt(?= )|(?<= )quote(?= )|k9mail-quote|x_gmail_attr|wm-quoted"
    r"|hs_reply"
)
_CONTAINERS = re.compile(r"gmail_quote|protonmail_quote")
_CUTS = re.compile(
    r"divrplyfwdmsg|outlookmessageheader|appendonsend|fmsigseperator|replysplit|(?<= )mail-editor-reference"
)
_SIGNATURES = re.compile(r"signature|(?<= )sig\d*(?= )|zm-_id_-sgn|fmoriginalsign")
_HIDDEN = re.compile(
    r"display:none|visibility:(?:hidden|collapse)|mso-hide:all|opacity:0(?:\.0+)?(?![.\d])"
    r"|font-size:0(?:\.0\d*)?(?:px|pt|r?em|%)?(?:;|!|$)"
    r"|font-size:(?:0?\.\d+|1(?:\.\d+)?)p[xt]"
    r"|max-height:0(?![.\d])|(?<![-\w])(?:width|height):0(?:px|pt)?(?:;|!|$)|text-indent:-\d{3,}|(?:left"
    r"|top):-\d{3,}"
    r"|color:transparent|clip:rect\(0|transform:scale\(0"
)
_WHITE = re.compile(
    r"(?<![-\w])color:(?:white|#fff(?![0-9a-f])|#f[0-9a-f]f[0-9a-f]f[0-9a-f]|rgba?\(25\d,25\d,25\d)"
)
_BACKGROUND = re.compile(r"background(?:-color)?:([^;]*)")
_LIGHT = re.compile(
    r"white|#fff(?![0-9a-f])|#f[0-9a-f]f[0-9a-f]f[0-9a-f]|rgba?\(25\d,25\d,25\d|transparent|inherit|initial"
    r"|none|^$"
)
_STRIKE = re.compile(r"text-decoration(?:-line)?:[^;]*line-through")
_NO_BORDER = re.compile(r"border(?:-left)?:(?:none|0|medium none)")
_HEADER_BORDER = re.compile(r"border-top:(?:solid|#|\d|1)[^;]*")
_HIDING_RULE = re.compile(
    r"([.#][\w-]{1,80})\s{0,9}\{[^{}]{0,500}?(?:display:\s{0,3}none|visibility:\s{0,3}hidden"
    r"|font-size:\s{0,3}0)"
)
_ALT = 40


class Kind(IntEnum):
    """Whose words they are."""

    OWN = 0
    SIGNATURE = 1
    QUOTED = 2


@dataclass(frozen=True, slots=True)
class Seen:
    """What somebody sees of the HTML; `complete` is False when it was too long or too deep to read."""

    lines: tuple[tuple[str, Kind], ...]
    complete: bool = True


@dataclass(frozen=True, slots=True)
class _Context:
    kind: Kind = Kind.OWN
    hidden: bool = False
    kept: bool = False  # spaces and line breaks count
    struck: bool = False
    dark: bool = False


def seen(html: str) -> Seen:
    """The lines of one text/html part."""
    parser = etree.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, no_network=True)
    try:
        root = etree.fromstring(html[:MOST].encode("utf-8", "replace"), parser)
    except (etree.LxmlError, ValueError):
        return Seen((), complete=not html.strip())
    if root is None:
        return Seen((), complete=True)
    too_deep = any("depth" in entry.message.lower() for entry in parser.error_log)
    return Seen(tuple(_single_blanks(_Rendering(root).lines())), complete=len(html) <= MOST and not too_deep)


def _single_blanks(lines: Iterable[tuple[str, Kind]]) -> Iterator[tuple[str, Kind]]:
    """The lines with one blank line where there are more."""
    before = ""
    for text, kind in lines:
        if text or before:
            yield text, kind
        before = text


@dataclass
class _Rendering:
    """One walk over the tree, without recursion."""

    root: etree._Element
    cut: bool = False
    chunks: list[tuple[str, Kind]] = field(default_factory=list)

    def lines(self) -> Iterator[tuple[str, Kind]]:
        self._hiding = self._hiding_names()
        self._walk()
        line, kind = "", Kind.OWN
        for text, of in self._merged():
            # What is of another kind begins a line of its own.
            if of is not kind and line.strip():
                yield _tidy(line), kind
                line = ""
            kind = of
            *full, last = text.split("\n")
            for part in full:
                yield _tidy(line + part), kind
                line = ""
            line += last
        if line.strip():
            yield _tidy(line), kind

    def _merged(self) -> Iterator[tuple[str, Kind]]:
        """Neighbours of one kind together; cells of a row on one line."""
        run: list[str] = []
        kind = Kind.OWN
        for text, of in self.chunks:
            if of is not kind and run:
                yield _rows("".join(run)), kind
                run = []
            kind = of
            run.append(text)
        if run:
            yield _rows("".join(run)), kind

    def _hiding_names(self) -> frozenset[str]:
        sheets = (e.text or "" for e in self.root.iter("style"))
        return frozenset(name.lower() for sheet in sheets for name in _HIDING_RULE.findall(sheet[:50_000]))

    def _walk(self) -> None:
        waiting: list[tuple[etree._Element, _Context, _Context | None]] = [(self.root, _Context(), None)]
        while waiting:
            element, outer, left = waiting.pop()
            tag = element.tag if isinstance(element.tag, str) else ""
            if left is not None:
                self._leave(tag, left)
                self._text(element.tail, outer)
            elif (inner := self._inner(element, tag, outer)) is None:
                self._text(element.tail, outer)
            else:
                self._enter(element, tag, inner)
                waiting.append((element, outer, inner))
                waiting += [(child, inner, None) for child in element.iterchildren(reversed=True)]

    def _enter(self, element: etree._Element, tag: str, inner: _Context) -> None:
        if tag in _BLOCKS:
            self._break(inner)
        elif tag in _CELLS and element.getprevious() is not None:
            self._say(_CELL, inner)
        elif tag == "br":
            self._say("\n", inner)
        elif tag == "img":
            self._say(_emoji(element.get("alt", "")), inner)
        if inner.struck:
            self._say("~~", inner)
        self._text(element.text, inner)

    def _leave(self, tag: str, inner: _Context) -> None:
        if inner.struck:
            self._say("~~", inner)
        if tag in _BLOCKS:
            self._break(inner)

    def _break(self, context: _Context) -> None:
        """A line break, unless a line has just begun."""
        if self.chunks and not self.chunks[-1][0].endswith("\n"):
            self._say("\n", context)

    def _text(self, text: str | None, context: _Context) -> None:
        if text:
            self._say(text if context.kept else _SPACES.sub(" ", text), context)

    def _say(self, text: str, context: _Context) -> None:
        if text and not context.hidden:
            self.chunks.append((text, Kind.QUOTED if self.cut else context.kind))

    def _inner(self, element: etree._Element, tag: str, outer: _Context) -> _Context | None:
        """What holds inside an element; None when nobody sees it."""
        if tag in _SKIPPED or not tag:
            return None
        style = _SPACES.sub("", element.get("style", "")).lower()
        names = f" {element.get('class', '')} {element.get('id', '')} {element.get('name', '')} ".lower()
        hidden = outer.hidden or self._hides(element, style, outer)
        if outer.kind is not Kind.QUOTED and (_CUTS.search(names) or _repeats_header(element, style)):
            self.cut = True
        return _Context(
            kind=max(outer.kind, _kind(element, tag, style, names)),
            hidden=hidden,
            kept=outer.kept or tag == "pre" or "white-space:pre" in style,
            struck=tag in _STRUCK or bool(_STRIKE.search(style)),
            dark=_dark(element, style, outer.dark),
        )

    def _hides(self, element: etree._Element, style: str, outer: _Context) -> bool:
        if "hidden" in element.attrib or _HIDDEN.search(style):
            return True
        if self._hiding and (
            any(f".{name}" in self._hiding for name in element.get("class", "").lower().split())
            or f"#{element.get('id', '').lower()}" in self._hiding
        ):
            return True
        colour = element.get("color", "").lower().strip()
        white = _WHITE.search(style) or colour in ("white", "#fff", "#ffffff")
        return bool(white) and not _dark(element, style, outer.dark)


def _dark(element: etree._Element, style: str, outer: bool) -> bool:
    """Whether the background is not a light one, so that white letters can be read."""
    own = _BACKGROUND.search(style)
    background = own[1] if own else element.get("bgcolor", "").lower()
    if not background:
        return outer
    return not _LIGHT.search(background)


def _kind(element: etree._Element, tag: str, style: str, names: str) -> Kind:
    if tag == "blockquote":
        # Gmail's indenting is a blockquote, too, and the person's own.
        marks = element.get("type") or element.get("cite") or "quote" in names or "cite" in names
        return Kind.OWN if not marks and _NO_BORDER.search(style) else Kind.QUOTED
    if _QUOTES.search(names):
        return Kind.QUOTED
    if _CONTAINERS.search(names):
        return Kind.OWN if element.find(".//blockquote") is not None else Kind.QUOTED
    return Kind.SIGNATURE if _SIGNATURES.search(names) else Kind.OWN


def _repeats_header(element: etree._Element, style: str) -> bool:
    """Whether it is Outlook's block above an original: a line on top, then From, Sent, To and Subject."""
    if not _HEADER_BORDER.search(style):
        return False
    text = "".join(map(str, element.itertext()))[:1000]
    return "@" in text and reply_phrases.LABEL.match(text.lstrip()) is not None


def _rows(text: str) -> str:
    """The text with the cells of each row on one line."""
    first, *others = text.split(_CELL)
    if not others:
        return text
    *middle, last = others
    return " ".join((first.rstrip("\n"), *(cell.strip("\n") for cell in middle), last.lstrip("\n")))


def _emoji(alt: str) -> str:
    """The text of a picture that stands for an emoji; other pictures say nothing."""
    return alt if 0 < len(alt) <= _ALT and not any(c.isascii() or c.isalpha() for c in alt) else ""


def _tidy(line: str) -> str:
    return line.replace("\u00a0", " ").strip(" \t\r\f")
