"""Statements about background jobs."""

from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy import bindparam as bind

from remit.ids import AgentId, CompanyId, JobId
from remit.model.execution.budget import METERS
from remit.model.execution.job import Job
from remit.store.engine.statement import Statement, into
from remit.store.organisation.agents import BELOW_AGENT
from remit.store.organisation.halts import stopped
from remit.store.queues import StatusQueue
from remit.store.tables import agents, jobs, messages

QUEUE = StatusQueue(
    Job,
    "job",
    held="running",
    due="due_at",
    attempts="attempts",
    why="error",
    resets=("held_by",),
    started_at=bind("now"),
    held_by=bind("probed"),
)
_unfinished, _queued, _running = QUEUE.unfinished, QUEUE.queued, QUEUE.running

#: A job by its id, of whatever company.
JOB_ANYWHERE = QUEUE.row
#: The job that a message asked for.
JOB_OF_MESSAGE = QUEUE.one(message_id="message")
#: Jobs of a company, newest first; of one agent, and only unfinished ones, if asked.
JOBS = QUEUE.listed(_unfinished, newest_first=True)
#: Jobs whose id begins with some digits.
JOBS_BY_PREFIX = QUEUE.between(company_id="company", limit=1000, order=None)
#: The unfinished jobs of an agent.
UNFINISHED_OF = QUEUE.find(_unfinished, agent_id="agent")
#: How many unfinished jobs an agent has.
COUNT_UNFINISHED = QUEUE.count(_unfinished, agent_id="agent")
#: The unfinished jobs of a thread.
UNFINISHED_IN_THREAD = QUEUE.find(
    messages.c.thread_id == bind("thread"),
    _unfinished,
    join=(messages, messages.c.id == jobs.c.message_id),
)
#: Unfinished jobs of an agent and everybody below it.
UNFINISHED_BELOW = QUEUE.find(
    jobs.c.agent_id.in_(sa.select(BELOW_AGENT.c.id)), _unfinished, limit=bind("limit")
)


@dataclass(frozen=True, slots=True)
class Ready:
    id: JobId
    agent_id: AgentId
    company_id: CompanyId


_may_start = agents.c.status.in_([sa.literal("idle"), sa.literal("running")])
#: The running and startable jobs, numbered per agent in that order.
_lines = (
    sa.select(
        jobs.c.id,
        jobs.c.agent_id,
        jobs.c.company_id,
        jobs.c.status,
        sa.func.row_number()
        .over(partition_by=jobs.c.agent_id, order_by=(sa.case((_running, 0), else_=1), jobs.c.id))
        .label("place"),
    )
    .join(agents, agents.c.id == jobs.c.agent_id)
    .where(
        sa.or_(
            _running,
            sa.and_(
                _queued, jobs.c.held_by.is_(None), QUEUE.is_due, _may_start, sa.not_(stopped(jobs))
            ),
        )
    )
    .subquery()
)
#: Jobs that can be started; those of agents with the fewest running come first, so that one agent
#: with many does not starve the others.
READY = Statement(
    sa.select(_lines.c.id, _lines.c.agent_id, _lines.c.company_id)
    .where(_lines.c.status == sa.literal_column("'queued'"))
    .order_by(_lines.c.place, _lines.c.id)
    .limit(bind("limit")),
    into(Ready),
)
_waits_for = sa.and_(_unfinished, _queued, jobs.c.held_by == bind("account"))
#: Jobs that wait for a closed account or set-up and could be started, the oldest first.
HELD_BY = QUEUE.find(
    _waits_for,
    _may_start,
    sa.not_(stopped(jobs)),
    join=(agents, agents.c.id == jobs.c.agent_id),
    limit=bind("limit"),
)
#: How many jobs wait for a closed account or set-up.
COUNT_HELD_BY = QUEUE.count(_waits_for)
_held_of = sa.and_(jobs.c.agent_id == bind("agent"), _queued, jobs.c.held_by.is_not(None))
#: The jobs of an agent that wait for a closed account or set-up.
HELD_OF = QUEUE.find(_held_of)
#: Makes a queued job wait for a closed account.
WAIT_FOR = QUEUE.change(_queued, held_by=bind("account"))
#: Frees the jobs that wait for an account, because it opened.
STOP_WAITING_FOR = QUEUE.update(_waits_for, held_by=sa.null())
#: Gives an agent's held jobs the adapter and configuration that the agent has now, and frees them.
CONFIGURE_HELD = QUEUE.update(
    _held_of, adapter_type=bind("new_type"), adapter_config=bind("new_config"), held_by=sa.null()
)
#: Requeues a job until its account opens; the attempt does not count.
PUT_BACK_TO_WAIT = QUEUE.requeue(attempts=jobs.c.attempts - 1, held_by=bind("account"))
#: Queues a cancelled job again, because its sender was reinstated.
TAKE_UP_AGAIN = QUEUE.change(
    jobs.c.status == sa.literal("cancelled"),
    status="queued",
    worker=sa.null(),
    error=sa.null(),
    ended_at=sa.null(),
)
#: Records the message that answered the sender.
ANSWERED = QUEUE.change(answer_id=bind("answer"))
#: Adds the model usage of an attempt to the totals of a job.
CHARGE = QUEUE.change(
    **{name: jobs.c[name] + bind(f"more_{name}") for name in METERS},
    cost_estimated=bind("estimated"),
    price=bind("new_price"),
)
