"""MCP servers besides Remit's own: definitions, who may use them, and a record of each use.

They run on Remit's side. An agent calls them through Remit's own endpoint, where each call is
decided like any other; their secrets stay with the process that talks to them.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from remit.authority import Action, holding
from remit.errors import AlreadyExists, NotFound
from remit.model.connections.mcp_server import (
    Definition,
    McpServer,
    Transport,
    define,
    resource,
    server_name,
)
from remit.model.connections.secret import named_in
from remit.model.execution.run import RunStatus
from remit.model.organisation.decision import Effect
from remit.model.organisation.grant import INSTANCE_CONFIGURE, Level, Mode, Resource, ResourceKind
from remit.services import lookup, shapes, views
from remit.services.command import FOR_REMIT, Context, command, logged, query
from remit.services.connections import secrets
from remit.services.execution import tool_changes
from remit.services.fields import CompanyRef, Reference
from remit.services.new_rows import first_version
from remit.services.redaction import without_secrets
from remit.services.surfaces import AsCommand, AsRoute
from remit.store.connections import mcp_servers as statements
from remit.store.engine.statement import renewed
from remit.store.execution import runs as run_statements
from remit.store.organisation import grants as grant_statements


@dataclass(frozen=True, slots=True)
class Seat:
    """User of a server: an agent, in a run if it is in one."""

    company_id: str
    agent_id: str
    run_id: str | None
    workspace: str | None
    server: McpServer


# ── what operators do ───────────────────────────────────────────────────────────────────────────


@command("mcp_servers.add")
def add(
    ctx: Context,
    *,
    company: str | None,
    name: object,
    definition: Mapping[str, Any],
    replace: bool = False,
) -> shapes.McpServerShape:
    """Register a server, or replace its definition; runs that use it are told."""
    called = server_name(name)
    wanted = define(**definition)
    lookup.company_of_caller(ctx, company)
    decision = ctx.require(Action.MCP_SERVER_CHANGE, on=f"mcp_server:{called}")
    before = ctx.tx.one(statements.SERVER_NAMED, name=called)
    if before is not None and not replace:
        raise AlreadyExists(
            f"There is an MCP server {called!r} already.",
            "Choose another name, or replace it with --replace.",
        )
    server = _store(ctx, called, wanted, before)
    secrets.require_all(ctx, named_in(server.templates.values()))
    ctx.record(
        "mcp_server.add" if before is None else "mcp_server.replace",
        f"mcp_server:{called}",
        {"transport": server.transport.value, "version": server.version, "inject": server.inject},
        decision,
    )
    if before is not None:
        tool_changes.server_changed(ctx, called)
    return view(ctx, server)


def _store(ctx: Context, name: str, wanted: Definition, before: McpServer | None) -> McpServer:
    if before is not None:
        ctx.tx.run(statements.REPLACE_SERVER, server=before.id, **renewed(wanted))
        return _named(ctx, name)
    server = McpServer(**first_version(ctx), name=name, **asdict(wanted))
    ctx.tx.add(server)
    return server


@query(
    "mcp_servers.listing",
    AsRoute("GET /companies/{companyId}/mcp-servers", "list_mcp_servers", page="id"),
    AsCommand("mcp list"),
)
def listing(
    ctx: Context, *, company: CompanyRef | None, after: str = "", limit: int = 100
) -> list[shapes.McpServerShape]:
    """List the servers, and who may use them."""
    lookup.company_of_caller(ctx, company)
    configuring = Resource(ResourceKind.ACTION, INSTANCE_CONFIGURE)
    ctx.require(Action.MCP_SERVER_READ, configuring, on="mcp_servers")
    rows = ctx.tx.all(statements.SERVERS, after=after, limit=limit)
    return [view(ctx, row) for row in rows]


@command(
    "mcp_servers.remove",
    AsRoute(
        "DELETE /companies/{companyId}/mcp-servers/{id}",
        "remove_mcp_server",
        spelled={"name": "id"},
    ),
    AsCommand(
        "mcp remove",
        "Remove a server, and every right to use it.",
        said="{name} is removed; {revoked:count} grants went.",
        spelled={"name": "name"},
    ),
)
def remove(
    ctx: Context, *, company: CompanyRef | None, name: Annotated[str, Reference("server name")]
) -> shapes.RemovedMcpServerShape:
    """Take a server away, and every right to use it; prohibitions stay."""
    called = server_name(name)
    lookup.company_of_caller(ctx, company)
    decision = ctx.require(Action.MCP_SERVER_CHANGE, on=f"mcp_server:{called}")
    server = _named(ctx, called)
    ctx.tx.run(statements.REMOVE_SERVER, server=server.id)
    revoked: list[str] = []
    for grant in ctx.tx.all(statements.HELD_ON_SERVER, name=called):
        if grant.mode is not Mode.DENY:
            revoked += ctx.tx.all(grant_statements.REVOKE_WITH_DERIVED, grant=grant.id)
    revoked.sort()
    ctx.record("mcp_server.remove", f"mcp_server:{called}", {"revoked": revoked}, decision)
    tool_changes.taken(ctx, revoked)
    return {"name": called, "removed": True, "revoked": revoked}


@command("mcp_servers.try_out")
def try_out(ctx: Context, *, company: str | None, name: object) -> shapes.OfCompanyShape:
    """Record that an operator has a server started to list its tools."""
    called = server_name(name)
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.MCP_SERVER_CHANGE, on=f"mcp_server:{called}")
    server = _named(ctx, called)
    ctx.record("mcp_server.test", f"mcp_server:{called}", {"version": server.version})
    return {"company_id": server.company_id, "name": server.name}


@logged("mcp_servers.try_new")
def try_new(
    ctx: Context, *, company: str | None, name: object, definition: Mapping[str, Any]
) -> McpServer:
    """Record that an operator has a server started before it is registered; returns that server."""
    called = server_name(name)
    wanted = define(**definition)
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.MCP_SERVER_CHANGE, on=f"mcp_server:{called}")
    secrets.require_all(ctx, named_in(json.loads(wanted.secret).values()))
    ctx.record("mcp_server.test", f"mcp_server:{called}", {"version": None})
    return McpServer(**first_version(ctx), name=called, **asdict(wanted))


def _named(ctx: Context, name: str) -> McpServer:
    server = ctx.tx.one(statements.SERVER_NAMED, name=name)
    if server is None:
        raise NotFound(f"There is no MCP server {name!r} here.", "See `remit mcp list`.")
    return server


def view(ctx: Context, server: McpServer) -> shapes.McpServerShape:
    """A server as its board sees it, without anything that may be a secret."""
    shown, _ = without_secrets({"env": server.settings, "command": server.argv})
    grants = ctx.tx.all(statements.HELD_ON_SERVER, name=server.name)
    stdio = server.transport is Transport.STDIO
    return _view(
        server,
        command=shown["command"] if stdio else None,
        env=shown["env"] if stdio else {},
        secret_env=server.templates if stdio else {},
        headers={} if stdio else shown["env"],
        secret_headers={} if stdio else server.templates,
        holders=sorted({grant.holder_id for grant in grants}),
    )


_view = views.view_of(
    McpServer,
    shapes.McpServerShape,
    supplied={"command", "env", "secret_env", "headers", "secret_headers", "holders"},
)


# ── what agents do ──────────────────────────────────────────────────────────────────────────────


@query("mcp_servers.usable")
def usable(ctx: Context) -> list[Seat]:
    """Return the servers that the calling agent may use, including those that need approval each
    time."""
    me = ctx.actor.agent_id
    if me is None:
        return []
    lookup.company_of_caller(ctx, None)
    return [
        _seat(ctx, server)
        for server in ctx.tx.all(statements.SERVERS_FOR, agent=me)
        if ctx.decide(Action.MCP_SERVER_CALL, server.resource).effect is not Effect.DENY
    ]


@logged("mcp_servers.use")
def use(ctx: Context, *, server: str, tool: str, arguments: Mapping[str, Any]) -> Seat:
    """Decide about one call of one tool, and record it.

    This is not a command, because the call cannot be made in the agent's place: once it is
    approved, the agent makes it again. The arguments are for the approver; no event shows them.
    """
    del arguments
    lookup.company_of_caller(ctx, None)
    ctx.lock_company()  # so that no right is revoked between the decision and the record
    ctx.require(Action.MCP_SERVER_CALL, resource(server))
    server_row = _named(ctx, server)
    ctx.record(
        "mcp_server.call", f"mcp_server:{server}", {"tool": tool, "version": server_row.version}
    )
    return _seat(ctx, server_row)


def _seat(ctx: Context, server: McpServer) -> Seat:
    return Seat(server.company_id, ctx.actor.id, ctx.actor.run_id, ctx.actor.workspace, server)


# ── for the process that talks to the servers ───────────────────────────────────────────────────


@query("mcp_servers.find", FOR_REMIT)
def find(ctx: Context, *, company: str, name: str) -> McpServer:
    """Return a server by name."""
    ctx.enter(company)
    return _named(ctx, name)


@query("mcp_servers.vacated", FOR_REMIT)
def vacated(ctx: Context, *, seats: Sequence[Seat]) -> list[Seat]:
    """Return the seats that are stale: the run has ended, the right is gone, or the server was
    changed."""
    return [seat for seat in seats if not _still(ctx, seat)]


def _still(ctx: Context, seat: Seat) -> bool:
    if seat.run_id is not None:
        run = ctx.tx.one(run_statements.RUN, run=seat.run_id)
        if run is None or run.status is not RunStatus.RUNNING:
            return False
    now = ctx.tx.one(statements.SERVER_NAMED, company=seat.company_id, name=seat.server.name)
    if now is None or (now.id, now.version) != (seat.server.id, seat.server.version):
        return False
    held = ctx.held(seat.agent_id, seat.server.resource)
    return holding(held, Level.USE, ctx.now).effect is not Effect.DENY


@query("mcp_servers.injected", FOR_REMIT)
def injected(ctx: Context, *, company: str, agent: str) -> list[McpServer]:
    """Return the servers whose variables are set for an agent's own programs.

    A server whose every use needs approval is left out, because its use through a variable is not
    seen.
    """
    return [
        server
        for server in ctx.tx.all(statements.SERVERS_FOR, company=company, agent=agent)
        if server.inject and holding(ctx.held(agent, server.resource), Level.USE, ctx.now).allowed
    ]
