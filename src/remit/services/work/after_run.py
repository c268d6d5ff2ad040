"""Follow-up of outcomes after a run of their owner.

A good run has seen the news that it was shown. Work that it left actionable is not due at once: a
run that made progress is followed by a few nudges at growing pauses, and then by reviews. The time
of the next nudge or review is one per agent, and a review writes the outcomes that its run was
shown, so that the end of a run costs the same whatever its agent owns. An outcome that stays still
after its last review is told to its judge, once.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from remit.clock import HOUR, Micros
from remit.model.execution.run import NUDGES, Lease, Run, was_review
from remit.model.organisation.agent import Agent
from remit.model.organisation.company import reviews
from remit.model.text import plural
from remit.model.work.outcome import Look, Outcome
from remit.services import lookup
from remit.services.command import Context
from remit.services.execution import waking
from remit.services.governance import approval_engine
from remit.services.work import submissions
from remit.store.execution import due, leases
from remit.store.execution import runs as run_statements
from remit.store.organisation import people
from remit.store.work import waits as wait_statements

#: Least time between two runs that review work.
_BETWEEN_REVIEWS = HOUR


def reviews_of(ctx: Context) -> tuple[Micros, ...]:
    """Return the pauses before each review of work that stands still in this company."""
    company = ctx.tx.existing(people.COMPANY)
    return reviews(company)


def plan(ctx: Context, run: Run, *, nudges: int, progress: bool, at_once: bool) -> int:
    """Plan when work that a good run left is due again; returns how often its agent was nudged.

    `at_once` is for a run that has more to do and said so, or was cut off while it made progress;
    while a request of the agent about its whole desk is undecided, that counts as a nudge.
    """
    ctx.tx.run(due.SEE, agent=run.agent_id, shown=run.shown)
    if ctx.tx.one(run_statements.FINISHED_SOMETHING, run=run.id):
        nudges = 0
    lease = waking.lease_of(ctx, run.agent_id)
    counts = not at_once or ctx.tx.one(wait_statements.NEWEST_OF_DESK, agent=run.agent_id)
    in_series = progress and (not counts or nudges < len(NUDGES))
    reviewed = was_review(run, lease)
    _settle(ctx, run, in_series=in_series, reviewed=reviewed)
    is_left = ctx.tx.one(due.FRESH_OF, agent=run.agent_id) is not None
    if is_left and in_series:
        look = _NextLook(ctx.now + (0 if at_once else NUDGES[nudges]), Look.NUDGE)
        nudges += bool(counts)
    else:
        look = _next_review(ctx, lease, is_left=is_left, reviewed=reviewed)
    if look != (lease.look_at, lease.look_for):
        ctx.tx.run(leases.LOOK, agent=run.agent_id, at=look.at, what_for=look.what_for)
    return nudges


class _NextLook(NamedTuple):
    at: Micros | None
    what_for: Look | None


def _settle(ctx: Context, run: Run, *, in_series: bool, reviewed: bool) -> None:
    """Plan the next review of each outcome that the run was shown and left, if its review or its
    date had come; one that its owner is nudged for has none."""
    still: list[Outcome] = []
    for outcome in _left_of(ctx, run):
        came = outcome.look_at is not None and outcome.look_at <= ctx.now
        if in_series and outcome.reviews == 0:
            if came:
                _look(ctx, outcome, None, None, 0)
        elif came or reviewed:
            # The first review was a time of the agent, and is not counted in the outcome.
            count = outcome.reviews if outcome.look_at is not None else max(outcome.reviews, 1)
            if not _review_later(ctx, outcome, count):
                still.append(outcome)
    _tell(ctx, still)


def _left_of(ctx: Context, run: Run) -> Sequence[Outcome]:
    if run.outcome_ids == "[]":
        return ()
    shown = ctx.tx.all(due.LEFT_AMONG, ids=run.outcome_ids)
    return [outcome for outcome in shown if outcome.owner_id == run.agent_id]


def _next_review(ctx: Context, lease: Lease, *, is_left: bool, reviewed: bool) -> _NextLook:
    """The time of an agent's next review: of what was never reviewed, or of an outcome whose time
    comes first; a review is at least an hour after the one before."""
    planned = lease.look_at if lease.look_for is Look.REVIEW and not reviewed else None
    times = []
    if is_left:
        pause = _BETWEEN_REVIEWS if reviewed else reviews_of(ctx)[0]
        times.append(ctx.now + pause if planned is None else planned)
    of_outcome = ctx.tx.one(due.NEXT_REVIEW_OF, agent=lease.agent_id)
    if of_outcome is not None:
        times.append(max(of_outcome, planned or ctx.now + _BETWEEN_REVIEWS * reviewed))
    return _NextLook(min(times), Look.REVIEW) if times else _NextLook(None, None)


def keep_what_failed(ctx: Context, run: Run) -> None:
    """Plan a nudge for what a failed run left. The run is retried for what was due, but the
    outcomes that it created itself would otherwise be forgotten."""
    if ctx.tx.one(due.FRESH_OF, agent=run.agent_id) is None:
        return
    if waking.lease_of(ctx, run.agent_id).look_at is None:
        at = ctx.now + NUDGES[0]
        ctx.tx.run(leases.LOOK, agent=run.agent_id, at=at, what_for=Look.NUDGE)


def _review_later(ctx: Context, outcome: Outcome, count: int) -> bool:
    """Plan the next review of an outcome that stands still, after a number of reviews; returns
    False after the last one."""
    pauses = reviews_of(ctx)
    if count < len(pauses):
        _look(ctx, outcome, ctx.now + pauses[count], Look.REVIEW, count + 1)
        return True
    _look(ctx, outcome, None, None, len(pauses) + 1)
    return False


def put_off_by_owner(ctx: Context, outcome: Outcome) -> None:
    """Count a deferral by the owner as a review, not as progress: an owner that only defers is
    reported, too."""
    told = len(reviews_of(ctx)) + 1
    _look(ctx, outcome, outcome.look_at, outcome.look_for, min(outcome.reviews + 1, told))
    if outcome.reviews + 1 == told:
        _tell(ctx, [outcome])


def _tell(ctx: Context, still: Sequence[Outcome]) -> None:
    """Tell the judges of outcomes that these stand still, each judge in one letter."""
    by_judge: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in still:
        by_judge[_judge(outcome, lookup.known_agent(ctx, outcome.owner_id))].append(outcome)
    for judge, outcomes in by_judge.items():
        owner = lookup.known_agent(ctx, outcomes[0].owner_id)
        first = outcomes[0]
        if len(outcomes) == 1:
            subject = f"It does not move: {first.title}"
            listed = f"{first.title!r} (outcome:{first.id}) of {owner.name} was"
        else:
            subject = f"{plural(len(outcomes), 'outcome')} of {owner.name} do not move"
            lines = "\n".join(f"- {outcome.title!r} (outcome:{outcome.id})" for outcome in outcomes)
            listed = f"{lines}\n\nThese outcomes of {owner.name} were"
        approval_engine.tell(
            ctx,
            judge,
            subject,
            f"{listed} looked at again and again, and nothing came of it. Change it, close it, "
            "take it back, or write to its owner; any of these starts it at once.",
            outcome=first.id,
        )


def _judge(outcome: Outcome, owner: Agent) -> str:
    judge, person = submissions.judge_of(outcome, owner)
    if judge is not None:
        return f"agent:{judge}"
    return f"user:{person}" if person is not None else "board"


def _look(
    ctx: Context, outcome: Outcome, at: int | None, what_for: Look | None, reviews: int
) -> None:
    ctx.tx.run(
        due.LOOK_AGAIN,
        outcome=outcome.id,
        at=at,
        what_for=what_for,
        new_reviews=reviews,
    )
