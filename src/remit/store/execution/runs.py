"""Statements about runs, their conversations and their logs."""

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import bindparam as bind
from sqlalchemy.dialects import postgresql, sqlite

from remit.clock import Micros
from remit.ids import AgentId, CompanyId
from remit.model.execution.budget import METERS
from remit.model.execution.cost import Cost, cost_of
from remit.model.execution.fault import CONSEQUENCES
from remit.model.execution.run import Run
from remit.store import costs
from remit.store.engine.statement import (
    Rows,
    Statement,
    change,
    if_asked,
    into,
    new,
    scalar,
    unless,
)
from remit.store.tables import agent_sessions, agents, events, files, messages, run_logs, runs

_RUNS = Rows(Run)
_one = runs.c.id == bind("run")
_running = runs.c.status == sa.literal("running")

_OF_OTHERS = [
    sa.literal(fault)
    for fault, consequence in CONSEQUENCES.items()
    if consequence.holds is not None
]

#: One run by id, of any company.
RUN = _RUNS.one(_one).keep()
#: Runs whose id begins with some digits.
RUNS_BY_PREFIX = _RUNS.between(company_id="company", limit=1000, order=None)
#: Runs that failed or were lost; a run that was stopped from outside did not end badly.
BADLY = sa.and_(
    runs.c.status.in_([sa.literal("failed"), sa.literal("lost")]),
    sa.func.coalesce(runs.c.exit_reason, sa.literal("")) != sa.literal("stopped"),
)
#: The run of an agent that is not over.
LIVE_RUN_OF = _RUNS.one(_running, agent_id="agent").keep()
#: All runs that are not over.
LIVE_RUNS = _RUNS.find(_running, order=())
#: Runs of a company, newest first; of one agent, and only live ones, if asked.
RUNS = _RUNS.listed(_running, newest_first=True)
_sought = (
    runs.c.company_id == bind("company"),
    runs.c.id >= bind("since"),
    runs.c.id < bind("before"),
    if_asked(runs.c.agent_id, "agent"),
    unless(
        "any_status",
        runs.c.status == bind("status"),
        sa.and_(bind("status") == sa.literal("failed"), runs.c.status == sa.literal("lost")),
    ),
)
#: Runs of a company between two times, newest first; of one agent and with one result, if asked.
SOUGHT = Statement(
    _RUNS.select(*_sought).order_by(runs.c.id.desc()).limit(bind("limit")), into(Run)
)


@dataclass(frozen=True, slots=True)
class Totals:
    runs: int
    failed: int
    tokens: int
    cost: Cost


_amount = runs.c.tokens_in + runs.c.tokens_out
_bad_ones = sa.case((runs.c.status.in_([sa.literal("failed"), sa.literal("lost")]), 1), else_=0)
#: Totals of the runs that a search finds.
SOUGHT_TOTALS = Statement(
    sa.select(
        sa.func.count(),
        sa.func.coalesce(sa.func.sum(_bad_ones), 0).cast(sa.BigInteger),
        sa.func.coalesce(sa.func.sum(_amount), 0).cast(sa.BigInteger),
        *costs.SUMS,
    ).where(*_sought),
    lambda number, failed, tokens, *sums: Totals(number, failed, tokens, cost_of(*sums)),
)


@dataclass(frozen=True, slots=True)
class Span:
    """The fields of a run that a chart needs."""

    id: str
    agent_id: str
    status: str
    started_at: Micros
    ended_at: Micros | None
    cost: Cost


def _span(
    run: str, agent: str, status: str, since: Micros, until: Micros | None, *cost: int
) -> Span:
    return Span(run, agent, status, since, until, cost_of(*cost))


