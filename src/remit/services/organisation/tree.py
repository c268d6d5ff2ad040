"""The tree of agents: their creation with a mandate, their statuses, places and bosses."""

from dataclasses import replace

from remit.errors import AlreadyExists, BadInput, Conflict
from remit.ids import AgentId, FileId, RevisionId, UserId
from remit.model.organisation.agent import (
    DEEPEST_TREE,
    HUMAN,
    OPERATIONAL,
    TRANSITIONS,
    Agent,
    AgentStatus,
)
from remit.model.organisation.agent_spec import AgentSpec, values
from remit.model.organisation.configuration import RevisionSource, revision_of
from remit.model.organisation.permission import PermissionLevel
from remit.model.organisation.principal import ActorKind
from remit.model.text import clean_line, name_key
from remit.model.work.file import FileKind
from remit.model.work.outcome import LONGEST_TITLE, Outcome
from remit.services import lookup
from remit.services.command import Context
from remit.services.execution import waking
from remit.services.knowledge import documents
from remit.services.messaging import origins
from remit.services.organisation.permissions import begin as begin_level
from remit.services.spending import ledger
from remit.services.work import waits
from remit.services.work.outcome_creation import add_to_mandate, open_outcome
from remit.store.engine.statement import row
from remit.store.organisation import agents as statements
from remit.store.organisation import people
from remit.store.organisation.agents import Place
from remit.store.record import events as event_log
from remit.store.work import outcomes as outcome_statements

#: Why a new agent is woken whose mandate can be accomplished.
WORK_FROM_THE_START = "its mandate can be worked on"
#: Name of the event of a purge.
PURGED = "agent.purge"


def create_with_mandate(
    ctx: Context,
    spec: AgentSpec,
    boss: Agent | None,
    *,
    mandate: Outcome | None = None,
    purpose: object = None,
    perpetual: object = None,
    boss_user: UserId | None = None,
    status: AgentStatus = AgentStatus.IDLE,
) -> tuple[Agent, Outcome]:
    """Create an agent below its boss, or as a root below `boss_user`, by default the calling user.

    Its mandate is the outcome `mandate`, or a new one that is a part of the boss's. A new mandate
    is perpetual, unless `perpetual` is False: the agent works when there is mail or an outcome for
    it. A mandate that is not perpetual can be accomplished, and is itself work from the start.
    """
    check_name(ctx, spec.name)
    if boss is not None:
        check_boss(ctx, boss)
    new = mandate is None
    if mandate is None:
        mandate = _open_mandate(ctx, spec, boss, purpose, perpetual)
    agent = Agent(
        **values(spec),
        id=AgentId(mandate.id),
        company_id=mandate.company_id,
        status=status,
        boss_id=boss.id if boss else None,
        boss_user_id=None if boss else boss_user or _boss_user(ctx),
        seat_user_id=None,
        permission_level=PermissionLevel.STANDARD,
        config_revision=1,
        state_file_id=FileId(ctx.ids.new()),
        log_file_id=FileId(ctx.ids.new()),
        created_at=ctx.now,
        updated_at=ctx.now,
    )
    ctx.tx.add(agent, name_key=name_key(spec.name))
    place = Place(agent.id, agent.boss_id, agent.boss_user_id, since=ctx.now, until=None)
    ctx.tx.run(statements.INSERT_PLACE, company_id=ctx.company, **row(place))
    # Its working memory, which it writes, and the log of its runs, which it reads.
    books = [
        (agent.state_file_id, FileKind.STATE, f"State of {agent.name}"),
        (agent.log_file_id, FileKind.LOG, f"Activity log of {agent.name}"),
    ]
    books += [(FileId(mandate.id), FileKind.OUTCOME, mandate.title)] if new else []
    documents.create_empty(ctx, agent.id, *books)
    ctx.record(
        "agent.create",
        f"agent:{agent.id}",
        {
            "name": spec.name,
            "role": spec.role.value,
            "boss": agent.boss_id,
            "boss_user": agent.boss_user_id,
            "adapter_type": spec.adapter_type,
            "mandate": mandate.title,
            "status": status.value,
        },
    )
    revision = RevisionId(ctx.ids.new())
    ctx.tx.add(revision_of(agent, revision, RevisionSource.CREATE, ctx.actor, ctx.now))
    if agent.has_budget:
        ledger.open_accounts(ctx, agent)
    waits = status is AgentStatus.PENDING_APPROVAL
    if not waits:
        begin_level(ctx, agent)
    if new:
        parents = [boss.id] if boss else []
        details = {"title": mandate.title, "owner": mandate.owner_id, "parents": parents}
        ctx.record("outcome.create", f"outcome:{mandate.id}", details)
        if not waits:
            waking.news(ctx, mandate, WORK_FROM_THE_START)
    return agent, mandate


