"""Statements about agents' leases: which are awake, which may start, which worker holds each."""

from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy import bindparam as bind
from sqlalchemy.dialects import postgresql, sqlite

from remit.clock import Micros
from remit.ids import AgentId, CompanyId, RunId
from remit.model.execution.run import HELD, Lease
from remit.store.engine.statement import Statement, change, into, new, scalar
from remit.store.execution.due import DUE_BY_DATE, DUE_BY_NEWS, IS_DUE, due_by_look
from remit.store.execution.limits import limited
from remit.store.organisation.halts import stopped
from remit.store.queues import LeasedQueue
from remit.store.tables import agent_leases, agents, outcomes, runs, waits
from remit.store.work.outcomes import PRESSING

_awake = agent_leases.c.wake_seq > agent_leases.c.done_seq
#: Not held by a closed account or set-up; the held ones have another index.
_unheld = agent_leases.c.held_by.is_(None)
_free = sa.or_(agent_leases.c.lease_until.is_(None), agent_leases.c.lease_until <= bind("now"))


_was_spared = sa.and_(
    agent_leases.c.failures > 0,
    agent_leases.c.spared >= agent_leases.c.failures,
    agent_leases.c.due_at > bind("due"),
    agent_leases.c.due_at < HELD,
)


#: Something is due to an agent, and it can be started for it or is at work already.
_can_be_woken = sa.and_(
    sa.exists().where(
        agents.c.id == bind("agent"),
        agents.c.status.in_([sa.literal("idle"), sa.literal("running")]),
        agents.c.adapter_type != sa.literal("human"),
    ),
    IS_DUE,
)
_first_wake = {
    agent_leases.c.agent_id: bind("agent"),
    agent_leases.c.company_id: bind("company"),
    agent_leases.c.due_at: bind("due"),
    agent_leases.c.why: bind("why"),
    agent_leases.c.wake_seq: sa.literal(1),
    agent_leases.c.done_seq: sa.literal(0),
    agent_leases.c.epoch: sa.literal(0),
    agent_leases.c.idle_runs: sa.literal(0),
    agent_leases.c.failures: sa.literal(0),
    agent_leases.c.spared: sa.literal(0),
}


def _wake(dialect: object) -> object:
    typed = (sa.type_coerce(value, column.type) for column, value in _first_wake.items())
    new = dialect.insert(agent_leases).from_select(  # type: ignore[attr-defined]
        list(_first_wake), sa.select(*typed).where(_can_be_woken)
    )
    return new.on_conflict_do_update(
        index_elements=[agent_leases.c.agent_id],
        set_={
            "wake_seq": agent_leases.c.wake_seq + 1,
            # News ends every pause; a pause after a failure only once for each failure.
            "due_at": sa.case((_was_spared, agent_leases.c.due_at), else_=bind("due")),
            "spared": agent_leases.c.failures,
            "why": bind("why"),
            # A review that the clock started is no news.
            "idle_runs": sa.case(
                (bind("by_clock", type_=sa.Boolean), agent_leases.c.idle_runs), else_=0
            ),
        },
    )


#: Something is to do for an agent: a row of its own, or a higher count in it; no row changes when
#: it cannot be woken.
WAKE = change(_wake(postgresql), sqlite=_wake(sqlite))  # type: ignore[arg-type]
QUEUE = LeasedQueue(
    Lease,
    "agent",
    key="agent_id",
    waiting=sa.and_(_awake, _free),
    held=agent_leases.c.lease_until.is_not(None),
    held_by=sa.null(),
)
#: The lease of an agent.
LEASE = QUEUE.row.keep()


@dataclass(frozen=True, slots=True)
class Ready:
    agent_id: AgentId
    company_id: CompanyId
    adapter_type: str
    due_at: Micros


@dataclass(frozen=True, slots=True)
class Startable:
    held_by: str | None


