"""Statements about companies, people, agents, grants and approvals."""
