"""Outcomes: create, look, change, finish, reopen. Handing over is in `delegation.py`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from remit.authority import Action
from remit.clock import Micros, from_iso
from remit.errors import BadInput, Conflict
from remit.ids import AgentId
from remit.model.agent import Agent, AgentStatus
from remit.model.outcome import (
    LONGEST_DESCRIPTION,
    LONGEST_TITLE,
    MOST_PARENTS,
    Look,
    Outcome,
    OutcomeKind,
    OutcomeStatus,
)
from remit.model.principal import ActorKind
from remit.model.text import LONGEST_REASON, clean_line, clean_text
from remit.model.wait import SubmissionStatus
from remit.services import (
    approval_engine,
    cycles,
    documents,
    finishing,
    going_on,
    lookup,
    origins,
    restoring,
    submissions,
    tree,
    views,
    waits,
    waking,
)
from remit.services.command import Answer, Context, command, query
from remit.services.opening import open_outcome, write_document
from remit.services.verbs import Added
from remit.store import agents as agent_statements
from remit.store import due
from remit.store import events as event_log
from remit.store import outcomes as statements

MOST_CHILDREN_SHOWN = 500
MOST_CHILDREN_MOVED = 100_000
MOST_HISTORY_SHOWN = 200


@command("outcomes.create")
def create(
    ctx: Context,
    *,
    parent: str,
    title: object,
    company: str | None = None,
    description: object = "",
    parents: Sequence[str] = (),
    blocked_by: Sequence[str] = (),
    urgent: bool = False,
    important: bool = False,
    deferred_until: object = None,
    new_id: str | None = None,
    new_stored: documents.Stored | None = None,
) -> Answer:
    """A part of an outcome; whoever owns that owns the part."""
    title = clean_line(title, "title", longest=LONGEST_TITLE)
    text = clean_text(description, "description", longest=LONGEST_DESCRIPTION, empty_ok=True)
    if company is not None:
        lookup.company_of_caller(ctx, company)
    above = _each([_open_parent(ctx, other) for other in _unique([parent, *parents])])
    owner = above[0].owner_id
    tree.check_assignable(ctx, owner)
    outcome = open_outcome(
        ctx,
        title=title,
        owner=owner,
        new_id=new_id,
        urgent=urgent,
        important=important,
        deferred_until=_time(deferred_until),
        origin=origins.for_part(ctx, above),
    )
    write_document(ctx, outcome, text, new_stored)
    for reason in above:
        _add_edge(ctx, reason, outcome)
    waits_for = _each([lookup.outcome_anywhere(ctx, other) for other in _unique(blocked_by)])
    for other in waits_for:
        _add_blocker(ctx, outcome, other)
    waking.news(ctx, outcome, "an outcome was created")
    for reason in above:
        waking.moved(ctx, reason)
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
    return {**views.outcome(require(ctx, outcome.id), ctx.now), **circle}


@command("outcomes.change")
def change(
    ctx: Context,
    *,
    outcome: str,
    version: object,
    title: object = None,
    description: object = None,
    urgent: bool | None = None,
    important: bool | None = None,
    deferred_until: object = None,
    parents: Sequence[str] | None = None,
    blocked_by: Sequence[str] | None = None,
) -> Answer:
    """Change what an outcome is, how it ranks, what it is for and what it waits for."""
    found = lookup.outcome_anywhere(ctx, outcome)
    lookup.require_outcome(ctx, Action.OUTCOME_CHANGE, found)
    if version != found.version:
        raise Conflict(
            f"The outcome is at version {found.version} now.",
            "Look at it again and repeat the change with that version.",
            details={"version": found.version},
        )
    if found.status is not OutcomeStatus.OPEN:
        raise Conflict(f"The outcome is {found.status.value}.", "Reopen it first.")
    changed: dict[str, Any] = {}
    if title is not None:
        changed["title"] = clean_line(title, "title", longest=LONGEST_TITLE)
        documents.rename(ctx, found.id, changed["title"])
    if urgent is not None:
        changed["urgent"] = urgent
    if important is not None:
        changed["important"] = important
    if deferred_until is not None:
        changed["deferred_until"] = _time(deferred_until) if deferred_until else None
    new = replace(found, **changed)
    if deferred_until is not None:
        put_off = new.deferred_until is not None
        new = replace(new, look_at=new.deferred_until, look_for=Look.DEFERRAL if put_off else None)
    ctx.tx.run(
        statements.UPDATE_OUTCOME,
        outcome=found.id,
        seen_version=found.version,
        new_title=new.title,
        new_urgent=new.urgent,
        new_important=new.important,
        new_deferred_until=new.deferred_until,
        new_look_at=new.look_at,
        new_look_for=new.look_for,
        new_version=found.version + 1,
        now=ctx.now,
    )
    if description is not None:
        text = clean_text(description, "description", longest=LONGEST_DESCRIPTION, empty_ok=True)
        file = lookup.document_of(ctx, found)
        changed["document_version"] = documents.rewrite(ctx, file, text).version
    if parents is not None:
        changed["parents"] = _change_parents(ctx, found, parents)
    if blocked_by is not None:
        changed["blocked_by"] = _change_blockers(ctx, found, blocked_by)
    circle = (
        cycles.told_of_prerequisites(ctx, new, ctx.tx.all(statements.BLOCKERS, outcome=found.id))
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
        )
    if deferred_until and waking.is_own(ctx, found.owner_id):
        going_on.put_off_by_owner(ctx, new)
    ctx.record("outcome.change", f"outcome:{found.id}", changed)
    return {**views.outcome(require(ctx, found.id), ctx.now), **circle}


@command("outcomes.complete")
def complete(
    ctx: Context, *, outcome: str, evidence: Sequence[str] = (), note: object = ""
) -> Answer:
    """Say that an outcome is accomplished, and on what evidence."""
    text = clean_text(note, "note", longest=LONGEST_REASON, empty_ok=True)
    found = lookup.outcome_anywhere(ctx, outcome)
    lookup.require_outcome(ctx, Action.OUTCOME_FINISH, found)
    if found.perpetual:
        raise Conflict(
            "A perpetual outcome is never completed.", "Close it if it is not wanted any more."
        )
    if found.open_prereqs and not found.delegated:
        raise Conflict(
            f"It still waits for {found.open_prereqs} open outcomes.",
            "Complete or close what is below it first.",
        )
    shown = submissions.evidence(ctx, _unique(evidence))
    lookup.require_outcome(ctx, Action.OUTCOME_FINISH, found)
    handed_in = submissions.close(ctx, found, SubmissionStatus.ACCEPTED, text)
    if handed_in is not None and not shown:
        shown = json.loads(handed_in.evidence)
    gone = finishing.finish_tree(ctx, found, OutcomeStatus.COMPLETED, text, shown)
    if handed_in is not None:
        approval_engine.tell(
            ctx,
            f"agent:{found.owner_id}",
            f"Accepted: {found.title}",
            f"{ctx.actor.name} accepted what you handed in for {found.title!r}.\n\n{text}",
        )
    return {
        **views.outcome(require(ctx, found.id), ctx.now),
        "agents_ended": [{"id": agent.id, "name": agent.name} for agent in gone],
    }


@command("outcomes.close")
def close(ctx: Context, *, outcome: str, rationale: object) -> Answer:
    """Give an outcome up, and say why; the reason stays in its document."""
    text = clean_text(rationale, "rationale", longest=LONGEST_REASON)
    found = lookup.outcome_anywhere(ctx, outcome)
    lookup.require_outcome(ctx, Action.OUTCOME_FINISH, found)
    finishing.finish_tree(ctx, found, OutcomeStatus.CLOSED, text)
    return views.outcome(require(ctx, found.id), ctx.now)


@command("outcomes.reopen")
def reopen(ctx: Context, *, outcome: str, note: object = "") -> Answer:
    """Take a judgement back; whoever could make it can do that.

    The agents that ended because it was accepted come back with it.
    """
    text = clean_text(note, "note", longest=LONGEST_REASON, empty_ok=True)
    found = lookup.outcome_anywhere(ctx, outcome)
    lookup.require_outcome(ctx, Action.OUTCOME_FINISH, found)
    if found.status is OutcomeStatus.OPEN:
        raise Conflict("The outcome is open.")
    above = ctx.tx.all(statements.PARENTS, outcome=found.id)
    if above and all(parent.status is not OutcomeStatus.OPEN for parent in above):
        raise Conflict("What it is for is finished.", "Reopen its parent first.")
    restored = restoring.take_back(ctx, found)
    ctx.record(
        "outcome.reopen",
        f"outcome:{found.id}",
        {"note": text, "was": found.status.value, **restored.as_dict()},
    )
    if restored.has(found.owner_id):
        approval_engine.tell(
            ctx,
            f"agent:{found.owner_id}",
            f"Reopened: {found.title}",
            f"{ctx.actor.name} took the acceptance of {found.title!r} back, so you work again.\n\n"
            f"{text}",
        )
    return {**views.outcome(require(ctx, found.id), ctx.now), **restored.as_dict()}


@query("outcomes.show")
def show(ctx: Context, *, outcome: str) -> dict[str, Any]:
    """An outcome with what it is for, what it consists of, and what happened to it."""
    found = lookup.outcome_anywhere(ctx, outcome)
    lookup.require_outcome(ctx, Action.OUTCOME_READ, found)
    happened = ctx.tx.all(
        event_log.NEWEST_ON,
        company=ctx.company,
        resource=f"outcome:{found.id}",
        limit=MOST_HISTORY_SHOWN,
    )
    hired = lookup.agent_row(ctx, found.id)
    return {
        **_view(ctx, found, hired),
        "submissions": submissions.shown(ctx, found),
        "waits": [waits.view(ctx, one) for one in waits.of_outcome(ctx, found.id)],
        "would_end": _would_end(ctx, found),
        "description": documents.prose(ctx, found.id),
        "parents": _briefly(ctx.tx.all(statements.PARENTS, outcome=found.id)),
        "children": _briefly(
            ctx.tx.all(statements.CHILDREN, outcome=found.id, limit=MOST_CHILDREN_SHOWN)
        ),
        "blocked_by": _briefly(ctx.tx.all(statements.BLOCKERS, outcome=found.id)),
        "history": [views.happening(event) for event in happened],
        "wish": _wish(ctx, found),
    }


def _wish(ctx: Context, outcome: Outcome) -> dict[str, Any] | None:
    """For people: the letter that led to it."""
    letter = origins.of_outcome(ctx, outcome.id) if ctx.actor.kind is ActorKind.USER else None
    found = None if letter is None else lookup.message_row(ctx, letter)
    return None if found is None else {"message_id": found.id, "subject": found.subject}


def _would_end(ctx: Context, outcome: Outcome) -> list[dict[str, Any]]:
    """The agents that end when it is accepted or closed."""
    if not outcome.delegated or outcome.status is not OutcomeStatus.OPEN:
        return []
    return [{"id": one.id, "name": one.name} for one in finishing.would_end(ctx, outcome)]


@query("outcomes.history")
def history(ctx: Context, *, outcome: str, before: int, limit: int = 100) -> list[dict[str, Any]]:
    """What happened to an outcome, newest first."""
    found = lookup.outcome_anywhere(ctx, outcome)
    lookup.require_outcome(ctx, Action.OUTCOME_READ, found)
    happened = ctx.tx.all(
        event_log.ON_BEFORE,
        company=ctx.company,
        resource=f"outcome:{found.id}",
        before=before,
        refused_too=True,
        limit=limit,
    )
    return [{**views.happening(event), "seq": event.seq} for event in happened]


@query("outcomes.listing", Added("stale", False))
def listing(
    ctx: Context,
    *,
    company: str | None = None,
    owner: str | None = None,
    status: str | None = None,
    actionable: bool = False,
    stale: bool = False,
    roots: bool = False,
    after: str = "",
    limit: int = 100,
) -> list[dict[str, Any]]:
    """An agent's outcomes (the caller's own by default), or a company's for the board.

    With `roots`, only what is part of nothing else; with `stale`, only what does not move although
    it was looked at again and again.
    """
    lookup.company_of_caller(ctx, company)
    if status is not None and status not in set(OutcomeStatus):
        raise BadInput("status must be open, completed or closed.", "Choose one of these.")
    whose = lookup.agent(ctx, owner).id if owner else ctx.actor.agent_id
    if ctx.actor.agent_id is None:
        # Looking, so observers may; whoever has a part of the company names an owner in it.
        ctx.require(Action.OUTCOME_READ, on="outcomes", home=whose)
    elif whose != ctx.actor.agent_id:
        ctx.require(Action.AGENT_CONTROL, on=f"agent:{whose}", place=ctx.place(whose))
    else:
        ctx.require(Action.COMPANY_READ, on="outcomes")
    if actionable:
        if whose is None:
            raise BadInput("Whose actionable outcomes?", "Name the owner.")
        found = ctx.tx.all(statements.ACTIONABLE, owner=whose, now=ctx.now, limit=limit)
    elif stale:
        found = ctx.tx.all(
            due.STALE,
            company=ctx.company,
            owner=whose or "",
            any_owner=whose is None,
            reviews=len(going_on.reviews_of(ctx)),
            after=after,
            limit=limit,
        )
    else:
        found = ctx.tx.all(
            statements.OUTCOMES,
            company=ctx.company,
            after=after,
            owner=whose or "",
            any_owner=whose is None,
            status=status or "",
            any_status=status is None,
            parts_too=not roots,
            limit=limit,
        )
    hired = {
        agent.id: agent
        for agent in ctx.tx.all(agent_statements.AWAITING_APPROVAL, company=ctx.company)
    }
    return [_view(ctx, one, hired.get(AgentId(one.id))) for one in found]


def _view(ctx: Context, outcome: Outcome, hired: Agent | None) -> dict[str, Any]:
    """An outcome for which somebody is to be hired waits for that decision."""
    view = views.outcome(outcome, ctx.now)
    if view["actionable"] and hired is not None and hired.status is AgentStatus.PENDING_APPROVAL:
        why = f"it waits for the approval of {hired.name}, who is to do it"
        view |= {"actionable": False, "why_not_actionable": why}
    return view


def _open_parent(ctx: Context, text: str) -> Outcome:
    """An outcome below which the caller may create; deciding, or ending the call."""
    parent = lookup.outcome_anywhere(ctx, text)
    lookup.require_outcome(ctx, Action.OUTCOME_CREATE, parent)
    if parent.status is not OutcomeStatus.OPEN:
        raise Conflict(f"The parent is {parent.status.value}.", "Choose an open outcome.")
    return parent


def _add_edge(ctx: Context, parent: Outcome, child: Outcome) -> None:
    _refuse_cycle(ctx, child.id, parent.id)
    ctx.tx.run(
        statements.INSERT_EDGE, company_id=ctx.company, parent_id=parent.id, child_id=child.id
    )
    if child.status is OutcomeStatus.OPEN:
        ctx.tx.run(statements.COUNT_PREREQS, outcome=parent.id, step=1)


def _add_blocker(ctx: Context, outcome: Outcome, blocker: Outcome) -> None:
    lookup.require_outcome(ctx, Action.OUTCOME_READ, blocker)
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


def require(ctx: Context, outcome: str) -> Outcome:
    """An outcome that is known to exist."""
    found = ctx.tx.one(statements.OUTCOME, company=ctx.company, outcome=outcome)
    assert found is not None, "outcomes are never deleted"
    return found


def connect(ctx: Context, parent: str, child: str) -> None:
    """Make one outcome a part of another."""
    _add_edge(ctx, require(ctx, parent), require(ctx, child))


def disconnect(ctx: Context, parent: str, child: str) -> None:
    ctx.tx.run(statements.DELETE_EDGE, parent=parent, child=child)
    if require(ctx, child).status is OutcomeStatus.OPEN:
        ctx.tx.run(statements.COUNT_PREREQS, outcome=parent, step=-1)
        waking.news(ctx, require(ctx, parent), "it waits for less")


def has_edge(ctx: Context, parent: str, child: str) -> bool:
    return any(found.id == parent for found in ctx.tx.all(statements.PARENTS, outcome=child))


def insert_below(ctx: Context, outcome: Outcome, new: Outcome) -> None:
    """Put an outcome between another and those of its open parts that have the same owner."""
    for child in ctx.tx.all(statements.CHILDREN, outcome=outcome.id, limit=MOST_CHILDREN_MOVED):
        if child.status is OutcomeStatus.OPEN and child.owner_id == outcome.owner_id:
            ctx.tx.run(statements.DELETE_EDGE, parent=outcome.id, child=child.id)
            ctx.tx.run(statements.COUNT_PREREQS, outcome=outcome.id, step=-1)
            _add_edge(ctx, new, child)
    _add_edge(ctx, outcome, new)


def _refuse_cycle(ctx: Context, part: str, whole: str) -> None:
    """Before `whole` comes to depend on `part`. The writing transaction sees every other one."""
    if (
        ctx.tx.one(statements.DEPENDS_ON, company=ctx.company, outcome=part, other=whole)
        is not None
    ):
        raise Conflict(
            "Each would wait for the other.", "Choose another parent or blocker.", code="cycle"
        )


def _change_parents(ctx: Context, outcome: Outcome, wanted: Sequence[str]) -> list[str]:
    if not wanted and not outcome.delegated:
        raise BadInput("An outcome needs a reason.", "Name at least one parent.")
    before = {parent.id: parent for parent in ctx.tx.all(statements.PARENTS, outcome=outcome.id)}
    after = {
        found.id: found
        for found in (lookup.outcome_anywhere(ctx, text) for text in _unique(wanted))
    }
    for gone in before.keys() - after.keys():
        ctx.tx.run(statements.DELETE_EDGE, parent=gone, child=outcome.id)
        ctx.tx.run(statements.COUNT_PREREQS, outcome=gone, step=-1)
        waking.news(ctx, before[gone], "it waits for less")
    for new in after.keys() - before.keys():
        _add_edge(ctx, _open_parent(ctx, new), outcome)
    return sorted(after)


def _change_blockers(ctx: Context, outcome: Outcome, wanted: Sequence[str]) -> list[str]:
    before = {
        blocker.id: blocker for blocker in ctx.tx.all(statements.BLOCKERS, outcome=outcome.id)
    }
    after = {
        found.id: found
        for found in (lookup.outcome_anywhere(ctx, text) for text in _unique(wanted))
    }
    for gone in before.keys() - after.keys():
        ctx.tx.run(statements.DELETE_BLOCKER, outcome=outcome.id, blocker=gone)
        if before[gone].status is OutcomeStatus.OPEN:
            ctx.tx.run(statements.COUNT_PREREQS, outcome=outcome.id, step=-1)
    for new in after.keys() - before.keys():
        _add_blocker(ctx, outcome, after[new])
    return sorted(after)


def _briefly(found: Iterable[Outcome]) -> list[dict[str, Any]]:
    return [
        {
            "id": outcome.id,
            "title": outcome.title,
            "status": outcome.status.value,
            "owner_id": outcome.owner_id,
        }
        for outcome in found
    ]


def _unique(texts: Sequence[str]) -> list[str]:
    if len(texts) > MOST_PARENTS:
        raise BadInput(f"At most {MOST_PARENTS} at once.", "Group them under another outcome.")
    return list(dict.fromkeys(texts))


def _each(found: Iterable[Outcome]) -> list[Outcome]:
    """Every outcome once, however it was named."""
    return list({outcome.id: outcome for outcome in found}.values())


def _time(text: object) -> Micros | None:
    if text is None:
        return None
    if not isinstance(text, str):
        raise BadInput("deferred_until must be a time.", "Write it like 2026-05-01T09:00:00Z.")
    return from_iso(text)
