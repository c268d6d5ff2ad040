"""Secrets, MCP servers, repositories and folders: resources outside that agents may use."""

from remit.model.connections.folder import Folder
from remit.model.connections.lent_plugin import LentPlugin
from remit.model.connections.mcp_server import McpServer
from remit.model.connections.repo import Repo
from remit.model.connections.secret import Secret
from remit.store.tables import base as schema

#: A removed thing keeps its row, so that events and grants still say what they were about.
_THERE = "removed_at IS NULL"

secrets = schema.table_of(
    *(Secret, "secrets"),
    schema.partial_index("uq_secrets_name", "company_id", "name", unique=True, where=_THERE),
    referable=True,
)

mcp_servers = schema.table_of(
    *(McpServer, "mcp_servers"),
    schema.check("command", "(transport = 'stdio') = (command IS NOT NULL)"),
    schema.check("url", "(transport = 'http') = (url IS NOT NULL)"),
    schema.partial_index("uq_mcp_servers_name", "company_id", "name", unique=True, where=_THERE),
    referable=True,
    defaults={"inject": False},
)

repos = schema.table_of(
    *(Repo, "repos"),
    schema.partial_index("uq_repos_name", "company_id", "name", unique=True, where=_THERE),
    referable=True,
    defaults={"people": "[]", "push": "at_once", "instructions": True},
)

#: Folders of workers' machines that are visible to runs.
folders = schema.table_of(
    *(Folder, "folders"),
    schema.check("place", "(path IS NULL) <> (repo_id IS NULL)"),
    schema.check("of_agent", "kind = 'tools' OR agent_id IS NOT NULL"),
    schema.partial_index(
        "uq_folders_work", "agent_id", unique=True, where=f"{_THERE} AND kind = 'work'"
    ),
    schema.partial_index("ix_folders_company_id", "company_id", where=_THERE),
    defaults={"instructions": True},
)

#: Skills, commands and agents of a project or a person that an agent is lent.
lent_plugins = schema.table_of(
    *(LentPlugin, "lent_plugins"),
    schema.partial_index("uq_lent_plugins_name", "agent_id", "name", unique=True, where=_THERE),
    schema.partial_index("ix_lent_plugins_company_id", "company_id", where=_THERE),
)
