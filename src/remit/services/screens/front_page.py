"""Read model of the first page: state of the company, agents with their work or the reason why they
have none, newest runs, cost, and trends. One snapshot, with at most as many rows as a screen can
show; limited to the viewer's part of the company."""

import json
from collections import Counter
from functools import cache
from itertools import islice
from typing import Any, Final

from remit.adapters.registry import WITHOUT_MODEL
from remit.authority import Action
from remit.clock import DAY, HOUR, Micros, day_of, month_of
from remit.errors import BadInput
from remit.ids import END_OF_IDS, RunId, earliest_id
from remit.model.execution import transcript
from remit.model.execution.budget import CENT
from remit.model.execution.cost import Cost
from remit.model.execution.run import Run
from remit.model.organisation.agent import Agent
from remit.model.organisation.principal import ActorKind
from remit.services import lookup, shapes, views
from remit.services.command import Context, query
from remit.services.messaging import letter_trace, letters
from remit.services.messaging.wishes import first_words
from remit.services.organisation import idleness
from remit.services.screens import standing
from remit.services.screens.needs_you import SAME_CAUSE
from remit.services.spending import limits
from remit.store.engine.statement import Statement
from remit.store.execution import runs as run_statements
from remit.store.messaging import mail as mail_statements
from remit.store.organisation import agents as agent_statements
from remit.store.paging import each
from remit.store.record import overview as statements
from remit.store.record.overview import Standing
from remit.store.work import outcomes as outcome_statements
from remit.store.work import wishes as wish_statements

#: Ranges of a chart, each with the span of its bars.
RANGES: Final[dict[str, tuple[Micros, Micros]]] = {
    "24h": (DAY, HOUR),
    "7d": (7 * DAY, DAY),
    "14d": (14 * DAY, DAY),
    "30d": (30 * DAY, DAY),
}
_LONGEST_LINE: Final = 120
MOST_ROOTS: Final = 50
MOST_SUBJECTS: Final = 3
#: How many runs are searched for those of the viewer's part.
MOST_SEARCHED: Final = 500


@query("front.now")
def now(ctx: Context, *, company: str | None, most: int = 12) -> shapes.FrontShape:
    """Running agents with their work, idle ones with the reason, and counts by status."""
    require_looking(ctx, company)
    everybody = standing.of_company(ctx)
    words = Counter(word for _, word in everybody.values())
    busy = [pair for pair in everybody.values() if pair[1] == "working"]
    idle = [pair for pair in everybody.values() if pair[1] == "idle"]
    alike: dict[tuple[str, str | None], list[Standing]] = {}
    for agent, word in everybody.values():
        if word not in ("idle", "working"):
            alike.setdefault((word, agent.told or agent.held_by), []).append(agent)
    groups = sorted(alike.items(), key=lambda pair: standing.rank(pair[0][0]))
    lines = [_line(ctx, row, word) for row, word in busy[:most]]
    told = len(lines)
    for (word, _), agents in groups:
        if len(lines) >= 2 * most:
            break
        each = agents if len(agents) < SAME_CAUSE else agents[:1]
        told += len(agents)
        lines += [
            {**_line(ctx, row, word), "agents": len(agents) if len(each) < len(agents) else 1}
            for row in each
        ]
    # A small company is shown whole; of a large one only the agents with a remarkable state.
    few = idle[: max(0, most - len(lines))] if len(idle) <= most else []
    lines += [_line(ctx, row, word) for row, word in few]
    return {
        "agents": len(everybody),
        "words": {word: words[word] for word in standing.WORDS if words[word]},
        "listed": lines,
        "not_listed": len(everybody) - told - len(few),
    }


