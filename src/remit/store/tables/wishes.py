"""Wishes of people, and how people are told outside that something needs them."""

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Integer, Text, UniqueConstraint

from remit.store.tables import base as schema
from remit.store.tables.base import Id, Time

_OPEN = "status = 'open'"
_UNFINISHED = "status IN ('queued', 'leased')"

#: A row for each letter from a person to an agent; open until the person was answered.
wishes = schema.table(
    "wishes",
    *schema.keys(Id, "message_id"),
    schema.company_id(),
    Column("user_id", Id, ForeignKey("users.id"), nullable=False),
    *schema.required(Id, "agent_id"),
    *schema.required(Text, "status"),
    # When Remit looks again whether everything made of it has ended.
    *schema.required(Time, "look_at", "created_at"),
    *schema.optional(Time, "ended_at"),
    *schema.optional(Text, "ended_why"),
    # The letter that was read in the same run, with which it shares what was made.
    *schema.optional(Id, "shared_with"),
    *schema.within_company("messages", "message_id"),
    *schema.within_company("agents", "agent_id"),
    schema.one_of("status", "open", "ended"),
    schema.check("ended", "(status = 'open') = (ended_at IS NULL)"),
    schema.partial_index("ix_wishes_shared_with", "shared_with", where="shared_with IS NOT NULL"),
    schema.partial_index("ix_wishes_open", "user_id", "company_id", "message_id", where=_OPEN),
    schema.partial_index("ix_wishes_look_at", "look_at", where=_OPEN),
)

#: Where a person wants to be told. A command is not here: it is in a file of the instance.
notice_hooks = schema.table(
    "notice_hooks",
    Column("company_id", Id, ForeignKey("companies.id"), primary_key=True),
    Column("user_id", Id, ForeignKey("users.id"), primary_key=True),
    *schema.required(Text, "url"),
    # The key that signs what is sent; it was shown once.
    *schema.required(Text, "key"),
    *schema.required(Time, "created_at"),
)

#: One row for each thing that needs a person and each way of telling them.
notices = schema.table(
    "notices",
    *schema.company_row(),
    Column("user_id", Id, ForeignKey("users.id"), nullable=False),
    *schema.required(Text, "way"),
    # The subject, as in the list of what needs the person.
    *schema.required(Text, "kind"),
    *schema.required(Id, "subject_id"),
    *schema.required(Text, "status"),
    *schema.required(Time, "next_at"),
    *schema.required(Integer, "attempt"),
    *schema.optional(Text, "worker"),
    *schema.required(BigInteger, "epoch"),
    *schema.optional(Time, "lease_until"),
    *schema.required(Time, "created_at"),
    *schema.optional(Time, "ended_at"),
    # How it ended, or why the last attempt failed.
    *schema.optional(Text, "ended_why"),
    # The notice that told of it together with others; who did not decide it in time.
    *schema.optional(Id, "digest_id", "escalated_from"),
    # The post in a chat, which can be changed afterwards; and JSON: its text.
    *schema.optional(Id, "post_id"),
    *schema.optional(Text, "told"),
    # Of what it tells, how much it shows as dealt with.
    *schema.counters("settled"),
    UniqueConstraint("user_id", "way", "kind", "subject_id"),
    *schema.leased_queue("leased", "done", "dead", "cancelled"),
    schema.partial_index("ix_notices_unfinished", "next_at", where=_UNFINISHED),
    schema.partial_index("ix_notices_changeable", "user_id", where="post_id IS NOT NULL"),
    schema.partial_index("ix_notices_digest_id", "digest_id", where="digest_id IS NOT NULL"),
    Index("ix_notices_user_id", "user_id", "id"),
)

#: Which kinds a person wants to be told of, where and when; who has none is told as usual.
notice_rules = schema.table(
    "notice_rules",
    Column("company_id", Id, ForeignKey("companies.id"), primary_key=True),
    Column("user_id", Id, ForeignKey("users.id"), primary_key=True),
    # JSON.
    *schema.required(Text, "rules"),
    *schema.required(Time, "digested_at"),
)
