"""Queue of background jobs for workers: ready jobs, leases, take-over from silent workers.

A job is leased with an epoch, like an agent: a worker whose lease was taken over is refused from
then on.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from remit.authority import Action
from remit.clock import Micros
from remit.errors import Conflict, NotFound, Refused
from remit.ids import FileId, JobId, is_id
from remit.model.execution.account import PROBES, Account
from remit.model.execution.cost import Price
from remit.model.execution.fault import CONSEQUENCES, fault_of
from remit.model.execution.job import MOST_ATTEMPTS, Job, JobStatus
from remit.model.messaging.mail import Message
from remit.model.organisation.agent import Agent, AgentStatus
from remit.model.organisation.decision import deny
from remit.model.organisation.principal import Principal
from remit.services import lookup, shapes, views
from remit.services.command import FOR_REMIT, Context, command, logged, query
from remit.services.connections import folders
from remit.services.context import system_only
from remit.services.execution import account_faults, accounts, jobs, run_start
from remit.services.execution.run_queue import LEASE_TIME, MOST_AT_ONCE, has_full_access
from remit.services.knowledge import files
from remit.services.organisation import halts
from remit.services.queues import Held, Queue
from remit.services.spending import budgets, ledger, limits, pricing
from remit.services.verbs import Added
from remit.store.execution import jobs as statements
from remit.store.messaging import mail as mail_statements
from remit.store.work import files as file_statements

#: Longest stored message of a provider, in characters.
LONGEST = 500
_QUEUE = Queue(statements.QUEUE)


@query("job_work.ready", FOR_REMIT, Added("worker", "local"))
def ready(ctx: Context, *, limit: int = MOST_AT_ONCE, worker: str = "local") -> list[str]:
    """Return the jobs that can start, fair to senders: those first whose sender has the fewest
    running; before them the waiting jobs that may start after all, such as probes of closed
    accounts (`accounts.job_candidates`)."""
    ids: list[str] = [*accounts.job_candidates(ctx, worker)]
    ids += [job.id for job in ctx.tx.all(statements.READY, limit=limit)]
    return ids[:limit]


@query("job_work.next_due", FOR_REMIT)
def next_due(ctx: Context) -> Micros | None:
    """Return the time at which the next deferred job is due."""
    return _QUEUE.next_due(ctx)


@command("job_work.claim")
def claim(
    ctx: Context, *, job: str, worker: str, lease: Micros = LEASE_TIME
) -> shapes.ClaimedJobShape:
    """Lease a job to one worker; others are refused."""
    job_row = _entered(ctx, job)
    agent = lookup.known_agent(ctx, job_row.agent_id)
    halts.refuse_stopped(ctx, agent)
    may_start = agent.status in (AgentStatus.IDLE, AgentStatus.RUNNING)
    admitted = accounts.admit(ctx, job_row, worker)
    probed = admitted.account.id if admitted.probe else None
    if not may_start or not _QUEUE.claim(ctx, job, worker, lease, probed=probed):
        raise Conflict("The job cannot be started, or somebody is at it.")
    accounts.count(ctx, admitted)
    epoch = job_row.epoch + 1
    details = {"agent_id": job_row.agent_id, "worker": worker, "attempt": job_row.attempts + 1}
    ctx.record("job.start", f"job:{job}", details)
    return {
        "id": job,
        "epoch": epoch,
        "agent_id": job_row.agent_id,
        "company_id": job_row.company_id,
    }


@logged("job_work.wait", FOR_REMIT)
def wait(ctx: Context, *, job: str, worker: str) -> None:
    """Mark a job as waiting for its closed account or set-up; for the worker that met it."""
    job_row = lookup.find(ctx, jobs.JOB, job)
    ctx.lock_company()  # opening the account takes this lock, too
    if (closed := accounts.closed_for(ctx, job_row, worker)) is not None:
        ctx.tx.run(statements.WAIT_FOR, job=job_row.id, account=closed.id)


@logged("job_work.renew", FOR_REMIT)
def renew(ctx: Context, *, held: Sequence[Held], lease: Micros = LEASE_TIME) -> list[Held]:
    """Renew these leases; returns those that have ended or were lost."""
    return _QUEUE.renew(ctx, held, lease)


@query("job_work.lost", FOR_REMIT)
def lost(ctx: Context, *, held: Sequence[Held]) -> list[Held]:
    """Return those of the leases that have ended or were lost, without renewing any."""
    pairs = [(lease, ctx.tx.one(statements.JOB_ANYWHERE, job=lease[0])) for lease in held]
    return [lease for lease, job in pairs if job is None or not _is_held(job, lease[1])]


@query("job_work.held", FOR_REMIT)
def held(ctx: Context) -> dict[Held, Micros]:
    """Return the leases of all workers, and when each expires."""
    rows = ctx.tx.all(statements.QUEUE.claimed)
    return {(job.id, job.epoch): job.lease_until or 0 for job in rows}


@query("job_work.running", FOR_REMIT)
def running(ctx: Context) -> list[Held]:
    """Return every job that counts as running."""
    return _QUEUE.under_way(ctx)


@command("job_work.take_over", Added("until", None))
def take_over(
    ctx: Context, *, job: str, epoch: int, alone: bool = False, until: Micros | None = None
) -> shapes.EndedShape:
    """Take the lease of a silent worker away: the job is retried, or ended after too many attempts.

    `until` is the end of the lease when the worker was last heard of; without it, the lease must
    have expired. With `alone` there is no other worker, so the holder is gone.
    """
    job_row = _held(ctx, job, epoch)
    if not alone and until is None and (job_row.lease_until or 0) > ctx.now:
        raise Conflict("Its worker still holds the lease.")
    _QUEUE.seize(ctx, (job, epoch), job_row.lease_until if until is None else until)
    if job_row.attempts >= (1 if _message(ctx, job_row).at_most_once else MOST_ATTEMPTS):
        error = f"its worker {job_row.worker} stopped responding"
        jobs.finish(ctx, job_row, ok=False, text="", error=error, usage={})
        return {"id": job, "status": JobStatus.FAILED.value}
    _QUEUE.fenced(ctx, statements.QUEUE.retry, (job, epoch), due=job_row.due_at, why=None)
    ctx.record("job.lost", f"job:{job}", {"agent_id": job_row.agent_id, "worker": job_row.worker})
    return {"id": job, "status": JobStatus.QUEUED.value}


@command("job_work.put_back")
def put_back(ctx: Context, *, job: str, epoch: int, usage: Mapping[str, int]) -> shapes.EndedShape:
    """Requeue a job because its worker stops; the attempt does not count."""
    job_row = _entered(ctx, job)
    _QUEUE.fenced(ctx, statements.QUEUE.put_back, (job, epoch))
    jobs.charge(ctx, job_row, usage)
    ctx.record(
        "job.put_back", f"job:{job}", {"agent_id": job_row.agent_id, "worker": job_row.worker}
    )
    return {"id": job, "status": JobStatus.QUEUED.value}


@command("job_work.end", Added("reason", ""), Added("fault", None), Added("until", None))
def end(
    ctx: Context,
    *,
    job: str,
    epoch: int,
    ok: bool,
    text: str = "",
    error: str = "",
    usage: Mapping[str, int],
    reason: str = "",
    fault: str | None = None,
    until: Micros | None = None,
) -> shapes.EndedShape:
    """End a job with the result from its worker, and answer its sender in the same transaction.

    A job that failed through a fault of the provider or set-up is requeued instead, and waits until
    that works again, unless it may be tried only once or was tried too often.
    """
    job_row = _held(ctx, job, epoch)
    whose = None if ok else fault_of(fault, reason)
    closed = account_faults.job_ended(
        ctx, job_row, whose, ok=ok, reason=reason, error=jobs.plain(error, LONGEST), until=until
    )
    if (
        whose is not None
        and CONSEQUENCES[whose].holds is not None
        and _goes_on(ctx, job_row, closed)
    ):
        jobs.charge(ctx, job_row, usage)
        return {"id": job, "status": JobStatus.QUEUED.value}
    jobs.finish(ctx, job_row, ok=ok, text=text, error=error, usage=usage)
    return {"id": job, "status": (JobStatus.COMPLETED if ok else JobStatus.FAILED).value}


def _goes_on(ctx: Context, job: Job, closed: Account | None) -> bool:
    """Requeue a job that failed through no fault of its own, if it may be tried again; returns
    whether it was."""
    if _message(ctx, job).at_most_once:
        return False
    held = (job.id, job.epoch)
    details: dict[str, object] = {"agent_id": job.agent_id, "worker": job.worker}
    if closed is not None:
        _QUEUE.fenced(ctx, statements.PUT_BACK_TO_WAIT, held, account=closed.id)
        ctx.record("job.wait", f"job:{job.id}", {**details, "account": closed.name})
        return True
    if job.attempts >= MOST_ATTEMPTS:
        return False
    # Others were answered meanwhile, so only this attempt failed.
    due = ctx.now + PROBES[job.attempts]
    _QUEUE.fenced(ctx, statements.QUEUE.retry, held, due=due, why=None)
    ctx.record("job.put_back", f"job:{job.id}", details)
    return True


class Attachment(NamedTuple):
    """A file that is attached to a job."""

    id: str
    hash: str
    heading: str | None
    description: str


@dataclass(frozen=True, kw_only=True)
class Material:
    """Everything that a worker needs to run a job."""

    agent: shapes.AgentShape
    adapter_type: str
    adapter_config: Mapping[str, Any]
    full_access: bool
    #: The remainder of each kind of budget.
    left: Mapping[str, int]
    limits: Mapping[str, int | None]
    price: Price | None
    subject: str
    #: The file of the text, and the hash of its version.
    body: tuple[FileId, str]
    attachments: Sequence[Attachment]
    #: Folders that the sender's runs see.
    folders: folders.Shown


@logged("job_work.material")
def material(ctx: Context, *, job: str, epoch: int) -> Material:
    """Input of a job for its worker; files are read with the rights of the sender."""
    job_row = _held(ctx, job, epoch)
    agent = lookup.known_agent(ctx, job_row.agent_id)
    if (over := ledger.used_up(ctx, agent.id)) is not None:
        deny(budgets.OVER, budgets.sentence(ctx, over)).enforce()
    if (reached := limits.money_reached(ctx)) is not None:
        refusal = deny(limits.REACHED, limits.sentence(ctx, reached))
        refusal.enforce(limits.next_step(ctx, reached))
    message = _message(ctx, job_row)
    # A message names a version that exists.
    body = ctx.tx.existing(
        file_statements.VERSION, file=message.body_file_id, number=message.body_version
    )
    return Material(
        agent=views.agent(agent),
        adapter_type=job_row.adapter_type,
        adapter_config=json.loads(job_row.adapter_config),
        full_access=has_full_access(ctx, agent),
        left=limits.capped(
            ctx, {kind.value: means.left for kind, means in ledger.means(ctx, agent.id).items()}
        ),
        limits=limits.of_company(ctx).view(),
        price=pricing.price_of(ctx, job_row.adapter_type, json.loads(job_row.adapter_config)),
        subject=message.subject,
        body=(message.body_file_id, body.sha256),
        attachments=_attachments(ctx, agent, message),
        folders=run_start.shown_folders(ctx, Principal.of(agent), agent),
    )


def _attachments(ctx: Context, agent: Agent, message: Message) -> list[Attachment]:
    """Read the attachments with the sender's present rights; approval for one was given when it was
    sent."""
    attachments = []
    for file in json.loads(message.attachments):
        try:
            with ctx.acting_as(Principal.of(agent), ticket=message.id):
                view = files.read.body(ctx, file=file)
        except (NotFound, Refused):
            raise Conflict(
                f"The attachment {file} may not be read any more.", "Send it again."
            ) from None
        attachments.append(Attachment(*(view[name] for name in Attachment._fields)))
    return attachments


def _is_held(job: Job, epoch: int) -> bool:
    return job.status is JobStatus.RUNNING and job.epoch == epoch


def _held(ctx: Context, job_id: str, epoch: int) -> Job:
    """Return a job to the worker that has its lease; else raise."""
    job = _entered(ctx, job_id)
    if not _is_held(job, epoch):
        raise _QUEUE.lost()
    return job


def _message(ctx: Context, job: Job) -> Message:
    # Every job has a message.
    return ctx.tx.existing(mail_statements.MESSAGE_ANYWHERE, message=job.message_id)


def _entered(ctx: Context, job_id: str) -> Job:
    """Return a job by its id, in its company; for Remit itself."""
    system_only(ctx)
    assert is_id(job_id)
    job = lookup.find(ctx, jobs.JOB, job_id)
    ctx.require(Action.RUN_CHANGE, on=f"job:{JobId(job_id)}", home=job.agent_id)
    return job
