"""What do people, models and servers write that would like to be more than text? Nothing of it may come true.

Whatever of it ran would set `window.__xss`, open a dialog, or ask elsewhere.example for something.
"""

from __future__ import annotations

from typing import Any

SCRIPT = "<script>window.__xss=1;alert(1)</script>"
CORPUS = (
    SCRIPT,
    '"><img src=x onerror="window.__xss=2">',
    "'><svg/onload=window.__xss=3>",
    "</title></textarea></style></pre></code><script>window.__xss=4</script>",
    '<iframe srcdoc="<script>parent.__xss=5</script>"></iframe>',
    "<details open ontoggle=window.__xss=6><summary>x</summary></details>",
    "<input autofocus onfocus=window.__xss=7>",
    '<meta http-equiv="refresh" content="0;url=https://elsewhere.example/">',
    '<link rel=stylesheet href="https://elsewhere.example/x.css">',
    '<style>@import "//elsewhere.example/y"; * { background: url(//elsewhere.example/z) }</style>',
    '<base href="https://elsewhere.example/"><form action="https://elsewhere.example/"><button>Approve</button>',
    "[click](javascript:window.__xss=8) [data](data:text/html,<script>window.__xss=9</script>)",
    "![seen](https://elsewhere.example/seen.png) <https://elsewhere.example/>",
    '[ref][r]\n\n[r]: javascript:window.__xss=10 "x"',
    '[t](https://elsewhere.example/"onmouseover="window.__xss=11)',
    '<a href=javascript:window.__xss=12>x</a> <a href="&#106;avascript:window.__xss=13">y</a>',
    '```"><script>window.__xss=14</script>\n</code></pre><script>window.__xss=15</script>\n```',
    "| a | b |\n|---|---|\n| <script>window.__xss=16</script> | `</td><script>window.__xss=17</script>` |",
    "{{ 7*7 }} {% raw %} ${window.__xss=18} <%= 1 %>",
    "\u202e<script>window.__xss=19</script>\u2066 \x1b]8;;javascript:window.__xss=20\x1b\\x\x07",
    '<math><mtext><table><mglyph><style><!--</style><img title="--><img src=1 onerror=window.__xss=21>">',
)
ALL = "\n\n".join(CORPUS)

ODD_NAME = '"><img src=x onerror=window.__xss=30>'
ODD_CHOICE = "<script>window.__xss=31</script>"
# A server that describes its tools as maliciously as it can.
ODD_TOOL: dict[str, Any] = {
    "name": "odd",
    "title": SCRIPT,
    "description": ALL,
    "inputSchema": {
        "type": "object",
        "properties": {
            ODD_NAME: {
                "type": "string",
                "description": ALL,
                "pattern": ".*|</p><script>window.__xss=32</script>",
            },
            "choice": {"enum": [ODD_CHOICE, '" selected onfocus=window.__xss=33 autofocus x="']},
            "long": {"type": "string"},
            "list": {"type": "array", "items": {"type": "string"}},
            "json": {"type": "object"},
        },
        "required": [ODD_NAME],
    },
    "annotations": {"title": SCRIPT, "readOnlyHint": False},
}
ODD_ARGS: dict[str, Any] = {
    ODD_NAME: '" autofocus onfocus="window.__xss=34',
    "choice": ODD_CHOICE,
    "long": f"</textarea>{SCRIPT}\n{ALL}",
    "list": [SCRIPT, '"><svg onload=window.__xss=35>'],
    "json": {SCRIPT: [SCRIPT]},
    SCRIPT: SCRIPT,
}
ODD_SKILL = f"""---
name: odd
description: '{SCRIPT.replace("'", "''")} "><img src=x onerror=window.__xss=36>'
tools: "mcp:ledger:odd"
metadata:
  display-name: '<b onclick=alert(1)>odd</b>'
---
{SCRIPT}
"""
