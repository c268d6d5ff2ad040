"""The adapter contract.

A plugin names its class under the entry point group `remit.adapters`. The class has a `type`, a
pydantic model `Config` whose fields are its documentation, and `check()`; it may derive from
`Adapter`, which supplies the rest, or be taken in by `adopt`.
"""

import asyncio
import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from pydantic import BaseModel

from remit.adapters.plugin_shape import Described, fitting
from remit.adapters.reading import Reader
from remit.adapters.running import RunContext, RunResult
from remit.adapters.setup.lending import Lent, pick
from remit.adapters.setup.probe import Tried

_TYPE = re.compile(r"[a-z][a-z0-9_-]{0,39}")
_LONGEST_SENTENCE = 300
#: More than any of ours takes.
_LONGEST_TRIAL = 6.0

Environment = Mapping[str, str]

#: Inside the class, `type` is something else.
_Reader = type[Reader]


@dataclass(frozen=True)
class Check:
    """Result of an adapter's look whether it can work here."""

    usable: bool
    sentence: str
    next_step: str = ""
    #: For programs and for `remit doctor`: versions, places, names. Never a secret.
    facts: Mapping[str, str | bool | None] = field(default_factory=dict)


class Adapter(Described, ABC):
    """One way to run an agent. It keeps no state: what a run needs comes with the run."""

    #: Variables of the worker's own environment that a run may be lent: keys for the model.
    lends: ClassVar[Sequence[str]] = ()

    #: Whether it can carry out a background job: see `RunContext.background`.
    background: ClassVar[bool] = False
    #: Whether its agents are elsewhere, and call back from there with the token of their run. The
    #: token of any other run is good only in this process and in the programs that it started.
    remote: ClassVar[bool] = False
    #: The reader that makes a transcript for people of the lines that its program prints.
    reads_with: ClassVar[_Reader] = Reader
    #: Where, in the workspace, its program looks for skills; None when it knows none.
    skills_folder: ClassVar[str | None] = None

    @abstractmethod
    def check(self, config: Any = None, environment: Environment | None = None) -> Check:
        """Look whether it can work, with this `Config` and this environment; may take seconds."""

    def lending(self, config: Any, environment: Environment) -> Lent:
        """Variables of the worker's environment that a run with this `Config` is lent."""
        del config  # of no consequence here
        return Lent(pick(environment, self.lends))

    async def try_out(self, config: Any, lent: Lent, secret: str | None) -> Tried | None:
        """Ask whoever serves the model, with what a run would have; within a few seconds.

        `secret` is the value of the secret that `secretRef` names. None: there is nobody to ask.
        """
        del config, lent, secret
        return None

    @abstractmethod
    async def run(self, context: RunContext) -> RunResult:
        """Carry out one run. It is cancelled when the run is over for another reason."""

    @classmethod
    def reader(cls) -> Reader:
        """Parser of the program's output lines into a transcript for people. A new one for each
        run, and for each reading of it; it may remember what it read."""
        return cls.reads_with()

    @classmethod
    def agent_configuration_doc(cls) -> str:
        """Documentation for an agent that configures another one."""
        return cls.documented()


def adopt(candidate: object) -> Adapter:
    """An adapter of a class that has what an adapter needs, or Unfit."""
    return fitting(candidate, Adapter, _TYPE, ("check", "run"))()  # type: ignore[type-abstract]


async def tried(
    adapter: Adapter, config: BaseModel, environment: Environment, secret: str | None
) -> Tried | None:
    """Call `try_out()` of something that we may not have written."""
    try:
        async with asyncio.timeout(_LONGEST_TRIAL):
            return await adapter.try_out(config, adapter.lending(config, environment), secret)
    except Exception as error:
        # Only the kind: the text may hold the key.
        return Tried(False, f"Trying it failed ({type(error).__name__}).", "Look at its settings.")


class Checking(Protocol):
    """An adapter, or a channel."""

    @property
    def check(self) -> Callable[..., Any]: ...


def looked(adapter: Checking, config: BaseModel | None, environment: Environment) -> Check:
    """Call `check()` of something that we may not have written."""
    try:
        taken = inspect.signature(adapter.check).parameters
        everything = any(one.kind is one.VAR_KEYWORD for one in taken.values())
        given = {"config": config, "environment": environment}
        answer = adapter.check(
            **{name: one for name, one in given.items() if everything or name in taken}
        )
    except Exception as error:
        # Only the kind: the text may hold what the adapter was looking at.
        sentence = f"It failed to check itself ({type(error).__name__})."
        return Check(False, sentence, "Look at the plugin, or choose another.")
    if isinstance(answer, Check):
        return answer
    if inspect.iscoroutine(answer):
        answer.close()
        return Check(False, "check() is asynchronous.", "Make it an ordinary function.")
    usable = answer is None or bool(answer)
    sentence = answer[:_LONGEST_SENTENCE] if isinstance(answer, str) else ""
    return Check(usable, sentence or ("It can be used." if usable else "It cannot be used."))
