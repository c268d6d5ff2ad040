"""Background jobs as workers see them: which is next, holding one, and taking over from the silent.

A job is held by a lease with an epoch, like an agent is: who was silent too long has lost it, and
whatever they still say about it is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from remit.authority import Action
from remit.clock import Micros
from remit.errors import Conflict, NotFound, Refused
from remit.ids import JobId, is_id
from remit.model.account import PROBES, Account
from remit.model.agent import Agent, AgentStatus
from remit.model.fault import CONSEQUENCES, fault_of
from remit.model.job import MOST_ATTEMPTS, Job, JobStatus
from remit.model.mail import Message
from remit.model.principal import ActorKind, Principal
from remit.services import accounts, budgets, files, halts, jobs, ledger, limits, lookup, views
from remit.services.claiming import LEASE_TIME, MOST_AT_ONCE, has_full_access
from remit.services.command import Answer, Context, command, logged, query
from remit.services.running import system_only
from remit.services.verbs import Added
from remit.store import files as file_statements
from remit.store import jobs as statements
from remit.store import mail as mail_statements

#: Of what a provider said, in characters.
LONGEST = 500
#: A job and the epoch in which somebody holds it.
Held = tuple[str, int]


@query("job_work.ready", Added("worker", "local"))
def ready(ctx: Context, *, limit: int = MOST_AT_ONCE, worker: str = "local") -> list[str]:
    """Jobs that can be started, those first whose sender has least under way; and before them
    those of which one finds out whether what it waits for works again."""
    system_only(ctx)
    found: list[str] = [*accounts.job_candidates(ctx, worker)]
    found += [one.id for one in ctx.tx.all(statements.READY, now=ctx.now, limit=limit)]
    return found[:limit]


@query("job_work.next_due")
def next_due(ctx: Context) -> Micros | None:
    """When a job becomes due that has to wait for its time."""
    system_only(ctx)
    return ctx.tx.one(statements.NEXT_DUE, now=ctx.now)


@command("job_work.claim")
def claim(ctx: Context, *, job: str, worker: str, lease: Micros = LEASE_TIME) -> Answer:
    """Take a job on; for one worker, the others are refused."""
    found = _entered(ctx, job)
    agent = _sender(ctx, found)
    halts.refuse_stopped(ctx, agent)
    may_start = agent.status in (AgentStatus.IDLE, AgentStatus.RUNNING)
    admission = accounts.admit(ctx, found, worker)
    if not may_start or not ctx.tx.run(
        statements.CLAIM,
        job=job,
        now=ctx.now,
        until=ctx.now + lease,
        new_worker=worker,
        probed=admission.account.id if admission.probe else None,
    ):
        raise Conflict("The job cannot be started, or somebody is at it.")
    accounts.count(ctx, admission)
    epoch = found.epoch + 1
    details = {"agent_id": found.agent_id, "worker": worker, "attempt": found.attempts + 1}
    ctx.record("job.start", f"job:{job}", details)
    return {"id": job, "epoch": epoch, "agent_id": found.agent_id, "company_id": found.company_id}


@logged("job_work.wait")
def wait(ctx: Context, *, job: str, worker: str) -> None:
    """Let a job wait for what it depends on, if that is closed; for the worker that found so."""
    system_only(ctx)
    found = lookup.job(ctx, job)
    ctx.take_turn()  # what opens it takes a turn, too
    if (closed := accounts.closed_for(ctx, found, worker)) is not None:
        ctx.tx.run(statements.WAIT_FOR, job=found.id, account=closed.id)


@logged("job_work.renew")
def renew(ctx: Context, *, held: Sequence[Held], lease: Micros = LEASE_TIME) -> list[Held]:
    """Go on holding these jobs; answers those that are over or somebody else's."""
    system_only(ctx)
    return [
        (job, epoch)
        for job, epoch in held
        if not ctx.tx.run(statements.RENEW, job=job, epoch=epoch, until=ctx.now + lease)
    ]


@query("job_work.lost")
def lost(ctx: Context, *, held: Sequence[Held]) -> list[Held]:
    """The same without going on."""
    system_only(ctx)
    return [one for one in held if not _is_held(ctx, *one)]


