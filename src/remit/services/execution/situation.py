"""Situation of a run when it begins: why it was started, what is due, who waits for whom.

A model that has this need not call four tools to find it out, and does not begin again what only
waits. Titles and names were chosen by others, so each is quoted, on one line.
"""

import json

from remit.model.execution.run import Run
from remit.model.messaging.turn import quoted
from remit.model.organisation.agent import Agent, AgentStatus
from remit.model.work.outcome import Outcome, OutcomeKind, OutcomeStatus, why_not_actionable
from remit.services import lookup, shapes
from remit.services.command import Context
from remit.services.knowledge import documents
from remit.services.spending import ledger
from remit.services.work import waits
from remit.store.organisation import agents as agent_statements
from remit.store.work import outcomes as outcome_statements
from remit.store.work import waits as wait_statements

MOST_OUTCOMES = 12
MOST_REPORTS = 12
#: How much of a mandate's text goes into each prompt; the rest is in its document.
MOST_PURPOSE = 2000


def of_run(ctx: Context, run: Run, agent: Agent) -> str:
    """The situation as a few lines; nothing in them is an instruction."""
    lines = [f"why-this-run: {run.why or 'you were started by hand'}"]
    lines += _outcomes(ctx, run, agent)
    lines += _to_judge(ctx, agent)
    lines += _reports(ctx, agent)
    lines += _budget(ctx, agent)
    return "\n".join(lines) + "\n"


def boss(ctx: Context, agent: Agent) -> shapes.BossShape:
    """Boss of an agent: another agent, or a person."""
    above = lookup.agent_row(ctx, agent.boss_id or "")
    if above is not None:
        return {"kind": "agent", "name": above.name, "outcome": above.id}
    name = lookup.user_name(ctx, agent.boss_user_id, "the board")
    return {"kind": "user", "name": name, "outcome": None}


def mandate(ctx: Context, agent: Agent) -> shapes.MandateShape:
    """The mandate of an agent, as its hirer wrote it."""
    outcome = ctx.tx.one(outcome_statements.OUTCOME, company=agent.company_id, outcome=agent.id)
    return {
        "title": outcome.title if outcome else "",
        "purpose": documents.prose(ctx, agent.id)[:MOST_PURPOSE].strip(),
    }


def _outcomes(ctx: Context, run: Run, agent: Agent) -> list[str]:
    due = set(json.loads(run.outcome_ids))
    outcomes = [
        outcome
        for outcome in ctx.tx.all(
            outcome_statements.OUTCOMES,
            company=run.company_id,
            after="",
            owner=agent.id,
            status=OutcomeStatus.OPEN.value,
            parts_too=True,
            limit=10 * MOST_OUTCOMES,
        )
        if outcome.kind is OutcomeKind.WORK
    ]
    outcomes.sort(
        key=lambda outcome: (outcome.id not in due, not outcome.urgent, not outcome.important)
    )
    shown = [
        f"- {quoted(outcome.title)} outcome:{outcome.id} {_state(ctx, outcome, outcome.id in due)}"
        for outcome in outcomes[:MOST_OUTCOMES]
    ]
    return _listed("your-open-outcomes", shown, len(outcomes))


def _state(ctx: Context, outcome: Outcome, due: bool) -> str:
    marks = [word for word in ("urgent", "important") if getattr(outcome, word)]
    if outcome.open_waits:
        open_waits = waits.of_outcome(ctx, outcome.id)
        marks.append(waits.briefly(ctx, open_waits[0]) if open_waits else "waits")
    elif (why := why_not_actionable(outcome, ctx.now)) is not None:
        marks.append(why)
    else:
        marks.append("due now" if due else "can be worked on")
    return f"({', '.join(marks)})"


def _to_judge(ctx: Context, agent: Agent) -> list[str]:
    """Lines about those who wait for this agent."""
    open_waits = ctx.tx.all(wait_statements.AWAITED_OF, agent=agent.id)
    shown = [f"- {waits.waiting_for_you(ctx, wait)}" for wait in open_waits[:MOST_OUTCOMES]]
    return _listed("others-wait-for-you", shown, len(open_waits))


def _reports(ctx: Context, agent: Agent) -> list[str]:
    reports = ctx.tx.all(agent_statements.REPORTS, agent=agent.id)
    shown = [f"- agent:{report.name} ({_doing(ctx, report)})" for report in reports[:MOST_REPORTS]]
    return _listed("your-reports", shown, len(reports))


def _doing(ctx: Context, report: Agent) -> str:
    waiting = waits.of_agent(ctx, report.id)
    if report.status is AgentStatus.IDLE and waiting:
        return waits.briefly(ctx, waiting[0])
    return report.status.value.replace("_", " ")


def _budget(ctx: Context, agent: Agent) -> list[str]:
    left = {kind.value: means.left for kind, means in ledger.means(ctx, agent.id).items()}
    amounts = []
    if "money" in left:
        amounts.append(f"${max(left['money'], 0) / 1_000_000:.2f}")
    if "tokens" in left:
        amounts.append(f"{max(left['tokens'], 0):,} tokens")
    return [f"budget-left: {', '.join(amounts)}"] if amounts else []


def _listed(name: str, shown: list[str], count: int) -> list[str]:
    if not shown:
        return []
    more = [f"- … and {count - len(shown)} more"] if count > len(shown) else []
    return [f"{name}:", *shown, *more]
