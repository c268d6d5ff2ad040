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


class WarningShape(TypedDict):
    sentence: str
    next_step: str


class AgentWarningShape(WarningShape):
    agent: str
    #: `setup`: it cannot work yet; `budget`: its budget of money does not hold it.
    about: str


class AppliedShape(PlanShape, ReachedShape):
    event_id: str | None
    dry_run: bool
    tokens: list[dict[str, str]]
    #: Earlier places of values of secrets, for the program that stores values.
    replaced: list[str]
    #: Budgets of money that do not hold their agents; and what is missing for them where the
    #: instance runs.
    warnings: list[AgentWarningShape]
