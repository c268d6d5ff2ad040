"""Update of an agent: a new session with its present configuration and the installed program.

A run and the session that it resumes keep the set-up with which they began. An update reads the
settings anew with the installed adapter, stores them as a revision, and ends the session. A running
agent is told to save its state and end; it is started again with the new set-up.
"""

from remit.adapters import registry
from remit.adapters.registry import WITHOUT_MODEL
from remit.authority import Action
from remit.errors import Conflict
from remit.model.organisation.agent import HUMAN, Agent
from remit.model.organisation.approval import ApprovalType
from remit.model.organisation.configuration import (
    RevisionSource,
    changed,
    configuration_of,
    is_for_people,
)
from remit.model.organisation.principal import ActorKind
from remit.services import lookup, shapes, views
from remit.services.command import Context, command
from remit.services.execution import tool_changes, waking
from remit.services.fields import AgentRef
from remit.services.governance import approval_engine
from remit.services.hiring import agent_spec, configuration
from remit.services.surfaces import AsRoute
from remit.services.verbs import preview_of
from remit.store.execution import runs as run_statements
from remit.store.organisation import people


@command(
    "agents.update",
    AsRoute("POST /agents/{id}/update", "update_agent", preview="agents.preview_update"),
)
def update(ctx: Context, *, agent: AgentRef) -> shapes.UpdatedAgentShape:
    """Have an agent take over its settings and its program as they are now, in a new session."""
    agent_row = lookup.agent_anywhere(ctx, agent)
    ctx.lock_company()
    ctx.require(Action.AGENT_CONTROL, over=agent_row.id)
    agent_row.require_operational("Choose an agent that works here.")
    if agent_row.adapter_type == HUMAN:
        raise Conflict(
            f"{agent_row.name} is the seat of a person; no program runs it.",
            "Choose an agent that a program runs.",
        )
    before = configuration_of(agent_row)
    wanted = _read_anew(ctx, agent_row)
    difference = configuration.changes_seen(ctx, configuration.difference(before, wanted))
    if changed(before, wanted) and _asks(ctx, agent_row, wanted):
        payload = configuration.proposal(agent_row, wanted, "Its set-up as it is now.")
        approval = approval_engine.ask(ctx, ApprovalType.CONFIG_CHANGE, payload, agent=agent_row)
        view = configuration.as_seen(ctx, views.approval(approval))
        return {**_answer(agent_row, difference), "approval": view}
    was_running = ctx.tx.one(run_statements.LIVE_RUN_OF, agent=agent_row.id)
    session = ctx.tx.one(run_statements.SESSION, agent=agent_row.id)
    new = configuration.apply(ctx, agent_row, wanted, RevisionSource.CHANGE)
    ctx.tx.run(run_statements.FORGET_SESSION, agent=agent_row.id)
    ctx.record(
        tool_changes.UPDATED,
        f"agent:{agent_row.id}",
        {
            "name": agent_row.name,
            "revision": new.config_revision,
            "changed": [change["path"] for change in difference],
            "run": was_running.id if was_running else None,
            "session": session is not None,
        },
    )
    tool_changes.updated(ctx, agent_row.id)
    waking.wake_afresh(ctx, agent_row.id, "it was updated")
    return {
        **_answer(new, difference),
        "revision": new.config_revision,
        "session_ended": session is not None,
        "run_told": was_running.id if was_running else None,
    }


preview = preview_of("agents.preview_update", update)


def _read_anew(ctx: Context, agent: Agent) -> dict[str, object]:
    """The configuration as the installed adapter takes it: without settings that it does not know
    any more, and with another adapter if its own is gone or was only a placeholder."""
    now = configuration_of(agent)
    kind, settings = agent.adapter_type, now["adapterConfig"]
    stopgap = kind == WITHOUT_MODEL and not settings.get("script")
    if kind not in registry.types() or stopgap:
        boss = lookup.agent_row(ctx, agent.boss_id) if agent.boss_id else None
        filled = agent_spec.with_adapter(ctx, {}, boss)
        if filled["adapter_type"] == kind:
            return now
        return {
            **now,
            "adapterType": filled["adapter_type"],
            "adapterConfig": filled.get("adapter_config") or {},
        }
    known = {
        name
        for field, shape in registry.get(kind).Config.model_fields.items()
        for name in (field, shape.alias)
    }
    return {
        **now,
        "adapterConfig": {key: setting for key, setting in settings.items() if key in known},
    }


def _asks(ctx: Context, agent: Agent, wanted: dict[str, object]) -> bool:
    """Return whether a person has to approve the change, as for other changes by an agent."""
    if ctx.actor.kind is not ActorKind.AGENT:
        return False
    now = configuration_of(agent)
    for_people = is_for_people(wanted, now)
    if ctx.decide(Action.CONFIG_CHANGE, home=agent.id, for_people=for_people).allowed:
        return False
    company = ctx.tx.existing(people.COMPANY)
    return company.require_approval_for_config_changes or for_people


def _answer(agent: Agent, difference: list[shapes.DifferenceShape]) -> shapes.UpdatedAgentShape:
    return {
        **views.agent(agent),
        "changes": difference,
        "approval": None,
        "revision": agent.config_revision,
        "session_ended": False,
        "run_told": None,
        "dry_run": False,
    }
