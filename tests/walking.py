"""Where a call goes in the source: the files it enters, and the services it goes back to.

A re-entry is a call into a service of the domain that was left for another one; the command path
itself and views are no places of their own.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from types import FrameType
from typing import Any

_SOURCE = f"{Path(sys.modules['remit'].__path__[0])}/"
_SERVICES = "services/"
#: Services that are the way of every call, or only say how something looks.
PATH = frozenset(
    {
        *("command", "context", "verbs", "identity", "refusal", "lookup", "views", "shapes"),
        *("redaction", "__init__"),
    }
)


class Walk:
    """Every file of the source that is entered while it records, in order."""

    def __init__(self) -> None:
        self.entered: list[tuple[str, str]] = []
        self.recording = False

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        if self.recording and event == "call":
            place = frame.f_code.co_filename
            if place.startswith(_SOURCE) and not frame.f_code.co_name.startswith("<"):
                self.entered.append((place.removeprefix(_SOURCE), frame.f_code.co_name))

    @property
    def files(self) -> list[str]:
        return list(dict.fromkeys(file for file, _ in self.entered))

    @property
    def services(self) -> list[str]:
        """The services of the domain as the verb goes through them."""
        services: list[str] = []
        for file, _ in self.entered:
            if file.startswith(_SERVICES):
                name = file.removeprefix(_SERVICES).removesuffix(".py")
                if not PATH & set(name.split("/")) and services[-1:] != [name]:
                    services.append(name)
        return services


def re_entries(walked: Iterable[str]) -> int:
    places = list(walked)
    return len(places) - len(set(places))
