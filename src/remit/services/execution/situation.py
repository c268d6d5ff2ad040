"""Situation of a run when it begins: why it was started, what is due, who waits for whom.

A model that has this need not call four tools to find it out, and does not begin again what only
waits. Titles and names were chosen by others, so each is quoted, on one line.
"""

import json
from collections.abc import Sequence

from remit.clock import to_iso
from remit.model.execution.run import Run
from remit.model.messaging.turn import quoted
from remit.model.organisation.agent import Agent, AgentStatus
from remit.model.work.outcome import Outcome, OutcomeKind, OutcomeStatus, why_not_actionable
from remit.services import lookup, shapes
from remit.services.command import Context
from remit.services.knowledge import documents
from remit.services.spending import ledger
from remit.services.work import waits
from remit.store.execution import runs as run_statements
from remit.store.organisation import agents as agent_statements
from remit.store.work import outcomes as outcome_statements
from remit.store.work import waits as wait_statements

MOST_OUTCOMES = 12
MOST_REPORTS = 12
#: The most letters to know that one run is shown.
MOST_TO_KNOW = 12
#: Longest quotation of a letter to know, and of what a run said that it did, in characters.
MOST_SAID = 300
#: How much of a mandate's text goes into each prompt; the rest is in its document.
MOST_PURPOSE = 2000


def of_run(ctx: Context, run: Run, agent: Agent, to_know: Sequence[shapes.LetterShape] = ()) -> str:
    """The situation as a few lines; nothing in them is an instruction. `to_know` are letters of
    Remit that ask for nothing."""
    lines = [f"why-this-run: {run.why or 'you were started by hand'}"]
    lines += _last_run(ctx, run)
    lines += _to_know(to_know)
    lines += _outcomes(ctx, run, agent)
    lines += _asked(ctx, agent)
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


def _last_run(ctx: Context, run: Run) -> list[str]:
    """Line about the agent's run before this one: when, how it ended, and what it said it did."""
    newest = ctx.tx.all(run_statements.NEWEST_OF_AGENT, agent=run.agent_id, limit=2)
    last = next((other for other in newest if other.id != run.id), None)
    if last is None or last.ended_at is None:
        return []
    ended = last.status.value if last.fault is None else f"{last.status.value}, {last.fault}"
    logged = documents.log_entries(ctx, run.agent_id, 1)
    words = (last.final_response or "").strip()
    if logged and logged[0]["run_id"] == last.id:
        words = logged[0]["summary"].strip()
    quote = f"it said: {quoted(words, MOST_SAID)}" if words else "it said nothing"
    times = f"{to_iso(last.started_at)} to {to_iso(last.ended_at)}"
    return [f"your-last-run: {times}, {ended}; {quote}"]


def _to_know(to_know: Sequence[shapes.LetterShape]) -> list[str]:
    """Lines about letters that are only to know."""
    shown = []
    for letter in to_know:
        text = letter["body"].strip()
        more = f", whole in kb://{letter['file_id']}" if len(text) > MOST_SAID else ""
        shown.append(f"- {quoted(letter['subject'])}: {quoted(text, MOST_SAID)}{more}")
    return _listed("to-know", shown, len(shown))


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


def _asked(ctx: Context, agent: Agent) -> list[str]:
    """Lines about undecided requests of the agent that are about none of its outcomes."""
    undecided = ctx.tx.all(wait_statements.WAITS_OF_DESK, agent=agent.id, limit=MOST_OUTCOMES + 1)
    shown = [
        f"- {wait.kind.value}:{wait.subject_id} ({waits.briefly(ctx, wait)})"
        for wait in undecided[:MOST_OUTCOMES]
    ]
    return _listed("you-asked", shown, len(undecided))


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
