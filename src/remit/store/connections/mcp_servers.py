"""Statements about MCP servers and the grants on them."""

from sqlalchemy import and_, exists, literal, or_
from sqlalchemy import bindparam as bind

from remit.model.connections.mcp_server import McpServer
from remit.model.organisation.grant import Grant
from remit.store.engine.statement import Rows
from remit.store.organisation.grants import LIVE
from remit.store.tables import grants, mcp_servers, runs

_MCP_SERVERS = Rows(McpServer)
_there = mcp_servers.c.removed_at.is_(None)

#: The company's MCP server of that name.
SERVER_NAMED = _MCP_SERVERS.one(_there, company_id="company", name="name")
#: A page of the company's MCP servers, by id.
SERVERS = _MCP_SERVERS.after(_there, company_id="company")
#: Servers on which an agent holds any grant, also an expired or denying one.
SERVERS_FOR = _MCP_SERVERS.find(
    _there,
    exists().where(
        grants.c.holder_id == bind("agent"),
        grants.c.kind == literal("mcp_server"),
        grants.c.resource_id == mcp_servers.c.name,
        grants.c.revoked_at.is_(None),
    ),
    company_id="company",
    order=[mcp_servers.c.name],
)
#: Stores new settings of a server, as its next version.
REPLACE_SERVER = _MCP_SERVERS.next_version(
    mcp_servers.c.id == bind("server"),
    _there,
    of=("transport", "command", "url", "plain", "secret", "inject"),
)
#: Marks a server as removed.
REMOVE_SERVER = _MCP_SERVERS.mark_removed(id="server")

_GRANTS = Rows(Grant)
_on_server = and_(grants.c.company_id == bind("company"), grants.c.kind == literal("mcp_server"))
_alive = exists().where(runs.c.agent_id == grants.c.holder_id, runs.c.status == literal("running"))
#: The live grants on one server, of all holders.
HELD_ON_SERVER = _GRANTS.find(_on_server, LIVE, resource_id="name")
_set_up_anew = exists().where(
    mcp_servers.c.company_id == grants.c.company_id,
    mcp_servers.c.name == grants.c.resource_id,
    mcp_servers.c.updated_at >= bind("since"),
)
#: Whether the servers of an agent changed since a time: granted, revoked, or with new settings.
CHANGED_SINCE = _GRANTS.any(
    _on_server,
    or_(
        grants.c.created_at >= bind("since"),
        grants.c.revoked_at >= bind("since"),
        and_(grants.c.revoked_at.is_(None), _set_up_anew),
    ),
    holder_id="agent",
)
#: Grants on servers that the present transaction revoked from agents with a running run.
TAKEN_NOW = _GRANTS.find(_on_server, _alive, revoked_at="now", order=())
