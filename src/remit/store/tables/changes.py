"""Changes that agents propose to repositories, comments on them, their checks, and errands at
remotes."""

from sqlalchemy import BigInteger, Index, UniqueConstraint

from remit.model.connections.change import Change, ChangeComment, ChangeErrand
from remit.model.connections.check import ChangeCheck
from remit.model.connections.forge import ForgeIssue, ForgeWatch
from remit.store.tables import base as schema

_OPEN = "status = 'open'"
_UNFINISHED = "status IN ('queued', 'leased')"

changes = schema.table_of(
    *(Change, "changes"),
    schema.check("ended", "(status = 'open') = (ended_at IS NULL)"),
    schema.check("merged", "(status = 'merged') = (merged_commit IS NOT NULL)"),
    # A branch has at most one open change.
    schema.partial_index("uq_changes_branch", "repo_id", "remote_branch", unique=True, where=_OPEN),
    schema.partial_index("ix_changes_outcome_id", "outcome_id", where=_OPEN),
    Index("ix_changes_agent_id", "agent_id", "id"),
    Index("ix_changes_company_id", "company_id", "id"),
    Index("ix_changes_repo_id", "repo_id", "id"),
    schema.by_short_id("changes"),
    referable=True,
)

change_comments = schema.table_of(
    *(ChangeComment, "change_comments"),
    schema.check("place", "(line IS NULL) = (side IS NULL) AND (line IS NULL OR path IS NOT NULL)"),
    Index("ix_change_comments_change_id", "change_id", "id"),
    # Deduplicates comments from the forge.
    schema.partial_index(
        "uq_change_comments_outside_id",
        *("change_id", "outside_id"),
        unique=True,
        where="outside_id IS NOT NULL",
    ),
)

change_errands = schema.table_of(
    *(ChangeErrand, "change_errands"),
    *schema.leased_queue("leased", "done", "dead", "cancelled"),
    schema.partial_index("ix_change_errands_unfinished", "repo_id", "id", where=_UNFINISHED),
    Index("ix_change_errands_change_id", "change_id", "id"),
)

forge_watches = schema.table_of(
    *(ForgeWatch, "forge_watches"),
    *schema.required(BigInteger, "epoch"),
    key=("repo_id",),
)

forge_issues = schema.table_of(
    *(ForgeIssue, "forge_issues"),
    # An issue becomes one outcome.
    UniqueConstraint("repo_id", "number"),
)

change_checks = schema.table_of(
    *(ChangeCheck, "change_checks"),
    schema.check("result_at_end", "result IS NULL OR status = 'done'"),
    *schema.leased_queue("leased", "done", "dead", "cancelled"),
    schema.partial_index("ix_change_checks_unfinished", "next_at", "id", where=_UNFINISHED),
    Index("ix_change_checks_change_id", "change_id", "head_commit", "id"),
)
