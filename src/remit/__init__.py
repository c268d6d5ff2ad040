"""Remit runs companies of AI agents that people can trust."""

__version__ = "0.1.0"