def _line(ctx: Context, row: Standing, word: str) -> shapes.StandingShape:
    line: shapes.StandingShape = {
        "agent_id": row.id,
        "name": row.name,
        "title": row.title or row.role,
        "word": word,
        "looks": standing.WORDS[word],
        "run_id": row.run_id,
        "since": views.time(row.started_at or row.failing_since),
        "agents": 1,
        "doing": "",
        "last": "",
        "cost": None,
    }
    if not ctx.decide(Action.OUTCOME_READ, home=row.id).allowed:
        return line
    if row.run_id is not None:
        run = ctx.tx.existing(run_statements.RUN, run=row.run_id)
        return {
            **line,
            "doing": _doing(ctx, run),
            "last": _last_words(ctx, run),
            "cost": {**run.cost.view(), "cost_usd": run.cost_usd},
        }
    agent = lookup.known_agent(ctx, row.id)
    return {**line, "doing": idleness.reason(ctx, agent)[1]}


def work_of(ctx: Context, run_id: RunId) -> str:
    """Return what a run works on, if the caller may know; else nothing."""
    run = ctx.tx.existing(run_statements.RUN, run=run_id)
    allowed = ctx.decide(Action.OUTCOME_READ, home=run.agent_id).allowed
    return _doing(ctx, run) if allowed else ""


def _doing(ctx: Context, run: Run) -> str:
    """Return the outcome that was due, the subjects of the mail, or the reason of the run."""
    for outcome_id in json.loads(run.outcome_ids):
        outcome = ctx.tx.one(outcome_statements.OUTCOME_ANYWHERE, outcome=outcome_id)
        if outcome is not None:
            return outcome.title
    subjects = subjects_of(ctx, run)
    return ", ".join(subjects) or (run.why or "")


def _last_words(ctx: Context, run: Run) -> str:
    """Last line of a run's output, rendered for people."""
    for piece in ctx.tx.all(statements.LAST_WORDS, run=run.id):
        for line in reversed(piece.splitlines()):
            entry = transcript.entry_of(line)
            text = " ".join((transcript.shown(entry) if entry else line).split())
            if text:
                return text if len(text) <= _LONGEST_LINE else f"{text[:_LONGEST_LINE]}…"
    return ""


