"""Outcomes: create, read, change, finish, reopen. Delegation is in `delegation.py`."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Annotated

from remit.authority import Action
from remit.clock import Micros, given_time
from remit.errors import BadInput, Conflict
from remit.ids import AgentId, OutcomeId
from remit.model.organisation.agent import Agent, AgentStatus
from remit.model.organisation.principal import ActorKind
from remit.model.text import clean_line, plural
from remit.model.work.outcome import (
    LONGEST_DESCRIPTION,
    LONGEST_TITLE,
    MOST_PARENTS,
    Look,
    Outcome,
    OutcomeKind,
    OutcomeStatus,
)
from remit.model.work.wait import SubmissionStatus
from remit.services import lookup, shapes, views
from remit.services.command import Arguments, Context, command, query
from remit.services.execution import waking
from remit.services.fields import (
    After,
    Cleared,
    CompanyRef,
    Evidence,
    Help,
    Limit,
    Moment,
    Most,
    OfAnother,
    OutcomeRef,
    Reason,
    Remark,
    Stored,
    Text,
)
from remit.services.governance import approval_engine
from remit.services.knowledge import documents
from remit.services.messaging import origins
from remit.services.organisation import tree
from remit.services.subjects import (
    OUTCOME,
    require_named_outcome,
    require_outcome,
    require_outcomes_of,
)
from remit.services.surfaces import AsCommand, AsRoute, AsTool
from remit.services.verbs import Added
from remit.services.work import (
    acceptance_undo,
    after_run,
    cycles,
    outcome_ending,
    submissions,
    waits,
)
from remit.services.work.outcome_creation import open_outcome, write_document
from remit.store.engine.statement import renewed
from remit.store.execution import due
from remit.store.organisation import agents as agent_statements
from remit.store.record import events as event_log
from remit.store.work import outcomes as statements

MOST_CHILDREN_SHOWN = 500
MOST_CHILDREN_MOVED = 100_000
MOST_HISTORY_SHOWN = 200

Title = Annotated[str, Text(LONGEST_TITLE, one_line=True)]
Description = Annotated[str, Text(LONGEST_DESCRIPTION, empty=True)]
Outcomes = Annotated[Sequence[OutcomeRef], Most(MOST_PARENTS)]
Parents = Annotated[Outcomes, Help("Outcomes it is for", model=True)]
Blockers = Annotated[Outcomes, Help("Outcomes it waits for", model=True)]


@command(
    "outcomes.create",
    AsTool(
        "outcome_create",
        "Create a part of an outcome, which you own: to plan, or to delegate it.",
        spelled={"parent": "parent_id"},
        without=("company",),
    ),
    AsRoute(
        "POST /companies/{companyId}/outcomes",
        "create_outcome",
        201,
        spelled={"parent": "parentId"},
    ),
)
def create(
    ctx: Context,
    *,
    parent: OutcomeRef,
    title: Title,
    company: CompanyRef | None = None,
    description: Annotated[Description, Stored(), Help("Markdown", model=True)] = "",
    parents: Parents = (),
    blocked_by: Blockers = (),
    urgent: bool = False,
    important: bool = False,
    deferred_until: Moment | None = None,
    new_id: str | None = None,
    new_stored: documents.Stored | None = None,
) -> shapes.OutcomeWithCycleShape:
    """Create a part of an outcome; whoever owns that owns the part."""
    if company is not None:
        lookup.company_of_caller(ctx, company)
    reasons = (_require_open_parent(ctx, other) for other in _unique([parent, *parents]))
    above = list(_by_id(reasons).values())
    owner = above[0].owner_id
    if owner != ctx.actor.agent_id:
        tree.check_assignable(ctx, owner)
    news = waking.place_of_news(ctx, owner)
    outcome = open_outcome(
        ctx,
        title=title,
        owner=owner,
        new_id=new_id,
        urgent=urgent,
        important=important,
        deferred_until=_deferral(deferred_until),
        news=news,
        origin=origins.for_part(ctx, above),
    )
    write_document(ctx, outcome, description, new_stored)
    for reason in above:
        # No cycle: a new outcome depends on nothing yet.
        _insert_edge(ctx, reason, outcome)
        ctx.tx.run(statements.COUNT_NEW_PART, outcome=reason.id)
    waits_for = list(_named(ctx, blocked_by).values())
    for other in waits_for:
        _add_blocker(ctx, outcome, other)
    waking.acted(ctx, owner)
    if news:
        waking.wake(ctx, owner, "an outcome was created")
    circle = cycles.told_of_prerequisites(ctx, outcome, waits_for) if waits_for else {}
    ctx.record(
        "outcome.create",
        f"outcome:{outcome.id}",
        {
            "title": title,
            "owner": outcome.owner_id,
            "parents": [reason.id for reason in above],
            "blocked_by": [other.id for other in waits_for],
        },
    )
    if waits_for:
        outcome = lookup.known_outcome(ctx, outcome.id)
    return {**views.outcome(outcome, ctx.now), **circle}


@command(
    "outcomes.change",
    AsTool("outcome_update", "Change an outcome you own or delegated.", id="outcome"),
    AsRoute("PATCH /outcomes/{id}", "change_outcome"),
)
def change(
    ctx: Context,
    *,
    outcome: OutcomeRef,
    version: Annotated[int, Help("The version you last saw", model=True)],
    title: Title | None = None,
    description: Description | None = None,
    urgent: bool | None = None,
    important: bool | None = None,
    deferred_until: Annotated[Moment | None, Cleared("defers it no longer")] = None,
    parents: Parents | None = None,
    blocked_by: Blockers | None = None,
) -> shapes.OutcomeWithCycleShape:
    """Change what an outcome is, how it ranks, what it is for and what it waits for."""
    row = require_named_outcome(ctx, Action.OUTCOME_CHANGE, outcome)
    if version != row.version:
        raise Conflict(
            f"The outcome is at version {row.version} now.",
            "Look at it again and repeat the change with that version.",
            details={"version": row.version},
        )
    if row.status is not OutcomeStatus.OPEN:
        raise Conflict(f"The outcome is {row.status.value}.", "Reopen it first.")
    plain = {"title": title, "urgent": urgent, "important": important}
    changed: Arguments = {name: value for name, value in plain.items() if value is not None}
    if title is not None:
        documents.rename(ctx, row.id, title)
    if deferred_until is not None:
        changed["deferred_until"] = _deferral(deferred_until) if deferred_until else None
    new = replace(row, **changed)
    if deferred_until is not None:
        put_off = new.deferred_until is not None
        new = replace(new, look_at=new.deferred_until, look_for=Look.DEFERRAL if put_off else None)
    _update(ctx, new)
    if description is not None:
        file = lookup.document_of(ctx, row)
        changed["document_version"] = documents.rewrite(ctx, file, description).version
    if parents is not None:
        changed["parents"] = _change_parents(ctx, row, parents)
    if blocked_by is not None:
        changed["blocked_by"] = _change_blockers(ctx, row, blocked_by)
    circle = (
        cycles.told_of_prerequisites(ctx, new, ctx.tx.all(statements.BLOCKERS, outcome=row.id))
        if blocked_by
        else {}
    )
    waking.news(ctx, new, "an outcome was changed")
    if new.perpetual and new.owner_id != ctx.actor.agent_id:
        approval_engine.tell(
            ctx,
            f"agent:{new.owner_id}",
            f"Changed: {new.title}",
            f"{ctx.actor.name} changed {new.title!r} (outcome:{new.id}), which is yours: "
            f"{', '.join(sorted(changed)).replace('_', ' ') or 'nothing'}.",
            outcome=new.id,
        )
    if deferred_until and waking.is_own(ctx, row.owner_id):
        after_run.put_off_by_owner(ctx, new)
    ctx.record("outcome.change", f"outcome:{row.id}", changed)
    return {**views.outcome(lookup.known_outcome(ctx, row.id), ctx.now), **circle}


def rename(ctx: Context, outcome: Outcome, title: object, field: str) -> Outcome:
    """Change the title of an outcome that nobody works on yet."""
    new = replace(outcome, title=clean_line(title, field, longest=LONGEST_TITLE))
    if new != outcome:
        documents.rename(ctx, outcome.id, new.title)
        _update(ctx, new)
        ctx.record("outcome.change", f"outcome:{outcome.id}", {"title": new.title})
    return new


def _update(ctx: Context, new: Outcome) -> None:
    values = renewed(new, version=new.version + 1)
    ctx.tx.run(statements.UPDATE_OUTCOME, outcome=new.id, seen_version=new.version, **values)


@command(
    "outcomes.complete",
    AsTool(
        "outcome_complete",
        "Say that an outcome of yours is accomplished, or accept what a report handed in. Your "
        "own mandate: outcome_submit.",
        id="outcome",
    ),
    AsRoute("POST /outcomes/{id}/complete", "complete_outcome"),
    AsCommand(
        "outcome complete",
        "Complete an outcome; for a mandate, its agent is shut down.",
        said="{title}: completed.",
    ),
    AsCommand(
        "outcome accept",
        "Accept a submission; for a mandate, its agent is shut down. `reopen` takes it back.",
        said="{title}: completed.",
        without=("evidence",),
    ),
)
def complete(
    ctx: Context,
    *,
    outcome: OutcomeRef,
    evidence: Evidence = (),
    note: Annotated[Remark, Help("Note to remember with it.")] = "",
) -> shapes.CompletedOutcomeShape:
    """Say that an outcome is accomplished, and on what evidence."""
    row = require_named_outcome(ctx, Action.OUTCOME_FINISH, outcome)
    if row.perpetual:
        raise Conflict(
            "A perpetual outcome is never completed.", "Close it if it is not wanted any more."
        )
    if row.open_prereqs and not row.delegated:
        raise Conflict(
            f"It still waits for {plural(row.open_prereqs, 'open outcome')}.",
            "Complete or close what is below it first.",
        )
    shown = submissions.evidence(ctx, _unique(evidence))
    require_outcome(ctx, Action.OUTCOME_FINISH, row)
    handed_in = submissions.close(ctx, row, SubmissionStatus.ACCEPTED, note)
    if handed_in is not None and not shown:
        shown = json.loads(handed_in.evidence)
    gone = outcome_ending.finish_tree(ctx, row, OutcomeStatus.COMPLETED, note, shown)
    if handed_in is not None:
        approval_engine.tell(
            ctx,
            f"agent:{row.owner_id}",
            f"Accepted: {row.title}",
            f"{ctx.actor.name} accepted what you handed in for {row.title!r}.\n\n{note}",
            to_know=True,
            outcome=row.id,
        )
    return {
        **views.outcome(lookup.known_outcome(ctx, row.id), ctx.now),
        "agents_ended": [{"id": agent.id, "name": agent.name} for agent in gone],
    }


@command(
    "outcomes.close",
    AsTool("outcome_close", "Give an outcome up and say why.", id="outcome"),
    AsRoute("POST /outcomes/{id}/close", "close_outcome"),
    AsCommand(
        "outcome close",
        "End an outcome that is not wanted any more, and say why.",
        said="{title}: closed.",
        examples=('remit outcome close "Translate the page" "Nobody reads it."',),
    ),
)
def close(
    ctx: Context,
    *,
    outcome: OutcomeRef,
    rationale: Annotated[Reason, Help("Why it will not be done", model=True)],
) -> shapes.OutcomeShape:
    """Give an outcome up, and say why; the reason stays in its document."""
    row = require_named_outcome(ctx, Action.OUTCOME_FINISH, outcome)
    outcome_ending.finish_tree(ctx, row, OutcomeStatus.CLOSED, rationale)
    return views.outcome(lookup.known_outcome(ctx, row.id), ctx.now)


@command(
    "outcomes.reopen",
    AsTool("outcome_reopen", id="outcome"),
    AsRoute("POST /outcomes/{id}/reopen", "reopen_outcome"),
    AsCommand("outcome reopen", said="{title}: open again."),
)
def reopen(
    ctx: Context, *, outcome: OutcomeRef, note: Annotated[Remark, Help("Why.")] = ""
) -> shapes.ReopenedOutcomeShape:
    """Undo a completion or closure.

    Everybody who could judge can do that; the agents that ended because it was accepted come back.
    """
    row = require_named_outcome(ctx, Action.OUTCOME_FINISH, outcome)
    if row.status is OutcomeStatus.OPEN:
        raise Conflict("The outcome is open.")
    above = ctx.tx.all(statements.PARENTS, outcome=row.id)
    if above and all(parent.status is not OutcomeStatus.OPEN for parent in above):
        raise Conflict("The outcome that it is for is finished.", "Reopen its parent first.")
    restored = acceptance_undo.take_back(ctx, row)
    ctx.record(
        "outcome.reopen",
        f"outcome:{row.id}",
        {"note": note, "was": row.status.value, **restored.as_dict()},
    )
    if restored.has(row.owner_id):
        approval_engine.tell(
            ctx,
            f"agent:{row.owner_id}",
            f"Reopened: {row.title}",
            f"{ctx.actor.name} took the acceptance of {row.title!r} back, so you work again.\n\n"
            f"{note}",
            outcome=row.id,
        )
    return {**views.outcome(lookup.known_outcome(ctx, row.id), ctx.now), **restored.as_dict()}


@query(
    "outcomes.show",
    AsTool(
        "outcome_view",
        "One outcome: why, how, owner, history, and whether it can be worked on.",
        id="outcome",
    ),
    AsRoute("GET /outcomes/{id}", "show_outcome"),
)
def show(ctx: Context, *, outcome: OutcomeRef) -> shapes.OutcomeInFullShape:
    """An outcome with what it is for, what it consists of, and what happened to it."""
    row = require_named_outcome(ctx, Action.OUTCOME_READ, outcome)
    happened = ctx.tx.all(
        event_log.NEWEST_ON, resource=f"outcome:{row.id}", limit=MOST_HISTORY_SHOWN
    )
    hired = lookup.agent_row(ctx, row.id)
    return {
        **_view(ctx, row, hired),
        "submissions": submissions.shown(ctx, row),
        "waits": [waits.view(ctx, wait) for wait in waits.of_outcome(ctx, row.id)],
        "would_end": _would_end(ctx, row),
        "description": documents.prose(ctx, row.id),
        "parents": _briefly(ctx.tx.all(statements.PARENTS, outcome=row.id)),
        "children": _briefly(
            ctx.tx.all(statements.CHILDREN, outcome=row.id, limit=MOST_CHILDREN_SHOWN)
        ),
        "blocked_by": _briefly(ctx.tx.all(statements.BLOCKERS, outcome=row.id)),
        "history": [views.happening(event) for event in happened],
        "wish": _wish(ctx, row),
    }


def _wish(ctx: Context, outcome: Outcome) -> shapes.OriginShape | None:
    """Return the letter that an outcome came of, for people."""
    letter = origins.of_outcome(ctx, outcome.id) if ctx.actor.kind is ActorKind.USER else None
    message = None if letter is None else lookup.message_row(ctx, letter)
    return None if message is None else {"message_id": message.id, "subject": message.subject}


def _would_end(ctx: Context, outcome: Outcome) -> list[shapes.NamedShape]:
    """Return the agents that end when the outcome is accepted or closed."""
    if not outcome.delegated or outcome.status is not OutcomeStatus.OPEN:
        return []
    return [
        {"id": agent.id, "name": agent.name} for agent in outcome_ending.would_end(ctx, outcome)
    ]


@query(
    "outcomes.history", AsRoute("GET /outcomes/{id}/history", "list_outcome_history", page="seq")
)
def history(
    ctx: Context, *, outcome: OutcomeRef, before: int, limit: int = 100
) -> list[shapes.NumberedHappeningShape]:
    """Events of an outcome, newest first."""
    row = require_named_outcome(ctx, Action.OUTCOME_READ, outcome)
    happened = ctx.tx.all(
        event_log.ON_BEFORE,
        resource=f"outcome:{row.id}",
        before=before,
        refused_too=True,
        limit=limit,
    )
    return [{**views.happening(event), "seq": event.seq} for event in happened]


@query(
    "outcomes.listing",
    Added("stale", False),
    # The HTTP list can also be searched, by another verb, so its route is written by hand.
    AsTool(
        "outcome_list",
        "Your outcomes, with ids. The parts of one: outcome_subtree.",
        without=("company", "stale", "roots"),
        answer="outcomes",
    ),
)
def listing(
    ctx: Context,
    *,
    company: CompanyRef | None = None,
    owner: OfAnother | None = None,
    status: Annotated[str, OutcomeStatus] | None = None,
    actionable: Annotated[bool, Help("Only what can be worked on now", model=True)] = False,
    stale: bool = False,
    roots: bool = False,
    after: After = "",
    limit: Limit = 100,
) -> list[shapes.OutcomeShape]:
    """An agent's outcomes (the caller's own by default), or a company's for the board.

    With `roots`, only what is part of nothing else; with `stale`, only what does not move although
    it was looked at again and again.
    """
    lookup.company_of_caller(ctx, company)
    whose = lookup.agent(ctx, owner).id if owner else ctx.actor.agent_id
    require_outcomes_of(ctx, whose)
    if actionable:
        if whose is None:
            raise BadInput("Whose actionable outcomes?", "Name the owner.")
        outcomes = ctx.tx.all(statements.ACTIONABLE, owner=whose, limit=limit)
    elif stale:
        outcomes = ctx.tx.all(
            due.STALE, owner=whose, reviews=len(after_run.reviews_of(ctx)), after=after, limit=limit
        )
    else:
        outcomes = ctx.tx.all(
            statements.OUTCOMES,
            after=after,
            owner=whose,
            status=status,
            parts_too=not roots,
            limit=limit,
        )
    hired = {agent.id: agent for agent in ctx.tx.all(agent_statements.AWAITING_APPROVAL)}
    return [_view(ctx, outcome, hired.get(AgentId(outcome.id))) for outcome in outcomes]


def _view(ctx: Context, outcome: Outcome, hired: Agent | None) -> shapes.OutcomeShape:
    """View of an outcome; one with a pending hire is not actionable until that is decided."""
    view = views.outcome(outcome, ctx.now)
    if view["actionable"] and hired is not None and hired.status is AgentStatus.PENDING_APPROVAL:
        why = f"it waits for the approval of {hired.name}, who is to do it"
        view |= {"actionable": False, "why_not_actionable": why}
    return view


def _require_open_parent(ctx: Context, text: str) -> Outcome:
    """Return an open outcome below which the caller may create; refuses otherwise."""
    parent = require_named_outcome(ctx, Action.OUTCOME_CREATE, text)
    if parent.status is not OutcomeStatus.OPEN:
        raise Conflict(f"The parent is {parent.status.value}.", "Choose an open outcome.")
    return parent


def _add_edge(ctx: Context, parent: Outcome, child: Outcome) -> None:
    _refuse_cycle(ctx, child.id, parent.id)
    _insert_edge(ctx, parent, child)
    if child.status is OutcomeStatus.OPEN:
        ctx.tx.run(statements.COUNT_PREREQS, outcome=parent.id, step=1)


def _insert_edge(ctx: Context, parent: Outcome, child: Outcome) -> None:
    ctx.tx.run(
        statements.INSERT_EDGE, company_id=ctx.company, parent_id=parent.id, child_id=child.id
    )


def _add_blocker(ctx: Context, outcome: Outcome, blocker: Outcome) -> None:
    require_outcome(ctx, Action.OUTCOME_READ, blocker)
    if blocker.kind is OutcomeKind.INBOX:
        raise BadInput("An inbox is never done for good.", "Wait for an outcome instead.")
    _refuse_cycle(ctx, blocker.id, outcome.id)
    ctx.tx.run(
        statements.INSERT_BLOCKER,
        company_id=ctx.company,
        outcome_id=outcome.id,
        blocker_id=blocker.id,
    )
    if blocker.status is OutcomeStatus.OPEN:
        ctx.tx.run(statements.COUNT_PREREQS, outcome=outcome.id, step=1)


def connect(ctx: Context, parent: str, child: str) -> None:
    """Make one outcome a part of another."""
    _add_edge(ctx, lookup.known_outcome(ctx, parent), lookup.known_outcome(ctx, child))


def disconnect(ctx: Context, parent: str, child: str) -> None:
    ctx.tx.run(statements.DELETE_EDGE, parent=parent, child=child)
    if lookup.known_outcome(ctx, child).status is OutcomeStatus.OPEN:
        ctx.tx.run(statements.COUNT_PREREQS, outcome=parent, step=-1)
        freed = lookup.known_outcome(ctx, parent)
        waking.acted(ctx, freed.owner_id)
        waking.news(ctx, freed, "it waits for less")


def has_edge(ctx: Context, parent: str, child: str) -> bool:
    return any(row.id == parent for row in ctx.tx.all(statements.PARENTS, outcome=child))


def insert_below(ctx: Context, outcome: Outcome, new: Outcome) -> None:
    """Insert an outcome between another and those of its open parts that have the same owner."""
    for child in ctx.tx.all(statements.CHILDREN, outcome=outcome.id, limit=MOST_CHILDREN_MOVED):
        if child.status is OutcomeStatus.OPEN and child.owner_id == outcome.owner_id:
            ctx.tx.run(statements.DELETE_EDGE, parent=outcome.id, child=child.id)
            ctx.tx.run(statements.COUNT_PREREQS, outcome=outcome.id, step=-1)
            _add_edge(ctx, new, child)
    _add_edge(ctx, outcome, new)


def _refuse_cycle(ctx: Context, part: str, whole: str) -> None:
    """Refuse to let `whole` depend on `part` if that closes a cycle. Commands of a company are
    serial, so no other transaction can close one at the same time."""
    if ctx.tx.one(statements.DEPENDS_ON, outcome=part, other=whole) is not None:
        raise Conflict(
            "Each would wait for the other.", "Choose another parent or blocker.", code="cycle"
        )


def _change_parents(ctx: Context, outcome: Outcome, wanted: Sequence[str]) -> list[str]:
    if not wanted and not outcome.delegated:
        raise BadInput("An outcome needs a reason.", "Name at least one parent.")
    before = _by_id(ctx.tx.all(statements.PARENTS, outcome=outcome.id))
    after = _named(ctx, wanted)
    for gone in before.keys() - after.keys():
        ctx.tx.run(statements.DELETE_EDGE, parent=gone, child=outcome.id)
        ctx.tx.run(statements.COUNT_PREREQS, outcome=gone, step=-1)
        waking.acted(ctx, before[gone].owner_id)
        waking.news(ctx, before[gone], "it waits for less")
    for new in after.keys() - before.keys():
        _add_edge(ctx, _require_open_parent(ctx, new), outcome)
    return sorted(after)


def _change_blockers(ctx: Context, outcome: Outcome, wanted: Sequence[str]) -> list[str]:
    before = _by_id(ctx.tx.all(statements.BLOCKERS, outcome=outcome.id))
    after = _named(ctx, wanted)
    for gone in before.keys() - after.keys():
        ctx.tx.run(statements.DELETE_BLOCKER, outcome=outcome.id, blocker=gone)
        if before[gone].status is OutcomeStatus.OPEN:
            ctx.tx.run(statements.COUNT_PREREQS, outcome=outcome.id, step=-1)
    for new in after.keys() - before.keys():
        _add_blocker(ctx, outcome, after[new])
    return sorted(after)


def _briefly(outcomes: Iterable[Outcome]) -> list[shapes.BriefOutcomeShape]:
    return [views.brief_outcome(outcome) for outcome in outcomes]


def _unique(texts: Sequence[str]) -> list[str]:
    if len(texts) > MOST_PARENTS:
        raise BadInput(f"At most {MOST_PARENTS} at once.", "Group them under another outcome.")
    return list(dict.fromkeys(texts))


def _named(ctx: Context, texts: Sequence[str]) -> dict[OutcomeId, Outcome]:
    return _by_id(lookup.find(ctx, OUTCOME, text) for text in _unique(texts))


def _by_id(outcomes: Iterable[Outcome]) -> dict[OutcomeId, Outcome]:
    return {outcome.id: outcome for outcome in outcomes}


def _deferral(text: object) -> Micros | None:
    return None if text is None else given_time(text, "deferred_until")
