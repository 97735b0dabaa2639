"""Which commands are there, and what does `pizzabot --help` say?

One table for the help, the parser and the test of docs/commands.md. It imports nothing, so that help costs no
more than starting Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Command(NamedTuple):
    """One command: its words, `module:function` inside `pizzabot.cli`, and what it does in one line."""

    words: str
    target: str
    summary: str


SECTIONS: tuple[tuple[str, tuple[Command, ...]], ...] = (
    (
        "Start",
        (
            Command("serve", "serve:serve", "Run the server until it is told to end."),
            Command("demo", "demo:demo", "Run a server to try things with, offline, with a demo model."),
            Command("open", "house:open_web", "Print a link that opens the inbox in a browser, once."),
            Command("init", "setup:init", "Make a home with a commented pizzabot.toml."),
            Command("doctor", "doctor:doctor", "Check everything that is configured and say how to cure it."),
        ),
    ),
    (
        "Work",
        (
            Command("ask", "ask:ask", "Hand over a piece of work and wait for the answer."),
            Command("inbox", "inbox:inbox", "List threads: all, unread, or those that wait for a decision."),
            Command("show", "inbox:show", "Show a thread: messages, what waits, what was done."),
            Command("read", "threads:read", "Mark a thread as read."),
            Command("archive", "threads:archive", "Take a thread out of the inbox."),
            Command("rename", "threads:rename", "Give a thread another title."),
            Command("fork", "threads:fork", "Go on from an earlier message in a new thread."),
            Command("delete", "threads:delete", "Delete a thread with everything in it."),
        ),
    ),
    (
        "Decide",
        (
            Command("approve", "decisions:approve", "Let a tool run with the arguments that are shown."),
            Command("edit", "decisions:edit", "Let a tool run with changed arguments."),
            Command("reject", "decisions:reject", "Do not let a tool run."),
            Command("respond", "decisions:respond", "Answer in place of the tool."),
            Command("resolve", "decisions:resolve", "Say what became of a call whose outcome is unknown."),
            Command("snooze", "decisions:snooze", "Put an action off until a time."),
            Command("reopen", "decisions:reopen", "Make an expired action pending again."),
        ),
    ),
    (
        "Steer",
        (
            Command("stop", "steering:stop", "Stop a thread's run, or everything with --all."),
            Command("resume", "steering:resume", "Undo stop --all."),
            Command("retry", "steering:retry", "Go on with a failed or stopped run."),
        ),
    ),
    (
        "Look after",
        (
            Command("status", "house:status", "Show how the server and everything it talks to is."),
            Command("usage", "house:usage", "Show tokens and dollars for each person and model."),
            Command("audit", "house:audit", "Show what happened, or verify that nothing was changed."),
            Command("retention", "retention:retention", "Remove what is old enough, or count it."),
            Command("compact", "retention:compact", "Give the disk back that deleted data took."),
            Command("skills list", "house:skills_list", "List the skills, ready or why not."),
            Command("skills show", "house:skills_show", "Show one skill."),
            Command("skills enable", "house:skills_enable", "Switch a skill on."),
            Command("skills disable", "house:skills_disable", "Switch a skill off, also after a restart."),
            Command("skills check", "setup:skills_check", "Check a SKILL.md before it is used."),
            Command("triggers list", "triggers:listing", "List what starts work by itself, and when."),
            Command("triggers show", "triggers:show", "Show a trigger and what became of its firings."),
            Command("triggers add", "triggers:add", "Make a trigger: a schedule, or a webhook."),
            Command("triggers edit", "triggers:edit", "Change a trigger, or switch it on or off."),
            Command("triggers remove", "triggers:remove", "Remove a trigger."),
            Command("triggers run", "triggers:run", "Let a trigger fire once, now."),
            Command("triggers next", "upcoming:upcoming", "Print when a schedule fires next."),
            Command("mcp list", "house:mcp_list", "List the MCP servers and how they are."),
            Command("mcp tools", "house:mcp_tools", "List the tools of one server, or of all."),
            Command(
                "slack manifest", "setup:slack_manifest", "Print the manifest to make the Slack app from."
            ),
            Command("mcp reconnect", "house:mcp_reconnect", "Connect to an MCP server anew."),
            Command("backup", "setup:backup", "Copy the home into one file, also while the server runs."),
            Command("restore", "setup:restore", "Fill an empty home from a backup."),
            Command("migrate", "setup:migrate", "Bring the database to this version's tables."),
            Command("token", "setup:token", "Print a new API token for a person."),
            Command("version", "setup:version", "Print the version."),
        ),
    ),
)

COMMANDS = tuple(row for _, rows in SECTIONS for row in rows)
GROUPS = {
    "skills": "Skills: what the agent can be asked to do.",
    "triggers": "Triggers: what starts work by itself.",
    "mcp": "MCP servers: where tools come from.",
    "slack": "Slack: the app that people talk to.",
}

_HEAD = """\
Usage: pizzabot [--home DIR] COMMAND [ARGUMENTS]

An inbox for background AI agents: hand work over, walk away, decide what needs a decision.
"""
_FOOT = """\
Options
  --home DIR       The home directory; else PIZZABOT_HOME, else ~/.pizzabot. Also after the command.
  --version        Print the version.
  --help           Print this, or with a command what that command takes.

Exit codes: 0 done, 1 failed or refused, 2 wrong usage, 3 the server is not running.
"""


def help_text() -> str:
    """What `pizzabot --help` prints."""
    parts = [_HEAD]
    for title, rows in SECTIONS:
        lines = "".join(f"  {row.words:<16} {row.summary}\n" for row in rows)
        parts.append(f"{title}\n{lines}")
    return "\n".join([*parts, _FOOT])


def quick_answer(arguments: Sequence[str]) -> str | None:
    """The answer to `--help`, `--version` and no argument at all; None when a command has to run."""
    arguments = home_behind(arguments)
    if not arguments or arguments[0] in ("--help", "-h"):
        return help_text()
    if list(arguments) in (["--version"], ["version"]):
        from pizzabot import __version__

        return f"pizzabot {__version__}\n"
    return None


def home_behind(arguments: Sequence[str]) -> list[str]:
    """`--home DIR` before the command moved behind it, where every command knows the option.

    A group has no command of its own: what stands between it and its command is moved as well, and for the
    group's own `--help` it stays with the group.
    """
    moved, words = _leading_home(list(arguments))
    group = words[:1] if words and words[0] in GROUPS else []
    if group:
        nearer, rest = _leading_home(words[1:])
        moved, words = nearer or moved, [*group, *rest]
    if moved == ["--home"]:
        return [*group, *moved]  # without its value: the parser says so
    if not moved or len(words) <= len(group) or (not group and words[0].startswith("-")):
        return words
    depth = len(group) if words[len(group)].startswith("-") else len(group) + 1
    return [*words[:depth], *moved, *words[depth:]]


def _leading_home(words: list[str]) -> tuple[list[str], list[str]]:
    """The last `--home DIR` of those that `words` begins with, and what comes after them."""
    found: list[str] = []
    while words and words[0].partition("=")[0] == "--home":
        length = 1 if "=" in words[0] else 2
        found, words = words[:length], words[length:]
    return found, words
