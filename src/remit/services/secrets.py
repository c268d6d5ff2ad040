"""Secrets: an operator says where a value is found; what it is stays with who looks it up."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from remit.authority import Action
from remit.channels import registry
from remit.errors import Conflict, NotFound
from remit.ids import CompanyId, SecretId
from remit.model.secret import (
    Secret,
    named_in,
    parse_place,
    secret_name,
    shown_place,
    source_name,
)
from remit.services import accounts, lookup, views
from remit.services.command import Answer, Context, command, query
from remit.services.running import system_only
from remit.store import channels as channel_statements
from remit.store import mcp_servers as server_statements
from remit.store import people
from remit.store import secrets as statements
from remit.store.statement import row

MOST = 10_000


@query("secrets.may_change")
def may_change(ctx: Context, *, company: str | None, name: object) -> dict[str, Any]:
    """Whether the caller may set this secret, asked before its value is stored anywhere."""
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
) -> Answer:
    """Say where a secret is found. `new_place` is one that our side made for it."""
    called = secret_name(name)
    from_ = source_name(source)
    at = parse_place(from_, place if new_place is None else new_place)
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.SECRET_CHANGE, on=f"secret:{called}")
    found = ctx.tx.one(statements.SECRET_NAMED, company=ctx.company, name=called)
    if found is None:
        made = Secret(
            SecretId(ctx.ids.new()),
            CompanyId(ctx.company or ""),
            called,
            from_,
            at,
            1,
            ctx.now,
            ctx.now,
            None,
        )
        ctx.tx.run(statements.INSERT_SECRET, **row(made))
    else:
        ctx.tx.run(
            statements.MOVE_SECRET, secret=found.id, new_source=from_, new_place=at, now=ctx.now
        )
    now = _named(ctx, called)
    accounts.try_secret(ctx, called)
    ctx.record("secret.set", f"secret:{called}", {"source": from_, "version": now.version})
    return {**view(now), "replaced": None if found is None else found.place}


@query("secrets.listing")
def listing(
    ctx: Context, *, company: str | None, after: str = "", limit: int = 100
) -> list[Secret]:
    """Which secrets a company has, and where they are found."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.SECRET_READ, on="secrets")
    return ctx.tx.all(statements.SECRETS, company=ctx.company, after=after, limit=limit)


@command("secrets.remove")
def remove(ctx: Context, *, company: str | None, name: object) -> Answer:
    """Forget where a secret is found, unless something needs it."""
    called = secret_name(name)
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.SECRET_CHANGE, on=f"secret:{called}")
    found = _named(ctx, called)
    for server in ctx.tx.all(server_statements.SERVERS, company=ctx.company, after="", limit=MOST):
        if called in named_in(server.templates.values()):
            raise Conflict(
                f"The MCP server {server.name} uses it.", "Remove or replace that server first."
            )
    for binding in ctx.tx.all(
        channel_statements.BINDINGS,
        company=ctx.company,
        agent="",
        any_agent=True,
        after="",
        limit=MOST,
    ):
        if registry.secret_of(json.loads(binding.adapter_config)) == called:
            raise Conflict(
                f"A binding to {binding.adapter_type} signs with it.",
                "Remove or replace that binding first.",
            )
    ctx.tx.run(statements.REMOVE_SECRET, secret=found.id, now=ctx.now)
    ctx.record("secret.remove", f"secret:{called}", {"source": found.source})
    return {"name": called, "removed": True, "replaced": found.place}


def require_all(ctx: Context, names: list[str]) -> None:
    """Whatever names a secret names one that is there."""
    for name in names:
        _named(ctx, name)


def _named(ctx: Context, name: str) -> Secret:
    found = ctx.tx.one(statements.SECRET_NAMED, company=ctx.company, name=name)
    if found is None:
        raise NotFound(
            f"There is no secret {name!r} here.", f"Register it with `remit secret set {name}`."
        )
    return found


def view(secret: Secret) -> dict[str, Any]:
    return {
        "id": secret.id,
        "company_id": secret.company_id,
        "name": secret.name,
        "source": secret.source,
        "place": shown_place(secret),
        "version": secret.version,
        "created_at": views.time(secret.created_at),
        "updated_at": views.time(secret.updated_at),
    }


# ── for the process that looks them up ──────────────────────────────────────────────────────────


@query("secrets.registered")
def registered(ctx: Context) -> list[Secret]:
    """Of all companies; for Remit itself when it starts."""
    system_only(ctx)
    return ctx.tx.all(statements.EVERY_SECRET, limit=MOST)


@query("secrets.places")
def places(ctx: Context, *, companies: Iterable[str]) -> dict[str, list[str]]:
    """Where those of the companies that there are have their secrets; for Remit itself."""
    system_only(ctx)
    return {
        company: [
            secret.place
            for secret in ctx.tx.all(statements.SECRETS, company=company, after="", limit=MOST)
        ]
        for company in companies
        if ctx.tx.one(people.COMPANY, company=CompanyId(company)) is not None
    }


@query("secrets.find")
def find(ctx: Context, *, company: str, name: str) -> Secret | None:
    """Where one is found now; for Remit itself."""
    system_only(ctx)
    return ctx.tx.one(statements.SECRET_NAMED, company=company, name=name)
