"""Read model of the organisation: each agent's state with its reason, work, cost of the month and
last activity; and each branch's worst state and total cost."""

from typing import Any, Final

from remit.authority import Action
from remit.clock import month_of
from remit.model.execution.cost import Cost, cost_of
from remit.services import lookup, shapes
from remit.services.command import Context, query
from remit.services.organisation import idleness
from remit.services.screens import front_page, standing
from remit.store.record import overview as statements

#: Reasons take several queries each; in a larger company the others are on the agents' pages.
MOST_ASKED: Final = 30


@query("org_page.lines")
def lines(ctx: Context, *, company: str | None) -> dict[str, shapes.OrganisationLineShape]:
    """A line for each agent in the caller's part of the company, by id; `at` is the start of its
    live run, or else of its last one."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.COMPANY_READ, on=f"company:{ctx.company}")
    known = standing.of_company(ctx)
    worst = standing.branches(known)
    part = standing.scope(ctx)
    spent = dict(ctx.tx.all(statements.SPENT_BY_AGENT, since=month_of(ctx.now), **part))
    last = dict(ctx.tx.all(statements.LAST_RUNS, **part))
    bosses = {agent: row.boss_id for agent, (row, _) in known.items()}
    below = {
        name: _summed(bosses, {agent: getattr(spent.get(agent, Cost()), name) for agent in known})
        for name in ("micros", "estimated", "unpriced")
    }
    bad = _summed(
        bosses, {agent: int(standing.WORDS[word] == "bad") for agent, (_, word) in known.items()}
    )
    running = [row.run_id for row, word in known.values() if row.run_id is not None]
    on = {str(run): front_page.work_of(ctx, run) for run in running[:MOST_ASKED]}
    why = _reasons(ctx, known)
    return {
        agent: {
            "id": agent,
            "name": row.name,
            "title": row.title,
            "role": row.role,
            "status": row.status.value,
            "reports_to": row.boss_id,
            "word": word,
            "kind": standing.WORDS[word],
            "why": on.get(row.run_id or "", "") or why.get(agent, "") or row.told or "",
            "worst": worst[agent],
            "worst_kind": standing.WORDS[worst[agent]],
            "bad_below": bad[agent] - int(standing.WORDS[word] == "bad"),
            "cost": spent.get(agent, Cost()).view(),
            "cost_below": cost_of(*(below[name][agent] for name in below)).view(),
            "at": row.started_at or last.get(agent),
        }
        for agent, (row, word) in known.items()
    }


def _summed(bosses: dict[Any, Any], amounts: dict[Any, int]) -> dict[Any, int]:
    """Return the total of each agent with everybody below it; safe against cycles."""
    totals = dict(amounts)
    for agent, amount in amounts.items():
        above, seen = bosses[agent], {agent}
        while amount and above in totals and above not in seen:
            totals[above] += amount
            seen.add(above)
            above = bosses[above]
    return totals


def _reasons(ctx: Context, known: dict[Any, Any]) -> dict[str, str]:
    """Reasons why agents do not work: for all in a small company; in a large one for those at the
    top, which are always in view, and those in the worst state."""
    still = [(row, word) for row, word in known.values() if row.run_id is None]
    still.sort(key=lambda pair: (pair[0].boss_id is not None, standing.rank(pair[1])))
    reasons = {}
    for idle, _ in still[:MOST_ASKED]:
        agent = lookup.known_agent(ctx, idle.id)
        reasons[str(idle.id)] = idleness.reason(ctx, agent)[1]
    return reasons
