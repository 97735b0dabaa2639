"""What is in a page, what do its forms send, and is there nothing but what its template put there?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser

from tests.unit.web.browser import Browser, check_page

VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}


@dataclass(slots=True)
class Node:
    """An element: its attributes, and what is in it."""

    tag: str
    attrs: dict[str, str]
    parent: Node | None = None
    inside: list[Node | str] = field(default_factory=list)

    def walk(self) -> Iterator[Node]:
        for child in self.inside:
            if isinstance(child, Node):
                yield child
                yield from child.walk()

    def all(self, tag: str, **attrs: str) -> list[Node]:
        """The elements inside, with these attributes."""
        wanted = {name.strip("_").replace("_", "-"): value for name, value in attrs.items()}
        return [node for node in self.walk() if node.tag == tag and wanted.items() <= node.attrs.items()]

    def one(self, tag: str, **attrs: str) -> Node:
        (found,) = self.all(tag, **attrs)
        return found

    @property
    def text(self) -> str:
        return "".join(child if isinstance(child, str) else child.text for child in self.inside)

    @property
    def classes(self) -> set[str]:
        return set(self.attrs.get("class", "").split())


class _Builder(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Node("", {})
        self.at = self.root
        self.wrong: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if len({name for name, _ in attrs}) < len(attrs):
            self.wrong.append(f"<{tag}> says something twice")
        node = Node(tag, {name: value or "" for name, value in attrs}, self.at)
        self.at.inside.append(node)
        if tag not in VOID:
            self.at = node

    def handle_endtag(self, tag: str) -> None:
        if self.at.tag != tag or self.at.parent is None:
            self.wrong.append(f"</{tag}> in <{self.at.tag}>")
            return
        self.at = self.at.parent

    def handle_data(self, data: str) -> None:
        self.at.inside.append(data)

    def handle_comment(self, data: str) -> None:
        self.wrong.append(f"a comment: {data!r}")

    handle_pi = unknown_decl = handle_comment

    def handle_decl(self, decl: str) -> None:
        if decl != "doctype html":
            self.wrong.append(f"a declaration: {decl!r}")


def tree(html: str) -> Node:
    """A page as a browser takes it apart; every element is closed where it was opened."""
    builder = _Builder()
    builder.feed(html.replace("\r\n", "\n").replace("\r", "\n"))  # HTML 13.2.3.5
    builder.close()
    assert builder.wrong == []
    assert builder.at is builder.root
    return builder.root


def sent_of(page: Node, form: Node, button: Node | None = None) -> dict[str, str]:
    """What a browser sends when a button of a form is pressed; each name at most once."""
    found: list[tuple[str, str]] = []
    for node in page.walk():
        name = node.attrs.get("name", "")
        if not name or "disabled" in node.attrs or not belongs(node, form):
            continue
        if node.tag == "textarea":
            found.append((name, node.text.removeprefix("\n")))
        elif node.tag == "select":
            options = node.all("option")
            (chosen,) = [o for o in options if "selected" in o.attrs] or options[:1]
            found.append((name, chosen.attrs["value"]))
        elif node.tag == "input" and node.attrs.get("type") == "checkbox":
            found += [(name, node.attrs["value"])] if "checked" in node.attrs else []
        elif node.tag == "input" and node.attrs.get("type") != "file":
            value = node.attrs.get("value", "")
            found.append((name, value if node.attrs.get("type") == "hidden" else re.sub("[\r\n]", "", value)))
    if button is not None and button.attrs.get("name"):
        found.append((button.attrs["name"], button.attrs["value"]))
    assert len({name for name, _ in found}) == len(found)
    return {name: re.sub("\r\n|\r|\n", "\r\n", value) for name, value in found}


def belongs(node: Node, form: Node) -> bool:
    """Whether an input or a button is of that form."""
    return node.attrs["form"] == form.attrs.get("id") if "form" in node.attrs else is_in(node, form)


def is_in(node: Node, outer: Node) -> bool:
    while node.parent is not None:
        node = node.parent
        if node is outer:
            return True
    return False


def buttons(page: Node, form: Node) -> list[Node]:
    """What submits a form."""
    return [node for node in page.all("button") if "disabled" not in node.attrs and belongs(node, form)]


async def shown(browser: Browser, path: str, status: int = 200) -> Node:
    """A page that is whole and protected, as a tree."""
    response = await browser.get(path)
    check_page(response, status)
    return tree(response.text)


def links(page: Node) -> list[str]:
    return [node.attrs["href"] for node in page.all("a")]


def labels(page: Node) -> list[str]:
    return [node.text for node in page.all("button")]


# -- what may be in a page -------------------------------------------------------------------------------

PLAIN = (
    "b code dd del dt em h1 h2 h3 h4 h5 h6 i ins kbd li mark p pre s strong summary ul dl blockquote span "
    "head title body br hr thead tbody tr legend fieldset noscript header nav main article section div "
    "dialog table html"
)
INPUT = {"autocomplete", "autocapitalize", "spellcheck", "name", "placeholder", "required"}
EVERYWHERE = re.compile("id|class|title|role|tabindex|lang|hidden|(aria|data)-[a-z-]+")
ALLOWED: Mapping[str, set[str]] = {
    **{tag: set() for tag in PLAIN.split()},
    "meta": {"charset", "name", "content"},
    "link": {"rel", "href", "type"},
    "script": {"src", "defer"},
    "ol": {"start"},
    "a": {"href", "rel", "download"},
    "form": {"method", "action", "enctype"},
    "button": {"name", "value", "form", "formaction", "disabled", "type"},
    "input": INPUT | {"type", "value", "maxlength", "multiple", "checked", "inputmode"},
    "textarea": INPUT | {"rows", "maxlength"},
    "select": INPUT,
    "option": {"value", "selected"},
    "label": {"for"},
    "details": {"open"},
    "time": {"datetime"},
    "th": {"scope"},
    "td": {"colspan"},
    "svg": {"viewbox", "preserveaspectratio"},
    "rect": {"x", "y", "width", "height"},
}
UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
# What a form gives back holds every character as it is.
TYPED = {("input", "value"), ("option", "value"), ("button", "value"), ("div", "data-proposed")}


def check(page: Node) -> None:
    """Nothing is in a page but what its template put there; what cannot be seen is written out."""
    for node in page.walk():
        assert node.tag in ALLOWED, node.tag
        special = {name for name in node.attrs if EVERYWHERE.fullmatch(name) is None}
        assert special <= ALLOWED[node.tag], (node.tag, node.attrs)
        for name in ("href", "src", "action", "formaction"):
            _check_address(node, node.attrs.get(name))
        assert re.fullmatch(r"[a-z0-9 +#_-]*", node.attrs.get("class", "")), node.attrs
        assert re.fullmatch(r"[a-z0-9-]+", node.attrs.get("id", "x")), node.attrs
        for name, value in node.attrs.items():
            assert (node.tag, name) in TYPED or not UNSEEN.search(value), (node.tag, node.attrs)
        if node.tag != "textarea":
            own = "".join(child for child in node.inside if isinstance(child, str))
            assert not UNSEEN.search(own), (node.tag, own)
    for script in page.all("script"):
        assert re.fullmatch(r"/static/app\.js\?v=[0-9a-f]{12}", script.attrs["src"])
        assert script.text == ""
    assert len(page.all("script")) <= 1
    assert (len(page.all("h1")), len(page.all("main"))) == (1, 1)


def _check_address(node: Node, address: str | None) -> None:
    if address is None or re.fullmatch(r"(/(?![/\\])[!-~]*|/|#[a-z]+)", address):
        return
    # Only a link in a text leads elsewhere, and says nothing of where it was.
    assert re.fullmatch(r"(https?://|mailto:)[!-~]+", address, re.IGNORECASE), address
    assert node.tag == "a"
    assert node.attrs["rel"] == "noopener noreferrer nofollow"
