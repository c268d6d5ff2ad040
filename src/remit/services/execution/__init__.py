"""Runs and background jobs: queues, leases, endings and what stops them."""
