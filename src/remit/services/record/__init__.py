"""The event log: listing, verification, search, and state as of a time."""
