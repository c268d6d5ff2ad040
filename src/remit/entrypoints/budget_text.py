"""Budgets in words, for every surface alike."""

from collections.abc import Mapping
from typing import Any

from remit.entrypoints import cost_text
from remit.model.text import dollars

KINDS = ("money", "tokens")
_DOLLAR = 1_000_000


def amount(kind: str, value: int | None) -> str:
    if value is None:
        return ""
    if kind == "tokens":
        return f"{value:,}"
    return dollars(value / _DOLLAR)


def lines(budget: Mapping[str, Any]) -> list[str]:
    """An agent's budgets, in words."""
    sentences = []
    for kind in KINDS:
        side = budget[kind]
        paid = side["paidBy"]
        if paid is None:
            spent = _spent(budget, kind)
            sentences.append(f"{kind}: no limit; {spent} spent this month")
            continue
        if paid["agentId"] != budget["agentId"]:
            left = amount(kind, side["left"])
            sentences.append(f"{kind}: lives on {paid['name']}'s budget, {left} left")
            continue
        parts = [f"{amount(kind, side['left'])} left"]
        if side["limit"] is not None:
            parts.append(f"of {amount(kind, side['limit'])} a month")
        sentences.append(f"{kind}: {' '.join(parts)}")
        if kind == "money" and budget["cost"]["tokensUnpriced"]:
            sentences.append(f"  {_spent(budget, kind)} spent by itself")
        for name, words in (
            ("spent", "spent"),
            ("reserved", "reserved for those below"),
            ("setAside", "set aside for outcomes that were handed over"),
        ):
            if side[name]:
                sentences.append(f"  {amount(kind, side[name])} {words}")
        sentences += [
            f"  {amount(kind, reservation['left'])} of {amount(kind, reservation['amount'])} "
            f"left for outcome {reservation['outcomeId']}"
            for reservation in side["reservations"]
        ]
    return sentences


def _spent(budget: Mapping[str, Any], kind: str) -> str:
    """Spending of the agent itself in this month."""
    if kind == "money":
        return cost_text.cost(budget["cost"])
    return amount(kind, budget[kind]["spentByItself"])


def limits(budget: Mapping[str, Any]) -> list[str]:
    """The company's limits that hold for an agent, and how much is used."""
    now = budget["limits"]
    sentences = [
        (
            f"limits: {_most(now['agentRunsPerHour'])} runs an hour, "
            f"{_most(now['agentTokensPerDay'])} tokens a day ({now['tokensToday']:,} today)"
        )
    ]
    if now["companyCentsPerDay"] is not None:
        spent = cost_text.cost(now["companyCostToday"])
        most = amount("money", now["companyCentsPerDay"] * 10_000)
        if now["companyCostToday"]["tokensUnpriced"]:
            sentences.append(f"  the company has spent {spent} today; {most} limit what is known")
        else:
            sentences.append(f"  the company has spent {spent} of {most} today")
    if budget["warning"]:
        sentences.append(f"  {budget['warning']}")
    if now["heldUntil"] is not None:
        sentences.append(f"  it is not started before {now['heldUntil']}")
    return sentences


def _most(limit: int | None) -> str:
    return "any number of" if limit is None else f"{limit:,}"


def short(budget: Mapping[str, Any]) -> str:
    """Return one line for a table: the rest of each budget and its limit."""
    parts = []
    for kind in KINDS:
        side = budget[kind]
        if side["limit"] is not None:
            after = " tokens" if kind == "tokens" else ""
            of = amount(kind, side["limit"])
            parts.append(f"{amount(kind, side['left'])} of {of}{after}")
    return ", ".join(parts)
