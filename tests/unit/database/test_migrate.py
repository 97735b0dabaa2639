"""Do the migrations make exactly the tables that the code expects, once, and refuse what they do not know?"""

from __future__ import annotations

import re
import sqlite3
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from pizzabot.database import migrate as module
from pizzabot.database.connection import postgres_url, sqlite_engine
from pizzabot.database.migrate import migrate, revisions
from pizzabot.database.schema import metadata
from pizzabot.errors import ConfigError

# What SQLAlchemy's metadata does not hold: full text, made by statements of its own.
_BESIDES = {"messages_fts", "words", "messages_words"}


def _differences(engine: sa.Engine) -> list[object]:
    def include(_thing: object, name: str | None, _kind: str, _reflected: bool, _other: object) -> bool:
        return not any((name or "").startswith(besides) for besides in _BESIDES)

    with engine.connect() as connection:
        options = {"compare_type": True, "include_object": include, "render_as_batch": True}
        return list(compare_metadata(MigrationContext.configure(connection, opts=options), metadata))


def _sqlite_statements(path: Path) -> dict[str, str]:
    with sqlite3.connect(path) as connection:
        rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    connection.close()
    return {
        name: re.sub(r"\s+", " ", sql).replace("( ", "(").replace(" ,", ",").replace(" )", ")")
        for name, sql in rows
        if name != "alembic_version"
    }


def test_an_empty_sqlite_file_gets_exactly_the_tables_of_the_metadata(tmp_path: Path) -> None:
    migrated, made = tmp_path / "migrated.sqlite", tmp_path / "made.sqlite"
    migrate("", migrated)
    engine = sqlite_engine(made)
    metadata.create_all(engine)
    engine.dispose()
    assert _sqlite_statements(migrated) == _sqlite_statements(made)
    engine = sqlite_engine(migrated)
    assert _differences(engine) == []
    engine.dispose()


_POSTGRES_SHAPE = {
    "columns": """
        SELECT table_name, column_name, data_type, is_nullable, column_default, collation_name,
               generation_expression
        FROM information_schema.columns WHERE table_schema = 'public'""",
    "indexes": "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'",
    "constraints": """
        SELECT conrelid::regclass::text, pg_get_constraintdef(oid)
        FROM pg_constraint WHERE connamespace = 'public'::regnamespace""",
}


def _postgres_shape(url: str) -> dict[str, set[tuple[object, ...]]]:
    engine = sa.create_engine(postgres_url(url))
    with engine.connect() as connection:
        shape = {
            name: {tuple(row) for row in connection.exec_driver_sql(sql) if "alembic_version" not in str(row)}
            for name, sql in _POSTGRES_SHAPE.items()
        }
    engine.dispose()
    return shape


def test_an_empty_postgres_database_gets_exactly_the_tables_of_the_metadata(empty_postgres: str) -> None:
    engine = sa.create_engine(postgres_url(empty_postgres))
    metadata.create_all(engine)
    made = _postgres_shape(empty_postgres)
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    migrate(empty_postgres, Path())
    assert _postgres_shape(empty_postgres) == made
    assert _differences(engine) == []
    engine.dispose()


def test_a_new_file_is_private(tmp_path: Path) -> None:
    path = tmp_path / "app.sqlite"
    migrate("", path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_migrating_again_changes_nothing_and_needs_no_alembic(
    sqlite_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sqlite_path.read_bytes()
    monkeypatch.setattr(module, "_run_alembic", lambda connection: pytest.fail("alembic ran"))
    migrate("", sqlite_path)
    assert sqlite_path.read_bytes() == before


def test_two_that_migrate_at_once_do_not_collide(tmp_path: Path) -> None:
    path = tmp_path / "app.sqlite"
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: migrate("", path), range(4)))
    assert "threads" in _sqlite_statements(path)


def test_two_that_migrate_postgres_at_once_do_not_collide(empty_postgres: str) -> None:
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: migrate(empty_postgres, Path()), range(4)))
    assert ("threads",) in {(name,) for name, *_ in _postgres_shape(empty_postgres)["columns"]}


def test_a_database_of_a_newer_version_is_refused_untouched(sqlite_path: Path) -> None:
    with sqlite3.connect(sqlite_path) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    with pytest.raises(ConfigError, match=r"app\.sqlite: was written by a newer version .*upgrade pizzabot"):
        migrate("", sqlite_path)


def test_tables_of_something_else_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "app.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE threads (id)")
    connection.close()
    with pytest.raises(ConfigError, match="not Pizza Bot's"):
        migrate("", path)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "app.sqlite"
    path.write_text("This is a letter, not a database, and it is longer than a header. " * 20)
    with pytest.raises(ConfigError, match="file is not a database"):
        migrate("", path)


def test_a_server_that_does_not_answer_is_named_without_its_password() -> None:
    with pytest.raises(ConfigError, match=r"database\.url") as caught:
        migrate("postgresql://ada:hunter2@127.0.0.1:1/none", Path())
    assert "hunter2" not in str(caught.value)


def test_a_failed_migration_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "app.sqlite"

    def fails(connection: sa.Connection) -> None:
        connection.exec_driver_sql("CREATE TABLE half (id)")
        raise RuntimeError("in the middle")

    monkeypatch.setattr(module, "_run_alembic", fails)
    with pytest.raises(RuntimeError, match="in the middle"):
        migrate("", path)
    assert _sqlite_statements(path) == {}


def test_revisions_count_up_without_a_gap() -> None:
    assert revisions() == [f"{number:04}" for number in range(1, len(revisions()) + 1)]
