"""Adapters that run an agent: claude, codex, llm, process, http, human, scripted, and plugins.

Start in `contract`, which defines an adapter, and in `registry`, which lists the installed ones.
Adapters are imported lazily, at the first request for one.
"""
