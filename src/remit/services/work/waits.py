"""Waits of agents: raised with a request, ended by its decision.

An outcome waits while something that its owner raised about it is undecided; the owner is not
started for it meanwhile. The decision ends the wait in the same transaction, which is news about
the outcome.
"""

from remit.clock import Micros, moment, to_iso
from remit.errors import BadInput
from remit.ids import AgentId, CompanyId, UserId, WaitId
from remit.model.execution.run import was_review
from remit.model.messaging.mail import AddressKind, Message, parse_address
from remit.model.organisation.agent import HUMAN, Agent
from remit.model.work.outcome import Outcome, OutcomeKind, OutcomeStatus, comes_by_itself
from remit.model.work.wait import REMINDERS_TO_AGENT, REMINDERS_TO_PERSON, Wait, WaitKind
from remit.services import lookup, shapes
from remit.services.context import Context
from remit.services.execution import waking
from remit.store.execution import leases
from remit.store.execution import runs as run_statements
from remit.store.work import outcomes as outcome_statements
from remit.store.work import waits as statements


def begin(
    ctx: Context,
    kind: WaitKind,
    subject: str,
    agent: AgentId,
    *,
    to_agent: AgentId | None = None,
    to_user: UserId | None = None,
    about: list[Outcome] | None = None,
) -> Wait:
    """Begin a wait of an agent for a decision. It holds up the outcomes that `about` names; else
    those that its run was started for; if there are none, it is a wait of the agent's desk."""
    resting = concerned(ctx, agent) if about is None else about
    wait = Wait(
        id=WaitId(ctx.ids.new()),
        company_id=CompanyId(ctx.company or ""),
        agent_id=agent,
        kind=kind,
        subject_id=subject,
        awaited_agent_id=to_agent,
        awaited_user_id=to_user,
        since=ctx.now,
        reminders=0,
        remind_at=ctx.now + reminders(ctx, to_agent)[0],
        desk=about is None and not resting,
        place=ctx.place_in_record + 1,
    )
    ctx.tx.add(wait)
    if wait.desk:
        waking.lease_of(ctx, agent)
        ctx.tx.run(leases.REST, agent=agent, new_rests=True)
    if resting:
        ctx.tx.run_for_each(
            statements.INSERT_WAIT_OUTCOME,
            [
                {"company_id": wait.company_id, "wait_id": wait.id, "outcome_id": outcome.id}
                for outcome in resting
            ],
        )
        ctx.tx.run(statements.COUNT_WAITS, wait=wait.id, step=1)
    return wait


def begin_for_capability(
    ctx: Context, request: Message, agent: Agent, about: list[Outcome] | None = None
) -> Wait:
    """Begin a wait for a capability that an agent asked its boss for, or people."""
    of_board = parse_address(request.address).kind is AddressKind.BOARD
    boss, person = None if of_board else agent.boss_id, agent.boss_user_id
    kind = WaitKind.CAPABILITY
    return begin(ctx, kind, request.id, agent.id, to_agent=boss, to_user=person, about=about)


#: Waits that an import begins again.
BEGUN_AGAIN = frozenset({WaitKind.QUESTION, WaitKind.APPROVAL, WaitKind.CAPABILITY})

_DECIDED = "what it waited for was decided"


def matter(kind: WaitKind, subject: str) -> str:
    """The name of what is awaited, by which letters about it are found."""
    return f"{kind.value}:{subject}"


def end(ctx: Context, kind: WaitKind, subject: str, why: str = "") -> None:
    """End a wait: its subject was decided, refused, met in another way, or nobody is left to decide
    it.

    With `why`, the waiting agent is mailed that; otherwise the mail that ended the wait tells it.
    """
    wait = ctx.tx.one(statements.WAIT, kind=kind.value, subject=subject)
    if wait is not None:
        end_one(ctx, wait, why)


def end_one(ctx: Context, wait: Wait, why: str = "") -> None:
    held_up = [] if wait.desk else ctx.tx.all(statements.OUTCOMES_OF_WAIT, wait=wait.id)
    if held_up:
        ctx.tx.run(statements.COUNT_WAITS, wait=wait.id, step=-1)
        ctx.tx.run(statements.DELETE_WAIT_OUTCOMES, wait=wait.id)
    ctx.tx.run(statements.DELETE_WAIT, wait=wait.id)
    if wait.desk:
        _free_desk(ctx, wait.agent_id)
    for outcome in held_up:
        waking.news(ctx, outcome, _DECIDED)
    if why:
        from remit.services.governance import approval_engine  # it imports mail, which ends waits

        title = f"Awaited no longer: {_TITLE[wait.kind]}"
        approval_engine.tell(ctx, f"agent:{wait.agent_id}", title, why)