_may_start = sa.and_(
    agents.c.status == sa.literal("idle"), agents.c.adapter_type != sa.literal("human")
)
_rank = sa.case(
    (sa.and_(outcomes.c.urgent, outcomes.c.important), 0),
    (outcomes.c.urgent, 1),
    (outcomes.c.important, 2),
    else_=3,
)
_important = (outcomes.c.important, sa.and_(sa.not_(outcomes.c.important), outcomes.c.urgent))
#: The first due outcome of an agent among the important ones, and among those that are only urgent,
#: by each way of being due: each is the first of an index.
_firsts = [
    sa.select(_rank.label("rank"))
    .where(outcomes.c.owner_id == agent_leases.c.agent_id, due, kind)
    .order_by(*PRESSING)
    .limit(1)
    .correlate(agent_leases)
    .subquery()
    for due in (DUE_BY_NEWS, DUE_BY_DATE, *due_by_look(agent_leases))
    for kind in _important
]
_best = sa.union_all(*(sa.select(first.c.rank) for first in _firsts)).subquery()
#: Rank of an agent's most pressing due outcome: 0 urgent and important, 1 urgent, 2 important; none
#: if it is neither.
_pressing = sa.select(sa.func.min(_best.c.rank)).scalar_subquery()
_startable = (
    sa.select(
        agent_leases.c.agent_id,
        agent_leases.c.company_id,
        agents.c.adapter_type,
        agent_leases.c.due_at,
    )
    .join(agents, agents.c.id == agent_leases.c.agent_id)
    .where(
        _awake,
        agent_leases.c.due_at <= bind("now"),
        _free,
        _may_start,
        sa.not_(stopped(agent_leases)),
    )
)
#: An agent that has work, runs nothing and may be started now, as far as its own row, its lease and
#: halts say; no row when they keep it.
STARTABLE = Statement(
    _startable.with_only_columns(agent_leases.c.held_by).where(
        agent_leases.c.agent_id == bind("agent"),
        IS_DUE,
        ~sa.exists().where(
            runs.c.agent_id == bind("agent"), runs.c.status == sa.literal_column("'running'")
        ),
    ),
    Startable,
)
_awaited = (
    _startable.add_columns(sa.func.coalesce(_pressing, 3).label("rank"))
    .where(_unheld, sa.not_(limited(agent_leases)))
    .subquery()
)
_waiting = sa.select(
    _awaited,
    sa.func.row_number()
    .over(
        partition_by=_awaited.c.company_id,
        order_by=(_awaited.c.rank, _awaited.c.due_at, _awaited.c.agent_id),
    )
    .label("place"),
).subquery()
#: Agents that have work and may start now: of each company those with the most pressing work,
#: among these the longest waiting first.
READY = Statement(
    sa.select(
        _waiting.c.agent_id, _waiting.c.company_id, _waiting.c.adapter_type, _waiting.c.due_at
    )
    .where(_waiting.c.place <= bind("each"))
    .order_by(_waiting.c.place, _waiting.c.rank, _waiting.c.due_at)
    .limit(bind("limit")),
    into(Ready),
)
#: The next time at which a waiting agent is to be started.
NEXT_READY = Statement(
    sa.select(agent_leases.c.due_at)
    .join(agents, agents.c.id == agent_leases.c.agent_id)
    .where(
        _awake,
        _unheld,
        agent_leases.c.due_at > bind("now"),
        agent_leases.c.due_at < HELD,
        _may_start,
    )
    .order_by(agent_leases.c.due_at)
    .limit(1),
    scalar,
)
#: The agents that wait longest for a closed account; the run of the first one probes it.
FIRST_HELD_BY = Statement(
    _startable.where(agent_leases.c.held_by == bind("account"))
    .order_by(agent_leases.c.due_at)
    .limit(bind("limit")),
    into(Ready),
)
#: How many agents wait for an account.
COUNT_HELD_BY = QUEUE.count(held_by="account")
#: Makes an agent wait for a closed account.
WAIT_FOR = QUEUE.change(_free, held_by=bind("account"))
#: Frees the agents that wait for an account, because it opened.
STOP_WAITING_FOR = QUEUE.update(agent_leases.c.held_by == bind("account"), held_by=sa.null())
_let_go = {"lease_until": sa.null(), "worker": sa.null()}
#: Releases an agent after its run; it sleeps, unless `WAKE_AGAIN` follows in the transaction.
RELEASE = QUEUE.change(
    agent_leases.c.epoch == bind("epoch"),
    **_let_go,
    done_seq=bind("seen"),
    due_at=bind("due"),
    **new("idle_runs", "failures", "told", "failing_since", "held_by"),
)
#: Wakes an agent again that has work left after its run.
WAKE_AGAIN = QUEUE.change(
    wake_seq=agent_leases.c.wake_seq + 1, due_at=bind("due"), why=bind("new_why")
)
#: Releases a stopped agent, and lets it sleep until something wakes it.
LET_GO = QUEUE.change(**_let_go, done_seq=agent_leases.c.wake_seq, due_at=HELD)
#: Lets an agent sleep that no worker holds and that has nothing to do.
SETTLE = QUEUE.change(_free, **_let_go, done_seq=agent_leases.c.wake_seq)
#: Sets the time of an agent's next check.
LOOK_AT = QUEUE.change(due_at=bind("due"))
#: Keeps an agent from being started until it is released explicitly.
HOLD = QUEUE.change(due_at=HELD)
#: Sets the time at which an agent looks at what it left alone, and the reason.
LOOK = QUEUE.change(look_at=bind("at"), look_for=bind("what_for"))
#: Pauses the looks of an agent, or no longer.
REST = QUEUE.change(rests=bind("new_rests"))
_asked_anew = sa.and_(
    agent_leases.c.look_at.is_not(None), sa.not_(bind("by_owner", type_=sa.Boolean))
)
_newest_of_desk = (
    sa.select(sa.func.max(waits.c.place))
    .where(waits.c.desk == sa.true(), waits.c.agent_id == bind("agent"))
    .scalar_subquery()
)
#: Ends a wait of an agent's desk: a newer one goes on pausing its looks; else it looks at once,
#: unless it ended the wait itself.
FREE_DESK = QUEUE.change(
    rests=sa.func.coalesce(_newest_of_desk, -1) > agent_leases.c.own_act,
    look_at=sa.case((_asked_anew, bind("now")), else_=agent_leases.c.look_at),
    look_for=sa.case((_asked_anew, sa.literal("nudge")), else_=agent_leases.c.look_for),
)
#: Ends the pause by an own act of the agent.
ACT = QUEUE.change(rests=sa.false(), own_act=bind("place"))


