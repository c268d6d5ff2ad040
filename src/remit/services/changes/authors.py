"""Authors of changes: the identity of their commits, and mail to them."""

from collections.abc import Sequence

from remit.model.connections.change import LONGEST_TITLE, Change
from remit.model.organisation.grant import Level
from remit.model.work.file import File, FileKind
from remit.model.work.outcome import OutcomeStatus
from remit.services import lookup, shapes
from remit.services.changes import changes
from remit.services.command import Context
from remit.services.execution import waking
from remit.services.governance import approval_engine
from remit.services.knowledge import documents
from remit.services.rights import grants
from remit.store.organisation import people
from remit.store.work import outcomes as outcome_statements


def identity(ctx: Context, agent: str) -> shapes.CommitterShape:
    """Identity of an agent's commits: the agent, for a person."""
    agent_row = lookup.agent_row(ctx, agent)
    company = ctx.tx.one(people.COMPANY)
    assert agent_row is not None
    assert company is not None
    chain = ctx.boss_chain(agent)
    top = lookup.agent_row(ctx, chain[-1]) if chain else None
    person = ctx.tx.one(people.USER, user=top.boss_user_id) if top and top.boss_user_id else None
    return {
        "agent": agent_row.name,
        "company": company.name,
        "person": person.name if person is not None else None,
        "committer": company.commit_committer,
        "co_authors": company.commit_co_authors,
        "signing": company.commit_signing,
    }


def evidence(ctx: Context, change: Change, title: str, text: str) -> File:
    """A file of the author's that says what became of its change."""
    file = documents.create(ctx, FileKind.FILE, title[:LONGEST_TITLE], text, home=change.agent_id)
    grants.give_by_rule(ctx, change.agent_id, file.id, Level.READ)
    return file


def tell(
    ctx: Context, change: Change, subject: str, text: str, attachments: Sequence[str] = ()
) -> None:
    """Mail the author of a change from Remit, and wake the owner of the outcome that it is for."""
    repo = changes.repo_of(ctx, change).name
    about = f"About change {change.id} ({repo}, branch {change.branch})."
    letter = f"{about}\n\n{text}\n"
    approval_engine.tell(ctx, f"agent:{change.agent_id}", subject, letter, attachments)
    if change.outcome_id is not None:
        outcome = ctx.tx.one(outcome_statements.OUTCOME, outcome=change.outcome_id)
        if outcome is not None and outcome.status is OutcomeStatus.OPEN:
            waking.news(ctx, outcome, "something happened to a change for it")
