"""Mail to `agent:background`: accepted as a job, which is queued in the same transaction. The rest
is in `jobs.py`."""

from remit.clock import Micros
from remit.errors import BadInput, Conflict
from remit.ids import JobId
from remit.model.execution.job import LARGEST_TEXT, MOST_UNFINISHED, Job, JobStatus
from remit.model.messaging.mail import MOST_HOPS, Message
from remit.model.work.file import File
from remit.services import lookup
from remit.services.command import Context
from remit.store.execution import jobs as statements


def accept(ctx: Context, message: Message, body: File, due: Micros) -> Job:
    """Queue the text of a message as a job of its sender, with the sender's present adapter
    settings."""
    sender = (
        None if message.sender_agent_id is None else lookup.agent_row(ctx, message.sender_agent_id)
    )
    if sender is None:
        raise BadInput("Only agents have background jobs.", "Write to an agent.")
    if message.hops >= MOST_HOPS:
        # The answer would be one hop too many.
        raise Conflict(
            f"The thread has gone to and fro {MOST_HOPS} times.",
            "Begin a new thread, with all that is needed to do it.",
            code="hop_limit",
        )
    if body.size > LARGEST_TEXT:
        raise BadInput(f"The text is longer than {LARGEST_TEXT >> 20} MiB.", "Attach it as a file.")
    if (ctx.tx.one(statements.COUNT_UNFINISHED, agent=sender.id) or 0) >= MOST_UNFINISHED:
        raise Conflict(
            f"{MOST_UNFINISHED} of your background jobs are not done yet.",
            "Wait for their answers, or cancel some.",
            code="too_many_jobs",
        )
    job = Job(
        id=JobId(ctx.ids.new()),
        company_id=message.company_id,
        agent_id=sender.id,
        message_id=message.id,
        status=JobStatus.QUEUED,
        adapter_type=sender.adapter_type,
        adapter_config=sender.adapter_config,
        due_at=due,
        created_at=ctx.now,
    )
    ctx.tx.add(job)
    return job
