"""Secrets: an operator names the source of a value; the value stays with the process that reads
it."""

import json
from collections.abc import Iterable

from remit.authority import Action
from remit.channels import registry
from remit.errors import Conflict, NotFound
from remit.ids import CompanyId
from remit.model.connections.secret import (
    Secret,
    named_in,
    parse_place,
    secret_name,
    shown_place,
    source_name,
)
from remit.services import lookup, shapes, views
from remit.services.chat import receivers
from remit.services.command import FOR_REMIT, Context, command, query
from remit.services.execution import accounts
from remit.services.new_rows import first_version
from remit.store.connections import mcp_servers as server_statements
from remit.store.connections import secrets as statements
from remit.store.messaging import channels as channel_statements
from remit.store.organisation import people

MOST = 10_000


@query("secrets.may_change")
def may_change(ctx: Context, *, company: str | None, name: object) -> shapes.OfCompanyShape:
    """Check that the caller may set this secret, before its value is stored anywhere."""
    called = secret_name(name)
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.SECRET_CHANGE, on=f"secret:{called}")
    return {"company_id": ctx.company, "name": called}


@command("secrets.put")
def put(
    ctx: Context,
    *,
    company: str | None,
    name: object,
    source: object,
    place: object = None,
    new_place: str | None = None,
) -> shapes.SecretShape:
    """Set the source and place of a secret. `new_place` is a file that Remit made for its value,
    relative to the home."""
    called = secret_name(name)
    from_ = source_name(source)
    at = parse_place(from_, place) if new_place is None else new_place
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.SECRET_CHANGE, on=f"secret:{called}")
    secret = ctx.tx.one(statements.SECRET_NAMED, name=called)
    if secret is None:
        new = Secret(**first_version(ctx), name=called, source=from_, place=at)
        ctx.tx.add(new)
    else:
        ctx.tx.run(statements.MOVE_SECRET, secret=secret.id, new_source=from_, new_place=at)
    now = _named(ctx, called)
    accounts.try_secret(ctx, called)
    receivers.try_secret(ctx, called)
    ctx.record("secret.set", f"secret:{called}", {"source": from_, "version": now.version})
    return {**view(now), "replaced": None if secret is None else secret.place}


@query("secrets.listing")
def listing(
    ctx: Context, *, company: str | None, after: str = "", limit: int = 100
) -> list[Secret]:
    """List the secrets of a company, with their sources and places."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.SECRET_READ, on="secrets")
    return ctx.tx.all(statements.SECRETS, after=after, limit=limit)


@command("secrets.remove")
def remove(ctx: Context, *, company: str | None, name: object) -> shapes.RemovedSecretShape:
    """Remove a secret, unless something uses it."""
    called = secret_name(name)
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.SECRET_CHANGE, on=f"secret:{called}")
    secret = _named(ctx, called)
    for server in ctx.tx.all(server_statements.SERVERS, after="", limit=MOST):
        if called in named_in(server.templates.values()):
            raise Conflict(
                f"The MCP server {server.name} uses it.", "Remove or replace that server first."
            )
    for binding in ctx.tx.all(channel_statements.BINDINGS, agent=None, after="", limit=MOST):
        if not binding.held and registry.secret_of(json.loads(binding.adapter_config)) == called:
            raise Conflict(
                f"A binding to {binding.adapter_type} signs with it.",
                "Remove or replace that binding first.",
            )
    signs = ctx.tx.one(people.COMPANY)
    if signs is not None and signs.commit_signing == called:
        raise Conflict(
            "Commits are signed with it.", "Set another key, or none, with `remit company set`."
        )
    ctx.tx.run(statements.REMOVE_SECRET, secret=secret.id)
    ctx.record("secret.remove", f"secret:{called}", {"source": secret.source})
    return {"name": called, "removed": True, "replaced": secret.place}


def require_all(ctx: Context, names: list[str]) -> None:
    """Refuse names of secrets that do not exist."""
    for name in names:
        _named(ctx, name)


def _named(ctx: Context, name: str) -> Secret:
    secret = ctx.tx.one(statements.SECRET_NAMED, name=name)
    if secret is None:
        raise NotFound(
            f"There is no secret {name!r} here.", f"Register it with `remit secret set {name}`."
        )
    return secret


view = views.view_of(Secret, shapes.SecretShape, place=shown_place)


# ── for the process that reads the values ───────────────────────────────────────────────────────


@query("secrets.registered", FOR_REMIT)
def registered(ctx: Context) -> list[Secret]:
    """Return the secrets of all companies."""
    return ctx.tx.all(statements.EVERY_SECRET, limit=MOST)


@query("secrets.places", FOR_REMIT)
def places(ctx: Context, *, companies: Iterable[str]) -> dict[str, list[str]]:
    """Return the places of the secrets of each company that still exists."""
    return {
        company: [
            secret.place
            for secret in ctx.tx.all(statements.SECRETS, company=company, after="", limit=MOST)
        ]
        for company in companies
        if ctx.tx.one(people.COMPANY, company=CompanyId(company)) is not None
    }


@query("secrets.find", FOR_REMIT)
def find(ctx: Context, *, company: str, name: str) -> Secret | None:
    """Return a secret by name."""
    return ctx.tx.one(statements.SECRET_NAMED, company=company, name=name)
