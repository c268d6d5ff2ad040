"""Statements about leases: who is awake, who may be started, and who holds whom."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import (
    Boolean,
    and_,
    case,
    exists,
    func,
    literal,
    literal_column,
    not_,
    null,
    or_,
    select,
    union,
    update,
)
from sqlalchemy import bindparam as bind
from sqlalchemy.dialects import postgresql, sqlite

from remit.clock import Micros
from remit.ids import AgentId, CompanyId, RunId
from remit.model.run import HELD, Lease
from remit.store.due import DUE, DUE_BY_CLOCK, DUE_BY_NEWS, IS_DUE
from remit.store.halts import stopped
from remit.store.limits import limited
from remit.store.statement import Statement, change, columns, into, scalar
from remit.store.tables import (
    agent_leases,
    agents,
    outcomes,
    runs,
)

_lease = columns(agent_leases, Lease)
_awake = agent_leases.c.wake_seq > agent_leases.c.done_seq
#: Who waits for a closed account or set-up is in another index than those who are ready.
_unheld = agent_leases.c.held_by.is_(None)
_free = or_(agent_leases.c.lease_until.is_(None), agent_leases.c.lease_until <= bind("now"))


_was_spared = and_(
    agent_leases.c.failures > 0,
    agent_leases.c.spared >= agent_leases.c.failures,
    agent_leases.c.due_at > bind("due"),
    agent_leases.c.due_at < HELD,
)


def _wake(dialect: object) -> object:
    new = dialect.insert(agent_leases).values(  # type: ignore[attr-defined]
        agent_id=bind("agent"),
        company_id=bind("company"),
        wake_seq=1,
        done_seq=0,
        epoch=0,
        lease_until=null(),
        worker=null(),
        due_at=bind("due"),
        why=bind("why"),
        idle_runs=0,
        failures=0,
        spared=0,
        told=null(),
        failing_since=null(),
        held_by=null(),
    )
    return new.on_conflict_do_update(
        index_elements=[agent_leases.c.agent_id],
        set_={
            "wake_seq": agent_leases.c.wake_seq + 1,
            # Something new ends every pause, the one after a failure once for each failure.
            "due_at": case((_was_spared, agent_leases.c.due_at), else_=bind("due")),
            "spared": agent_leases.c.failures,
            "why": bind("why"),
            # What the clock brought is nothing new.
            "idle_runs": case((bind("by_clock", type_=Boolean), agent_leases.c.idle_runs), else_=0),
        },
    )


WAKE = change(_wake(postgresql), sqlite=_wake(sqlite))  # type: ignore[arg-type]
LEASE = Statement(select(*_lease).where(agent_leases.c.agent_id == bind("agent")), into(Lease))


@dataclass(frozen=True, slots=True)
class Ready:
    agent_id: AgentId
    company_id: CompanyId
    adapter_type: str
    due_at: Micros


_may_start = and_(
    agents.c.status == literal("idle"),
    agents.c.adapter_type != literal("human"),
)
#: How pressing the most pressing is that an agent could do: 0 urgent and important, 3 neither.
_pressing = (
    select(
        case(
            (and_(outcomes.c.urgent, outcomes.c.important), 0),
            (outcomes.c.urgent, 1),
            (outcomes.c.important, 2),
            else_=3,
        )
    )
    .where(outcomes.c.owner_id == agent_leases.c.agent_id, DUE)
    .order_by(outcomes.c.urgent.desc(), outcomes.c.important.desc())
    .limit(1)
    .scalar_subquery()
)
_awaited = (
    select(
        agent_leases.c.agent_id,
        agent_leases.c.company_id,
        agents.c.adapter_type,
        agent_leases.c.due_at,
        func.coalesce(_pressing, 3).label("rank"),
    )
    .join(agents, agents.c.id == agent_leases.c.agent_id)
    .where(
        _awake,
        _unheld,
        agent_leases.c.due_at <= bind("now"),
        _free,
        _may_start,
        not_(stopped(agent_leases)),
        not_(limited(agent_leases)),
    )
    .subquery()
)
_waiting = select(
    _awaited,
    func.row_number()
    .over(
        partition_by=_awaited.c.company_id,
        order_by=(_awaited.c.rank, _awaited.c.due_at, _awaited.c.agent_id),
    )
    .label("place"),
).subquery()
#: Who has something to do and may do it now: of each company those with the most pressing work,
#: and among these those that wait longest.
READY = Statement(
    select(_waiting.c.agent_id, _waiting.c.company_id, _waiting.c.adapter_type, _waiting.c.due_at)
    .where(_waiting.c.place <= bind("each"))
    .order_by(_waiting.c.place, _waiting.c.rank, _waiting.c.due_at)
    .limit(bind("limit")),
    into(Ready),
)
NEXT_READY = Statement(
    select(agent_leases.c.due_at)
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
#: The first of those who wait for a closed account: its run finds out whether that works again.
FIRST_HELD_BY = Statement(
    select(
        agent_leases.c.agent_id,
        agent_leases.c.company_id,
        agents.c.adapter_type,
        agent_leases.c.due_at,
    )
    .join(agents, agents.c.id == agent_leases.c.agent_id)
    .where(
        agent_leases.c.held_by == bind("account"),
        _awake,
        agent_leases.c.due_at <= bind("now"),
        _free,
        _may_start,
        not_(stopped(agent_leases)),
    )
    .order_by(agent_leases.c.due_at)
    .limit(bind("limit")),
    into(Ready),
)
COUNT_HELD_BY = Statement(
    select(func.count()).where(agent_leases.c.held_by == bind("account")), scalar
)
#: Not to be looked for until the account opens.
WAIT_FOR = change(
    update(agent_leases)
    .where(agent_leases.c.agent_id == bind("agent"), _free)
    .values(held_by=bind("account"))
)
STOP_WAITING_FOR = change(
    update(agent_leases).where(agent_leases.c.held_by == bind("account")).values(held_by=null())
)
CLAIM = change(
    update(agent_leases)
    .where(agent_leases.c.agent_id == bind("agent"), _awake, _free)
    .values(
        epoch=agent_leases.c.epoch + 1,
        held_by=null(),
        lease_until=bind("until"),
        worker=bind("new_worker"),
    )
)
RENEW = change(
    update(agent_leases)
    .where(
        agent_leases.c.agent_id == bind("agent"),
        agent_leases.c.epoch == bind("epoch"),
        agent_leases.c.lease_until.is_not(None),
    )
    .values(lease_until=bind("until"))
)
#: Take hold of a lease that says what it said before; who renews it meanwhile comes too late.
STILL_SILENT = change(
    update(agent_leases)
    .where(
        agent_leases.c.agent_id == bind("agent"),
        agent_leases.c.epoch == bind("epoch"),
        agent_leases.c.lease_until == bind("until"),
    )
    .values(worker=agent_leases.c.worker)
)
#: A run is over: nothing is to be done, unless `WAKE_AGAIN` says so in the same transaction.
RELEASE = change(
    update(agent_leases)
    .where(agent_leases.c.agent_id == bind("agent"), agent_leases.c.epoch == bind("epoch"))
    .values(
        done_seq=bind("seen"),
        lease_until=null(),
        worker=null(),
        due_at=bind("due"),
        idle_runs=bind("new_idle_runs"),
        failures=bind("new_failures"),
        told=bind("new_told"),
        failing_since=bind("new_failing_since"),
        held_by=bind("new_held_by"),
    )
)
WAKE_AGAIN = change(
    update(agent_leases)
    .where(agent_leases.c.agent_id == bind("agent"))
    .values(wake_seq=agent_leases.c.wake_seq + 1, due_at=bind("due"), why=bind("new_why"))
)
TOLD = change(
    update(agent_leases)
    .where(agent_leases.c.agent_id == bind("agent"))
    .values(told=bind("new_told"))
)
#: Whoever stopped a run wants it to stand still until something new comes.
LET_GO = change(
    update(agent_leases)
    .where(agent_leases.c.agent_id == bind("agent"))
    .values(done_seq=agent_leases.c.wake_seq, lease_until=null(), worker=null(), due_at=HELD)
)
#: There is nothing to do for it after all, and nobody is seeing to it.
SETTLE = change(
    update(agent_leases)
    .where(agent_leases.c.agent_id == bind("agent"), _free)
    .values(done_seq=agent_leases.c.wake_seq, lease_until=null(), worker=null())
)
#: When an agent that a person has to see to is looked at again.
LOOK_AT = change(
    update(agent_leases).where(agent_leases.c.agent_id == bind("agent")).values(due_at=bind("due"))
)
#: Not to be started until somebody says so.
HOLD = change(
    update(agent_leases).where(agent_leases.c.agent_id == bind("agent")).values(due_at=HELD)
)


@dataclass(frozen=True, slots=True)
class HeldRun:
    run_id: RunId
    lease_until: Micros


#: What workers are at, or were when they were last heard of.
HELD_BY_WORKERS = Statement(
    select(runs.c.id.label("run_id"), agent_leases.c.lease_until)
    .join(agent_leases, agent_leases.c.agent_id == runs.c.agent_id)
    .where(
        runs.c.status == literal("running"),
        runs.c.epoch == agent_leases.c.epoch,
        runs.c.worker.is_not(None),
        agent_leases.c.lease_until.is_not(None),
    ),
    into(HeldRun),
)
#: Those that are to be started later.
WAITING = Statement(
    select(*_lease).where(
        _awake, agent_leases.c.due_at > bind("now"), agent_leases.c.due_at < HELD
    ),
    into(Lease),
)
REDATE = change(
    update(agent_leases)
    .where(agent_leases.c.agent_id == bind("agent"), agent_leases.c.due_at < HELD)
    .values(due_at=bind("due"))
)
#: What went wrong before is forgiven, unless somebody has to say so first.
CALM = change(
    update(agent_leases)
    .where(
        agent_leases.c.agent_id == bind("agent"),
        exists().where(
            agents.c.id == agent_leases.c.agent_id,
            agents.c.status.in_([literal("idle"), literal("running")]),
        ),
    )
    .values(
        idle_runs=0,
        failures=0,
        spared=0,
        told=null(),
        failing_since=null(),
        held_by=null(),
        due_at=bind("now"),
    )
)

#: Whether something is due to an agent.
HAS_WORK = Statement(select(literal(1)).where(IS_DUE), scalar)
#: The same, if it can be started for it or is at work already.
CAN_BE_WOKEN = Statement(
    select(literal(1)).where(
        exists().where(
            agents.c.id == bind("agent"),
            agents.c.status.in_([literal("idle"), literal("running")]),
            agents.c.adapter_type != literal("human"),
        ),
        IS_DUE,
    ),
    scalar,
)
#: Agents for a person to see to, as long as nothing works with them; looked at now and then.
IN_ERROR = Statement(
    select(agents.c.id)
    .join(agent_leases, agent_leases.c.agent_id == agents.c.id)
    .where(agents.c.status == literal_column("'error'"), agent_leases.c.due_at <= bind("now"))
    .limit(bind("limit")),
    scalar,
)
_not_woken = and_(
    _may_start,
    or_(
        agent_leases.c.agent_id.is_(None),
        and_(
            agent_leases.c.wake_seq == agent_leases.c.done_seq,
            agent_leases.c.due_at <= bind("now"),
        ),
    ),
)
_with_leases = outcomes.join(agents, agents.c.id == outcomes.c.owner_id).outerjoin(
    agent_leases, agent_leases.c.agent_id == outcomes.c.owner_id
)
# What is new and what the clock brought are found in an index each.
_forgotten = [
    select(outcomes.c.company_id, outcomes.c.owner_id)
    .select_from(_with_leases)
    .where(due, _not_woken)
    for due in (DUE_BY_NEWS, DUE_BY_CLOCK)
]
_all_forgotten = union(*_forgotten).subquery()
#: Companies in which something is due to somebody who was not woken; what the sweep repairs.
FORGOTTEN = Statement(select(_all_forgotten.c.company_id).distinct().limit(bind("limit")), scalar)
_forgotten_here = union(
    *(one.where(outcomes.c.company_id == bind("company")) for one in _forgotten)
).subquery()
FORGOTTEN_IN = Statement(select(_forgotten_here.c.owner_id).distinct().limit(bind("limit")), scalar)
