"""Budgets: usage is charged while runs go on; an agent without anything left is not started.

It is started again once there is budget: by the next month, a raise, or a return. The boss of the
agent whose budget is used up is told once.
"""

from collections.abc import Mapping
from typing import Any

from remit.authority import Action
from remit.clock import moment, month_of, next_month
from remit.model.execution.budget import Account, Kind, Reservation, Stop, shown
from remit.model.execution.cost import Cost
from remit.model.organisation.agent import Agent
from remit.model.organisation.decision import BY_REMIT
from remit.services import lookup, shapes, views
from remit.services.command import FOR_REMIT, Context, command, logged, query
from remit.services.execution import waking
from remit.services.execution.running import entered, require_look
from remit.services.fields import AgentRef, CompanyRef
from remit.services.governance import approval_engine
from remit.services.spending import ledger, limits, promises
from remit.services.spending.ledger import Means, charge
from remit.services.surfaces import AsRoute
from remit.store.execution import budgets as statements

__all__ = ["charge", "hold", "listing", "put_on_hold", "relieve", "show", "spend"]

#: Exit reason of a run whose budget was used up, and why a claim is refused.
OVER = "budget"


@logged("budgets.spend", FOR_REMIT)
def spend(ctx: Context, *, run: str, total: Mapping[str, int]) -> shapes.LeftShape:
    """Charge a run for its usage so far, whatever its status; returns what is left."""
    row = entered(ctx, run)
    now = ledger.took(ctx, row, total)
    means = ledger.means(ctx, row.agent_id)
    over = next((budget for budget in means.values() if budget.left <= 0), None)
    reached = limits.money_reached(ctx)
    explanation = None if reached is None else limits.sentence(ctx, reached)
    return {
        "left": limits.capped(ctx, {kind.value: budget.left for kind, budget in means.items()}),
        "over": explanation if over is None else sentence(ctx, over),
        # Some programs report their cost only at their end.
        "about_micros": 0 if now.cost_micros else ledger.estimated(ctx, now),
    }


@command("budgets.hold", FOR_REMIT)
def hold(ctx: Context, *, agent: str) -> shapes.HeldAgentShape:
    """Defer an agent without budget to the next month, so that it is not polled; wake it if it has
    some."""
    holder = lookup.agent_anywhere(ctx, agent)
    ctx.require(Action.RUN_CHANGE, on=f"agent:{holder.id}", home=holder.id)
    over = ledger.used_up(ctx, holder.id)
    if over is None:
        waking.wake(ctx, holder.id, "there is something to spend again")
        ctx.record("agent.wake", f"agent:{holder.id}", {"agents": [holder.id]}, BY_REMIT)
    else:
        ctx.tx.run(statements.PUT_OFF, agent=holder.id, due=next_month(ctx.now))
        if not put_on_hold(ctx, holder, over):
            ctx.record("budget.stop", f"agent:{holder.id}", _details(over), BY_REMIT)
    return {"agent_id": holder.id, "held": over is not None}


def put_on_hold(ctx: Context, agent: Agent, over: Means) -> bool:
    """Record which budget stops the agent; returns whether that is new. The boss of the budget's
    holder is told of the first agent that it stops."""
    before = ctx.tx.one(statements.STOP_OF, agent=agent.id)
    if before is not None and (before.holder_id, before.kind) == (over.holder_id, over.kind):
        return False
    others = ctx.tx.all(statements.STOPS)
    if before is not None:
        ctx.tx.run(statements.DELETE_STOP, agent=agent.id)
    stop = Stop(agent.id, agent.company_id, over.holder_id, over.kind, ctx.now)
    ctx.tx.add(stop)
    ctx.record("budget.stop", f"agent:{agent.id}", _details(over))
    if not any((other.holder_id, other.kind) == (over.holder_id, over.kind) for other in others):
        _tell(ctx, agent, over)
    return True


def relieve(ctx: Context) -> None:
    """Wake the agents that a budget stopped and that have some left now."""
    for stop in ctx.tx.all(statements.STOPS):
        if ledger.used_up(ctx, stop.agent_id) is None:
            release(ctx, stop.agent_id)
            waking.wake(ctx, stop.agent_id, "there is something to spend again")


def release(ctx: Context, agent: str) -> None:
    ctx.tx.run(statements.DELETE_STOP, agent=agent)


def sentence(ctx: Context, over: Means) -> str:
    return f"The budget of {lookup.name_of(ctx, over.holder_id)} is used up ({over.kind.value})."


def _tell(ctx: Context, stopped: Agent, over: Means) -> None:
    """Tell the boss of the agent whose budget it is that it is used up."""
    holder = lookup.known_agent(ctx, over.holder_id)
    approval_engine.tell(
        ctx,
        approval_engine.boss_address(holder),
        f"The budget of {holder.name} is used up",
        f"{holder.name} has no {over.kind.value} left to spend, so {stopped.name} was stopped. It "
        f"goes on with the next month, on {moment(next_month(ctx.now))}, or when its budget "
        "is raised.",
    )


def _details(over: Means) -> dict[str, object]:
    return {"kind": over.kind.value, "holder": over.holder_id}


# ── reading ─────────────────────────────────────────────────────────────────────────────────────


@query("budgets.show", AsRoute("GET /agents/{id}/budget", "show_budget"))
def show(ctx: Context, *, agent: AgentRef) -> shapes.BudgetShape:
    """An agent's budget of this month: the limit, what is reserved, spent and left. Money is in
    millionths of a dollar. An agent without its own spends from the one that `paidBy` names."""
    return _shown(ctx, agent)


