"""Outcomes: creation, delegation, waits, verdicts and endings."""
