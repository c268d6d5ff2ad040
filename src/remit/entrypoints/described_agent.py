"""Request bodies and tool arguments that describe an agent: their fields come from its spec."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from pydantic import BaseModel, create_model

from remit.model.organisation.agent_spec import Field, Holds

M = TypeVar("M", bound=BaseModel)
#: A name, the type of its values, and its default.
Declared = tuple[str, Any, Any]


def describing(
    fields: Iterable[Field], declare: Callable[[Field], Declared], *, new: bool = True
) -> Callable[[type[M]], type[M]]:
    """Class decorator: put fields of an agent's description before the model's own. The name of a
    `new` agent is required; all other fields are optional."""
    definitions: dict[str, Any] = {}
    for field in fields:
        name, kind, about = declare(field)
        required = new and field.holds is Holds.NAME
        definitions[name] = (kind, ...) if required else (kind | None, about)

    def add(model: type[M]) -> type[M]:
        described_model = create_model(
            model.__name__,
            __base__=model,
            __doc__=model.__doc__,
            __module__=model.__module__,
            **definitions,
        )
        order = [
            *definitions,
            *(name for name in described_model.model_fields if name not in definitions),
        ]
        described_model.__pydantic_fields__ = {
            name: described_model.model_fields[name] for name in order
        }
        described_model.model_rebuild(force=True)
        return described_model

    return add
