"""Email: work by writing a letter, approve by answering one."""
