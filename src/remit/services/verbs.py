"""Verbs: functions of a `Context` with a name, which the gate runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from remit.services.context import Context, Kind

P = ParamSpec("P")
R = TypeVar("R")
Answer = dict[str, Any]


@dataclass(frozen=True)
class Verb(Generic[P, R]):
    name: str
    kind: Kind
    body: Callable[Concatenate[Context, P], R]


#: By name, so that a call that waited for approval can be carried out later.
_VERBS: dict[str, Verb[..., Any]] = {}


def query(body: Callable[Concatenate[Context, P], R]) -> Verb[P, R]:
    return _verb(Kind.QUERY, body)


def logged(body: Callable[Concatenate[Context, P], R]) -> Verb[P, R]:
    return _verb(Kind.LOGGED, body)


def command(body: Callable[Concatenate[Context, P], Answer]) -> Verb[P, Answer]:
    return _verb(Kind.COMMAND, body)


def verb_named(name: str) -> Verb[..., Any]:
    if name not in _VERBS:
        import_module(f"remit.services.{name.partition('.')[0]}")
    return _VERBS[name]


def _verb(kind: Kind, body: Callable[Concatenate[Context, P], R]) -> Verb[P, R]:
    verb = Verb(_name(body), kind, body)
    _VERBS[verb.name] = verb
    return verb


def _name(body: Callable[..., Any]) -> str:
    return f"{body.__module__.rpartition('.')[2]}.{body.__name__}"