@query("job_work.expired")
def expired(ctx: Context) -> list[Held]:
    """Jobs of workers that have not been heard of, by the clock."""
    system_only(ctx)
    found = ctx.tx.all(statements.EXPIRED, now=ctx.now, limit=MOST_AT_ONCE)
    return [(job.id, job.epoch) for job in found]


@query("job_work.held")
def held(ctx: Context) -> dict[Held, Micros]:
    """The jobs of all workers, and until when each is held."""
    system_only(ctx)
    return {(job.id, job.epoch): job.lease_until or 0 for job in ctx.tx.all(statements.RUNNING)}


@query("job_work.running")
def running(ctx: Context) -> list[Held]:
    """All jobs that are thought to be under way."""
    system_only(ctx)
    return [(job.id, job.epoch) for job in ctx.tx.all(statements.RUNNING)]


@command("job_work.take_over", Added("until", None))
def take_over(
    ctx: Context, *, job: str, epoch: int, alone: bool = False, until: Micros | None = None
) -> Answer:
    """Give up what a silent worker held: it is run again, or ended if that happened too often.

    `until` is what its lease said when the worker was last heard of; without it, the lease has to
    be over. With `alone` there is no other worker, so whoever held it is gone.
    """
    found = _entered(ctx, job)
    if found.status is not JobStatus.RUNNING or found.epoch != epoch:
        raise Conflict("The job is over, or somebody else's.")
    heard = not alone and until is None and (found.lease_until or 0) > ctx.now
    last = found.lease_until if until is None else until
    # Workers renew without waiting for their turn, so that looking first would not be enough.
    if heard or not ctx.tx.run(statements.STILL_SILENT, job=job, epoch=epoch, until=last):
        raise Conflict("Its worker was heard of again.")
    message = ctx.tx.one(mail_statements.MESSAGE_ANYWHERE, message=found.message_id)
    assert message is not None
    if found.attempts >= (1 if message.at_most_once else MOST_ATTEMPTS):
        error = f"its worker {found.worker} was not heard of any more"
        jobs.finish(ctx, found, ok=False, text="", error=error, usage={})
        return {"id": job, "status": JobStatus.FAILED.value}
    ctx.tx.run(statements.GIVE_BACK, job=job, epoch=epoch)
    ctx.record("job.lost", f"job:{job}", {"agent_id": found.agent_id, "worker": found.worker})
    return {"id": job, "status": JobStatus.QUEUED.value}


@command("job_work.put_back")
def put_back(ctx: Context, *, job: str, epoch: int, usage: Mapping[str, int]) -> Answer:
    """Its worker is being stopped; somebody else does it, as if it had not been begun."""
    found = _entered(ctx, job)
    if not ctx.tx.run(statements.PUT_BACK, job=job, epoch=epoch, closed=None):
        raise Conflict("The job is over, or somebody else's.", code="lost")
    jobs.charge(ctx, found, usage)
    ctx.record("job.put_back", f"job:{job}", {"agent_id": found.agent_id, "worker": found.worker})
    return {"id": job, "status": JobStatus.QUEUED.value}


@command(
    "job_work.end",
    Added("reason", ""),
    Added("fault", None),
    Added("until", None),
)
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
) -> Answer:
    """How it ended, from the worker that holds it; its sender is answered in the same breath.

    What failed through a fault of the provider or of the set-up waits until that works again.
    """
    found = _entered(ctx, job)
    if not _is_held(ctx, job, epoch):
        raise Conflict("The job is over, or somebody else's.", code="lost")
    whose = None if ok else fault_of(fault, reason)
    closed = accounts.job_ended(
        ctx, found, whose, ok=ok, reason=reason, error=jobs.plain(error, LONGEST), until=until
    )
    if whose is not None and CONSEQUENCES[whose].holds is not None and _goes_on(ctx, found, closed):
        jobs.charge(ctx, found, usage)
        return {"id": job, "status": JobStatus.QUEUED.value}
    jobs.finish(ctx, found, ok=ok, text=text, error=error, usage=usage)
    return {"id": job, "status": (JobStatus.COMPLETED if ok else JobStatus.FAILED).value}


