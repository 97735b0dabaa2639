"""Where do the two databases want other words? Inserts that may meet a row, and locks that have no row."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

DIALECTS = ("sqlite", "postgresql")

_KEY = sa.bindparam("key", type_=sa.BigInteger)
_HOLD = sa.select(sa.func.pg_advisory_xact_lock(_KEY))
_HOLD_SHARED = sa.select(sa.func.pg_advisory_xact_lock_shared(_KEY))


def insert(dialect: str, table: sa.Table) -> Any:
    """An insert that can be told what happens when the row is there (`on_conflict_do_…`).

    Whether there is a new row says what it returns: not every driver counts the rows of such a statement.
    """
    return postgresql.insert(table) if dialect == "postgresql" else sqlite.insert(table)


def hold(connection: sa.Connection, key: int, *, shared: bool = False) -> None:
    """Let nobody else hold `key`, a number of 64 bits, until the transaction ends; those who hold it `shared`
    keep out only whoever wants it alone.

    On SQLite there is one writer anyway.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(_HOLD_SHARED if shared else _HOLD, {"key": key})
