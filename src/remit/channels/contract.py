"""What a channel is.

A plugin names its class under the entry point group `remit.channels`. The class has a `type`, a
pydantic model `Config` whose fields are its documentation, `check()` and `async def deliver()`; it
may derive from `Channel`, which supplies the rest, or be taken in by `adopt`.
"""

from __future__ import annotations

import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import BaseModel

from remit.adapters.contract import Check, Environment
from remit.adapters.documentation import configuration_doc
from remit.adapters.fitting import Unfit, fitting
from remit.clock import Micros

_TYPE = re.compile(r"[a-z][a-z0-9-]{0,31}")
#: Inside the class, `type` is something else.
_Model = type[BaseModel]


class Undelivered(Exception):
    """Why a message did not get through, in words that may be shown to people.

    It is tried again unless it is `for_good`. The text must not hold a secret.
    """

    def __init__(self, sentence: str, *, for_good: bool = False) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.for_good = for_good


@dataclass(frozen=True)
class Parcel:
    """A message on its way out, and what is needed to deliver it.

    It may come more than once, with the same `id`: after a failure, or when a process was killed
    and nobody knows whether it got through.
    """

    id: str
    #: Who wrote it, such as `agent:support`.
    sender: str
    #: The whole address, such as `channel:webhook:room-7`, and its last part.
    address: str
    conversation: str
    subject: str
    body: str
    thread: str
    #: The message that this answers, as Remit and as the outside calls it.
    reply_to: str | None
    reply_to_outside: str | None
    created_at: Micros
    now: Micros
    attempt: int
    #: The settings of the binding, read by the channel's own model.
    config: Any
    #: What to sign with, so that the outside can tell that Remit sent it.
    key: bytes
    #: Whether the operator lets channels call addresses in private networks.
    private: bool = False


class Channel(ABC):
    """One kind of outside chat system. It keeps no state: what it needs comes with a message."""

    #: How it is named in addresses and bindings.
    type: ClassVar[str]
    #: One sentence: what is on the other side.
    summary: ClassVar[str] = ""
    #: The keys of a binding's `adapterConfig`; the description of a field is its documentation.
    Config: ClassVar[_Model]
    #: What whoever binds an agent to it should know before.
    safety: ClassVar[Sequence[str]] = ()
    #: Whole values of `adapterConfig` that work, each with a word on what it is for.
    examples: ClassVar[Mapping[str, Mapping[str, Any]]] = {}

    @abstractmethod
    def check(self, config: Any = None, environment: Environment | None = None) -> Check:
        """Look whether it can work, with this `Config`; may take seconds."""

    @abstractmethod
    async def deliver(self, parcel: Parcel) -> None:
        """Hand one message to the outside; returning means that it has it. Raises `Undelivered`."""

    def sends(self, config: Any) -> bool:
        """Whether anything can be sent through a binding like this."""
        del config
        return True

    @classmethod
    def configuration_doc(cls) -> str:
        """What a person reads before they bind an agent to it."""
        return configuration_doc(
            cls.type,
            cls.summary,
            cls.Config,
            safety=cls.safety,
            examples=cls.examples,
            around={"agent": "ada"},
        )


def adopt(candidate: object) -> Channel:
    """A channel of a class that has what a channel needs, or Unfit."""
    found = fitting(candidate, Channel, _TYPE, ("check", "deliver"))  # type: ignore[type-abstract]
    if not inspect.iscoroutinefunction(found.deliver):
        raise Unfit("has a `deliver()` that is not asynchronous")
    return found()
