"""Does the database have today's tables? `migrate` brings it there, in one transaction, under a lock.

Each file of `migrations/versions` is named by its revision, four digits that count up. So one plain query
tells whether there is anything to do; only then is Alembic imported.
"""

from __future__ import annotations

import os
import re
import sqlite3
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event

from pizzabot.database.connection import postgres_url, sqlite_engine
from pizzabot.database.dialects import hold
from pizzabot.errors import ConfigError

_MIGRATIONS = Path(__file__).parent / "migrations"
_VERSION_TABLE = "alembic_version"
_LOCK = 0x9122AB01  # of PostgreSQL: one process migrates, the others wait and find nothing to do
_PRIVATE_FILE = 0o600


def revisions() -> list[str]:
    """Every revision this version of the code knows, oldest first."""
    names = (re.match(r"(\d{4})_\w+\.py", path.name) for path in (_MIGRATIONS / "versions").iterdir())
    return sorted(name[1] for name in names if name is not None)


def migrate(url: str, path: Path) -> None:
    """Create or update the tables: at `url` when it is set, else in the SQLite file `path`.

    Raises:
        ConfigError: the database was written by a newer version, holds something else, or does not answer.
    """
    known = revisions()
    place = "pizzabot.toml: database.url" if url else str(path)
    if not url:
        _create_private(path)
    engine = _postgres(url) if url else _sqlite(path)
    try:
        with engine.connect() as connection:
            found = _revision(connection)
        if found == known[-1]:
            return
        _refuse_unknown(found, known, place)
        with engine.begin() as connection:
            _upgrade(connection, known, place)
    except sa.exc.DBAPIError as error:
        raise ConfigError(place, _plain(error)) from error
    finally:
        engine.dispose()


def _create_private(path: Path) -> None:
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _PRIVATE_FILE))
    except OSError as error:
        raise ConfigError(str(path), f"cannot be opened ({error.strerror})") from error


def _sqlite(path: Path) -> sa.Engine:
    engine = sqlite_engine(path)

    @event.listens_for(engine, "connect")
    def _connected(connection: sqlite3.Connection, _record: Any) -> None:
        # A changed table is copied and dropped, which must not delete the rows that point to it.
        connection.execute("PRAGMA foreign_keys = OFF")

    return engine


def _postgres(url: str) -> sa.Engine:
    try:
        return sa.create_engine(postgres_url(url), poolclass=sa.NullPool)
    except ModuleNotFoundError as error:
        raise ConfigError(
            "pizzabot.toml",
            "PostgreSQL needs its driver; pip install 'pizzabot[postgres]'",
            key="database.url",
        ) from error


def _revision(connection: sa.Connection) -> str | None:
    """The revision stored in the database; None when there is none."""
    if not sa.inspect(connection).has_table(_VERSION_TABLE):
        return None
    return connection.execute(sa.text(f"SELECT version_num FROM {_VERSION_TABLE}")).scalar()


def _refuse_unknown(found: str | None, known: list[str], place: str) -> None:
    if found is not None and found not in known:
        raise ConfigError(
            place, f"was written by a newer version of Pizza Bot (revision {found[:40]}); upgrade pizzabot"
        )


def _upgrade(connection: sa.Connection, known: list[str], place: str) -> None:
    hold(connection, _LOCK)
    found = _revision(connection)  # again: another process may have migrated meanwhile
    if found == known[-1]:
        return
    _refuse_unknown(found, known, place)
    if found is None and sa.inspect(connection).has_table("threads"):
        raise ConfigError(place, "holds tables that are not Pizza Bot's; give it a database of its own")
    _run_alembic(connection)
    if connection.dialect.name == "sqlite" and connection.exec_driver_sql("PRAGMA foreign_key_check").first():
        raise ConfigError(place, "has rows that point nowhere; restore a backup")


def _run_alembic(connection: sa.Connection) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    command.upgrade(config, "head")


def _plain(error: sa.exc.DBAPIError) -> str:
    first_line = str(error.orig).strip().partition("\n")[0]
    return f"the database cannot be used: {first_line}"
