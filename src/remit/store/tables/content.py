"""Files, their versions, links and access log, and grants."""

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Integer

from remit.model.organisation.grant import Grant
from remit.model.work.file import AccessEntry, File, Version
from remit.store.tables import base as schema
from remit.store.tables.base import Id, RowNumber

files = schema.table_of(
    *(File, "files"),
    *schema.required(BigInteger, "size"),
    # Row in SQLite's full-text index; unused on PostgreSQL.
    *schema.optional(BigInteger, "search_row"),
    schema.check("version", "version >= 1"),
    schema.partial_index("ix_files_company_id", "company_id", "id", where="kind = 'file'"),
    schema.partial_index(
        "ix_files_listed",
        "company_id",
        "id",
        where="unlisted = false AND kind = 'file'",
        sqlite="unlisted = 0 AND kind = 'file'",
    ),
    # Files without the texts of messages.
    schema.partial_index(
        "ix_files_written",
        "company_id",
        "id",
        where="letter = false AND kind = 'file'",
        sqlite="letter = 0 AND kind = 'file'",
    ),
    schema.by_short_id("files"),
    referable=True,
    defaults={"letter": False},
)

file_versions = schema.table_of(
    *(Version, "file_versions"),
    Column("file_id", Id, ForeignKey("files.id"), primary_key=True),
    *schema.keys(Integer, "number"),
    *schema.required(BigInteger, "size"),
    *schema.references("agents", "agent_id"),
    *schema.references("runs", "run_id"),
    schema.check("number", "number >= 1"),
    schema.check("sha256", "length(sha256) = 64"),
    schema.check("size", "size >= 0"),
    schema.check("one_author", "agent_id IS NULL OR user_id IS NULL"),
    Index("ix_file_versions_blob", "file_id", "sha256"),
)

file_links = schema.table(
    "file_links",
    Column("file_id", Id, ForeignKey("files.id"), primary_key=True),
    # Without a foreign key, because the target of a link need not exist.
    *schema.keys(Id, "target_id"),
    Index("ix_file_links_target_id", "target_id"),
)

access_log = schema.table_of(
    *(AccessEntry, "access_log"),
    Column("id", RowNumber, primary_key=True, autoincrement=True),
    Column("file_id", Id, ForeignKey("files.id"), nullable=False),
    *schema.references("agents", "agent_id"),
    *schema.references("runs", "run_id"),
    Index("ix_access_log_file_id", "file_id", "id"),
    sqlite_autoincrement=True,
)

_LIVE = "revoked_at IS NULL"

grants = schema.table_of(
    *(Grant, "grants"),
    schema.check("level", "level BETWEEN 0 AND 5"),
    schema.check("not_own_parent", "parent_id <> id"),
    schema.check("one_granter", "granted_by_agent IS NULL OR granted_by_user IS NULL"),
    # A grant by an agent always comes from a grant that it holds.
    schema.check("from_held", "(granted_by_agent IS NULL) = (parent_id IS NULL)"),
    Index("ix_grants_company_id", "company_id", "id"),
    schema.partial_index("ix_grants_held", "holder_id", "kind", "resource_id", where=_LIVE),
    schema.partial_index("ix_grants_holder_id", "holder_id", "id", where=_LIVE),
    Index("ix_grants_parent_id", "parent_id"),
    schema.partial_index("ix_grants_scope_id", "scope_id", where=_LIVE),
    schema.partial_index("ix_grants_resource", "kind", "resource_id", where=_LIVE),
    schema.by_short_id("grants"),
    referable=True,
)
