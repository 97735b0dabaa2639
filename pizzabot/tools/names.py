"""What is a tool called in front of the model? Providers accept 64 letters, digits, `_` and `-` only."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable
from hashlib import sha256

LONGEST = 64


def model_name(full_name: str, taken: Collection[str] = ()) -> str:
    """A name for the tool that is not in `taken`: `<tool>`, else `<server>_<tool>`, else with a hash."""
    for name in _candidates(full_name):
        if len(name) <= LONGEST and name not in taken:
            return name
    attempt = 0
    while (name := _hashed(full_name, attempt)) in taken:
        attempt += 1
    return name


def model_names(full_names: Iterable[str], reserved: Collection[str] = ()) -> dict[str, str]:
    """Full name -> model name: no two alike, none in `reserved`, whatever the order of the input."""
    distinct = sorted(set(full_names))
    uses = Counter(_candidates(full_name)[0] for full_name in distinct)
    shared = {name for name, count in uses.items() if count > 1}
    taken = shared.union(reserved)
    names = {}
    # Tools with a short name of their own choose first, so that no `<server>_<tool>` takes it from them.
    for full_name in sorted(distinct, key=lambda full_name: (_candidates(full_name)[0] in shared, full_name)):
        names[full_name] = model_name(full_name, taken)
        taken.add(names[full_name])
    return names


def _candidates(full_name: str) -> tuple[str, str]:
    kind, _, rest = full_name.partition(":")
    server, colon, tool = rest.partition(":")
    if kind == "mcp" and colon and tool:
        return _clean(tool), _clean(f"{server}_{tool}")
    return _clean(rest or full_name), _clean(full_name)


def _clean(text: str) -> str:
    cleaned = re.sub(r"[^a-zA-Z0-9_-]", "_", text)
    # Some providers want a letter or an underscore in front.
    return cleaned if re.match(r"[a-zA-Z_]", cleaned) else f"_{cleaned}"


def _hashed(full_name: str, attempt: int) -> str:
    digest = sha256(f"{attempt}:{full_name}".encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{_candidates(full_name)[1][: LONGEST - 9]}_{digest}"
