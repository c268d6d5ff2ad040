"""Declarations of the verbs by surface, for the entry points that build it."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from pydantic import BaseModel, create_model
from pydantic import Field as PydanticField

from remit.services.fields import Cleared, Field
from remit.services.surfaces import AsCommand, AsRoute, AsTool
from remit.services.verbs import Verb, all_verbs

SomeSurface = TypeVar("SomeSurface", AsTool, AsRoute, AsCommand)
Kinds = Callable[[Field], Any]


def declared(kind: type[SomeSurface]) -> Iterator[tuple[Verb[..., Any], SomeSurface]]:
    """Yield the verbs that declare a surface of this kind, once per declaration."""
    for _, verb in sorted(all_verbs().items()):
        for surface in verb.surfaces:
            if isinstance(surface, kind):
                yield verb, surface


def chosen(verb: Verb[..., Any], without: Iterable[str]) -> list[Field]:
    """Return the parameters that a caller gives; those that begin with `new_` are internal."""
    hidden = set(without)
    return [
        one
        for one in verb.fields.values()
        if one.name not in hidden and not one.name.startswith("new_")
    ]


def model(
    name: str,
    base: type[BaseModel],
    fields: Iterable[Field],
    kind_of: Kinds,
    called: Callable[[str], str],
    *,
    model_only: bool = False,
) -> type[BaseModel]:
    """Make a Pydantic model whose fields are parameters, under the surface's names for them."""
    made: dict[str, Any] = {}
    for one in fields:
        kind = kind_of(one)
        said = for_model(one) if model_only else for_people(one)
        usual: dict[str, Any] = {"alias": called(one.name), "description": said or None}
        if not one.required:
            usual |= _default(one)
        made[one.name] = (kind | None if one.optional else kind, PydanticField(**usual))
    return create_model(name, __base__=base, **made)


def for_model(one: Field) -> str:
    """Description of a parameter for a model, in few tokens."""
    return one.help.text.rstrip(".") if one.help is not None and one.help.model else ""


def for_people(one: Field) -> str:
    said = [] if one.help is None else [one.help.text.rstrip(".")]
    said += [f"null {mark.what}" for mark in one.marks if isinstance(mark, Cleared)]
    return "; ".join(said) + "." if said else ""


def _default(one: Field) -> dict[str, Any]:
    return (
        {"default_factory": list}
        if one.kind is list and one.default == ()
        else {"default": one.default}
    )
