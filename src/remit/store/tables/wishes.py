"""Wishes of people, and notices to people outside about things that need them."""

from sqlalchemy import Index, UniqueConstraint

from remit.model.messaging.notice import Hook, Notice, StoredRules
from remit.model.work.wish import Wish
from remit.store.tables import base as schema
from remit.store.tables.base import Id

_OPEN = "status = 'open'"
_UNFINISHED = "status IN ('queued', 'leased')"

#: A row for each message from a person to an agent; open until the person is answered.
wishes = schema.table_of(
    *(Wish, "wishes"),
    # An id without a foreign key.
    *schema.optional(Id, "shared_with"),
    schema.check("ended", "(status = 'open') = (ended_at IS NULL)"),
    schema.partial_index("ix_wishes_shared_with", "shared_with", where="shared_with IS NOT NULL"),
    schema.partial_index("ix_wishes_open", "user_id", "company_id", "message_id", where=_OPEN),
    schema.partial_index("ix_wishes_look_at", "look_at", where=_OPEN),
    key=("message_id",),
)

#: A person's webhook for notices. Commands for notices are in a file of the instance instead.
notice_hooks = schema.table_of(
    *(Hook, "notice_hooks"),
    key=("company_id", "user_id"),
)

#: One row for each thing that needs a person and each way of telling them.
notices = schema.table_of(
    *(Notice, "notices"),
    *schema.required(Id, "subject_id"),
    # The digest that contained it; the person who did not decide in time, for an escalation.
    *schema.optional(Id, "digest_id", "escalated_from"),
    # The post that shows it in a chat and can be changed afterwards.
    *schema.optional(Id, "post_id"),
    # How many of its subjects the post shows as settled.
    *schema.counters("settled"),
    UniqueConstraint("user_id", "way", "kind", "subject_id"),
    *schema.leased_queue("leased", "done", "dead", "cancelled"),
    schema.partial_index("ix_notices_unfinished", "next_at", where=_UNFINISHED),
    schema.partial_index("ix_notices_changeable", "user_id", where="post_id IS NOT NULL"),
    schema.partial_index("ix_notices_digest_id", "digest_id", where="digest_id IS NOT NULL"),
    Index("ix_notices_user_id", "user_id", "id"),
)

#: A person's rules for notices: kinds, ways and times; without a row, the defaults hold.
notice_rules = schema.table_of(
    *(StoredRules, "notice_rules"),
    key=("company_id", "user_id"),
)