@dataclass(frozen=True, slots=True)
class HeldRun:
    run_id: RunId
    lease_until: Micros


#: The running runs that workers hold, with the end of each lease.
HELD_BY_WORKERS = Statement(
    sa.select(runs.c.id.label("run_id"), agent_leases.c.lease_until)
    .join(agent_leases, agent_leases.c.agent_id == runs.c.agent_id)
    .where(
        runs.c.status == sa.literal("running"),
        runs.c.epoch == agent_leases.c.epoch,
        runs.c.worker.is_not(None),
        agent_leases.c.lease_until.is_not(None),
    ),
    into(HeldRun),
)
#: Awake agents whose start is at a later time.
WAITING = QUEUE.find(
    _awake, agent_leases.c.due_at > bind("now"), agent_leases.c.due_at < HELD, order=()
)
#: Moves the start of an agent to another time, unless it is held.
REDATE = QUEUE.change(agent_leases.c.due_at < HELD, due_at=bind("due"))
#: Moves the start of an agent that is due now to a later time.
DELAY = QUEUE.change(_awake, _free, agent_leases.c.due_at == bind("now"), due_at=bind("due"))
#: Clears the failures of an agent and makes it due now, unless its status keeps it from working.
CALM = QUEUE.change(
    sa.exists().where(
        agents.c.id == agent_leases.c.agent_id,
        agents.c.status.in_([sa.literal("idle"), sa.literal("running")]),
    ),
    **dict.fromkeys(("idle_runs", "failures", "spared"), 0),
    **dict.fromkeys(("told", "failing_since", "held_by"), sa.null()),
    due_at=bind("now"),
)

#: Whether an outcome of an agent is due.
HAS_WORK = Statement(sa.select(sa.literal(1)).where(IS_DUE), scalar).keep()
#: Agents in error whose next check is due.
IN_ERROR = Statement(
    sa.select(agents.c.id)
    .join(agent_leases, agent_leases.c.agent_id == agents.c.id)
    .where(agents.c.status == sa.literal_column("'error'"), agent_leases.c.due_at <= bind("now"))
    .limit(bind("limit")),
    scalar,
)
_not_woken = sa.and_(
    _may_start,
    sa.or_(
        agent_leases.c.agent_id.is_(None),
        sa.and_(
            agent_leases.c.wake_seq == agent_leases.c.done_seq, agent_leases.c.due_at <= bind("now")
        ),
    ),
)
_with_leases = outcomes.join(agents, agents.c.id == outcomes.c.owner_id).outerjoin(
    agent_leases, agent_leases.c.agent_id == outcomes.c.owner_id
)
_with_outcomes = agent_leases.join(agents, agents.c.id == agent_leases.c.agent_id).join(
    outcomes, outcomes.c.owner_id == agent_leases.c.agent_id
)
# Each way of being due has an index.
_forgotten = [
    sa.select(outcomes.c.company_id, outcomes.c.owner_id).select_from(joined).where(due, _not_woken)
    for joined, due in (
        (_with_leases, DUE_BY_NEWS),
        (_with_leases, DUE_BY_DATE),
        *((_with_outcomes, due) for due in due_by_look(agent_leases)),
    )
]
_all_forgotten = sa.union(*_forgotten).subquery()
#: Companies with a due outcome whose owner was not woken, which the sweep repairs.
FORGOTTEN = Statement(
    sa.select(_all_forgotten.c.company_id).distinct().limit(bind("limit")), scalar
)
_forgotten_here = sa.union(
    *(query.where(outcomes.c.company_id == bind("company")) for query in _forgotten)
).subquery()
#: Agents of one company that were not woken for a due outcome.
FORGOTTEN_IN = Statement(
    sa.select(_forgotten_here.c.owner_id).distinct().limit(bind("limit")), scalar
)
