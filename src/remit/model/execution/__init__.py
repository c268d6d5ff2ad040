"""Runs, background jobs, faults, accounts, limits and budgets."""
