"""Stop and go: halt a company or a subtree, and let it go on.

A halt is a row that is looked up by ancestry, so it also covers agents that are hired or moved
below it later. While it exists no run, job, channel mail, schedule, check or merge of a covered
agent begins, and its tokens are refused. Live runs end in the same transaction: their mail returns
without counting an attempt and what was due stays due, so lifting a halt is deleting its row.

A halt belongs to the highest who asked for it: somebody above its maker takes it over. That of a
company from outside belongs to its acceptance (`services/acceptance`), and nobody lifts it.
"""

import shlex
from typing import Annotated

from remit.authority import Action, GivenFacts
from remit.errors import Conflict
from remit.ids import AgentId, HaltId
from remit.model.execution.run import RunStatus
from remit.model.organisation.agent import Agent
from remit.model.organisation.halt import LONGEST_NOTE, Halt
from remit.model.organisation.principal import ActorKind
from remit.services import lookup, shapes, views
from remit.services.command import Context, command, query
from remit.services.execution import run_endings
from remit.services.fields import AgentRef, CompanyRef, Help, Text
from remit.services.surfaces import AsRoute
from remit.store.connections import checks as check_statements
from remit.store.engine.statement import renewed
from remit.store.execution import jobs as job_statements
from remit.store.organisation import halts as statements
from remit.store.organisation import people

#: Why no run is started, and the exit reason of a run that was live.
STOPPED = run_endings.STOPPED


# Stopping an agent is written by hand: one route stops it alone or with everybody below it.
@command(
    "halts.stop",
    AsRoute(
        "POST /companies/{companyId}/stop",
        "stop_company",
        words="Halt the company: nothing starts, and runs end. The instance runs on.",
        without=("agent",),
    ),
)
def stop(
    ctx: Context,
    *,
    company: CompanyRef | None = None,
    agent: AgentRef | None = None,
    note: Annotated[str, Text(LONGEST_NOTE, empty=True), Help("Why, for everybody who looks.")]
    | None = None,
) -> shapes.StoppedShape:
    """Stop a company, or an agent and everybody below it. Stopping twice is one halt."""
    top = require_stop(ctx, company, agent)
    before = _halt_of(ctx, top)
    halt = Halt(
        id=before.id if before else HaltId(ctx.ids.new()),
        company_id=ctx.company,  # type: ignore[arg-type]  # it was entered
        agent_id=top.id if top else None,
        made_by_user_id=ctx.actor.user_id,
        made_by_agent_id=ctx.actor.agent_id,
        note=note or "",
        created_at=ctx.now,
    )
    if before is None:
        ctx.tx.add(halt)
    elif _is_above_maker(ctx, before):
        ctx.tx.run(statements.TAKE_OVER_HALT, halt=halt.id, **renewed(halt))
    else:
        halt = before
    ctx.record(
        "halt.stop",
        _on(ctx, top),
        {"halt": halt.id, "level": halt.level, "note": note or "", "already": before is not None},
    )
    ended = _end_work(ctx, top)
    return {**view(ctx, halt), "already": before is not None, **ended}


@command(
    "halts.go",
    AsRoute(
        "POST /companies/{companyId}/go",
        "go_company",
        words="Remove the company's halt; those of subtrees stay.",
        without=("agent",),
    ),
)
def go(
    ctx: Context, *, company: CompanyRef | None = None, agent: AgentRef | None = None
) -> shapes.LiftedShape:
    """Remove one halt: the company's, or that of an agent. Others stay."""
    top, halt = require_go(ctx, company, agent)
    ctx.tx.run(statements.DELETE_HALT, halt=halt.id)
    ctx.record("halt.go", _on(ctx, top), {"halt": halt.id, "level": halt.level})
    left = ctx.tx.all(statements.HALTS)
    return {**view(ctx, halt), "lifted": True, "left": [view(ctx, other) for other in left]}


