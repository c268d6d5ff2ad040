"""What lies outside and is lent to agents: secrets, MCP servers, repositories."""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
    false,
    text,
)

from remit.store.tables.base import Id, Time, metadata, one_of

#: What was removed keeps its row, so that events and grants still say what they were about.
_THERE = text("removed_at IS NULL")

secrets = Table(
    "secrets",
    metadata,
    Column("id", Id, primary_key=True),
    Column("company_id", Id, ForeignKey("companies.id"), nullable=False),
    Column("name", Text, nullable=False),
    # Where the value is found, never the value itself.
    Column("source", Text, nullable=False),
    Column("place", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("created_at", Time, nullable=False),
    Column("updated_at", Time, nullable=False),
    Column("removed_at", Time),
    UniqueConstraint("id", "company_id"),
    Index(
        "uq_secrets_name",
        "company_id",
        "name",
        unique=True,
        sqlite_where=_THERE,
        postgresql_where=_THERE,
    ),
)

mcp_servers = Table(
    "mcp_servers",
    metadata,
    Column("id", Id, primary_key=True),
    Column("company_id", Id, ForeignKey("companies.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("transport", Text, nullable=False),
    # JSON: the program with its arguments; or an address.
    Column("command", Text),
    Column("url", Text),
    # JSON: environment variables of the program, or headers of the requests, in plain text.
    Column("plain", Text, nullable=False),
    # JSON: the same by name of a secret.
    Column("secret", Text, nullable=False),
    # Whether the variables are given to the agent's own programs as well.
    Column("inject", Boolean, nullable=False, server_default=false()),
    Column("version", Integer, nullable=False),
    Column("created_at", Time, nullable=False),
    Column("updated_at", Time, nullable=False),
    Column("removed_at", Time),
    UniqueConstraint("id", "company_id"),
    one_of("transport", "stdio", "http"),
    CheckConstraint("(transport = 'stdio') = (command IS NOT NULL)", name="command"),
    CheckConstraint("(transport = 'http') = (url IS NOT NULL)", name="url"),
    Index(
        "uq_mcp_servers_name",
        "company_id",
        "name",
        unique=True,
        sqlite_where=_THERE,
        postgresql_where=_THERE,
    ),
)

repos = Table(
    "repos",
    metadata,
    Column("id", Id, primary_key=True),
    Column("company_id", Id, ForeignKey("companies.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("url", Text, nullable=False),
    # The branch to clone when none is asked for; the remote's own when empty.
    Column("ref", Text),
    Column("username", Text),
    # The name of the secret that opens it.
    Column("secret", Text),
    Column("version", Integer, nullable=False),
    Column("created_at", Time, nullable=False),
    Column("updated_at", Time, nullable=False),
    Column("removed_at", Time),
    UniqueConstraint("id", "company_id"),
    Index(
        "uq_repos_name",
        "company_id",
        "name",
        unique=True,
        sqlite_where=_THERE,
        postgresql_where=_THERE,
    ),
)
