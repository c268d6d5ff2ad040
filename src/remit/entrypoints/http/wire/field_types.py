"""Types of fields: described in /openapi.json, and checked when they arrive.

Schema and check use the constants, functions and sentences of the services. The check is repeated
here because not every field reaches a service each time: a note that counts only together with
something else must not be longer than described either.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import (
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    StrictBool,
    StrictInt,
    ValidationInfo,
    WithJsonSchema,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from remit.clock import from_iso
from remit.errors import BadInput
from remit.model.connections.mcp_server import LONGEST_SETTING, LONGEST_URL
from remit.model.connections.secret import LONGEST_PLACE, LONGEST_VALUE, SHORTEST_VALUE
from remit.model.organisation.agent_spec import LARGEST_BUDGET, AgentRole, Field, Holds
from remit.model.organisation.grant import ACTIONS
from remit.model.organisation.grant import Level as GrantLevel
from remit.model.organisation.grant import Mode as GrantMode
from remit.model.organisation.halt import LONGEST_NOTE as LONGEST_HALT
from remit.model.organisation.permission import PermissionLevel, Reach
from remit.model.text import (
    LONGEST_LABEL,
    LONGEST_NAME,
    LONGEST_REASON,
    NAME,
    clean_name,
    clean_text,
)
from remit.model.work.file import LONGEST_DESCRIPTION
from remit.model.work.outcome import LONGEST_TITLE, OutcomeStatus
from remit.services.hiring import agent_spec


@dataclass(frozen=True, eq=False)  # types are kept in sets
class Described:
    """Annotation of a type: the JSON schema of a value, and its check."""

    schema: Mapping[str, Any]
    #: Raises BadInput; takes the value and its name.
    check: Callable[[Any, str], object]

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.with_info_after_validator_function(self._checked, handler(source))

    def __get_pydantic_json_schema__(
        self, _: CoreSchema, __: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return dict(self.schema)

    def _checked(self, value: Any, info: ValidationInfo) -> Any:
        try:
            self.check(value, info.field_name or "it")
        except BadInput as wrong:
            if info.field_name is not None:
                raise
            # A query parameter, whose name the validator does not know; its caller adds it.
            told = {"sentence": wrong.sentence, "step": wrong.step}
            raise PydanticCustomError("refused", "{sentence}", told) from None
        return value


def text(longest: int, *, empty: bool = False) -> Described:
    """Text of at most `longest` characters; without `empty`, not only blanks."""
    schema: dict[str, Any] = {"type": "string", "maxLength": longest}
    if not empty:
        schema |= {"minLength": 1, "pattern": r"\S"}
    return Described(
        schema, lambda value, name: clean_text(value, name, longest=longest, empty_ok=empty)
    )


def words(*known: str) -> Described:
    def check(value: str, name: str) -> None:
        if value not in known:
            raise BadInput(f"{name} must be one of {', '.join(known)}.", "Choose one of these.")

    return Described({"type": "string", "enum": list(known)}, check)


def _only_false(value: bool, name: str) -> None:
    if value:
        raise BadInput(f"{name} can only be false.", "Leave it out.")


def one_of(kind: type[StrEnum]) -> Described:
    return words(*(member.value for member in kind))


class _Adapters:
    """Schema of the installed adapters, which are looked up when it is needed."""

    def __get_pydantic_json_schema__(
        self, _: CoreSchema, __: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"type": "string", "enum": sorted(agent_spec.adapter_types())}


Name = Annotated[
    str,
    Described(
        {"type": "string", "pattern": f"^{NAME.pattern}$", "maxLength": LONGEST_NAME}, clean_name
    ),
]
#: A permission of other systems that does not exist here.
Never = Annotated[StrictBool, Described({"type": "boolean", "const": False}, _only_false)]
Label = Annotated[str, text(LONGEST_LABEL, empty=True)]
Role = Annotated[str, one_of(AgentRole)]
AdapterKind = Annotated[str, _Adapters()]
Amount = Annotated[
    StrictInt, WithJsonSchema({"type": "integer", "minimum": 0, "maximum": LARGEST_BUDGET})
]
Level = Annotated[str, one_of(PermissionLevel)]
Governs = Annotated[str, one_of(Reach)]
Access = Annotated[str, words(*(level.word for level in GrantLevel))]
Mode = Annotated[str, one_of(GrantMode)]
Moment = Annotated[
    str, Described({"type": "string", "format": "date-time"}, lambda value, _: from_iso(value))
]
OutcomeTitle = Annotated[str, text(LONGEST_TITLE)]
ActionName = Annotated[str, words(*sorted(ACTIONS))]
SecretPlace = Annotated[str, text(LONGEST_PLACE)]
SecretValue = Annotated[
    str,
    WithJsonSchema(
        {
            "type": "string",
            "minLength": SHORTEST_VALUE,
            "maxLength": LONGEST_VALUE,
            "writeOnly": True,
        }
    ),
]
ServerUrl = Annotated[str, text(LONGEST_URL)]
Setting = Annotated[str, text(LONGEST_SETTING, empty=True)]
Remark = Annotated[str, text(LONGEST_REASON, empty=True)]
HaltNote = Annotated[str, text(LONGEST_HALT, empty=True)]
FileDescription = Annotated[str, text(LONGEST_DESCRIPTION)]
#: Query parameter that filters a list.
OUTCOME_STATUS: Final = one_of(OutcomeStatus)
_OF_AGENTS: Final[Mapping[Holds, Any]] = {
    Holds.NAME: Name,
    Holds.ROLE: Role,
    Holds.ADAPTER: AdapterKind,
    Holds.AMOUNT: Amount,
    Holds.DOCUMENT: dict[str, Any],
    Holds.PERMISSIONS: dict[str, Any],
}


def of_agent(field: Field) -> tuple[str, Any, Any]:
    """A field of an agent's description in a body."""
    written = Annotated[str, text(field.part.longest, empty=True)]
    return field.name, _OF_AGENTS.get(field.holds, written), None
