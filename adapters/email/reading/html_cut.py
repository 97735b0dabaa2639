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
# What may hide, turn around or cover text, and no mail program puts on what a person writes.
_ODD = re.compile(
    r"\\|/\*|(?<![-\w])clip|mask|filter:(?!none)|(?<![-\w])transform:(?!none)|(?<![-\w])(?:scale|translate|zoom):(?!1(?![.\d]))"
    r"|blend-mode:(?!normal)|unicode-bidi:[^;]*override|text-fill-color:(?:transparent|rgba)|content-visibility"
    r"|opacity:(?:0?\.[0-4]\d*|0|[0-4]?\d%)(?:[;!]|$)|position:(?:absolute|fixed)|line-height:0(?![.\d])"
    r"|letter-spacing:-(?:(?:0?\.[5-9]|[1-9])[\d.]*r?em|\d[\d.]*p[xt])|text-indent:-?(?:\d{3}|\d\d[\d.]*r?em)"
    r"|(?<![-\w])(?:margin|left|right|top|bottom)[-a-z]*:[^;]*-\d{3}"
    r"|(?<![-\w])(?:max-)?(?:height|width):[01](?:\.\d+)?(?:p[xt]|r?em|%|v[wh])?(?:[;!]|$)"
    r"|font-size:(?:0?\.[0-4]\d*r?em|0[a-z%]*(?:[;!]|$)|[0-5](?:\.\d+)?p[xt]|[0-3]?\d(?:\.\d+)?%)"
    r"|(?<![-\w])font:[^;]*?(?<![\d.])(?:[0-5](?:\.\d+)?p[xt]|0)(?:/|[a-z]|$)"
    r"|(?<![-\w])color:(?:#[0-9a-f]{3}[0-4](?![0-9a-f])|#[0-9a-f]{6}[0-4][0-9a-f]|(?:rgba|hsla)\([^)]*,(?:0|0?\.[0-4]\d*)\)"
    r"|(?:rgba?|hsla?)\([^),]*/|hsla?\([^)]*,(?:9\d|100)%|hwb|lab|lch|oklab|oklch|transparent)"
)
_COLOUR = re.compile(r"(?<![-\w])color:([^;!]+)")
_GENERATED = re.compile(r"(?<![-\w])content:(?!\s*(?:none|normal|''|\"\"))", re.IGNORECASE)
_RULE = re.compile(r"([^{}]{1,2000})\{([^{}]{0,4000})\}")
_COMMENT = re.compile(r"/\*.*?\*/|<!--|-->", re.DOTALL)
_LAST = re.compile(r"[^\s>+~]+$")
_NAMES = re.compile(r"[.#][\w-]+")
_LIGHT_NAMES = frozenset(
    {"white", "snow", "ivory", "azure", "mintcream", "seashell", "honeydew", "aliceblue", "cornsilk", "beige"}
    | {
        "lavenderblush",
        "oldlace",
        "linen",
        "lightyellow",
        "ghostwhite",
        "floralwhite",
        "whitesmoke",
        "lavender",
    }
    | {"lightcyan", "gainsboro", "antiquewhite", "papayawhip", "lemonchiffon", "lightgoldenrodyellow"}
)
_LIGHT_FROM = 215  # of 255, in each of the three colours
# Elements whose text may be folded away, or is shown only where something else cannot be.
_FOLDED = frozenset(
    {"details", "dialog", "video", "audio", "canvas", "noframes", "noembed", "map", "progress", "meter", "rp"}
    | {"datalist", "math", "bdo", "marquee"}
)
_NEVER_SHOWN = frozenset({"head", "title", "style", "script", "template"})
_ALT = 40


class Kind(IntEnum):
    """Whose words they are."""

    OWN = 0
    SIGNATURE = 1
    QUOTED = 2


@dataclass(frozen=True, slots=True)
class Seen:
    """What somebody sees of the HTML; `complete` is False when it was too long or too deep to read.

    `doubtful` is True when a part of the person's own may be hidden, or shown otherwise than it stands there.
    """

    lines: tuple[tuple[str, Kind], ...]
    complete: bool = True
    doubtful: bool = False


