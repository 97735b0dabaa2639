"""Numbers of tokens whose sums are beyond four bytes. SQLite's integers are large anyway."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        for name in ("input_tokens", "output_tokens"):
            op.alter_column("usage", name, type_=sa.BigInteger)
