"""Claude Code as an adapter."""
