"""Background jobs: shown to people and agents, and each ended once, with its answer.

The answer is a reply to the sender, in the transaction that ends the job. A sender that is gone
gets none; that is only recorded.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated

from remit.adapters.running import Usage
from remit.authority import Action
from remit.errors import Conflict, NotFound
from remit.ids import END_OF_IDS, JobId, MessageId
from remit.model.execution.budget import METERS
from remit.model.execution.cost import Cost
from remit.model.execution.job import FAILED, LONGEST_ANSWER, UNFINISHED, Job, JobStatus
from remit.model.organisation.agent import Agent
from remit.model.organisation.principal import SYSTEM, ActorKind
from remit.services import lookup, shapes, views
from remit.services.command import Context, command, query
from remit.services.execution import accounts
from remit.services.execution.running import reader, require_look
from remit.services.fields import CompanyRef, Help, JobRef, OnlyAgent, Remark
from remit.services.messaging import mail
from remit.services.queues import Queue
from remit.services.spending import ledger, pricing
from remit.services.surfaces import AsCommand, AsRoute
from remit.store.execution import jobs as statements
from remit.store.messaging import mail as mail_statements

LONGEST_ERROR = 1000
#: Cap on each number that a program reports about itself.
_MOST_COUNTED = 1 << 53
_CUT = "\n[… cut here …]"
_SUBJECT = "Background job"
_GONE = "its sender is gone"
JOB = lookup.Noun("job", statements.JOB_ANYWHERE, statements.JOBS_BY_PREFIX, reader)


@query(
    "jobs.listing",
    AsRoute("GET /companies/{companyId}/jobs", "list_jobs", page="id"),
    AsCommand(
        "job list", "List jobs, the newest first: the company's, or your own if you are an agent."
    ),
)
def listing(
    ctx: Context,
    *,
    company: CompanyRef | None,
    agent: OnlyAgent | None = None,
    unfinished: Annotated[bool, Help("Only those that have not ended.")] = False,
    before: str = END_OF_IDS,
    limit: int = 100,
) -> list[shapes.JobWithWaitShape]:
    """Jobs, newest first: of the calling agent, of one below, or of everybody."""
    lookup.company_of_caller(ctx, company)
    whose = lookup.agent_ever(ctx, agent).id if agent else ctx.actor.agent_id
    require_look(ctx, whose, "jobs")
    return [
        _view(ctx, job)
        for job in ctx.tx.all(
            statements.JOBS, agent=whose, ended_too=not unfinished, before=before, limit=limit
        )
    ]


@query("jobs.show", AsRoute("GET /jobs/{id}", "show_job"))
def show(ctx: Context, *, job: JobRef) -> shapes.JobWithWaitShape:
    """A job of the background, and what it waits for."""
    job_row = lookup.find(ctx, JOB, job)
    require_look(ctx, job_row.agent_id, f"job:{job_row.id}")
    return _view(ctx, job_row)


def _view(ctx: Context, job: Job) -> shapes.JobWithWaitShape:
    closed = accounts.holding_job(ctx, job)
    # The account's name and address are for those who may see accounts.
    waits_for = None
    if closed is not None:
        waits_for = (
            f"{closed.name} is closed"
            if ctx.actor.kind is ActorKind.AGENT
            else accounts.sentence(closed)
        )
    return {**views.job(job), "waits_for": waits_for}


@command(
    "jobs.cancel",
    AsRoute("POST /jobs/{id}/cancel", "cancel_job"),
    AsCommand("job cancel", said="The job is {status}."),
)
def cancel(
    ctx: Context,
    *,
    job: JobRef,
    reason: Annotated[Remark, Help("Why; whoever asked for it is told.")] | None = None,
) -> shapes.JobWithWaitShape:
    """End a job, queued or running. Its program ends as soon as its worker sees that."""
    ended = cancel_one(ctx, lookup.find(ctx, JOB, job), reason or "")
    return _view(ctx, lookup.find(ctx, JOB, ended["id"]))


def cancel_one(ctx: Context, job: Job, reason: str = "") -> shapes.EndedShape:
    """Cancel a job; its sender is told, unless the sender cancelled it."""
    ctx.require(Action.THREAD_CANCEL, on=f"job:{job.id}", over=job.agent_id)
    if job.status not in UNFINISHED:
        raise Conflict(f"The job is {job.status.value}.")
    why = plain(reason, LONGEST_ERROR) or f"cancelled by {ctx.actor.name or ctx.actor.address}"
    _cancel(ctx, job, why)
    if ctx.actor.agent_id != job.agent_id:
        answer(ctx, job, FAILED + why)
    return {"id": job.id, "status": JobStatus.CANCELLED.value}


def may_end(ctx: Context, job: Job) -> bool:
    return ctx.decide(Action.THREAD_CANCEL, over=job.agent_id).allowed


def stop_all(ctx: Context, agent: Agent, why: str) -> None:
    """Cancel the jobs of an agent that is stopped; it reads the answers when it goes on."""
    for job in ctx.tx.all(statements.UNFINISHED_OF, agent=agent.id):
        _cancel(ctx, job, why)
        answer(ctx, job, FAILED + why)


def drop_all(ctx: Context, agent: Agent) -> list[JobId]:
    """Cancel the jobs of an agent that is gone, without answers; returns them."""
    dropped = ctx.tx.all(statements.UNFINISHED_OF, agent=agent.id)
    for job in dropped:
        _cancel(ctx, job, _GONE)
    return [job.id for job in dropped]


def take_up_again(ctx: Context, agent: Agent, dropped: str) -> str | None:
    """Requeue a dropped job of an agent that was restored; returns why not, if that is impossible.
    One that had begun is repeated only if it may run more than once."""
    job = ctx.tx.one(statements.JOB_ANYWHERE, job=JobId(dropped))
    if job is None or job.agent_id != agent.id or job.error != _GONE:
        return "it is over"
    message = lookup.message_row(ctx, job.message_id)
    if job.attempts and (message is None or message.at_most_once):
        return "it had been begun and is for once"
    ctx.tx.run(statements.TAKE_UP_AGAIN, job=job.id)
    ctx.record("job.restore", f"job:{job.id}", {"agent_id": job.agent_id})
    return None


def _cancel(ctx: Context, job: Job, why: str) -> None:
    ended = {"new_status": JobStatus.CANCELLED.value, "why": why, "now": ctx.now}
    if not ctx.tx.run(statements.QUEUE.close, job=job.id, **ended):
        raise Conflict("The job has ended already.")
    ctx.record("job.cancel", f"job:{job.id}", {"agent_id": job.agent_id, "error": why})


def finish(
    ctx: Context, job: Job, *, ok: bool, text: str, error: str, usage: Mapping[str, int]
) -> None:
    """End a leased job, with its answer; refused to a worker that lost the lease."""
    status = JobStatus.COMPLETED if ok else JobStatus.FAILED
    why = None if ok else plain(error, LONGEST_ERROR) or "no reason was given"
    ended = {"new_status": status.value, "why": why, "now": ctx.now}
    Queue(statements.QUEUE).fenced(ctx, statements.QUEUE.end, (job.id, job.epoch), **ended)
    taken = charge(ctx, job, usage)
    sent = answer(ctx, job, _result(text) if why is None else FAILED + why)
    ctx.record(
        "job.end",
        f"job:{job.id}",
        {
            "agent_id": job.agent_id,
            "status": status.value,
            "error": why,
            "answer": sent,
            "tokens": [taken["tokens_in"], taken["tokens_out"]],
            "cost_micros": taken["cost_micros"],
        },
    )


def charge(ctx: Context, job: Job, usage: Mapping[str, int]) -> dict[str, int]:
    """Charge the usage of a job to its sender; the only place that does so."""
    taken = {name: min(max(int(usage.get(name, 0)), 0), _MOST_COUNTED) for name in METERS}
    if any(taken.values()):
        price = pricing.price_of(ctx, job.adapter_type, json.loads(job.adapter_config))
        tokens = taken["tokens_in"], taken["tokens_out"], taken["tokens_cached"]
        estimated = bool(usage.get("cost_estimated"))
        if price is not None and not taken["cost_micros"]:  # cut off before it was worked out
            taken["cost_micros"] = price.of(*tokens)
            estimated = taken["cost_micros"] > 0
        cost = Cost(taken["cost_micros"], estimated)
        if price is None and not cost.micros:
            cost = replace(cost, unpriced=taken["tokens_in"] + taken["tokens_out"])
        more = {f"more_{name}": count for name, count in taken.items()}
        ctx.tx.run(
            statements.CHARGE,
            job=job.id,
            **more,
            estimated=job.cost_estimated or cost.estimated,
            new_price=price.stored() if price else job.price,
        )
        ledger.charge(ctx, job.agent_id, Usage(*tokens, taken["cost_micros"]), cost)
    return taken


def answer(ctx: Context, job: Job, text: str) -> MessageId | None:
    """Send the result of a job to its sender, as a reply from the background."""
    # Every job has a message.
    letter = ctx.tx.existing(mail_statements.MESSAGE_ANYWHERE, message=job.message_id)
    try:
        with ctx.acting_as(SYSTEM):
            sent = mail.post(
                ctx,
                to=f"agent:{job.agent_id}",
                subject=letter.subject or _SUBJECT,
                text=text,
                reply_to=letter,
                from_background=True,
            )
    except (Conflict, NotFound) as error:
        ctx.record("job.unanswered", f"job:{job.id}", {"why": error.sentence})
        return None
    ctx.tx.run(statements.ANSWERED, job=job.id, answer=sent.id)
    return sent.id


def plain(text: str, longest: int) -> str:
    """The output of a program, made storable: cut, without NULs and lone surrogates."""
    return text[:longest].replace("\0", "\ufffd").encode(errors="replace").decode().strip()


def _result(text: str) -> str:
    whole = text.replace("\0", "\ufffd").encode(errors="replace").decode()
    return whole if len(whole) <= LONGEST_ANSWER else whole[:LONGEST_ANSWER] + _CUT
