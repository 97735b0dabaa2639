"""What it costs to use this room without a server."""

from __future__ import annotations

import subprocess
import sys


def test_the_library_is_not_imported_before_a_server_starts() -> None:
    code = (
        "import sys, pizzabot.tools.config, pizzabot.tools.references, pizzabot.tools.catalogue;"
        "sys.exit(bool({'mcp', 'mcp_types', 'jsonschema', 'langchain_core'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)
