"""Running real agents: the only package that starts processes and touches their files."""
