"""Outcomes: created, delegated, waited for, judged and ended."""
