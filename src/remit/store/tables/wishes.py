"""Wishes of people, and how people are told outside that something needs them."""

from sqlalchemy import Index, UniqueConstraint

from remit.model.messaging.notice import Hook, Notice, StoredRules
from remit.model.work.wish import Wish
from remit.store.tables import base as schema
from remit.store.tables.base import Id

_OPEN = "status = 'open'"
_UNFINISHED = "status IN ('queued', 'leased')"

#: A row for each letter from a person to an agent; open until the person was answered.
wishes = schema.table_of(
    *(Wish, "wishes"),
    # An id alone, without a reference.
    *schema.optional(Id, "shared_with"),
    schema.check("ended", "(status = 'open') = (ended_at IS NULL)"),
    schema.partial_index("ix_wishes_shared_with", "shared_with", where="shared_with IS NOT NULL"),
    schema.partial_index("ix_wishes_open", "user_id", "company_id", "message_id", where=_OPEN),
    schema.partial_index("ix_wishes_look_at", "look_at", where=_OPEN),
    key=("message_id",),
)

#: Where a person wants to be told. A command is not here: it is in a file of the instance.
notice_hooks = schema.table_of(
    *(Hook, "notice_hooks"),
    key=("company_id", "user_id"),
)

#: One row for each thing that needs a person and each way of telling them.
notices = schema.table_of(
    *(Notice, "notices"),
    *schema.required(Id, "subject_id"),
    # The notice that told of it together with others; who did not decide it in time.
    *schema.optional(Id, "digest_id", "escalated_from"),
    # The post in a chat, which can be changed afterwards; and JSON: its text.
    *schema.optional(Id, "post_id"),
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
notice_rules = schema.table_of(
    *(StoredRules, "notice_rules"),
    key=("company_id", "user_id"),
)
