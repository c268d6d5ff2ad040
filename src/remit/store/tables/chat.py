"""Linked accounts, receivers, what came in from chats and what Remit shows there."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    Text,
    UniqueConstraint,
    false,
)

from remit.store.tables import base as schema
from remit.store.tables.base import Id, Time

_LINKED = "revoked_at IS NULL"
_UNFINISHED = "status IN ('queued', 'leased')"


def _queue() -> list[Column[object]]:
    return [
        *schema.required(Text, "status"),
        *schema.required(Time, "created_at", "next_at"),
        *schema.required(Integer, "attempt"),
        *schema.optional(Text, "worker"),
        *schema.required(BigInteger, "epoch"),
        *schema.optional(Time, "lease_until", "ended_at"),
        *schema.optional(Text, "ended_why"),
    ]


linked_accounts = schema.table(
    "linked_accounts",
    *schema.company_row(),
    Column("user_id", Id, ForeignKey("users.id"), nullable=False),
    # The kind of channel, who vouches there for who speaks, and the account there.
    *schema.required(Text, "kind", "realm", "account", "label"),
    # Where only that person reads, and through what.
    *schema.required(Text, "conversation"),
    *schema.optional(Id, "binding_id"),
    *schema.required(Time, "created_at", "used_at"),
    *schema.optional(Time, "revoked_at"),
    # The token that its user was signed in with; the link ends with it.
    *schema.optional(Id, "made_with"),
    *schema.within_company("agent_bindings", "binding_id"),
    schema.partial_index(
        "uq_linked_accounts_account", "kind", "realm", "account", unique=True, where=_LINKED
    ),
    Index("ix_linked_accounts_user_id", "user_id"),
)

link_codes = schema.table(
    "link_codes",
    *schema.keys(Text, "digest"),
    Column("user_id", Id, ForeignKey("users.id"), nullable=False),
    *schema.required(Text, "kind"),
    *schema.required(Time, "created_at", "expires_at"),
    *schema.optional(Time, "used_at"),
    *schema.optional(Id, "made_with"),
    Index("ix_link_codes_user_id", "user_id"),
)

channel_receivers = schema.table(
    "channel_receivers",
    *schema.keys(Id, "binding_id"),
    schema.company_id(),
    *schema.polled("heard_at"),
    *schema.within_company("agent_bindings", "binding_id"),
)

channel_intake = schema.table(
    "channel_intake",
    *schema.company_row(),
    *schema.required(Id, "binding_id"),
    *schema.required(Text, "outside_id", "lane"),
    # JSON: what came; empty when it is dealt with.
    *schema.required(Text, "document"),
    *_queue(),
    UniqueConstraint("binding_id", "outside_id"),
    *schema.within_company("agent_bindings", "binding_id"),
    *schema.leased_queue("leased", "done", "dead"),
    schema.partial_index(
        "ix_channel_intake_unfinished", "binding_id", "lane", "id", where=_UNFINISHED
    ),
    schema.partial_index("ix_channel_intake_ended", "ended_at", where="ended_at IS NOT NULL"),
)

channel_posts = schema.table(
    "channel_posts",
    *schema.company_row(referable=True),
    *schema.required(Id, "binding_id"),
    *schema.required(Text, "conversation", "subject", "document"),
    *schema.required(Integer, "version"),
    *schema.optional(Text, "outside_id"),
    Column("withdrawn", Boolean, nullable=False, server_default=false()),
    *_queue(),
    *schema.within_company("agent_bindings", "binding_id"),
    *schema.leased_queue("leased", "done", "dead", "cancelled"),
    schema.partial_index(
        "ix_channel_posts_unfinished", "binding_id", "conversation", "id", where=_UNFINISHED
    ),
    Index("ix_channel_posts_subject", "company_id", "subject"),
    Index("ix_channel_posts_outside_id", "binding_id", "outside_id"),
)

button_references = schema.table(
    "button_references",
    *schema.keys(Text, "digest"),
    schema.company_id(),
    *schema.required(Id, "post_id"),
    # JSON: what it stands for.
    *schema.required(Text, "act"),
    *schema.required(Time, "expires_at"),
    *schema.optional(Time, "used_at"),
    *schema.optional(Text, "used_by"),
    *schema.within_company("channel_posts", "post_id"),
    Index("ix_button_references_post_id", "post_id"),
    Index("ix_button_references_expires_at", "expires_at"),
)
