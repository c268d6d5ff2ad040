"""Errors of the databases, told apart from what our rules refuse."""

from remit.errors import Conflict


class RowConflict(Conflict):
    """A constraint of the database said no; the verb may look again and say it better."""
