"""Secrets over HTTP: their sources; a value is accepted, and never returned.

Not declared: each route also uses the vault of this machine.
"""

from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from pydantic import Field

from remit.app import App
from remit.entrypoints.http.wire import field_types
from remit.entrypoints.http.wire.caller import caller
from remit.entrypoints.http.wire.fields import Body, CompanyId, Id, Reference, new_router
from remit.entrypoints.http.wire.json_document import reply
from remit.entrypoints.http.wire.paging import Paged, by_id
from remit.errors import BadInput
from remit.model.connections.secret import source_name
from remit.services.connections import secrets


class SecretBody(Body):
    name: Reference
    source: Annotated[
        str | None, Field(description="env, file, command, or what a plugin adds.", max_length=40)
    ] = None
    #: A variable, the path of a file, or a command as a list; on the instance's machine.
    place: field_types.SecretPlace | list[field_types.SecretPlace] | None = None
    #: Instead of both: the value itself, which the instance keeps in a file of its own.
    value: field_types.SecretValue | None = None


def router(app: App) -> APIRouter:
    routes = new_router("secrets", "/api")
    in_company = "/companies/{companyId}/secrets"

    @routes.get(in_company)
    async def list_secrets(request: Request, company: CompanyId, page: Paged) -> Response:
        """Where each is found, and whether it can be had on the machine that answers."""
        registered = await app.gate(
            caller(request),
            secrets.listing,
            company=company,
            after=page.after_id(),
            limit=page.limit,
        )
        rows = [
            {**secrets.view(secret), "usable": problem is None, "problem": problem}
            for secret, problem in zip(
                registered, await app.vault.problems(registered), strict=True
            )
        ]
        return page.reply(rows, by_id)

    @routes.post(in_company, status_code=201)
    async def set_secret(request: Request, company: CompanyId, body: SecretBody) -> Response:
        """Register where a secret is found, or give its value; again, to change it."""
        who = caller(request)
        allowed = await app.gate(who, secrets.may_change, company=company, name=body.name)
        wanted: dict[str, Any] = {"company": allowed["company_id"], "name": body.name}
        if body.value is None:
            if body.source is None or body.place is None:
                raise BadInput("Give source and place, or value.", "Say where it is found.")
            app.vault.check_source(source_name(body.source))
            answer = await app.gate(
                who, secrets.put, **wanted, source=body.source, place=body.place
            )
            return reply(await app.vault.settled(answer), 201)
        if body.source is not None or body.place is not None:
            raise BadInput("Give source and place, or value.", "Not all of them.")
        answer = await app.vault.put(
            who, company=wanted["company"], name=body.name, value=body.value
        )
        return reply(answer, 201)

    @routes.delete(in_company + "/{id}")
    async def remove_secret(request: Request, company: CompanyId, name: Id) -> Response:
        return reply(await app.vault.remove(caller(request), company=company, name=name))

    return routes
