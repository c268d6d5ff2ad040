"""Rows of the tests' tables, made from what the verbs declare: one example for each type."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from remit.entrypoints.declared import chosen, declared
from remit.services.command import Kind
from remit.services.fields import Field, PlainName
from remit.services.surfaces import AsRoute, AsTool
from remit.services.verbs import Verb

#: What stands for each kind of thing that a parameter may refer to, by the kind.
Things = Mapping[str, str]
_TOOLS = {surface.name: (verb, surface) for verb, surface in declared(AsTool)}
_ROUTES = {
    f"{surface.method} /api{surface.path}": (verb, surface) for verb, surface in declared(AsRoute)
}


def tools(offer: str = "") -> list[str]:
    """The declared tools that are offered to those with a use for them."""
    return [name for name, (_, surface) in _TOOLS.items() if surface.offer == offer]


def tools_that_look() -> set[str]:
    return {name for name, (verb, _) in _TOOLS.items() if verb.kind is not Kind.COMMAND}


def required(tool: str) -> list[str]:
    """The arguments that a declared tool must be given."""
    verb, surface = _TOOLS[tool]
    return [surface.called(field.name) for field in chosen(verb, surface.without) if field.required]


def arguments(things: Things, *, whole: bool = False) -> dict[str, dict[str, Any]]:
    """What each declared tool takes; with `whole`, also what it can do without."""
    examples = {}
    for name, (verb, surface) in _TOOLS.items():
        examples[name] = _examples(verb, surface, surface.called, things, whole=whole)
        if whole and verb.kind is Kind.COMMAND:
            examples[name]["idempotency_key"] = "key"
    return examples


def bodies(things: Things) -> dict[str, dict[str, Any]]:
    """What each declared route with a body takes, by method and path; it is not to be changed."""
    return _bodies(tuple(sorted(things.items())))


@cache  # asked for with each of ten thousand requests
def _bodies(things: tuple[tuple[str, str], ...]) -> dict[str, dict[str, Any]]:
    examples = {}
    for address, (verb, surface) in _ROUTES.items():
        if surface.method in ("POST", "PATCH", "PUT"):
            examples[address] = _examples(verb, surface, surface.called, dict(things))
    return examples


def _examples(
    verb: Verb[..., Any],
    surface: AsTool | AsRoute,
    called: Any,
    things: Things,
    *,
    whole: bool = False,
) -> dict[str, Any]:
    in_path = surface.in_path if isinstance(surface, AsRoute) else {}
    needs = surface.needs if isinstance(surface, AsRoute) else ()
    return {
        called(field.name): _example(field, things)
        for field in chosen(verb, {*surface.without, *getattr(surface, "given", ())})
        if field.name not in in_path and (field.required or field.name in needs or whole)
    }


def _example(field: Field, things: Things) -> Any:
    if field.words:
        return field.words[0]
    if field.entries is not None:
        return [_example(field.entries, things)]
    if field.reference is not None:
        return things[field.reference.kind]
    if isinstance(field.text, PlainName):
        return "somebody"
    if field.moment:
        return "2999-01-01T00:00:00+00:00"
    if field.range is not None:
        return max(field.range.least, 1)
    if field.text is not None and field.text.empty:
        return ""
    return {str: "some words", int: 1, bool: True, list: [], dict: {}}[field.kind]
