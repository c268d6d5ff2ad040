"""The tree of agents: creation, places, levels, halts, reorganisation and termination."""
