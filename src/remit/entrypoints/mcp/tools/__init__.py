"""The tools of agents, one subject a module."""
