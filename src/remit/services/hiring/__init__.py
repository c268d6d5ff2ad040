"""Descriptions of agents: hiring, creating, configuring and updating one."""
