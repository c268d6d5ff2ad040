"""Changes that agents propose to repositories, what is said about them and found by checks, and
errands at remotes."""

from sqlalchemy import BigInteger, Boolean, Index, Integer, Text, UniqueConstraint

from remit.store.tables import base as schema
from remit.store.tables.base import Id, Time

_OPEN = "status = 'open'"
_UNFINISHED = "status IN ('queued', 'leased')"

changes = schema.table(
    "changes",
    *schema.company_row(referable=True),
    *schema.required(Id, "repo_id", "agent_id"),
    *schema.optional(Id, "run_id", "outcome_id"),
    *schema.required(Text, "branch", "remote_branch", "target", "title", "description"),
    *schema.required(Text, "base_commit", "head_commit", "paths"),
    *schema.required(Id, "bundle_id"),
    *schema.required(Integer, "revision"),
    *schema.required(Text, "status"),
    *schema.required(Integer, "version"),
    *schema.required(Time, "created_at", "updated_at"),
    *schema.optional(Text, "published_commit"),
    *schema.optional(Boolean, "conflicts"),
    *schema.optional(Text, "decision", "decision_note", "decided_head", "decided_base"),
    *schema.optional(Id, "decided_by_agent"),
    *schema.references("users", "decided_by_user"),
    *schema.optional(Time, "decided_at"),
    *schema.optional(Text, "merged_commit"),
    *schema.optional(Time, "ended_at"),
    *schema.optional(Text, "ended_why"),
    # The request at the forge, and as JSON what the forge said about it last.
    *schema.optional(Integer, "request_number"),
    *schema.optional(Text, "request_url", "request_seen"),
    *schema.within_company("repos", "repo_id"),
    *schema.within_company("agents", "agent_id", "decided_by_agent"),
    *schema.within_company("runs", "run_id"),
    *schema.within_company("outcomes", "outcome_id"),
    *schema.within_company("files", "bundle_id"),
    schema.one_of("status", "open", "merged", "closed"),
    schema.check("ended", "(status = 'open') = (ended_at IS NULL)"),
    schema.check("merged", "(status = 'merged') = (merged_commit IS NOT NULL)"),
    schema.one_of("decision", "approved", "returned"),
    # One branch of an agent is one change for as long as it is open.
    schema.partial_index("uq_changes_branch", "repo_id", "remote_branch", unique=True, where=_OPEN),
    schema.partial_index("ix_changes_outcome_id", "outcome_id", where=_OPEN),
    Index("ix_changes_agent_id", "agent_id", "id"),
    Index("ix_changes_company_id", "company_id", "id"),
    Index("ix_changes_repo_id", "repo_id", "id"),
    schema.by_short_id("changes"),
)

change_comments = schema.table(
    "change_comments",
    *schema.company_row(),
    *schema.required(Id, "change_id"),
    *schema.required(Text, "head_commit"),
    *schema.optional(Text, "path"),
    *schema.optional(Integer, "line"),
    *schema.optional(Text, "side"),
    *schema.required(Text, "body"),
    *schema.optional(Id, "agent_id"),
    *schema.references("users", "user_id"),
    *schema.required(Time, "created_at"),
    # At the forge: what it is called there, who said it, and whether they are heard.
    *schema.optional(Text, "outside_id", "outside_author"),
    *schema.optional(Boolean, "heard"),
    *schema.within_company("changes", "change_id"),
    *schema.within_company("agents", "agent_id"),
    schema.one_of("side", "old", "new"),
    schema.check("place", "(line IS NULL) = (side IS NULL) AND (line IS NULL OR path IS NOT NULL)"),
    Index("ix_change_comments_change_id", "change_id", "id"),
    # Comments from outside come in once.
    schema.partial_index(
        "uq_change_comments_outside_id",
        *("change_id", "outside_id"),
        unique=True,
        where="outside_id IS NOT NULL",
    ),
)

change_errands = schema.table(
    "change_errands",
    *schema.company_row(),
    *schema.required(Id, "repo_id", "change_id"),
    # The errand, and its details as JSON.
    *schema.required(Text, "kind", "details", "status"),
    *schema.required(Time, "next_at", "created_at"),
    *schema.required(Integer, "attempt"),
    *schema.optional(Text, "worker"),
    *schema.required(BigInteger, "epoch"),
    *schema.optional(Time, "lease_until", "ended_at"),
    *schema.optional(Text, "ended_why"),
    *schema.within_company("repos", "repo_id"),
    *schema.within_company("changes", "change_id"),
    schema.one_of("kind", "publish", "merge"),
    *schema.leased_queue("leased", "done", "dead", "cancelled"),
    schema.partial_index("ix_change_errands_unfinished", "repo_id", "id", where=_UNFINISHED),
    Index("ix_change_errands_change_id", "change_id", "id"),
)

forge_watches = schema.table(
    "forge_watches",
    *schema.keys(Id, "repo_id"),
    schema.company_id(),
    *schema.polled("looked_at"),
    *schema.required(Text, "cursor"),
    *schema.within_company("repos", "repo_id"),
)

forge_issues = schema.table(
    "forge_issues",
    *schema.company_row(),
    *schema.required(Id, "repo_id", "outcome_id"),
    *schema.required(Integer, "number"),
    *schema.required(Text, "url", "labelled_by"),
    *schema.required(Time, "created_at"),
    *schema.optional(Text, "told"),
    *schema.optional(Time, "told_at"),
    *schema.within_company("repos", "repo_id"),
    *schema.within_company("outcomes", "outcome_id"),
    # An issue becomes one outcome.
    UniqueConstraint("repo_id", "number"),
)

change_checks = schema.table(
    "change_checks",
    *schema.company_row(),
    *schema.required(Id, "repo_id", "change_id"),
    # The subject, and its details as JSON.
    *schema.required(Text, "name", "head_commit", "base_commit", "details", "status"),
    *schema.required(Time, "next_at", "created_at"),
    *schema.required(Integer, "attempt"),
    *schema.optional(Text, "worker"),
    *schema.required(BigInteger, "epoch"),
    *schema.optional(Time, "lease_until", "ended_at"),
    *schema.optional(Text, "ended_why", "result", "log"),
    *schema.optional(Id, "evidence_id"),
    *schema.within_company("repos", "repo_id"),
    *schema.within_company("changes", "change_id"),
    *schema.within_company("files", "evidence_id"),
    schema.one_of("result", "passed", "failed"),
    schema.check("result_at_end", "result IS NULL OR status = 'done'"),
    *schema.leased_queue("leased", "done", "dead", "cancelled"),
    schema.partial_index("ix_change_checks_unfinished", "next_at", "id", where=_UNFINISHED),
    Index("ix_change_checks_change_id", "change_id", "head_commit", "id"),
)
