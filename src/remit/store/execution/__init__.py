"""Statements about runs, jobs, leases, accounts, limits and budgets."""
