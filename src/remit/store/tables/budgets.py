"""Budgets of agents: accounts, reservations for outcomes, spending, and stopped agents."""

from sqlalchemy import BigInteger, Index, Text

from remit.model.execution.budget import Reservation, Stop
from remit.store.tables import base as schema
from remit.store.tables.base import Id, Time

_OPEN = "closed_at IS NULL"

# An agent that has a monthly budget has an account; money is in millionths of a dollar.
budget_accounts = schema.table(
    "budget_accounts",
    *schema.keys(Id, "agent_id"),
    *schema.keys(Text, "kind"),
    schema.company_id(),
    *schema.required(BigInteger, "amount"),
    # Sum of the amounts of the nearest accounts below it, maintained by the services.
    *schema.required(BigInteger, "reserved"),
    # Charges in the month that began at this time; for any other month they count as 0.
    *schema.required(Time, "month"),
    *schema.required(BigInteger, "charged"),
    *schema.within_company("agents", "agent_id"),
    schema.one_of("kind", "money", "tokens"),
    schema.check("amounts", "amount >= 0 AND reserved >= 0 AND charged >= 0"),
    Index("ix_budget_accounts_company_id", "company_id"),
)

reservations = schema.table_of(
    *(Reservation, "reservations"),
    *schema.required(BigInteger, "amount", "spent"),
    *schema.required(BigInteger, "spent_before"),
    schema.check("amounts", "amount > 0 AND spent >= spent_before AND spent_before >= 0"),
    schema.partial_index("ix_reservations_agent_id", "agent_id", where=_OPEN),
    schema.partial_index("ix_reservations_account_id", "account_id", where=_OPEN),
    schema.partial_index("ix_reservations_outcome_id", "outcome_id", where=_OPEN),
    schema.partial_index("ix_reservations_company_id", "company_id", where=_OPEN),
)

# The spending of an agent itself on a day (UTC), from whichever account. Older rows hold a whole
# month, under its first day.
spending = schema.table(
    "spending",
    *schema.keys(Id, "agent_id"),
    *schema.keys(Time, "day"),
    schema.company_id(),
    *schema.required(BigInteger, "money_micros", "tokens"),
    # The part of the money that is estimated, and the tokens of which nobody knows what they cost.
    *schema.counters("money_estimated", "tokens_unpriced"),
    *schema.within_company("agents", "agent_id"),
    Index("ix_spending_company_id", "company_id", "day"),
)

# Agents that are not started, because their budget or a boss's is used up.
budget_stops = schema.table_of(
    *(Stop, "budget_stops"),
    Index("ix_budget_stops_company_id", "company_id"),
    key=("agent_id",),
)
