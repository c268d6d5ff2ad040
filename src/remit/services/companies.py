"""Companies: create, list, show, rename."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from remit.authority import Action
from remit.errors import AlreadyExists, BadInput, Conflict, NotFound
from remit.ids import CompanyId
from remit.model.company import DEFAULT_REVIEW_HOURS, Company, company_name
from remit.model.company import review_hours as hours
from remit.model.event import GENESIS
from remit.model.limit import changed as with_limits
from remit.model.limit import stored
from remit.model.mail import Messaging
from remit.model.principal import ActorKind
from remit.model.text import clean_line, name_key
from remit.model.user import UserRole
from remit.services import limits as limits_at_work
from remit.services import lookup, roots, users, views
from remit.services.command import Answer, Context, command, query
from remit.services.verbs import Added
from remit.store import people
from remit.store.statement import row


@command(
    "companies.create",
    Added("root_name", None),
    Added("adapter_type", None),
    Added("adapter_config", None),
)
def create(
    ctx: Context,
    *,
    name: object,
    root_name: object = None,
    adapter_type: object = None,
    adapter_config: object = None,
) -> Answer:
    """A company of which the creator is the board, with its root outcome and its root agent."""
    name = company_name(name)
    ctx.require(Action.COMPANY_CREATE, on="company")
    if ctx.tx.one(people.COMPANY_BY_NAME, name_key=name_key(name)) is not None:
        raise AlreadyExists(f"There is a company named {name!r} already.")
    company = Company(
        id=CompanyId(ctx.ids.new()),
        name=name,
        messaging=Messaging.CHAIN,
        require_board_approval_for_new_agents=True,
        require_approval_for_config_changes=True,
        chat_llm_provider=None,
        chat_llm_model=None,
        review_hours=DEFAULT_REVIEW_HOURS,
        permission_policy="{}",
        created_at=ctx.now,
    )
    ctx.tx.run(people.INSERT_COMPANY, **row(company, name_key=name_key(name), mail_position=0))
    ctx.tx.run(people.INSERT_HEAD, company_id=company.id, seq=0, hash=GENESIS)
    if ctx.actor.kind is ActorKind.USER:
        users.add_member(ctx, company.id, ctx.actor.id, UserRole.BOARD, None)
    ctx.enter(company.id)
    ctx.record("company.create", f"company:{company.id}", {"name": name})
    root = roots.begin(
        ctx, name=root_name, adapter_type=adapter_type, adapter_config=adapter_config
    )
    return {**_with_part(ctx, company), "root_agent_id": root["id"]}


@query("companies.listing")
def listing(ctx: Context, *, after: str = "", limit: int = 100) -> list[dict[str, Any]]:
    """The companies the caller has a part in, and which part that is."""
    if ctx.actor.company_id is not None:
        found = ctx.tx.one(people.COMPANY, company=ctx.actor.company_id)
        return [views.company(found)] if found is not None and found.id > after else []
    mine = ctx.tx.all(people.COMPANIES_OF_USER, user=ctx.actor.id, after=after, limit=limit)
    return [_with_part(ctx, company) for company in mine]


@query("companies.show")
def show(ctx: Context, *, company: str | None = None) -> dict[str, Any]:
    return _with_part(ctx, _entered(ctx, company, Action.COMPANY_READ))


@query("companies.positions")
def positions(ctx: Context) -> dict[str, int]:
    """How far the record of each of the caller's companies has come; tells that, not what."""
    if ctx.actor.kind is not ActorKind.USER:
        raise BadInput("This is for people.", "Read the events of your company.")
    return dict(ctx.tx.all(people.POSITIONS_OF_USER, user=ctx.actor.id))


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


@command("companies.change", Added("review_hours", None), Added("limits", None))
def change(
    ctx: Context,
    *,
    company: str,
    name: object = None,
    messaging: object = None,
    require_board_approval_for_new_agents: object = None,
    require_approval_for_config_changes: object = None,
    chat_llm_provider: object = None,
    chat_llm_model: object = None,
    review_hours: object = None,
    limits: object = None,
    expected: Mapping[str, object] | None = None,
) -> Answer:
    """Rename a company, or change how it is run. An empty text takes a default back.

    `limits` are those to be changed; 0 or "none" turns one off. `expected` is what the caller saw
    before; when somebody else was quicker, nothing is changed.
    """
    found = _entered(ctx, company, Action.COMPANY_CHANGE)
    _check_unchanged(found, expected or {})
    new = replace(
        found,
        name=found.name if name is None else company_name(name),
        messaging=found.messaging if messaging is None else _messaging(messaging),
        require_board_approval_for_new_agents=_flag(
            require_board_approval_for_new_agents,
            "requireBoardApprovalForNewAgents",
            found.require_board_approval_for_new_agents,
        ),
        require_approval_for_config_changes=_flag(
            require_approval_for_config_changes,
            "requireApprovalForConfigChanges",
            found.require_approval_for_config_changes,
        ),
        chat_llm_provider=_default(chat_llm_provider, "chatLLMProvider", found.chat_llm_provider),
        chat_llm_model=_default(chat_llm_model, "chatLLMModel", found.chat_llm_model),
        review_hours=found.review_hours if review_hours is None else hours(review_hours),
        limits=found.limits if limits is None else with_limits(found.limits, limits),
    )
    taken = ctx.tx.one(people.COMPANY_BY_NAME, name_key=name_key(new.name))
    if taken is not None and taken.id != found.id:
        raise AlreadyExists(f"There is a company named {new.name!r} already.")
    ctx.tx.run(people.CHANGE_COMPANY, **new_values(new), new_key=name_key(new.name))
    limits_at_work.changed(ctx, stored(found.limits), stored(new.limits))
    was, now = views.company(found), views.company(new)
    ctx.record(
        "company.change",
        f"company:{found.id}",
        {
            **{key: value for key, value in now.items() if value != was[key]},
            "was": {key: value for key, value in was.items() if value != now[key]},
        },
    )
    return _with_part(ctx, new)


def _check_unchanged(company: Company, expected: Mapping[str, object]) -> None:
    now = views.company(company)
    for setting, was in expected.items():
        is_now = now.get(setting)
        if isinstance(is_now, Mapping) and isinstance(was, Mapping):
            is_now = {name: is_now.get(name) for name in was}
        if setting in now and is_now != was:
            raise Conflict(
                f"Somebody else changed {setting.replace('_', ' ')} meanwhile.",
                "Look at what it is now, then change it if you still want to.",
            )


def new_values(company: Company) -> dict[str, Any]:
    """What is written when a company changes."""
    values = row(company)
    values.pop("created_at")
    return {"company": values.pop("id"), **{f"new_{key}": value for key, value in values.items()}}


def _flag(given: object, field: str, current: bool) -> bool:
    if given is None:
        return current
    if not isinstance(given, bool):
        raise BadInput(f"{field}: must be true or false.", "Send a boolean.")
    return given


def _default(given: object, field: str, current: str | None) -> str | None:
    if given is None:
        return current
    return clean_line(given, field, longest=100, empty_ok=True) or None


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
