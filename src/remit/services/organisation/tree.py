"""The tree of agents: statuses, places, chains of bosses."""

from remit.errors import BadInput, Conflict
from remit.ids import AgentId, UserId
from remit.model.organisation.agent import (
    DEEPEST_TREE,
    HUMAN,
    OPERATIONAL,
    TRANSITIONS,
    Agent,
    AgentStatus,
)
from remit.services import lookup
from remit.services.command import Context
from remit.services.execution import waking
from remit.services.work import waits
from remit.store.organisation import agents as statements
from remit.store.organisation import people
from remit.store.record import events as event_log
from remit.store.work import outcomes as outcome_statements

#: Name of the event of a purge.
PURGED = "agent.purge"


def check_transition(agent: Agent, wanted: AgentStatus) -> None:
    if wanted in TRANSITIONS[agent.status]:
        return
    is_now, to_be = (one.value.replace("_", " ") for one in (agent.status, wanted))
    if wanted is agent.status:
        raise Conflict(f"{agent.name} is {is_now} already.", "There is nothing to do.")
    raise Conflict(
        f"{agent.name} is {is_now} and cannot become {to_be}.", "Look at the agent's status."
    )


def set_status(ctx: Context, agent: Agent, wanted: AgentStatus) -> None:
    """Change the status of an agent, if its transitions allow that; only `reinstate` does so
    otherwise."""
    check_transition(agent, wanted)
    ctx.tx.run(
        statements.SET_AGENT_STATUS, agent=agent.id, was=agent.status.value, new_status=wanted.value
    )
    if wanted not in (AgentStatus.IDLE, AgentStatus.RUNNING):
        waking.hold(ctx, agent.id)


def reinstate(ctx: Context, agent: Agent, *, paused: bool) -> None:
    """Reverse a termination, for an undo or a restored root; the agent's tokens stay revoked."""
    assert agent.status is AgentStatus.TERMINATED
    if is_purged(ctx, agent):
        raise Conflict(f"{agent.name} was purged since.", "Create an agent in its place.")
    status = AgentStatus.PAUSED if paused else AgentStatus.IDLE
    ctx.tx.run(
        statements.SET_AGENT_STATUS, agent=agent.id, was=agent.status.value, new_status=status.value
    )
    take_place(ctx, agent.id, agent.boss_id, agent.boss_user_id)
    if not paused:
        waking.wake_afresh(ctx, agent.id, "it was reinstated")
    ctx.record("agent.reinstate", f"agent:{agent.id}", {"name": agent.name})


def is_purged(ctx: Context, agent: Agent) -> bool:
    """Return whether the agent was purged."""
    return (
        ctx.tx.one(
            event_log.HAPPENED,
            company=agent.company_id,
            resource=f"agent:{agent.id}",
            action=PURGED,
        )
        is not None
    )


def is_vacant(ctx: Context, agent: Agent) -> bool:
    """Return whether it is the seat of a person, and no member of the company holds it."""
    if agent.adapter_type != HUMAN:
        return False
    holder = agent.seat_user_id
    return holder is None or ctx.tx.one(people.MEMBERSHIP, user=holder) is None


def check_root_stays(ctx: Context, gone: Agent) -> None:
    """Refuse a termination that left the company without a root agent, which can be replaced but
    not removed."""
    was_root = gone.boss_id is None and gone.status in OPERATIONAL
    if was_root and ctx.tx.one(statements.WORKING_ROOT) is None:
        raise Conflict(
            f"{gone.name} is the root agent of the company, which cannot be without one.",
            "Create another agent without a boss first, or change this one: `remit agent set "
            f"{gone.name}`.",
            code="root_agent",
        )


def check_boss(ctx: Context, boss: Agent, height: int = 1) -> None:
    """Check that a subtree of `height` levels can be put below `boss`."""
    if boss.status in (AgentStatus.TERMINATED, AgentStatus.PENDING_APPROVAL):
        raise Conflict(
            f"{boss.name} is {boss.status.value.replace('_', ' ')} and cannot have reports.",
            "Choose another boss.",
        )
    depth = len(ctx.boss_chain(boss.id))
    if depth == 0 or depth + height > DEEPEST_TREE:
        raise BadInput(
            f"The tree may be at most {DEEPEST_TREE} agents deep.", "Choose a boss further up."
        )


def check_move(ctx: Context, agent: Agent, boss: Agent) -> None:
    """Check that an agent can be put below `boss`, with everybody below it."""
    if agent.status is AgentStatus.TERMINATED:
        raise Conflict(f"{agent.name} is terminated.", "Choose agents that work here.")
    if agent.status is AgentStatus.PENDING_APPROVAL:
        raise Conflict(f"{agent.name} awaits approval where it is.", "Decide about that first.")
    if agent.id in ctx.boss_chain(boss.id):
        raise Conflict(
            f"{boss.name} works below {agent.name}.", "Choose a boss elsewhere.", code="cycle"
        )
    below = ctx.tx.one(statements.LEVELS_BELOW, agent=agent.id) or 0
    check_boss(ctx, boss, height=1 + below)


def check_assignable(ctx: Context, agent: str) -> None:
    """Refuse to give work to an agent that awaits approval."""
    found = ctx.tx.one(statements.AGENT, agent=agent)
    if found is not None and found.status is AgentStatus.PENDING_APPROVAL:
        raise Conflict(f"{found.name} awaits approval.", "Wait for the decision.")


def take_place(ctx: Context, agent: str, boss: AgentId | None, boss_user: UserId | None) -> None:
    """Record the agent's boss from now on, for the history of the tree."""
    ctx.tx.run(statements.END_PLACE, agent=agent)
    _begin_place(ctx, agent, boss, boss_user)


def _begin_place(ctx: Context, agent: str, boss: AgentId | None, boss_user: UserId | None) -> None:
    ctx.tx.run(
        statements.INSERT_PLACE,
        company_id=ctx.company,
        agent_id=agent,
        boss_id=boss,
        boss_user_id=boss_user,
        since=ctx.now,
        until=None,
    )


def first_place(ctx: Context, agent: Agent, boss: Agent | None) -> None:
    """Put a new agent below its boss, if it can be there."""
    if boss is not None:
        check_boss(ctx, boss)
    _begin_place(ctx, agent.id, agent.boss_id, agent.boss_user_id)


def living_boss(ctx: Context, agent: Agent) -> AgentId | None:
    """Return the nearest agent above that is not terminated."""
    for above in ctx.boss_chain(agent.id)[1:]:
        found = ctx.tx.one(statements.AGENT, agent=above)
        if found is not None and found.status is not AgentStatus.TERMINATED:
            return found.id
    return None


def hand_over(
    ctx: Context, outcome: str, owner: str, *, delegated: bool, delegator: str | None
) -> None:
    before = lookup.known_outcome(ctx, outcome)
    waits.forget(ctx, outcome)
    ctx.tx.run(
        outcome_statements.HAND_OVER,
        outcome=outcome,
        new_delegated=delegated,
        new_delegator=delegator,
        **waking.new_owner(ctx, owner),
    )
    if before.owner_id != owner:
        waits.forget_moved(ctx, before.owner_id)
    waking.wake(ctx, owner, "an outcome was handed over")
