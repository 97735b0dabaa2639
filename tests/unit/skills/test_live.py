"""A skill that is written, edited or removed while the server runs counts from the next look on."""

from __future__ import annotations

import os
from pathlib import Path

from pizzabot.skills.catalogue import SkillRoot
from pizzabot.skills.live import LOOK_AGAIN_SECONDS, LiveSkills


class Watch:
    """A monotonic clock that is moved by hand."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def write(root: Path, name: str, description: str) -> Path:
    folder = root / name
    folder.mkdir(exist_ok=True)
    path = folder / "SKILL.md"
    path.write_text(f"---\nname: {name}\ndescription: {description}\n---\nDo it.\n")
    return path


def described(skills: LiveSkills) -> dict[str, str]:
    return {skill.id: skill.content.description for skill in skills().skills if skill.content is not None}


def test_a_new_an_edited_and_a_removed_skill_are_seen_after_a_second(tmp_path: Path) -> None:
    watch = Watch()
    write(tmp_path, "old", "as it was")
    skills = LiveSkills([SkillRoot(tmp_path, "home")], monotonic=watch)
    write(tmp_path, "new", "just written")
    edited = write(tmp_path, "old", "as it is now")
    os.utime(edited, ns=(1, 1))
    assert described(skills) == {"old": "as it was"}
    watch.now += LOOK_AGAIN_SECONDS
    assert described(skills) == {"old": "as it is now", "new": "just written"}
    edited.unlink()
    watch.now += LOOK_AGAIN_SECONDS
    assert described(skills) == {"new": "just written"}


def test_an_unchanged_folder_is_not_read_again(tmp_path: Path) -> None:
    watch = Watch()
    write(tmp_path, "one", "the same")
    skills = LiveSkills([SkillRoot(tmp_path, "home")], monotonic=watch)
    first = skills()
    watch.now += 10 * LOOK_AGAIN_SECONDS
    assert skills() is first


def test_a_disabled_skill_stays_disabled_when_the_folder_changes(tmp_path: Path) -> None:
    watch = Watch()
    write(tmp_path, "one", "switched off")
    skills = LiveSkills([SkillRoot(tmp_path, "home")], monotonic=watch)
    skills.disable({"one"})
    assert skills().skills[0].disabled
    write(tmp_path, "two", "another")
    watch.now += LOOK_AGAIN_SECONDS
    assert [skill.disabled for skill in skills().skills] == [True, False]
    skills.disable(())
    assert not skills().skills[0].disabled
