"""Secrets, MCP servers, repositories, folders and changes."""
