"""Registry of one kind of plugin: the built-in ones, and those of entry points.

Plugins are imported lazily, because most commands need none. A plugin that cannot be loaded is
reported by `problems()` and does not affect the others.
"""

from __future__ import annotations

import importlib
import logging
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from remit.errors import NotFound, RemitError

if TYPE_CHECKING:
    from pydantic import BaseModel

    from remit.adapters.contract import Check

log = logging.getLogger(__name__)


class Typed(Protocol):
    type: ClassVar[str]


P = TypeVar("P", bound=Typed)


class Plugins(ABC, Generic[P]):
    """Plugins of one entry point group, by their type."""

    #: The word for one plugin of this kind.
    noun: ClassVar[str]
    group: ClassVar[str]
    #: Import path of each built-in plugin, by type.
    built_in: ClassVar[Mapping[str, str]]
    #: The error for an unknown type.
    missing: ClassVar[type[RemitError]] = NotFound

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._loaded: dict[str, P] = {}
        self._plugins: dict[str, P] | None = None
        self._problems: dict[str, str] = {}

    @abstractmethod
    def adopt(self, candidate: object) -> P:
        """Return an instance of a plugin's class; raises with a reason if it has not the right
        shape or cannot be documented."""

    @abstractmethod
    def read(self, type_: str, config: object) -> BaseModel:
        """Parse settings with the plugin's model; raises BadInput that names the wrong field."""

    def types(self) -> list[str]:
        """List the types: built-in ones first, then plugins by name."""
        return [*self.built_in, *sorted(self._found())]

    def get(self, type_: str) -> P:
        if type_ in self.built_in:
            return self._built_in(type_)
        found = self._found().get(type_)
        if found is None:
            raise self.missing(
                f"There is no {self.noun} {type_[:40]!r} here.",
                f"Known: {', '.join(self.types())}.",
            )
        return found

    def all(self) -> list[P]:
        return [self.get(type_) for type_ in self.types()]

    def problems(self) -> dict[str, str]:
        """Return the plugins that cannot be used, each with a reason."""
        self._found()
        return dict(self._problems)

    def check(
        self, type_: str, config: object = None, environment: Mapping[str, str] | None = None
    ) -> Check:
        """Check whether a plugin can work here; may take seconds, so call it in a thread."""
        from remit.adapters.contract import looked

        one: Any = self.get(type_)
        read = None if config is None else self.read(type_, config)
        return looked(one, read, os.environ if environment is None else environment)

    def _built_in(self, type_: str) -> P:
        with self._lock:
            if type_ not in self._loaded:
                module, _, name = self.built_in[type_].partition(":")
                self._loaded[type_] = getattr(importlib.import_module(module), name)()
            return self._loaded[type_]

    def _found(self) -> dict[str, P]:
        with self._lock:
            if self._plugins is None:
                self._plugins = {}
                for entry in sorted(entry_points(group=self.group), key=lambda one: one.name):
                    self._load(entry, self._plugins)
            return self._plugins

    def _load(self, entry: EntryPoint, found: dict[str, P]) -> None:
        try:
            one = self.adopt(entry.load())
            if one.type in self.built_in or one.type in found:
                raise ValueError(f"calls itself {one.type}, as another {self.noun} does")
        except (Exception, SystemExit) as error:
            # A plugin may raise anything during its import; the others must still load.
            reason = f"{entry.value} cannot be used: {type(error).__name__}: {error}"
            self._problems[entry.name] = " ".join(reason.split())[:300]
            log.warning("%s plugin %s: %s", self.noun, entry.name, self._problems[entry.name])
        else:
            found[one.type] = one
