"""Updating an agent: it takes over what it is configured with and the program that is installed.

A run and the conversation that it goes on with keep the set-up with which they began. An update
reads the settings anew with the adapter that is installed now, keeps them as a revision, and ends
the conversation. An agent at work is told to save its state and end; it is started again with the
new set-up.
"""

from __future__ import annotations

from typing import Any

from remit.adapters import registry
from remit.adapters.ability import WITHOUT_MODEL
from remit.authority import Action
from remit.errors import Conflict
from remit.model.agent import HUMAN, Agent, AgentStatus
from remit.model.approval import ApprovalType
from remit.model.configuration import (
    RevisionSource,
    changed,
    configuration_of,
    is_for_people,
    lends_secret,
)
from remit.model.principal import ActorKind
from remit.services import (
    approval_engine,
    configuration,
    default_adapter,
    lookup,
    toolset,
    views,
    waking,
)
from remit.services.command import Answer, Context, command, logged
from remit.store import people
from remit.store import runs as run_statements


@command("agents.update")
def update(ctx: Context, *, agent: str) -> Answer:
    """Have an agent take over its set-up as it is now. Any agent above does this, and the board."""
    return _update(ctx, agent)


@logged("agents.preview_update")
def preview(ctx: Context, *, agent: str) -> Answer:
    """Exactly what an update would change, without changing it."""
    answer = _update(ctx, agent)
    ctx.tx.restart()
    return {**answer, "dry_run": True}


def _update(ctx: Context, text: str) -> Answer:
    agent = lookup.agent_anywhere(ctx, text)
    ctx.take_turn()
    ctx.require(
        Action.AGENT_CONTROL, on=f"agent:{agent.id}", home=agent.id, place=ctx.place(agent.id)
    )
    if agent.status in (AgentStatus.TERMINATED, AgentStatus.PENDING_APPROVAL):
        raise Conflict(
            f"{agent.name} is {agent.status.value.replace('_', ' ')}.",
            "Choose an agent that works here.",
        )
    if agent.adapter_type == HUMAN:
        raise Conflict(
            f"{agent.name} is the seat of a person; no program runs it.",
            "Choose an agent that a program runs.",
        )
    before = configuration_of(agent)
    wanted = _read_anew(ctx, agent)
    difference = configuration.changes_seen(ctx, configuration.difference(before, wanted))
    if changed(before, wanted) and _asks(ctx, agent, wanted):
        payload = configuration.proposal(agent, wanted, "Its set-up as it is now.")
        asked = approval_engine.ask(ctx, ApprovalType.CONFIG_CHANGE, payload, agent=agent.id)
        view = configuration.as_seen(ctx, views.approval(asked))
        return {**_answer(agent, difference), "approval": view}
    was_running = ctx.tx.one(run_statements.LIVE_RUN_OF, agent=agent.id)
    session = ctx.tx.one(run_statements.SESSION, agent=agent.id)
    new = configuration.apply(ctx, agent, wanted, RevisionSource.CHANGE)
    ctx.tx.run(run_statements.FORGET_SESSION, agent=agent.id)
    ctx.record(
        toolset.UPDATED,
        f"agent:{agent.id}",
        {
            "name": agent.name,
            "revision": new.config_revision,
            "changed": [one["path"] for one in difference],
            "run": was_running.id if was_running else None,
            "session": session is not None,
        },
    )
    toolset.updated(ctx, agent.id)
    waking.wake_afresh(ctx, agent.id, "it was updated")
    return {
        **_answer(new, difference),
        "revision": new.config_revision,
        "session_ended": session is not None,
        "run_told": was_running.id if was_running else None,
    }


def _read_anew(ctx: Context, agent: Agent) -> dict[str, Any]:
    """The configuration as the adapter takes it now: without settings that it does not know any
    more, and with another adapter where its own is gone or was only a stopgap."""
    now = configuration_of(agent)
    kind, settings = agent.adapter_type, now["adapterConfig"]
    stopgap = kind == WITHOUT_MODEL and not settings.get("script")
    if kind not in registry.types() or stopgap:
        boss = lookup.agent_row(ctx, agent.boss_id) if agent.boss_id else None
        filled = default_adapter.fill_in(ctx, {}, boss)
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
    return {**now, "adapterConfig": {key: one for key, one in settings.items() if key in known}}


def _asks(ctx: Context, agent: Agent, wanted: dict[str, Any]) -> bool:
    """Whether a person has to say yes first, as to other changes that an agent makes."""
    if ctx.actor.kind is not ActorKind.AGENT:
        return False
    now = configuration_of(agent)
    for_people = is_for_people(wanted, now)
    if ctx.decide(Action.CONFIG_CHANGE, home=agent.id, for_people=for_people).allowed:
        return False
    company = ctx.tx.one(people.COMPANY, company=ctx.company)
    assert company is not None
    return company.require_approval_for_config_changes or lends_secret(wanted, now)


def _answer(agent: Agent, difference: list[dict[str, Any]]) -> Answer:
    return {
        **views.agent(agent),
        "changes": difference,
        "approval": None,
        "revision": agent.config_revision,
        "session_ended": False,
        "run_told": None,
        "dry_run": False,
    }
