"""Background jobs on this machine."""