def _free_desk(ctx: Context, agent: AgentId) -> None:
    """Let an agent be asked again about what it left, unless a newer wait of its desk is open. If
    somebody else decided, it is asked at once; the letter that says so wakes it."""
    ctx.tx.run(leases.FREE_DESK, agent=agent, by_owner=waking.is_own(ctx, agent))


def forget(ctx: Context, outcome: str) -> None:
    """Remove an outcome that ended from every wait."""
    ctx.tx.run(statements.FORGET_OUTCOME, outcome=outcome)


def of_outcome(ctx: Context, outcome: str) -> list[Wait]:
    return ctx.tx.all(statements.WAITS_OF_OUTCOME, outcome=outcome)


def of_agent(ctx: Context, agent: str) -> list[Wait]:
    """Return the waits of an agent, longest first."""
    return ctx.tx.all(statements.WAITS_OF, agent=agent)


def view(ctx: Context, wait: Wait) -> shapes.WaitShape:
    return {
        "kind": wait.kind.value,
        "id": wait.subject_id,
        "agent_id": wait.agent_id,
        "for": awaited(ctx, wait),
        "awaited_agent_id": wait.awaited_agent_id,
        "since": to_iso(wait.since),
    }


def sentence(ctx: Context, waiting: list[Wait]) -> str:
    """Sentences on whom an agent waits for, for what and since when, along the chain of waits."""
    first = waiting[0]
    more = f", and for {len(waiting) - 1} more" if len(waiting) > 1 else ""
    text = (
        f"It waits for {awaited(ctx, first)} {_WHAT[first.kind]} since {moment(first.since)}{more}."
    )
    seen = {first.agent_id}
    here = first.awaited_agent_id
    while here is not None and here not in seen:
        seen.add(here)
        following = of_agent(ctx, here)
        if not following:
            break
        following_for = awaited(ctx, following[0])
        text += (
            f" {lookup.name_of(ctx, here)} waits for {following_for} {_WHAT[following[0].kind]}."
        )
        here = following[0].awaited_agent_id
    return text


def briefly(ctx: Context, wait: Wait) -> str:
    """Clause on one wait: for whom, for what and since when."""
    return f"waits for {awaited(ctx, wait)} {_WHAT[wait.kind]} since {moment(wait.since)}"


def owed(ctx: Context, waiting: list[Wait]) -> str:
    """Sentence on who waits for an agent, for what and since when; the longest wait first."""
    first = min(waiting, key=lambda wait: (wait.since, wait.id))
    more = f", and {len(waiting) - 1} more wait" if len(waiting) > 1 else ""
    who = lookup.name_of(ctx, first.agent_id)
    return f"{who} waits for it {_WHAT[first.kind]} since {moment(first.since)}{more}."


_WHAT = {
    WaitKind.QUESTION: "to answer a question",
    WaitKind.APPROVAL: "to decide an approval",
    WaitKind.CAPABILITY: "to decide a request for a capability",
    WaitKind.REPLY: "to reply",
    WaitKind.SUBMISSION: "to judge what it handed in",
}


_TITLE = {
    WaitKind.QUESTION: "a question",
    WaitKind.APPROVAL: "an approval",
    WaitKind.CAPABILITY: "a request for a capability",
    WaitKind.REPLY: "a message",
    WaitKind.SUBMISSION: "a submission",
}


#: How the awaited one decides it.
_HOW = {
    WaitKind.QUESTION: "Reply to the question.",
    WaitKind.APPROVAL: "Approve or reject it.",
    WaitKind.CAPABILITY: "Grant it with capability_grant, or refuse it with capability_refuse.",
    WaitKind.REPLY: "Reply to its message.",
    WaitKind.SUBMISSION: "Accept it with outcome_complete, or send it back with outcome_return.",
}


def awaited(ctx: Context, wait: Wait) -> str:
    """Return the name of the awaited agent or person, or "the board"."""
    if wait.awaited_agent_id is not None:
        return lookup.name_of(ctx, wait.awaited_agent_id)
    if wait.awaited_user_id is not None:
        return lookup.user_name(ctx, wait.awaited_user_id, "a person")
    return "the board"


def subject(ctx: Context, wait: Wait) -> str:
    """The subject of the decision, in a few words."""
    return f"{_TITLE[wait.kind]} of {lookup.name_of(ctx, wait.agent_id)}"


