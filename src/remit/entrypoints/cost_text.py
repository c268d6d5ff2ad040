"""Costs in words, from views in camelCase or as the services give them: for every surface alike."""

from collections.abc import Iterable, Mapping
from typing import Any

from remit.model.execution.budget import DOLLAR
from remit.model.execution.cost import Cost, CostShape, in_words


def cost(view: Mapping[str, Any]) -> str:
    """Return a cost in words: of a run, a job, or a sum of them."""
    if "cost_usd" in view:
        return in_words(view["cost_usd"], view["cost_estimated"], view["tokens_unpriced"])
    return in_words(view["costUsd"], view["costEstimated"], view["tokensUnpriced"])


def cost_if_any(view: Mapping[str, Any]) -> str:
    """Return a cost in words; nothing for what took nothing."""
    usd = view["cost_usd"] if "cost_usd" in view else view["costUsd"]
    unpriced = view["tokens_unpriced"] if "cost_usd" in view else view["tokensUnpriced"]
    return cost(view) if usd is None or usd or unpriced else ""


def total(views: Iterable[Mapping[str, Any]]) -> CostShape:
    """Return the sum of the costs of views, which are in snake_case."""
    costs = (
        Cost(
            round((view["cost_usd"] or 0) * DOLLAR),
            view["cost_estimated"],
            view["tokens_unpriced"],
        )
        for view in views
    )
    return sum(costs, Cost()).view()
