"""The tree of agents: who is there, above whom, and what is done to it."""
