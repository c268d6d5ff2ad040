"""The event chain, and the stored answers of idempotent calls."""

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Integer, Text

from remit.model.event import Event
from remit.store.tables import base as schema
from remit.store.tables.base import Id, Time

event_heads = schema.table(
    "event_heads",
    Column("company_id", Id, ForeignKey("companies.id"), primary_key=True),
    *schema.required(BigInteger, "seq"),
    *schema.required(Text, "hash"),
)

events = schema.table_of(
    *(Event, "events"),
    # An id without a foreign key.
    *schema.optional(Id, "run_id"),
    *schema.keys(BigInteger, "seq"),
    Column("id", Id, nullable=False, unique=True),
    Index("ix_events_resource", "company_id", "resource", "seq"),
    # The events of a run.
    schema.partial_index("ix_events_run_id", "run_id", where="run_id IS NOT NULL"),
    schema.by_short_id("events"),
    key=("company_id",),
)

answers = schema.table(
    "answers",
    # The first answer to each idempotency key, returned again to a repeated call.
    *schema.keys(Text, "actor", "key"),
    *schema.required(Text, "verb"),
    # Version of the verb's arguments: digests of different versions are not comparable.
    Column("version", Integer, nullable=False, server_default="1"),
    *schema.required(Text, "digest", "answer"),
    *schema.required(Time, "created_at"),
    Index("ix_answers_created_at", "created_at"),
)
