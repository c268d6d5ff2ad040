"""Limits of runs and spending for each hour or day: an agent is not started while one is reached.

Runs and their usage are counted from their stored rows. A reached limit is stored until it allows a
run again, so that the agent is not polled in vain; people who may raise it find it in their list
once, for all agents that it stops.
"""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from remit.authority import Action
from remit.clock import HOUR, Micros, day_of, moment, next_day
from remit.ids import AgentId, CompanyId, earliest_id
from remit.model.execution.limit import (
    Limit,
    Limits,
    Reached,
    amount_shown,
    command_that_raises,
    raised,
    stored,
)
from remit.model.organisation.agent import Agent
from remit.model.organisation.decision import BY_REMIT
from remit.services import lookup, shapes, views
from remit.services.context import Context
from remit.services.verbs import FOR_REMIT, logged
from remit.store.engine.statement import Statement
from remit.store.execution import limits as statements
from remit.store.organisation import people

#: Why a claim is refused while a limit does not allow a run.
REACHED = "limit"
#: Shares of an hour's runs for unknown people outside: in one place, so that a sender elsewhere is
#: heard, and in all of them, so that known people are.
_OF_PLACE = Fraction(1, 2)
_OF_STRANGERS = Fraction(3, 4)


def of_company(ctx: Context) -> Limits:
    company = ctx.tx.one(people.COMPANY)
    return Limits() if company is None else stored(company.limits)


def keeping(ctx: Context, agent: Agent) -> Reached | None:
    """Return the reached limit that keeps an agent from being started, if any: the one that lasts
    longest."""
    limits = of_company(ctx)
    of_agent, here = limits.agent_runs_per_hour, limits.company_runs_per_hour
    runs = _an_hour_after(ctx, of_agent, statements.NTH_RUN_OF_AGENT, agent=agent.id)
    tokens = limits.agent_tokens_per_day
    spent = tokens is not None and tokens_today(ctx, agent.id) >= tokens
    runs_here = _an_hour_after(ctx, here, statements.NTH_RUN_OF_COMPANY, company=ctx.company)
    candidates = [
        _reached(ctx, Limit.AGENT_RUNS_PER_HOUR, runs, agent.id),
        _reached(ctx, Limit.AGENT_TOKENS_PER_DAY, next_day(ctx.now) if spent else None, agent.id),
        _reached(ctx, Limit.COMPANY_RUNS_PER_HOUR, runs_here),
        money_reached(ctx, limits),
    ]
    return max(
        (reached for reached in candidates if reached is not None),
        key=lambda reached: reached.until,
        default=None,
    )


def _reached(
    ctx: Context, name: Limit, until: Micros | None, agent: AgentId | None = None
) -> Reached | None:
    if until is None:
        return None
    assert ctx.company is not None
    return Reached("", ctx.company, agent, name, ctx.now, until)


def strangers_wait(ctx: Context, agent: AgentId, channel: str) -> Micros | None:
    """Return the time until which an agent takes no mail of strangers in one place, because their
    runs used up their share of the hour."""
    limits = of_company(ctx)
    known = (limits.agent_runs_per_hour, limits.company_runs_per_hour)
    hourly = min((limit for limit in known if limit is not None), default=None)
    if hourly is None:
        return None
    whose = {"company": ctx.company, "agent": agent, "since": earliest_id(ctx.now - HOUR)}
    shares: tuple[tuple[Fraction, Statement[Micros], dict[str, str]], ...] = (
        (_OF_PLACE, statements.NTH_RUN_FOR_PLACE, {"channel": channel}),
        (_OF_STRANGERS, statements.NTH_RUN_FOR_STRANGERS, {}),
    )
    ends = [
        _an_hour_after(ctx, max(1, int(hourly * share)), nth, **whose, **place)
        for share, nth, place in shares
    ]
    return max((end for end in ends if end is not None), default=None)


def _an_hour_after(
    ctx: Context, limit: int | None, nth: Statement[Micros], **whose: Any
) -> Micros | None:
    """Return when the oldest of the last `limit` runs will be an hour ago; None if it is already,
    if there were fewer runs, or without a limit."""
    if limit is None:
        return None
    began = ctx.tx.one(nth, later=limit - 1, **whose)
    if began is None or began + HOUR <= ctx.now:
        return None
    return min(began, ctx.now) + HOUR  # the clock may have been set back since


def tokens_today(ctx: Context, agent: str) -> int:
    return ctx.tx.one(statements.TOKENS_OF_AGENT, agent=agent, day=day_of(ctx.now)) or 0


def money_today(ctx: Context) -> int:
    """Return the company's spending of this day, in millionths of a dollar."""
    return ctx.tx.one(statements.MONEY_OF_COMPANY, day=day_of(ctx.now)) or 0


def money_left(ctx: Context, limits: Limits | None = None) -> int | None:
    """Return what the company may still spend on this day, in millionths of a dollar; None without
    a limit."""
    allowed = (limits or of_company(ctx)).money_per_day
    return None if allowed is None else allowed - money_today(ctx)


def money_reached(ctx: Context, limits: Limits | None = None) -> Reached | None:
    left = money_left(ctx, limits)
    until = next_day(ctx.now) if left is not None and left <= 0 else None
    return _reached(ctx, Limit.COMPANY_CENTS_PER_DAY, until)


def capped(ctx: Context, left: Mapping[str, int]) -> dict[str, int]:
    """Cap what is left of budgets by the money that the company may still spend on this day."""
    today = money_left(ctx)
    if today is None:
        return dict(left)
    return {**left, "money": min(left.get("money", today), today)}


