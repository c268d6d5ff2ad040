"""Companies, people, agents, their permissions and grants, halts and approvals."""
