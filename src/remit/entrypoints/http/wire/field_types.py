"""Types of fields as /openapi.json describes them.

What a field may hold is checked by the services, which say what is wrong in their own words. The
description is made of the very constants that they check with, so that the two agree.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import GetJsonSchemaHandler, StrictInt, WithJsonSchema
from pydantic_core import CoreSchema

from remit.model.connections.mcp_server import LONGEST_SETTING, LONGEST_URL
from remit.model.connections.secret import LONGEST_PLACE, LONGEST_VALUE, SHORTEST_VALUE
from remit.model.organisation.agent_spec import LARGEST_BUDGET, AgentRole, Field, Holds
from remit.model.organisation.grant import ACTIONS
from remit.model.organisation.grant import Level as GrantLevel
from remit.model.organisation.grant import Mode as GrantMode
from remit.model.organisation.halt import LONGEST_NOTE as LONGEST_HALT
from remit.model.organisation.permission import PermissionLevel, Reach
from remit.model.text import LONGEST_LABEL, LONGEST_NAME, LONGEST_REASON, NAME
from remit.model.work.file import LONGEST_DESCRIPTION
from remit.model.work.outcome import LONGEST_TITLE, OutcomeStatus
from remit.services.hiring import agent_spec


def text(longest: int | None = None, *, empty: bool = False) -> Any:
    """So much text; without `empty`, more than blanks."""
    schema: dict[str, Any] = {"type": "string"}
    if longest is not None:
        schema["maxLength"] = longest
    if not empty:
        schema |= {"minLength": 1, "pattern": r"\S"}
    return WithJsonSchema(schema)


def words(*known: str) -> Any:
    return WithJsonSchema({"type": "string", "enum": list(known)})


def one_of(kind: type[StrEnum]) -> Any:
    return words(*(one.value for one in kind))


class _Adapters:
    """Installed adapters, looked for when somebody asks."""

    def __get_pydantic_json_schema__(
        self, _: CoreSchema, __: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"type": "string", "enum": sorted(agent_spec.adapter_types())}


Name = Annotated[
    str,
    WithJsonSchema({"type": "string", "pattern": f"^{NAME.pattern}$", "maxLength": LONGEST_NAME}),
]
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
Moment = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]
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
#: Of a query: words that a list is narrowed by.
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
