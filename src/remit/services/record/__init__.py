"""The event log: listed, verified, searched, and read as of a time."""
