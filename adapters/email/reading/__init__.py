"""From the bytes of a mail to a `Letter`. Pure, and run in a process apart: it knows nothing of the rest."""
