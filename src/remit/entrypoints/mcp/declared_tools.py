"""Tools of the verbs that declare one (`AsTool`)."""

from functools import cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from remit.app import App
from remit.entrypoints.declared import chosen, declared, model
from remit.entrypoints.mcp.arguments import Arguments, Repeatable
from remit.entrypoints.mcp.registry import KEY, Tool
from remit.services import fields
from remit.services.command import Kind
from remit.services.identity import Caller
from remit.services.knowledge.file_contents import Library
from remit.services.surfaces import AsTool
from remit.services.verbs import Verb


def build(app: App) -> tuple[Tool, ...]:
    return tuple(_tool(app.library, *declaration) for declaration in _declared())


@cache
def _declared() -> tuple[tuple[Verb[..., Any], AsTool, type[BaseModel]], ...]:
    """Verbs with a tool, and the models of its arguments, which take 40 ms for all."""
    return tuple((verb, surface, _arguments(verb, surface)) for verb, surface in declared(AsTool))


def _arguments(verb: Verb[..., Any], surface: AsTool) -> type[BaseModel]:
    return model(
        surface.name,
        Repeatable if verb.kind is Kind.COMMAND else Arguments,
        chosen(verb, (*surface.without, *surface.given)),
        _strict,
        surface.called,
        model_only=True,
    )


def _tool(
    library: Library, verb: Verb[..., Any], surface: AsTool, arguments: type[BaseModel]
) -> Tool:
    async def call(caller: Caller, arguments: BaseModel) -> dict[str, Any]:
        values = arguments.model_dump(exclude_none=True, exclude={KEY})
        answer = await library.call(caller, verb, **values, **surface.given)
        return {surface.answer: answer} if surface.answer else answer

    return Tool(
        surface.name,
        surface.words or verb.words,
        arguments,
        call,
        mutates=verb.kind is Kind.COMMAND,
        offer=surface.offer,
    )


def _strict(field: fields.Field) -> Any:
    """Strict type of an argument: too much text is refused before the verb is called."""
    if field.words:
        return Literal[field.words]
    if field.entries is not None:
        return Annotated[list[_strict(field.entries)], Field(max_length=field.most)]  # type: ignore[misc]
    if field.reference is not None:
        return Annotated[str, Field(max_length=fields.LONGEST_REFERENCE)]
    if field.moment:
        return Annotated[str, Field(max_length=fields.LONGEST_MOMENT)]
    if field.text is not None:
        return Annotated[str, Field(max_length=field.text.longest)]
    if field.range is not None:
        return Annotated[int, Field(ge=field.range.least, le=field.range.most)]
    return field.kind
