"""Verbs: functions of a `Context` with a stored name, which the gate runs.

Calls that wait for approval, and the answers kept for repeats, outlive a release: their rows hold
the name of a verb, the names of its arguments and the version of both. So a name is declared and
stays, wherever the function moves; and a parameter that is renamed, added or removed is declared
as a change, which makes a new version and carries older calls over to it.

    @command("outcomes.reopen", Renamed("outcome", "outcome_id"), Added("note", ""))
    def reopen(ctx: Context, *, outcome_id: str, note: str = "") -> Answer: ...
"""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from remit.errors import Conflict
from remit.services.context import Context, Kind

P = ParamSpec("P")
R = TypeVar("R")
Answer = dict[str, Any]
Arguments = dict[str, Any]


@dataclass(frozen=True)
class Renamed:
    """A parameter has another name."""

    old: str
    new: str

    def carry_over(self, arguments: Arguments) -> Arguments:
        return {self.new if name == self.old else name: arguments[name] for name in arguments}


@dataclass(frozen=True)
class Added:
    """There is one more parameter. `value` is what calls without it have always meant."""

    name: str
    value: Any

    def carry_over(self, arguments: Arguments) -> Arguments:
        return {**arguments, self.name: self.value}


@dataclass(frozen=True)
class Removed:
    """A parameter is gone. `value` is what the verb does now; only calls with it mean the same."""

    name: str
    value: Any

    def carry_over(self, arguments: Arguments) -> Arguments:
        if arguments.get(self.name, self.value) != self.value:
            raise _cannot_be_carried_out(f"it has no argument {self.name} any more")
        return {name: value for name, value in arguments.items() if name != self.name}


Change = Renamed | Added | Removed


@dataclass(frozen=True)
class Verb(Generic[P, R]):
    #: As it is stored; it never changes.
    name: str
    kind: Kind
    body: Callable[Concatenate[Context, P], R]
    #: What happened to its parameters, oldest first.
    changes: tuple[Change, ...] = ()

    @property
    def version(self) -> int:
        """Of the parameters; stored with each call."""
        return 1 + len(self.changes)

    @property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """All but the context."""
        return dict(list(inspect.signature(self.body).parameters.items())[1:])

    def carry_over(self, arguments: Arguments, version: int) -> Arguments:
        """The arguments of a call that was stored in that version, as they are named now."""
        if not 1 <= version <= self.version:
            raise _cannot_be_carried_out("a newer program stored it")
        for change in self.changes[version - 1 :]:
            arguments = change.carry_over(arguments)
        return arguments


#: By name, so that a call that waited for approval can be carried out later.
_VERBS: dict[str, Verb[..., Any]] = {}


def query(
    name: str, *changes: Change
) -> Callable[[Callable[Concatenate[Context, P], R]], Verb[P, R]]:
    return lambda body: _declare(Verb(name, Kind.QUERY, body, changes))


def logged(
    name: str, *changes: Change
) -> Callable[[Callable[Concatenate[Context, P], R]], Verb[P, R]]:
    return lambda body: _declare(Verb(name, Kind.LOGGED, body, changes))


def command(
    name: str, *changes: Change
) -> Callable[[Callable[Concatenate[Context, P], Answer]], Verb[P, Answer]]:
    return lambda body: _declare(Verb(name, Kind.COMMAND, body, changes))


def verb_named(name: str) -> Verb[..., Any]:
    if name not in _VERBS:
        all_verbs()
    if name not in _VERBS:
        raise _cannot_be_carried_out(f"there is no {name} any more")
    return _VERBS[name]


def all_verbs() -> Mapping[str, Verb[..., Any]]:
    """Every verb of the product, wherever it is declared."""
    import remit.services

    for module in pkgutil.walk_packages(remit.services.__path__, "remit.services."):
        import_module(module.name)
    return {name: verb for name, verb in _VERBS.items() if _place(verb).startswith("remit.")}


def _declare(verb: Verb[P, R]) -> Verb[P, R]:
    other = _VERBS.get(verb.name)
    if other is not None and _place(other) != _place(verb):
        raise ValueError(f"{verb.name} is declared by {_place(other)} and by {_place(verb)}")
    _VERBS[verb.name] = verb
    return verb


def _place(verb: Verb[..., Any]) -> str:
    return f"{verb.body.__module__}.{verb.body.__qualname__}"


def _cannot_be_carried_out(because: str) -> Conflict:
    return Conflict(
        f"The call was stored by another version of Remit and cannot be carried out: {because}.",
        "Reject it; whoever asked can ask again.",
    )
