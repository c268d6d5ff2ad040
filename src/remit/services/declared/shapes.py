"""Shapes of `remit apply`."""

from __future__ import annotations

from typing import TypedDict

from remit.services.acceptance.shapes import ReachedShape
from remit.services.shape_basics import DifferenceShape


class PlannedShape(TypedDict):
    path: str
    kind: str
    name: str
    action: str
    changes: list[DifferenceShape]


class PlanShape(TypedDict):
    plan: list[PlannedShape]
    created: int
    changed: int
    unchanged: int


class AppliedShape(PlanShape, ReachedShape):
    event_id: str | None
    dry_run: bool
    tokens: list[dict[str, str]]
    #: Earlier places of values of secrets, for the program that stores values.
    replaced: list[str]


class WarningShape(TypedDict):
    sentence: str
    next_step: str


class AgentWarningShape(WarningShape):
    agent: str


class AppliedHereShape(AppliedShape):
    """With what is missing for its agents where the instance runs."""

    warnings: list[AgentWarningShape]