@query("budgets.mine")
def mine(ctx: Context) -> shapes.BudgetShape:
    """The budget of the calling agent."""
    lookup.company_of_caller(ctx, None)
    return _shown(ctx, ctx.actor.agent_id or "")


def _shown(ctx: Context, named: str) -> shapes.BudgetShape:
    agent = lookup.agent_anywhere(ctx, named)
    require_look(ctx, agent.id, f"agent:{agent.id}")
    return overview(ctx, agent)


def overview(ctx: Context, agent: Agent) -> shapes.BudgetShape:
    month = month_of(ctx.now)
    spent = ctx.tx.one(statements.SPENT, agent=agent.id, month=month, following=next_month(ctx.now))
    stop = ctx.tx.one(statements.STOP_OF, agent=agent.id)
    chains = ledger.payers(ctx, agent.id)

    def side(kind: Kind) -> shapes.BudgetSideShape:
        return _side(ctx, agent, chains[kind], kind, spent.of(kind) if spent else 0)

    return {
        "agent_id": agent.id,
        "name": agent.name,
        "month": views.time(month),
        "until": views.time(next_month(ctx.now)),
        "money": side(Kind.MONEY),
        "tokens": side(Kind.TOKENS),
        "cost": (spent.cost if spent else Cost()).view(),
        "stopped_at": views.time(stop.since) if stop else None,
        "limits": limits.overview(ctx, agent),
        "warning": promises.warning(ctx, agent),
    }


def _side(
    ctx: Context, agent: Agent, chain: list[ledger.Payer], kind: Kind, itself: int
) -> shapes.BudgetSideShape:
    """One kind of a budget: the agent's own account, or the one that it spends from; money in
    millionths."""
    month = month_of(ctx.now)
    payer = chain[0] if chain else None
    own = payer if payer is not None and payer.agent_id == agent.id else None
    holder = lookup.agent_row(ctx, payer.agent_id) if payer else None
    return {
        **_account(own.account if own else None, month),
        "spent_by_itself": itself,
        "left": payer.left(month) if payer else None,
        "left_shown": shown(kind, payer.left(month)) if payer else "no limit",
        "paid_by": {"agent_id": holder.id, "name": holder.name} if holder else None,
        "reservations": [_reservation(kept) for kept in (own.reservations if own else ())],
    }


def _account(account: Account | None, month: int) -> shapes.SpentShape:
    if account is None:
        return {"limit": None, "reserved": 0, "set_aside": 0, "spent": 0}
    return {
        "limit": account.amount,
        "reserved": account.reserved,
        "set_aside": account.set_aside,
        "spent": account.charged_in(month),
    }


_reservation = views.view_of(
    Reservation, shapes.ReservationShape, left="left", since="created_at", **{"from": "giver_id"}
)


@query(
    "budgets.listing",
    AsRoute("GET /companies/{companyId}/budgets", "list_budgets", page="agent_id"),
)
def listing(
    ctx: Context, *, company: CompanyRef | None, after: str = "", limit: int = 100
) -> list[shapes.ListedBudgetShape]:
    """Everybody who has a budget or spent something this month; an agent sees those below it."""
    lookup.company_of_caller(ctx, company)
    top = ctx.actor.agent_id
    scope = ctx.membership.scope_agent_id if ctx.membership else None
    if top is None:
        ctx.require(Action.OUTCOME_READ, on="budgets", home=scope)
    else:
        ctx.require(Action.COMPANY_READ, on="budgets")
    month = month_of(ctx.now)
    usages = ctx.tx.all(statements.SPENT_IN_COMPANY, month=month, following=next_month(ctx.now))
    spent = {usage.agent_id: usage for usage in usages}
    accounts: dict[tuple[str, Kind], Account] = {
        (account.agent_id, account.kind): account
        for account in ctx.tx.all(statements.ACCOUNTS, month=month)
    }
    nodes = {member.id: member for member in ctx.tx.all(statements.TREE)}
    rows: list[shapes.ListedBudgetShape] = []
    for node in nodes.values():
        mine = {kind: accounts.get((node.id, kind)) for kind in Kind}
        if node.id <= after or (node.id not in spent and not any(mine.values())):
            continue
        if len(rows) == limit:
            break
        if not _below(nodes, node.id, top or scope):
            continue
        took = spent.get(node.id)
        rows.append(
            {
                "agent_id": node.id,
                "name": node.name,
                "reports_to": node.boss_id,
                "money": _listed(Kind.MONEY, mine, took, month),
                "tokens": _listed(Kind.TOKENS, mine, took, month),
                "cost": (took.cost if took else Cost()).view(),
            }
        )
    return rows


def _listed(
    kind: Kind, accounts: Mapping[Kind, Account | None], took: statements.Spent | None, month: int
) -> shapes.ListedSideShape:
    account = accounts[kind]
    return {
        **_account(account, month),
        "spent_by_itself": took.of(kind) if took else 0,
        "left": None if account is None else max(account.left(month), 0),
    }


def _below(nodes: Mapping[Any, statements.Node], agent: str, top: str | None) -> bool:
    """Return whether an agent is `top` or below it; always true without `top`."""
    if top is None:
        return True
    seen: set[str] = set()
    above: str | None = agent
    while above is not None and above != top and above not in seen:
        seen.add(above)
        above = nodes[above].boss_id if above in nodes else None
    return above == top


def stopped(ctx: Context) -> list[Stop]:
    """Return the agents of the company that a budget stopped, longest first."""
    return ctx.tx.all(statements.STOPS)
