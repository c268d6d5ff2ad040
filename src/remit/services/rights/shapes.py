"""Shapes of capabilities."""

from __future__ import annotations

from typing import Annotated, NotRequired, TypedDict

from remit.model.organisation.grant import Level, Mode
from remit.services.shape_basics import Moment


class GrantLimitsShape(TypedDict):
    #: Of a repository: the files and the branches to which it is limited.
    paths: NotRequired[list[str]]
    branches: NotRequired[list[str]]


class GrantShape(GrantLimitsShape):
    id: str
    holder_id: str
    resource: str
    level: Annotated[str, Level]
    mode: Annotated[str, Mode]
    scope: str | None
    parent_id: str | None
    granted_by: str | None
    created_at: Moment
    expires_at: Moment | None
    used_at: Moment | None
    reason: NotRequired[str]


class DerivedGrantShape(TypedDict):
    """What somebody may by their place in the tree, without a grant."""

    id: None
    holder_id: str
    resource: str
    level: Annotated[str, Level]
    mode: Annotated[str, Mode]
    reason: str
    derived: bool


class RevokedGrantShape(TypedDict):
    id: str
    #: It, and what was passed on from it.
    revoked: list[str]


class HoldersShape(TypedDict):
    """Who was given something on a file."""

    home_agent_id: str | None
    grants: list[GrantShape]
    more: bool