@query("halts.listing", AsRoute("GET /companies/{companyId}/halts", "list_halts", page="id"))
def listing(ctx: Context, *, company: CompanyRef | None = None) -> list[shapes.ListedHaltShape]:
    """Halts, the company's own first; of a part, those that cover it or lie in it."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.COMPANY_READ, on=f"company:{ctx.company}")
    halts = ctx.tx.all(statements.HALTS)
    scope = ctx.membership.scope_agent_id if ctx.membership else ctx.actor.agent_id
    above = ctx.boss_chain(scope)
    return [
        {**view(ctx, halt), "may_lift": _may_lift(ctx, halt)}
        for halt in halts
        if scope is None
        or halt.agent_id is None
        or halt.agent_id in above
        or scope in ctx.boss_chain(halt.agent_id)
    ]


def _may_lift(ctx: Context, halt: Halt) -> bool:
    if halt.awaits_acceptance:
        return False
    return ctx.decide(Action.HALT_GO, **_lifting(ctx, halt.agent_id, halt)).allowed


def _lifting(ctx: Context, top: str | None, halt: Halt | None) -> GivenFacts:
    """The facts for the decision about lifting a halt."""
    return {
        "place": ctx.boss_chain(top),
        "by_person": halt is not None and halt.made_by_user_id is not None,
        "maker": ctx.boss_chain(halt.made_by_agent_id) if halt else (ctx.actor.id,),
    }


def covering(ctx: Context, agent: str) -> Halt | None:
    """Return the widest halt that covers an agent, if any."""
    halts = ctx.tx.all(statements.COVERING, agent=agent)
    return halts[0] if halts else None


def refuse_stopped(ctx: Context, agent: Agent) -> None:
    """Refuse to begin anything for an agent that a halt covers."""
    halt = covering(ctx, agent.id)
    if halt is not None:
        raise Conflict(
            f"{agent.name} is stopped. {sentence(ctx, halt)}", _step(ctx, halt), code=STOPPED
        )


def arrived(ctx: Context, agent_id: str) -> None:
    """End the work of an agent that was moved below a halt, and of everybody below it."""
    agent = lookup.agent_row(ctx, agent_id)
    if agent is not None and covering(ctx, agent_id) is not None:
        _end_work(ctx, agent)


def sentence(ctx: Context, halt: Halt) -> str:
    """Sentence about a halt: of what, by whom, when and why."""
    shown = view(ctx, halt)
    if halt.awaits_acceptance:
        came = f"came from outside: {shown['by_name']} imported it at {shown['since']}"
        return f"The company {came}, and nobody has accepted it."
    what = (
        "The company was"
        if halt.agent_id is None
        else f"{shown['agent']} and everybody below it were"
    )
    because = f" ({halt.note})" if halt.note else ""
    return f"{what} stopped by {shown['by_name']} at {shown['since']}{because}."


def explain(ctx: Context, halt: Halt) -> str:
    """Sentence about a halt, with the command that lifts it."""
    return f"{sentence(ctx, halt)} {_step(ctx, halt)}"


def view(ctx: Context, halt: Halt) -> shapes.HaltShape:
    top = lookup.agent_row(ctx, halt.agent_id) if halt.agent_id else None
    if (maker := halt.made_by_agent_id) is not None:
        by, by_name = f"agent:{maker}", lookup.name_of(ctx, maker)
    else:
        by = f"user:{halt.made_by_user_id}"
        by_name = lookup.user_name(ctx, halt.made_by_user_id, "the board")
    return _view(halt, agent=top and top.name, by=by, by_name=by_name)


_view = views.view_of(
    Halt,
    shapes.HaltShape,
    supplied={"agent", "by", "by_name"},
    level="level",
    since="created_at",
    awaits_acceptance="awaits_acceptance",
)


def require_stop(ctx: Context, company: str | None, agent: str | None) -> Agent | None:
    """Return the agent to be stopped, or None for the company; refused to who may not stop it."""
    top = _top(ctx, company, agent)
    ctx.require(Action.HALT_STOP, on=_on(ctx, top), place=ctx.boss_chain(top.id if top else None))
    if top is not None:
        top.require_operational("Choose an agent that works here.")
    return top


def require_go(ctx: Context, company: str | None, agent: str | None) -> tuple[Agent | None, Halt]:
    """Return the agent whose halt is to be lifted, or None for the company, and the halt; refused
    to who may not lift it."""
    top = _top(ctx, company, agent)
    halt = _halt_of(ctx, top)
    ctx.require(Action.HALT_GO, on=_on(ctx, top), **_lifting(ctx, top.id if top else None, halt))
    if halt is None:
        raise Conflict(*_not_stopped(ctx, top), code="not_stopped")
    if halt.awaits_acceptance:
        raise Conflict(sentence(ctx, halt), _step(ctx, halt), code="not_accepted")
    return top, halt


def _top(ctx: Context, company: str | None, agent: str | None) -> Agent | None:
    """Return the agent that was named; None for the whole company."""
    if company is not None or agent is None:
        lookup.company_of_caller(ctx, company)
    return None if agent is None else lookup.agent_anywhere(ctx, agent)


def _on(ctx: Context, top: Agent | None) -> str:
    return f"company:{ctx.company}" if top is None else f"agent:{top.id}"


def _halt_of(ctx: Context, top: Agent | None) -> Halt | None:
    if top is None:
        return ctx.tx.one(statements.HALT_OF_COMPANY)
    return ctx.tx.one(statements.HALT_OF_AGENT, agent=top.id)


def _is_above_maker(ctx: Context, halt: Halt) -> bool:
    if halt.made_by_agent_id is None:
        return False
    if ctx.actor.kind is ActorKind.USER:
        return True
    return ctx.actor.id in ctx.boss_chain(halt.made_by_agent_id)[1:]


def _end_work(ctx: Context, top: Agent | None) -> shapes.EndedByHaltShape:
    """End the live runs; requeue running jobs and checks, without counting the attempt."""
    here: dict[str, object] = {"company": ctx.company}
    if top is not None:
        here["agent"] = top.id
    of_runs = statements.LIVE_RUNS_IN if top is None else statements.LIVE_RUNS_BELOW
    of_jobs = statements.RUNNING_JOBS_IN if top is None else statements.RUNNING_JOBS_BELOW
    under_way = statements.CHECKS_UNDER_WAY_IN if top is None else statements.CHECKS_UNDER_WAY_BELOW
    runs, jobs = ctx.tx.all(of_runs, **here), ctx.tx.all(of_jobs, **here)
    by = ctx.actor.name or ctx.actor.address
    why: shapes.RunEndShape = {"exit_reason": STOPPED, "error": f"stopped by {by}"}
    for run in runs:
        run_endings.finish(ctx, run, RunStatus.LOST, why)
        run_endings.release(ctx, run, RunStatus.LOST, None, why)
    for job in jobs:
        ctx.tx.run(job_statements.QUEUE.put_back, job=job.id, epoch=job.epoch)
        ctx.record(
            "job.put_back", f"job:{job.id}", {"agent_id": job.agent_id, "worker": job.worker}
        )
    for check in ctx.tx.all(under_way, **here):
        ctx.tx.run(check_statements.CHECKS.put_back, check=check.id, epoch=check.epoch)
        about = {"change": check.change_id, "worker": check.worker}
        ctx.record("check.put_back", f"check:{check.id}", about)
    return {"runs_ended": len(runs), "jobs_put_back": len(jobs)}


def _step(ctx: Context, halt: Halt) -> str:
    does = (
        "shows what it would run, and lets it go on" if halt.awaits_acceptance else "lets it go on"
    )
    return f"`{command_for(ctx, halt)}` {does}."


def command_for(ctx: Context, halt: Halt) -> str:
    if halt.awaits_acceptance:
        name = ctx.tx.existing(people.COMPANY, company=halt.company_id).name
        return f"remit company accept {shlex.quote(name)}"
    top = lookup.agent_row(ctx, AgentId(halt.agent_id)) if halt.agent_id else None
    return f"remit resume {top.name}" if top else "remit resume"


def _not_stopped(ctx: Context, top: Agent | None) -> tuple[str, str]:
    name = "The company" if top is None else top.name
    wider = covering(ctx, top.id) if top else None
    if wider is not None:
        return f"{name} has no halt of its own. {sentence(ctx, wider)}", _step(ctx, wider)
    return f"{name} is not stopped.", "There is nothing to resume."
