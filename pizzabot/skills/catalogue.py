"""Which skills are there, which of two with the same name counts, and can it be called now?"""

from __future__ import annotations

import difflib
import importlib.util
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pizzabot.errors import ConfigError
from pizzabot.skills.frontmatter import GateDeclaration, SkillFile, read_skill
from pizzabot.tools.references import ToolReference

Gate = GateDeclaration
State = Literal["ready", "loading", "unavailable", "disabled", "broken"]

_PRECEDENCE = ("home", "plugin", "builtin")

_SERVER_TROUBLE = {
    "down": 'the MCP server {0} is down; see "pizzabot mcp list", then "pizzabot mcp reconnect {0}"',
    "disabled": "the MCP server {0} is disabled; enable it in .mcp.json",
    "invalid": 'the entry of the MCP server {0} is invalid; "pizzabot doctor" says where',
}


@dataclass(frozen=True, slots=True)
class SkillRoot:
    """A folder of skill folders. `source` is `home`, `builtin`, `plugin` or `plugin:NAME`."""

    path: Path
    source: str


@dataclass(frozen=True, slots=True)
class Skill:
    """One skill of the catalogue. `content` is None when it is broken; `reason` and maybe `line` say why.

    `shadowed` are the files of the same id that this one covers.
    """

    id: str
    source: str
    path: Path
    content: SkillFile | None
    line: int | None = None
    reason: str | None = None
    disabled: bool = False
    shadowed: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A folder that could not be looked into."""

    file: Path
    reason: str


@dataclass(frozen=True, slots=True)
class SkillCatalogue:
    """Every skill once, by id in alphabetical order, and the folders that could not be read."""

    skills: tuple[Skill, ...]
    unreadable: tuple[Unreadable, ...] = ()

    def get(self, skill_id: str) -> Skill | None:
        """The skill of that id, whatever the case."""
        wanted = skill_id.casefold()
        return next((skill for skill in self.skills if skill.id.casefold() == wanted), None)

    def is_usable(self, skill_id: str) -> bool:
        """Whether there is such a skill, and it could be understood."""
        found = self.get(skill_id)
        return found is not None and found.content is not None

    @property
    def broken(self) -> tuple[Skill, ...]:
        """The skills that could not be understood."""
        return tuple(skill for skill in self.skills if skill.content is None)


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether a skill can be called now, and if not, what to do."""

    state: State
    reason: str | None = None


def builtin_root() -> SkillRoot:
    """The folder of the skills that come with the product, installed or in a checkout."""
    spec = importlib.util.find_spec("pizzabot.builtin_skills")
    for place in (spec.submodule_search_locations if spec else None) or ():
        if Path(place).is_dir():
            return SkillRoot(Path(place), "builtin")
    return SkillRoot(Path(__file__).resolve().parents[2] / "skills", "builtin")


def discover(roots: Sequence[SkillRoot], disabled: Collection[str] = ()) -> SkillCatalogue:
    """Look through the roots: home before plugins before built-in, by folder name.

    A broken skill covers a working one of lower precedence: falling back could bring a tool without its gate.
    """
    off = {name.casefold() for name in disabled}
    chosen: dict[str, Skill] = {}
    unreadable: list[Unreadable] = []
    for root in sorted(roots, key=_rank):
        try:
            found = list(_skills_in(root))
        except OSError as error:
            unreadable.append(Unreadable(root.path, f"cannot be read ({error.strerror})"))
            continue
        for skill in found:
            key = skill.id.casefold()
            if key in chosen:
                covering = chosen[key]
                chosen[key] = replace(covering, shadowed=(*covering.shadowed, skill.path))
            else:
                chosen[key] = replace(skill, disabled=key in off)
    return SkillCatalogue(tuple(chosen[key] for key in sorted(chosen)), tuple(unreadable))


def readiness(skill: Skill, tools: Mapping[str, object], server_states: Mapping[str, str]) -> Readiness:
    """Whether `skill` can be called, given the known tools by full name and the state of each server."""
    if skill.content is None:
        return Readiness("broken", skill.reason)
    if skill.disabled:
        return Readiness("disabled", f'switched off; "pizzabot skills enable {skill.id}" switches it on')
    loading = None
    for reference in skill.content.references:
        if _is_connecting(reference, server_states):
            loading = f"the MCP server {reference.server} is connecting"
        elif trouble := _trouble(reference, tools, server_states):
            return Readiness("unavailable", trouble)
    if loading:
        return Readiness("loading", loading)
    own = resolved_tools(skill, tools)
    for gate in skill.content.gates:
        if not any(gate.reference.matches(name) for name in own):
            reason = f"interruptOn names {gate.reference}, which is none of the skill's tools; correct it"
            return Readiness("unavailable", reason)
    return Readiness("ready")


