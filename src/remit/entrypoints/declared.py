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
        field
        for field in verb.fields.values()
        if field.name not in hidden and not field.name.startswith("new_")
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
    definitions: dict[str, Any] = {}
    for field in fields:
        kind = kind_of(field)
        description = for_model(field) if model_only else for_people(field)
        usual: dict[str, Any] = {"alias": called(field.name), "description": description or None}
        if field.kind is list and field.default == ():
            usual["default_factory"] = list
        elif not field.required:
            usual["default"] = field.default
        definitions[field.name] = (kind | None if field.optional else kind, PydanticField(**usual))
    return create_model(name, __base__=base, **definitions)


def for_model(field: Field) -> str:
    """Description of a parameter for a model, in few tokens."""
    return field.help.text.rstrip(".") if field.help is not None and field.help.model else ""


def for_people(field: Field) -> str:
    sentences = [] if field.help is None else [field.help.text.rstrip(".")]
    sentences += [f"null {mark.what}" for mark in field.marks if isinstance(mark, Cleared)]
    return "; ".join(sentences) + "." if sentences else ""
