"""What does a home need so that everything can be tried offline, and what is worth trying?"""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

# Each leads to one tool of the expenses server; a test proves it.
TRY = [
    "Please file an expense of 42.50 EUR for a taxi to the airport, tagged travel",
    "I paid $18 for lunch with a customer yesterday",
    "Show my expenses",
    "How much did I spend?",
]

# Domains of nobody (RFC 2606 §2); the second one is what the mail server of the first would call itself.
ADDRESS, PERSON, AUTHSERV = "pizza@demo.example", "you@demo.example", "mx.demo.example"
MAIL = "mail"  # the folder of the home where outgoing mail ends

_SETTINGS = """\
# For trying Pizza Bot offline: a planner stands in for the language model, nothing leaves this machine.
model = "demo:offline"

[[people]]
name = {owner}
role = "owner"
emails = ["{person}"]

[web]
port = 8642

# Mail comes in through a door on this machine; what goes out becomes files in the folder mail beside this.
[email]
address = "{address}"
trusted_authserv_ids = ["{authserv}"]

[email.listen]
port = 8025

[email.smtp]
host = "127.0.0.1"
port = 8026
security = "none"
"""


def write_demo_home(path: Path, python: str, owner: str = "Ada") -> None:
    """Write the files of a demo home that are not there yet; what is there is never changed.

    Args:
        path: the home directory, made if absent.
        python: the Python that runs the expenses server.
        owner: the name of the one person.
    """
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    # JSON strings are TOML strings as long as they stay ASCII.
    _write_new(path / "pizzabot.toml", _settings(owner))
    _write_new(path / ".mcp.json", json.dumps(_servers(path, python), indent=2) + "\n")
    _write_new(path / "expenses.csv", _starter_book(datetime.now(UTC).date()))


def _settings(owner: str) -> str:
    return _SETTINGS.format(owner=json.dumps(owner), person=PERSON, address=ADDRESS, authserv=AUTHSERV)


def _write_new(path: Path, text: str) -> None:
    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        return
    path.chmod(0o600)


def _servers(home: Path, python: str) -> dict[str, object]:
    expenses = {
        "command": python,
        "args": ["-m", "pizzabot.demo.expenses_server"],
        "env": {"EXPENSES_BOOK": str(home.resolve() / "expenses.csv")},
    }
    return {"mcpServers": {"expenses": expenses}}


def _starter_book(today: date) -> str:
    entries = [
        (9, "12.40", "EUR", "lunch with the team", "food"),
        (5, "63.00", "EUR", "train to Utrecht", "travel"),
        (2, "19.99", "USD", "book on SQLite", "books work"),
    ]
    lines = ["date,amount,currency,note,tags,filed_at"]
    for days_ago, amount, currency, note, tags in entries:
        day = today - timedelta(days=days_ago)
        lines.append(f"{day},{amount},{currency},{note},{tags},{day}T18:00:00+00:00")
    return "\n".join(lines) + "\n"
