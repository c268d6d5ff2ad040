"""Approvals with their revisions and comments, and configurations."""

from sqlalchemy import Column, ForeignKey, Index, Integer, UniqueConstraint

from remit.model.organisation.approval import Approval, Comment, Look, Revision
from remit.model.organisation.configuration import ConfigRevision
from remit.store.tables import base as schema
from remit.store.tables.base import Id

_UNDECIDED = "status IN ('pending', 'revision_requested')"

approvals = schema.table_of(
    *(Approval, "approvals"),
    *schema.references("runs", "requested_by_run_id"),
    *schema.optional(Id, "blob_file_id"),
    schema.check(
        "one_requester", "(requested_by_agent_id IS NULL) <> (requested_by_user_id IS NULL)"
    ),
    schema.check("decided", "(status IN ('pending', 'revision_requested')) = (decided_at IS NULL)"),
    schema.check("used", "used_at IS NULL OR status = 'approved'"),
    Index("ix_approvals_company_id", "company_id", "id"),
    schema.partial_index("ix_approvals_undecided", "company_id", "id", where=_UNDECIDED),
    schema.partial_index("ix_approvals_expires_at", "expires_at", where=_UNDECIDED),
    Index("ix_approvals_agent_id", "agent_id"),
    Index("ix_approvals_call", "requested_by_agent_id", "call_digest"),
    Index("ix_approvals_blob", "blob_file_id"),
    # An agent is hired once.
    schema.partial_index(
        "uq_approvals_one_hire", "agent_id", unique=True, where="type = 'hire_agent'"
    ),
    schema.by_short_id("approvals"),
    referable=True,
)

approval_revisions = schema.table_of(
    *(Revision, "approval_revisions"),
    Column("approval_id", Id, ForeignKey("approvals.id"), primary_key=True),
    *schema.keys(Integer, "number"),
    *schema.references("agents", "author_agent_id"),
)

approval_comments = schema.table_of(
    *(Comment, "approval_comments"),
    *schema.references("approval_comments", "reply_to"),
    schema.check("one_author", "author_agent_id IS NULL OR author_user_id IS NULL"),
    Index("ix_approval_comments_approval_id", "approval_id", "id"),
)

approval_looks = schema.table_of(
    *(Look, "approval_looks"),
    key=("approval_id", "reader", "revision"),
)

config_revisions = schema.table_of(
    *(ConfigRevision, "config_revisions"),
    UniqueConstraint("agent_id", "number"),
    Index("ix_config_revisions_agent_id", "agent_id", "number"),
)
