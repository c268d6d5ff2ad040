"""Accounts of budgets, and charges to them; every function is part of another verb's transaction.

An agent with a monthly budget has an account. It covers the accounts of the nearest agents below
that have one, reservations for outcomes, and the spending of the agent itself and of those below it
without an account. The sum never exceeds the account: what a last turn spent beyond it is charged
to the next account above, and only the topmost can be overdrawn.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from remit.clock import Micros, day_of, month_of, next_month
from remit.errors import Conflict
from remit.ids import AgentId
from remit.model.execution.budget import (
    METERS,
    Account,
    Kind,
    Reservation,
    Taken,
    amount_of,
    limit_of,
    shown,
)
from remit.model.execution.cost import Cost, Price
from remit.model.execution.run import Run, RunStatus
from remit.model.organisation.agent import Agent
from remit.services import lookup
from remit.services.command import Context
from remit.store.engine.statement import renewed
from remit.store.execution import budgets as statements
from remit.store.execution import runs as run_statements

EXCEEDED = "budget_exceeded"
#: The remainder of each account.
Picture = dict[tuple[AgentId, Kind], int]


@dataclass
class Payer:
    """An agent in the chain of bosses that pays: first from reservations, then from its account."""

    agent_id: AgentId
    account: Account | None = None
    reservations: list[Reservation] = field(default_factory=list)

    def left(self, month: Micros) -> int:
        own = max(self.account.left(month), 0) if self.account else 0
        return own + sum(reservation.left for reservation in self.reservations)


@dataclass(frozen=True)
class Means:
    """The amount of one kind that an agent can spend, and the agent (itself, or one above) from
    whose account and reservations it comes."""

    kind: Kind
    holder_id: AgentId
    left: int


def payers(ctx: Context, agent: str) -> dict[Kind, list[Payer]]:
    """Return the payers for an agent by kind, nearest first."""
    month = month_of(ctx.now)
    by_kind: dict[Kind, dict[str, Payer]] = {kind: {} for kind in Kind}
    accounts = ctx.tx.all(statements.ACCOUNTS_ABOVE, agent=agent, month=month)
    reserved = ctx.tx.all(statements.RESERVATIONS_ABOVE, agent=agent)
    for account in accounts:
        by_kind[account.kind][account.agent_id] = Payer(account.agent_id, account)
    for reservation in reserved:
        payer = by_kind[reservation.kind].setdefault(
            reservation.agent_id, Payer(reservation.agent_id)
        )
        payer.reservations.append(reservation)
    if not reserved:
        return {kind: list(by_agent.values()) for kind, by_agent in by_kind.items()}
    order = {above: place for place, above in enumerate(ctx.boss_chain(agent))}
    return {
        kind: sorted(by_agent.values(), key=lambda payer: order.get(payer.agent_id, 0))
        for kind, by_agent in by_kind.items()
    }


def means(ctx: Context, agent: str) -> dict[Kind, Means]:
    """Return what an agent can spend of each limited kind, from the nearest payer."""
    month = month_of(ctx.now)
    return {
        kind: Means(kind, chain[0].agent_id, chain[0].left(month))
        for kind, chain in payers(ctx, agent).items()
        if chain
    }


def used_up(ctx: Context, agent: str) -> Means | None:
    """Return the budget that is used up for an agent, if there is one."""
    return next((budget for budget in means(ctx, agent).values() if budget.left <= 0), None)


# ── spending ────────────────────────────────────────────────────────────────────────────────────


def charge(ctx: Context, agent: str, taken: Taken, cost: Cost) -> None:
    """Charge usage to the payers of an agent, and count it as the agent's spending: `cost` is what
    is known of it."""
    amounts = {kind: amount_of(taken, kind) for kind in Kind}
    if not any(amounts.values()) and not cost.unpriced:
        return
    ctx.lock_company()
    month = month_of(ctx.now)
    for kind, chain in payers(ctx, agent).items():
        _pay(ctx, chain, amounts[kind], month)
    ctx.tx.run(
        statements.SPEND,
        agent_id=agent,
        day=day_of(ctx.now),
        company_id=ctx.company,
        money_micros=amounts[Kind.MONEY],
        tokens=amounts[Kind.TOKENS],
        money_estimated=amounts[Kind.MONEY] if cost.estimated else 0,
        tokens_unpriced=cost.unpriced,
    )


def _pay(ctx: Context, chain: list[Payer], amount: int, month: Micros) -> None:
    for place, payer in enumerate(chain):
        topmost = place == len(chain) - 1
        for number, reservation in enumerate(payer.reservations):
            last = topmost and payer.account is None and number == len(payer.reservations) - 1
            part = amount if last else min(amount, reservation.left)
            if part:
                spent, before = reservation.spent + part, reservation.before(month)
                keep(ctx, replace(reservation, spent=spent, month=month, spent_before=before))
            amount -= part
        if payer.account is not None:
            part = amount if topmost else min(amount, max(payer.account.left(month), 0))
            if part:
                _keep(ctx, _charged(payer.account, part, month))
            amount -= part


def took(ctx: Context, run: Run, total: Mapping[str, Any], *, ended: bool = False) -> Run:
    """Charge a run's usage so far; only the increase is charged. Returns the run's updated row.

    `ended`: it has just ended, so what nobody has priced by now counts as tokens of unknown cost.
    """
    ctx.lock_company()
    now = ctx.tx.existing(run_statements.RUN, run=run.id)
    known = {name: max(getattr(now, name), total.get(name) or 0) for name in METERS}
    estimated = now.cost_estimated
    if known["cost_micros"] > now.cost_micros:
        estimated = bool(total.get("cost_estimated"))
    later = _priced(ctx, replace(now, **known, cost_estimated=estimated))
    if later == now and not (ended and later.cost.unpriced):
        return now
    ctx.tx.run(
        run_statements.COUNT_USAGE,
        run=run.id,
        new_cost_estimated=later.cost_estimated,
        **{f"new_{name}": getattr(later, name) for name in METERS},
    )
    more = {name: getattr(later, name) - getattr(now, name) for name in METERS}
    unpriced = later.cost.unpriced - (0 if ended else now.cost.unpriced)
    charge(ctx, run.agent_id, replace(later, **more), replace(later.cost, unpriced=unpriced))
    return later


def _priced(ctx: Context, run: Run) -> Run:
    """Estimate the cost of a run that ended before its program reported it: by the price of its
    model when it began. Where that is not known and the run was cut off, by the price of a token in
    the agent's earlier runs, or in those of others with the same adapter."""
    if run.is_live or (run.cost_micros and not run.cost_estimated):
        return run
    price = Price.read(run.price)
    if price is not None:
        if run.cost_micros:
            return run  # its adapter worked it out by that price
        micros = price.of(run.tokens_in, run.tokens_out, run.tokens_cached)
        return replace(run, cost_micros=micros, cost_estimated=micros > 0)
    if run.status is RunStatus.COMPLETED:
        return run
    estimate = estimated(ctx, run)
    if estimate <= run.cost_micros:
        return run
    return replace(run, cost_micros=estimate, cost_estimated=True)


