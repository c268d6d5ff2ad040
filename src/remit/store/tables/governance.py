"""Approvals with their revisions and comments, and configurations."""

from sqlalchemy import Column, ForeignKey, Index, Integer, Text, UniqueConstraint

from remit.store.tables import base as schema
from remit.store.tables.base import Id, Time

_UNDECIDED = "status IN ('pending', 'revision_requested')"

approvals = schema.table(
    "approvals",
    *schema.company_row(referable=True),
    *schema.required(Text, "type", "status"),
    *schema.optional(Id, "requested_by_agent_id"),
    *schema.references("users", "requested_by_user_id"),
    *schema.references("runs", "requested_by_run_id"),
    *schema.optional(Id, "agent_id", "home_agent_id", "routed_to_agent_id"),
    *schema.required(Text, "payload"),
    *schema.required(Integer, "revision"),
    *schema.required(Text, "digest"),
    *schema.optional(Text, "call_digest"),
    *schema.optional(Id, "blob_file_id"),
    *schema.optional(Text, "blob_sha256", "decision_note"),
    *schema.references("users", "decided_by_user_id"),
    *schema.optional(Id, "decided_by_agent_id"),
    *schema.optional(Time, "decided_at"),
    *schema.optional(Text, "result"),
    *schema.optional(Time, "used_at", "collected_at", "expires_at"),
    *schema.required(Time, "created_at", "updated_at"),
    *schema.within_company(
        "agents",
        "requested_by_agent_id",
        "agent_id",
        "home_agent_id",
        "routed_to_agent_id",
        "decided_by_agent_id",
    ),
    schema.one_of(
        "type",
        "hire_agent",
        "approve_ceo_strategy",
        "config_change",
        "capability_use",
        "budget",
        "request_board_approval",
    ),
    schema.one_of("status", "pending", "revision_requested", "approved", "rejected", "cancelled"),
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
)

approval_revisions = schema.table(
    "approval_revisions",
    Column("approval_id", Id, ForeignKey("approvals.id"), primary_key=True),
    *schema.keys(Integer, "number"),
    *schema.required(Text, "payload", "digest"),
    *schema.references("agents", "author_agent_id"),
    *schema.references("users", "author_user_id"),
    *schema.required(Time, "created_at"),
)

approval_comments = schema.table(
    "approval_comments",
    *schema.company_row(),
    *schema.required(Id, "approval_id"),
    *schema.optional(Id, "author_agent_id"),
    *schema.references("users", "author_user_id"),
    *schema.references("approval_comments", "reply_to"),
    *schema.required(Text, "body"),
    *schema.required(Time, "created_at", "updated_at"),
    *schema.within_company("approvals", "approval_id"),
    *schema.within_company("agents", "author_agent_id"),
    schema.check("one_author", "author_agent_id IS NULL OR author_user_id IS NULL"),
    Index("ix_approval_comments_approval_id", "approval_id", "id"),
)

config_revisions = schema.table(
    "config_revisions",
    *schema.company_row(),
    *schema.required(Id, "agent_id"),
    *schema.required(Integer, "number"),
    *schema.required(Text, "config", "changed_keys", "source"),
    *schema.optional(Id, "approval_id", "created_by_agent_id"),
    *schema.references("users", "created_by_user_id"),
    *schema.required(Time, "created_at"),
    UniqueConstraint("agent_id", "number"),
    *schema.within_company("agents", "agent_id"),
    *schema.within_company("approvals", "approval_id"),
    *schema.within_company("agents", "created_by_agent_id"),
    schema.one_of("source", "create", "change", "proposal", "rollback", "resubmit", "seat"),
    Index("ix_config_revisions_agent_id", "agent_id", "number"),
)
