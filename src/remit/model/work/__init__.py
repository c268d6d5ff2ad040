"""Outcomes, waits, wishes and files."""
