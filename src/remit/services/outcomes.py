"""Outcomes, as far as an agent's mandate and the life of its grants need them."""

from __future__ import annotations

from typing import Any

from remit.authority import Action
from remit.errors import Conflict, NotFound
from remit.ids import AgentId, CompanyId, OutcomeId
from remit.model.outcome import Outcome, OutcomeStatus
from remit.model.text import clean_text
from remit.services import lookup, views
from remit.services.command import Answer, Context, command, query
from remit.store import agents as statements
from remit.store import grants as grant_statements


def open_outcome(ctx: Context, *, owner: str | None, title: str, perpetual: bool) -> Outcome:
    """A new outcome; without an owner it is the mandate of the agent that will have its id."""
    new = ctx.ids.new()
    outcome = Outcome(
        id=OutcomeId(new),
        company_id=CompanyId(ctx.company or ""),
        title=title,
        status=OutcomeStatus.OPEN,
        perpetual=perpetual,
        owner_id=AgentId(owner or new),
        created_at=ctx.now,
        finished_at=None,
    )
    ctx.tx.run(
        statements.INSERT_OUTCOME,
        id=outcome.id,
        company_id=outcome.company_id,
        title=title,
        status=outcome.status.value,
        perpetual=perpetual,
        owner_id=outcome.owner_id,
        created_at=ctx.now,
        finished_at=None,
    )
    return outcome


def finish_outcome(ctx: Context, outcome: OutcomeId, status: OutcomeStatus) -> list[str]:
    """End an outcome and, with it, every grant that was to last as long; answers their ids."""
    if not ctx.tx.run(
        statements.FINISH_OUTCOME, outcome=outcome, new_status=status.value, now=ctx.now
    ):
        raise Conflict("The outcome is finished already.")
    return sorted(ctx.tx.all(grant_statements.REVOKE_SCOPED_TO, outcome=outcome, now=ctx.now))


@query
def show(ctx: Context, *, outcome: str) -> dict[str, Any]:
    found = lookup.outcome_anywhere(ctx, outcome)
    decision = ctx.decide(Action.AGENT_READ, home=found.owner_id)
    if not decision.allowed:
        raise NotFound("There is no such outcome.")
    return views.outcome(found)


@command
def complete(ctx: Context, *, outcome: str, note: object = "") -> Answer:
    return _finish(ctx, outcome, OutcomeStatus.COMPLETED, note)


@command
def close(ctx: Context, *, outcome: str, rationale: object) -> Answer:
    return _finish(
        ctx, outcome, OutcomeStatus.CLOSED, clean_text(rationale, "rationale", longest=10_000)
    )


def _finish(ctx: Context, text: str, status: OutcomeStatus, note: object) -> Answer:
    note = clean_text(note, "note", longest=10_000, empty_ok=True)
    found = lookup.outcome_anywhere(ctx, text)
    ctx.require(Action.OUTCOME_FINISH, on=f"outcome:{found.id}", home=found.owner_id)
    if found.perpetual and status is OutcomeStatus.COMPLETED:
        raise Conflict(
            "A perpetual outcome is never completed.", "Close it if it is not wanted any more."
        )
    revoked = finish_outcome(ctx, found.id, status)
    verb = "complete" if status is OutcomeStatus.COMPLETED else "close"
    ctx.record(f"outcome.{verb}", f"outcome:{found.id}", {"note": note, "revoked": revoked})
    return {**views.outcome(found), "status": status.value, "finished_at": views.time(ctx.now)}
