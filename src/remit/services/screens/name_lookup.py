"""Names for the ids in shown data."""

from collections.abc import Iterable

from remit.authority import Action
from remit.ids import AgentId, UserId
from remit.model.organisation.agent import AgentStatus
from remit.services import lookup
from remit.services.changes import changes
from remit.services.command import Context, query
from remit.services.messaging import letters
from remit.services.subjects import decide_file, reader
from remit.services.verbs import Added
from remit.store.connections import changes as change_statements
from remit.store.organisation import people
from remit.store.work import files as file_statements
from remit.store.work import outcomes as outcome_statements

MOST = 2000


@query("naming.names", Added("living", False))
def names(
    ctx: Context, *, company: str | None, ids: Iterable[str], living: bool = False
) -> dict[str, str]:
    """Names of the company's agents and people by id; unknown ids are left out.

    With `living`, terminated agents are left out, too, because another agent may have their name.
    """
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.COMPANY_READ, on="names")
    return parties(ctx, ids, living=living)


def parties(ctx: Context, ids: Iterable[str], *, living: bool = False) -> dict[str, str]:
    """Return the names of agents and people of the entered company by id."""
    by_id: dict[str, str] = {}
    for party_id in sorted(set(ids))[:MOST]:
        agent = lookup.agent_row(ctx, AgentId(party_id))
        if agent is not None and agent.company_id == ctx.company:
            if not (living and agent.status is AgentStatus.TERMINATED):
                by_id[party_id] = agent.name
            continue
        user = ctx.tx.one(people.USER, user=UserId(party_id))
        if user is not None and (
            user.id == ctx.actor.id or ctx.tx.one(people.MEMBERSHIP, user=user.id) is not None
        ):
            by_id[party_id] = user.name
    return by_id


@query("naming.titles")
def titles(ctx: Context, *, company: str | None, resources: Iterable[str]) -> dict[str, str]:
    """Titles of `outcome:…`, `kb_file:…` and `change:…` and subjects of `message:…`, limited to
    those that the caller may know."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.COMPANY_READ, on="names")
    return known_titles(ctx, resources)


def known_titles(ctx: Context, resources: Iterable[str]) -> dict[str, str]:
    """Return the titles of resources of the entered company that the caller may know."""
    may_read = reader(ctx)
    by_resource: dict[str, str] = {}
    for resource in sorted(set(resources))[:MOST]:
        kind, _, own = resource.partition(":")
        if kind == "outcome":
            outcome = ctx.tx.one(outcome_statements.OUTCOME, outcome=own)
            if outcome is not None and may_read(outcome):
                by_resource[resource] = outcome.title
        elif kind == "kb_file":
            file = ctx.tx.one(file_statements.FILE, file=own)
            if file is not None and decide_file(ctx, Action.FILE_SEE, file).allowed:
                by_resource[resource] = file.description
        elif kind == "change":
            change = ctx.tx.one(change_statements.CHANGE, change=own)
            here = change is not None and change.company_id == ctx.company
            if change is not None and here and changes.sees(ctx, change):
                by_resource[resource] = change.title
        elif kind == "message":
            letter = lookup.message_row(ctx, own)
            here = letter is not None and letter.company_id == ctx.company
            if letter is not None and here and letter.subject and letters.sees(ctx, letter):
                by_resource[resource] = letter.subject
    return by_resource
