"""Default adapter, for an agent that is created without one."""

from typing import Final

#: Adapters with a model, in order of preference.
WITH_MODEL: Final = ("claude", "codex", "llm")
WITHOUT_MODEL: Final = "scripted"


def best_adapter() -> str:
    """Return the preferred adapter that is usable here, else the scripted one; may take seconds."""
    from remit.adapters import registry
    from remit.adapters.contract import Adapter

    for type_ in WITH_MODEL:
        can_run = type(registry.get(type_)).run is not Adapter.run
        if can_run and registry.check(type_).usable:
            return type_
    return WITHOUT_MODEL