def estimated(ctx: Context, run: Run) -> int:
    """Return the estimated cost so far, by the price of its model or else of tokens in earlier
    runs, in millionths of a dollar; 0 if there is no price."""
    if (price := Price.read(run.price)) is not None:
        return price.of(run.tokens_in, run.tokens_out, run.tokens_cached)
    tokens = run.tokens_in + run.tokens_out
    if not tokens:
        return 0
    cost, of_tokens = ctx.tx.one(
        run_statements.PRICE_OF_AGENT, agent=run.agent_id, adapter=run.adapter_type
    ) or (0, 0)
    if not of_tokens:
        cost, of_tokens = ctx.tx.one(
            run_statements.PRICE_IN_COMPANY, company=run.company_id, adapter=run.adapter_type
        ) or (0, 0)
    return cost * tokens // of_tokens if of_tokens else 0


def keep(ctx: Context, reservation: Reservation) -> None:
    ctx.tx.run(statements.KEEP_RESERVATION, reservation=reservation.id, **renewed(reservation))


def pay_back(ctx: Context, account: AgentId | None, kind: Kind, spent: int) -> None:
    """Charge an account for what a closed reservation had spent in this month."""
    if account is None or not spent:
        return
    row = _account(ctx, account, kind)
    if row is not None:
        _keep(ctx, _charged(row, spent, month_of(ctx.now)))


