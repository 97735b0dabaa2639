"""`python -m pizzabot` is the command `pizzabot`."""

import sys

from pizzabot.cli import main

sys.exit(main())
