"""Which skill counts, can it be called now, with which tools, behind which gate?"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from pizzabot.skills.catalogue import (
    Readiness,
    Skill,
    SkillCatalogue,
    SkillRoot,
    builtin_root,
    discover,
    gate_for,
    listed,
    readiness,
    resolved_tools,
)
from pizzabot.skills.frontmatter import parse_skill

PUBLIC = Path(__file__).parents[2] / "corpus" / "skills" / "public"

COMMANDS = {
    *("serve", "demo", "init", "doctor", "open", "ask", "inbox", "show", "approve", "reject", "edit", "read"),
    *("stop", "resume", "retry", "triggers", "skills", "mcp", "plugins", "memory", "folders", "grants"),
    *("usage", "audit", "backup", "restore", "migrate", "slack", "token"),
}

TOOLS = {
    name: object()
    for name in ("mcp:ledger:list", "mcp:ledger:pay_all", "mcp:ledger:pay_one", "mcp:wiki:read")
}
STATES = {"ledger": "connected", "wiki": "connected"}


def write(root: Path, folder: str, header: str = "", name: str = "x", description: str = "y") -> Path:
    path = root / folder / "SKILL.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"---\nname: {name}\ndescription: {description}\n{header}---\nBody of {root.name}\n")
    return path


def skill(header: str = "", *, disabled: bool = False) -> Skill:
    path = Path("/skills/expenses/SKILL.md")
    content = parse_skill(f"---\nname: expenses\ndescription: Files expenses.\n{header}---\n".encode(), path)
    return Skill("expenses", "home", path, content, disabled=disabled)


def found(catalogue: SkillCatalogue, skill_id: str) -> Skill:
    entry = catalogue.get(skill_id)
    assert entry is not None
    return entry


@pytest.fixture
def roots(tmp_path: Path) -> list[SkillRoot]:
    """In the wrong order on purpose."""
    sources = ("builtin", "plugin:acme", "home", "plugin:zeta")
    roots = [SkillRoot(tmp_path / source.replace(":", "-"), source) for source in sources]
    for root in roots:
        root.path.mkdir()
    return roots


# Discovery


def test_the_home_goes_before_plugins_before_what_is_built_in(roots: list[SkillRoot]) -> None:
    paths = {root.source: write(root.path, "guide") for root in roots}
    write(roots[0].path, "only-built-in")
    write(roots[1].path, "twice"), write(roots[3].path, "TWICE")
    catalogue = discover(roots)
    assert [(s.id, s.source) for s in catalogue.skills] == [
        ("guide", "home"),
        ("only-built-in", "builtin"),
        ("twice", "plugin:acme"),
    ]
    assert found(catalogue, "guide").shadowed == (
        paths["plugin:acme"],
        paths["plugin:zeta"],
        paths["builtin"],
    )


def test_a_broken_skill_covers_a_working_one_since_that_may_lack_the_gate(roots: list[SkillRoot]) -> None:
    write(roots[0].path, "pay")
    path = write(roots[2].path, "pay", "interruptOn:\n  mcp:a:b: ture\n")
    entry = found(discover(roots), "pay")
    assert (entry.content, entry.path, entry.line) == (None, path, 5)
    assert entry.reason == "interruptOn.mcp:a:b: must be true, false or allowedDecisions: […]"


def test_every_broken_skill_is_listed_with_file_line_and_reason(tmp_path: Path) -> None:
    write(tmp_path, "good")
    (tmp_path / "latin").mkdir()
    (tmp_path / "latin" / "SKILL.md").write_bytes(b"---\nname: caf\xe9\n---\n")
    write(tmp_path, "nameless", name="")
    (tmp_path / "lower").mkdir()
    (tmp_path / "lower" / "skill.md").write_text("x")
    catalogue = discover([SkillRoot(tmp_path, "home")])
    assert [(s.id, s.path.name, s.line, s.reason) for s in catalogue.broken] == [
        ("latin", "SKILL.md", 2, "is not UTF-8 text; save it as UTF-8"),
        ("lower", "skill.md", None, "must be named SKILL.md in capitals"),
        ("nameless", "SKILL.md", 2, "name: is missing; add name: …"),
    ]


def test_folders_without_a_skill_and_hidden_ones_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "README.md").write_text("x")
    write(tmp_path, ".git")
    assert discover(
        [SkillRoot(tmp_path, "home"), SkillRoot(tmp_path / "absent", "plugin")]
    ) == SkillCatalogue(())


def test_a_public_collection_is_found_whole(tmp_path: Path) -> None:
    catalogue = discover([SkillRoot(PUBLIC, "home")])
    assert {s.id for s in catalogue.skills} == {path.name for path in PUBLIC.iterdir()}
    assert not catalogue.broken
    assert catalogue.get("deep") is None  # a SKILL.md further down belongs to the skill around it


@pytest.mark.parametrize("what", ["folder", "file"])
def test_a_link_that_leads_out_of_the_root_is_not_followed(tmp_path: Path, what: str) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    write(outside, "loot")
    if what == "folder":
        (root / "loot").symlink_to(outside / "loot")
    else:
        (root / "loot").mkdir()
        (root / "loot" / "SKILL.md").symlink_to(outside / "loot" / "SKILL.md")
    entry = found(discover([SkillRoot(root, "home")]), "loot")
    assert (entry.content, entry.reason) == (
        None,
        "is a link that leads out of the skills folder; copy the skill in",
    )


def test_a_link_inside_the_root_and_a_linked_root_are_followed(tmp_path: Path) -> None:
    write(tmp_path / "checkout", "one")
    (tmp_path / "checkout" / "two").symlink_to("one")
    (tmp_path / "root").symlink_to("checkout")
    catalogue = discover([SkillRoot(tmp_path / "root", "home")])
    assert [s.id for s in catalogue.skills if s.content] == ["one", "two"]


def test_a_loop_of_links_is_passed_over_or_listed_and_never_raised(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "SKILL.md").symlink_to("SKILL.md")
    assert [s.id for s in discover([SkillRoot(tmp_path, "home")]).broken] == ["inner"]


def test_a_root_that_is_a_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "root").write_text("x")
    [unreadable] = discover([SkillRoot(tmp_path / "root", "home")]).unreadable
    assert unreadable.reason == "cannot be read (Not a directory)"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_read_is_reported(tmp_path: Path) -> None:
    write(tmp_path, "secret").parent.chmod(0)
    assert "cannot be read" in (discover([SkillRoot(tmp_path, "home")]).broken[0].reason or "")


def test_a_skill_is_switched_off_by_name_in_any_case(tmp_path: Path) -> None:
    write(tmp_path, "Guide"), write(tmp_path, "other")
    catalogue = discover([SkillRoot(tmp_path, "home")], disabled=["GUIDE"])
    assert [s.disabled for s in catalogue.skills] == [True, False]


# Readiness


@pytest.mark.parametrize("tools", ["", "tools: mcp:ledger:list\n", "tools: mcp:ledger:pay_* mcp:wiki:*\n"])
def test_a_skill_with_all_its_tools_is_ready(tools: str) -> None:
    assert readiness(skill(tools), TOOLS, STATES) == Readiness("ready")


@pytest.mark.parametrize(
    ("tools", "states", "reason"),
    [
        ("mcp:crm:find", {}, "there is no MCP server crm; add it to .mcp.json"),
        (
            "mcp:wiki:read",
            {"wiki": "down"},
            'the MCP server wiki is down; see "pizzabot mcp list", then "pizzabot mcp reconnect wiki"',
        ),
        ("mcp:wiki:read", {"wiki": "disabled"}, "the MCP server wiki is disabled; enable it in .mcp.json"),
        (
            "mcp:wiki:read",
            {"wiki": "invalid"},
            'the entry of the MCP server wiki is invalid; "pizzabot doctor" says where',
        ),
        ("mcp:wiki:read", {"wiki": "odd"}, "the MCP server wiki is odd"),
        (
            "mcp:ledger:lisst",
            {},
            "mcp:ledger:lisst is no tool of the MCP server ledger; did you mean mcp:ledger:list?",
        ),
        (
            "mcp:ledger:zzz_*",
            {},
            "mcp:ledger:zzz_* matches no tool of the MCP server ledger; "
            'see "pizzabot mcp tools" for what ledger offers',
        ),
        (
            "builtin:eval",
            {},
            "builtin:eval is not part of this version; remove it from the tools of the skill",
        ),
    ],
)
def test_a_skill_that_lacks_a_tool_is_unavailable_and_says_what_to_do(
    tools: str, states: dict[str, str], reason: str
) -> None:
    found = readiness(skill(f"tools: mcp:ledger:list {tools}\n"), TOOLS, {**STATES, **states})
    assert found == Readiness("unavailable", reason)


def test_a_skill_of_a_server_that_connects_is_loading() -> None:
    found = readiness(skill("tools: mcp:wiki:read\n"), {}, {"wiki": "connecting"})
    assert found == Readiness("loading", "the MCP server wiki is connecting")


def test_what_can_never_work_is_said_while_something_else_is_loading() -> None:
    found = readiness(skill("tools: mcp:wiki:read mcp:crm:find\n"), {}, {"wiki": "connecting"})
    assert found.state == "unavailable"


@pytest.mark.parametrize(
    "gate", ["mcp:ledger:pay_al", "mcp:ledger:send_*", "mcp:wiki:*", "mcp:ledgr:pay_all"]
)
def test_a_gate_that_matches_none_of_its_own_tools_closes_the_skill(gate: str) -> None:
    entry = skill(f"tools: mcp:ledger:pay_*\ninterruptOn:\n  mcp:ledger:pay_one: true\n  {gate}: true\n")
    assert readiness(entry, TOOLS, STATES) == Readiness(
        "unavailable", f"interruptOn names {gate}, which is none of the skill's tools; correct it"
    )


def test_a_disabled_skill_is_disabled_whatever_its_tools() -> None:
    found = readiness(skill("tools: mcp:crm:find\n", disabled=True), TOOLS, STATES)
    assert found == Readiness("disabled", 'switched off; "pizzabot skills enable expenses" switches it on')


def test_a_broken_skill_is_broken_even_when_disabled() -> None:
    entry = Skill("x", "home", Path("x"), None, 3, "why", disabled=True)
    assert readiness(entry, TOOLS, STATES) == Readiness("broken", "why")
    assert (resolved_tools(entry, TOOLS), gate_for(entry, "mcp:ledger:list")) == ((), None)


# Tools and gates


@pytest.mark.parametrize(
    ("declared", "resolved"),
    [
        ("mcp:wiki:read mcp:ledger:list", ("mcp:wiki:read", "mcp:ledger:list")),
        ("mcp:ledger:*", ("mcp:ledger:list", "mcp:ledger:pay_all", "mcp:ledger:pay_one")),
        ("mcp:ledger:pay_one mcp:ledger:pay_*", ("mcp:ledger:pay_one", "mcp:ledger:pay_all")),
        ("mcp:ledger:lis mcp:crm:*", ()),
    ],
)
def test_tools_stand_as_declared_wildcards_sorted_none_twice(
    declared: str, resolved: tuple[str, ...]
) -> None:
    assert resolved_tools(skill(f"tools: {declared}\n"), reversed(TOOLS)) == resolved


def test_the_closest_gate_wins_whatever_the_order() -> None:
    gates = [
        ("mcp:ledger:*", "true"),
        ("mcp:ledger:pay_*", "{allowedDecisions: [approve]}"),
        ("mcp:ledger:pay_one", "false"),
    ]
    for order in (gates, gates[::-1]):
        entry = skill(
            "tools: mcp:ledger:*\ninterruptOn:\n" + "".join(f"  {ref}: {how}\n" for ref, how in order)
        )
        decided = {name: gate_for(entry, name) for name in TOOLS}
        assert {name: str(gate.reference) if gate else None for name, gate in decided.items()} == {
            "mcp:ledger:list": "mcp:ledger:*",
            "mcp:ledger:pay_all": "mcp:ledger:pay_*",
            "mcp:ledger:pay_one": "mcp:ledger:pay_one",
            "mcp:wiki:read": None,
        }


# What the API shows


def test_the_row_of_a_ready_skill() -> None:
    entry = skill("tools: mcp:ledger:list\nmetadata:\n  display-name: Expenses\n")
    assert listed(entry, Readiness("ready")) == {
        "id": "expenses",
        "name": "Expenses",
        "description": "Files expenses.",
        "source": "home",
        "state": "ready",
        "file": "/skills/expenses/SKILL.md",
        "tools": ["mcp:ledger:list"],
    }


def test_the_row_of_a_broken_skill_has_line_and_reason(tmp_path: Path) -> None:
    path = write(tmp_path, "pay", "tools: [Read]\n")
    entry = found(discover([SkillRoot(tmp_path, "home")]), "pay")
    row = listed(entry, readiness(entry, TOOLS, STATES))
    assert (row["id"], row["name"], row["state"], row["file"], row["line"]) == (
        "pay",
        "pay",
        "broken",
        str(path),
        4,
    )
    assert row["reason"].startswith("tools: ")
    assert json.dumps(row)


# What comes with the product


def test_the_built_in_skills_are_all_understood_and_need_nothing() -> None:
    catalogue = discover([builtin_root()])
    assert not catalogue.broken
    guide = found(catalogue, "guide")
    assert (guide.source, readiness(guide, {}, {})) == ("builtin", Readiness("ready"))


def test_the_guide_names_only_commands_that_exist() -> None:
    guide = found(discover([builtin_root()]), "guide").content
    assert guide is not None
    commands = set(re.findall(r"`pizzabot ([a-z]+)", guide.body))
    assert len(commands) > 15
    assert commands <= COMMANDS
