"""Statements about MCP servers, and about who may use them."""

from __future__ import annotations

from sqlalchemy import and_, exists, insert, literal, or_, select, update
from sqlalchemy import bindparam as bind

from remit.model.grant import Grant
from remit.model.mcp_server import McpServer
from remit.store.statement import Statement, change, columns, into, scalar
from remit.store.tables import grants, mcp_servers, runs

_all = columns(mcp_servers, McpServer)
_there = mcp_servers.c.removed_at.is_(None)

INSERT_SERVER = change(insert(mcp_servers))
SERVER_NAMED = Statement(
    select(*_all).where(
        mcp_servers.c.company_id == bind("company"), mcp_servers.c.name == bind("name"), _there
    ),
    into(McpServer),
)
SERVERS = Statement(
    select(*_all)
    .where(mcp_servers.c.company_id == bind("company"), mcp_servers.c.id > bind("after"), _there)
    .order_by(mcp_servers.c.id)
    .limit(bind("limit")),
    into(McpServer),
)
#: Those on which an agent holds anything at all; what that comes to is decided.
SERVERS_FOR = Statement(
    select(*_all)
    .where(
        mcp_servers.c.company_id == bind("company"),
        _there,
        exists().where(
            grants.c.holder_id == bind("agent"),
            grants.c.kind == literal("mcp_server"),
            grants.c.resource_id == mcp_servers.c.name,
            grants.c.revoked_at.is_(None),
        ),
    )
    .order_by(mcp_servers.c.name),
    into(McpServer),
)
REPLACE_SERVER = change(
    update(mcp_servers)
    .where(mcp_servers.c.id == bind("server"), _there)
    .values(
        transport=bind("new_transport"),
        command=bind("new_command"),
        url=bind("new_url"),
        plain=bind("new_plain"),
        secret=bind("new_secret"),
        inject=bind("new_inject"),
        version=mcp_servers.c.version + 1,
        updated_at=bind("now"),
    )
)
REMOVE_SERVER = change(
    update(mcp_servers)
    .where(mcp_servers.c.id == bind("server"), _there)
    .values(removed_at=bind("now"), updated_at=bind("now"))
)

_grant = columns(grants, Grant)
_on_server = and_(grants.c.company_id == bind("company"), grants.c.kind == literal("mcp_server"))
_alive = exists().where(runs.c.agent_id == grants.c.holder_id, runs.c.status == literal("running"))
#: Whatever is held on one server, by anybody.
HELD_ON_SERVER = Statement(
    select(*_grant)
    .where(
        _on_server,
        grants.c.resource_id == bind("name"),
        grants.c.revoked_at.is_(None),
        or_(grants.c.expires_at.is_(None), grants.c.expires_at > bind("now")),
    )
    .order_by(grants.c.id),
    into(Grant),
)
_held_by = grants.c.holder_id == bind("agent")
#: Whether what an agent may use changed since a time: it was given or taken, or set up anew.
CHANGED_SINCE = Statement(
    select(grants.c.id)
    .join(
        mcp_servers,
        and_(
            mcp_servers.c.company_id == grants.c.company_id,
            mcp_servers.c.name == grants.c.resource_id,
        ),
        isouter=True,
    )
    .where(
        _on_server,
        _held_by,
        or_(
            grants.c.created_at >= bind("since"),
            grants.c.revoked_at >= bind("since"),
            and_(grants.c.revoked_at.is_(None), mcp_servers.c.updated_at >= bind("since")),
        ),
    )
    .limit(1),
    scalar,
)
#: What was taken at this very moment from agents that are at work.
TAKEN_NOW = Statement(
    select(*_grant).where(_on_server, grants.c.revoked_at == bind("now"), _alive), into(Grant)
)
