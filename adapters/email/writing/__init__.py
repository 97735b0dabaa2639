"""From what is to be said to the bytes of a mail. Pure."""
