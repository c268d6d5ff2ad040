"""Base classes of tool arguments, and tools made from functions."""

import inspect
from typing import Annotated, Any

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from remit.entrypoints.mcp.registry import Call, Tool
from remit.model.organisation import agent_spec
from remit.model.organisation.agent_spec import Holds


class Arguments(BaseModel):
    """Nothing is guessed: unknown names and other types are errors that the agent can read."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Repeatable(Arguments):
    """Arguments of a tool that changes something."""

    idempotency_key: Annotated[str | None, Field(max_length=255)] = None


def tool(call: Call, *, offer: str = "") -> Tool:
    """Make a tool from a function: its name, its docstring, and the type of its arguments."""
    _, parameter = inspect.signature(call, eval_str=True).parameters.values()
    arguments: type[Arguments] = parameter.annotation
    words = " ".join((call.__doc__ or "").split())
    mutates = issubclass(arguments, Repeatable)
    return Tool(call.__name__, words, arguments, call, mutates=mutates, offer=offer)


FileRef = Annotated[str, Field(description="File id", max_length=64)]

_OF_AGENTS: dict[Holds, Any] = {
    Holds.AMOUNT: int,
    Holds.DOCUMENT: dict[str, Any],
    Holds.PERMISSIONS: dict[str, Any],
}


def of_agent(field: agent_spec.Field) -> tuple[str, Any, Any]:
    """A field of an agent's description as over HTTP, in snake_case, or by its shorter name."""
    names = [name for name in (field.key, field.name, field.part.also) if name]
    return _declared(field, AliasChoices(*names))


def of_helper(field: agent_spec.Field) -> tuple[str, Any, Any]:
    """Like `of_agent`, with one name, the shorter if there is one. Omitted settings are empty, not
    those of the boss, which may lend a secret."""
    name, kind, about = _declared(field, field.part.also or field.name)
    if field.holds is Holds.DOCUMENT:
        about = Field(default_factory=dict, validation_alias=about.validation_alias)
    return name, kind, about


def _declared(field: agent_spec.Field, alias: str | AliasChoices) -> tuple[str, Any, Any]:
    # How long a text may be is for the services to say.
    bounded = field.holds in (Holds.NAME, Holds.ROLE, Holds.LINE)
    longest = field.part.longest if bounded else None
    kind: Any = Annotated[_OF_AGENTS.get(field.holds, str), Field(max_length=longest)]
    about = Field(None, description=field.part.hint or None, validation_alias=alias)
    return field.name, kind, about
