"""Linked accounts, receivers, the intake from chats and the posts in them."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Index,
    UniqueConstraint,
)

from remit.model.messaging.chat import (
    ButtonReference,
    Intake,
    LinkCode,
    LinkedAccount,
    Post,
    Receiver,
)
from remit.model.messaging.confirmation import Confirmation
from remit.store.tables import base as schema
from remit.store.tables.base import Id

_LINKED = "revoked_at IS NULL"
_UNFINISHED = "status IN ('queued', 'leased')"


linked_accounts = schema.table_of(
    *(LinkedAccount, "linked_accounts"),
    schema.partial_index(
        "uq_linked_accounts_account", "kind", "realm", "account", unique=True, where=_LINKED
    ),
    Index("ix_linked_accounts_user_id", "user_id"),
)

link_codes = schema.table_of(
    *(LinkCode, "link_codes"),
    Index("ix_link_codes_user_id", "user_id"),
    key=("digest",),
)

channel_receivers = schema.table_of(
    *(Receiver, "channel_receivers"),
    *schema.required(BigInteger, "epoch"),
    key=("binding_id",),
)

channel_intake = schema.table_of(
    *(Intake, "channel_intake"),
    UniqueConstraint("binding_id", "outside_id"),
    *schema.leased_queue("leased", "done", "dead"),
    schema.partial_index(
        "ix_channel_intake_unfinished", "binding_id", "lane", "id", where=_UNFINISHED
    ),
    schema.partial_index("ix_channel_intake_ended", "ended_at", where="ended_at IS NOT NULL"),
)

channel_posts = schema.table_of(
    *(Post, "channel_posts"),
    *schema.leased_queue("leased", "done", "dead", "cancelled"),
    schema.partial_index(
        "ix_channel_posts_unfinished", "binding_id", "conversation", "id", where=_UNFINISHED
    ),
    Index("ix_channel_posts_subject", "company_id", "subject"),
    Index("ix_channel_posts_outside_id", "binding_id", "outside_id"),
    schema.partial_index("ix_channel_posts_last_id", "last_id", where="last_id IS NOT NULL"),
    *schema.optional(Id, "last_id"),
    referable=True,
    defaults={"withdrawn": False, "part": 1, "parts": 1},
)

confirmations = schema.table_of(
    *(Confirmation, "confirmations"),
    Index("ix_confirmations_user_id", "user_id", "expires_at"),
    Index("ix_confirmations_company_id", "company_id", "id"),
)

button_references = schema.table_of(
    *(ButtonReference, "button_references"),
    *schema.required(Id, "post_id"),
    *schema.within_company("channel_posts", "post_id"),
    Index("ix_button_references_post_id", "post_id"),
    Index("ix_button_references_expires_at", "expires_at"),
    key=("digest",),
)
