"""Does Markdown from outside become nothing but harmless elements, and does it still say what it said?"""

from __future__ import annotations

import re
import time
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markupsafe import Markup

from pizzabot import markdown
from pizzabot.markdown import markup

REL = "noopener noreferrer nofollow"
BARE = ["p", "h3", "h4", "h5", "h6", "blockquote", "ul", "li", "hr", "br", "em", "strong", "s"]
ALLOWED: dict[str, dict[str, str]] = {
    **{tag: {} for tag in [*BARE, "table", "thead", "tbody", "tr"]},
    **{tag: {"class": "left|center|right"} for tag in ("th", "td")},
    "ol": {"start": "[0-9]{1,9}"},
    "pre": {"class": "plain"},
    "code": {"class": "language-[a-z0-9+#-]{1,40}"},
    "div": {"class": "table", "tabindex": "0", "role": "region", "aria-label": "Table"},
    "a": {"href": r"(?i:https?://[a-z0-9\[]|mailto:[a-z0-9])[!#-;=?-\[\]_a-z~]*", "rel": REL},
}
EMPTY = {"br", "hr"}


class _Reader(HTMLParser):
    """Reads HTML and notes everything that is not allowed in it."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.wrong: list[str] = []
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        allowed = ALLOWED.get(tag)
        if allowed is None:
            self.wrong.append(f"<{tag}>")
            return
        for name, value in attrs:
            if name not in allowed or not re.fullmatch(allowed[name], value or ""):
                self.wrong.append(f"<{tag} {name}={value!r}>")
        if len({name for name, _ in attrs}) < len(attrs):
            self.wrong.append(f"<{tag}> says something twice")
        if tag == "a" and (dict(attrs).get("rel") != REL or "a" in self.open):
            self.wrong.append(f"<a> in a link or without {REL}")
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}> closes nothing")

    def handle_data(self, data: str) -> None:
        self.text += data
        if re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]", data):
            self.wrong.append(f"unseen: {data!r}")

    def handle_comment(self, data: str) -> None:
        self.wrong.append("a comment")

    def handle_decl(self, decl: str) -> None:
        self.wrong.append("a declaration")

    def handle_pi(self, data: str) -> None:
        self.wrong.append("an instruction")

    def unknown_decl(self, data: str) -> None:
        self.wrong.append("a section")


def read(html: str) -> _Reader:
    reader = _Reader()
    html = str(html)  # no Markup, which escapes what is added to it
    reader.feed(html)
    reader.close()
    reader.wrong += [f"<{tag}> is never closed" for tag in reader.open]
    # A browser may see a tag where this parser sees none.
    if re.search(r"[<>]", re.sub(r"</?[a-z][a-z0-9]*(?: [a-z-]+=\"[^\"<>]*\")*>", "", html)):
        reader.wrong.append("a bracket that is no tag")
    return reader


def text_of(source: str) -> str:
    return " ".join(read(markup(source)).text.split())


ATTACKS = [
    # elements
    "<script>alert(1)</script>",
    "a <script src=//evil.example/x.js></script> b",
    "<SCRIPT>alert(1)</SCRIPT>",
    "<scr<script>ipt>alert(1)</scr</script>ipt>",
    "<script\n>alert(1)</script\n>",
    "</p><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<img src=x onerror=alert(1)//",
    '<IMG """><SCRIPT>alert(1)</SCRIPT>">',
    "<svg onload=alert(1)>",
    "<svg><script>alert(1)</script></svg>",
    "<svg/onload=alert(1)>",
    '<math><mi//xlink:href="data:x,<script>alert(1)</script>">',
    '<math href="javascript:alert(1)">click</math>',
    "<iframe src=javascript:alert(1)></iframe>",
    "<iframe srcdoc='<script>alert(1)</script>'>",
    "<object data=javascript:alert(1)>",
    "<embed src=//evil.example/x.swf>",
    "<base href=//evil.example/>",
    "<meta http-equiv=refresh content='0;url=javascript:alert(1)'>",
    "<link rel=stylesheet href=//evil.example/x.css>",
    "<style>*{background:url(//evil.example/)}</style>",
    "<style>@import '//evil.example/x.css';</style>",
    "<form action=/api/stop method=post><button>ok</button></form>",
    "<input autofocus onfocus=alert(1)>",
    "<details open ontoggle=alert(1)>",
    "<body onload=alert(1)>",
    "<template><script>alert(1)</script></template>",
    '<noscript><p title="</noscript><img src=x onerror=alert(1)>">',
    "<textarea></textarea><script>alert(1)</script>",
    "<!-- --><script>alert(1)</script><!-- -->",
    "<!--[if IE]><script>alert(1)</script><![endif]-->",
    "<![CDATA[<script>alert(1)</script>]]>",
    "<?php echo 1 ?><?xml-stylesheet href='javascript:alert(1)'?>",
    "<!DOCTYPE html [<!ENTITY x 'y'>]>",
    '<div style="position:fixed;inset:0" id=login class=page>sign in</div>',
    '<a href="javascript:alert(1)">x</a>',
    "<a\thref\n=\n'javascript:alert(1)'>x</a>",
    "- <div>\n  <script>alert(1)</script>\n  </div>",
    "> <img src=x onerror=alert(1)>",
    # links
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x]( javascript:alert(1))",
    "[x](<javascript:alert(1)>)",
    "[x](< javascript:alert(1) >)",
    "[x](java\nscript:alert(1))",
    "[x](<java\tscript:alert(1)>)",
    "[x](java&#10;script:alert(1))",
    "[x](java&Tab;script:alert(1))",
    "[x](java&NewLine;script:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](&#x6A;avascript&#x3A;alert(1))",
    "[x](javascript&colon;alert(1))",
    "[x](\\javascript:alert(1))",
    "[x](javascript\\:alert(1))",
    "[x](%6Aavascript:alert(1))",
    "[x](javascript%3Aalert(1))",
    "[x](\x01javascript:alert(1))",
    "[x](\u00a0javascript:alert(1))",
    "[x](\u200bjavascript:alert(1))",
    "[x](java\x00script:alert(1))",
    "[x](vbscript:msgbox(1))",
    "[x](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)",
    "[x](data:image/svg+xml,<svg onload=alert(1)>)",
    "[x](file:///etc/passwd)",
    "[x](blob:https://evil.example/1)",
    "[x](feed:javascript:alert(1))",
    "[x](view-source:javascript:alert(1))",
    "[x](http:javascript:alert(1))",
    "[x](http://[javascript:alert(1)])",
    "[x](//evil.example)",
    "[x](\\\\evil.example)",
    "[x](/\\evil.example)",
    "[x](http:/evil.example)",
    "[x](http:\\\\evil.example)",
    "[x](https://a.example\\@evil.example)",
    "[x](https://a.example%00@evil.example)",
    "[x](/api/stop)",
    "[x](../logout)",
    "[x](?view=all)",
    "[x](#top)",
    "[x]()",
    "[x](<>)",
    '[x](https://a.example/" onmouseover="alert(1))',
    "[x](https://a.example/'onmouseover='alert(1))",
    '[x](<https://a.example/"onmouseover=alert(1)>)',
    "[x](https://a.example/?<script>)",
    "[x](https://a.example 'title\" onmouseover=\"alert(1)')",
    '[x](https://a.example (title"><script>alert(1)</script>))',
    '[x](https://a.example "&quot; onmouseover=&quot;alert(1)")',
    '[x" onclick="alert(1)](https://a.example)',
    "[<script>alert(1)</script>](https://a.example)",
    "[[x](https://a.example)](javascript:alert(1))",
    "[a](https://a.example [b](javascript:alert(1)))",
    "[![x](javascript:alert(1))](https://a.example)",
    "[![x](https://b.example)](javascript:alert(1))",
    "<javascript:alert(1)>",
    "<JAVASCRIPT:alert(1)>",
    "<data:text/html,alert(1)>",
    '<https://a.example/"onmouseover=alert(1)>',
    "<https://a.example/'><script>alert(1)</script>>",
    '<a@b.example"onclick=alert(1)>',
    "[x]\n\n[x]: javascript:alert(1)",
    "[x][y]\n\n[y]: <javascript:alert(1)> 'title'",
    "[x]\n\n[x]: data:text/html,x",
    "[x]\n\n[x]: https://a.example '\" onclick=\"alert(1)'",
    "[x]\n\n[X]: /api/stop",
    "[x]: <>\n\n[x] ![x]",
    # bare URLs
    'https://a.example/"onmouseover=alert(1)',
    "https://a.example/'><script>alert(1)</script>",
    "https://a.example/<script>alert(1)</script>",
    "https://a.example/&quot;onclick=alert(1)",
    "https://user:pass@evil.example/",
    "javascript://a.example/%0aalert(1)",
    "javascript:https://a.example/",
    "mailto:a@b.example?bcc=spy@evil.example",
    "mailto:?bcc=spy@evil.example",
    "HTTPS://A.EXAMPLE/\u202egnp.exe",
    "httpſ://a.example",
    # images
    "![x](javascript:alert(1))",
    "![x](https://evil.example/track.png)",
    '![x" onerror="alert(1)](https://a.example/x.png)',
    '![x](https://a.example/x.png "t" onerror="alert(1)")',
    '![x](x" onerror="alert(1))',
    "![<img src=x onerror=alert(1)>](https://a.example)",
    "![![x](https://b.example)](https://a.example)",
    "![](/api/stop)",
    # code
    '```"onmouseover=alert(1)\nx\n```',
    '```js" onmouseover="alert(1)\nx\n```',
    "```<script>\nalert(1)\n```",
    "~~~'><img/src=x/onerror=alert(1)>\nx\n~~~",
    "```&quot;onclick&#61;alert(1)\nx\n```",
    "```\n</code></pre><script>alert(1)</script>\n```",
    "`</code><script>alert(1)</script>`",
    "    <script>alert(1)</script>",
    # tables and other blocks
    "|<script>alert(1)</script>|b|\n|-|-|\n|<img src=x onerror=alert(1)>|[x](javascript:alert(1))|",
    '|a" onclick="x|b|\n|:-:|-:|\n|1|`</td><script>`|',
    "# <script>alert(1)</script> {#id onclick=alert(1)}",
    "</td></tr></table></div><script>alert(1)</script>",
    "99999999999. <script>alert(1)</script>",
    '7"onclick=alert(1). x',
    # entities, templates, unseen characters
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&#60;script&#62;alert(1)&#60;/script&#62;",
    "\\<script>alert(1)\\</script>",
    "{{7*7}} {% include '/etc/passwd' %} ${7*7} <%= 7*7 %> #{7*7}",
    "[x](https://a.example/{{7*7}})",
    "{{constructor.constructor('alert(1)')()}}",
    "a\x00b<scr\x00ipt>alert(1)</scr\x00ipt>",
    "\ufeff<script>alert(1)</script>",
    "&#x202e;evil&#x2066;&#0;&#x1b;[31m",
    "\u202e\u2066\x1b[2J\x07\u2028\u2029\x85\r",
    "\ud800<script>",
    "＜script＞alert(1)＜/script＞",
    "+ADw-script+AD4-alert(1)+ADw-/script+AD4-",
]


