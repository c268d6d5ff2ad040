"""The root of a company: the agent at the top of its tree, and its perpetual outcome.

A company begins with both. The root can be replaced but not removed. If it is missing anyway, as in
data of an older version, it is restored when the instance starts: the last root is reinstated under
its id, with new credentials and a new session, or a new one is created if that was purged.
"""

from collections.abc import Iterator
from itertools import chain, count

from remit.errors import Conflict
from remit.ids import UserId
from remit.model.organisation.agent import Agent
from remit.model.organisation.decision import Decision, Effect
from remit.model.work.outcome import OutcomeStatus
from remit.services import lookup, shapes
from remit.services.command import FOR_REMIT, Answer, Context, command, query
from remit.services.governance import approval_engine
from remit.services.hiring import agent_spec
from remit.services.organisation import agents, tree
from remit.services.spending import ledger
from remit.services.work import outcome_ending
from remit.store.organisation import agents as statements
from remit.store.organisation import people, purging

NAME = "ceo"
PURPOSE = "Help the people of this company accomplish their work"
ROLE = "ceo"
TITLE = "Chief executive"
_RESTORING = Decision(Effect.ALLOW, "system", "Every company has a root agent.", "rule:root_agent")


def begin(
    ctx: Context, *, name: object = None, adapter_type: object = None, adapter_config: object = None
) -> Answer:
    """Create the root outcome and the root agent of a new company."""
    return agents.create.body(
        ctx,
        company=ctx.company,
        name=NAME if name is None else name,
        adapter_type=adapter_type,
        adapter_config=adapter_config,
        role=ROLE,
        title=TITLE,
        purpose=PURPOSE,
    )


@query("roots.missing", FOR_REMIT)
def missing(ctx: Context) -> list[str]:
    """Return the companies without a root agent."""
    return list(ctx.tx.all(statements.COMPANIES_WITHOUT_ROOT))


@command("roots.restore", FOR_REMIT)
def restore(ctx: Context, *, company: str) -> shapes.RestoredRootShape:
    """Restore the root of a company, and tell its board."""
    ctx.enter(company)
    restored = ensure(ctx)
    if restored is None:
        raise Conflict("The company has a root agent.", "Nothing is missing.")
    return restored


def ensure(ctx: Context) -> shapes.RestoredRootShape | None:
    """Restore the root of the company if it is missing; returns what was done."""
    if ctx.tx.one(statements.WORKING_ROOT) is not None:
        return None
    ctx.allow_by_rule(_RESTORING)
    here = ctx.tx.existing(people.COMPANY)
    boss = _boss(ctx)
    last = next(_reinstatable(ctx), None)
    if last is not None:
        root = _reinstate(ctx, last, boss)
        sentence = f"{root.name}, the root agent of {here.name}, was gone and works again."
    else:
        root = _found(ctx, boss)
        sentence = f"{here.name} had no root agent; {root.name} is its new one."
    ctx.record(
        "company.restore_root",
        f"company:{here.id}",
        {"agent": root.id, "name": root.name, "reinstated": last is not None},
    )
    approval_engine.tell(ctx, f"user:{boss}", "The root agent was restored", sentence)
    return {"company_id": here.id, "agent_id": root.id, "name": root.name, "sentence": sentence}


def _boss(ctx: Context) -> UserId:
    """Return a member with the board's role over the whole company; there is always one."""
    # The last board member cannot be removed.
    board = ctx.tx.existing(people.OTHER_BOARD_MEMBERS, user="")
    return UserId(board)


def _reinstatable(ctx: Context) -> Iterator[Agent]:
    """The former roots that can be root again, the last one first."""
    for agent in ctx.tx.all(statements.FORMER_ROOTS):
        mandate = lookup.known_outcome(ctx, agent.id)
        if (
            mandate.perpetual
            and mandate.owner_id == agent.id
            and lookup.living_agent(ctx, agent.name) is None
            and not tree.is_purged(ctx, agent)
        ):
            yield agent


def _reinstate(ctx: Context, agent: Agent, boss: UserId) -> Agent:
    mandate = lookup.known_outcome(ctx, agent.id)
    if mandate.status is not OutcomeStatus.OPEN:
        outcome_ending.reopen_along(ctx, mandate, "a company has a root outcome")
    ctx.tx.run(statements.MOVE_AGENT, agent=agent.id, new_boss=None, new_boss_user=boss)
    ctx.tx.run(purging.FORGET_SESSIONS, agent=agent.id)
    tree.reinstate(ctx, lookup.known_agent(ctx, agent.id), paused=False)
    root = lookup.known_agent(ctx, agent.id)
    ledger.open_accounts(ctx, root)
    return root


def _found(ctx: Context, boss: UserId) -> Agent:
    names = chain([NAME], (f"{NAME}-{number}" for number in count(2)))
    free = next(name for name in names if lookup.living_agent(ctx, name) is None)
    described = {"name": free, "role": ROLE, "title": TITLE, "adapter_type": ctx.usable_adapter}
    spec = agent_spec.read(described)
    root, _ = tree.create_with_mandate(ctx, spec, None, purpose=PURPOSE, boss_user=boss)
    return root
