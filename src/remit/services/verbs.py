"""Verbs: functions of a `Context` with a stored name, which the gate runs.

Calls that wait for approval, and the answers kept for repeats, outlive a release: their rows hold
the name of a verb, the names of its arguments and the version of both. So a name is declared and
stays, wherever the function moves; and a parameter that is renamed, added or removed is declared
as a change, which makes a new version and carries older calls over to it.

    @command("nouns.verb", Renamed("old", "new"), Added("note", ""))
    def verb(ctx: Context, *, new: str, note: str = "") -> Answer: ...

The surfaces from which a verb can be called are declared in the same place: `surfaces.py`.
"""

import inspect
import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, wraps
from importlib import import_module
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, cast, overload

from remit.errors import Conflict
from remit.services.context import Context, Kind, system_only
from remit.services.fields import Field, Stored, fields_of, spread_shared
from remit.services.surfaces import AsRoute, Surface

P = ParamSpec("P")
R = TypeVar("R")
#: The answer of a verb as a dictionary, as a stored one is read; its keys are declared by its
#: shape.
Answer = dict[str, Any]
#: Keyword arguments, as the verb's parameters declare them.
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
    """A parameter was added. `value` is what calls without it have always meant."""

    name: str
    value: Any

    def carry_over(self, arguments: Arguments) -> Arguments:
        return {**arguments, self.name: self.value}


@dataclass(frozen=True)
class Removed:
    """A parameter was removed. `value` is what the verb does now; only calls with it mean the
    same."""

    name: str
    value: Any

    def carry_over(self, arguments: Arguments) -> Arguments:
        if arguments.get(self.name, self.value) != self.value:
            raise _cannot_be_carried_out(f"it has no argument {self.name} any more")
        return {name: value for name, value in arguments.items() if name != self.name}


class ForRemit:
    """Marks a verb of background work, which is hidden from everybody but Remit itself."""


FOR_REMIT = ForRemit()
Change = Renamed | Added | Removed
Declared = Change | Surface | ForRemit


@dataclass(frozen=True)
class Verb(Generic[P, R]):
    #: The stored name; it never changes.
    name: str
    kind: Kind
    body: Callable[Concatenate[Context, P], R]
    #: Changes of its parameters, oldest first.
    changes: tuple[Change, ...] = ()
    #: Surfaces that it can be called from.
    surfaces: tuple[Surface, ...] = ()
    #: Fields of a description that it also takes (`**described`). An absent one means its default,
    #: so a new field needs no new version.
    described: tuple[str, ...] = ()
    #: Whether it is background work, hidden from everybody but Remit itself.
    for_remit: bool = False

    @property
    def version(self) -> int:
        """Version of the parameters; stored with each call."""
        return 1 + len(self.changes)

    @property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """The parameters without the context."""
        own = list(inspect.signature(self.body).parameters.items())[1:]
        kind = inspect.Parameter.KEYWORD_ONLY
        return {
            **{
                name: parameter
                for name, parameter in own
                if parameter.kind is not inspect.Parameter.VAR_KEYWORD
            },
            **{name: inspect.Parameter(name, kind, default=None) for name in self.described},
        }

    @cached_property
    def fields(self) -> Mapping[str, Field]:
        """The parameters with the marks of their types."""
        return fields_of(self.body)

    @cached_property
    def stored(self) -> Field | None:
        """The parameter whose text is stored as a file."""
        return next((field for field in self.fields.values() if Stored() in field.marks), None)

    @property
    def words(self) -> str:
        """The first paragraph of its docstring."""
        return " ".join((self.body.__doc__ or "").strip().partition("\n\n")[0].split())

    def carry_over(self, arguments: Arguments, version: int) -> Arguments:
        """Return the arguments of a call that was stored in that version, under their present
        names."""
        if not 1 <= version <= self.version:
            raise _cannot_be_carried_out("a newer program stored it")
        for change in self.changes[version - 1 :]:
            arguments = change.carry_over(arguments)
        return arguments


#: By name, for calls that waited for approval.
_VERBS: dict[str, Verb[..., Any]] = {}


class _Declares(Protocol):
    """Decorator that makes a verb of a function. The annotated return type is the shape of the
    answer, for descriptions of the API; callers get a plain dictionary, as from a stored answer."""

    @overload
    def __call__(
        self, body: Callable[Concatenate[Context, P], Mapping[str, object]]
    ) -> Verb[P, Answer]: ...

    @overload
    def __call__(
        self, body: Callable[Concatenate[Context, P], Sequence[Mapping[str, object]]]
    ) -> Verb[P, list[Answer]]: ...

    @overload
    def __call__(self, body: Callable[Concatenate[Context, P], R]) -> Verb[P, R]: ...


