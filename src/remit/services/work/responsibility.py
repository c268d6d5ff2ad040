"""Transfer of responsibility for an outcome, with everything below it that is the delegator's
own."""

from remit.authority import Action
from remit.errors import Conflict
from remit.model.organisation.agent import Agent, AgentStatus
from remit.model.organisation.decision import Decision
from remit.model.work.outcome import Outcome, OutcomeStatus
from remit.services import lookup
from remit.services.command import Context
from remit.services.execution import waking
from remit.services.organisation import tree
from remit.services.subjects import require_outcome
from remit.services.work import waits
from remit.store.work import outcomes as statements


def require_delegable(ctx: Context, outcome: Outcome) -> Decision:
    """Refuse unless the caller may delegate this outcome now."""
    decision = require_outcome(ctx, Action.OUTCOME_DELEGATE, outcome)
    if outcome.delegated:
        raise Conflict("It is delegated already.", "Reclaim it first, or choose a part of it.")
    if outcome.status is not OutcomeStatus.OPEN:
        raise Conflict(f"The outcome is {outcome.status.value}.", "Delegate open outcomes.")
    if outcome.perpetual:
        raise Conflict("A perpetual outcome stays where it is.", "Delegate a part of it.")
    return decision


def check_not_hired_for(ctx: Context, outcome: Outcome) -> None:
    """Refuse while a hire for this outcome awaits approval: it goes first."""
    here = lookup.agent_row(ctx, outcome.id)
    if here is not None and here.status is AgentStatus.PENDING_APPROVAL:
        raise Conflict(
            f"{here.name} was hired for it and awaits approval.",
            "Wait for the decision, or withdraw the hire.",
        )


def hand_to(
    ctx: Context,
    outcome: Outcome,
    receiver: Agent,
    *,
    hired: bool,
    decision: Decision | None = None,
) -> int:
    """Make the receiver responsible; returns how many outcomes moved along."""
    boss = outcome.owner_id
    heir = waking.new_owner(ctx, receiver.id)
    moved = len(ctx.tx.all(statements.MOVE_SUBTREE, outcome=outcome.id, delegator=boss, **heir))
    waits.forget_moved(ctx, boss)
    tree.hand_over(ctx, outcome.id, receiver.id, delegated=True, delegator=boss)
    ctx.record(
        "outcome.delegate",
        f"outcome:{outcome.id}",
        {"from": boss, "to": receiver.id, "moved": moved, "hired": hired},
        decision,
    )
    return moved
