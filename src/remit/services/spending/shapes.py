"""Shapes of budgets."""

from __future__ import annotations

from typing import TypedDict

from remit.services.shape_basics import Moment


class SpentShape(TypedDict):
    """One kind of a budget: money in millionths of a dollar, or tokens."""

    limit: int | None
    reserved: int
    set_aside: int
    spent: int


class ListedSideShape(SpentShape):
    spent_by_itself: int
    left: int | None


class PayerShape(TypedDict):
    agent_id: str
    name: str


ReservationShape = TypedDict(
    "ReservationShape",
    {
        "id": str,
        "outcome_id": str,
        "from": str,
        "amount": int,
        "spent": int,
        "left": int,
        "since": Moment,
    },
)


class BudgetSideShape(ListedSideShape):
    left_shown: str
    paid_by: PayerShape | None
    reservations: list[ReservationShape]


class UsedLimitsShape(TypedDict):
    """Limits of an agent, and how much of each is used today."""

    turns_per_run: int | None
    identical_calls: int | None
    failed_calls: int | None
    agent_runs_per_hour: int | None
    agent_tokens_per_day: int | None
    company_runs_per_hour: int | None
    company_cents_per_day: int | None
    tokens_today: int
    company_money_today: int
    company_money_left: int | None
    held_until: Moment | None


class BudgetShape(TypedDict):
    agent_id: str
    name: str
    month: Moment
    until: Moment
    money: BudgetSideShape
    tokens: BudgetSideShape
    stopped_at: Moment | None
    limits: UsedLimitsShape


class ListedBudgetShape(TypedDict):
    agent_id: str
    name: str
    reports_to: str | None
    money: ListedSideShape
    tokens: ListedSideShape


class LeftShape(TypedDict):
    """Budget that is left for a run."""

    #: By the kind of budget.
    left: dict[str, int]
    #: Why nothing more may be spent, if so.
    over: str | None
    #: Estimate in millionths of a dollar, while the program has not reported its cost.
    about_micros: int


class HeldAgentShape(TypedDict):
    agent_id: str
    held: bool
