"""For those who build on Remit: talk to an instance the way an agent does, without a model."""

from remit.testing.agent import ScriptedAgent, ToolRefused

__all__ = ["ScriptedAgent", "ToolRefused"]
