"""Idleness: the reason why an agent is not running."""

from remit.adapters import registry
from remit.clock import moment
from remit.model.execution.run import Lease
from remit.model.messaging.turn import quoted
from remit.model.organisation.agent import HUMAN, Agent, AgentStatus
from remit.model.organisation.approval import Approval, ApprovalStatus, ApprovalType
from remit.model.text import plural
from remit.model.work.outcome import Outcome, OutcomeKind, OutcomeStatus
from remit.services import lookup, shapes
from remit.services.command import Context, query
from remit.services.execution import accounts, error_recovery
from remit.services.execution.running import require_look
from remit.services.fields import AgentRef
from remit.services.organisation import halts, tree
from remit.services.spending import budgets, ledger, limits
from remit.services.surfaces import AsCommand, AsRoute
from remit.services.work import waits
from remit.store.execution import due, leases
from remit.store.execution import jobs as job_statements
from remit.store.execution import runs as statements
from remit.store.organisation import governance
from remit.store.work import outcomes as outcome_statements
from remit.store.work import waits as wait_statements

#: Longest error of a run that is quoted.
_QUOTED = 500


@query(
    "idleness.why_idle",
    AsRoute("GET /agents/{id}/why-idle", "explain_idleness"),
    AsCommand("agent why-idle", said="{name}: {sentence}"),
)
def why_idle(ctx: Context, *, agent: AgentRef) -> shapes.IdlenessShape:
    """Why an agent is not running, in one word and one sentence."""
    agent_row = lookup.agent_anywhere(ctx, agent)
    require_look(ctx, agent_row.id, f"agent:{agent_row.id}")
    word, sentence = reason(ctx, agent_row)
    return {"agent_id": agent_row.id, "name": agent_row.name, "reason": word, "sentence": sentence}


Reason = tuple[str, str]


def kept_from_starting(ctx: Context, agent: Agent) -> Reason | None:
    """The reason why an agent does not start; None when nothing keeps it from that."""
    lease = ctx.tx.one(leases.STARTABLE, agent=agent.id)
    return reason(ctx, agent) if lease is None else _kept(ctx, agent, lease.held_by)


def hire_of(ctx: Context, agent: Agent) -> Approval | None:
    """Return the undecided approval of an agent's hire."""
    if agent.status is not AgentStatus.PENDING_APPROVAL:
        return None
    undecided = ctx.tx.all(governance.UNDECIDED_OF_AGENT, agent=agent.id)
    return next(
        (
            approval
            for approval in undecided
            if approval.type is ApprovalType.HIRE_AGENT and approval.agent_id == agent.id
        ),
        None,
    )


def _undecided(ctx: Context, agent: Agent) -> str:
    hire = hire_of(ctx, agent)
    if hire is None or hire.status is not ApprovalStatus.REVISION_REQUESTED:
        return "Waits for its hire to be approved."
    if hire.requested_by_agent_id is not None:
        requester = lookup.known_agent(ctx, hire.requested_by_agent_id).name
    else:
        requester = lookup.user_name(ctx, hire.requested_by_user_id, "its requester")
    return f"Its hire was sent back; {requester} has to revise it."


def reason(ctx: Context, agent: Agent) -> Reason:
    """Return why an agent is not running: one word and one sentence."""
    if agent.status is AgentStatus.PENDING_APPROVAL:
        return "approval", _undecided(ctx, agent)
    lease = ctx.tx.one(leases.LEASE, agent=agent.id)
    if ctx.tx.one(statements.LIVE_RUN_OF, agent=agent.id) is not None:
        return "running", "It is running."
    if agent.status is AgentStatus.TERMINATED:
        return "terminated", "Terminated."
    halt = halts.covering(ctx, agent.id)
    if halt is not None:
        return "halted", halts.explain(ctx, halt)
    if agent.status is AgentStatus.PAUSED:
        return "paused", "It is paused; somebody has to resume it."
    if agent.status is AgentStatus.ERROR:
        told = _quoted(lease.told) if lease and lease.told else "all its runs failed"
        return "stopped", f"It does not work: {told}. {error_recovery.step(agent)}"
    if tree.is_vacant(ctx, agent):
        return "no_person", (
            "It is the seat of a person, and nobody holds it; its mail reaches the board. "
            f"`remit org seat {agent.name} --user NAME` gives it to somebody."
        )
    if ctx.tx.one(leases.HAS_WORK, agent=agent.id) is None:
        return _nothing_to_do(ctx, agent)
    if agent.adapter_type == HUMAN:
        return "person", "A person holds its seat."
    if lease is not None and lease.held:
        return "cancelled", "Its last run was cancelled; it waits for something new."
    kept = _kept(ctx, agent, lease.held_by if lease else None)
    if kept is not None:
        return kept
    if lease is None or not lease.awake:
        return "waking", "Has work, and starts within the minute."
    if lease.due_at > ctx.now:
        return (
            "backoff",
            f"{_why_backoff(lease)} It is tried again at {moment(lease.due_at)}.",
        )
    return "no_slot", "Ready, and waits for a free slot of a worker."


