"""Channels: outside chat systems that agents can be bound to.

`contract.py` defines a channel, `registry.py` finds the built-in ones and those of plugins.
"""
