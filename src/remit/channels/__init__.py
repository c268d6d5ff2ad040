"""Channels: outside chat systems that agents can be bound to.

`contract.py` says what a channel is, `registry.py` finds ours and those of plugins.
"""
