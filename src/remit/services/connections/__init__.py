"""Connections to the outside: secrets, MCP servers, repositories, channels, notices."""