@query("front.trend")
def trend(ctx: Context, *, company: str | None, back: str = "14d") -> shapes.TrendShape:
    """Runs, failures and money by hours or days, and what today and this month came to."""
    require_looking(ctx, company)
    if back not in RANGES:
        raise BadInput("There is no such range.", f"Choose one of {', '.join(RANGES)}.")
    whole, span = RANGES[back]
    last = ctx.now - ctx.now % span
    began = [last - number * span for number in reversed(range(whole // span))]
    here = standing.scope(ctx)
    since = began[0]
    by_span = {
        totals.began: totals
        for totals in ctx.tx.all(
            statements.RUNS_BY_SPAN, span=span, since=since, first=earliest_id(since), **here
        )
    }
    first_day = min(month_of(ctx.now), day_of(since))
    spent = dict(ctx.tx.all(statements.SPENT_BY_DAY, since=first_day, **here))
    if span == DAY:
        costs = [spent.get(at, Cost()) for at in began]
    else:
        costs = [by_span[at].cost if at in by_span else Cost() for at in began]
    of_today = spent.get(day_of(ctx.now), Cost())
    of_month = sum((cost for day, cost in spent.items() if day >= month_of(ctx.now)), Cost())
    today = [totals for at, totals in by_span.items() if at >= day_of(ctx.now)]
    return {
        "range": back,
        "began": began,
        "span": span,
        "runs": [by_span[at].runs if at in by_span else 0 for at in began],
        "failed": [by_span[at].failed if at in by_span else 0 for at in began],
        "money": [cost.micros for cost in costs],
        "costs": [cost.view() for cost in costs],
        "cost": sum(costs, Cost()).view(),
        "today": {
            "runs": sum(totals.runs for totals in today),
            "failed": sum(totals.failed for totals in today),
            "micros": of_today.micros,
            "cost": of_today.view(),
        },
        "month_micros": of_month.micros,
        "month_cost": of_month.view(),
        "day_limit": limits.of_company(ctx).money_per_day,
        "month_limit": _month_limit(ctx),
    }


def _month_limit(ctx: Context) -> int | None:
    """Return the sum of the top agents' monthly budgets; None if one of them has none."""
    cents = [agent.budget_monthly_cents for agent in tops(ctx)]
    if not cents or None in cents:
        return None
    return sum(budget or 0 for budget in cents) * CENT


@query("front.wishes")
def wishes(ctx: Context, *, company: str | None, limit: int = 3) -> list[shapes.WishShape]:
    """Latest wishes of the calling person with their results; not their answers."""
    require_looking(ctx, company)
    entries: list[shapes.WishShape] = []
    for wish in ctx.tx.all(wish_statements.NEWEST_OF_USER, user=ctx.actor.id, limit=10 * limit):
        letter = ctx.tx.existing(mail_statements.MESSAGE_ANYWHERE, message=wish.message_id)
        if letter.reply_to is not None or len(entries) == limit:
            continue
        entries.append(
            {
                "thread_id": letter.thread_id,
                "subject": letter.subject or first_words(ctx, letter),
                **letter_trace.state(ctx, letter),
            }
        )
    return entries


@query("front.stopped_like")
def stopped_like(ctx: Context, *, agent: str) -> list[str]:
    """Return the agents in error for the same cause as this one."""
    agent_row = lookup.agent_anywhere(ctx, agent)
    ctx.require(Action.AGENT_READ, on=f"agent:{agent_row.id}", home=agent_row.id)
    stopped = ctx.tx.all(statements.IN_ERROR, **standing.scope(ctx))
    cause = next((row.told for row in stopped if row.id == agent_row.id), None)
    return [row.id for row in stopped if row.told == cause]


@query("glance.roots")
def roots(ctx: Context, *, company: str | None) -> list[shapes.RootAgentShape]:
    """The agents at the top of the caller's part of the company."""
    require_looking(ctx, company)
    return [
        {**views.agent(agent), "without_model": _is_without_model(agent)} for agent in tops(ctx)
    ]


def _is_without_model(agent: Agent) -> bool:
    return agent.adapter_type == WITHOUT_MODEL and not json.loads(agent.adapter_config).get(
        "script"
    )


def tops(ctx: Context) -> list[Agent]:
    scope = ctx.membership.scope_agent_id if ctx.membership else None
    if scope is not None:
        top = lookup.agent_row(ctx, scope)
        return [] if top is None else [top]
    return ctx.tx.all(agent_statements.ROOTS, limit=MOST_ROOTS)


@query("glance.newest_runs")
def newest_runs(
    ctx: Context, *, company: str | None, failed: bool = False, limit: int = 10
) -> list[shapes.RunShape]:
    """The newest runs, or the newest of those that ended badly."""
    require_looking(ctx, company)
    statement: Statement[Run] = run_statements.ENDED_BADLY if failed else run_statements.RUNS
    filters: Any = {} if failed else {"agent": None, "any_agent": True, "ended_too": True}
    newest = each(ctx.tx, statement, page=50, before=END_OF_IDS, **filters)
    in_reach = cache(lambda agent: ctx.decide(Action.OUTCOME_READ, home=agent).allowed)
    runs = (run for run in islice(newest, MOST_SEARCHED) if in_reach(run.agent_id))
    return [views.run(run) for run in islice(runs, limit)]


def subjects_of(ctx: Context, run: Run) -> list[str]:
    """Subjects of the mail that a run took up, limited to mail that the caller may read."""
    subjects: list[str] = []
    for message_id in json.loads(run.message_ids)[:MOST_SUBJECTS]:
        message = lookup.message_row(ctx, message_id)
        if message is not None and message.subject and letters.sees(ctx, message):
            subjects.append(message.subject)
    return subjects


def require_looking(ctx: Context, company: str | None) -> None:
    if ctx.actor.kind is not ActorKind.USER:
        raise BadInput("This is for people.", "List the runs, or the agents.")
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.COMPANY_READ, on=f"company:{ctx.company}")
