"""Shapes of agents and their tree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, NotRequired, TypedDict

from remit.model.organisation.agent import AgentStatus
from remit.model.organisation.agent_spec import CONFIGURED, LISTED, Field, Holds
from remit.model.organisation.configuration import RevisionSource
from remit.model.organisation.permission import PermissionLevel, Reach
from remit.services.shape_basics import (
    DifferenceShape,
    Moment,
    NamedShape,
    OwnedShape,
    Role,
    TitledShape,
    WarnedShape,
)

_SHOWN: Final[Mapping[Holds, Any]] = {
    Holds.ROLE: Role,
    Holds.DOCUMENT: dict[str, object],
    Holds.AMOUNT: int | None,
}


def _describe(shape: Any, described: Iterable[Field], *, seen_by_all: Iterable[Field]) -> None:
    """Add the fields of an agent's description to a shape; those not in `seen_by_all` are
    optional."""
    always = set(seen_by_all)
    for field in described:
        kind = _SHOWN.get(field.holds, str)
        shape.__annotations__[field.name] = kind if field in always else NotRequired[kind]


#: With the fields of its description.
class AgentShape(OwnedShape):
    status: Annotated[str, AgentStatus]
    reports_to: str | None
    boss_user_id: str | None
    seat_user_id: str | None
    state_file_id: str
    log_file_id: str
    created_at: Moment
    updated_at: Moment
    #: Only for callers who may read configurations.
    permissions: NotRequired[dict[str, bool]]
    permission_level: NotRequired[Annotated[str, PermissionLevel]]
    config_revision: NotRequired[int]
    redacted: NotRequired[list[str]]
    #: Plugins that it is lent, and where each was copied from.
    lent: NotRequired[list[str]]


_describe(AgentShape, CONFIGURED, seen_by_all=[field for field in LISTED if not field.part.private])


class CallingAgentShape(AgentShape):
    run_id: str | None


class CreatedAgentShape(AgentShape, WarnedShape):
    """A new agent."""


class ConfiguredAgentShape(AgentShape):
    """An agent whose configuration was changed just now."""

    agent_id: str
    revision: int
    #: Why its new budget of money does not hold it, if so.
    warning: str | None


class MovedOutcomeShape(TitledShape):
    owner_id: str
    owner: str


class TerminationShape(TypedDict):
    """Everybody and everything that ended with an agent."""

    agents_ended: list[NamedShape]
    outcomes_closed: list[TitledShape]
    outcomes_moved: list[MovedOutcomeShape]


class TerminatedAgentShape(AgentShape, TerminationShape):
    dry_run: bool


class WokenAgentShape(AgentShape):
    message_id: str
    #: Why it will not read the message soon; None if it will.
    not_started: str | None


class PurgedShape(TypedDict):
    """How many rows of each kind were deleted, and whether the memory was."""

    bindings: int
    tokens: int
    log_pieces: int
    runs: int
    secrets: int
    memory: bool


class PurgedAgentShape(AgentShape):
    removed: PurgedShape


class OrganisedAgentShape(NamedShape):
    """An agent in the tree, with those who report to it."""

    role: Role
    title: str
    status: Annotated[str, AgentStatus]
    adapter_type: str
    seat_user_id: str | None
    reports: list[OrganisedAgentShape]


class PastPlaceShape(NamedShape):
    """Boss of an agent at a time."""

    role: Role
    reports_to: str | None
    boss_user_id: str | None
    since: Moment


class LogEntryShape(TypedDict):
    """Entry of an activity log: a run's own words."""

    at: Moment
    run_id: str | None
    summary: str
    seq: int


class AgentLogShape(TypedDict):
    agent_id: str
    entries: list[LogEntryShape]


class HaltShape(OwnedShape):
    level: str
    agent_id: str | None
    agent: str | None
    by: str
    by_name: str
    note: str
    since: Moment
    #: Whether the company came from outside, and only its acceptance ends the halt.
    awaits_acceptance: bool


class EndedByHaltShape(TypedDict):
    runs_ended: int
    jobs_put_back: int


class StoppedShape(HaltShape, EndedByHaltShape):
    #: Whether there was a halt already.
    already: bool


class LiftedShape(HaltShape):
    lifted: bool
    left: list[HaltShape]


class ListedHaltShape(HaltShape):
    may_lift: bool


# Rights of a level, under the names that a file has for them.
class LevelShape(TypedDict):
    canCreateAgents: bool | None
    allow: list[str]
    deny: list[str]
    governs: Annotated[str, Reach]
    shipped: bool
    agents: int


class PolicyShape(TypedDict):
    company_id: str | None
    version: int
    levels: dict[str, LevelShape]


class ChangedPolicyShape(PolicyShape):
    agents_changed: list[str]


class FactShape(TypedDict):
    """A right that somebody has over an agent, an outcome or a resource."""

    who: str
    who_name: str
    right: str
    over: str
    over_name: str


class SayShape(FactShape):
    """A right that somebody gains or loses."""

    change: str


class ReorganisedShape(TypedDict):
    event_id: str | None
    dry_run: bool
    changes: list[SayShape]
    #: Steps as they are stored for an undo; their keys depend on the kind of `step`.
    steps: list[dict[str, object]]


class IdlenessShape(TypedDict):
    """Why an agent is not running."""

    agent_id: str
    name: str
    reason: str
    sentence: str


#: With the fields of the agent's description.
class ConfigurationShape(TypedDict):
    agent_id: str
    company_id: str
    status: Annotated[str, AgentStatus]
    reports_to: str | None
    revision: int
    redacted: list[str]


_describe(ConfigurationShape, CONFIGURED, seen_by_all=CONFIGURED)


class ConfigRevisionShape(TypedDict):
    id: str
    agent_id: str
    number: int
    configuration: dict[str, object]
    changed: list[str]
    difference: list[DifferenceShape]
    source: Annotated[str, RevisionSource]
    approval_id: str | None
    created_by_agent_id: str | None
    created_by_user_id: str | None
    created_at: Moment
    redacted: list[str]


class SubmittedLogShape(TypedDict):
    event_id: str
    log_file_id: str


class RestoredRootShape(TypedDict):
    company_id: str
    agent_id: str
    name: str
    sentence: str