def _open_mandate(
    ctx: Context, spec: AgentSpec, boss: Agent | None, purpose: object, perpetual: object
) -> Outcome:
    if not isinstance(perpetual, bool | None):
        raise BadInput("perpetual: must be true or false.", "Send a boolean.")
    aim = purpose or spec.title or f"Act as {spec.role.value}"
    mandate = open_outcome(
        ctx,
        title=clean_line(aim, "purpose", longest=LONGEST_TITLE),
        perpetual=perpetual is not False,
        delegator=boss.id if boss else None,
        origin=origins.of_caller(ctx),
    )
    if boss is not None:
        add_to_mandate(ctx, boss, mandate)
    return mandate


def check_name(ctx: Context, name: str) -> None:
    if lookup.living_agent(ctx, name):
        raise AlreadyExists(f"There is an agent named {name!r} already.")


def _boss_user(ctx: Context) -> UserId:
    if ctx.actor.kind is not ActorKind.USER:
        raise BadInput("A root agent reports to a user.", "Name the boss with reportsTo.")
    return UserId(ctx.actor.id)


def check_transition(agent: Agent, wanted: AgentStatus) -> None:
    if wanted in TRANSITIONS[agent.status]:
        return
    is_now, to_be = (status.value.replace("_", " ") for status in (agent.status, wanted))
    if wanted is agent.status:
        raise Conflict(f"{agent.name} is {is_now} already.", "There is nothing to do.")
    raise Conflict(
        f"{agent.name} is {is_now}, so it cannot be made {to_be}.",
        "Look at the agent's status.",
    )


def set_status(ctx: Context, agent: Agent, wanted: AgentStatus) -> Agent:
    """Change the status of an agent, if its transitions allow that; only `reinstate` does so
    otherwise."""
    check_transition(agent, wanted)
    ctx.tx.run(
        statements.SET_AGENT_STATUS, agent=agent.id, was=agent.status.value, new_status=wanted.value
    )
    if wanted not in (AgentStatus.IDLE, AgentStatus.RUNNING):
        waking.hold(ctx, agent.id)
    return replace(agent, status=wanted, updated_at=ctx.now)


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
    purge = {"company": agent.company_id, "resource": f"agent:{agent.id}", "action": PURGED}
    return ctx.tx.one(event_log.HAPPENED, **purge) is not None


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
    depth = 1 if boss.boss_id is None else len(ctx.boss_chain(boss.id))
    if depth == 0 or depth + height > DEEPEST_TREE:
        raise BadInput(
            f"The tree may be at most {DEEPEST_TREE} agents deep.", "Choose a boss further up."
        )


def check_movable(agent: Agent) -> None:
    if agent.status is AgentStatus.TERMINATED:
        raise Conflict(f"{agent.name} is terminated.", "Choose agents that work here.")
    if agent.status is AgentStatus.PENDING_APPROVAL:
        raise Conflict(f"{agent.name} awaits approval where it is.", "Decide about that first.")


def check_move(ctx: Context, agent: Agent, boss: Agent) -> None:
    """Check that an agent can be put below `boss`, with everybody below it."""
    check_movable(agent)
    if agent.id in ctx.boss_chain(boss.id):
        raise Conflict(
            f"{boss.name} works below {agent.name}.", "Choose a boss elsewhere.", code="cycle"
        )
    below = ctx.tx.one(statements.LEVELS_BELOW, agent=agent.id) or 0
    check_boss(ctx, boss, height=1 + below)


def check_assignable(ctx: Context, agent_id: str) -> None:
    """Refuse to give work to an agent that awaits approval."""
    agent = lookup.agent_row(ctx, agent_id)
    if agent is not None and agent.status is AgentStatus.PENDING_APPROVAL:
        raise Conflict(f"{agent.name} awaits approval.", "Wait for the decision.")


def take_place(ctx: Context, agent: str, boss: AgentId | None, boss_user: UserId | None) -> None:
    """Record the agent's boss from now on, for the history of the tree."""
    ctx.tx.run(statements.END_PLACE, agent=agent)
    place = Place(AgentId(agent), boss, boss_user, since=ctx.now, until=None)
    ctx.tx.run(statements.INSERT_PLACE, company_id=ctx.company, **row(place))


def living_boss(ctx: Context, agent: Agent) -> AgentId | None:
    """Return the nearest agent above that is not terminated."""
    for above in ctx.boss_chain(agent.id)[1:]:
        boss = lookup.agent_row(ctx, above)
        if boss is not None and boss.status is not AgentStatus.TERMINATED:
            return boss.id
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
    waking.acted(ctx, owner)
    waking.wake(ctx, owner, "an outcome was handed over")
