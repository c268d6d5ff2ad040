"""Wishes of people, and how people are told outside that something needs them."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from remit.store.tables.base import Id, Time, metadata, one_of, within_company

_OPEN = text("status = 'open'")
_UNFINISHED = text("status IN ('queued', 'leased')")

#: A row for each letter from a person to an agent; open until the person was answered.
wishes = Table(
    "wishes",
    metadata,
    Column("message_id", Id, primary_key=True),
    Column("company_id", Id, ForeignKey("companies.id"), nullable=False),
    Column("user_id", Id, ForeignKey("users.id"), nullable=False),
    Column("agent_id", Id, nullable=False),
    Column("status", Text, nullable=False),
    # When Remit looks again whether everything made of it has ended.
    Column("look_at", Time, nullable=False),
    Column("created_at", Time, nullable=False),
    Column("ended_at", Time),
    Column("ended_why", Text),
    # The letter that was read in the same run, with which it shares what was made.
    Column("shared_with", Id),
    within_company("message_id", "messages"),
    within_company("agent_id", "agents"),
    one_of("status", "open", "ended"),
    CheckConstraint("(status = 'open') = (ended_at IS NULL)", name="ended"),
    Index(
        "ix_wishes_shared_with",
        "shared_with",
        sqlite_where=text("shared_with IS NOT NULL"),
        postgresql_where=text("shared_with IS NOT NULL"),
    ),
    Index(
        "ix_wishes_open",
        "user_id",
        "company_id",
        "message_id",
        sqlite_where=_OPEN,
        postgresql_where=_OPEN,
    ),
    Index("ix_wishes_look_at", "look_at", sqlite_where=_OPEN, postgresql_where=_OPEN),
)

#: Where a person wants to be told. A command is not here: it is in a file of the instance.
notice_hooks = Table(
    "notice_hooks",
    metadata,
    Column("company_id", Id, ForeignKey("companies.id"), primary_key=True),
    Column("user_id", Id, ForeignKey("users.id"), primary_key=True),
    Column("url", Text, nullable=False),
    # What is sent is signed with it; it was shown once.
    Column("key", Text, nullable=False),
    Column("created_at", Time, nullable=False),
)

#: One row for each thing that needs a person and each way of telling them.
notices = Table(
    "notices",
    metadata,
    Column("id", Id, primary_key=True),
    Column("company_id", Id, ForeignKey("companies.id"), nullable=False),
    Column("user_id", Id, ForeignKey("users.id"), nullable=False),
    Column("way", Text, nullable=False),
    # What it is about, as in the list of what needs the person.
    Column("kind", Text, nullable=False),
    Column("subject_id", Id, nullable=False),
    Column("status", Text, nullable=False),
    Column("next_at", Time, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("worker", Text),
    Column("epoch", BigInteger, nullable=False),
    Column("lease_until", Time),
    Column("created_at", Time, nullable=False),
    Column("ended_at", Time),
    # How it ended, or why the last attempt failed.
    Column("ended_why", Text),
    UniqueConstraint("user_id", "way", "kind", "subject_id"),
    one_of("way", "command", "webhook"),
    one_of("status", "queued", "leased", "done", "dead", "cancelled"),
    CheckConstraint("(status = 'leased') = (lease_until IS NOT NULL)", name="leased"),
    CheckConstraint("(status IN ('queued', 'leased')) = (ended_at IS NULL)", name="ended"),
    Index(
        "ix_notices_unfinished",
        "next_at",
        sqlite_where=_UNFINISHED,
        postgresql_where=_UNFINISHED,
    ),
    Index("ix_notices_user_id", "user_id", "id"),
)
