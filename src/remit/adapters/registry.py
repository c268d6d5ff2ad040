"""The installed adapters: ours, and those of plugins.

Nothing is imported before an adapter is asked for, because most commands ask for none. A plugin
that cannot be loaded is reported by `problems()` and leaves the others alone.
"""

from __future__ import annotations

import importlib
import logging
import os
import threading
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any

from remit.errors import NotFound

if TYPE_CHECKING:
    from pydantic import BaseModel

    from remit.adapters.contract import Adapter, Check

log = logging.getLogger(__name__)

GROUP = "remit.adapters"

#: Where each of ours is.
BUILT_IN = {
    "claude": "remit.adapters.claude:Claude",
    "codex": "remit.adapters.codex:Codex",
    "llm": "remit.adapters.llm:Llm",
    "process": "remit.adapters.process:Process",
    "http": "remit.adapters.http:Http",
    "human": "remit.adapters.human:Human",
    "scripted": "remit.adapters.scripted:Scripted",
}


class Registry:
    """Adapters by their type."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._loaded: dict[str, Adapter] = {}
        self._plugins: dict[str, Adapter] | None = None
        self._problems: dict[str, str] = {}

    def types(self) -> list[str]:
        """What `adapterType` can be: ours first, then plugins by name."""
        return [*BUILT_IN, *sorted(self._found())]

    def get(self, type_: str) -> Adapter:
        """The adapter of a type, or NotFound."""
        if type_ in BUILT_IN:
            return self._built_in(type_)
        found = self._found().get(type_)
        if found is None:
            raise NotFound(
                f"There is no adapter {type_[:40]!r} here.", f"Known: {', '.join(self.types())}."
            )
        return found

    def all(self) -> list[Adapter]:
        return [self.get(type_) for type_ in self.types()]

    def problems(self) -> dict[str, str]:
        """Plugins that cannot be used, and why, in one sentence each."""
        self._found()
        return dict(self._problems)

    def validate(self, type_: str, config: object) -> dict[str, Any]:
        """The settings as given, if the adapter takes them; BadInput names the wrong field."""
        from remit.adapters import validation

        return validation.validate(self.get(type_).Config, config)

    def read(self, type_: str, config: object) -> BaseModel:
        """The settings as the adapter's own model, with its defaults."""
        from remit.adapters import validation

        return validation.read(self.get(type_).Config, config)

    def check(
        self, type_: str, config: object = None, environment: Mapping[str, str] | None = None
    ) -> Check:
        """Look whether an adapter can work here; may take seconds, so call it in a thread."""
        from remit.adapters.contract import looked

        read = None if config is None else self.read(type_, config)
        return looked(self.get(type_), read, os.environ if environment is None else environment)

    def _built_in(self, type_: str) -> Adapter:
        with self._lock:
            if type_ not in self._loaded:
                module, _, name = BUILT_IN[type_].partition(":")
                adapter: Adapter = getattr(importlib.import_module(module), name)()
                self._loaded[type_] = adapter
            return self._loaded[type_]

    def _found(self) -> dict[str, Adapter]:
        with self._lock:
            if self._plugins is None:
                self._plugins = {}
                for entry in sorted(entry_points(group=GROUP), key=lambda one: one.name):
                    self._load(entry, self._plugins)
            return self._plugins

    def _load(self, entry: EntryPoint, found: dict[str, Adapter]) -> None:
        try:
            from remit.adapters.contract import NotAnAdapter, adopt

            adapter = adopt(entry.load())
            adapter.agent_configuration_doc()  # a model that cannot be described cannot be used
            if adapter.type in BUILT_IN or adapter.type in found:
                raise NotAnAdapter(f"calls itself {adapter.type}, as another adapter does")
        except (Exception, SystemExit) as error:
            # Whatever a plugin does while it is imported is its own; the rest has to go on.
            reason = f"{entry.value} cannot be used: {type(error).__name__}: {error}"
            self._problems[entry.name] = " ".join(reason.split())[:300]
            log.warning("adapter plugin %s: %s", entry.name, self._problems[entry.name])
        else:
            found[adapter.type] = adapter


#: The one of this process.
installed = Registry()

types = installed.types
get = installed.get
all = installed.all  # noqa: A001  # read as `registry.all()`
problems = installed.problems
validate = installed.validate
read = installed.read
check = installed.check
