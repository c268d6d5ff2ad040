"""The home of an agent on this machine: one place for every agent, whatever it is called.

Its programs keep their own settings and conversations there. What an agent is to remember is in
the knowledge base, and nothing that lies here goes into a prompt; `SOUL.md` is for whoever wants
to describe the agent to people.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

SOUL = "SOUL.md"


def folder(root: Path, agent: str) -> Path:
    """`root` is the home of the instance."""
    return root / "agents" / agent


def exists(root: Path, agent: str) -> bool:
    return folder(root, agent).is_dir()


def set_up(root: Path, agent: str) -> Path:
    """Make it, as often as you like; what is there stays."""
    home = folder(root, agent)
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with contextlib.suppress(FileExistsError):
        os.close(os.open(home / SOUL, flags, 0o600))
    return home
