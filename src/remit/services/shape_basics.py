"""Common parts of shapes: times, enums, names, and fields of several of them."""

from __future__ import annotations

from typing import Annotated, Any, Final, NotRequired, TypedDict

from remit.model.organisation.agent_spec import AgentRole

#: Marks a text that is a time in ISO 8601.
MOMENT: Final = "date-time"

#: A document with keys that are defined elsewhere: settings of an adapter or a channel, a file that
#: a person wrote, a table of an export. It is validated where it is read.
JsonObject = dict[str, Any]

Moment = Annotated[str, MOMENT]

#: An enum is shown by its value; the enum itself is the mark.
Role = Annotated[str, AgentRole]


class NamedShape(TypedDict):
    id: str
    name: str


class OwnedShape(TypedDict):
    """Something that belongs to a company."""

    id: str
    company_id: str


class TitledShape(TypedDict):
    id: str
    title: str


class DifferenceShape(TypedDict):
    """One setting; what it was is for those who may read configurations."""

    path: str
    was: NotRequired[object]
    now: object


class CycleShape(TypedDict):
    """Agents that wait for each other."""

    agents: list[str]
    outcomes: list[str]
    sentence: str


class CycleToldShape(TypedDict):
    #: If the call closed one.
    cycle: NotRequired[CycleShape]


class OriginShape(TypedDict):
    """The letter of a person that led to something."""

    message_id: str
    subject: str


class RevokedShape(TypedDict):
    id: str
    revoked: bool


class RemovedShape(TypedDict):
    id: str
    removed: bool


class EndedShape(TypedDict):
    """Something that was cancelled or put back in line."""

    id: str
    status: str


class OfCompanyShape(TypedDict):
    """Something of a company that is known by its name."""

    company_id: str | None
    name: str


class WarnedShape(TypedDict):
    #: Why an agent's budget of money does not hold it, if so.
    warning: NotRequired[str]
