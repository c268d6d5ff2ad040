"""Default adapter: for an agent of whom nobody said how it runs."""

from typing import Final

#: Adapters that bring a model, the preferred first.
WITH_MODEL: Final = ("claude", "codex", "llm")
WITHOUT_MODEL: Final = "scripted"


def best_adapter() -> str:
    """The first that is usable here, or the one that needs nothing; may take seconds."""
    from remit.adapters import registry
    from remit.adapters.contract import Adapter

    for type_ in WITH_MODEL:
        can_run = type(registry.get(type_)).run is not Adapter.run
        if can_run and registry.check(type_).usable:
            return type_
    return WITHOUT_MODEL
