"""How are things named? Time-sortable UUIDs (RFC 9562, version 7), as text.

Sortable, because DBOS breaks ties of its one-second timestamps by workflow id, and because keyset pages
then need no second sequence.
"""

from __future__ import annotations

import uuid_utils


def new_id() -> str:
    """A fresh id: 36 characters, later ones sort after earlier ones."""
    return str(uuid_utils.uuid7())
