"""Prices of models: what an agent's configuration says, else its company, else the instance, else
the price list."""

import json
from collections.abc import Mapping

from remit.adapters import registry
from remit.errors import RemitError
from remit.model.execution import prices
from remit.model.execution.cost import Price
from remit.model.organisation.agent import Agent
from remit.services.command import Context
from remit.store.organisation import people

_OWN = "the agent's own prices"
_COMPANY = "the company's prices"
_INSTANCE = "the instance's prices"


def price_of(ctx: Context, adapter_type: str, config: Mapping[str, object]) -> Price | None:
    """Return the price of the model that an adapter uses with a configuration; None: unknown."""
    try:
        adapter = registry.get(adapter_type)
        settings = registry.usable(adapter_type, config)
    except RemitError:
        return None
    served = adapter.served(settings)
    model = served.model if served else "the default model"
    own = getattr(settings, "prices", None)
    if own is not None:
        cached = own.input if own.cached is None else own.cached
        return Price(model, own.input, own.output, cached, _OWN)
    if served is None:
        return None
    company = ctx.tx.one(people.COMPANY)
    of_company = prices.stored("{}" if company is None else company.prices).get(model)
    if of_company is not None:
        return Price(model, *of_company, _COMPANY)
    if (of_instance := ctx.prices.get(model)) is not None:
        return Price(model, *of_instance, _INSTANCE)
    # Imported here: most companies of a test have no model.
    from remit.adapters import price_table

    return price_table.listed(served, ctx.now)


def of_agent(ctx: Context, agent: Agent) -> Price | None:
    return price_of(ctx, agent.adapter_type, json.loads(agent.adapter_config))
