"""Withdrawal of a wish, with everything made of it that has no other reason.

A part stays if it has another reason: another letter, an open parent outside the wish, or an owner
with other work. Agents that worked on the rest are told.
"""

import json
from collections.abc import Iterable
from typing import Any, cast

from remit.authority import Action
from remit.errors import Conflict
from remit.ids import END_OF_IDS, AgentId, ApprovalId
from remit.model.execution.run import Run, RunStatus
from remit.model.messaging.mail import DeliveryStatus, Message
from remit.model.messaging.question import QuestionStatus
from remit.model.organisation.agent import Agent, AgentStatus
from remit.model.organisation.approval import OPEN, ApprovalType
from remit.model.organisation.principal import ActorKind
from remit.model.work.outcome import Outcome, OutcomeKind, OutcomeStatus
from remit.services import lookup, shapes, views
from remit.services.command import Context, command
from remit.services.execution import jobs, run_endings
from remit.services.governance import approval_engine
from remit.services.messaging import answering, inbox, letters, pending_items, wishes
from remit.services.verbs import preview_of
from remit.services.work import outcome_ending
from remit.store.execution import runs as run_statements
from remit.store.messaging import mail as mail_statements
from remit.store.organisation import agents as agent_statements
from remit.store.organisation import governance
from remit.store.work import outcomes as outcome_statements
from remit.store.work import wishes as statements

TAKEN_BACK = "taken back"


@command("wishes.cancel")
def cancel(ctx: Context, *, message: str) -> shapes.TakenBackShape:
    """Withdraw a wish, as its author or as a person over its receiver."""
    letter = letters.require_reading(ctx, lookup.find(ctx, letters.MESSAGE, message))
    wish = ctx.tx.one(statements.WISH, message=letter.id)
    if wish is None:
        # Other mail has no wish; it can be cancelled until it is delivered.
        return {**_answer(letter.id), "jobs": [*pending_items.take_back(ctx, letter.id)["jobs"]]}
    _require(ctx, letter)
    if wish.ended_why == TAKEN_BACK:
        raise Conflict("It was taken back already.")
    ended = _answer(letter.id)
    closing, staying = _what_ends(ctx, letter)
    runs = _runs(ctx, letter, closing)
    told = _told(ctx, letter, closing)
    _end_letters(ctx, letter, ended)
    _end_runs(ctx, runs, ended)
    _end_questions(ctx, letter, ended)
    _end_approvals(ctx, letter, closing, ended)
    for job in ctx.tx.all(statements.UNFINISHED_JOBS_OF, message=letter.id):
        jobs.cancel_one(ctx, job)
        ended["jobs"].append({"id": job.id, "agent": lookup.name_of(ctx, job.agent_id)})
    gone = outcome_ending.close_all(ctx, closing, f"{_by(ctx)} took the wish back")
    ended["outcomes"] += [
        {"id": outcome.id, "title": outcome.title, "owner": lookup.name_of(ctx, outcome.owner_id)}
        for outcome in closing
    ]
    ended["agents"] += [{"id": agent.id, "name": agent.name} for agent in gone]
    ended["kept"] += [
        {"id": outcome.id, "title": outcome.title, "why": why} for outcome, why in staying
    ]
    wishes.end(ctx, letter.id, TAKEN_BACK)
    lists: Any = ended
    ctx.record(
        "wish.cancel",
        f"message:{letter.id}",
        {what: [entry["id"] for entry in lists[what]] for what in _ENDED},
    )
    _tell(ctx, letter, told - {agent.id for agent in gone}, ended)
    return ended


preview_cancel = preview_of("wishes.preview_cancel", cancel)
#: Kinds of what ends with a wish.
_ENDED = ("letters", "outcomes", "agents", "questions", "approvals", "jobs", "runs")


def _answer(message: str) -> shapes.TakenBackShape:
    """An empty report of what ends with a wish."""
    nothing: Any = {what: [] for what in (*_ENDED, "kept")}
    answer = {"id": message, "status": "cancelled", **nothing, "dry_run": False}
    return cast(shapes.TakenBackShape, answer)


def _require(ctx: Context, letter: Message) -> None:
    """Check that the caller is the author, or a person over the receiver: agents withdraw no wish
    of people."""
    on = f"message:{letter.id}"
    if letter.sender_user_id is not None and letter.sender_user_id == ctx.actor.id:
        ctx.allow_by_rule(views.OWN)
        return
    receiver = letter.address.removeprefix("agent:")
    place = ctx.boss_chain(receiver) if ctx.actor.kind is ActorKind.USER else ()
    ctx.require(Action.THREAD_CANCEL, on=on, home=receiver, place=place)


