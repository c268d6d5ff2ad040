"""The agents' door: one MCP endpoint. `registry` says what a tool is, `endpoint` speaks MCP."""
