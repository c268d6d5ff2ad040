"""Real clients of the product, driven from tests: Claude Code and the MCP inspector.

The clients are the real programs; only the model behind Claude is a script. Everything runs on
loopback, with an environment of its own and a key that opens nothing.
"""

from __future__ import annotations

import os
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


def folder() -> Path:
    """Where the clients are installed."""
    return Path(os.environ.get("REMIT_TEST_AGENTS") or REPOSITORY / ".venv" / "agents")


def program(name: str) -> Path:
    path = folder() / "node_modules" / ".bin" / name
    if not path.exists():
        raise ClientMissing(f"{name} is not in {folder()}; run scripts/test-deps, then try again.")
    return path.resolve()


class ClientMissing(AssertionError):
    """A test needs a program that is not installed."""