@dataclass(frozen=True, slots=True)
class _Context:
    kind: Kind = Kind.OWN
    hidden: bool = False
    kept: bool = False  # spaces and line breaks count
    struck: bool = False
    dark: bool = False
    odd: bool = False  # may look otherwise than it stands there


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
    rendering = _Rendering(root)
    lines = tuple(_single_blanks(rendering.lines()))
    return Seen(lines, complete=len(html) <= MOST and not too_deep, doubtful=rendering.doubtful)


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
    doubtful: bool = False
    chunks: list[tuple[str, Kind]] = field(default_factory=list)

    def lines(self) -> Iterator[tuple[str, Kind]]:
        self._hiding = self._hiding_names()
        self._odd_names = _odd_names(e.text or "" for e in self.root.iter("style"))
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
        if (context.hidden or context.odd) and not self.cut and context.kind is Kind.OWN and text.strip():
            self.doubtful = True
        if text and not context.hidden:
            self.chunks.append((text, Kind.QUOTED if self.cut else context.kind))

    def _inner(self, element: etree._Element, tag: str, outer: _Context) -> _Context | None:
        """What holds inside an element; None when nobody sees it."""
        if tag in _SKIPPED or not tag:
            if tag not in _NEVER_SHOWN and outer.kind is Kind.OWN and not self.cut:
                self.doubtful |= (
                    any(text.strip() for text in element.itertext()) or "srcdoc" in element.attrib
                )
            return None
        style = _SPACES.sub("", element.get("style", "")).lower()
        names = f" {element.get('class', '')} {element.get('id', '')} {element.get('name', '')} ".lower()
        hidden = outer.hidden or self._hides(element, style, outer)
        if outer.kind is not Kind.QUOTED and (_CUTS.search(names) or _repeats_header(element, style)):
            self.cut = True
        dark = _dark(element, style, outer.dark)
        odd = outer.odd or tag in _FOLDED or self._is_odd(element, tag, style, names, dark)
        if tag == "input" and element.get("value", "").strip() and not self.cut:
            self.doubtful = True
        return _Context(
            kind=max(outer.kind, _kind(element, tag, style, names)),
            hidden=hidden,
            kept=outer.kept or tag == "pre" or "white-space:pre" in style,
            struck=tag in _STRUCK or bool(_STRIKE.search(style)),
            dark=dark,
            odd=odd,
        )

    def _is_odd(self, element: etree._Element, tag: str, style: str, names: str, dark: bool) -> bool:
        """Whether text in it may be hidden, covered or turned around by means that only forgers use."""
        if _ODD.search(style) or _pales(style, element, dark) or (tag == "img" and _is_dot(element)):
            return True
        found = self._odd_names
        return bool(found) and ("*" in found or tag in found or not found.isdisjoint(names.split()))

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


def _odd_names(sheets: Iterable[str]) -> frozenset[str]:
    """The classes, ids or elements that rules of style sheets may hide or write into; "*" stands for all."""
    found: set[str] = set()
    for sheet in sheets:
        for selectors, body in _RULE.findall(_COMMENT.sub("", sheet[:50_000])):
            style = _SPACES.sub("", body).lower()
            if not (
                _GENERATED.search(body) or _HIDDEN.search(style) or _ODD.search(style) or _is_pale(style)
            ):
                continue
            for selector in selectors.rpartition(";")[2].lower().split(","):
                last = _LAST.search(selector.strip())
                named = _NAMES.findall(last[0].partition(":")[0]) if last else []
                element = re.match(r"[a-z0-9]+", last[0]) if last else None
                if named:
                    found.add(named[-1][1:])
                else:
                    found.add(element[0] if element and "\\" not in selector else "*")
    return frozenset(found)


def _pales(style: str, element: etree._Element, dark: bool) -> bool:
    """Whether letters are as light as paper, or of the colour of their ground."""
    own, ground = _COLOUR.search(style), _BACKGROUND.search(style)
    if own and ground and own[1] == ground[1]:
        return True
    if dark and not (ground and _is_pale(f"color:{ground[1]}")):
        return False
    return _is_pale(style) or _is_pale(f"color:{(element.get('color') or element.get('text') or '').lower()}")


def _is_pale(style: str) -> bool:
    found = _COLOUR.search(style)
    if found is None:
        return False
    colour = found[1].strip()
    if colour in _LIGHT_NAMES:
        return True
    if digits := re.fullmatch(r"#([0-9a-f]{3}|[0-9a-f]{6})", colour):
        size = len(digits[1]) // 3
        parts = [int(digits[1][i : i + size] * (3 - size), 16) for i in range(0, 3 * size, size)]
    else:
        parts = [int(n) for n in re.findall(r"\d{1,3}", colour)[:3]] if colour.startswith("rgb(") else []
    return len(parts) == 3 and min(parts) >= _LIGHT_FROM


def _is_dot(element: etree._Element) -> bool:
    return any(element.get(side, "").strip().rstrip("px") in ("0", "1") for side in ("width", "height"))


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
