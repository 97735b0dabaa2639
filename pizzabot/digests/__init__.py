"""What a person is told at regular times: what waits for them, what is new, what failed, what comes next."""
