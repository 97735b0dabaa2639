"""Which skills did a person switch off? Rows, so that it stays so after a restart."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from pizzabot import audit
from pizzabot.database.schema import disabled_skills


def disabled(connection: sa.Connection) -> frozenset[str]:
    """The ids of the skills that are switched off."""
    return frozenset(connection.execute(sa.select(disabled_skills.c.skill)).scalars())


def switch(
    connection: sa.Connection, skill: str, now: datetime, *, enabled: bool, person: str, via: str
) -> frozenset[str]:
    """Switch a skill on or off; the ids that are off afterwards."""
    connection.execute(sa.delete(disabled_skills).where(disabled_skills.c.skill == skill))
    if not enabled:
        connection.execute(sa.insert(disabled_skills).values(skill=skill, person=person, via=via, at=now))
    event = "skill.enabled" if enabled else "skill.disabled"
    audit.append(connection, now, actor=person, via=via, event=event, subject=skill)
    return disabled(connection)
