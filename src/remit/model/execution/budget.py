"""Budgets: what agents may spend, in money and in tokens.

Money is counted in millionths of a dollar, tokens as the model reads and writes them.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Protocol

from remit.clock import Micros
from remit.ids import AgentId, CompanyId, OutcomeId
from remit.model.execution.cost import Cost

CENT = 10_000
DOLLAR = 100 * CENT


Kind = StrEnum("Kind", "MONEY TOKENS")


class Limited(Protocol):
    """Holder of monthly budgets: an agent, or its place in the tree."""

    @property
    def budget_monthly_cents(self) -> int | None: ...
    @property
    def budget_monthly_tokens(self) -> int | None: ...


@dataclass(frozen=True, kw_only=True)
class Metered:
    """Tokens and cost that were taken from a model so far."""

    __slots__ = ()  # subclasses define theirs, also beside another base

    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    #: In millionths of a dollar.
    cost_micros: int = 0


METERS = tuple(meter.name for meter in fields(Metered))


@dataclass(frozen=True, kw_only=True)
class Priced(Metered, ABC):
    """Usage with what is known of its cost."""

    __slots__ = ()

    #: Whether the cost is an estimate: by a price list, or by earlier runs.
    cost_estimated: bool = False
    #: JSON text: the `Price` of its model when it began; None if that is not known.
    price: str | None = None

    @property
    @abstractmethod
    def is_live(self) -> bool:
        """Whether more may be reported."""

    @property
    def lacks_cost(self) -> bool:
        """Whether it took tokens of which nobody has said what they cost."""
        taken = self.tokens_in + self.tokens_out
        return bool(taken) and not self.cost_micros and (self.price is None or self.is_live)

    @property
    def cost(self) -> Cost:
        """The cost so far. Tokens count as unpriced when nothing more can be reported of them."""
        unpriced = self.lacks_cost and not self.is_live
        tokens = self.tokens_in + self.tokens_out if unpriced else 0
        return Cost(self.cost_micros, self.cost_estimated, tokens)

    @property
    def cost_usd(self) -> float | None:
        """The cost in dollars; None if it is unknown, for good or until its program reports it."""
        return None if self.lacks_cost else self.cost_micros / DOLLAR


class Taken(Protocol):
    """Tokens and cost in any record, such as an adapter's report."""

    @property
    def tokens_in(self) -> int: ...
    @property
    def tokens_out(self) -> int: ...
    @property
    def cost_micros(self) -> int: ...


def amount_of(taken: Taken, kind: Kind) -> int:
    if kind is Kind.MONEY:
        return max(taken.cost_micros, 0)
    return max(taken.tokens_in, 0) + max(taken.tokens_out, 0)


def limit_of(agent: Limited, kind: Kind) -> int | None:
    """Return the agent's own monthly budget; None if it has none."""
    if kind is Kind.TOKENS:
        return agent.budget_monthly_tokens
    cents = agent.budget_monthly_cents
    return None if cents is None else cents * CENT


def shown(kind: Kind, amount: int) -> str:
    """An amount in words."""
    if kind is Kind.TOKENS:
        return f"{amount:,} tokens"
    whole = abs(amount) // CENT * CENT
    precise = f"{amount / DOLLAR:,.2f}" if whole == abs(amount) else f"{amount / DOLLAR:,.6f}"
    return f"${precise}"


@dataclass(frozen=True, slots=True)
class Account:
    """A monthly budget with what is reserved, set aside and charged of it."""

    agent_id: AgentId
    kind: Kind
    amount: int
    #: Reserved for the nearest budgets below it.
    reserved: int
    month: Micros
    charged: int
    #: Set aside for outcomes, as far as it can be spent in this month.
    set_aside: int

    def charged_in(self, month: Micros) -> int:
        return self.charged if self.month == month else 0

    def left(self, month: Micros) -> int:
        return self.amount - self.reserved - self.set_aside - self.charged_in(month)


@dataclass(frozen=True, slots=True)
class Reservation:
    """Budget set aside for a delegated outcome; the rest returns when the outcome closes."""

    id: str
    company_id: CompanyId
    kind: Kind
    agent_id: AgentId
    giver_id: AgentId
    #: Agent whose budget pays; None if no agent above has one.
    account_id: AgentId | None
    #: The outcome it is for, which ends it.
    outcome_id: OutcomeId
    amount: int
    spent: int
    #: Start of a month, and the amount spent before it.
    month: Micros
    spent_before: int
    created_at: Micros
    closed_at: Micros | None

    @property
    def left(self) -> int:
        return max(self.amount - self.spent, 0)

    def before(self, month: Micros) -> int:
        """Return the amount spent before this month."""
        return self.spent_before if self.month == month else self.spent


@dataclass(frozen=True, slots=True)
class Stop:
    """An agent that is not started because a budget is used up."""

    agent_id: AgentId
    company_id: CompanyId
    #: Agent whose budget it is, and its kind.
    holder_id: AgentId
    kind: Kind
    since: Micros
