"""Test support for programs built on Remit: agents without a model, simulated companies.

`ScriptedAgent` talks to a running instance the way an agent does. `Simulation` is a company in one
thread, with agents that are functions, a virtual clock and crashes at every commit; `scenario`
plays stories from files in it, or with real agents; `campaign` looks for stories that break it.
`linearizability` checks whether the observations of concurrent processes are consistent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from remit.testing.agent import ScriptedAgent, ToolRefused

if TYPE_CHECKING:
    from remit.testing.clock import VirtualClock
    from remit.testing.database import Crash, Moment
    from remit.testing.invariants import Broken, check
    from remit.testing.simulation import AgentDied, Letter, Member, RunFailed, Simulation, Turn

_WHERE = {
    "AgentDied": "simulation",
    "Broken": "invariants",
    "Crash": "database",
    "Letter": "simulation",
    "Member": "simulation",
    "Moment": "database",
    "RunFailed": "simulation",
    "Simulation": "simulation",
    "Turn": "simulation",
    "VirtualClock": "clock",
    "check": "invariants",
}

__all__ = [
    "AgentDied",
    "Broken",
    "Crash",
    "Letter",
    "Member",
    "Moment",
    "RunFailed",
    "ScriptedAgent",
    "Simulation",
    "ToolRefused",
    "Turn",
    "VirtualClock",
    "check",
]


def __getattr__(name: str) -> Any:
    """Import a name lazily, because a simulation imports all of Remit, and an agent does not."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"remit.testing.{_WHERE[name]}"), name)
