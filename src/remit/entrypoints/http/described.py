"""Types of fields as /openapi.json describes them.

What a field may hold is checked by the services, which say what is wrong in their own words. The
description is made of the very constants that they check with, so that the two agree.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import GetJsonSchemaHandler, StrictInt, WithJsonSchema
from pydantic_core import CoreSchema

from remit.model.agent import AgentRole
from remit.model.approval import ASKED_DIRECTLY, LONGEST_COMMENT, LONGEST_NOTE, ApprovalStatus
from remit.model.company import LONGEST_NAME as LONGEST_COMPANY
from remit.model.file import LONGEST_DESCRIPTION
from remit.model.grant import Level as GrantLevel
from remit.model.grant import Mode as GrantMode
from remit.model.halt import LONGEST_NOTE as LONGEST_HALT
from remit.model.mail import LONGEST_SUBJECT, Messaging
from remit.model.outcome import LONGEST_DESCRIPTION as LONGEST_PURPOSE
from remit.model.outcome import LONGEST_TITLE, OutcomeStatus
from remit.model.permission import PermissionLevel, Reach
from remit.model.question import LONGEST_QUESTION
from remit.model.text import LONGEST_LABEL, LONGEST_NAME, LONGEST_REASON, NAME
from remit.model.user import UserRole
from remit.services import posts, schedules


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
    """Those that are installed, looked for when somebody asks."""

    def __get_pydantic_json_schema__(
        self, _: CoreSchema, __: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"type": "string", "enum": sorted(posts.adapter_types())}


Name = Annotated[
    str,
    WithJsonSchema({"type": "string", "pattern": f"^{NAME.pattern}$", "maxLength": LONGEST_NAME}),
]
CompanyName = Annotated[str, text(LONGEST_COMPANY)]
Label = Annotated[str, text(LONGEST_LABEL, empty=True)]
JobTitle = Annotated[str, text(posts.LONGEST_TITLE, empty=True)]
Role = Annotated[str, one_of(AgentRole)]
AdapterKind = Annotated[str, _Adapters()]
Capabilities = Annotated[str, text(posts.LONGEST_CAPABILITIES, empty=True)]
Prompt = Annotated[str, text(posts.LONGEST_PROMPT, empty=True)]
Amount = Annotated[
    StrictInt,
    WithJsonSchema({"type": "integer", "minimum": 0, "maximum": posts.LARGEST_BUDGET}),
]
Level = Annotated[str, one_of(PermissionLevel)]
Governs = Annotated[str, one_of(Reach)]
Access = Annotated[str, words(*(level.word for level in GrantLevel))]
Mode = Annotated[str, one_of(GrantMode)]
Moment = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]
Membership = Annotated[str, one_of(UserRole)]
MessagingRule = Annotated[str, one_of(Messaging)]
Requestable = Annotated[str, words(*sorted(kind.value for kind in ASKED_DIRECTLY))]
DecisionNote = Annotated[str, text(LONGEST_NOTE, empty=True)]
Comment = Annotated[str, text(LONGEST_COMMENT)]
OutcomeTitle = Annotated[str, text(LONGEST_TITLE)]
OutcomeText = Annotated[str, text(LONGEST_PURPOSE, empty=True)]
Reason = Annotated[str, text(LONGEST_REASON)]
Remark = Annotated[str, text(LONGEST_REASON, empty=True)]
HaltNote = Annotated[str, text(LONGEST_HALT, empty=True)]
FileDescription = Annotated[str, text(LONGEST_DESCRIPTION)]
Subject = Annotated[str, text(LONGEST_SUBJECT, empty=True)]
Letter = Annotated[str, text()]
ScheduledLetter = Annotated[str, text(schedules.LONGEST_BODY)]
Asked = Annotated[str, text(LONGEST_QUESTION)]
#: Of a query: words that a list is narrowed by.
OUTCOME_STATUS: Final = one_of(OutcomeStatus)
APPROVAL_STATUS: Final = one_of(ApprovalStatus)