@pytest.mark.parametrize("source", ATTACKS, ids=ascii)
def test_nothing_but_harmless_elements_comes_out(source: str) -> None:
    assert read(markup(source)).wrong == []


def test_the_reader_sees_what_a_careless_renderer_lets_through() -> None:
    careless = MarkdownIt("commonmark", {"html": True}).enable("table")
    wrong = [source for source in ATTACKS if read(careless.render(source)).wrong]
    assert len(wrong) > 100


PIECES = st.sampled_from([*ATTACKS, *"[]()<>!`*_~|\\\n\"'&:/- #", "https://a.b", "mailto:a@b"])


@given(st.lists(PIECES).map("".join))
@settings(derandomize=True, deadline=None, max_examples=300)
def test_no_mixture_of_attacks_gets_through(source: str) -> None:
    assert read(markup(source)).wrong == []


@given(st.text(st.characters(codec=None)))
@settings(derandomize=True, deadline=None)
def test_no_text_gets_through(source: str) -> None:
    html = markup(source)
    assert read(html).wrong == []
    html.encode()


# -- one test for each rule ------------------------------------------------------------------------------


def test_html_appears_as_text() -> None:
    assert markup("a <b>b</b>\n\n<div>c</div>") == (
        "<p>a &lt;b&gt;b&lt;/b&gt;</p>\n<p>&lt;div&gt;c&lt;/div&gt;</p>\n"
    )


