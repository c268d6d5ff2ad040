"""Statements about outcomes, waits, wishes and files."""
