"""Commands about companies, people, agents and rights."""