def test_the_result_may_stand_in_a_template_as_it_is() -> None:
    assert isinstance(markup("x"), Markup)
    assert isinstance(markup("x" * 200_000), Markup)
    assert markup(Markup("<b>")) == "<p>&lt;b&gt;</p>\n"


def test_headings_stay_below_those_of_the_page() -> None:
    html = markup("# 1\n\n## 2\n\n### 3\n\n#### 4\n\n##### 5\n\n###### 6\n\nunder\n===")
    assert re.findall(r"<(h\d)>", html) == ["h3", "h4", "h5", "h6", "h6", "h6", "h3"]
    assert re.findall(r"</(h\d)>", html) == ["h3", "h4", "h5", "h6", "h6", "h6", "h3"]


def test_lists_quotes_and_emphasis() -> None:
    html = markup("1. a\n2. *b*\n\n> **c** ~~d~~\n\n- [ ] e\n- [x] f\n\n---\n\n7. g")
    assert "<ol><li>a</li>\n<li><em>b</em></li>\n</ol>" in html
    assert "<blockquote><p><strong>c</strong> <s>d</s></p>\n</blockquote>" in html
    assert "<li>[ ] e</li>\n<li>[x] f</li>" in html
    assert '<hr>\n<ol start="7"><li>g</li>' in html


