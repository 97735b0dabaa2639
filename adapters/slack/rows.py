"""What does a thread look like in a list, on the Home tab and as the answer to a command? Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pizzabot.text import visible

from .blocks import Block, leaf, rich_section, rich_text, shortened


def row(thread: Mapping[str, Any], *, person: str) -> Block:
    """A thread as `pizzabot.reports` gives it, with the `link` that leads to it, for a person."""
    title = shortened(visible(str(thread["title"])), 150) or "(no title)"
    facts = [str(thread["state"])] if thread["state"] != "idle" else []
    if thread["owner"] != person:
        facts.append(shortened(visible(str(thread["owner"])), 80))
    if thread.get("action_count"):
        facts.append(f"{thread['action_count']} to decide")
    excerpt = thread.get("hit", {}).get("excerpt") or thread["last_message"]
    told = "".join(f" · {fact}" for fact in facts) + f"\n{shortened(visible(str(excerpt)), 160)}"
    return rich_text(rich_section({"type": "link", "url": thread["link"], "text": title}, leaf(told)))