#: The runs that a search finds, for a chart, newest first.
SPANS = Statement(
    sa.select(
        *(runs.c.id, runs.c.agent_id, runs.c.status, runs.c.started_at, runs.c.ended_at),
        *(runs.c.cost_micros, costs.ESTIMATED, costs.UNPRICED),
    )
    .where(*_sought)
    .order_by(runs.c.id.desc())
    .limit(bind("limit")),
    _span,
)
_later = runs.alias("later")
#: Agents' newest runs that ended badly, which a person has to look at. Reads the last run of each
#: agent, not all that ever failed.
FAILED_RUNS = _RUNS.find(
    BADLY,
    # A fault that closed an account or a set-up is reported once for all agents.
    sa.or_(runs.c.fault.is_(None), runs.c.fault.not_in(_OF_OTHERS)),
    runs.c.id.in_(
        sa.select(
            sa.select(sa.func.max(_later.c.id))
            .where(_later.c.agent_id == agents.c.id)
            .scalar_subquery()
        ).where(
            agents.c.company_id == bind("company"),
            # Nobody can do anything about an agent that is gone.
            agents.c.status != sa.literal_column("'terminated'"),
        )
    ),
    company_id="company",
    order=[runs.c.id.desc()],
    limit=bind("limit"),
)
#: Ends a running run.
END_RUN = _RUNS.update(_one, _running, status=bind("new_status"), ended_at=bind("now"))
#: Records why a run ended that could not report it itself.
EXPLAIN_RUN = _RUNS.update(_one, exit_reason=bind("reason"), error=bind("new_error"))
#: The fields that a run reports at its end, besides its usage.
REPORT = (
    "session_id",
    "final_response",
    "context_length",
    "exit_reason",
    "error",
    "fault",
    "fault_until",
    "acted",
    "changed_files",
)
#: Stores the report of a run, known only when it is over.
REPORT_RUN = _RUNS.update(_one, **new(*REPORT))
#: Whether a later run of an agent than the given one was completed.
GOOD_RUN_SINCE = Statement(
    sa.select(sa.literal(1))
    .where(
        runs.c.agent_id == bind("agent"),
        runs.c.id > bind("run"),
        runs.c.status == sa.literal("completed"),
    )
    .limit(1),
    scalar,
)
#: The newest runs of an agent, newest first.
NEWEST_OF_AGENT = _RUNS.find(agent_id="agent", order=[runs.c.id.desc()], limit=bind("limit"))
#: Runs of a worker with an adapter that were completed, begun after the given run; newest first.
GOOD_ON_WORKER = _RUNS.find(
    runs.c.id > bind("since"),
    runs.c.status == sa.literal("completed"),
    company_id="company",
    worker="worker",
    adapter_type="adapter",
    order=[runs.c.id.desc()],
    limit=bind("limit"),
)
#: Stores the model usage of a run so far.
COUNT_USAGE = _RUNS.update(_one, **new(*METERS, "cost_estimated"))


def _price(newest: sa.Select[Any]) -> Statement[tuple[int, int]]:
    """The total cost and tokens of those among the newest runs that reported a real cost."""
    some = newest.subquery()
    return Statement(
        sa.select(
            sa.func.coalesce(sa.func.sum(some.c.cost_micros), 0).cast(sa.BigInteger),
            sa.func.coalesce(sa.func.sum(some.c.tokens_in + some.c.tokens_out), 0).cast(
                sa.BigInteger
            ),
        ).where(
            some.c.adapter_type == bind("adapter"),
            some.c.cost_micros > 0,
            sa.not_(some.c.cost_estimated),
        ),
        lambda cost, tokens: (int(cost), int(tokens)),
    )


_newest = sa.select(
    runs.c.adapter_type,
    runs.c.cost_micros,
    runs.c.cost_estimated,
    runs.c.tokens_in,
    runs.c.tokens_out,
).order_by(runs.c.id.desc())
#: The cost and tokens of an agent's newest runs.
PRICE_OF_AGENT = _price(_newest.where(runs.c.agent_id == bind("agent")).limit(100))
#: The cost and tokens of the newest runs of a company.
PRICE_IN_COMPANY = _price(_newest.where(runs.c.company_id == bind("company")).limit(500))
#: The messages that a run took up, and up to where in the record it was shown what happened.
TOOK_UP = _RUNS.update(_one, **new("message_ids", "shown"))
#: Files that an agent keeps for itself: its state document and its daily notes.
_own_memory = (
    sa.select(sa.literal("kb_file:").concat(agents.c.state_file_id))
    .where(agents.c.id == bind("agent"))
    .union_all(
        sa.select(sa.literal("kb_file:").concat(files.c.id)).where(
            files.c.home_agent_id == bind("agent"),
            files.c.description.like("memories/____-__-__.md"),
        )
    )
)