# ── what ends ───────────────────────────────────────────────────────────────────────────────────


def _what_ends(ctx: Context, letter: Message) -> tuple[list[Outcome], list[tuple[Outcome, str]]]:
    """Return the open outcomes made of a letter that end, with their parts, top down; and those
    that stay, each with its reason.

    What stays keeps its own parts. An agent with other work stays, so its mandate does.
    """
    roots = [
        outcome
        for outcome in ctx.tx.all(statements.OUTCOMES_OF, message=letter.id)
        if outcome.status is OutcomeStatus.OPEN
    ]
    candidates: dict[str, Outcome] = {}
    for root in roots:
        for part in outcome_ending.handed_on(ctx, root):
            if part.status is OutcomeStatus.OPEN and part.kind is OutcomeKind.WORK:
                candidates.setdefault(part.id, part)
    why: dict[str, str] = {}
    while changed := _newly_kept(ctx, letter, candidates, why):
        why |= changed
    closing = [outcome for outcome in candidates.values() if outcome.id not in why]
    staying = [(candidates[outcome_id], reason) for outcome_id, reason in why.items()]
    return closing, staying


def _newly_kept(
    ctx: Context, letter: Message, candidates: dict[str, Outcome], why: dict[str, str]
) -> dict[str, str]:
    reasons = {
        outcome_id: _other_reason(ctx, letter, outcome, candidates, why)
        for outcome_id, outcome in candidates.items()
        if outcome_id not in why
    }
    return {outcome_id: reason for outcome_id, reason in reasons.items() if reason is not None}


def _other_reason(
    ctx: Context,
    letter: Message,
    outcome: Outcome,
    candidates: dict[str, Outcome],
    why: dict[str, str],
) -> str | None:
    if outcome.origin_id not in (None, letter.id):
        return "another letter led to it"
    if outcome.origin_id is not None and ctx.tx.one(statements.IS_SHARED, message=letter.id):
        return "a run that also read another letter made it, and it may be about that one"
    own = outcome.origin_id == letter.id
    ending = candidates.keys() - why.keys()
    others = [
        parent
        for parent in ctx.tx.all(outcome_statements.PARENTS, outcome=outcome.id)
        if parent.status is OutcomeStatus.OPEN and parent.id not in ending
    ]
    # An outcome made of the letter has a parent in any case, usually its maker's mandate, which is
    # no reason to keep it.
    places = [parent for parent in others if own and str(parent.id) == parent.owner_id]
    for parent in others:
        if parent not in places or len(places) > 1:
            return f"it is also part of {parent.title!r}"
    if outcome.delegated and (agent := lookup.agent_row(ctx, outcome.id)) is not None:
        return _other_work(ctx, agent, ending)
    return None


def _other_work(ctx: Context, agent: Agent, ending: Iterable[str]) -> str | None:
    """Sentence about other work of an agent, or of one below it; None if there is none."""
    over = set(ending)
    for member in ctx.tx.all(agent_statements.SUBTREE_OF_AGENT, agent=agent.id):
        if member.status is AgentStatus.TERMINATED:
            continue
        most = outcome_ending.MOST_AT_ONCE
        page: Any = {"owner": member.id, "after": "", "limit": most}
        for outcome in ctx.tx.all(outcome_statements.OWNED_BY, **page):
            is_own_mandate = str(outcome.id) == member.id and member.id != agent.id
            if (
                outcome.status is OutcomeStatus.OPEN
                and outcome.kind is OutcomeKind.WORK
                and outcome.id not in over
                and not is_own_mandate
            ):
                return f"{member.name} also works on {outcome.title!r}"
    return None


# ── ending it ───────────────────────────────────────────────────────────────────────────────────


def _end_letters(ctx: Context, letter: Message, ended: shapes.TakenBackShape) -> None:
    for delivery in ctx.tx.all(statements.UNREAD_OF, message=letter.id):
        message = lookup.message_row(ctx, delivery.message_id)
        assert message is not None
        if message.sender_kind is ActorKind.SYSTEM and message.id != letter.id:
            continue  # what Remit says stays true
        inbox.cancel(ctx, delivery, TAKEN_BACK)
        ended["letters"].append(
            {
                "id": message.id,
                "to": lookup.name_of(ctx, delivery.agent_id or ""),
                "subject": message.subject or wishes.first_words(ctx, message),
            }
        )
    for delivery in ctx.tx.all(mail_statements.DELIVERIES_OF, message=letter.id):
        if delivery.status is DeliveryStatus.DEAD:
            inbox.discard(ctx, delivery)