# ── when one is reached ─────────────────────────────────────────────────────────────────────────


@logged("limits.hold", FOR_REMIT)
def hold(ctx: Context, *, agent: str) -> bool:
    """Store the limit that keeps an agent from being started, if there is one; returns whether
    there is."""
    agent_row = lookup.agent_anywhere(ctx, agent)
    ctx.lock_company()
    reached = keeping(ctx, agent_row)
    if reached is not None:
        note(ctx, reached)
    return reached is not None


def note(ctx: Context, reached: Reached) -> None:
    """Store a reached limit, so that nothing that it covers is started before it allows that. Not
    recorded again before `told_until`."""
    subject: AgentId | CompanyId = reached.agent_id or reached.company_id
    before = ctx.tx.one(statements.REACHED, subject=subject, of_name=reached.name.value)
    if before is not None:
        is_same = before.told_until > ctx.now
        ctx.tx.run(
            statements.KEEP_REACHED,
            reached=before.id,
            new_since=before.since if is_same else ctx.now,
            new_until=reached.until,
        )
        if is_same:
            return
    else:
        row = replace(reached, id=ctx.ids.new())
        ctx.tx.add(row, subject_id=subject)
    limit = of_company(ctx).of(reached.name)
    ctx.record(
        "limit.reach",
        f"agent:{reached.agent_id}" if reached.agent_id else f"company:{reached.company_id}",
        {"limit": reached.name.spelled, "allowed": limit, "until": views.time(reached.until)},
        BY_REMIT,
    )


def changed(ctx: Context, before: Limits, now: Limits) -> None:
    """Forget limits that were reached and have changed, so that agents they stopped are checked
    anew."""
    for limit in Limit:
        if before.of(limit) != now.of(limit):
            ctx.tx.run(statements.FORGET_REACHED, of_name=limit.value)


# ── in words ────────────────────────────────────────────────────────────────────────────────────


def sentence(ctx: Context, reached: Reached) -> str:
    """Sentence about a reached limit, and until when it holds."""
    limit = of_company(ctx).of(reached.name) or 0
    amount = amount_shown(reached.name, limit)
    runs = "1 run" if limit == 1 else f"{amount} runs"
    agent = lookup.agent_row(ctx, reached.agent_id) if reached.agent_id else None
    who = agent.name if agent else "The company"
    predicate = {
        Limit.AGENT_RUNS_PER_HOUR: f"had {runs} within an hour",
        Limit.COMPANY_RUNS_PER_HOUR: f"had {runs} within an hour",
        Limit.AGENT_TOKENS_PER_DAY: f"used its {amount} tokens of today",
        Limit.COMPANY_CENTS_PER_DAY: f"spent its {amount} of today",
    }[reached.name]
    return f"{who} has {predicate}. It goes on at {moment(reached.until)}."


def next_step(ctx: Context, reached: Reached) -> str:
    look, raise_it = _steps(ctx, reached)
    return f"`{look}` shows what it did; `{raise_it}` raises the limit."


def _steps(ctx: Context, reached: Reached) -> tuple[str, str]:
    """Return the commands that show what used the limit up, and that raise it. Looking comes first:
    a higher limit would feed an agent that works in circles."""
    look = "remit run list"
    if reached.agent_id is not None:
        look += f" --agent {lookup.name_of(ctx, reached.agent_id)}"
    return look, command_that_raises(reached.name, of_company(ctx).of(reached.name) or 1)


def item(ctx: Context, reached: Reached) -> shapes.AwaitingShape:
    """An item for the list of what awaits a person."""
    limit = of_company(ctx).of(reached.name) or 1
    title, cause = sentence(ctx, reached), f"{reached.name.spelled}={limit}"
    about = (reached.id, title, reached.agent_id, reached.since, cause)
    return {
        **views.awaiting(ctx.company, "limit", *about),
        "next": ", then ".join(_steps(ctx, reached)),
        "limit": reached.name.value,
        "allowed": limit,
        "raise_to": raised(limit),
        "raise_to_shown": amount_shown(reached.name, raised(limit)),
    }


def awaiting(ctx: Context) -> list[Reached]:
    """Return the reached limits that the caller may raise."""
    if not ctx.decide(Action.COMPANY_CHANGE).allowed:
        return []
    limits = of_company(ctx)
    return [
        reached
        for reached in ctx.tx.all(statements.REACHED_IN)
        if reached.told_until > ctx.now and limits.of(reached.name) is not None
    ]


def overview(ctx: Context, agent: Agent) -> shapes.UsedLimitsShape:
    """Return the limits of an agent, and how much of each is used today; money in millionths."""
    limits = of_company(ctx)
    money = limits.money_per_day
    return {
        "turns_per_run": limits.of(Limit.TURNS_PER_RUN),
        "identical_calls": limits.of(Limit.IDENTICAL_CALLS),
        "failed_calls": limits.of(Limit.FAILED_CALLS),
        "agent_runs_per_hour": limits.of(Limit.AGENT_RUNS_PER_HOUR),
        "agent_tokens_per_day": limits.of(Limit.AGENT_TOKENS_PER_DAY),
        "company_runs_per_hour": limits.of(Limit.COMPANY_RUNS_PER_HOUR),
        "company_cents_per_day": limits.of(Limit.COMPANY_CENTS_PER_DAY),
        "tokens_today": tokens_today(ctx, agent.id),
        "company_money_today": money_today(ctx),
        "company_money_left": None if money is None else max(money - money_today(ctx), 0),
        "held_until": views.time(reached.until) if (reached := keeping(ctx, agent)) else None,
    }
