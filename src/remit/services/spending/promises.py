"""Promises about spending: limits in money hold where the price is known, elsewhere in tokens."""

import json
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from remit.adapters import registry
from remit.authority import Action
from remit.clock import month_of, next_month
from remit.errors import RemitError
from remit.ids import CompanyId
from remit.model.execution.cost import Cost, tokens_in_words
from remit.model.execution.limit import Limit, Limits, amount_shown, command_that_sets
from remit.model.organisation.agent import Agent
from remit.services import lookup, shapes
from remit.services.command import FOR_REMIT, Context, query
from remit.services.fields import CompanyRef
from remit.services.shape_basics import WarnedShape
from remit.services.spending import limits, pricing
from remit.services.surfaces import AsRoute
from remit.store.execution import budgets as statements
from remit.store.organisation import people


class _Known(NamedTuple):
    """How well the cost of agents with one adapter and configuration is known."""

    spends: bool
    #: Whether it is worked out from a price list.
    listed: bool = False
    #: The agents of unknown cost, in words: `codex with gpt-9`.
    unknown: str | None = None
    #: Their model, where that is known.
    model: str | None = None


@query("spending.show", AsRoute("GET /companies/{companyId}/spending", "show_spending"))
def show(ctx: Context, *, company: CompanyRef | None) -> shapes.SpendingShape:
    """The spending of a company today and this month, and the limits that hold it: in money, and in
    tokens for agents of unknown cost."""
    lookup.company_of_caller(ctx, company)
    scope = ctx.membership.scope_agent_id if ctx.membership else None
    ctx.require(Action.OUTCOME_READ, on=f"company:{ctx.company}", home=scope)
    month = month_of(ctx.now)
    rows = ctx.tx.all(statements.SPENT_IN_COMPANY, month=month, following=next_month(ctx.now))
    kinds = [_known(ctx, *kind) for kind in ctx.tx.all(statements.SPENDERS)]
    return {
        "today": limits.cost_today(ctx).view(),
        "month": sum((row.cost for row in rows), Cost()).view(),
        "day_limit_cents": limits.of_company(ctx).company_cents_per_day,
        "promise": _promise(limits.of_company(ctx), kinds),
        "unpriced": sorted({kind.unknown for kind in kinds if kind.unknown}),
    }


class Unpriced(NamedTuple):
    """The agents of unknown cost of a company, in words."""

    company: str
    kinds: list[str]


@query("spending.companies", FOR_REMIT)
def companies(ctx: Context) -> list[CompanyId]:
    """The companies of the instance, to look for models without a price."""
    return ctx.tx.all(people.ALL_COMPANIES)


@query("spending.unpriced", FOR_REMIT)
def unpriced(ctx: Context, *, company: CompanyId) -> Unpriced:
    """The agents of a company whose cost is unknown: their models have no price."""
    ctx.enter(company)
    kinds = [_known(ctx, *kind) for kind in ctx.tx.all(statements.SPENDERS)]
    name = ctx.tx.existing(people.COMPANY).name
    return Unpriced(name, sorted({kind.unknown for kind in kinds if kind.unknown}))


class Unheld(NamedTuple):
    """Why a budget of money does not hold an agent, with what does, and the next step."""

    sentence: str
    next_step: str


def warning(ctx: Context, agent: Agent) -> str | None:
    """Return why an agent's budget of money does not hold it, and the next step; None if it
    does."""
    unheld_by_money = unheld(ctx, agent)
    return None if unheld_by_money is None else " ".join(unheld_by_money)


def warned(ctx: Context, agent: Agent) -> WarnedShape:
    """Return the warning as a part of an answer."""
    why = warning(ctx, agent)
    return {} if why is None else {"warning": why}


def unheld(ctx: Context, agent: Agent) -> Unheld | None:
    """Return why an agent's budget of money does not hold it; None if it does."""
    if agent.budget_monthly_cents is None:
        return None
    known = _known(ctx, agent.adapter_type, json.loads(agent.adapter_config))
    if known.unknown is None:
        return None
    per_day = limits.of_company(ctx).agent_tokens_per_day
    holds = [f"{tokens_in_words(per_day)} a day"] if per_day else []
    if agent.budget_monthly_tokens is not None:
        holds.append(f"{tokens_in_words(agent.budget_monthly_tokens)} a month")
    return Unheld(
        f"The cost of {known.unknown} is not known, so a budget of money does not hold it. "
        f"It may take {' and '.join(holds) or 'any number of tokens'}.",
        f"Limit them with `remit agent set {agent.name} budgetMonthlyTokens=NUMBER`, or "
        f"{_to_price(known)}.",
    )


def _to_price(known: _Known) -> str:
    if known.model is None:
        return "name its model, and give that a price where it has none"
    return f"set a price: `remit company set --price {known.model}=INPUT/OUTPUT`"


def _known(ctx: Context, adapter_type: str, config: Mapping[str, object]) -> _Known:
    try:
        adapter = registry.get(adapter_type)
        settings = registry.usable(adapter_type, config)
    except RemitError:
        return _Known(spends=False)  # it cannot run
    if not adapter.takes_tokens:
        return _Known(spends=False)
    if adapter.reports_cost:
        return _Known(spends=True)
    price = pricing.price_of(ctx, adapter_type, config)
    if price is not None:
        return _Known(spends=True, listed=price.listed)
    served = adapter.served(settings)
    if served is not None:
        return _Known(True, unknown=f"{adapter_type} with {served.model}", model=served.model)
    if hasattr(settings, "model"):
        return _Known(True, unknown=f"{adapter_type} with its default model")
    return _Known(True, unknown=f"{adapter_type} agents that report none")


def _promise(limit: Limits, kinds: Iterable[_Known]) -> list[str]:
    """Return sentences that say only what holds."""
    spending = [kind for kind in kinds if kind.spends]
    known = [kind for kind in spending if kind.unknown is None]
    unknown = sorted({kind.unknown for kind in spending if kind.unknown})
    if not spending:
        return ["No agent has a model, so nothing is spent."]
    sentences = []
    if known:
        sentences.append(_in_money(limit, listed=any(kind.listed for kind in known)))
    if unknown:
        sentences.append(_in_tokens(limit, unknown, alone=not known))
    return sentences


def _in_money(limit: Limits, *, listed: bool) -> str:
    cents = limit.company_cents_per_day
    if cents is None:
        return "Nothing limits what it spends in a day."
    amount = amount_shown(Limit.COMPANY_CENTS_PER_DAY, cents)
    most = f"about {amount} a day, by list prices" if listed else f"{amount} a day"
    change = command_that_sets(Limit.COMPANY_CENTS_PER_DAY, 2 * cents)
    return f"It spends at most {most}; change: {change}"


def _in_tokens(limit: Limits, unknown: list[str], *, alone: bool) -> str:
    each, whole = limit.agent_tokens_per_day, limit.company_unpriced_tokens_per_day
    holds = [f"{tokens_in_words(each)} per agent a day"] if each else []
    holds += [f"{tokens_in_words(whole)} in all"] if whole else []
    most = f"takes at most {', '.join(holds)}" if holds else "takes any number of tokens"
    named = ", ".join(unknown[:3]) + (f" and {len(unknown) - 3} more" if unknown[3:] else "")
    subject = "It" if alone else "Beyond that it"
    price = "remit company set --price MODEL=INPUT/OUTPUT"
    return f"{subject} {most}: the cost of {named} is not known. To set a price: {price}"