def _account(ctx: Context, agent: AgentId, kind: Kind) -> Account | None:
    month = month_of(ctx.now)
    return ctx.tx.one(statements.ACCOUNT, agent=agent, kind=kind.value, month=month)


def _charged(account: Account, more: int, month: Micros) -> Account:
    return replace(account, month=month, charged=account.charged_in(month) + more)


def _keep(ctx: Context, account: Account) -> None:
    whose = {"agent": account.agent_id, "of_kind": account.kind.value}
    ctx.tx.run(statements.KEEP_ACCOUNT, **whose, **renewed(account))


# ── accounts ────────────────────────────────────────────────────────────────────────────────────


def open_accounts(ctx: Context, agent: Agent) -> None:
    """Open a new agent's accounts, and reserve their amounts in the nearest account above it."""
    for kind in Kind:
        amount = limit_of(agent, kind)
        if amount is None:
            continue
        _insert(ctx, agent.id, kind, amount)
        _reserve(ctx, _above(ctx, agent, kind), amount)
        _record(ctx, "budget.reserve", agent, kind, None, amount)


def change_limits(ctx: Context, before: Agent, now: Agent) -> None:
    """Apply changed budgets; refused if the account above does not cover them, or if more is passed
    on below."""
    for kind in Kind:
        was, amount = limit_of(before, kind), limit_of(now, kind)
        if was == amount:
            continue
        if amount is None:
            _dissolve(ctx, now, kind)
            _record(ctx, "budget.return", now, kind, was, None)
        elif was is None:
            lefts = picture(ctx)
            recount(ctx)
            above = _above(ctx, now, kind)
            if above is not None:
                _take_over_spending(ctx, now, kind, above)
            check(ctx, lefts)
            if above is None:  # more may be spent already than the new limit
                _take_over_spending(ctx, now, kind, None)
            _record(ctx, "budget.reserve", now, kind, None, amount)
        else:
            _resize(ctx, now, kind, amount)
            action = "budget.raise" if amount > was else "budget.return"
            _record(ctx, action, now, kind, was, amount)


def _take_over_spending(ctx: Context, agent: Agent, kind: Kind, above: Account | None) -> None:
    """Move this month's spending of everybody who spends from a new account onto it, off the
    account above if there is one."""
    month, account = month_of(ctx.now), _account(ctx, agent.id, kind)
    assert account is not None, "it was opened just now"
    spent = _spent_by_those_on(ctx, agent.id, kind)
    if above is not None:
        spent = min(spent, above.charged_in(month), max(account.left(month), 0))
    if not spent:
        return
    _keep(ctx, _charged(account, spent, month))
    if above is not None:
        _keep(ctx, _charged(above, -spent, month))


def _spent_by_those_on(ctx: Context, agent: AgentId, kind: Kind) -> int:
    """Return this month's spending of everybody who spends from an agent's account, without what
    reservations of others covered."""
    month, following = month_of(ctx.now), next_month(ctx.now)
    nodes = {node.id: node for node in ctx.tx.all(statements.TREE)}
    limits = {node.id for node in nodes.values() if limit_of(node, kind) is not None}
    covered = {
        node_id
        for node_id in nodes
        if node_id == agent or (node_id not in limits and _nearest(nodes, limits, node_id) == agent)
    }
    spent = sum(
        usage.of(kind)
        for usage in ctx.tx.all(statements.SPENT_IN_COMPANY, month=month, following=following)
        if usage.agent_id in covered
    )
    apart = sum(
        reservation.spent - reservation.before(month)
        for reservation in ctx.tx.all(statements.SPENT_IN_MONTH, month=month)
        if reservation.kind is kind
        and reservation.agent_id in covered
        and (
            reservation.closed_at is None
            or (reservation.account_id is not None and reservation.account_id not in covered)
        )
    )
    return max(spent - apart, 0)


