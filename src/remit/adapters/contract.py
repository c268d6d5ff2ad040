"""The adapter contract.

A plugin names its class under the entry point group `remit.adapters`. The class has a `type`, a
pydantic model `Config` whose fields document it, `check()` and `run()`. It may derive from
`Adapter`, which supplies the rest; otherwise `adopt` adds `Adapter` as a base.
"""

import asyncio
import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from pydantic import BaseModel

from remit.adapters.conversation import Conversation
from remit.adapters.plugin_shape import Described, fitting
from remit.adapters.price_table import Served
from remit.adapters.reading import Reader
from remit.adapters.running import RunContext, RunResult
from remit.adapters.setup import probe
from remit.adapters.setup.lending import Lent, pick
from remit.adapters.setup.probe import Tried

_TYPE = re.compile(r"[a-z][a-z0-9_-]{0,39}")
_LONGEST_SENTENCE = 300
#: Time limit of a trial; more than any built-in adapter takes.
_LONGEST_TRIAL = 6.0

Environment = Mapping[str, str]

#: An alias, because inside the class `type` is an attribute.
_Reader = type[Reader]


@dataclass(frozen=True)
class Check:
    """The result of an adapter's check whether it can work here."""

    usable: bool
    sentence: str
    next_step: str = ""
    #: For programs and for `remit doctor`: versions, places, names. Never a secret.
    facts: Mapping[str, str | bool | None] = field(default_factory=dict)


class Adapter(Described, ABC):
    """One way to run an agent. It is stateless: a run gets everything from its context."""

    #: Variables of the worker's environment that a run may be lent: keys for the model.
    lends: ClassVar[Sequence[str]] = ()

    #: Whether a run without a key is lent the login of its program on the worker.
    lends_login: ClassVar[bool] = False

    #: Whether it can execute background jobs: see `RunContext.background`.
    background: ClassVar[bool] = False
    #: Whether its agents run elsewhere and call back from there with the token of their run. The
    #: tokens of other runs are accepted only from this process and from programs that it started.
    remote: ClassVar[bool] = False
    #: The reader that turns its program's output into a transcript for people.
    reads_with: ClassVar[_Reader] = Reader
    #: Whether its program itself says what a run cost.
    reports_cost: ClassVar[bool] = False
    #: Whether its runs can take tokens of a model that has a price.
    takes_tokens: ClassVar[bool] = True
    #: Whether its program, or the model by itself, reads skills (`RunContext.skills`).
    reads_skills: ClassVar[bool] = False
    #: The conversations that its program keeps in the home of an agent; None without any.
    conversation: ClassVar[Conversation | None] = None

    @abstractmethod
    def check(self, config: Any = None, environment: Environment | None = None) -> Check:
        """Check whether it can work with this `Config` and environment; may take seconds."""

    def lending(self, config: Any, environment: Environment) -> Lent:
        """Return what a run with this `Config` is lent of the worker's environment."""
        del config  # of no consequence here
        return Lent(pick(environment, self.lends))

    def served(self, config: Any) -> Served | None:
        """Return the model that a run with this `Config` uses; None if the configuration names
        none. Its price is looked up: see `remit.adapters.price_table`."""
        model = getattr(config, "model", None)
        return Served(model) if isinstance(model, str) else None

    def question(self, config: Any, lent: Lent, secret: str | None) -> probe.Request | Tried | None:
        """Return a small request to the model's server, with a run's credentials; or why there is
        none.

        `secret` is the value of the secret that `secretRef` names. None: there is no server.
        """
        del config, lent, secret
        return None

    async def try_out(self, config: Any, lent: Lent, secret: str | None) -> Tried | None:
        """Send the request to the model's server; takes seconds."""
        return await probe.asked(self.question(config, lent, secret))

    async def ask_free(self, config: Any, lent: Lent, secret: str | None) -> Tried | None:
        """Ask the model's server for its list of models instead, which costs nothing."""
        return await probe.asked(self.question(config, lent, secret), free=True)

    @abstractmethod
    async def run(self, context: RunContext) -> RunResult:
        """Execute one run. The call is cancelled when the run ends for another reason."""

    @classmethod
    def reader(cls) -> Reader:
        """Return a new, stateful parser of the program's output into a transcript for people; each
        reading of a run gets its own."""
        return cls.reads_with()

    @classmethod
    def agent_configuration_doc(cls) -> str:
        """Return the documentation for an agent that configures another one."""
        return cls.documented()


def adopt(candidate: object) -> Adapter:
    """Return an adapter of a class that has the shape of one; raises Unfit otherwise."""
    return fitting(candidate, Adapter, _TYPE, ("check", "run"))()  # type: ignore[type-abstract]


async def tried(
    adapter: Adapter,
    config: BaseModel,
    environment: Environment,
    secret: str | None,
    *,
    free: bool = False,
) -> Tried | None:
    """Call `try_out()` of an adapter, or `ask_free()`, guarded against a plugin's failures."""
    ask = adapter.ask_free if free else adapter.try_out
    try:
        async with asyncio.timeout(_LONGEST_TRIAL):
            return await ask(config, adapter.lending(config, environment), secret)
    except Exception as error:
        # Only the type, because the text may contain the key.
        return Tried(False, f"Trying it failed ({type(error).__name__}).", "Look at its settings.")


class Checking(Protocol):
    """An adapter, or a channel."""

    @property
    def check(self) -> Callable[..., Any]: ...


def looked(adapter: Checking, config: BaseModel | None, environment: Environment) -> Check:
    """Call `check()` of an adapter or channel, guarded against a plugin's failures and shape."""
    try:
        taken = inspect.signature(adapter.check).parameters
        everything = any(parameter.kind is parameter.VAR_KEYWORD for parameter in taken.values())
        arguments = {"config": config, "environment": environment}
        answer = adapter.check(
            **{
                name: argument
                for name, argument in arguments.items()
                if everything or name in taken
            }
        )
    except Exception as error:
        # Only the type, because the text may contain the settings.
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
