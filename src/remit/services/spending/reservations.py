"""Reservations: an amount set aside for a delegated outcome, as long as that is open.

It comes out of the giver's account, and the receiver can spend it besides its own budget; a
receiver without a budget can spend only that. The rest returns when the outcome or the receiver
ends.
"""

from collections.abc import Mapping
from dataclasses import replace

from remit.clock import month_of
from remit.errors import BadInput
from remit.ids import OutcomeId
from remit.model.execution.budget import CENT, Account, Kind, Reservation, shown
from remit.model.organisation.agent import Agent
from remit.model.organisation.agent_spec import LARGEST_BUDGET
from remit.model.organisation.decision import deny
from remit.services import lookup
from remit.services.command import Context
from remit.services.spending import budgets, ledger
from remit.store.execution import budgets as statements

_FIELDS = {"money_cents": (Kind.MONEY, CENT), "tokens": (Kind.TOKENS, 1)}


def wanted(budget: object) -> dict[Kind, int]:
    """Validate a wanted reservation."""
    if budget is None:
        return {}
    known = " and ".join(_FIELDS)
    if not isinstance(budget, Mapping) or not set(budget) <= set(_FIELDS):
        raise BadInput(f"budget: must be an object with {known}.", "Give one of them, or both.")
    amounts = {}
    for name, value in budget.items():
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= LARGEST_BUDGET:
            raise BadInput(f"budget.{name}: must be a whole number above 0.", "Send an integer.")
        kind, unit = _FIELDS[name]
        amounts[kind] = value * unit
    return amounts


def weigh(ctx: Context, giver: Agent, amounts: Mapping[Kind, int]) -> dict[Kind, Account | None]:
    """Return the account that each amount comes from, None where no budget limits the giver.

    Refuses an amount that its account does not cover, or that would come from a reservation."""
    sources: dict[Kind, Account | None] = {}
    chains = ledger.payers(ctx, giver.id) if amounts else {}
    for kind, amount in amounts.items():
        payer = next(iter(chains[kind]), None)
        if payer is not None and payer.account is None:
            name = lookup.name_of(ctx, payer.agent_id)
            deny(
                ledger.EXCEEDED,
                f"{name} has only what was set aside for an outcome, and that is not divided "
                "further.",
            ).enforce("Delegate without a budget: what the report spends comes out of it as well.")
        account = payer.account if payer else None
        if account is not None:
            ledger.require(ctx, account, amount)
        sources[kind] = account
    return sources


def set_aside(
    ctx: Context, giver: Agent, receiver: Agent, outcome: str, amounts: Mapping[Kind, int]
) -> None:
    for kind, account in weigh(ctx, giver, amounts).items():
        reservation = Reservation(
            id=ctx.ids.new(),
            company_id=receiver.company_id,
            kind=kind,
            agent_id=receiver.id,
            giver_id=giver.id,
            account_id=account.agent_id if account else None,
            outcome_id=OutcomeId(outcome),
            amount=amounts[kind],
            spent=0,
            month=month_of(ctx.now),
            spent_before=0,
            created_at=ctx.now,
            closed_at=None,
        )
        ctx.tx.add(reservation)
        ctx.record(
            "budget.reserve",
            f"agent:{receiver.id}",
            {
                "kind": kind.value,
                "amount": reservation.amount,
                "from": reservation.account_id,
                "outcome": outcome,
                "said": shown(kind, reservation.amount),
            },
        )
    if amounts:
        budgets.relieve(ctx)


def close_for(ctx: Context, outcome: str) -> None:
    """Close the reservations for an outcome that ended or has another owner."""
    _close(ctx, ctx.tx.all(statements.OPEN_OF_OUTCOME, outcome=outcome))


def close_of(ctx: Context, agent: str) -> None:
    """Close the reservations of a receiver that is gone."""
    _close(ctx, ctx.tx.all(statements.OPEN_OF_AGENT, agent=agent))


def _close(ctx: Context, reservations: list[Reservation]) -> None:
    month = month_of(ctx.now)
    for reservation in reservations:
        ledger.keep(ctx, replace(reservation, closed_at=ctx.now))
        ledger.pay_back(
            ctx,
            reservation.account_id,
            reservation.kind,
            reservation.spent - reservation.before(month),
        )
        ctx.record(
            "budget.return",
            f"agent:{reservation.agent_id}",
            {
                "kind": reservation.kind.value,
                "outcome": reservation.outcome_id,
                "amount": reservation.amount,
                "spent": reservation.spent,
                "returned": reservation.left,
                "to": reservation.account_id,
            },
        )
    if reservations:
        budgets.relieve(ctx)