def dissolve(ctx: Context, agent: Agent) -> None:
    """Close the accounts of an agent that is gone: what is left returns to the account above, which
    takes over the charges and open reservations, too."""
    for kind in Kind:
        amount = _dissolve(ctx, agent, kind)
        if amount is not None:
            _record(ctx, "budget.return", agent, kind, amount, None)


def _resize(ctx: Context, agent: Agent, kind: Kind, amount: int) -> None:
    month, account = month_of(ctx.now), _account(ctx, agent.id, kind)
    assert account is not None, "an agent with a budget has an account"
    below = account.reserved + account.set_aside
    if amount < min(below, account.amount):
        raise Conflict(
            f"{agent.name} has passed {shown(kind, below)} of its budget on, "
            f"so it cannot be {shown(kind, amount)}.",
            "Lower the budgets of those below it first.",
            code=EXCEEDED,
            details={"kind": kind.value, "passed_on": below, "asked": amount},
        )
    above = _above(ctx, agent, kind)
    over = max(account.charged_in(month) - max(amount - below, 0), 0) if above else 0
    _keep(
        ctx, replace(account, amount=amount, month=month, charged=account.charged_in(month) - over)
    )
    _reserve(ctx, above, amount - account.amount, spent=over)


def _dissolve(ctx: Context, agent: Agent, kind: Kind) -> int | None:
    month, account = month_of(ctx.now), _account(ctx, agent.id, kind)
    if account is None:
        return None
    above = _above(ctx, agent, kind)
    ctx.tx.run(statements.DELETE_ACCOUNT, agent=agent.id, of_kind=kind.value)
    ctx.tx.run(
        statements.PASS_RESERVATIONS,
        account=agent.id,
        of_kind=kind.value,
        new_account=above.agent_id if above else None,
    )
    if above is not None:
        charged = above.charged_in(month) + account.charged_in(month)
        reserved = above.reserved + account.reserved - account.amount
        _keep(ctx, replace(above, reserved=max(reserved, 0), month=month, charged=charged))
    return account.amount


def _above(ctx: Context, agent: Agent, kind: Kind) -> Account | None:
    """Return the nearest account above an agent."""
    if agent.boss_id is None:
        return None
    month = month_of(ctx.now)
    accounts = ctx.tx.all(statements.ACCOUNTS_ABOVE, agent=agent.boss_id, month=month)
    return next((account for account in accounts if account.kind is kind), None)


def _reserve(ctx: Context, above: Account | None, more: int, *, spent: int = 0) -> None:
    if above is None:
        return
    month = month_of(ctx.now)
    if more > 0:
        require(ctx, above, more)
    charged = above.charged_in(month) + spent
    _keep(ctx, replace(above, reserved=above.reserved + more, month=month, charged=charged))


def require(ctx: Context, account: Account, wanted: int) -> None:
    """Refuse an amount that an account does not have left."""
    left = account.left(month_of(ctx.now))
    if wanted > left:
        raise _exceeded(ctx, account, wanted, max(left, 0))


def _exceeded(ctx: Context, account: Account, wanted: int, left: int) -> Conflict:
    kind, name = account.kind, lookup.name_of(ctx, account.agent_id)
    return Conflict(
        f"{shown(kind, wanted)} more is wanted out of {name}'s budget of "
        f"{shown(kind, account.amount)} a month, of which {shown(kind, left)} is left.",
        f"Ask for less, or have the budget of {name} raised first.",
        code=EXCEEDED,
        details={
            "kind": kind.value,
            "agent_id": account.agent_id,
            "amount": account.amount,
            "reserved": account.reserved + account.set_aside,
            "spent": account.charged_in(month_of(ctx.now)),
            "left": left,
            "asked": wanted,
        },
    )


