"""Approvals, and the calls that wait for one."""
