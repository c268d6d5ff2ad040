"""Errors of the databases, as distinct from refusals of the services."""

from remit.errors import Conflict


class RowConflict(Conflict):
    """A violated constraint; the verb may read again and raise a more exact error."""