def query(name: str, *declared: Declared) -> _Declares:
    return cast(_Declares, lambda body: _declare(name, Kind.QUERY, body, declared))


def logged(name: str, *declared: Declared) -> _Declares:
    return cast(_Declares, lambda body: _declare(name, Kind.LOGGED, body, declared))


def command(
    name: str, *declared: Declared, described: Iterable[str] = ()
) -> Callable[[Callable[Concatenate[Context, P], Mapping[str, object]]], Verb[P, Answer]]:
    def declare(body: Callable[Concatenate[Context, P], Any]) -> Verb[P, Answer]:
        return _declare(name, Kind.COMMAND, body, declared, tuple(described))

    return declare


def preview_of(name: str, verb: Verb[P, Answer]) -> Verb[P, Answer]:
    """Declare a verb that returns what another would do, and rolls back."""

    @wraps(verb.body)
    def previewed(ctx: Context, /, *args: P.args, **kwargs: P.kwargs) -> Answer:
        answer = verb.body(ctx, *args, **kwargs)
        ctx.tx.restart()
        return {**answer, **({"event_id": None} if "event_id" in answer else {}), "dry_run": True}

    return _declare(name, Kind.LOGGED, previewed, ())


def verb_named(name: str) -> Verb[..., Any]:
    if name not in _VERBS:
        all_verbs()
    if name not in _VERBS:
        raise _cannot_be_carried_out(f"there is no {name} any more")
    return _VERBS[name]


def all_verbs() -> Mapping[str, Verb[..., Any]]:
    """Return every verb of the product, wherever it is declared."""
    import remit.services

    for module in pkgutil.walk_packages(remit.services.__path__, "remit.services."):
        import_module(module.name)
    return {name: verb for name, verb in _VERBS.items() if _place(verb).startswith("remit.")}


def _declare(
    name: str,
    kind: Kind,
    body: Callable[Concatenate[Context, P], R],
    declared: tuple[Declared, ...],
    described: tuple[str, ...] = (),
) -> Verb[P, R]:
    changes = tuple(declaration for declaration in declared if isinstance(declaration, Change))
    surfaces = tuple(
        declaration for declaration in declared if not isinstance(declaration, Change | ForRemit)
    )
    for_remit = FOR_REMIT in declared
    # Errors name parameters as over HTTP, if there is a route.
    called = next((surface.called for surface in surfaces if isinstance(surface, AsRoute)), str)
    spread_shared(body)
    body = _ours(body) if for_remit else body
    cleaned = _cleaning(body, called) if surfaces else body
    verb = Verb(name, kind, cleaned, changes, surfaces, described, for_remit)
    other = _VERBS.get(name)
    if other is not None and _place(other) != _place(verb):
        raise ValueError(f"{name} is declared by {_place(other)} and by {_place(verb)}")
    _VERBS[name] = verb
    return verb


def _ours(body: Callable[Concatenate[Context, P], R]) -> Callable[Concatenate[Context, P], R]:
    """Return the body of a verb that only Remit itself may call."""

    @wraps(body)
    def called(ctx: Context, /, *args: P.args, **kwargs: P.kwargs) -> R:
        system_only(ctx)
        return body(ctx, *args, **kwargs)

    return called


def _cleaning(
    body: Callable[Concatenate[Context, P], R], called: Callable[[str], str]
) -> Callable[Concatenate[Context, P], R]:
    """Return the body of a verb with its text arguments cleaned."""
    texts = cache(lambda: [field for field in fields_of(body).values() if field.is_cleaned])

    @wraps(body)
    def cleaned(ctx: Context, /, *args: P.args, **kwargs: P.kwargs) -> R:
        for text in texts():
            if text.name in kwargs and not (text.optional and kwargs[text.name] is None):
                kwargs[text.name] = text.clean(kwargs[text.name], called(text.name))
        return body(ctx, *args, **kwargs)

    return cleaned


def _place(verb: Verb[..., Any]) -> str:
    return f"{verb.body.__module__}.{verb.body.__qualname__}"


def _cannot_be_carried_out(because: str) -> Conflict:
    return Conflict(
        f"The call was stored by another version of Remit and cannot be carried out: {because}.",
        "Reject it; whoever asked can ask again.",
    )
