"""Messages and their deliveries, schedules, and questions."""

from sqlalchemy import BigInteger, Column, Index

from remit.model.messaging.mail import TRIED_ONCE, Delivery, Message
from remit.model.messaging.question import Question
from remit.model.messaging.schedule import Schedule
from remit.store.tables import base as schema
from remit.store.tables.base import Id, RowNumber

messages = schema.table_of(
    *(Message, "messages"),
    # Ids without foreign keys.
    *schema.required(Id, "thread_id"),
    *schema.optional(Id, "origin_id"),
    *schema.optional(Id, "outcome_id"),
    *schema.references("runs", "sender_run_id"),
    schema.one_of("sender_kind", "agent", "user", "system"),
    schema.check(
        "one_sender",
        "(sender_kind = 'agent') = (sender_agent_id IS NOT NULL)"
        " AND (sender_kind = 'user') = (sender_user_id IS NOT NULL)",
    ),
    schema.check("from_board", "NOT from_board OR sender_kind = 'user'"),
    Index("ix_messages_thread_id", "thread_id", "id"),
    Index("ix_messages_company_id", "company_id", "id"),
    # The messages of a sender, such as deferred ones.
    Index("ix_messages_sender_agent_id", "sender_agent_id", "id"),
    Index("ix_messages_sender_user_id", "sender_user_id", "id"),
    # The messages that carry a question, which are few.
    schema.partial_index("ix_messages_question_id", "question_id", where="question_id IS NOT NULL"),
    schema.partial_index("ix_messages_origin_id", "origin_id", "id", where="origin_id IS NOT NULL"),
    schema.by_short_id("messages"),
    # The letters of Remit about a matter, which go with it.
    schema.partial_index("ix_messages_about", "company_id", "about", where="about IS NOT NULL"),
    # The letters about an outcome.
    schema.partial_index(
        "ix_messages_outcome_id", "outcome_id", "id", where="outcome_id IS NOT NULL"
    ),
    referable=True,
    defaults={"expects_reply": False, "background": False, "to_know": False},
)

deliveries = schema.table_of(
    *(Delivery, "deliveries"),
    # An id without a foreign key.
    *schema.optional(Id, "alone_run_id"),
    Column("id", RowNumber, primary_key=True, autoincrement=True),
    # Place in the queue, assigned when the message becomes visible; independent of clocks.
    *schema.optional(BigInteger, "position"),
    *schema.references("runs", "run_id"),
    schema.check("one_receiver", "(agent_id IS NULL) <> (user_id IS NULL)"),
    schema.check("leased", "(status = 'leased') = (run_id IS NOT NULL AND ended_at IS NULL)"),
    schema.check(
        "position", "(status = 'deferred') OR (position IS NOT NULL) OR status = 'cancelled'"
    ),
    schema.partial_index(
        "ix_deliveries_agent_waiting",
        "agent_id",
        "position",
        where="status IN ('queued', 'leased')",
    ),
    # All mail of an agent. With the position, SQLite would prefer it to the partial index above.
    Index("ix_deliveries_agent_id", "agent_id"),
    Index("ix_deliveries_user_id", "user_id", "company_id", "position"),
    schema.partial_index(
        "ix_deliveries_user_waiting", "user_id", "company_id", "position", where="status = 'queued'"
    ),
    # With the receiver, else a look-up by both would read all mail that the receiver ever got.
    Index("ix_deliveries_message_id", "message_id", "agent_id"),
    schema.partial_index("ix_deliveries_due", "deliver_at", where="status = 'deferred'"),
    schema.partial_index("ix_deliveries_dead", "company_id", "id", where="status = 'dead'"),
    schema.partial_index("ix_deliveries_run_id", "run_id", where="status = 'leased'"),
    # Letters that a run gave up.
    schema.partial_index(
        "ix_deliveries_given_up",
        "run_id",
        where=f"status = 'dead' OR ended_why = '{TRIED_ONCE}'",
    ),
    defaults={"begun": False, "faults": 0},
    sqlite_autoincrement=True,
)

schedules = schema.table_of(
    *(Schedule, "schedules"),
    schema.check("next", "(status = 'active') = (next_at IS NOT NULL)"),
    Index("ix_schedules_company_id", "company_id", "id"),
    Index("ix_schedules_agent_id", "agent_id"),
    schema.partial_index("ix_schedules_due", "next_at", where="status = 'active'"),
    schema.by_short_id("schedules"),
)

questions = schema.table_of(
    *(Question, "questions"),
    schema.check("ended", "(status = 'open') = (ended_at IS NULL)"),
    Index("ix_questions_company_id", "company_id", "id"),
    schema.partial_index("ix_questions_open", "company_id", "agent_id", where="status = 'open'"),
    schema.by_short_id("questions"),
)