def test_lines_end_where_they_were_ended() -> None:
    assert markup("a\nb  \nc\\\nd") == "<p>a<br>\nb<br>\nc<br>\nd</p>\n"


def test_a_table_scrolls_by_itself_and_is_aligned_by_classes() -> None:
    html = markup("|a|b|c|d|\n|-|:-|:-:|-:|\n|1|2|3|4|")
    assert html.startswith('<div class="table" tabindex="0" role="region" aria-label="Table"><table>')
    assert '<td>1</td><td class="left">2</td><td class="center">3</td><td class="right">4</td>' in html
    assert html.endswith("</table></div>\n")
    assert "style" not in html


@pytest.mark.parametrize(
    ("info", "attribute"),
    [
        ("python", ' class="language-python"'),
        ("C++ copy", ' class="language-c++"'),
        ("c#", ' class="language-c#"'),
        ("", ""),
        ("a.b", ""),
        ("x" * 41, ""),
        ("пример", ""),
        ("&#97;", ""),
    ],
)
def test_code_says_its_language(info: str, attribute: str) -> None:
    assert markup(f"```{info}\na < b\n```") == f"<pre><code{attribute}>a &lt; b\n</code></pre>\n"


@pytest.mark.parametrize(
    ("source", "href"),
    [
        ("[x](https://a.example/b?c=1&d=2#e)", "https://a.example/b?c=1&amp;d=2#e"),
        ("[x](http://localhost:8642/)", "http://localhost:8642/"),
        ("[x](http://[::1]:80/)", "http://[::1]:80/"),
        ("[x](HTTPS://a.example)", "HTTPS://a.example"),
        ("[x](https://münchen.example/ä)", "https://xn--mnchen-3ya.example/%C3%A4"),
        ("[x](<https://a.example/b c>)", "https://a.example/b%20c"),
        ("[x](mailto:ada@a.example?subject=Hi&body=There)", "mailto:ada@a.example?subject=Hi&amp;body=There"),
        ("[x][1]\n\n[1]: https://a.example 'title'", "https://a.example"),
        ("<https://a.example>", "https://a.example"),
        ("<ada@a.example>", "mailto:ada@a.example"),
    ],
)
def test_links_that_work(source: str, href: str) -> None:
    assert f'<a href="{href}" rel="{REL}">' in markup(source)