def resolved_tools(skill: Skill, tool_names: Iterable[str]) -> tuple[str, ...]:
    """The full names of the skill's tools among `tool_names`: as declared, wildcards sorted, none twice."""
    if skill.content is None:
        return ()
    names = sorted(tool_names)
    matching = (name for ref in skill.content.references for name in names if ref.matches(name))
    return tuple(dict.fromkeys(matching))


def gate_for(skill: Skill, full_name: str) -> Gate | None:
    """What the skill declares about that tool: the closest of its lines."""
    if skill.content is None:
        return None
    fitting = (gate for gate in skill.content.gates if gate.reference.matches(full_name))
    return max(fitting, key=lambda gate: gate.reference.specificity, default=None)


def listed(skill: Skill, state: Readiness) -> dict[str, Any]:
    """The skill as `GET /api/skills` shows it."""
    content = skill.content
    row: dict[str, Any] = {
        "id": skill.id,
        "name": content.display_name if content else skill.id,
        "description": content.description if content else "",
        "source": skill.source,
        "state": state.state,
        "file": str(skill.path),
        "tools": list(content.tools) if content else [],
    }
    if state.reason is not None:
        row["reason"] = state.reason
    if skill.line is not None:
        row["line"] = skill.line
    return row


def _rank(root: SkillRoot) -> int:
    kind = root.source.partition(":")[0]
    return _PRECEDENCE.index(kind) if kind in _PRECEDENCE else len(_PRECEDENCE)


def _skills_in(root: SkillRoot) -> Iterator[Skill]:
    """The skills of one root; folders that hold none and hidden ones are passed over."""
    try:
        folders = sorted(root.path.iterdir())
    except FileNotFoundError:
        return
    inside = root.path.resolve()
    for folder in folders:
        if not folder.name.startswith(".") and (skill := _skill_at(folder, inside, root.source)):
            yield skill


def _skill_at(folder: Path, root: Path, source: str) -> Skill | None:
    """The skill in `folder`, broken or not; None when there is none."""
    path = folder / "SKILL.md"
    try:
        if not folder.is_dir():
            return None
        if not _is_within(folder, root) or not _is_within(path, root):
            raise ConfigError(str(path), "is a link that leads out of the skills folder; copy the skill in")
        names = [entry.name for entry in folder.iterdir() if entry.name.casefold() == "skill.md"]
        if not names:
            return None
        if path.name not in names:
            raise ConfigError(str(folder / names[0]), "must be named SKILL.md in capitals")
        return Skill(folder.name, source, path, read_skill(path))
    except ConfigError as error:
        reason = f"{error.key}: {error.problem}" if error.key else error.problem
        return Skill(folder.name, source, Path(error.file), None, error.line, reason)
    except (OSError, RuntimeError) as error:  # a loop of links is a RuntimeError in Python 3.11
        problem = error.strerror if isinstance(error, OSError) else "a loop of links"
        return Skill(folder.name, source, path, None, None, f"cannot be read ({problem})")


def _is_within(path: Path, root: Path) -> bool:
    return path.resolve().is_relative_to(root)


def _is_connecting(reference: ToolReference, server_states: Mapping[str, str]) -> bool:
    return reference.server is not None and server_states.get(reference.server) == "connecting"


def _trouble(
    reference: ToolReference, tools: Mapping[str, object], server_states: Mapping[str, str]
) -> str | None:
    """Why a reference leads to no tool, and what to do; None when it does."""
    server = reference.server
    if server is None:
        if str(reference) in tools:
            return None
        return f"{reference} is not part of this version; remove it from the tools of the skill"
    state = server_states.get(server)
    if state is None:
        return f"there is no MCP server {server}; add it to .mcp.json"
    if state != "connected":
        return _SERVER_TROUBLE.get(state, f"the MCP server {{0}} is {state}").format(server)
    if any(reference.matches(name) for name in tools):
        return None
    what = f"{reference} {'matches no' if reference.wildcard else 'is no'} tool of the MCP server {server}"
    offered = sorted(name for name in tools if name.startswith(f"mcp:{server}:"))
    near = difflib.get_close_matches(str(reference), offered, n=1, cutoff=0.6)
    if near and not reference.wildcard:
        return f"{what}; did you mean {near[0]}?"
    return f'{what}; see "pizzabot mcp tools" for what {server} offers'
