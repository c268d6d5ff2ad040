"""Checks whether an adapter can work here: programs, credentials, one small request."""