@pytest.mark.parametrize(
    "source",
    ["[x](/api/stop)", "[x](//a.example)", "[x](x.html)", "[x](ftp://a.example)", "[x](https://u@a.example)"],
)
def test_what_is_no_link_is_shown_as_it_was_written(source: str) -> None:
    assert markup(source) == f"<p>{source}</p>\n"


@pytest.mark.parametrize(
    ("source", "url", "after"),
    [
        ("see https://a.example/b_c_d.", "https://a.example/b_c_d", "."),
        ("see (https://a.example/x_(y)), ok", "https://a.example/x_(y)", "), ok"),
        ("**https://a.example/__init__.py**", "https://a.example/__init__.py", "</strong>"),
        ("https://a.example/**b*c", "https://a.example/**b*c", ""),
        ("Really? http://localhost:8642?!", "http://localhost:8642", "?!"),
        ("“https://a.example/ä”", "https://a.example/ä", "”"),
        ("https://a.example、b", "https://a.example", "、b"),
        ("|a|\n|-|\n|https://a.example/|", "https://a.example/", "</td>"),
        ("mailto:ada@a.example, ok", "mailto:ada@a.example", ", ok"),
        ("[https://a.example]", "https://a.example", "]"),
    ],
)
def test_a_bare_url_is_a_link(source: str, url: str, after: str) -> None:
    assert f">{url}</a>{after}" in markup(source)


@pytest.mark.parametrize(
    "source",
    [
        "a.example www.a.example //a.example",
        "ada@a.example",
        "ftp://a.example",
        "xhttps://a.example",
        "https://",
        "https:// a",
        "`https://a.example`",
        "http\\://a.example",
        "https://a.example/" + "x" * 2_000,
    ],
)
def test_only_an_explicit_url_is_a_link(source: str) -> None:
    assert "<a" not in markup(source)


@pytest.mark.parametrize(
    "text",
    [
        "https://bank.example",
        "http://good.example/a",
        "bank.example",
        "www.bank.example",
        "go to bank.example now",
        "**bank**.example",
        "`bank.example`",
        "bank&#46;example",
        "bank．example",
        "bank。example",
        "bank.\u200dexample",
        "b\u00adank.example",
        "good.example.bank.example",
        "good.example@bank.example",
        "https://good.example/other",
        "goоd.example",
        "ada@bank.example",
        "127.0.0.1",
        "![bank.example](https://good.example)",
    ],
)
def test_a_link_that_claims_another_destination_tells_the_real_one(text: str) -> None:
    assert markup(f"[{text}](https://good.example/page)").endswith("</a> (https://good.example/page)</p>\n")


@pytest.mark.parametrize(
    "text",
    [
        "here",
        "Chapter 3.14, e.g. the first... and so on: yes/no",
        "good.example",
        "Good.example",
        "www.good.example",
        "https://good.example",
        "https://good.example/page",
        "https://good.example/page/",
        "good.example/page",
        "(good.example)",
        "see good.example: page",
    ],
)
def test_an_honest_link_stands_alone(text: str) -> None:
    assert markup(f"[{text}](https://good.example/page?a=1)").endswith("</a></p>\n")


def test_an_address_is_compared_as_a_whole() -> None:
    assert markup("[ada@a.example](mailto:ada@a.example)").endswith("</a></p>\n")
    assert markup("[ada@a.example](mailto:eve@a.example)").endswith("</a> (mailto:eve@a.example)</p>\n")


def test_a_host_of_look_alike_letters_shows_its_real_name() -> None:
    assert markup("https://аррӏе.example").endswith("</a> (https://xn--80ak6aa92e.example)</p>\n")


