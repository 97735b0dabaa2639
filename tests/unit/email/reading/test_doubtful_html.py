"""HTML without a text beside it: what may hide or change a word decides nothing."""

from __future__ import annotations

import pytest
from pizzabot.adapters.email.reading.own import own_text

from .replies_of_programs import OURS

_STYLES = r"""
display:/**/none | d\69splay:none | opacity:.0 | opacity:0.01 | opacity:1% | font-size:0vw | font-size:1%
font-size:.1em | font:0/0 a | font:1px/1 Arial | color:rgb(255 255 255) | color:rgba(0,0,0,0)
color:rgb(0 0 0/0) | color:hsl(0,0%,100%) | color:hsla(0,0%,0%,0) | color:snow | color:ivory | color:#eee
color:#0000 | color:#00000000 | color:lightyellow | -webkit-text-fill-color:transparent
max-width:0;overflow:hidden | height:1px;overflow:hidden | line-height:0 | position:absolute;right:-9999px
margin:-9999px | text-indent:-99em | text-indent:200% | clip:rect(1px,1px,1px,1px) | clip-path:inset(100%)
transform:scaleX(0) | transform:translateX(-9999px) | scale:0 | zoom:0 | filter:opacity(0)
background:black;color:black | background-color:#123;color:#123 | letter-spacing:-1em
mix-blend-mode:screen | unicode-bidi:bidi-override;direction:rtl | mask:linear-gradient(transparent,red)
"""
_SHEETS = r"""
.x,.z{display:none} | .x p{display:none} | .x>p{display:none} | p{display:none} | *{display:none}
.x:not(.q){display:none} | [class=x]{display:none} | .x{opacity:0} | .x{color:#fff} | .x{color:snow}
.x{font-size:1px} | .x{height:0;overflow:hidden} | .x{position:absolute;left:-9999px}
.x{/*a{b}*/display:none} | .x/**/{display:none} | .x{color:transparent} | @media all{p{display:none}}
.\78{display:none} | .x::before{content:"Do not "} | p:after{content:' not'}
"""
_AROUND = """
<details>{}</details> | <dialog>{}</dialog> | <video>{}</video> | <canvas>{}</canvas> | <rp>{}</rp>
<noframes>{}</noframes> | <bdo dir=rtl>{}</bdo> | {}<textarea>not</textarea> | {}<noscript>not</noscript>
{}<object>not</object> | {}<input value=not> | {}<svg><text>not</text></svg> | {}<iframe srcdoc=not></iframe>
{}<div hidden>not</div> | <span hidden>Do not </span>{} | {}<span style='color:#fff'>not</span>
<body text=white>{}</body> | <font color='#fefefe'>{}</font>
"""
_OF_PROGRAMS = {
    "Outlook": """<style>p.MsoNormal, li.MsoNormal { margin:0cm; font-size:11.0pt } a:link { color:#0563C1 }
        span.EmailStyle17 { mso-style-type:personal-reply; color:windowtext } ol { margin-bottom:0cm }
        .MsoChpDefault { font-size:10.0pt } @page WordSection1 { margin:70.85pt }</style>
        <div class=WordSection1>
        <p class=MsoNormal><span style="font-size:11.0pt;color:#1F497D">Approve<o:p></o:p></span></p>
        </div>""",
    "Apple Mail": """<div style="caret-color: rgb(0, 0, 0); color: rgb(0, 0, 0); letter-spacing: normal;
        text-indent: 0px; text-transform: none; -webkit-text-stroke-width: 0px">Approve</div>""",
    "a web mail": """<div style="font:400 14px/20px Arial;border-left-width:1px;border-width:0;opacity:1;
        zoom:1;
        color:rgba(0,0,0,.87);line-height:1">Approve</div>""",
    "a list of Word": '<p style="margin-left:36.0pt;text-indent:-18.0pt;font-size:85%">Approve</p>',
    "a preheader in the quote": """<div>Approve</div><blockquote type="cite"><div style="display:none">Not
        </div></blockquote>""",
    "our sheet above the quote": """<style>@media (prefers-color-scheme: dark) { .ink { color: #f1ede4 } }
        </style><div>Approve</div><blockquote type="cite"><div class="ink">What?</div></blockquote>""",
    "a dark theme": '<body style="background:#1f1f1f;color:#e8e8e8"><div>Approve</div></body>',
    "a pixel": '<div hidden> </div><img width=1 height=1 alt="" src="x">Approve',
}


def each(table: str) -> list[str]:
    return [entry for line in table.strip().splitlines() for entry in line.split(" | ")]


@pytest.mark.parametrize(
    "html",
    [
        *(f"<p style='{style}'>Approve</p>" for style in each(_STYLES)),
        *(f"<style>{sheet}</style><div class=x><p>Approve</p></div>" for sheet in each(_SHEETS)),
        *(around.format("Approve") for around in each(_AROUND)),
        "<img alt='👍' width=1 height=1 src='x'>",
    ],
)
def test_html_that_may_hide_or_change_a_word_decides_nothing_alone(html: str) -> None:
    found = own_text([], [html], OURS)
    assert not (found.agrees and found.text)


@pytest.mark.parametrize("html", [pytest.param(html, id=name) for name, html in _OF_PROGRAMS.items()])
def test_html_as_mail_programs_write_it_decides_alone(html: str) -> None:
    found = own_text([], [html], OURS)
    assert (found.text, found.agrees) == ("Approve", True)


def test_what_is_hidden_does_not_matter_where_the_text_says_what_is_seen() -> None:
    html = "<p>Approve</p><div style='display:none'>sent by an app</div>"
    assert own_text(["Approve"], [html], OURS).agrees
