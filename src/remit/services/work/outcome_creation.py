"""Creation of an outcome, with its document and its place in a mandate."""

from typing import Any

from remit.ids import AgentId, CompanyId, OutcomeId
from remit.model.organisation.agent import Agent
from remit.model.work.file import FileKind
from remit.model.work.outcome import Look, Outcome, OutcomeKind, OutcomeStatus
from remit.services.command import Context
from remit.services.knowledge import documents
from remit.store.work import outcomes as statements


def open_outcome(
    ctx: Context, *, title: str, owner: str | None = None, new_id: str | None = None, **more: Any
) -> Outcome:
    """Create an outcome; its document is written afterwards (`write_document`), once its owner
    exists. Without an owner it is a mandate: its agent has its id."""
    new = new_id or ctx.ids.new()
    outcome = Outcome(
        id=OutcomeId(new),
        company_id=CompanyId(ctx.company or ""),
        kind=more.get("kind", OutcomeKind.WORK),
        title=title,
        status=OutcomeStatus.OPEN,
        perpetual=more.get("perpetual", False),
        owner_id=AgentId(owner or new),
        delegated=owner is None,
        delegator_id=more.get("delegator"),
        urgent=more.get("urgent", False),
        important=more.get("important", False),
        deferred_until=more.get("deferred_until"),
        open_prereqs=0,
        verdict=None,
        version=1,
        created_at=ctx.now,
        updated_at=ctx.now,
        finished_at=None,
        news=more.get("news", 0),
        look_at=more.get("deferred_until"),
        look_for=Look.DEFERRAL if more.get("deferred_until") is not None else None,
        origin_id=more.get("origin"),
    )
    ctx.tx.add(outcome)
    return outcome


def write_document(
    ctx: Context, outcome: Outcome, description: str, stored: documents.Stored | None = None
) -> None:
    """Write the document of an outcome; its home is the owner, which must exist by now."""
    documents.create(
        ctx,
        FileKind.OUTCOME,
        outcome.title,
        description,
        home=outcome.owner_id,
        file_id=outcome.id,
        stored=stored,
    )


def add_to_mandate(ctx: Context, agent: Agent, new: Outcome) -> None:
    """Make a new outcome without parts a part of an agent's mandate, if that is open."""
    if ctx.tx.run(statements.COUNT_PREREQ_IF_OPEN, outcome=agent.id):
        ctx.tx.run(
            statements.INSERT_EDGE, company_id=ctx.company, parent_id=agent.id, child_id=new.id
        )
