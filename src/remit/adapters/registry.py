"""The installed adapters, and the default for an agent that is created without one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from remit.adapters import plugins
from remit.adapters.plugins import Plugins
from remit.errors import BadInput, Unsupported

if TYPE_CHECKING:
    from pydantic import BaseModel

    from remit.adapters.contract import Adapter
    from remit.adapters.reading import Reader
    from remit.adapters.setup.probe import Tried

#: Import path of each built-in adapter, by type.
BUILT_IN = {
    "claude": "remit.adapters.claude.adapter:Claude",
    "codex": "remit.adapters.codex.adapter:Codex",
    "llm": "remit.adapters.llm.adapter:Llm",
    "process": "remit.adapters.process:Process",
    "http": "remit.adapters.http:Http",
    "human": "remit.adapters.human:Human",
    "scripted": "remit.adapters.scripted:Scripted",
}
#: Adapters with a model, in order of preference.
WITH_MODEL: Final = ("claude", "codex", "llm")
WITHOUT_MODEL: Final = "scripted"


class Registry(Plugins["Adapter"]):
    """Adapters by type, the possible values of `adapterType`."""

    noun = "adapter"
    group = "remit.adapters"
    built_in = BUILT_IN

    def adopt(self, candidate: object) -> Adapter:
        from remit.adapters.contract import adopt

        adapter = adopt(candidate)
        adapter.agent_configuration_doc()  # a model that cannot be described cannot be used
        return adapter

    def usable(self, type_: str, config: object) -> BaseModel:
        """Parse the settings of an agent that is to run now; raises if it cannot run."""
        if type_ not in self.types():
            raise Unsupported(
                f"There is no adapter {type_!r} here.",
                "Install it, or choose another.",
                code="no_adapter",
            )
        try:
            return self.read(type_, config)
        except BadInput as error:
            raise BadInput(error.sentence, error.step, code="bad_configuration") from None

    def validate(self, type_: str, config: object) -> dict[str, Any]:
        """Validate settings and return them as given; BadInput names the wrong field."""
        return plugins.validate(self.get(type_).Config, config)

    def lendable(self, type_: str, config: object) -> tuple[list[str], bool]:
        """Return the keys of a worker that a run with these settings is lent where they are set,
        and whether it is lent the login of its program without one."""
        adapter = self.get(type_)
        try:
            settings = self.read(type_, config)
            lent = adapter.lending(settings, dict.fromkeys(adapter.lends, "set"))
        except Exception:
            return list(adapter.lends), adapter.lends_login  # what it may be lent once it is right
        return [*lent.keys], adapter.lends_login and not getattr(settings, "secret_ref", None)

    def reader(self, type_: str | None) -> Reader:
        """Return the parser of a run's log into a transcript; for a removed or failing adapter, one
        that shows the log as it is."""
        from remit.adapters.reading import Reader

        if type_ is None or type_ not in self.types():
            return Reader()
        try:
            candidate: object = self.get(type_).reader()
        except Exception:
            return Reader()
        return candidate if isinstance(candidate, Reader) else Reader()

    async def try_out(
        self, type_: str, config: object, secret: str | None = None, *, free: bool = False
    ) -> Tried | None:
        """Send a trial request to the model's server, or one that costs nothing; None if the
        adapter has none."""
        from remit.adapters.contract import tried

        settings = self.read(type_, config)
        return await tried(self.get(type_), settings, os.environ, secret, free=free)

    def has_question(self, type_: str) -> bool:
        """Return whether the adapter knows a server that it can ask."""
        from remit.adapters.contract import Adapter

        return type_ in self.types() and type(self.get(type_)).question is not Adapter.question


#: The registry of this process.
installed = Registry()

types = installed.types
get = installed.get
all = installed.all  # noqa: A001  # read as `registry.all()`
problems = installed.problems
validate = installed.validate
read = installed.read
usable = installed.usable
check = installed.check
reader = installed.reader
lendable = installed.lendable
try_out = installed.try_out
has_question = installed.has_question


def best_adapter() -> str:
    """Return the preferred adapter that is usable here, else the scripted one; may take seconds."""
    from remit.adapters.contract import Adapter

    for type_ in WITH_MODEL:
        if type(get(type_)).run is not Adapter.run and check(type_).usable:
            return type_
    return WITHOUT_MODEL
