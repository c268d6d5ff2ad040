"""Capabilities: given, asked for, revoked, and implied by the tree."""
