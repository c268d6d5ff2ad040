"""Background jobs as people and agents see them, and how each is ended: once, with its answer.

A job answers whoever asked for it, in reply and in the transaction that ends it. Who is gone is
not answered; that is only recorded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from remit.adapters.running import Usage
from remit.authority import Action
from remit.errors import Conflict, NotFound
from remit.ids import JobId, MessageId
from remit.model.agent import Agent
from remit.model.job import FAILED, LONGEST_ANSWER, UNFINISHED, Job, JobStatus
from remit.model.principal import SYSTEM, ActorKind
from remit.services import accounts, ledger, lookup, mail, views
from remit.services.command import Answer, Context, command, query
from remit.services.running import require_look
from remit.store import jobs as statements
from remit.store import mail as mail_statements

END_OF_IDS = "g"
LONGEST_ERROR = 1000
#: Nothing that a program reports about itself counts for more than this.
_MOST_COUNTED = 1 << 53
_COUNTED = ("tokens_in", "tokens_out", "tokens_cached", "cost_micros")
_CUT = "\n[… cut here …]"
_SUBJECT = "Background job"
_GONE = "its sender is gone"


@query("jobs.listing")
def listing(
    ctx: Context,
    *,
    company: str | None,
    agent: str | None = None,
    unfinished: bool = False,
    before: str = END_OF_IDS,
    limit: int = 100,
) -> list[dict[str, Any]]:
    """Jobs, newest first: of the calling agent, of one below, or of everybody."""
    lookup.company_of_caller(ctx, company)
    whose = lookup.agent_ever(ctx, agent).id if agent else ctx.actor.agent_id
    require_look(ctx, whose, "jobs")
    return [
        _view(ctx, one)
        for one in ctx.tx.all(
            statements.JOBS,
            company=ctx.company,
            agent=whose,
            any_agent=whose is None,
            ended_too=not unfinished,
            before=before,
            limit=limit,
        )
    ]


@query("jobs.show")
def show(ctx: Context, *, job: str) -> dict[str, Any]:
    found = lookup.job(ctx, job, lambda one: may_end(ctx, one))
    require_look(ctx, found.agent_id, f"job:{found.id}")
    return _view(ctx, found)


def _view(ctx: Context, job: Job) -> dict[str, Any]:
    closed = accounts.holding_job(ctx, job)
    # Whose account it is, and where, is told to those who see accounts.
    waits_for = None
    if closed is not None:
        waits_for = (
            f"{closed.name} is closed"
            if ctx.actor.kind is ActorKind.AGENT
            else accounts.sentence(closed)
        )
    return {**views.job(job), "waits_for": waits_for}


@command("jobs.cancel")
def cancel(ctx: Context, *, job: str, reason: object = "") -> Answer:
    """End a job: by who asked for it, or by somebody above."""
    found = lookup.job(ctx, job, lambda one: may_end(ctx, one))
    return cancel_one(ctx, found, str(reason or ""))


def cancel_one(ctx: Context, job: Job, reason: str = "") -> Answer:
    """The same, once it is found; whoever asked for it is told, unless they did it themselves."""
    ctx.require(
        Action.THREAD_CANCEL, on=f"job:{job.id}", home=job.agent_id, place=ctx.place(job.agent_id)
    )
    if job.status not in UNFINISHED:
        raise Conflict(f"The job is {job.status.value}.")
    why = plain(reason, LONGEST_ERROR) or f"cancelled by {ctx.actor.name or ctx.actor.address}"
    _cancel(ctx, job, why)
    if ctx.actor.agent_id != job.agent_id:
        answer(ctx, job, FAILED + why)
    return {"id": job.id, "status": JobStatus.CANCELLED.value}


def may_end(ctx: Context, job: Job) -> bool:
    return ctx.decide(
        Action.THREAD_CANCEL, home=job.agent_id, place=ctx.place(job.agent_id)
    ).allowed


def stop_all(ctx: Context, agent: Agent, why: str) -> None:
    """The agent is stopped, and what is done for it as well; it reads that when it goes on."""
    for job in ctx.tx.all(statements.UNFINISHED_OF, agent=agent.id):
        _cancel(ctx, job, why)
        answer(ctx, job, FAILED + why)


def drop_all(ctx: Context, agent: Agent) -> list[JobId]:
    """The agent is gone: nobody waits for an answer. Answers what is not done any more."""
    dropped = ctx.tx.all(statements.UNFINISHED_OF, agent=agent.id)
    for job in dropped:
        _cancel(ctx, job, _GONE)
    return [job.id for job in dropped]


def take_up_again(ctx: Context, agent: Agent, dropped: str) -> str | None:
    """Put a job back in line that was dropped with its sender, who works again; why not, if that
    cannot be. What a program may have begun is done again only if it may be."""
    job = ctx.tx.one(statements.JOB_ANYWHERE, job=JobId(dropped))
    if job is None or job.agent_id != agent.id or job.error != _GONE:
        return "it is over"
    message = ctx.tx.one(mail_statements.MESSAGE_ANYWHERE, message=job.message_id)
    if job.attempts and (message is None or message.at_most_once):
        return "it had been begun and is for once"
    ctx.tx.run(statements.TAKE_UP_AGAIN, job=job.id)
    ctx.record("job.restore", f"job:{job.id}", {"agent_id": job.agent_id})
    return None


def _cancel(ctx: Context, job: Job, why: str) -> None:
    if not ctx.tx.run(
        statements.CANCEL,
        job=job.id,
        new_status=JobStatus.CANCELLED.value,
        new_error=why,
        now=ctx.now,
    ):
        raise Conflict("The job has ended already.")
    ctx.record("job.cancel", f"job:{job.id}", {"agent_id": job.agent_id, "error": why})


def finish(
    ctx: Context, job: Job, *, ok: bool, text: str, error: str, usage: Mapping[str, int]
) -> None:
    """End a job that is held, with its answer. Who does not hold it any more is refused."""
    status = JobStatus.COMPLETED if ok else JobStatus.FAILED
    why = None if ok else plain(error, LONGEST_ERROR) or "no reason was given"
    if not ctx.tx.run(
        statements.END,
        job=job.id,
        epoch=job.epoch,
        new_status=status.value,
        new_error=why,
        now=ctx.now,
    ):
        raise Conflict("The job is over, or somebody else's.", "Leave it.", code="lost")
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
    """What a job took counts as taken by its sender; the only place where that is said."""
    taken = {name: min(max(int(usage.get(name, 0)), 0), _MOST_COUNTED) for name in _COUNTED}
    if any(taken.values()):
        more = {f"more_{name}": count for name, count in taken.items()}
        ctx.tx.run(statements.CHARGE, job=job.id, **more)
        ledger.charge(ctx, job.agent_id, Usage(**taken))
    return taken


def answer(ctx: Context, job: Job, text: str) -> MessageId | None:
    """Mail from the background to who asked, in reply to what they sent."""
    asked = ctx.tx.one(mail_statements.MESSAGE_ANYWHERE, message=job.message_id)
    assert asked is not None, "a job is of a message"
    try:
        with ctx.acting_as(SYSTEM):
            sent = mail.post(
                ctx,
                to=f"agent:{job.agent_id}",
                subject=asked.subject or _SUBJECT,
                text=text,
                reply_to=asked,
                from_background=True,
            )
    except (Conflict, NotFound) as error:
        ctx.record("job.unanswered", f"job:{job.id}", {"why": error.sentence})
        return None
    ctx.tx.run(statements.ANSWERED, job=job.id, answer=sent.id)
    return sent.id


def plain(text: str, longest: int) -> str:
    """What a program said, as far as it can be kept."""
    return text[:longest].replace("\0", "\ufffd").encode(errors="replace").decode().strip()


def _result(text: str) -> str:
    whole = text.replace("\0", "\ufffd").encode(errors="replace").decode()
    return whole if len(whole) <= LONGEST_ANSWER else whole[:LONGEST_ANSWER] + _CUT
