"""Capabilities: grants, requests for them, and rights implied by the tree."""