def _kept(ctx: Context, agent: Agent, held_by: str | None) -> Reason | None:
    """The obstacle that keeps an agent from being started although it has work, if there is one."""
    over = ledger.used_up(ctx, agent.id)
    if over is not None:
        return "budget", f"{budgets.sentence(ctx, over)} It goes on when there is some again."
    reached = limits.keeping(ctx, agent)
    if reached is not None:
        return "limit", f"{limits.sentence(ctx, reached)} {limits.next_step(ctx, reached)}"
    kind = agent.adapter_type
    if kind not in registry.types():
        return "no_adapter", f"There is no adapter {kind!r} here. Install it, or choose another."
    closed = accounts.holding(ctx, agent, held_by)
    if closed is not None:
        return "held", f"{accounts.sentence(closed)} {accounts.step(closed, agent)}"
    return None


def _why_backoff(lease: Lease) -> str:
    if lease.failures:
        words = f" with these words of its program: {_quoted(lease.told)}" if lease.told else ""
        return f"Its last run failed{words}."
    return "Its last run left its mail where it was."


def _quoted(told: str) -> str:
    """Quote the error of a run: its program may have chosen the words."""
    return quoted(told.removesuffix("."), _QUOTED)


def _nothing_to_do(ctx: Context, agent: Agent) -> tuple[str, str]:
    """Reason why nothing is due: waits, closed accounts, deferrals, reviews, or simply no work."""
    waiting = waits.of_agent(ctx, agent.id)
    if waiting:
        return "waiting", waits.sentence(ctx, waiting)
    if (held := _held_jobs(ctx, agent)) is not None:
        return "held", held
    if (later := _later(ctx, agent)) is not None:
        return later
    if ctx.tx.one(due.ANY_LEFT_OF, agent=agent.id) is not None:
        return "nothing_new", (
            "Nothing new since it last looked. Mail, a change or a decision starts it."
        )
    if owed := ctx.tx.all(wait_statements.AWAITED_OF, agent=agent.id):
        return "awaited", waits.owed(ctx, owed)
    for outcome in ctx.tx.all(outcome_statements.OWNED_BY, owner=agent.id, after="", limit=50):
        if outcome.status is OutcomeStatus.OPEN and (awaited := _awaited(ctx, outcome)):
            others = plural(awaited, "other outcome")
            return "blocked", f"“{outcome.title}” waits for {others}."
    return "no_work", "Nothing to do: no mail, and no outcome that is ready."


def _later(ctx: Context, agent: Agent) -> Reason | None:
    """The reason why an agent starts at a later time: a date, letters to know, or a look at what it
    left alone."""
    date = ctx.tx.one(due.NEXT_DATE_OF, agent=agent.id)
    lease = ctx.tx.one(leases.LEASE, agent=agent.id)
    look = lease.look_at if lease is not None else None
    left = [] if look is None else ctx.tx.all(due.FIRST_FRESH_OF, agent=agent.id, limit=1)
    if look is not None and not left:
        look = ctx.tx.one(due.NEXT_REVIEW_OF, agent=agent.id)
        left = ctx.tx.all(due.LOOKED_AT, agent=agent.id, at=look) if look is not None else []
    if look is not None and look > ctx.now and (date is None or look < date):
        title = left[0].title
        return "reviewing_at", f"Nothing new; next review of “{title}” at {moment(look)}."
    if date is None:
        return None
    outcome = ctx.tx.all(due.LOOKED_AT, agent=agent.id, at=date)[0]
    at = moment(date)
    if outcome.kind is OutcomeKind.INBOX:
        return "nothing_new", (
            "Nothing to do. It has mail that is only to know, and reads it in its next run, at "
            f"the latest at {at}."
        )
    return "deferred", f"“{outcome.title}” was put off until {at}."


def _awaited(ctx: Context, outcome: Outcome) -> int:
    """Number of open outcomes that one waits for. A perpetual one does not wait for perpetual
    parts, such as mandates of reports: none of them is ever to end."""
    if not outcome.perpetual or not outcome.open_prereqs:
        return outcome.open_prereqs
    return int(ctx.tx.existing(outcome_statements.COUNT_ENDING_PREREQS, outcome=outcome.id))


def _held_jobs(ctx: Context, agent: Agent) -> str | None:
    """Sentence about background jobs that wait for a closed account, and whose answers would start
    it."""
    waiting = ctx.tx.all(job_statements.HELD_OF, agent=agent.id)
    closed = next((account for job in waiting if (account := accounts.holding_job(ctx, job))), None)
    if closed is None:
        return None
    verb = "wait" if len(waiting) > 1 else "waits"
    return (
        f"{plural(len(waiting), 'background job')} of it {verb}. {accounts.sentence(closed)} "
        f"{accounts.step(closed, agent)}"
    )
