"""Mail comes in through a door of our own, and goes out to a server."""