# ── the whole company ───────────────────────────────────────────────────────────────────────────


def picture(ctx: Context) -> Picture | None:
    """Return what is left in each account; None if the company has no budgets."""
    if ctx.tx.one(statements.ANY_LIMIT) is None:
        return None
    month = month_of(ctx.now)
    accounts = ctx.tx.all(statements.ACCOUNTS, month=month)
    return {(account.agent_id, account.kind): account.left(month) for account in accounts}


def settle(ctx: Context, before: Picture | None) -> None:
    """Recount after a reorganisation, and refuse it if an account does not cover what it should."""
    if before is not None or ctx.tx.one(statements.ANY_LIMIT) is not None:
        recount(ctx)
        check(ctx, before)


def check(ctx: Context, before: Mapping[tuple[AgentId, Kind], int] | None) -> None:
    """Refuse if an account is overdrawn by the change that was just made."""
    month = month_of(ctx.now)
    for account in ctx.tx.all(statements.ACCOUNTS, month=month):
        left = account.left(month)
        had = (before or {}).get((account.agent_id, account.kind))
        if left < 0 and (had is None or left < had):
            raise _exceeded(ctx, account, (had or 0) - left, max(had or 0, 0))


def recount(ctx: Context) -> None:
    """Recompute which accounts there are and what each reserves, after the tree changed.

    Charges stay where they are; an agent that moves takes its month along.
    """
    nodes = {node.id: node for node in ctx.tx.all(statements.TREE)}
    month = month_of(ctx.now)
    known = {
        (known_account.agent_id, known_account.kind): known_account
        for known_account in ctx.tx.all(statements.ACCOUNTS, month=month)
    }
    for kind in Kind:
        limits = {
            node.id: limit for node in nodes.values() if (limit := limit_of(node, kind)) is not None
        }
        reserved = dict.fromkeys(limits, 0)
        for agent, amount in limits.items():
            if (above := _nearest(nodes, limits, agent)) is not None:
                reserved[above] += amount
        for agent, amount in limits.items():
            account = known.get((agent, kind))
            if account is None:
                _insert(ctx, agent, kind, amount, reserved[agent])
            elif (account.amount, account.reserved) != (amount, reserved[agent]):
                _keep(ctx, replace(account, amount=amount, reserved=reserved[agent]))
        for reservation in ctx.tx.all(statements.OPEN_IN_COMPANY):
            payer = _nearest(nodes, limits, reservation.agent_id)
            if reservation.kind is kind and reservation.account_id != payer:
                keep(ctx, replace(reservation, account_id=payer))


def _nearest(
    nodes: Mapping[AgentId, statements.Node], limits: Iterable[AgentId], agent: AgentId
) -> AgentId | None:
    """Return the first agent above that has an account."""
    seen = {agent}
    above = nodes[agent].boss_id if agent in nodes else None
    while above is not None and above not in limits and above not in seen:
        seen.add(above)
        above = nodes[above].boss_id if above in nodes else None
    return above if above is not None and above in limits else None


def _insert(ctx: Context, agent: str, kind: Kind, amount: int, reserved: int = 0) -> None:
    ctx.tx.run(
        statements.INSERT_ACCOUNT,
        agent_id=agent,
        kind=kind.value,
        company_id=ctx.company,
        amount=amount,
        reserved=reserved,
        month=month_of(ctx.now),
        charged=0,
    )


def _record(
    ctx: Context, action: str, agent: Agent, kind: Kind, was: int | None, now: int | None
) -> None:
    ctx.record(action, f"agent:{agent.id}", {"kind": kind.value, "was": was, "now": now})
