"""Bindings of agents to channels, what goes out through them, and what came in."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Text,
    UniqueConstraint,
    false,
)

from remit.store.tables import base as schema
from remit.store.tables.base import Id, Time

_THERE = "removed_at IS NULL"
_UNFINISHED = "status IN ('queued', 'leased')"
_DEAD = "status = 'dead'"

agent_bindings = schema.table(
    "agent_bindings",
    *schema.company_row(referable=True),
    *schema.required(Id, "agent_id"),
    # The kind of channel.
    *schema.required(Text, "adapter_type"),
    # The digest of the token by which the outside shows that it is bound.
    *schema.required(Text, "adapter_token"),
    # JSON, as the channel's own model takes it.
    *schema.required(Text, "adapter_config"),
    *schema.required(Time, "created_at"),
    *schema.optional(Time, "removed_at"),
    # It came with an import; nobody listens until the board binds anew.
    Column("held", Boolean, nullable=False, server_default=false()),
    UniqueConstraint("adapter_type", "adapter_token"),
    *schema.within_company("agents", "agent_id"),
    schema.partial_index(
        "uq_agent_bindings_agent_id", "agent_id", "adapter_type", unique=True, where=_THERE
    ),
    Index("ix_agent_bindings_company_id", "company_id", "id"),
)

channel_deliveries = schema.table(
    "channel_deliveries",
    # It goes out once, so the message names it; also to the outside.
    *schema.keys(Id, "message_id"),
    schema.company_id(),
    *schema.required(Id, "agent_id"),
    *schema.required(Text, "adapter_type", "address", "status"),
    *schema.required(Time, "deliver_at"),
    # Not tried before this time.
    *schema.required(Time, "next_at"),
    # How often somebody set out to deliver it.
    *schema.required(Integer, "attempt"),
    *schema.optional(Text, "worker"),
    *schema.required(BigInteger, "epoch"),
    *schema.optional(Time, "lease_until", "ended_at"),
    # How it ended, or why the last attempt failed.
    *schema.optional(Text, "ended_why"),
    # The id in the chat system, once it has the message.
    *schema.optional(Text, "outside_id"),
    # JSON: the files that go with it, as they were when it was sent.
    *schema.optional(Text, "files"),
    *schema.within_company("messages", "message_id"),
    *schema.within_company("agents", "agent_id"),
    *schema.leased_queue("leased", "done", "dead", "cancelled"),
    schema.partial_index(
        "ix_channel_deliveries_unfinished",
        "agent_id",
        "adapter_type",
        "message_id",
        where=_UNFINISHED,
    ),
    schema.partial_index(
        "ix_channel_deliveries_outside_id", "agent_id", "outside_id", where="outside_id IS NOT NULL"
    ),
    schema.partial_index("ix_channel_deliveries_dead", "company_id", "message_id", where=_DEAD),
)

channel_receipts = schema.table(
    "channel_receipts",
    *schema.required(Id, "binding_id"),
    # As the outside calls its message.
    *schema.required(Text, "outside_id"),
    schema.company_id(),
    *schema.required(Id, "message_id"),
    *schema.required(Text, "digest"),
    PrimaryKeyConstraint("binding_id", "outside_id"),
    *schema.within_company("agent_bindings", "binding_id"),
    *schema.within_company("messages", "message_id"),
    Index("ix_channel_receipts_message_id", "message_id"),
)
