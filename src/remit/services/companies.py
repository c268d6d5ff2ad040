"""Companies: create, list, show, rename."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from remit.authority import Action
from remit.errors import AlreadyExists, BadInput, NotFound
from remit.ids import CompanyId
from remit.model.company import Company, company_name
from remit.model.event import GENESIS
from remit.model.mail import Messaging
from remit.model.principal import ActorKind
from remit.model.text import name_key
from remit.model.user import Membership, UserRole
from remit.services import lookup, views
from remit.services.command import Answer, Context, command, query
from remit.store import people


@command
def create(ctx: Context, *, name: object) -> Answer:
    """A company of which the creator is the board."""
    name = company_name(name)
    ctx.require(Action.COMPANY_CREATE, on="company")
    if ctx.tx.one(people.COMPANY_BY_NAME, name_key=name_key(name)) is not None:
        raise AlreadyExists(f"There is a company named {name!r} already.")
    company = Company(CompanyId(ctx.ids.new()), name, Messaging.CHAIN, ctx.now)
    ctx.tx.run(
        people.INSERT_COMPANY,
        id=company.id,
        name=name,
        name_key=name_key(name),
        messaging=company.messaging.value,
        mail_position=0,
        created_at=ctx.now,
    )
    ctx.tx.run(people.INSERT_HEAD, company_id=company.id, seq=0, hash=GENESIS)
    if ctx.actor.kind is ActorKind.USER:
        add_member(ctx, company.id, ctx.actor.id, UserRole.BOARD, None)
    ctx.enter(company.id)
    ctx.record("company.create", f"company:{company.id}", {"name": name})
    return _with_part(ctx, company)


def add_member(
    ctx: Context, company: str, user: str, role: UserRole, scope: str | None
) -> Membership:
    ctx.tx.run(
        people.INSERT_MEMBERSHIP,
        company_id=company,
        user_id=user,
        role=role.value,
        scope_agent_id=scope,
        created_at=ctx.now,
    )
    membership = ctx.tx.one(people.MEMBERSHIP, company=company, user=user)
    assert membership is not None
    return membership


@query
def listing(ctx: Context, *, after: str = "", limit: int = 100) -> list[dict[str, Any]]:
    """The companies the caller has a part in, and which part that is."""
    if ctx.actor.company_id is not None:
        found = ctx.tx.one(people.COMPANY, company=ctx.actor.company_id)
        return [views.company(found)] if found is not None and found.id > after else []
    mine = ctx.tx.all(people.COMPANIES_OF_USER, user=ctx.actor.id, after=after, limit=limit)
    return [_with_part(ctx, company) for company in mine]


@query
def show(ctx: Context, *, company: str | None = None) -> dict[str, Any]:
    return _with_part(ctx, _entered(ctx, company, Action.COMPANY_READ))


def _with_part(ctx: Context, company: Company) -> dict[str, Any]:
    """A company and, for a person, which part they have in it."""
    part = ctx.tx.one(people.MEMBERSHIP, company=company.id, user=ctx.actor.id)
    if part is None:
        return views.company(company)
    return {
        **views.company(company),
        "role": part.role.value,
        "scope_agent_id": part.scope_agent_id,
    }


@command
def change(ctx: Context, *, company: str, name: object = None, messaging: object = None) -> Answer:
    """Rename a company, or change who may write to whom in it."""
    found = _entered(ctx, company, Action.COMPANY_CHANGE)
    new = replace(
        found,
        name=found.name if name is None else company_name(name),
        messaging=found.messaging if messaging is None else _messaging(messaging),
    )
    taken = ctx.tx.one(people.COMPANY_BY_NAME, name_key=name_key(new.name))
    if taken is not None and taken.id != found.id:
        raise AlreadyExists(f"There is a company named {new.name!r} already.")
    ctx.tx.run(
        people.CHANGE_COMPANY,
        company=found.id,
        new_name=new.name,
        new_key=name_key(new.name),
        new_messaging=new.messaging.value,
    )
    ctx.record(
        "company.change",
        f"company:{found.id}",
        {
            "name": new.name,
            "messaging": new.messaging.value,
            "was": {"name": found.name, "messaging": found.messaging.value},
        },
    )
    return _with_part(ctx, new)


def _messaging(text: object) -> Messaging:
    try:
        return Messaging(text)  # type: ignore[arg-type]  # anything else is the error we report
    except ValueError:
        raise BadInput(
            "messaging must be chain, team, subtree or open.", "Choose one of these."
        ) from None


def _entered(ctx: Context, company: str | None, action: Action) -> Company:
    lookup.company_of_caller(ctx, company)
    ctx.require(action, on=f"company:{ctx.company}")
    found = ctx.tx.one(people.COMPANY, company=ctx.company)
    if found is None:
        raise NotFound("There is no such company.")
    return found
