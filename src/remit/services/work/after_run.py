"""Follow-up of outcomes after a run of their owner.

A good run has seen the news that it was shown. Outcomes that it left actionable are not due at
once: a run that made progress is followed by a few nudges at growing pauses. An outcome that stays
still after that gets a few reviews; then its judge is told, once.
"""

from remit.clock import Micros
from remit.model.execution.run import NUDGES, Run
from remit.model.organisation.agent import Agent
from remit.model.organisation.company import reviews
from remit.model.work.outcome import Look, Outcome
from remit.services import lookup
from remit.services.command import Context
from remit.services.governance import approval_engine
from remit.services.work import submissions
from remit.store.execution import due
from remit.store.execution import runs as run_statements
from remit.store.organisation import people

#: Most outcomes that are followed up one by one; no agent works on more at a time.
MOST_LEFT = 1000


def reviews_of(ctx: Context) -> tuple[Micros, ...]:
    """Return the pauses before each review of work that stands still in this company."""
    company = ctx.tx.existing(people.COMPANY)
    return reviews(company)


def plan(ctx: Context, run: Run, *, nudges: int, progress: bool, at_once: bool) -> int:
    """Plan when the outcomes that a good run left are due again; returns how often its agent was
    nudged.

    `at_once` is for a run that has more to do and said so, or was cut off while it made progress.
    """
    ctx.tx.run(due.SEE, agent=run.agent_id, shown=run.shown)
    if ctx.tx.one(run_statements.FINISHED_SOMETHING, run=run.id):
        nudges = 0
    left = ctx.tx.all(due.LEFT_ALONE, agent=run.agent_id, limit=MOST_LEFT)
    in_series = (
        [left_outcome for left_outcome in left if left_outcome.reviews == 0] if progress else []
    )
    if in_series and (at_once or nudges < len(NUDGES)):
        pause = 0 if at_once else NUDGES[nudges]
        for outcome in in_series:
            _look(ctx, outcome, ctx.now + pause, Look.NUDGE, 0)
        nudges += 0 if at_once else 1
    else:
        in_series = []
    nudged = {outcome.id for outcome in in_series}
    for outcome in left:
        if outcome.id not in nudged and (outcome.look_at is None or outcome.look_at <= ctx.now):
            review_later(ctx, outcome)
    return nudges


def keep_what_failed(ctx: Context, run: Run) -> None:
    """Plan a nudge for outcomes that a failed run left. The run is retried for what was due, but
    the outcomes that it created itself would otherwise be forgotten."""
    for outcome in ctx.tx.all(due.LEFT_ALONE, agent=run.agent_id, limit=MOST_LEFT):
        if outcome.look_at is None and outcome.reviews == 0:
            _look(ctx, outcome, ctx.now + NUDGES[0], Look.NUDGE, 0)


def review_later(ctx: Context, outcome: Outcome) -> None:
    """Plan the next review of an outcome that stands still, or tell its judge after the last
    one."""
    pauses = reviews_of(ctx)
    if outcome.reviews < len(pauses):
        again = ctx.now + pauses[outcome.reviews]
        _look(ctx, outcome, again, Look.REVIEW, outcome.reviews + 1)
    else:
        _look(ctx, outcome, None, None, len(pauses) + 1)
        tell_once(ctx, outcome)


def put_off_by_owner(ctx: Context, outcome: Outcome) -> None:
    """Count a deferral by the owner as a review, not as progress: an owner that only defers is
    reported, too."""
    told = len(reviews_of(ctx)) + 1
    _look(ctx, outcome, outcome.look_at, outcome.look_for, min(outcome.reviews + 1, told))
    if outcome.reviews + 1 == told:
        tell_once(ctx, outcome)


def tell_once(ctx: Context, outcome: Outcome) -> None:
    """Tell the judge of an outcome that it stands still."""
    owner = lookup.known_agent(ctx, outcome.owner_id)
    approval_engine.tell(
        ctx,
        _judge(outcome, owner),
        f"It does not move: {outcome.title}",
        f"{outcome.title!r} (outcome:{outcome.id}) of {owner.name} was looked at again and again, "
        "and nothing came of it. Change it, close it, take it back, or write to its owner; any of "
        "these starts it at once.",
        outcome=outcome.id,
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
