"""Shapes of capabilities."""

from __future__ import annotations

from typing import Annotated, NotRequired, TypedDict

from remit.model.organisation.grant import Level, Mode
from remit.services.shape_basics import Moment


class GrantLimitsShape(TypedDict):
    #: Files and branches of a repository that it is limited to.
    paths: NotRequired[list[str]]
    branches: NotRequired[list[str]]


class HeldShape(TypedDict):
    """Holder of a right, with its resource, level and mode."""

    holder_id: str
    resource: str
    level: Annotated[str, Level]
    mode: Annotated[str, Mode]
    #: The title of an outcome or a file, if asked for.
    title: NotRequired[str]


class GrantShape(GrantLimitsShape, HeldShape):
    id: str
    scope: str | None
    parent_id: str | None
    granted_by: str | None
    created_at: Moment
    expires_at: Moment | None
    used_at: Moment | None
    reason: NotRequired[str]


class DerivedGrantShape(HeldShape):
    """Right that follows from a place in the tree, without a grant."""

    id: None
    reason: str
    derived: bool


class RevokedGrantShape(TypedDict):
    id: str
    #: The grant, and every grant derived from it.
    revoked: list[str]


class HoldersShape(TypedDict):
    """Holders of grants on a file."""

    home_agent_id: str | None
    grants: list[GrantShape]
    more: bool


class CapabilityRequestShape(TypedDict):
    """Capability that a message asks for."""

    agent: str
    resource: str
    level: Annotated[str, Level]
    #: The id of the grant, or the reason of the refusal.
    grant: NotRequired[str]
    refused: NotRequired[str]
