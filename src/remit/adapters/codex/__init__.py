"""Codex as an adapter."""
