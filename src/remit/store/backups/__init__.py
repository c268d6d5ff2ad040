"""Backups of an instance, written and restored."""
