"""How long does a test wait for what should be so at once? Long: machines may be slow."""

from __future__ import annotations

PATIENCE_SECONDS = 60.0
