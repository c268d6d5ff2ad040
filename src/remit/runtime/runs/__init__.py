"""Runs on this machine: the worker, and one run from claim to end."""