def _goes_on(ctx: Context, job: Job, closed: Account | None) -> bool:
    """Put a job back in line that failed through no fault of its own, if it may be tried again."""
    message = ctx.tx.one(mail_statements.MESSAGE_ANYWHERE, message=job.message_id)
    assert message is not None
    if message.at_most_once:
        return False
    details: dict[str, Any] = {"agent_id": job.agent_id, "worker": job.worker}
    if closed is not None:
        ctx.tx.run(statements.PUT_BACK, job=job.id, epoch=job.epoch, closed=closed.id)
        ctx.record("job.wait", f"job:{job.id}", {**details, "account": closed.name})
        return True
    if job.attempts >= MOST_ATTEMPTS:
        return False
    # Others were answered meanwhile, so it was this attempt alone.
    due = ctx.now + PROBES[job.attempts]
    ctx.tx.run(statements.TRY_LATER, job=job.id, epoch=job.epoch, due=due)
    ctx.record("job.put_back", f"job:{job.id}", details)
    return True


@logged("job_work.material")
def material(ctx: Context, *, job: str, epoch: int) -> dict[str, Any]:
    """What a worker has to know to carry a job out; what is read for it is read by its sender."""
    found = _entered(ctx, job)
    if not _is_held(ctx, job, epoch):
        raise Conflict("The job is over, or somebody else's.", code="lost")
    agent = _sender(ctx, found)
    if (over := ledger.used_up(ctx, agent.id)) is not None:
        raise Refused(budgets.sentence(ctx, over), code=budgets.OVER)
    if (reached := limits.money_reached(ctx)) is not None:
        raise Refused(
            limits.sentence(ctx, reached), limits.next_step(ctx, reached), code=limits.REACHED
        )
    message = ctx.tx.one(mail_statements.MESSAGE_ANYWHERE, message=found.message_id)
    assert message is not None
    body = ctx.tx.one(
        file_statements.VERSION, file=message.body_file_id, number=message.body_version
    )
    assert body is not None, "a message names a version that exists"
    return {
        "agent": views.agent(agent),
        "adapter_type": found.adapter_type,
        "adapter_config": json.loads(found.adapter_config),
        "full_access": has_full_access(ctx, agent),
        "left": limits.capped(
            ctx, {kind.value: one.left for kind, one in ledger.means(ctx, agent.id).items()}
        ),
        "limits": limits.of_company(ctx).view(),
        "subject": message.subject,
        "body": {"id": message.body_file_id, "hash": body.sha256},
        "attachments": _attachments(ctx, agent, message),
    }


def _attachments(ctx: Context, agent: Agent, message: Message) -> list[dict[str, Any]]:
    """As far as the sender may still read them; what took an approval had it when it was sent."""
    sender = Principal(
        ActorKind.AGENT, agent.id, agent.name, agent.company_id, agent_status=agent.status
    )
    found = []
    for file in json.loads(message.attachments):
        try:
            with ctx.acting_as(sender, ticket=message.id):
                view = files.read.body(ctx, file=file)
        except (NotFound, Refused):
            raise Conflict(
                f"The attachment {file} may not be read any more.", "Send it again."
            ) from None
        found.append({name: view[name] for name in ("id", "hash", "heading", "description")})
    return found


def _is_held(ctx: Context, job: str, epoch: int) -> bool:
    found = ctx.tx.one(statements.JOB_ANYWHERE, job=job)
    return found is not None and found.status is JobStatus.RUNNING and found.epoch == epoch


def _entered(ctx: Context, job: str) -> Job:
    """A job by its id, for Remit itself."""
    system_only(ctx)
    assert is_id(job)
    found = lookup.job(ctx, job)
    ctx.require(Action.RUN_CHANGE, on=f"job:{JobId(job)}", home=found.agent_id)
    return found


def _sender(ctx: Context, job: Job) -> Agent:
    agent = lookup.agent_row(ctx, job.agent_id)
    assert agent is not None, "only who never acted is deleted"
    return agent
