"""Descriptions of agents: hires, configurations and updates."""
