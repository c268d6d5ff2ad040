"""Runs and background jobs: queues, leases, endings, accounts and admission."""
