"""Mail comes in from a mailbox."""
