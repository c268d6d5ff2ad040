"""The installed channels: ours, and those of plugins.

A plugin that cannot be loaded is reported by `problems()` and leaves the others alone.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import threading
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any

from remit.errors import BadInput

if TYPE_CHECKING:
    from pydantic import BaseModel

    from remit.adapters.contract import Check
    from remit.channels.contract import Channel

log = logging.getLogger(__name__)

GROUP = "remit.channels"

#: Where each of ours is.
BUILT_IN = {"webhook": "remit.channels.webhook:Webhook"}


class Registry:
    """Channels by their type."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._loaded: dict[str, Channel] = {}
        self._plugins: dict[str, Channel] | None = None
        self._problems: dict[str, str] = {}

    def types(self) -> list[str]:
        """Ours first, then plugins by name."""
        return [*BUILT_IN, *sorted(self._found())]

    def get(self, type_: str) -> Channel:
        """The channel of a type, or BadInput: whoever binds names one that is there."""
        if type_ in BUILT_IN:
            return self._built_in(type_)
        found = self._found().get(type_)
        if found is None:
            raise BadInput(
                f"There is no channel {type_[:40]!r} here.", f"Known: {', '.join(self.types())}."
            )
        return found

    def all(self) -> list[Channel]:
        return [self.get(type_) for type_ in self.types()]

    def problems(self) -> dict[str, str]:
        """Plugins that cannot be used, and why, in one sentence each."""
        self._found()
        return dict(self._problems)

    def read(self, type_: str, config: object) -> BaseModel:
        """The settings as the channel's own model; BadInput names the wrong field."""
        from remit.adapters import validation

        channel = self.get(type_)
        try:
            return validation.read(channel.Config, config)
        except BadInput as wrong:
            step = f"See `remit bind channels {type_}`."
            raise BadInput(wrong.sentence, step, details=wrong.details) from None

    def validate(self, type_: str, config: object) -> str:
        """The settings as they are kept: JSON, as they were given, if the channel takes them."""
        from remit.adapters import validation

        self.read(type_, config)
        return json.dumps(validation.plain(config), sort_keys=True)

    def check(
        self, type_: str, config: object = None, environment: Mapping[str, str] | None = None
    ) -> Check:
        """Look whether a channel can work here; may take seconds, so call it in a thread."""
        from remit.adapters.contract import looked

        read = None if config is None else self.read(type_, config)
        return looked(self.get(type_), read, os.environ if environment is None else environment)

    def _built_in(self, type_: str) -> Channel:
        with self._lock:
            if type_ not in self._loaded:
                module, _, name = BUILT_IN[type_].partition(":")
                channel: Channel = getattr(importlib.import_module(module), name)()
                self._loaded[type_] = channel
            return self._loaded[type_]

    def _found(self) -> dict[str, Channel]:
        with self._lock:
            if self._plugins is None:
                self._plugins = {}
                for entry in sorted(entry_points(group=GROUP), key=lambda one: one.name):
                    self._load(entry, self._plugins)
            return self._plugins

    def _load(self, entry: EntryPoint, found: dict[str, Channel]) -> None:
        try:
            from remit.channels.contract import NotAChannel, adopt

            channel = adopt(entry.load())
            channel.configuration_doc()  # a model that cannot be described cannot be used
            if channel.type in BUILT_IN or channel.type in found:
                raise NotAChannel(f"calls itself {channel.type}, as another channel does")
        except (Exception, SystemExit) as error:
            # Whatever a plugin does while it is imported is its own; the rest has to go on.
            reason = f"{entry.value} cannot be used: {type(error).__name__}: {error}"
            self._problems[entry.name] = " ".join(reason.split())[:300]
            log.warning("channel plugin %s: %s", entry.name, self._problems[entry.name])
        else:
            found[channel.type] = channel


#: The one of this process.
installed = Registry()


def types() -> list[str]:
    return installed.types()


def get(type_: str) -> Channel:
    return installed.get(type_)


def secret_of(config: Mapping[str, Any]) -> str | None:
    """The secret of the company that a binding names, to sign with."""
    name = config.get("secretRef")
    return name if isinstance(name, str) else None
