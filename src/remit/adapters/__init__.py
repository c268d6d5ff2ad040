"""Adapters that run an agent: claude, codex, llm, process, http, human, scripted, and plugins.

Start in `contract`, which says what an adapter is, and in `registry`, which knows the installed
ones. Nothing here is imported before somebody asks for an adapter.
"""
