"""Bindings of agents to channels, their outgoing deliveries, and receipts of incoming messages."""

from sqlalchemy import (
    Index,
    PrimaryKeyConstraint,
    UniqueConstraint,
)

from remit.model.messaging.channel import Binding, ChannelDelivery, Receipt
from remit.store.tables import base as schema

_THERE = "removed_at IS NULL"
_UNFINISHED = "status IN ('queued', 'leased')"
_DEAD = "status = 'dead'"

agent_bindings = schema.table_of(
    *(Binding, "agent_bindings"),
    UniqueConstraint("adapter_type", "adapter_token"),
    schema.partial_index(
        "uq_agent_bindings_agent_id", "agent_id", "adapter_type", unique=True, where=_THERE
    ),
    Index("ix_agent_bindings_company_id", "company_id", "id"),
    referable=True,
    defaults={"held": False},
)

channel_deliveries = schema.table_of(
    *(ChannelDelivery, "channel_deliveries"),
    # A message has one delivery, so its id is the key, also as the deduplication key outside.
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
    key=("message_id",),
)

channel_receipts = schema.table_of(
    *(Receipt, "channel_receipts"),
    PrimaryKeyConstraint("binding_id", "outside_id"),
    Index("ix_channel_receipts_message_id", "message_id"),
)