def _runs(ctx: Context, letter: Message, closing: list[Outcome]) -> list[Run]:
    """Return the live runs that are about nothing else: no other letter and no other outcome."""
    came_of_it = ctx.tx.all(statements.LETTERS_OF, message=letter.id, limit=10_000)
    mine = {letter.id, *(message.id for message in came_of_it)}
    over = {outcome.id for outcome in closing}
    live: Any = {"agent": None, "ended_too": False, "before": END_OF_IDS, "limit": 1000}
    return [
        run
        for run in ctx.tx.all(run_statements.RUNS, **live)
        if (taken := set(json.loads(run.message_ids))) | set(json.loads(run.outcome_ids))
        and taken <= mine
        and set(json.loads(run.outcome_ids)) <= over
    ]


def _end_runs(ctx: Context, runs: list[Run], ended: shapes.TakenBackShape) -> None:
    """End runs as a stop ends them: other mail that they took up returns without counting an
    attempt."""
    known: shapes.RunEndShape = {
        "exit_reason": run_endings.STOPPED,
        "error": f"{_by(ctx)} took back the wish that it was about",
    }
    for run in runs:
        run_endings.finish(ctx, run, RunStatus.LOST, known)
        run_endings.release(ctx, run, RunStatus.LOST, None, known)
        ended["runs"].append({"id": run.id, "agent": lookup.name_of(ctx, run.agent_id)})


def _end_questions(ctx: Context, letter: Message, ended: shapes.TakenBackShape) -> None:
    for question in ctx.tx.all(statements.QUESTIONS_OF, message=letter.id):
        if question.status is QuestionStatus.OPEN:
            answering.close(ctx, question, QuestionStatus.CANCELLED, None, tells=False)
            ended["questions"].append({"id": question.id, "text": question.text})


def _end_approvals(
    ctx: Context, letter: Message, closing: list[Outcome], ended: shapes.TakenBackShape
) -> None:
    """Cancel the approvals that runs of the wish asked for; hires end with their outcomes."""
    over: set[str] = {outcome.id for outcome in closing}
    for run in ctx.tx.all(statements.RUNS_OF, message=letter.id):
        for resource in ctx.tx.all(statements.RAISED_BY_RUN, run=run.id, action="approval.request"):
            approval_id = ApprovalId(resource.partition(":")[2])
            approval = ctx.tx.one(governance.APPROVAL_ANYWHERE, approval=approval_id)
            if approval is None or approval.status not in OPEN:
                continue
            hire = approval.type is ApprovalType.HIRE_AGENT
            if hire and approval.agent_id not in over:
                continue
            if not hire:
                approval_engine.cancel_one(ctx, approval, f"{_by(ctx)} took the wish back")
            ended["approvals"].append(
                {"id": approval.id, "about": approval_engine.summary(approval)}
            )


# ── telling the agents ──────────────────────────────────────────────────────────────────────────


def _told(ctx: Context, letter: Message, closing: list[Outcome]) -> set[AgentId]:
    """Return the agents whose runs had to do with the letter, or that own a closed outcome."""
    agents = {run.agent_id for run in ctx.tx.all(statements.RUNS_OF, message=letter.id)}
    return agents | {outcome.owner_id for outcome in closing}


def _tell(
    ctx: Context, letter: Message, agents: set[AgentId], ended: shapes.TakenBackShape
) -> None:
    subject = letter.subject or wishes.first_words(ctx, letter)
    closed = "".join(
        f"\n- {outcome['title']} (outcome:{outcome['id']})" for outcome in ended["outcomes"][:50]
    )
    what = f" These outcomes were closed with it:{closed}" if closed else ""
    for agent in sorted(agents):
        approval_engine.tell(
            ctx,
            f"agent:{agent}",
            f"Taken back: {subject}",
            f"{_by(ctx)} took back the letter {subject!r} (message:{letter.id}). Do not go on with "
            f"what was made of it.{what}",
            to_know=True,
        )


def _by(ctx: Context) -> str:
    return ctx.actor.name or ctx.actor.address