def _done(*which: sa.ColumnElement[bool]) -> Statement[Any]:
    """Count the allowed events of a run that meet the conditions."""
    by_run = (events.c.run_id == bind("run"), events.c.allowed == sa.true())
    return Statement(sa.select(sa.func.count()).select_from(events).where(*by_run, *which), scalar)


#: Letters that a run wrote to its own agent.
_own_letters = sa.select(sa.literal("message:").concat(messages.c.id)).where(
    messages.c.sender_run_id == bind("run"),
    messages.c.address == sa.literal("agent:").concat(bind("agent", type_=sa.Text)),
)
#: Actions that nobody but the agent itself notices.
_UNNOTICED = (
    "approval.collect",
    "approval.remind",
    "change.keep",
    "change.prepare",
    "log.submit",
    "message.ack",
    "repo.clone",
    "run.report",
    "run.undelivered",
)
#: Counts the effects of a run: its events that others could notice. Reading, refusals and mail that
#: it took up or acknowledged are none, nor are writes to its own memory and letters to itself.
EFFECTS_OF = _done(
    events.c.action.not_in([sa.literal(action) for action in _UNNOTICED]),
    events.c.resource.not_in(_own_memory),
    events.c.resource.not_in(_own_letters),
)
_ends = ("complete", "close", "submit", "return", "delegate")
#: Counts the outcomes that a run completed, closed, submitted, returned or delegated.
FINISHED_SOMETHING = _done(events.c.action.in_([sa.literal(f"outcome.{verb}") for verb in _ends]))
#: Marks a run whose agent has more to do and goes on.
GO_ON = _RUNS.update(_one, goes_on=sa.true())

# Sessions


@dataclass(frozen=True, slots=True)
class Session:
    agent_id: AgentId
    company_id: CompanyId
    adapter_type: str
    session_id: str
    begun_at: Micros
    used_at: Micros
    context_tokens: int


#: In place of a session id: the next run begins a new conversation.
FRESH = ""
#: The same, because the kept conversation was altered by something else than its program.
ALTERED = "altered"
#: The conversation that an agent can resume.
SESSION = Rows(Session, "agent_id", table=agent_sessions).one(agent_id="agent")


def _keep_session(dialect: object) -> object:
    new = dialect.insert(agent_sessions)  # type: ignore[attr-defined]
    return new.on_conflict_do_update(
        index_elements=[agent_sessions.c.agent_id],
        set_={
            name: new.excluded[name]
            for name in ("adapter_type", "session_id", "begun_at", "used_at", "context_tokens")
        },
    )


#: Stores the conversation of an agent, in place of the one before.
KEEP_SESSION = change(_keep_session(postgresql), sqlite=_keep_session(sqlite))  # type: ignore[arg-type]
#: Deletes the conversation of an agent.
FORGET_SESSION = change(agent_sessions.delete().where(agent_sessions.c.agent_id == bind("agent")))

# Logs

#: Adds a piece of a run's output.
INSERT_LOG = change(sa.insert(run_logs))
#: Adds to the number of bytes that a run printed.
COUNT_LOG = _RUNS.update(_one, log_bytes=runs.c.log_bytes + bind("more"))


@dataclass(frozen=True, slots=True)
class LogPiece:
    number: int
    at: Micros
    stream: str
    text: str


#: Number of a piece before the first: the run's denials, counted during the run, as JSON.
NUMBER_OF_DENIALS = 0
_counts = run_logs.c.number == sa.literal(NUMBER_OF_DENIALS)
#: Deletes the counted denials of a run, before new counts are stored.
FORGET_DENIALS = change(sa.delete(run_logs).where(run_logs.c.run_id == bind("run"), _counts))
#: The denials of the runs from one id to another, both included.
DENIALS = Statement(
    sa.select(runs.c.id, run_logs.c.text)
    .join(run_logs, sa.and_(run_logs.c.run_id == runs.c.id, _counts))
    .where(
        runs.c.company_id == bind("company"), runs.c.id >= bind("first"), runs.c.id <= bind("last")
    ),
    lambda run, text: (str(run), str(text)),
)
#: A page of the pieces of a run's log, in order.
LOG = Rows(LogPiece, "number", table=run_logs).after(run_id="run")
#: A page of the runs that ended badly, newest first, whatever came after them.
ENDED_BADLY = _RUNS.before(BADLY, company_id="company")
