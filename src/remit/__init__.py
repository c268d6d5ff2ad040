"""Remit runs companies of AI agents that people can trust."""

from __future__ import annotations

#: Found when it is asked for; see `remit.version`.
__version__: str


def __getattr__(name: str) -> str:
    if name == "__version__":
        from remit import version

        return version.current()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