@pytest.mark.parametrize("text", ["", " ", "\u200d"])
def test_a_link_without_text_shows_its_destination(text: str) -> None:
    assert text_of(f"[{text}](https://a.example)").strip("\u200d") == "https://a.example"


def test_an_image_is_a_link_and_never_loads() -> None:
    assert markup("![a *b*](https://a.example/x.png 'title')") == (
        f'<p><a href="https://a.example/x.png" rel="{REL}">image: a b</a></p>\n'
    )
    assert ">image</a>" in markup("![](https://a.example/x.png)")
    assert text_of("![a](x.png)") == "![a](x.png)"


def test_an_image_in_a_link_is_its_text() -> None:
    assert markup("[![a](https://b.example)](https://a.example)") == (
        f'<p><a href="https://a.example" rel="{REL}">image: a</a></p>\n'
    )


def test_unseen_characters_are_written_out_wherever_they_stand() -> None:
    source = "a\x00\u202e&#x202e; `\u2066`\n\n    \x1b[0m\n\n[\u200b](https://a.example/\u202e) 👩‍👩‍👧 \u200c"
    shown = text_of(source)
    assert shown.startswith("a\\x00\\u202e\\u202e \\u2066 \\x1b[0m")
    assert "👩‍👩‍👧 \u200c" in shown


# -- what would take long --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source",
    [
        "x <b>y\n" * 12_501,
        "a\n" * 5_001,
        "*" * 20_001,
        ">" * 10_000 + "deep",
        "- " * 12 + "deep",
        "> " * 19 + "1. deep",
        "|a" * 20 + "\n" + "|-" * 20 + "\n" + "x\n" * 2_000,
        f"[a]: https://a.example/{'x' * 1_900}\n\n" + "[a] " * 500,
    ],
    ids=["long", "lines", "marks", "quotes", "list", "both", "cells", "references"],
)
def test_what_is_unwieldy_is_shown_whole_as_it_is(source: str) -> None:
    html = markup(source)
    assert html.startswith('<pre class="plain">')
    reader = read(html)
    assert reader.wrong == []
    assert reader.text == source + "\n"


def test_nine_levels_of_a_list_are_taken_apart() -> None:
    assert markup("- " * 9 + "deep").count("<ul>") == 9


@pytest.mark.parametrize("cell", ["a", "*a*", ""])
def test_a_long_table_is_a_table(cell: str) -> None:
    assert markup("|a|b|\n|-|-|\n" + f"|{cell}|b|\n" * 2_000).count("<tr>") == 2_001


SLOW = {
    "quotes": ">",
    "brackets": "[",
    "both brackets": "[]",
    "stars": "*",
    "stars and letters": "*a _b ",
    "backticks": "`",
    "code": "`a",
    "images": "![",
    "links": "[a](b",
    "titles": '[a](http://b "',
    "destinations": "[a](<",
    "autolinks": "<http:",
    "html": "<!--",
    "entities": "&#x202e;",
    "fences": "```\n",
    "lists": "- ",
    "list items": "- a\n+ b\n",
    "definitions": "[a]: 'b\n",
    "table": "|a",
    "tables": "|a|\n|-|\n",
    "schemes": "http:",
    "urls": "http://",
    "bad urls": "http://é@",
    "addresses": "mailto:",
    "hosts": "http://a.b",
    "unseen": "\u202e",
}


@pytest.mark.parametrize("length", [20_000, 100_000])
@pytest.mark.parametrize("name", SLOW)
def test_no_text_takes_long(name: str, length: int) -> None:
    source = (SLOW[name] * length)[:length]
    began = time.thread_time()
    html = markdown._markup(source)
    assert time.thread_time() - began < 3  # on an idle machine half a second
    assert read(html).wrong == []


def test_what_was_made_once_is_not_made_again() -> None:
    assert markup("the *same* text") is markup("the " + "*same* text")
    assert markup("x" * 20_001) is markup("x" * 20_001)
    for cache in (markdown._cached, markdown._cached_long):
        assert cache.cache_info().maxsize is not None