def waiting_for_you(ctx: Context, wait: Wait) -> str:
    """Line for the awaited one: who waits, with which outcomes, and how to decide."""
    held_up = ctx.tx.all(statements.OUTCOMES_OF_WAIT, wait=wait.id)
    titles = ", ".join(f"{outcome.title!r} (outcome:{outcome.id})" for outcome in held_up[:5])
    what = f" with {titles}" if titles else ""
    who = lookup.name_of(ctx, wait.agent_id)
    return (
        f"{who} waits{what} since {moment(wait.since)} for you {_WHAT[wait.kind]} "
        f"({wait.kind.value}:{wait.subject_id}). {_HOW[wait.kind]}"
    )


def forget_moved(ctx: Context, agent: str) -> None:
    """Remove outcomes that have a new owner from an agent's waits, and withdraw its submissions of
    them."""
    ctx.tx.run(statements.FORGET_MOVED, agent=agent)
    ctx.tx.run(statements.WITHDRAW_MOVED, agent=agent, by=ctx.actor.address)
    ctx.tx.run(statements.FORGET_ENDED_SUBMISSIONS, agent=agent)


def forget_agent(ctx: Context, agent: str) -> list[shapes.ForgottenWaitShape]:
    """End every wait of an agent that is gone; returns them, so that they can be restored."""
    forgotten: list[shapes.ForgottenWaitShape] = []
    for wait in ctx.tx.all(statements.WAITS_OF, agent=agent):
        held_up = ctx.tx.all(statements.OUTCOMES_OF_WAIT, wait=wait.id)
        ctx.tx.run(statements.COUNT_WAITS, wait=wait.id, step=-1)
        forgotten.append(
            {
                "kind": wait.kind.value,
                "subject": wait.subject_id,
                "agent": wait.awaited_agent_id,
                "user": wait.awaited_user_id,
                "desk": wait.desk,
                "outcomes": [outcome.id for outcome in held_up],
            }
        )
    ctx.tx.run(statements.DELETE_WAIT_OUTCOMES_OF, agent=agent)
    ctx.tx.run(statements.DELETE_WAITS_OF, agent=agent)
    ctx.tx.run(leases.REST, agent=agent, new_rests=False)
    return forgotten


def redirect(
    ctx: Context,
    kind: WaitKind,
    subject: str,
    to_agent: AgentId | None,
    to_user: UserId | None = None,
) -> None:
    """Make somebody else the awaited one."""
    wait = ctx.tx.one(statements.WAIT, kind=kind.value, subject=subject)
    if wait is None:
        return
    ctx.tx.run(
        statements.AWAIT_SOMEBODY_ELSE,
        wait=wait.id,
        new_agent=to_agent,
        new_user=to_user,
        new_reminders=0,
        at=ctx.now + reminders(ctx, to_agent)[0],
    )


def concerned(ctx: Context, agent: str) -> list[Outcome]:
    """Return the outcomes that a request of an agent holds up if it names none: those for which
    news, a date or a review started its run, and which it can still work on."""
    run = ctx.tx.one(run_statements.RUN, run=ctx.actor.run_id) if ctx.actor.run_id else None
    if run is None or run.agent_id != agent or run.outcome_ids == "[]":
        return []
    reviewed = was_review(run, ctx.tx.one(leases.LEASE, agent=agent))
    shown = ctx.tx.all(outcome_statements.ACTIONABLE_AMONG, ids=run.outcome_ids)
    return [
        outcome
        for outcome in shown
        if outcome.owner_id == agent and (reviewed or comes_by_itself(outcome, ctx.now))
    ]


def own(outcome: Outcome, agent: str) -> list[Outcome]:
    """Return the outcome that an agent named as the subject of its request; it must be its own, and
    open."""
    if outcome.owner_id != agent or outcome.kind is not OutcomeKind.WORK:
        raise BadInput("outcome_id: that outcome is not yours.", "Name one that you own.")
    if outcome.status is not OutcomeStatus.OPEN:
        raise BadInput(f"outcome_id: it is {outcome.status.value}.", "Name an open one.")
    return [outcome]


def reminders(ctx: Context, agent: str | None) -> tuple[Micros, ...]:
    """Return the pauses before each reminder of the awaited one; after the last, the next above is
    awaited."""
    return REMINDERS_TO_PERSON if _is_person(ctx, agent) else REMINDERS_TO_AGENT


def _is_person(ctx: Context, agent: str | None) -> bool:
    if agent is None:
        return True
    row = lookup.agent_row(ctx, agent)
    return row is None or row.adapter_type == HUMAN
