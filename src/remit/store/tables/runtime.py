"""Runs, agents' leases, conversations, and the output of programs."""

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Text

from remit.model.execution.budget import METERS
from remit.model.execution.run import Lease, Run
from remit.store.tables import base as schema
from remit.store.tables.base import Id, Time

#: An agent is awake while its count of wakes exceeds the count that runs have handled.
_READY = "wake_seq > done_seq AND held_by IS NULL"
_HELD = "held_by IS NOT NULL"

runs = schema.table_of(
    *(Run, "runs"),
    *schema.counters("epoch"),
    *schema.optional(BigInteger, "context_length"),
    *schema.counters(*METERS),
    *schema.counters("log_bytes"),
    *schema.counters("shown"),
    *schema.optional(Id, "account_id"),
    schema.check("ended", "(status = 'running') = (ended_at IS NULL)"),
    schema.partial_index("uq_runs_one_live", "agent_id", unique=True, where="status = 'running'"),
    schema.partial_index("ix_runs_live", "company_id", where="status = 'running'"),
    Index("ix_runs_agent_id", "agent_id", "id"),
    Index("ix_runs_company_id", "company_id", "id"),
    schema.by_short_id("runs"),
    referable=True,
    defaults={
        "message_ids": "[]",
        "cost_estimated": False,
        "outcome_ids": "[]",
        "goes_on": False,
        "acted": False,
    },
)

agent_leases = schema.table_of(
    *(Lease, "agent_leases"),
    *schema.required(BigInteger, "wake_seq", "done_seq", "epoch"),
    # The closed account or set-up that the agent waits for, which excludes it from the ready ones.
    *schema.optional(Id, "held_by"),
    # Words that the database does not check.
    *schema.optional(Text, "look_for"),
    *schema.counters("own_act"),
    schema.check("wakes", "wake_seq >= done_seq"),
    schema.partial_index("ix_agent_leases_due", "due_at", where=_READY),
    schema.partial_index("ix_agent_leases_held_by", "held_by", "due_at", where=_HELD),
    schema.partial_index("ix_agent_leases_leased", "lease_until", where="lease_until IS NOT NULL"),
    schema.partial_index("ix_agent_leases_look_at", "look_at", where="look_at IS NOT NULL"),
    key=("agent_id",),
    defaults={"spared": 0, "rests": False},
)

agent_sessions = schema.table(
    "agent_sessions",
    *schema.keys(Id, "agent_id"),
    schema.company_id(),
    *schema.required(Text, "adapter_type", "session_id"),
    *schema.required(Time, "begun_at", "used_at"),
    *schema.required(BigInteger, "context_tokens"),
    *schema.within_company("agents", "agent_id"),
)

run_logs = schema.table(
    "run_logs",
    Column("run_id", Id, ForeignKey("runs.id"), primary_key=True),
    *schema.keys(BigInteger, "number"),
    *schema.required(Time, "at"),
    *schema.required(Text, "stream", "text"),
    schema.one_of("stream", "stdout", "stderr", "remit"),
)
