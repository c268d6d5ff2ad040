"""Statements about secrets, MCP servers and repositories."""
