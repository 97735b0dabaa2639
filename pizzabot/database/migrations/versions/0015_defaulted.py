"""Which fields of a trigger nobody wrote: they change with those that they follow from.

Of the triggers that are there, `overlap` is one of them when it is what it would be without a word.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    op.add_column("triggers", sa.Column("defaulted", sa.JSON))
    op.execute(
        "UPDATE triggers SET defaulted = '[\"overlap\"]' WHERE overlap ="
        " CASE WHEN kind = 'webhook' OR misfire = 'all' THEN 'queue' ELSE 'skip' END"
    )
