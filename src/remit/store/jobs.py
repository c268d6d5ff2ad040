"""Statements about background jobs."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import (
    Boolean,
    and_,
    case,
    func,
    insert,
    literal,
    literal_column,
    not_,
    null,
    or_,
    select,
    true,
    update,
)
from sqlalchemy import bindparam as bind

from remit.ids import AgentId, CompanyId, JobId
from remit.model.job import Job
from remit.store.agents import BELOW_AGENT
from remit.store.halts import stopped
from remit.store.statement import Statement, change, columns, into, scalar
from remit.store.tables import agents, jobs, messages

_all = columns(jobs, Job)
#: Constants are written out so that the partial index is seen to match.
_unfinished = jobs.c.status.in_([literal_column("'queued'"), literal_column("'running'")])
_queued = jobs.c.status == literal_column("'queued'")
_running = jobs.c.status == literal_column("'running'")
_held = and_(jobs.c.id == bind("job"), _running, jobs.c.epoch == bind("epoch"))

INSERT_JOB = change(insert(jobs))
JOB_ANYWHERE = Statement(select(*_all).where(jobs.c.id == bind("job")), into(Job))
JOB_OF_MESSAGE = Statement(select(*_all).where(jobs.c.message_id == bind("message")), into(Job))
#: Newest first; of one agent, and only unfinished ones, if asked.
JOBS = Statement(
    select(*_all)
    .where(
        jobs.c.company_id == bind("company"),
        jobs.c.id < bind("before"),
        or_(jobs.c.agent_id == bind("agent"), bind("any_agent", type_=Boolean) == true()),
        or_(_unfinished, bind("ended_too", type_=Boolean) == true()),
    )
    .order_by(jobs.c.id.desc())
    .limit(bind("limit")),
    into(Job),
)
JOBS_BY_PREFIX = Statement(
    select(*_all)
    .where(jobs.c.company_id == bind("company"), jobs.c.id >= bind("low"), jobs.c.id < bind("high"))
    .order_by(jobs.c.id)
    .limit(1000),
    into(Job),
)
UNFINISHED_OF = Statement(
    select(*_all).where(jobs.c.agent_id == bind("agent"), _unfinished).order_by(jobs.c.id),
    into(Job),
)
COUNT_UNFINISHED = Statement(
    select(func.count()).where(jobs.c.agent_id == bind("agent"), _unfinished), scalar
)
UNFINISHED_IN_THREAD = Statement(
    select(*_all)
    .join(messages, messages.c.id == jobs.c.message_id)
    .where(messages.c.thread_id == bind("thread"), _unfinished)
    .order_by(jobs.c.id),
    into(Job),
)
#: Of an agent and everybody below it.
UNFINISHED_BELOW = Statement(
    select(*_all)
    .where(jobs.c.agent_id.in_(select(BELOW_AGENT.c.id)), _unfinished)
    .order_by(jobs.c.id)
    .limit(bind("limit")),
    into(Job),
)


@dataclass(frozen=True, slots=True)
class Ready:
    id: JobId
    agent_id: AgentId
    company_id: CompanyId


_may_start = agents.c.status.in_([literal("idle"), literal("running")])
#: What each agent has under way and in line, in that order.
_lines = (
    select(
        jobs.c.id,
        jobs.c.agent_id,
        jobs.c.company_id,
        jobs.c.status,
        func.row_number()
        .over(partition_by=jobs.c.agent_id, order_by=(case((_running, 0), else_=1), jobs.c.id))
        .label("place"),
    )
    .join(agents, agents.c.id == jobs.c.agent_id)
    .where(
        or_(
            _running,
            and_(
                _queued,
                jobs.c.held_by.is_(None),
                jobs.c.due_at <= bind("now"),
                _may_start,
                not_(stopped(jobs)),
            ),
        )
    )
    .subquery()
)
#: Whoever has least under way comes first, so that one with many does not starve the others.
READY = Statement(
    select(_lines.c.id, _lines.c.agent_id, _lines.c.company_id)
    .where(_lines.c.status == literal_column("'queued'"))
    .order_by(_lines.c.place, _lines.c.id)
    .limit(bind("limit")),
    into(Ready),
)
#: Those that wait for a closed account or set-up, the oldest first.
HELD_BY = Statement(
    select(*_all)
    .join(agents, agents.c.id == jobs.c.agent_id)
    .where(_unfinished, _queued, jobs.c.held_by == bind("account"), _may_start, not_(stopped(jobs)))
    .order_by(jobs.c.id)
    .limit(bind("limit")),
    into(Job),
)
COUNT_HELD_BY = Statement(
    select(func.count()).where(_unfinished, _queued, jobs.c.held_by == bind("account")), scalar
)
#: What of an agent's waits for one.
HELD_OF = Statement(
    select(*_all)
    .where(jobs.c.agent_id == bind("agent"), _queued, jobs.c.held_by.is_not(None))
    .order_by(jobs.c.id),
    into(Job),
)
WAIT_FOR = change(
    update(jobs).where(jobs.c.id == bind("job"), _queued).values(held_by=bind("account"))
)
STOP_WAITING_FOR = change(
    update(jobs)
    .where(_unfinished, _queued, jobs.c.held_by == bind("account"))
    .values(held_by=null())
)
#: Their sender is run in another way now, and so are they.
CONFIGURE_HELD = change(
    update(jobs)
    .where(jobs.c.agent_id == bind("agent"), _queued, jobs.c.held_by.is_not(None))
    .values(adapter_type=bind("new_type"), adapter_config=bind("new_config"), held_by=null())
)
#: When the next one is due that has to wait for its time.
NEXT_DUE = Statement(
    select(func.min(jobs.c.due_at)).where(_queued, jobs.c.due_at > bind("now")), scalar
)
RUNNING = Statement(select(*_all).where(_running).order_by(jobs.c.id), into(Job))
EXPIRED = Statement(
    select(*_all)
    .where(_running, jobs.c.lease_until <= bind("now"))
    .order_by(jobs.c.id)
    .limit(bind("limit")),
    into(Job),
)
CLAIM = change(
    update(jobs)
    .where(jobs.c.id == bind("job"), _queued, jobs.c.due_at <= bind("now"))
    .values(
        status="running",
        worker=bind("new_worker"),
        epoch=jobs.c.epoch + 1,
        attempts=jobs.c.attempts + 1,
        lease_until=bind("until"),
        started_at=bind("now"),
        held_by=bind("probed"),
    )
)
RENEW = change(update(jobs).where(_held).values(lease_until=bind("until")))
#: Take hold of a lease that says what it said before; who renews it meanwhile comes too late.
STILL_SILENT = change(
    update(jobs).where(_held, jobs.c.lease_until == bind("until")).values(worker=jobs.c.worker)
)
#: Back in line, because its worker is gone.
GIVE_BACK = change(
    update(jobs)
    .where(_held)
    .values(status="queued", worker=null(), lease_until=null(), held_by=null())
)
#: The same, but not before a time.
TRY_LATER = change(
    update(jobs)
    .where(_held)
    .values(status="queued", worker=null(), lease_until=null(), held_by=null(), due_at=bind("due"))
)
#: The same, because its worker was stopped or its account is closed, which is no fault of the job.
PUT_BACK = change(
    update(jobs)
    .where(_held)
    .values(
        status="queued",
        worker=null(),
        lease_until=null(),
        attempts=jobs.c.attempts - 1,
        held_by=bind("closed"),
    )
)
_end = {
    "status": bind("new_status"),
    "ended_at": bind("now"),
    "error": bind("new_error"),
    "lease_until": null(),
    "held_by": null(),
}
#: By the worker that holds it, and by nobody else.
END = change(update(jobs).where(_held).values(_end))
#: By somebody who wants it ended, whoever holds it.
CANCEL = change(update(jobs).where(jobs.c.id == bind("job"), _unfinished).values(_end))
#: It was dropped with its sender, who works again.
TAKE_UP_AGAIN = change(
    update(jobs)
    .where(jobs.c.id == bind("job"), jobs.c.status == literal("cancelled"))
    .values(status="queued", worker=null(), error=null(), ended_at=null())
)
ANSWERED = change(update(jobs).where(jobs.c.id == bind("job")).values(answer_id=bind("answer")))
#: What it took from a model, over all attempts.
CHARGE = change(
    update(jobs)
    .where(jobs.c.id == bind("job"))
    .values(
        {
            name: jobs.c[name] + bind(f"more_{name}")
            for name in ("tokens_in", "tokens_out", "tokens_cached", "cost_micros")
        }
    )
)
