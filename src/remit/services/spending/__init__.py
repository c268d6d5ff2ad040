"""Budgets, the ledger, reservations and limits."""
