"""Agents, their reporting lines over time, and the graph of outcomes."""

from sqlalchemy import BigInteger, Column, Index, Text, text

from remit.model.organisation.agent import Agent
from remit.model.work.outcome import Outcome
from remit.store.tables import base as schema
from remit.store.tables.base import Id, RowNumber, Time

#: The columns that every question for work has. An index that begins with the owner is for the
#: work of one; in that of news the owner comes last, for SQLite prefers it then where nobody is
#: named.
_OF_ONE = ("owner_id", "status", "open_prereqs")
_OF_ALL = ("status", "owner_id", "open_prereqs")


def _by_pressure(
    name: str, columns: tuple[str, ...], *, where: str, sqlite: str | None = None
) -> Index:
    """An index of outcomes, the most pressing of an owner first."""
    order = (text("important DESC"), text("urgent DESC"), "id")
    return schema.partial_index(name, *columns, *order, where=where, sqlite=sqlite)


outcomes = schema.table_of(
    *(Outcome, "outcomes"),
    # Words that the database does not check.
    *schema.optional(Text, "look_for"),
    # An id without a foreign key.
    *schema.optional(Id, "origin_id"),
    # Places in the record: of the last news about the outcome, and up to where its owner has seen.
    *schema.counters("news", "seen"),
    # A mandate and its agent refer to each other, so one of the two keys is checked at the commit.
    *schema.within_company("agents", "owner_id", "delegator_id", deferred=True),
    schema.check("delegator", "delegator_id IS NULL OR delegated"),
    schema.check("open_prereqs", "open_prereqs >= 0"),
    schema.partial_index("uq_outcomes_one_inbox", "owner_id", unique=True, where="kind = 'inbox'"),
    schema.check("finished", "(status = 'open') = (finished_at IS NULL)"),
    schema.check("perpetual", "NOT (perpetual AND status = 'completed')"),
    Index("ix_outcomes_company_id", "company_id", "id"),
    # Counts by status are read from the index alone.
    Index("ix_outcomes_status", "company_id", "status"),
    Index("ix_outcomes_owner_id", "owner_id", "status"),
    schema.partial_index("ix_outcomes_origin_id", "origin_id", "id", where="origin_id IS NOT NULL"),
    # Outcomes that become due by the clock.
    schema.partial_index(
        "ix_outcomes_look_at", "look_at", where="status = 'open' AND look_at IS NOT NULL"
    ),
    Index("ix_outcomes_delegator_id", "delegator_id"),
    # Outcomes delegated to an agent, among the many that it may own.
    schema.partial_index(
        "ix_outcomes_handed_over", "owner_id", where="delegated = true", sqlite="delegated = 1"
    ),
    schema.by_short_id("outcomes"),
    # Work that can be done, and what of it has news, was left alone or is reviewed at a time, each
    # in the order in which an agent takes it up, so that nothing sorts all that an agent owns. They
    # repeat columns of their conditions: with fewer, SQLite prefers the index above.
    _by_pressure(
        "ix_outcomes_pressing",
        _OF_ONE,
        where="status = 'open' AND open_prereqs = 0 AND NOT perpetual",
        sqlite="status = 'open' AND open_prereqs = 0 AND perpetual = 0",
    ),
    _by_pressure(
        "ix_outcomes_heard",
        _OF_ALL,
        where="status = 'open' AND (news > seen OR kind = 'inbox')",
    ),
    _by_pressure(
        "ix_outcomes_left",
        _OF_ONE,
        where="status = 'open' AND reviews = 0 AND look_at IS NULL",
    ),
    schema.partial_index(
        "ix_outcomes_timed",
        *_OF_ONE,
        "look_for",
        "look_at",
        where="status = 'open' AND look_at IS NOT NULL",
    ),
    referable=True,
    defaults={"kind": "work", "open_waits": 0, "reviews": 0},
)

outcome_edges = schema.table(
    "outcome_edges",
    schema.company_id(),
    *schema.keys(Id, "parent_id", "child_id"),
    *schema.within_company("outcomes", "parent_id", "child_id"),
    schema.check("not_own_parent", "parent_id <> child_id"),
    Index("ix_outcome_edges_child_id", "child_id"),
)

outcome_blockers = schema.table(
    "outcome_blockers",
    schema.company_id(),
    *schema.keys(Id, "outcome_id", "blocker_id"),
    *schema.within_company("outcomes", "outcome_id", "blocker_id"),
    schema.check("not_itself", "outcome_id <> blocker_id"),
    Index("ix_outcome_blockers_blocker_id", "blocker_id"),
)

agents = schema.table_of(
    *(Agent, "agents"),
    # Words that the database does not check.
    *schema.required(Text, "role"),
    *schema.required(Text, "name_key"),
    *schema.optional(BigInteger, "budget_monthly_cents", "budget_monthly_tokens"),
    *schema.within_company("outcomes", "id"),
    *schema.within_company("files", "state_file_id", "log_file_id", deferred=True),
    schema.check("one_boss", "(boss_id IS NULL) <> (boss_user_id IS NULL)"),
    schema.check("not_own_boss", "boss_id <> id"),
    Index("ix_agents_company_id", "company_id", "id"),
    Index("ix_agents_boss_id", "boss_id"),
    # Agents in error, which a person has to mend.
    schema.partial_index("ix_agents_error", "id", where="status = 'error'"),
    # SQLite checks a deferred foreign key from both sides; without these it reads every agent.
    Index("ix_agents_state_file_id", "state_file_id"),
    Index("ix_agents_log_file_id", "log_file_id"),
    schema.partial_index(
        "uq_agents_living_name",
        "company_id",
        "name_key",
        unique=True,
        where="status <> 'terminated'",
    ),
    schema.by_short_id("agents"),
    referable=True,
    defaults={
        "capabilities": "",
        "permissions": "{}",
        "permission_level": "standard",
        "runtime_config": "{}",
        "metadata": "{}",
        "config_revision": 1,
    },
)

agent_places = schema.table(
    "agent_places",
    # Reporting lines over time.
    Column("id", RowNumber, primary_key=True, autoincrement=True),
    schema.company_id(),
    *schema.required(Id, "agent_id"),
    *schema.optional(Id, "boss_id"),
    *schema.references("users", "boss_user_id"),
    *schema.required(Time, "since"),
    *schema.optional(Time, "until"),
    *schema.within_company("agents", "agent_id", "boss_id"),
    schema.check("one_boss", "(boss_id IS NULL) <> (boss_user_id IS NULL)"),
    Index("ix_agent_places_agent_id", "agent_id", "since"),
    Index("ix_agent_places_company_id", "company_id", "since"),
    sqlite_autoincrement=True,
)
