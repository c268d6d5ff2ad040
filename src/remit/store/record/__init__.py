"""Statements about events, searches, counts and whole companies."""
