"""Read model of runs: their occasions, totals, and times for a drawing."""

import json
from collections.abc import Callable, Iterable
from typing import Final, Unpack

from remit.model.execution.run import Run
from remit.model.work.outcome import Outcome
from remit.services import lookup, shapes, views
from remit.services.command import Context, query
from remit.services.execution import runs
from remit.services.execution.running import reader
from remit.services.messaging import letters
from remit.services.subjects import reader as outcome_reader
from remit.store.execution import runs as statements
from remit.store.work import outcomes as outcome_statements

MOST_SPANS: Final = 5_000
#: Occasions by the stored reason, for runs without a letter or an outcome that tells more.
_WHY: Final = {
    "mail": "New mail",
    "it was taken on": "First run",
    "something is left to do": "Continuing its work",
    "something else is left to do": "Continuing its work",
    "it is time to look again": "Scheduled review",
    "an outcome was handed over": "New assignment",
    "by hand": "Started by hand",
    "its adapter can be used": "Its adapter works again",
    "there is something to spend again": "Budget available again",
    "it took over from somebody who is gone": "Took over from a former agent",
}
_CONTINUED: Final = frozenset({"something is left to do", "something else is left to do"})


@query("run_page.occasions")
def occasions(ctx: Context, *, company: str | None, runs: Iterable[str]) -> dict[str, str]:
    """Occasion of each run in a few words: the letter, or the outcome."""
    lookup.company_of_caller(ctx, company)
    sees, may_read = reader(ctx), outcome_reader(ctx)
    by_run: dict[str, str] = {}
    for run_id in runs:
        run = ctx.tx.one(statements.RUN, run=run_id)
        if run is not None and run.company_id == ctx.company and sees(run):
            by_run[run_id] = occasion(ctx, run, may_read)
    return by_run


def occasion(ctx: Context, run: Run, may_read: Callable[[Outcome], bool]) -> str:
    """Occasion of a run: its letter, its outcome, or else its reason."""
    why = _WHY.get(run.why or "", (run.why or "").capitalize())
    if run.why == "mail":
        for message in json.loads(run.message_ids)[:1]:
            letter = lookup.message_row(ctx, message)
            if letter is not None and letter.subject and letters.sees(ctx, letter):
                return f"New mail: “{letter.subject}”"
        return why
    for own in json.loads(run.outcome_ids)[:1]:
        outcome = ctx.tx.one(outcome_statements.OUTCOME, outcome=own)
        if outcome is not None and may_read(outcome):
            return f"{'Continuing' if run.why in _CONTINUED else f'{why}:'} “{outcome.title}”"
    return why


@query("run_page.totals")
def totals(ctx: Context, **wanted: Unpack[runs.Sought]) -> shapes.RunTotalsShape:
    """Totals over the runs that match the filters."""
    sums = ctx.tx.existing(statements.SOUGHT_TOTALS, **runs.sought(ctx, **wanted))
    return {
        "runs": sums.runs,
        "failed": sums.failed,
        "tokens": sums.tokens,
        **sums.cost.view(),
    }


@query("run_page.spans")
def spans(ctx: Context, **wanted: Unpack[runs.Sought]) -> shapes.RunSpansShape:
    """Start, end and agent of the runs that match the filters, newest first."""
    filters = runs.sought(ctx, **wanted)
    rows = ctx.tx.all(statements.SPANS, limit=MOST_SPANS + 1, **filters)
    return {
        "spans": [
            {
                "id": row.id,
                "agent_id": row.agent_id,
                "status": row.status,
                "started_at": row.started_at,
                "ended_at": row.ended_at,
                **row.cost.view(),
            }
            for row in rows[:MOST_SPANS]
        ],
        "cut_off": len(rows) > MOST_SPANS,
        "now": views.time(ctx.now),
    }
