"""Secrets, MCP servers and repositories: what lies outside and is lent to agents."""

from sqlalchemy import Boolean, Column, Integer, Text, false

from remit.store.tables import base as schema
from remit.store.tables.base import Time

#: A removed thing keeps its row, so that events and grants still say what they were about.
_THERE = "removed_at IS NULL"

secrets = schema.table(
    "secrets",
    *schema.company_row(referable=True),
    *schema.required(Text, "name"),
    # Where the value is found, never the value itself.
    *schema.required(Text, "source", "place"),
    *schema.required(Integer, "version"),
    *schema.required(Time, "created_at", "updated_at"),
    *schema.optional(Time, "removed_at"),
    schema.partial_index("uq_secrets_name", "company_id", "name", unique=True, where=_THERE),
)

mcp_servers = schema.table(
    "mcp_servers",
    *schema.company_row(referable=True),
    *schema.required(Text, "name", "transport"),
    # JSON: the program with its arguments; or an address.
    *schema.optional(Text, "command", "url"),
    # JSON: environment variables of the program, or headers of the requests, in plain text.
    *schema.required(Text, "plain"),
    # JSON: the same by name of a secret.
    *schema.required(Text, "secret"),
    # Whether the variables are given to the agent's own programs as well.
    Column("inject", Boolean, nullable=False, server_default=false()),
    *schema.required(Integer, "version"),
    *schema.required(Time, "created_at", "updated_at"),
    *schema.optional(Time, "removed_at"),
    schema.one_of("transport", "stdio", "http"),
    schema.check("command", "(transport = 'stdio') = (command IS NOT NULL)"),
    schema.check("url", "(transport = 'http') = (url IS NOT NULL)"),
    schema.partial_index("uq_mcp_servers_name", "company_id", "name", unique=True, where=_THERE),
)

repos = schema.table(
    "repos",
    *schema.company_row(referable=True),
    *schema.required(Text, "name", "url"),
    # The branch to clone when none is asked for; the remote's own when empty.
    *schema.optional(Text, "ref", "username"),
    # The name of the secret that opens it.
    *schema.optional(Text, "secret"),
    *schema.required(Integer, "version"),
    *schema.required(Time, "created_at", "updated_at"),
    *schema.optional(Time, "removed_at"),
    # The forge: its kind, its address, and the names of two secrets.
    *schema.optional(Text, "forge", "api", "api_secret", "hook"),
    # JSON: who is heard there. And the label that makes an issue an outcome.
    Column("people", Text, nullable=False, server_default="[]"),
    *schema.optional(Text, "label"),
    # Checks that are run on each proposal, as JSON.
    *schema.optional(Text, "checks"),
    schema.partial_index("uq_repos_name", "company_id", "name", unique=True, where=_THERE),
)

#: Folders of workers' machines that runs are shown.
folders = schema.table(
    "folders",
    *schema.company_row(),
    *schema.required(Text, "kind"),
    *schema.optional(schema.Id, "agent_id"),
    *schema.optional(Text, "path"),
    *schema.optional(schema.Id, "repo_id"),
    *schema.required(Text, "programs", "variables"),
    *schema.optional(Integer, "most_megabytes"),
    *schema.required(Time, "created_at"),
    *schema.optional(Time, "removed_at"),
    schema.one_of("kind", "work", "tools"),
    schema.check("place", "(path IS NULL) <> (repo_id IS NULL)"),
    schema.check("of_agent", "kind = 'tools' OR agent_id IS NOT NULL"),
    *schema.within_company("agents", "agent_id"),
    *schema.within_company("repos", "repo_id"),
    schema.partial_index(
        "uq_folders_work", "agent_id", unique=True, where=f"{_THERE} AND kind = 'work'"
    ),
    schema.partial_index("ix_folders_company_id", "company_id", where=_THERE),
)
