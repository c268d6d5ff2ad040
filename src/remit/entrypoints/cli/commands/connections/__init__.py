"""Commands about secrets, MCP servers and repositories."""
