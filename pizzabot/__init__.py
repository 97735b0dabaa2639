"""Pizza Bot: an inbox for background AI agents."""

__version__ = "0.1.0"
